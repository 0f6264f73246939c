"""`Study`: what people call. Every call is one transaction on its journal, here or behind a service."""

import copy
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import lexbandits
from lexbandits.checks import difference, suggesting, whole
from lexbandits.extras import need
from lexbandits.study.errors import (
    SpecMismatchError,
    StudyError,
    StudyExistsError,
    UnknownStudyError,
    study_errors,
)
from lexbandits.study.measure import run as workers_module
from lexbandits.study.objective import Objective
from lexbandits.study.record import asking, changes, imports, rules, verification
from lexbandits.study.record.answers import Answer, Status, frame_of_trials, result_rows, trial_columns
from lexbandits.study.record.events import Event
from lexbandits.study.record.fold import Fold, make_policy
from lexbandits.study.record.journal import Journal
from lexbandits.study.spec import FORMAT, WAIT, Spec, checked_arm, patience, seconds, words_from_toml
from lexbandits.study.storage.contract import Storage, StudyRow, is_missing, open_storage
from lexbandits.study.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

    from lexbandits.forecasting.forecast import Forecast
    from lexbandits.picture.explain import Explanation
    from lexbandits.picture.shown import Story
    from lexbandits.policies import LexElimTol

POLICY = "LexElimTol"
NO_OBJECT: Any = type("NoObject", (), {"__repr__": lambda self: "no object"})()  # None may be one
UNKEPT = re.compile("[\x00\ud800-\udfff]")  # NUL, and half a pair of surrogates


class Study:
    """Ask which arm to measure next, tell the result, until there is an answer.

    Made by `create_study` or `open_study`. Any number of processes may work on one study at once, each
    with a `Study` of its own; one object may be shared by threads and survives a fork.

    Args:
        journal: its record; `create_study` and `open_study` find it.
        objects: of its arms, by name.

    >>> import lexbandits as lb
    >>> study = lb.create_study("sizes", arms=["a", "b"],
    ...                         objectives=[lb.Objective("size", "minimize", noise="exact")])
    >>> study.run(lambda arm: {"size": {"a": 4, "b": 3}[arm]}, progress=False).arm
    'b'
    >>> study.results()[["arm", "objective", "mean"]].values.tolist()
    [['a', 'size', 4.0], ['b', 'size', 3.0]]
    """

    def __init__(self, journal: Journal, objects: Mapping[str, Any] | None = None) -> None:
        self._journal = journal
        self._objects = None if objects is None else dict(objects)  # they never leave the process
        journal.asked()  # or it cannot be read

    @property
    def name(self) -> str:
        """The name given."""
        return self._journal.row.name

    @property
    def storage(self) -> str:
        """Where it is kept, without a password."""
        return self._journal.storage.shown

    @property
    def spec(self) -> dict[str, Any]:
        """The question as asked, in words: JSON-able. The seed of a list is None until the end,
        and while arms may be added: who reads it knows which items come first."""
        words = self._journal.shown().as_json()
        words.pop("objects", None)  # which are not of the question
        return words

    @property
    def arms(self) -> dict[str, dict[str, Any]]:
        """All arms by name, with the further keys they were given; withdrawn ones too."""
        return {arm["name"]: dict(arm) for arm in self._journal.in_force().arms}

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """In order of priority, with the margins in force."""
        return tuple(self._journal.in_force().objectives)

    @property
    def seq(self) -> int:
        """How many events there are: it changes whenever anything does."""
        return self._journal.in_force().seq

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self.storage}>"

    def __reduce__(self) -> tuple[Any, ...]:
        address = self._journal.storage.__reduce__()[1][0]
        return _opened, (self.name, address, self._journal.read_only, self._objects)

    def close(self) -> None:
        """Give back the connection; a later call opens another. Copy a SQLite file after that, not before."""
        self._journal.storage.close()

    # --- asking

    def ask(
        self,
        *,
        lease: Any = None,
        worker: str | None = None,
        request: str | None = None,
        wait: Any = WAIT,
    ) -> Trial:
        """The next trial; `StudyFinished`, `StudyPaused` or `StudyWaiting` when there is nothing to measure.

        It is the caller's for `lease` (the study's, unless said); heartbeats of `worker` extend it. The
        same `request` gives the same trial again. While results of others must come first, wait up to
        `wait` for them, such as "30s"; 0 is not at all.
        """
        _, trials, reason = self._exchange([], 1, lease, worker, request, wait)
        if reason is not None:
            raise reason
        return trials[0]

    def ask_many(
        self,
        n: int,
        *,
        lease: Any = None,
        worker: str | None = None,
        request: str | None = None,
        wait: Any = WAIT,
    ) -> list[Trial]:
        """Up to `n` trials at once; fewer or none near the end, while paused, or while too much waits.

        `lease`, `worker`, `request` and `wait` as in `ask`, here and below.
        """
        return self._exchange([], n, lease, worker, request, wait)[1]

    def choose(self, *, lease: Any = None, worker: str | None = None, request: str | None = None) -> Trial:
        """For who serves traffic: a trial while measuring, else the winner or best guess, never told.

        `lease`, `worker` and `request` as in `ask`.
        """
        nothing = self._journal.read_only and self.status.state != "measuring"
        trials = [] if nothing else self._exchange([], 1, lease, worker, request)[1]
        return trials[0] if trials else self._with_objects(Trial(None, None, self.answer.arm, None, None))

    # --- telling

    def tell(self, trial: Trial | str, values: Mapping[str, Any], more: bool = False) -> str:
        """Report the `values` of a `trial` by objective; None, nan or no key where one was not measured.

        `more`: others follow within the lease ("part"). The trial is complete when all are there; if it fails
        or runs out before, `if_failed` or `if_expired` fills the rest only.
        "counted"; "waiting" behind an earlier trial that is still open; "repeated", it was told before;
        "late", it came after its `until`: recorded and never counted;
        "after the end". Other values than before are a `ConflictError`.
        """
        return self._journal.do(asking.take, trial, values, more)

    def tell_many(self, results: Iterable[tuple[Trial | str, Mapping[str, Any]]]) -> list[str]:
        """Report many `results`, (trial, values) pairs, at once: all or none; over http, of each thousand."""
        return self._exchange(results, 0)[0]

    def tell_ask(
        self,
        results: Iterable[tuple[Trial | str, Mapping[str, Any]]],
        n: int = 1,
        *,
        lease: Any = None,
        worker: str | None = None,
        request: str | None = None,
        wait: Any = WAIT,
    ) -> tuple[list[str], list[Trial]]:
        """`tell_many` of `results` and `ask_many` of `n` in one transaction: outcomes and trials.

        `lease`, `worker`, `request` and `wait` as in `ask`: what is told is recorded before it waits.
        """
        outcomes, trials, _ = self._exchange(results, n, lease, worker, request, wait)
        return outcomes, trials

    def _exchange(
        self,
        results: Iterable[tuple[Trial | str, Mapping[str, Any]]],
        n: Any,
        lease: Any = None,
        worker: str | None = None,
        request: str | None = None,
        wait: Any = 0,
    ) -> asking.Exchanged:
        pairs = list(results)
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"results must be (trial, values) pairs, got {pair!r}")
        count = n if type(n) is int and n >= 0 else _check_count("n", n)
        held = None if lease is None else seconds("lease", lease)
        if worker is not None:
            check_words(worker=worker)
        if request is not None:
            check_words(request=request)
        outcomes, trials, reason = self._journal.exchange(pairs, count, held, worker, request, patience(wait))
        return outcomes, [self._with_objects(trial) for trial in trials], reason

    def _with_objects(self, trial: Trial) -> Trial:
        return trial if self._objects is None else trial.with_object(self._objects)

    def _hands_objects(self) -> bool:
        """Whether `measure` takes the arms' objects; refuses if it does and they are elsewhere."""
        if self._objects is None and self._journal.asked().objects:
            given = ", ".join(f"{name!r}: …" for name in self.arms)
            raise StudyError(
                f"study {self.name!r} was created with objects as arms, and they are not in this process: "
                f"open it with open_study({self.name!r}, storage, arms={{{given}}})"
            )
        return self._objects is not None

    def record(self, trial: Trial | str, values: Mapping[str, Any], more: bool = False) -> str:
        """`tell` for short-lived processes: "recorded", "part", "repeated" or "late", the policy not woken.

        `trial`, `values` and `more` as in `tell`. Whoever asks or looks next counts it, and notes the end if
        it brought it.
        """
        return self._journal.do(asking.record, trial, values, more)

    def fail(self, trial: Trial | str, reason: str = "", *, interrupted: bool = False) -> str:
        """Report that a `trial` could not be measured: its place is missing, or has the value `if_failed`.

        `reason` is for the record. `interrupted`: it was begun and broken off, which says nothing about the
        arm: `max_failures` does not count it.
        """
        return self._journal.do(asking.fail, trial, str(reason), interrupted)

    def release(self, trial: Trial | str) -> None:
        """Give a `trial` back that nobody has begun: its place is asked again under a new trial.

        What was begun is failed instead, with interrupted=True: whoever could measure again what looked bad
        would choose which values count.
        """
        self._journal.do(asking.release, trial)

    def expire(self, trial: Trial | str) -> str:
        """Declare an overdue `trial` missing now; the next ask of anybody would do it too."""
        return self._journal.do(asking.expire, trial)

    def heartbeat(self, worker: str) -> None:
        """Say that a `worker` is alive: its leases that have not run out begin anew."""
        check_words(worker=worker)
        self._journal.extend(worker)

    def correct(self, trial: Trial | str, values: Mapping[str, Any], reason: str) -> str:
        """Other `values` for a `trial` that was told, with a `reason` for the record.

        "corrected" while its pass is not judged; later only a note, "noted".
        """
        return self._journal.do(asking.correct, trial, values, reason)

    def run(
        self,
        measure: Callable[..., Mapping[str, Any]],
        workers: int = 1,
        *,
        executor: str | Executor = "threads",
        lease: Any = None,
        progress: bool = True,
        time_limit: Any = None,
    ) -> Answer:
        """Measure until there is an answer: measure(arm) or measure(arm, item) -> values by objective.

        `arm` is the arm's name, or its object if the study has `arms={name: object}`. Threads share an
        object; each worker process has a copy of its own.

        What `measure` raises is a failed trial. After Ctrl-C what is being measured has failed, as
        interrupted, and what was not begun is given back. `StudyPaused` if it was paused meanwhile.

        Args:
            measure: what measures.
            workers: how many at once.
            executor: "threads", "processes", or an executor of concurrent.futures.
            lease: how long a trial may take; heartbeats extend it.
            progress: show a bar.
            time_limit: such as "2h": nothing more is asked then; what is begun is measured to its end.
        """
        how = workers_module.Run(
            self, measure, _check_count("workers", workers, 1), executor, lease, progress, time_limit
        )
        return how.go()

    # --- what is known

    @property
    def status(self) -> Status:
        """Where the study stands."""
        return self._journal.status()

    @property
    def answer(self) -> Answer:
        """The answer; a best guess while `certified` is False."""
        return self._journal.answer()

    @property
    def policy(self) -> "LexElimTol":
        """The policy behind it, a copy: larger is better, arms and objectives by index."""
        with self._journal.lock:
            return copy.copy(self._settled().policy)

    def forecast(self, guess: Any = None, runs: int = 200, price: Any = None, **how: Any) -> "Forecast":
        """How many results are still needed, who may win, what to relax.

        `guess`, `runs`, `price` and the rest of `how` are those of `lexbandits.forecast`.
        """
        from lexbandits.forecasting.forecast import forecast

        return forecast(self, guess, runs=runs, price=price, **how)

    def explain(self, arm: str | None = None) -> "Explanation | Story":
        """Why each arm left or stays, what the answer may give up, what strained it; or one `arm`'s story."""
        from lexbandits.picture.explain import explain

        with self._journal.lock:
            return explain(self, arm)

    def report(self, path: str | Path, *, format: str | None = None) -> Path:
        """Write one file, `path`, that a stranger can check the answer from: `format` "html" or "md"."""
        from lexbandits.insight.report import write

        with self._journal.lock:
            return write(self, Path(path), format)

    def _repr_html_(self) -> str:
        from lexbandits.insight.notebook import of_study

        with self._journal.lock:
            return of_study(self)

    def results(self) -> "pd.DataFrame":
        """One row per arm and objective: mean, interval, results, and whether the arm is a candidate."""
        frame: pd.DataFrame = need("pandas", "results()").DataFrame(self._results())
        return frame

    def _results(self) -> list[dict[str, Any]]:
        """`results` without a frame."""
        with self._journal.lock:
            return result_rows(self._settled())

    def trials(self) -> "pd.DataFrame":
        """One row per trial: arm, item, state, worker, when it was asked and told, and its values."""
        return frame_of_trials(self._trials())

    def _trials(self) -> dict[str, Any]:
        """`trials` without a frame: columns."""
        with self._journal.lock:
            return trial_columns(self._settled())

    def events(self, since: int = 0) -> Iterator[Event]:
        """The journal after event `since`; before its end that of a list is without the seed of its order."""
        return self._journal.events_shown(_check_count("since", since))

    def verify(self, record: str | None = None) -> verification.Verification:
        """Replay the journal from nothing and compare it with its digests, its answer and its cache.

        `record`: the digest that an answer or a report names; it must be of this journal too.
        """
        return self._journal.verify(record)

    def export(self, path: str | Path) -> Path:
        """Write the trials (.csv, .parquet) or the journal (.jsonl) to `path`."""
        return imports.export(self, Path(path))

    def import_results(
        self,
        frame: "pd.DataFrame | dict[str, list[Any]] | str | Path",
        arm: str = "arm",
        *,
        fair: bool | None = None,
        again: bool = False,
        ignore: Iterable[str] = (),
    ) -> int:
        """Results measured before, taken before the first ask; how many rows have a value.

        Trials of another study count as they would here: failed ones as `if_failed`, expired and late ones
        as `if_expired`.

        On a list at any time: each row fills the place of its `item` (of repeats "q17#2").

        Args:
            frame: a table with one row each, or the file of one. Rows that share the column `item` share a
                pass; without it each arm's rows are shuffled by the seed.
            arm: the column with the arms' names.
            fair: whether what was measured, what of it is here, and what this study asks was decided without
                looking at values; if not, there is no certificate. Not needed of a list: its order is drawn.
            again: these very rows a second time.
            ignore: columns that are no objectives.
        """
        if isinstance(frame, (str, Path)):
            frame = imports.read(Path(frame), self._journal.asked())
        return self._journal.do(imports.take, frame, arm, fair, again, ignore)

    def _settled(self) -> Fold:
        """For who holds the journal's lock."""
        return self._journal.settled()

    # --- changes, one event each

    @property
    def proof(self) -> str:
        """ "declared": the answer is proven under the rules as created; "closed" or "open": under any."""
        return self._journal.proof()

    def cost_of_change(self, change: str = "Changing a margin") -> str:
        """What a `change` of arms, order or margins costs, in a sentence; "" if nothing."""
        status = self.status
        is_begun = status.handed_out or status.released or status.results
        if not is_begun or self.proof != "declared":
            return ""
        return rules.cost_of_closing(change, status.results)

    def add_arm(self, arm: str | Mapping[str, Any], *, object: Any = NO_OBJECT, blind: bool = False) -> None:
        """Another arm, a name or a table with a name; `max_arms` must have left room for it.

        `object` is what `measure` is handed for it, in a study with `arms={name: object}`.

        On a list it is judged by chance on items to come alone, as it may have been tuned on those that were
        handed out; `blind` says that it was made without looking at any result of this study.
        """
        with self._journal.lock:  # its object is here before anybody is asked to measure it
            before = self._objects
            if object is not NO_OBJECT:
                name = arm if isinstance(arm, str) else checked_arm(arm)["name"]
                if before is None and not self._journal.asked().objects:
                    raise StudyError(
                        f"arm {name!r} has an object and the others have none: `measure` is handed their "
                        "names; make the study with arms={name: object}"
                    )
                self._objects = {name: object, **(before or {})}
            elif before is not None:
                raise StudyError(f"`measure` is handed objects: say add_arm({arm!r}, object=…)")
            try:
                self._journal.do(changes.add_arm, arm, blind)
            except BaseException:
                self._objects = before
                raise

    def retry(self) -> int:
        """Ask again for what failed or ran out, on a list; how many places. Counted as a strain.

        A place counts at its worst until it has a value; the first one that comes stays.
        """
        return self._journal.do(changes.retry)

    def withdraw(self, name: str, reason: str) -> None:
        """Take the arm `name` out of the question, for a `reason`; arms that only it had beaten return."""
        self._journal.do(changes.withdraw, name, reason)

    def restore(self, name: str) -> None:
        """Bring the withdrawn arm `name` back."""
        self._journal.do(changes.restore, name)

    def amend(
        self, objective: str, *, margin: float | str | None = None, tie: float | str | None = None
    ) -> None:
        """Another `margin` or `tie` of an `objective`, after looking if need be.

        A tie that was left out stays half of the margin. A limit, or its slack, is another question: make a
        new study.
        """
        self._journal.do(changes.amend, objective, margin, tie)

    def reorder(self, objectives: Sequence[str]) -> None:
        """Another order of priority, all `objectives`, after looking if need be."""
        self._journal.do(changes.reorder, objectives)

    def pause(self, reason: str = "") -> None:
        """Hand out nothing until `resume`; results are still taken. `reason` is for the record."""
        self._journal.do(changes.pause, reason)

    def resume(self) -> None:
        """Go on after a pause."""
        self._journal.do(changes.resume)

    def set_budget(self, budget: int | None) -> None:
        """Another `budget`, the number of trials to hand out in all; None for no limit."""
        self._journal.do(changes.set_budget, budget)

    def end(self, reason: str) -> None:
        """End by hand, for a `reason`, without a certificate unless its results had given the answer."""
        self._journal.do(asking.end, reason)

    def reopen(self, why: str) -> None:
        """Go on after an end, `why`; a study with its answer ends again at once, unless its rules change."""
        self._journal.do(changes.reopen, why)

    def note(self, text: str) -> None:
        """Put a remark, `text`, on record."""
        self._journal.do(changes.note, text)


def check_words(**words: Any) -> None:
    """Refuse names of workers and requests that a storage could not keep."""
    for what, word in words.items():
        if not (isinstance(word, str) and 1 <= len(word) <= 200) or UNKEPT.search(word):
            raise StudyError(f"{what} must be 1 to 200 characters of text, got {word!r}")


@study_errors()
def _check_count(what: str, value: Any, least: int = 0) -> int:
    return whole(what, value, least=least)


# --- studies by name


class Settings(TypedDict, total=False):
    """The optional settings of `create_study`, for functions that pass them on."""

    load_if_exists: bool
    delta: float
    max_arms: int | None
    items: Iterable[Any] | None
    about: Literal["items", "population"] | None
    repeats: int
    source: Mapping[str, str] | None
    seed: int | None
    if_infeasible: Literal["go on", "stop"]
    budget: int | None
    lease: float | str | timedelta
    max_failures: int
    baseline: str | None
    rules: Literal["declared", "open"]


@suggesting
def create_study(
    name: str,
    storage: str | Path | Storage = "memory",
    *,
    arms: Iterable[str | Mapping[str, Any]] | Mapping[str, Any],
    objectives: Iterable[Objective | Mapping[str, Any]],
    load_if_exists: bool = False,
    delta: float = Spec.delta,
    max_arms: int | None = None,
    items: Iterable[Any] | None = Spec.items,
    about: Literal["items", "population"] | None = None,
    repeats: int = Spec.repeats,
    source: Mapping[str, str] | None = Spec.source,
    seed: int | None = Spec.seed,
    if_infeasible: Literal["go on", "stop"] = Spec.if_infeasible,
    budget: int | None = Spec.budget,
    lease: float | str | timedelta = Spec.lease,
    max_failures: int = Spec.max_failures,
    baseline: str | None = Spec.baseline,
    rules: Literal["declared", "open"] = Spec.rules,
) -> Study:
    """Create a study. Ties go to the arm listed first: list the incumbent first.

    Args:
        name: of the study.
        storage: "memory", a file for SQLite, "postgresql://…" or "http://…", a service.
        arms: names; or a dict of names and objects, which stay in this process and are handed to `measure`;
            or tables with a name and further keys, which `lexbandits run` hands to a program.
        objectives: in order of priority.
        load_if_exists: open the study of this name, if it asks the same.
        delta: the probability of a wrong answer, 0.05 by default.
        max_arms: how many arms there may ever be; by default those given.
        items: what to measure on, each once per arm: texts, numbers, or tables with an `id` and further keys;
            without it items are numbers.
        about: "items", the answer is about this list (the default if there are items), or "population", the
            list is a random sample of it.
        repeats: how often each item of a list is measured, 1 by default.
        source: the file that the items were read from, and its digest, for the record.
        seed: of the order of items. By default a new one is drawn: what was tuned on the items that came
            first in one order is tuned on them again in the same.
        if_infeasible: "go on" (the default) or "stop", where no arm meets a limit.
        budget: how many trials are handed out at most; by default there is no end.
        lease: how long a trial is reserved for a worker: seconds, or text such as "10m", the default.
        max_failures: in a row, 5 by default, after which an arm is withdrawn.
        baseline: the current arm: it is the answer unless another is better in something that matters, and
            `answer.decision` says "keep", "switch" or "keep for now".
        rules: "declared" (the default) needs fewer results if you keep the rules; "open" if you will change
            them.

    >>> import lexbandits as lb
    >>> def measure(text):
    ...     return {"size": len(text)}
    >>> study = lb.create_study("texts", arms={"long": "abcdef", "short": "abc"},
    ...                         objectives=[lb.Objective("size", "minimize", noise="exact")])
    >>> study.run(measure, progress=False).arm
    'short'
    """
    words: dict[str, Any] = {
        "name": name,
        "arms": list(arms) if isinstance(arms, Mapping) else arms,
        "objectives": objectives,
        "delta": delta,
        "max_arms": max_arms,
        "items": items,
        "repeats": repeats,
        "source": source,
        "seed": seed,
        "if_infeasible": if_infeasible,
        "budget": budget,
        "lease": lease,
        "max_failures": max_failures,
        "baseline": baseline,
        "rules": rules,
        "objects": isinstance(arms, Mapping),
    }
    if about is not None:
        words["about"] = about
    study = create_from_words(words, storage, load_if_exists=load_if_exists)
    return Study(study._journal, arms) if isinstance(arms, Mapping) else study


def create_from_words(
    words: Mapping[str, Any], storage: str | Path | Storage, *, load_if_exists: bool
) -> Study:
    """`create_study` from the words of a file; of one that is there and has items it is about what it was."""
    spec = Spec.from_json(words)
    if load_if_exists and spec.is_list and "about" not in words and not is_missing(storage):
        opened = open_storage(storage)
        row = opened.find(spec.name)
        if row is not None:
            spec = replace(spec, about=_open_journal(opened, row).asked().about)
        storage = opened
    return create_from_spec(spec, storage, load_if_exists=load_if_exists)


def create_from_spec(
    spec: Spec, storage: str | Path | Storage, *, load_if_exists: bool, nonce: str = ""
) -> Study:
    """`create_study` from a whole spec; a study that is there with this `nonce` was made by the same call."""
    opened, settings = open_storage(storage), spec.policy_settings()
    drawn = spec
    if not opened.is_remote:  # whose service does it
        with study_errors():
            make_policy(POLICY, settings)  # refuses what it cannot do, before anything is written
        drawn = replace(spec, seed=secrets.randbits(53)) if spec.seed is None else spec
    payload = {
        "spec": drawn.as_json(),
        "policy": POLICY,
        "version": lexbandits.__version__,
        "format": FORMAT,
    }
    row, is_new = opened.create(spec.name, nonce or secrets.token_hex(8), payload)
    is_mine = is_new or row.nonce == nonce
    if not (is_mine or load_if_exists):
        raise StudyExistsError(
            f"there is a study {spec.name!r} in {opened.shown}; load_if_exists=True opens it"
        )
    study = Study(_open_journal(opened, row))
    if not is_mine and (differs := _difference(study._journal.asked(), spec)):
        raise SpecMismatchError(f"study {spec.name!r} in {opened.shown} asks another question: {differs}")
    return study


def _difference(there: Spec, here: Spec) -> str | None:
    """What another question asks for; a seed that nobody has said, or that is not shown, is any."""
    seed = here.seed if there.seed is None else there.seed
    asked = replace(
        here, seed=seed if here.seed is None else here.seed, source=there.source, objects=there.objects
    )
    return difference(replace(there, seed=seed).as_json(), asked.as_json())


def _open_journal(storage: Storage, row: StudyRow, read_only: bool = False) -> Journal:
    if not storage.is_remote:
        return Journal(storage, row, read_only)
    from lexbandits.study.storage.http import RemoteJournal

    return RemoteJournal(storage, row, read_only)


def study_from_toml(
    path: str | Path, storage: str | Path | Storage | None = None, *, load_if_exists: bool = True
) -> Study:
    """The study that a TOML file describes, made or opened.

    Args:
        path: of the file.
        storage: where it is kept; what the file says, unless given.
        load_if_exists: no error if it is there and asks the same.
    """
    words = words_from_toml(path)
    there = words.pop("storage", "memory")
    where = there if storage is None else storage
    return create_from_words(words, where, load_if_exists=load_if_exists)


def open_study(
    name: str,
    storage: str | Path | Storage,
    read_only: bool = False,
    *,
    arms: Mapping[str, Any] | None = None,
) -> Study:
    """Open an existing study.

    Args:
        name, storage: which one, and where it is kept.
        read_only: refuse every change.
        arms: an object for each arm, by name, which `measure` is handed: as in `create_study`, whose objects
            are not stored.

    >>> import lexbandits as lb
    >>> how = {"objectives": [lb.Objective("size", "minimize", noise="exact")]}
    >>> study = lb.create_study("texts", "texts.db", arms={"short": "ab", "long": "abc"}, **how)
    >>> lb.open_study("texts", "texts.db").run(lambda text: {"size": len(text)})
    Traceback (most recent call last):
    lexbandits.study.errors.StudyError: study 'texts' was created with objects as arms, and they are not in \
this process: open it with open_study('texts', storage, arms={'short': …, 'long': …})
    >>> again = lb.open_study("texts", "texts.db", arms={"short": "ab", "long": "abc"})
    >>> again.run(lambda text: {"size": len(text)}, progress=False).arm
    'short'
    """
    if arms is not None and not isinstance(arms, Mapping):
        raise TypeError(f"arms must be a dict of names and objects, got {arms!r}")
    study = _opened(name, storage, read_only, arms)
    if arms is not None:
        _check_same_arms(study, arms)
    return study


def _opened(
    name: str, storage: str | Path | Storage, read_only: bool, objects: Mapping[str, Any] | None = None
) -> Study:
    return Study(_open_journal(*_find(name, storage), read_only), objects)


def _check_same_arms(study: Study, objects: Mapping[str, Any]) -> None:
    there = study.arms
    missing = [name for name in there if name not in objects]
    unknown = [name for name in objects if name not in there]
    parts = [
        f"{what} {', '.join(map(repr, names))}"
        for what, names in (("there is no object for", missing), ("the study has no arm", unknown))
        if names
    ]
    if parts:
        raise SpecMismatchError(f"arms are not those of study {study.name!r}: {'; '.join(parts)}")


def _find(name: str, storage: str | Path | Storage) -> tuple[Storage, StudyRow]:
    if is_missing(storage):
        raise UnknownStudyError(f"no study {name!r}: there is no {storage}")
    opened = open_storage(storage)
    row = opened.find(name) if isinstance(name, str) and name.isprintable() else None
    if row is None:
        there = ", ".join(repr(row.name) for row in opened.studies()[:10]) or "none"
        raise UnknownStudyError(f"no study {name!r} in {opened.shown}; there: {there}")
    return opened, row


def list_studies(storage: str | Path | Storage) -> list[str]:
    """The names of the studies in a storage.

    Args:
        storage: a file or an address.
    """
    return [] if is_missing(storage) else [row.name for row in open_storage(storage).studies()]


def delete_study(name: str, storage: str | Path | Storage) -> None:
    """Delete a study with all its results, for good.

    Args:
        name, storage: which one, and where it is kept.
    """
    opened, row = _find(name, storage)
    opened.delete(row.id)
