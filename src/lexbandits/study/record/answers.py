"""What a study says of itself: its answer, its status, its tables. In the words and units people gave."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lexbandits.extras import need
from lexbandits.printable import plain
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.ledger import Ledger
from lexbandits.study.record.said import certified_reason, flags_said
from lexbandits.study.record.strains import strains_of
from lexbandits.study.record.trials import EXPIRED, FAILED, LATE, OPEN, RELEASED, STATES
from lexbandits.study.trial import in_time_column

if TYPE_CHECKING:  # pandas is slow to import, and `tell` needs no table
    import pandas as pd

WITHOUT = {  # flags that take the certificate away
    "large-sample",
    "imported unfairly",
    "repeated values",
    "contradiction",
}
MOST_CHANGES = 20  # of the rules that an answer names one by one, the last ones


@dataclass(frozen=True)
class Answer:
    """Which arm, and how sure. While `certified` is False `arm` is a best guess.

    `certificate` holds one comparison of the answer per rival and objective that it rests on: difference
    (answer − rival, in the objective's unit), its interval at the study's confidence, which is a statement of
    its own, the verdict, `by` whom a rival is "beaten", `parts`, the share of the evidence it takes, and
    whether it is `certain`: arithmetic, no chance; so is all of a `certain` answer. It is `about` the "items"
    of a list, so many `items`, or the "population"; `results` are those it rests on, of `full`, all that a
    list could give. With a baseline `decision` is "keep" (it is the certified answer), "switch" (the
    certified answer is shown to be better, a statement of its own at the study's confidence) or "keep for
    now". `flags` name what a reader must know besides, `details` has the fields of each; `WITHOUT` lists
    those that take the certificate away. `record` is the digest of all events before the end: keep it, and
    `study.verify(record)` can tell later whether the journal is still the one that gave this answer.
    """

    arm: str
    certified: bool
    delta: float
    candidates: tuple[str, ...]
    reason: str
    flags: tuple[str, ...] = ()
    certificate: tuple[dict[str, Any], ...] = ()
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    about: str = "population"
    items: int | None = None
    results: int | None = None
    full: int | None = None
    certain: bool = False
    decision: str | None = None
    record: str | None = field(default=None, compare=False)  # of equal answers it may be another

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        words = asdict(self)
        if self.decision is None:
            del words["decision"]
        return {**words, **{key: list(words[key]) for key in LISTS}}

    def _repr_html_(self) -> str:
        from lexbandits.insight.notebook import of_answer

        return of_answer(self)

    @classmethod
    def from_json(cls, words: Mapping[str, Any]) -> "Answer":
        """From the words of `as_json`, of a journal or of the service."""
        known = {key: words[key] for key in cls.__dataclass_fields__ if key in words}
        return cls(**{**known, **{key: tuple(words[key]) for key in LISTS}})


@dataclass(frozen=True)
class Status:
    """Where a study stands. Counts are of trials; `waiting_for` are the ids that hold results back.

    `late` are results that never count: told after their time. `released` were given back unmeasured; of the
    `failed`, `interrupted` were broken off.
    `at_most`: how many more results a list can take; None without one.
    """

    name: str
    state: str
    objective: str | None
    candidates: tuple[str, ...]
    results: int
    open: int
    waiting: int
    overdue: int
    late: int
    failed: int
    expired: int
    released: int
    interrupted: int
    handed_out: int
    budget: int | None
    waiting_for: tuple[str, ...]
    reason: str
    at_most: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {**asdict(self), "candidates": list(self.candidates), "waiting_for": list(self.waiting_for)}


LISTS = ("candidates", "flags", "certificate")


# --- the answer


def answer_of(fold: Fold) -> Answer:
    """The answer on record, or what would be answered now; what strains it is computed on reading."""
    answer = plain_answer(fold)
    return _strained(fold, answer) if fold.policy.finished else answer


def plain_answer(fold: Fold) -> Answer:
    """The same without what strains it, which takes a while to see."""
    ledger = fold.ledger
    if ledger.end is None:
        return _answer_now(fold)
    return Answer.from_json(ledger.end)


def recorded(fold: Fold) -> dict[str, Any]:
    """The payload of "finished"."""
    return _answer_now(fold).as_json()


def _answer_now(fold: Fold) -> Answer:
    policy, names = fold.policy, fold.ledger.arm_names
    details = _flags(fold)
    certified = bool(policy.finished and policy.certified and not set(details) & WITHOUT)
    answer = Answer(
        arm=names[policy.recommendation],
        certified=certified,
        delta=fold.ledger.spec.delta,
        candidates=tuple(names[index] for index in policy.candidates),
        reason="",
        flags=tuple(details),
        certificate=certificate_of(fold) if policy.finished else (),
        details=details,
        results=sum(fold.ledger.measured),
        **_of_list(fold, certified),
    )
    answer = replace(answer, decision=_decision(answer, fold.ledger))
    return replace(answer, reason=_reason(fold, answer))


def _decision(answer: Answer, ledger: Ledger) -> str | None:
    """Whether to switch: what the certificate says of the current arm ends where the answer is ahead."""
    baseline = ledger.spec.baseline
    if baseline is None or baseline in ledger.withdrawn:
        return None
    if answer.certified and answer.arm == baseline:
        return "keep"
    rows = [row for row in answer.certificate if row["rival"] == baseline]
    from lexbandits.policies.tol.proof import ENDS  # numba is slow to import, and who asks has a policy

    ahead = any(row["verdict"] in ENDS and row["by"] is None for row in rows)
    return "switch" if answer.certified and ahead else "keep for now"


def _of_list(fold: Fold, certified: bool) -> dict[str, Any]:
    """What an answer is about, where that is a list."""
    ledger = fold.ledger
    if not ledger.spec.is_list:
        return {}
    words = {"about": "items", "items": len(ledger.spec.ids), "full": int(ledger.passes) * len(ledger.arms)}
    return {**words, "certain": certified and fold.list_policy.certain}


def _strained(fold: Fold, answer: Answer) -> Answer:
    """The answer, flagged if what happened strains what it assumes."""
    strains = [strain.as_json() for strain in strains_of(fold) if strain.level == "strained"]
    if not strains:
        return answer
    details = {**answer.details, "strained": {"strains": strains}}
    flagged = replace(answer, flags=tuple(details), details=details)
    return replace(flagged, reason=certified_reason(flagged)) if answer.certified else flagged


def ended(fold: Fold, reason: str) -> dict[str, Any]:
    """The payload of an end by hand: the best guess, without a certificate."""
    words = _answer_now(fold).as_json()
    words |= {"decision": "keep for now"} if "decision" in words else {}
    return {**words, "certified": False, "reason": f"ended by hand: {reason}", "certificate": []}


def _flags(fold: Fold) -> dict[str, dict[str, Any]]:
    """What a reader of the answer must know besides: flag -> its fields."""
    policy, ledger = fold.policy, fold.ledger
    named = {column: ledger.spec.names[column] for column in ledger.order}
    flags: dict[str, dict[str, Any]] = {}
    if policy.large_sample:
        kinds = {column: ledger.spec.objectives[column].noise for column in named}
        flags["large-sample"] = {
            "objectives": [named[i] for i, kind in kinds.items() if kind == "finite_variance"]
        }
    if policy.repeated:
        flags["repeated values"] = {"objectives": [named[i] for i in ledger.order if i in policy.repeated]}
    if ledger.unfair:
        flags["imported unfairly"] = {}
    if policy.contradiction:
        flags["contradiction"] = {}
    if policy.infeasible:
        flags["infeasible"] = {
            "objectives": [unmet(fold, column, arms) for column, arms in policy.infeasible],
            "stopped": ledger.spec.if_infeasible == "stop",
        }
    near = [column for column, flag in policy.flags.items() if flag == "not_clearly_feasible"]
    if near and policy.finished:
        flags["not_clearly_feasible"] = {
            "objectives": [unmet(fold, column, policy.candidates) for column in near]
        }
    if ledger.spec.is_list and not policy.finished and fold.state == "items spent":
        flags["missing results decide"] = {"missing": len(ledger.holes), "study": ledger.spec.name}
    if ledger.given_up:
        arms = [{"arm": name, **words} for name, words in ledger.given_up.items()]
        flags["arm given up"] = {"arms": arms, "left": len(ledger.offered)}
    if ledger.changes:
        first, last = ledger.changes[0], ledger.changes[-MOST_CHANGES:]
        flags["rules changed"] = {"count": len(ledger.changes), "first": first["at"], "changes": last}
    return flags


def unmet(fold: Fold, column: int, arms: Sequence[int]) -> dict[str, Any]:
    """A limit that none of the arms that got as far meets, or none clearly."""
    objective, ledger = fold.ledger.spec.objectives[column], fold.ledger
    return {
        "objective": objective.name,
        "side": "at most" if objective.at_most is not None else "at least",
        "limit": objective.limit,
        "slack": objective.slack_in_unit,
        "unit": objective.unit_of_mean,
        "arms": [ledger.arm_names[arm] for arm in arms],
        "all": len(arms) == len(ledger.offered),
    }


# --- its words


def _reason(fold: Fold, answer: Answer) -> str:
    policy, ledger = fold.policy, fold.ledger
    if answer.certified and len(ledger.offered) == 1 and ledger.withdrawn and not ledger.given_up:
        others = "; ".join(f"{name!r} was withdrawn: {why}" for name, why in ledger.withdrawn.items())
        return f"the only arm left; {others}"
    if answer.certified:
        return certified_reason(answer)
    if policy.finished:
        return f"finished without a certificate: {'; '.join(flags_said(answer)) or 'nothing to compare'}"
    state = fold.state
    left = len(policy.candidates)
    missing = f"{left} candidate{'s' if left != 1 else ''} left"
    if (objective := settling(fold)) is not None:
        missing += f", {objective!r} is not settled"
    if state == "measuring":
        return f"a best guess while measuring: {missing}"
    if "missing results decide" in answer.flags:
        return f"no certificate: {'; '.join(flags_said(answer))}"
    return f"a best guess, {state}: {missing}"


def certificate_of(fold: Fold, seen: Iterable[Any] | None = None) -> tuple[dict[str, Any], ...]:
    """The best guess against each rival, objective by objective until one decides: what was seen so far."""
    ledger = fold.ledger
    rows = []
    for row in fold.policy.certificate if seen is None else seen:
        objective = ledger.spec.objectives[row.objective]
        ends = sorted((objective.sign * float(row.low), objective.sign * float(row.high)))
        rows.append(
            {
                "rival": ledger.arm_names[row.rival],
                "objective": objective.name,
                "difference": plain(objective.sign * float(row.difference)),
                "low": plain(ends[0]),
                "high": plain(ends[1]),
                "results": int(row.results),
                "verdict": row.verdict,
                "by": ledger.arm_names[row.by] if row.by >= 0 else None,
                "parts": plain(row.parts),
                "certain": bool(row.certain),
            }
        )
    return tuple(rows)


# --- the status


def settling(fold: Fold) -> str | None:
    """The objective being settled; None when there is an answer."""
    if fold.ledger.end is not None or fold.policy.finished:
        return None
    column, names = fold.policy.objective, fold.ledger.spec.names
    return names[column] if 0 <= column < len(names) else None


def status_of(fold: Fold, now: float, leases: dict[int, float]) -> Status:
    """Where the study stands at a time of the storage's clock."""
    ledger, policy = fold.ledger, fold.policy
    waiting = fold.told_waiting()
    untils = (leases.get(number, until) for number, until in ledger.open.items())
    return Status(
        name=ledger.spec.name,
        state=fold.state,
        objective=settling(fold),
        candidates=tuple(ledger.arm_names[index] for index in policy.candidates),
        results=sum(ledger.measured),
        open=len(ledger.open),
        waiting=len(waiting),
        overdue=sum(until <= now for until in untils),
        late=ledger.counts[LATE],
        failed=ledger.counts[FAILED],
        expired=ledger.counts[EXPIRED],
        released=ledger.counts[RELEASED],
        interrupted=sum(ledger.interrupted),
        handed_out=ledger.handed_out,
        budget=ledger.budget,
        waiting_for=tuple(ledger.id_of(number) for number in fold.holding_back(waiting)),
        reason=ledger.paused or ("" if ledger.end is None else ledger.end["reason"]),
        at_most=fold.list_policy.at_most if ledger.spec.is_list else None,
    )


# --- tables


def frame_of_trials(columns: dict[str, Any]) -> "pd.DataFrame":
    """One row per trial, with the values as told in every state, late ones too."""
    pandas = need("pandas", "trials()")
    if any(isinstance(item, str) for item in columns["item"]):  # names of files, which may be no UTF-8
        columns["item"] = pandas.Series(columns["item"], dtype=object)
    for name in ("asked", "resolved"):
        columns[name] = pandas.to_datetime(columns[name], unit="s", utc=True)
    frame: pd.DataFrame = pandas.DataFrame(columns)
    return frame


def trial_columns(fold: Fold) -> dict[str, Any]:
    """The columns of that table; times in seconds."""
    ledger = fold.ledger
    passes = ledger.column("pass_of")
    workers = np.array([*ledger.workers, None], dtype=object)
    columns: dict[str, Any] = {
        "number": np.arange(len(ledger)),
        "id": [ledger.id_of(number) for number in range(len(ledger))],
        "arm": np.array(ledger.arm_names, dtype=object)[ledger.column("arm")],
        "item": [ledger.item_id(pass_) for pass_ in passes.tolist()],
        "state": np.array(STATES, dtype=object)[ledger.column("state")],
        "worker": workers[ledger.column("worker")],
        "asked": ledger.column("asked"),
        "resolved": ledger.column("resolved"),
    }
    values = ledger.column("values")
    columns |= {name: values[:, i] for i, name in enumerate(ledger.spec.names)}
    late = {n: part for n, part in ledger.parts.items() if ledger.state[n] == LATE}
    if late:
        in_time = {
            n: [name for name, v in zip(ledger.spec.names, part, strict=True) if v == v]
            for n, part in late.items()
        }
        told = [json.dumps(in_time[n]) if n in in_time else "" for n in range(len(ledger))]
        columns[in_time_column(ledger.spec.names)] = told
    return columns


def result_rows(fold: Fold) -> list[dict[str, Any]]:
    """One row per arm and objective: what was measured, and where its mean lies at the study's confidence."""
    ledger, policy = fold.ledger, fold.policy
    still_open, failed = ledger.count_by_arm(OPEN), ledger.count_by_arm(FAILED)
    means, intervals, counts = policy.means, policy.intervals, policy.counts
    out = {elimination.arm for elimination in policy.eliminations}
    rows = []
    for index, arm in enumerate(ledger.arm_names):
        state = "withdrawn" if arm in ledger.withdrawn else "left" if index in out else "candidate"
        for column in ledger.order:
            objective = ledger.spec.objectives[column]
            low, high = sorted((objective.sign * intervals[index, column] + 0.0).tolist())
            rows.append(
                {
                    "arm": arm,
                    "objective": objective.name,
                    "unit": objective.unit_of_mean,
                    "state": state,
                    "results": int(counts[index, column]),
                    "mean": objective.sign * float(means[index, column]) + 0.0,
                    "low": low,
                    "high": high,
                    "open": still_open[index],
                    "failed": failed[index],
                }
            )
    return rows
