"""What a study says of itself: its answer, its status, its tables. In the words and units people gave."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lexbandits.study.fold import Fold
from lexbandits.study.ledger import EXPIRED, FAILED, LATE, OPEN, STATES, TOLD
from lexbandits.study.objective import Objective
from lexbandits.study.trial import TRIAL_COLUMNS

if TYPE_CHECKING:  # pandas is slow to import, and `tell` needs no table
    import pandas as pd


@dataclass(frozen=True)
class Answer:
    """Which arm, and how sure. While `certified` is False `arm` is a best guess.

    `certificate` holds one comparison of the answer per rival and objective that it rests on: difference
    (answer − rival, in the objective's unit), its interval at the study's confidence, and the verdict.
    """

    arm: str
    certified: bool
    delta: float
    candidates: tuple[str, ...]
    reason: str
    flags: tuple[str, ...] = ()
    certificate: tuple[dict[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        words = asdict(self)
        return {**words, **{key: list(words[key]) for key in ("candidates", "flags", "certificate")}}


@dataclass(frozen=True)
class Status:
    """Where a study stands. Counts are of trials; `waiting_for` are the ids that hold results back.

    `late` are results that never count: told after their time, or `void`, as the rules changed meanwhile.
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
    void: int
    handed_out: int
    budget: int | None
    waiting_for: tuple[str, ...]
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {**asdict(self), "candidates": list(self.candidates), "waiting_for": list(self.waiting_for)}


def trial_id(fold: Fold, number: int) -> str:
    """What a trial is told by: its number, and a nonce that a restored backup would draw anew."""
    return f"{number}-{fold.ledger.nonce[number]:08x}"


# --- the answer


def answer_of(fold: Fold) -> Answer:
    """The answer on record, or what would be answered now."""
    ledger = fold.ledger
    if ledger.end is not None:
        words = {key: ledger.end[key] for key in Answer.__dataclass_fields__}
        return Answer(
            **{**words, **{key: tuple(words[key]) for key in ("candidates", "flags", "certificate")}}
        )
    policy, names = fold.policy, ledger.arm_names
    flags = _flags(fold)
    certified = bool(policy.finished and policy.certified and not ledger.unfair)
    return Answer(
        arm=names[policy.recommendation],
        certified=certified,
        delta=ledger.spec.delta,
        candidates=tuple(names[index] for index in policy.candidates),
        reason=_reason(fold, certified, flags),
        flags=flags,
        certificate=certificate_of(fold) if policy.finished else (),
    )


def ended(fold: Fold, reason: str) -> dict[str, Any]:
    """The payload of an end by hand: the best guess, without a certificate."""
    words = answer_of(fold).as_json()
    return {**words, "certified": False, "reason": f"ended by hand: {reason}", "certificate": []}


def _flags(fold: Fold) -> tuple[str, ...]:
    policy = fold.policy
    flags = {
        "large-sample": policy.large_sample,
        "closest to the target": bool(policy.infeasible),
        "imported unfairly": fold.ledger.unfair,
        "contradiction": policy.contradiction,
    }
    return tuple(flag for flag, holds in flags.items() if holds)


def _reason(fold: Fold, certified: bool, flags: tuple[str, ...]) -> str:
    policy, ledger = fold.policy, fold.ledger
    if certified and len(ledger.offered) == 1 and ledger.withdrawn:
        others = "; ".join(f"{name!r} was withdrawn: {why}" for name, why in ledger.withdrawn.items())
        return f"the only arm left; {others}"
    if certified:
        return f"certain at the study's confidence of {1 - ledger.spec.delta:g}"
    if policy.finished and policy.infeasible:
        unmet = " and ".join(_unmet(ledger.spec.objectives[column]) for column, _ in policy.infeasible)
        stopped = ledger.spec.if_infeasible == "stop"
        how = "stopped there, as asked" if stopped else "the answer is the closest to the target"
        return f"finished without a certificate: {unmet}; {how}"
    if policy.finished:
        return f"finished without a certificate: {', '.join(flags) or 'nothing to compare'}"
    state = fold.state
    left = len(policy.candidates)
    missing = f"{left} candidate{'s' if left != 1 else ''} left"
    if (objective := settling(fold)) is not None:
        missing += f", {objective!r} is not settled"
    if state == "measuring":
        return f"a best guess while measuring: {missing}"
    return f"a best guess, {state}: {missing}"


def _unmet(objective: Objective) -> str:
    bound = "at least" if objective.at_least is not None else "at most"
    unit = f" {objective.unit}" if objective.unit else ""
    return f"no arm has {objective.name} of {bound} {objective.target:g}{unit}"


def certificate_of(fold: Fold) -> tuple[dict[str, Any], ...]:
    """The best guess against each rival, objective by objective until one decides: what was seen so far."""
    ledger = fold.ledger
    rows = []
    for row in fold.policy.certificate:
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
                "verdict": _verdict(fold, row.verdict),
            }
        )
    return tuple(rows)


def _verdict(fold: Fold, verdict: str) -> str:
    before, by, index = verdict.partition("beaten by ")
    return f"{before}{by}{fold.ledger.arm_names[int(index)]!r}" if by else verdict


def plain(number: float) -> float | None:
    """JSON has neither nan nor infinity."""
    return float(number) + 0.0 if math.isfinite(number) else None  # + 0.0: no negative zeros


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
    told = ledger.told_from(policy.folded) if ledger.open else []
    void = fold.count_void()
    untils = (leases.get(number, until) for number, until in ledger.open.items())
    return Status(
        name=ledger.spec.name,
        state=fold.state,
        objective=settling(fold),
        candidates=tuple(ledger.arm_names[index] for index in policy.candidates),
        results=sum(ledger.measured) - void,
        open=len(ledger.open),
        waiting=sum(fold.waiting(told)),
        overdue=sum(until <= now for until in untils),
        late=ledger.counts[LATE] + void,
        failed=ledger.counts[FAILED],
        expired=ledger.counts[EXPIRED],
        void=void,
        handed_out=ledger.handed_out,
        budget=ledger.budget,
        waiting_for=tuple(trial_id(fold, number) for number in fold.holding_back(told)),
        reason=ledger.paused or ("" if ledger.end is None else ledger.end["reason"]),
    )


# --- tables


def trials_of(fold: Fold) -> "pd.DataFrame":
    """One row per trial, with the values as told in every state, late ones too."""
    import pandas as pd

    ledger = fold.ledger
    states, places = ledger.column("state"), ledger.column("place")
    names = np.array([*STATES, "void"], dtype=object)
    shown = np.where(fold.void(places) & (states == TOLD), len(STATES), states)
    workers = np.array([*ledger.workers, None], dtype=object)
    items = [ledger.item(place) for place in places.tolist()]
    texts = any(isinstance(item, str) for item in items)  # such as names of files, which may be no UTF-8
    columns: dict[str, Any] = {
        "number": np.arange(len(ledger)),
        "id": [trial_id(fold, number) for number in range(len(ledger))],
        "arm": np.array(ledger.arm_names, dtype=object)[ledger.column("arm")],
        "item": pd.Series(items, dtype=object) if texts else items,
        "state": names[shown],
        "worker": workers[ledger.column("worker")],
        "asked": pd.to_datetime(ledger.column("asked"), unit="s", utc=True),
        "resolved": pd.to_datetime(ledger.column("resolved"), unit="s", utc=True),
    }
    values = ledger.column("values")
    columns |= {name: values[:, i] for i, name in enumerate(ledger.spec.names)}
    return pd.DataFrame(columns, columns=[*TRIAL_COLUMNS, *ledger.spec.names])


def results_of(fold: Fold) -> "pd.DataFrame":
    """One row per arm and objective: what was measured, and where its mean lies at the study's confidence."""
    import pandas as pd

    ledger, policy = fold.ledger, fold.policy
    states, arms = ledger.column("state"), ledger.column("arm")
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
                    "unit": objective.unit,
                    "state": state,
                    "results": int(counts[index, column]),
                    "mean": objective.sign * float(means[index, column]) + 0.0,
                    "low": low,
                    "high": high,
                    "open": int(((states == OPEN) & (arms == index)).sum()),
                    "failed": int(((states == FAILED) & (arms == index)).sum()),
                }
            )
    return pd.DataFrame(rows)
