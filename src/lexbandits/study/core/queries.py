"""What a study says of itself: its answer, its status, its tables. In the words and units people gave."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lexbandits._extras import need
from lexbandits._printable import plain
from lexbandits._validation import IfInfeasible
from lexbandits.outcomes import BaselineDecision, Flag, Scope
from lexbandits.study.core.diagnostics import cannot_be_symmetric, diagnostics_of
from lexbandits.study.core.messages import certified_reason, flag_messages
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, LATE, OPEN, RELEASED, STATES
from lexbandits.study.states import Severity, StudyState
from lexbandits.study.trial import in_time_column

if TYPE_CHECKING:  # pandas is slow to import, and `tell` needs no table
    import pandas as pd

WITHOUT = {  # flags that take the certificate away
    Flag.ASYMPTOTIC,
    Flag.BIASED_IMPORT,
    Flag.REPEATED_VALUES,
    Flag.CONTRADICTION,
}
MOST_CHANGES = 20  # of the rules that an answer names one by one, the last ones


@dataclass(frozen=True)
class Answer:
    """Which arm, and whether it is certified. While `certified` is False `arm` is a best guess.

    `certificate` holds one comparison of the answer per rival and objective that it rests on. Each has the
    difference (answer − rival, in the objective's unit) and its interval at the study's confidence, which is
    a statement of its own. It has the verdict, `by` whom a rival is "beaten", and `parts`, the share of the
    evidence. `exact` is arithmetic, without sampling error; so is all of an `exact` answer.

    `scope` says whether the answer is about the "items" of a list, so many `items`, or the "population".
    `results` are those it rests on, of `full`, all that a list could give. With a baseline `decision` says
    whether to switch. `flags` name what a reader must know besides, and `details` has the fields of each.
    `WITHOUT` lists those that take the certificate away. `digest` is that of all events before the end: keep
    it, and `study.verify(digest)` can tell later whether the journal is still the one that gave this answer.
    """

    arm: str
    certified: bool
    delta: float
    candidates: tuple[str, ...]
    reason: str
    flags: tuple[Flag, ...] = ()
    certificate: tuple[dict[str, Any], ...] = ()
    details: dict[Flag, dict[str, Any]] = field(default_factory=dict)
    scope: Scope = Scope.POPULATION
    items: int | None = None
    results: int | None = None
    full: int | None = None
    exact: bool = False
    decision: BaselineDecision | None = None
    digest: str | None = field(default=None, compare=False)  # of equal answers it may be another

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        fields = asdict(self)
        if self.decision is None:
            del fields["decision"]
        return {**fields, **{key: list(fields[key]) for key in LISTS}}

    def __str__(self) -> str:
        from lexbandits.views.answer_text import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        from lexbandits.report.notebook import of_answer

        return of_answer(self)

    @classmethod
    def from_json(cls, payload: Mapping[str, Any]) -> "Answer":
        """From the words of `as_json`, of a journal or of the service."""
        known = {key: payload[key] for key in cls.__dataclass_fields__ if key in payload}
        known |= {"scope": Scope(known.get("scope", Scope.POPULATION))}
        if known.get("decision") is not None:
            known["decision"] = BaselineDecision(known["decision"])
        lists = {key: tuple(payload[key]) for key in LISTS}
        details = {Flag(flag): fields for flag, fields in payload["details"].items()}
        return cls(**{**known, **lists, "flags": tuple(map(Flag, payload["flags"])), "details": details})


@dataclass(frozen=True)
class Status:
    """Where a study stands. Counts are of trials; `waiting_for` are the ids that hold results back.

    `late` are results that never count: told after their time. `released` were given back unmeasured; of the
    `failed`, `interrupted` were broken off.
    `at_most`: how many more results a list can take; None without one.
    """

    name: str
    state: StudyState
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


def answer_of(replay: Replay) -> Answer:
    """The answer on record, or what would be answered now; its diagnostics are computed on reading."""
    answer = plain_answer(replay)
    return _with_diagnostics(replay, answer) if replay.policy.finished else answer


def plain_answer(replay: Replay) -> Answer:
    """Return the same without diagnostics, which take a while."""
    projection = replay.projection
    if projection.end is None:
        return _answer_now(replay)
    return Answer.from_json(projection.end)


def recorded(replay: Replay) -> dict[str, Any]:
    """The payload of "finished"."""
    return _answer_now(replay).as_json()


def _answer_now(replay: Replay) -> Answer:
    policy, names = replay.policy, replay.projection.arm_names
    details = _flags(replay)
    certified = bool(policy.finished and policy.certified and not set(details) & WITHOUT)
    answer = Answer(
        arm=names[policy.recommendation],
        certified=certified,
        delta=replay.projection.spec.delta,
        candidates=tuple(names[index] for index in policy.candidates),
        reason="",
        flags=tuple(details),
        certificate=certificate_of(replay) if policy.finished else (),
        details=details,
        results=sum(replay.projection.measured),
        **_of_list(replay, certified),
    )
    answer = replace(answer, decision=_decision(answer, replay.projection))
    return replace(answer, reason=_reason(replay, answer))


def _decision(answer: Answer, projection: Projection) -> BaselineDecision | None:
    """Whether to switch: what the certificate says of the current arm ends where the answer is ahead."""
    baseline = projection.spec.baseline
    if baseline is None or baseline in projection.withdrawn:
        return None
    if answer.certified and answer.arm == baseline:
        return BaselineDecision.KEEP
    rows = [row for row in answer.certificate if row["rival"] == baseline]
    from lexbandits.policies.tolerance.stopping import (
        ENDS,  # numba is slow to import, and who asks has a policy
    )

    ahead = any(row["verdict"] in ENDS and row["by"] is None for row in rows)
    return BaselineDecision.SWITCH if answer.certified and ahead else BaselineDecision.KEEP_FOR_NOW


def _of_list(replay: Replay, certified: bool) -> dict[str, Any]:
    """What an answer is about, where that is a list."""
    projection = replay.projection
    if not projection.spec.is_list:
        return {}
    fields = {
        "scope": Scope.ITEMS,
        "items": len(projection.spec.ids),
        "full": int(projection.passes) * len(projection.arms),
    }
    return {**fields, "exact": certified and replay.list_policy.exact}


def _with_diagnostics(replay: Replay, answer: Answer) -> Answer:
    """Return the answer, flagged if a diagnostic warns."""
    diagnostics = [
        diagnostic.as_json()
        for diagnostic in diagnostics_of(replay)
        if diagnostic.severity == Severity.WARNING
    ]
    if not diagnostics:
        return answer
    details = {**answer.details, Flag.ASSUMPTION_WARNING: {"diagnostics": diagnostics}}
    flagged = replace(answer, flags=tuple(details), details=details)
    return replace(flagged, reason=certified_reason(flagged)) if answer.certified else flagged


def ended(replay: Replay, reason: str) -> dict[str, Any]:
    """The payload of an end by hand: the best guess, without a certificate."""
    fields = _answer_now(replay).as_json()
    fields |= {"decision": BaselineDecision.KEEP_FOR_NOW} if "decision" in fields else {}
    return {**fields, "certified": False, "reason": f"ended by hand: {reason}", "certificate": []}


def _flags(replay: Replay) -> dict[Flag, dict[str, Any]]:
    """What a reader of the answer must know besides: flag -> its fields."""
    policy, projection = replay.policy, replay.projection
    named = {column: projection.spec.names[column] for column in projection.order}
    flags: dict[Flag, dict[str, Any]] = {}
    if policy.asymptotic:
        kinds = {column: projection.spec.objectives[column].kind for column in named}
        flags[Flag.ASYMPTOTIC] = {
            "objectives": [named[i] for i, kind in kinds.items() if kind.traits.approximate]
        }
    repeated = {*policy.repeated, *(cannot_be_symmetric(replay) if policy.finished else ())}
    if repeated:
        flags[Flag.REPEATED_VALUES] = {"objectives": [named[i] for i in projection.order if i in repeated]}
    if projection.unfair:
        flags[Flag.BIASED_IMPORT] = {}
    if policy.contradiction:
        flags[Flag.CONTRADICTION] = {}
    if policy.infeasible:
        flags[Flag.INFEASIBLE] = {
            "objectives": [unmet(replay, column, arms) for column, arms in policy.infeasible],
            "stopped": projection.spec.if_infeasible == IfInfeasible.STOP,
        }
    near = [column for column, flag in policy.flags.items() if flag == Flag.NOT_CLEARLY_FEASIBLE]
    if near and policy.finished:
        flags[Flag.NOT_CLEARLY_FEASIBLE] = {
            "objectives": [unmet(replay, column, policy.candidates) for column in near]
        }
    if projection.spec.is_list and not policy.finished and replay.state == StudyState.ITEMS_SPENT:
        flags[Flag.UNDETERMINED_MISSING] = {"missing": len(projection.holes), "study": projection.spec.name}
    if projection.given_up:
        arms = [{"arm": name, **fields} for name, fields in projection.given_up.items()]
        flags[Flag.ARM_EXCLUDED] = {"arms": arms, "left": len(projection.offered)}
    if projection.changes:
        first, last = projection.changes[0], projection.changes[-MOST_CHANGES:]
        flags[Flag.RULES_CHANGED] = {"count": len(projection.changes), "first": first["at"], "changes": last}
    return flags


def unmet(replay: Replay, column: int, arms: Sequence[int]) -> dict[str, Any]:
    """A limit that none of the arms that got as far meets, or none clearly."""
    objective, projection = replay.projection.spec.objectives[column], replay.projection
    return {
        "objective": objective.name,
        "side": "at most" if objective.at_most is not None else "at least",
        "limit": objective.limit,
        "slack": objective.slack_in_unit,
        "unit": objective.unit_of_mean,
        "arms": [projection.arm_names[arm] for arm in arms],
        "all": len(arms) == len(projection.offered),
    }


# --- its words


def _reason(replay: Replay, answer: Answer) -> str:
    policy, projection = replay.policy, replay.projection
    if answer.certified and len(projection.offered) == 1 and projection.withdrawn and not projection.given_up:
        others = "; ".join(f"{name!r} was withdrawn: {why}" for name, why in projection.withdrawn.items())
        return f"the only arm left; {others}"
    if answer.certified:
        return certified_reason(answer)
    if policy.finished:
        return "; ".join(flag_messages(answer)) or "nothing to compare"
    state = replay.state
    left = len(policy.candidates)
    missing = f"{left} candidate{'s' if left != 1 else ''} left"
    if (objective := settling(replay)) is not None:
        missing += f", {objective!r} is not settled"
    if state == StudyState.MEASURING:
        return f"still measuring: {missing}"
    if Flag.UNDETERMINED_MISSING in answer.flags:
        return "; ".join(flag_messages(answer))
    return f"{state.label}: {missing}"


def certificate_of(replay: Replay, seen: Iterable[Any] | None = None) -> tuple[dict[str, Any], ...]:
    """The best guess against each rival, objective by objective until one decides: what was seen so far."""
    projection = replay.projection
    rows = []
    for row in replay.policy.certificate if seen is None else seen:
        objective = projection.spec.objectives[row.objective]
        ends = sorted((objective.sign * float(row.low), objective.sign * float(row.high)))
        rows.append(
            {
                "rival": projection.arm_names[row.rival],
                "objective": objective.name,
                "difference": plain(objective.sign * float(row.difference)),
                "low": plain(ends[0]),
                "high": plain(ends[1]),
                "results": int(row.results),
                "verdict": str(row.verdict),
                "by": projection.arm_names[row.by] if row.by >= 0 else None,
                "parts": plain(row.parts),
                "exact": bool(row.exact),
            }
        )
    return tuple(rows)


# --- the status


def settling(replay: Replay) -> str | None:
    """The objective being settled; None when there is an answer."""
    if replay.projection.end is not None or replay.policy.finished:
        return None
    column, names = replay.policy.objective, replay.projection.spec.names
    return names[column] if 0 <= column < len(names) else None


def status_of(replay: Replay, now: float, leases: dict[int, float]) -> Status:
    """Where the study stands at a time of the storage's clock."""
    projection, policy = replay.projection, replay.policy
    waiting = replay.told_waiting()
    untils = (leases.get(number, until) for number, until in projection.open.items())
    return Status(
        name=projection.spec.name,
        state=replay.state,
        objective=settling(replay),
        candidates=tuple(projection.arm_names[index] for index in policy.candidates),
        results=sum(projection.measured),
        open=len(projection.open),
        waiting=len(waiting),
        overdue=sum(until <= now for until in untils),
        late=projection.counts[LATE],
        failed=projection.counts[FAILED],
        expired=projection.counts[EXPIRED],
        released=projection.counts[RELEASED],
        interrupted=sum(projection.interrupted),
        handed_out=projection.handed_out,
        budget=projection.budget,
        waiting_for=tuple(projection.id_of(number) for number in replay.holding_back(waiting)),
        reason=projection.paused or ("" if projection.end is None else projection.end["reason"]),
        at_most=replay.list_policy.at_most if projection.spec.is_list else None,
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


def trial_columns(replay: Replay) -> dict[str, Any]:
    """The columns of that table; times in seconds."""
    projection = replay.projection
    passes = projection.column("pass_of")
    workers = np.array([*projection.workers, None], dtype=object)
    columns: dict[str, Any] = {
        "number": np.arange(len(projection)),
        "id": [projection.id_of(number) for number in range(len(projection))],
        "arm": np.array(projection.arm_names, dtype=object)[projection.column("arm")],
        "item": [projection.item_id(pass_) for pass_ in passes.tolist()],
        "state": np.array([str(state) for state in STATES], dtype=object)[projection.column("state")],
        "worker": workers[projection.column("worker")],
        "asked": projection.column("asked"),
        "resolved": projection.column("resolved"),
    }
    values = projection.column("values")
    columns |= {name: values[:, i] for i, name in enumerate(projection.spec.names)}
    late = {n: part for n, part in projection.parts.items() if projection.state[n] == LATE}
    if late:
        in_time = {
            n: [name for name, v in zip(projection.spec.names, part, strict=True) if v == v]
            for n, part in late.items()
        }
        told = [json.dumps(in_time[n]) if n in in_time else "" for n in range(len(projection))]
        columns[in_time_column(projection.spec.names)] = told
    return columns


def result_rows(replay: Replay) -> list[dict[str, Any]]:
    """One row per arm and objective: what was measured, and where its mean lies at the study's confidence."""
    projection, policy = replay.projection, replay.policy
    still_open, failed = projection.count_by_arm(OPEN), projection.count_by_arm(FAILED)
    means, intervals, counts = policy.means, policy.intervals, policy.counts
    out = {elimination.arm for elimination in policy.eliminations}
    rows = []
    for index, arm in enumerate(projection.arm_names):
        state = "withdrawn" if arm in projection.withdrawn else "left" if index in out else "candidate"
        for column in projection.order:
            objective = projection.spec.objectives[column]
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
