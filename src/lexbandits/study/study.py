"""`Study`: what people call. Every call is one transaction on its journal, here or behind a service."""

import copy
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import lexbandits
from lexbandits._extras import need
from lexbandits._validation import difference, suggesting, whole
from lexbandits.outcomes import Scope
from lexbandits.study.core import ask_tell, assignment, changes, imports, lifecycle, verification
from lexbandits.study.core.assignment import checked_key, untold
from lexbandits.study.core.events import Event
from lexbandits.study.core.journal import Journal
from lexbandits.study.core.queries import Answer, Status, frame_of_trials, result_rows, trial_columns
from lexbandits.study.core.replay import Replay, make_policy
from lexbandits.study.errors import (
    SpecMismatchError,
    StorageError,
    StudyError,
    StudyExistsError,
    StudyWarning,
    UnknownStudyError,
    study_errors,
)
from lexbandits.study.measure import run as workers_module
from lexbandits.study.objective import Objective
from lexbandits.study.spec import FORMAT, WAIT, Spec, checked_arm, fields_from_toml, patience, seconds
from lexbandits.study.states import StudyState
from lexbandits.study.storage.contract import Storage, StudyRow, is_missing, open_storage
from lexbandits.study.trial import AssignReason, Trial

if TYPE_CHECKING:
    import pandas as pd

    from lexbandits.forecasting.forecast import Forecast
    from lexbandits.policies import LexElimTol
    from lexbandits.views.explain import Explanation
    from lexbandits.views.view_parts import ArmExplanation

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
        asked = journal.asked()  # or it cannot be read
        self._fallback = asked.baseline or str(asked.arms[0]["name"])  # to show while nothing can be read

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
        fields = self._journal.shown().as_json()
        fields.pop("objects", None)  # which are not of the question
        return fields

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

        It is the caller's for `lease` (by default the study's); heartbeats of `worker` extend it. The
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

    def assign(self, key: str, *, lease: Any = None, worker: str | None = None) -> Trial:
        """Return the arm to show to the visitor `key`, a user or a session: the same one every time.

        A trial while the study measures; tell what came of it. Seen again within the trial's lease, the key
        gets the same trial; later the same arm, without an id: it is not told. While nothing can be measured
        the arm is the best so far, after the end the winner. An arm that is no longer a candidate is given
        to nobody: whoever had it gets the best arm so far.

        It never raises for a visitor of a study that exists. If the storage does not answer, the arm is the
        best one this process knows of, and not remembered (`trial.reason` is "stale"; a `StudyWarning`
        says why).

        Args:
            key: any text that stands for the visitor. A digest of it is kept, and `forget` deletes that.
            lease: how long a result counts after the first visit; the study's, unless given.
            worker: who serves, for the record; `heartbeat` would extend its leases.

        >>> import lexbandits as lb
        >>> study = lb.create_study("pages", arms=["old", "new"], lease="7d", seed=0, objectives=[
        ...     lb.Objective("converted", margin=0.01, noise="bernoulli", if_expired=0)])
        >>> trial = study.assign("user 17")
        >>> study.assign("user 17") == trial
        True
        >>> study.tell(trial, {"converted": 1})
        'counted'
        >>> again = study.assign("user 17")
        >>> again.arm == trial.arm, again.id, str(again.reason)
        (True, None, 'sticky')
        """
        checked_key(key)
        held = None if lease is None else seconds("lease", lease)
        if worker is not None:
            check_texts(worker=worker)
        try:
            if self._journal.read_only:
                over = self.status.state == StudyState.FINISHED
                trial = untold(self.answer.arm, AssignReason.WINNER if over else AssignReason.LEADER)
            else:
                trial = self._journal.assign(key, held, worker)
        except StorageError as error:
            warnings.warn(StudyWarning("stale", self.name, f"assigned from memory: {error}"), stacklevel=2)
            trial = untold(self._journal.best or self._fallback, AssignReason.STALE)
        return self._with_objects(trial)

    def forget(self, key: str | None = None) -> int:
        """Delete what is kept of the visitor `key`, or of all visitors; how many there were.

        Results stay: nothing in the journal says whose they are. A visitor who comes again is a new one.
        """
        return self._journal.do(assignment.forget, None if key is None else checked_key(key))

    # --- telling

    def tell(self, trial: Trial | str, values: Mapping[str, Any], partial: bool = False) -> str:
        """Report the `values` of a `trial` by objective; None, nan or no key where one was not measured.

        `partial`: others follow within the lease ("part"). The trial is complete when all are there. If it
        fails or runs out before, `if_failed` or `if_expired` fills the rest only.

        Return "counted", or "waiting" behind an earlier trial that is still open. "repeated": it was told
        before. "late": it came after its `until`, and is recorded and never counted. "after the end".
        Other values than before are a `ConflictError`.
        """
        return self._journal.do(ask_tell.take, trial, values, partial)

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
    ) -> ask_tell.Exchanged:
        pairs = list(results)
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"results must be (trial, values) pairs, got {pair!r}")
        count = n if type(n) is int and n >= 0 else _check_count("n", n)
        held = None if lease is None else seconds("lease", lease)
        if worker is not None:
            check_texts(worker=worker)
        if request is not None:
            check_texts(request=request)
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

    def record(self, trial: Trial | str, values: Mapping[str, Any], partial: bool = False) -> str:
        """`tell` for short-lived processes: "recorded", "part", "repeated" or "late", the policy not woken.

        `trial`, `values` and `partial` as in `tell`. Whoever asks or looks next counts it, and notes the end
        if it brought it.
        """
        return self._journal.do(ask_tell.record, trial, values, partial)

    def fail(self, trial: Trial | str, reason: str = "", *, interrupted: bool = False) -> str:
        """Report that a `trial` could not be measured: its place is missing, or has the value `if_failed`.

        `reason` is for the record. `interrupted`: it was begun and broken off, which says nothing about the
        arm: `max_failures` does not count it.
        """
        return self._journal.do(ask_tell.fail, trial, str(reason), interrupted)

    def release(self, trial: Trial | str) -> None:
        """Give a `trial` back that nobody has begun: its place is asked again under a new trial.

        What was begun is failed instead, with interrupted=True: whoever could measure again what looked bad
        would choose which values count.
        """
        self._journal.do(ask_tell.release, trial)

    def expire(self, trial: Trial | str) -> str:
        """Declare an overdue `trial` missing now; the next ask of anybody would do it too."""
        return self._journal.do(ask_tell.expire, trial)

    def heartbeat(self, worker: str) -> None:
        """Say that a `worker` is alive: its leases that have not run out start again."""
        check_texts(worker=worker)
        self._journal.extend(worker)

    def correct(self, trial: Trial | str, values: Mapping[str, Any], reason: str) -> str:
        """Other `values` for a `trial` that was told, with a `reason` for the record.

        "corrected" while its pass is not judged; later only a note, "noted".
        """
        return self._journal.do(ask_tell.correct, trial, values, reason)

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

    def forecast(self, prior: Any = None, runs: int = 200, price: Any = None, **how: Any) -> "Forecast":
        """How many results are still needed, who may win, what to relax.

        `prior`, `runs`, `price` and the rest of `how` are those of `lexbandits.forecast`.
        """
        from lexbandits.forecasting.forecast import forecast

        return forecast(self, prior, runs=runs, price=price, **how)

    def explain(self, arm: str | None = None) -> "Explanation | ArmExplanation":
        """Why each arm left or stays, what the answer may give up, its diagnostics; or one `arm`'s story."""
        from lexbandits.views.explain import explain

        with self._journal.lock:
            return explain(self, arm)

    def report(self, path: str | Path, *, format: str | None = None) -> Path:
        """Write one file, `path`, that a stranger can check the answer from: `format` "html" or "md"."""
        from lexbandits.report.study_report import write

        with self._journal.lock:
            return write(self, Path(path), format)

    def _repr_html_(self) -> str:
        from lexbandits.report.notebook import of_study

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

    def verify(self, digest: str | None = None) -> verification.Verification:
        """Replay the journal from nothing and compare it with its digests, its answer and its cache.

        `digest`: the one that an answer or a report names; it must be of this journal too.
        """
        return self._journal.verify(digest)

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

    def _settled(self) -> Replay:
        """For who holds the journal's lock."""
        return self._journal.settled()

    # --- changes, one event each

    @property
    def proof(self) -> lifecycle.ProofKind:
        """What the answer is proven by: "preregistered" tests, or "closed" or "anytime" evidence."""
        return self._journal.proof()

    def cost_of_change(self, change: str = "Changing a margin") -> str:
        """What a `change` of arms, order or margins costs, in a sentence; "" if nothing."""
        status = self.status
        is_begun = status.handed_out or status.released or status.results
        if not is_begun or self.proof != lifecycle.ProofKind.PREREGISTERED:
            return ""
        return lifecycle.cost_of_closing(change, status.results)

    def add_arm(self, arm: str | Mapping[str, Any], *, object: Any = NO_OBJECT, blind: bool = False) -> None:
        """Another arm, a name or a table with a name; `max_arms` must have left room for it.

        `object` is what `measure` is handed for it, in a study with `arms={name: object}`.

        On a list it is judged by chance on items to come alone, as it may have been tuned on those that were
        handed out. `blind` says that it was made without looking at any result of this study.
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
        """Ask again for what failed or ran out, on a list; how many places. Reported as a diagnostic.

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
        self._journal.do(ask_tell.end, reason)

    def reopen(self, why: str) -> None:
        """Go on after an end, `why`; a study with its answer ends again at once, unless its rules change."""
        self._journal.do(changes.reopen, why)

    def note(self, text: str) -> None:
        """Put a remark, `text`, on record."""
        self._journal.do(changes.note, text)


def check_texts(**fields: Any) -> None:
    """Refuse names of workers and requests that a storage could not keep."""
    for what, word in fields.items():
        if not (isinstance(word, str) and 1 <= len(word) <= 200) or UNKEPT.search(word):
            raise StudyError(f"{what} must be 1 to 200 characters of text, got {word!r}")


@study_errors()
def _check_count(what: str, value: Any, least: int = 0) -> int:
    return whole(what, value, least=least)


# --- studies by name


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
    scope: Scope | Literal["items", "population"] | None = None,
    repeats: int = Spec.repeats,
    source: Mapping[str, str] | None = Spec.source,
    seed: int | None = Spec.seed,
    if_infeasible: Literal["continue", "stop"] = "continue",
    budget: int | None = Spec.budget,
    lease: float | str | timedelta = Spec.lease,
    max_failures: int = Spec.max_failures,
    baseline: str | None = Spec.baseline,
    preregistered: bool = Spec.preregistered,
    serve: bool = Spec.serve,
    traffic: float = Spec.traffic,
    warmup: float | str | timedelta = Spec.warmup,
    shares: Mapping[str, float | tuple[float, float]] | None = Spec.shares,
    burn_in: Mapping[str, Mapping[str, Iterable[float]]] | None = Spec.burn_in,
) -> Study:
    """Create a study. Ties go to the arm listed first: list the incumbent first.

    Args:
        name: of the study.
        storage: "memory", a file for SQLite, "postgresql://…" or "http://…", a service.
        arms: names. Or a dict of names and objects, which stay in this process and are handed to `measure`.
            Or tables with a name and further keys, which `lexbandits run` hands to a program.
        objectives: in order of priority.
        load_if_exists: open the study of this name, if it asks the same.
        delta: the probability of a wrong answer, 0.05 by default.
        max_arms: how many arms there may ever be; by default those given.
        items: what to measure on, each once per arm: texts, numbers, or tables with an `id` and further keys;
            without it items are numbers.
        scope: "items", the answer is about this list (the default if there are items), or "population", the
            list is a random sample of it.
        repeats: how often each item of a list is measured, 1 by default.
        source: the file that the items were read from, and its digest, for the record.
        seed: of the order of items. By default a new one is drawn: what was tuned on the items that came
            first in one order is tuned on them again in the same.
        if_infeasible: "continue" (the default) or "stop", where no arm meets a limit.
        budget: how many trials are handed out at most; by default there is no end.
        lease: how long a trial is reserved for a worker: seconds, or text such as "10m", the default.
        max_failures: in a row, 5 by default, after which an arm is withdrawn.
        baseline: the current arm: it is the answer unless another is better in something that matters, and
            `answer.decision` says "keep", "switch" or "keep_for_now".
        preregistered: True (the default) needs about a third fewer results if you keep margins, order and
            arms as they are; False if you will change them.
        serve: ask the arm that leads twice as often as each other arm: fewer visitors see a worse one.
            Every noise must be "bernoulli", ("bounded", low, high), ("sub_gaussian", sd) or "exact".
        traffic: the share of visitors that `assign` lets take part, 1.0 by default. All others see the
            baseline, or the best arm so far without one, and are not measured.
        warmup: how long after its creation that share grows from nothing: seconds, or text such as "3d";
            0.0 by default.
        shares: arm -> the least share of the visitors who see it, or (the least, the largest): 0.5, (0, 0.1).
            `assign` keeps to them while the arm is in question, by letting fewer visitors take part.
        burn_in: objective -> arm -> a few values, for objectives with cap="auto". They fix the cap, stay on
            record, and do not count.

    >>> import lexbandits as lb
    >>> def measure(text):
    ...     return {"size": len(text)}
    >>> study = lb.create_study("texts", arms={"long": "abcdef", "short": "abc"},
    ...                         objectives=[lb.Objective("size", "minimize", noise="exact")])
    >>> study.run(measure, progress=False).arm
    'short'
    """
    fields: dict[str, Any] = {
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
        "preregistered": preregistered,
        "serve": serve,
        "traffic": traffic,
        "warmup": warmup,
        "shares": shares,
        "burn_in": burn_in,
        "objects": isinstance(arms, Mapping),
    }
    if scope is not None:
        fields["scope"] = scope
    study = create_from_fields(fields, storage, load_if_exists=load_if_exists)
    return Study(study._journal, arms) if isinstance(arms, Mapping) else study


def create_from_fields(
    fields: Mapping[str, Any], storage: str | Path | Storage, *, load_if_exists: bool
) -> Study:
    """`create_study` from the fields of a file; of an existing one with items its scope is kept."""
    spec = Spec.from_json(fields)
    if load_if_exists and spec.is_list and "scope" not in fields and not is_missing(storage):
        opened = open_storage(storage)
        row = opened.find(spec.name)
        if row is not None:
            spec = replace(spec, scope=_open_journal(opened, row).asked().scope)
        storage = opened
    return create_from_spec(spec, storage, load_if_exists=load_if_exists)


def create_from_spec(
    spec: Spec, storage: str | Path | Storage, *, load_if_exists: bool, nonce: str = ""
) -> Study:
    """`create_study` from a whole spec; an existing study with this `nonce` was made by the same call."""
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
            f"there is a study {spec.name!r} in {opened.shown}; "
            "load_if_exists=True (--load-if-exists) opens it"
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
        return Journal(storage, row, read_only or storage.is_read_only)
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
    fields = fields_from_toml(path)
    there = fields.pop("storage", "memory")
    where = there if storage is None else storage
    return create_from_fields(fields, where, load_if_exists=load_if_exists)


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
