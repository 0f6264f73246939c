"""What happened to a study that strains its assumptions, as codes and numbers; words are made elsewhere.

Losing results may depend on their values, and values may contradict their kind of noise: neither can be
ruled out by the proof, but both can be noticed.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.study.objective import Objective
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.trials import EXPIRED, FAILED, LATE, OPEN, RELEASED, TOLD

DOUBT = 0.001  # p-value below which values are said to contradict what was declared
UNEQUAL = 0.01  # p-value below which arms are said to lose results unequally
TABLES = 9_999  # random tables for the test of that
MANY = 0.1  # a share of what was handed out, lost by all arms alike, that is too large to be said nothing of
LONG_AFTER = 100  # trials after another arm on the same item: caught up, not in step
LEAST_TO_COMPARE = 20  # values on each side
FEW = 3  # more than that share, for whatever it is: a run that was stopped once

Fields = dict[str, Any]


@dataclass(frozen=True)
class Strain:
    """An assumption's `code` and what happened: `level` is "none", "slight", "strained" or "not needed".

    losses: failed, expired, late by arm · returned: released, interrupted by arm · retried: asked again, by
    arm, on a list · corrected: by arm · gaps: of one objective · drift: of one objective, on a list ·
    noise: of one objective, `finding` says what was found.
    """

    code: str
    level: str
    objective: str | None = None
    p: float | None = None  # of the test behind it, if there is one
    fields: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain."""
        named = {} if self.objective is None else {"objective": self.objective}
        return {"code": self.code, **named, **({} if self.p is None else {"p": self.p}), **self.fields}


def strains_of(fold: Fold) -> tuple[Strain, ...]:
    """What was lost and what was measured, against what was assumed; made once per state of the journal."""
    known = fold.memory.get("strains")
    if known is None or known[0] != fold.ledger.seq:
        columns = fold.ledger.order
        found = (
            _losses(fold),
            _returned(fold),
            *((_retried(fold),) if fold.ledger.spec.is_list else ()),
            *((_corrected(fold),) if fold.ledger.spec.is_list and fold.ledger.first_told else ()),
            *(gap for column in columns if (gap := _gaps(fold, column)) is not None),
            *(_drifts(fold) if fold.ledger.spec.is_list else ()),
            *(_noise(fold, column) for column in columns),
        )
        known = fold.memory["strains"] = fold.ledger.seq, found
    strains: tuple[Strain, ...] = known[1]
    return strains


# --- what was lost


def unequal(lost: list[int], handed_out: list[int]) -> float:
    """The p-value of "all arms lose results equally often": exact but for the number of random tables."""
    kept = [all_ - gone for all_, gone in zip(handed_out, lost, strict=True)]
    if sum(lost) == 0 or sum(kept) == 0 or len(lost) < 2:
        return 1.0
    from scipy.stats import random_table

    table = np.array([lost, kept], float)
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    expected[expected == 0] = 1.0

    def distance(tables: Vector) -> Vector:
        return np.asarray(((tables - expected) ** 2 / expected).sum(axis=(-2, -1)))

    drawn = random_table(table.sum(1), table.sum(0)).rvs(TABLES, random_state=np.random.default_rng(0))
    as_far = int((distance(drawn) >= distance(table) * (1 - 1e-9)).sum())
    return (1 + as_far) / (1 + TABLES)


def _named(fold: Fold, counts: Iterable[int]) -> dict[str, int]:
    return {name: n for name, n in zip(fold.ledger.arm_names, counts, strict=True) if n}


def _compared(fold: Fold, lost: list[int], of: list[int], unless: bool = False) -> tuple[str, float, Fields]:
    """The level, the p-value, and who loses the largest share if arms differ."""
    p = unequal(lost, of)
    worst = max(range(len(lost)), key=lambda arm: lost[arm] / max(of[arm], 1))
    is_strained = p < UNEQUAL or sum(lost) > MANY * sum(of) + FEW  # arms may lose alike, and by value
    fields = {
        "lost": sum(lost),
        "of": sum(of),
        "worst": fold.ledger.arm_names[worst] if p < UNEQUAL else None,
    }
    return "strained" if is_strained and not unless else "slight", p, fields


def _losses(fold: Fold) -> Strain:
    ledger = fold.ledger
    failed = [f - i for f, i in zip(ledger.count_by_arm(FAILED), ledger.interrupted, strict=True)]
    lost = {
        "failed": failed,
        "expired": ledger.count_by_arm(EXPIRED),
        "late": ledger.count_by_arm(LATE),
    }
    all_lost = [sum(counts) for counts in zip(*lost.values(), strict=True)]
    before, of = zip(*(ledger.lost_before.get(name, (0, 0)) for name in ledger.arm_names), strict=True)
    if not any(all_lost) and not any(before):
        return Strain("losses", "none")
    given = zip(_handed_out(fold), ledger.interrupted, of, strict=True)
    handed_out = [n - broken + imported for n, broken, imported in given]
    noisy = [o for o in ledger.spec.objectives if o.noise != "exact"]
    instead = {word: [o.name for o in noisy if _counts_when_lost(o, word)] for word in lost}
    bare = [counts for word, counts in lost.items() if len(instead[word]) < len(noisy)]
    without = [sum(counts) for counts in zip(*bare, strict=True)] or [0] * len(all_lost)
    named = zip(ledger.arm_names, without, strict=True)
    counted = [0 if name in ledger.given_up else n for name, n in named]  # who was given up has a flag
    if not all(o.if_missing == "worst" for o in noisy):
        counted = [n + b for n, b in zip(counted, before, strict=True)]
    level, p, fields = _compared(fold, counted, handed_out)
    fields |= {word: _named(fold, counts) for word, counts in lost.items()}
    fields |= {"imported": _named(fold, before)} if any(before) else {}
    covered = dict.fromkeys(name for word, names in instead.items() if any(lost[word]) for name in names)
    if ledger.spec.is_list and all(o.is_bounded or o.noise == "exact" for o in noisy):
        level = "slight"  # a hole counts at its worst, whyever it is there
    return Strain("losses", level, p=p, fields={**fields, "instead": list(covered)})


def _handed_out(fold: Fold) -> list[int]:
    """Trials by arm that were not given back."""
    return fold.ledger.count_by_arm(OPEN, TOLD, FAILED, EXPIRED, LATE)


def _counts_when_lost(objective: Objective, how: str) -> bool:
    """Whether a result of it that failed, expired or came late has a value, or counts at its worst."""
    agreed = objective.if_failed if how == "failed" else objective.if_expired
    return agreed is not None or objective.if_missing == "worst"


def _returned(fold: Fold) -> Strain:
    """What was given back, or begun and broken off: who does that may have seen what it would give."""
    ledger = fold.ledger
    released = ledger.count_by_arm(RELEASED)
    both = [r + i for r, i in zip(released, ledger.interrupted, strict=True)]
    if not any(both):
        return Strain("returned", "none")
    of = [n + back for n, back in zip(_handed_out(fold), released, strict=True)]
    level, p, fields = _compared(fold, both, of)
    fields |= {"released": _named(fold, released), "interrupted": _named(fold, ledger.interrupted)}
    return Strain("returned", level, p=p, fields=fields)


def _retried(fold: Fold) -> Strain:
    """Places of a list that were asked again: who does that may have seen what was there."""
    retries = fold.ledger.retries
    return _touched(fold, "retried", retries) if retries else Strain("retried", "none")


def _corrected(fold: Fold) -> Strain:
    """Results that were told anew: who does that has seen what was there."""
    return _touched(fold, "corrected", fold.ledger.first_told)


def _touched(fold: Fold, code: str, trials: Iterable[int]) -> Strain:
    by_arm = Counter(fold.ledger.arm[number] for number in trials)
    again = [by_arm[arm] for arm in range(len(fold.ledger.arms))]
    level, p, fields = _compared(fold, again, _handed_out(fold))
    return Strain(code, level, p=p, fields={**fields, "again": _named(fold, again)})


def _gaps(fold: Fold, column: int) -> Strain | None:
    """Results that left out an objective."""
    ledger, objective = fold.ledger, fold.ledger.spec.objectives[column]
    there = [ledger.counted_values(arm, column).size for arm in range(len(ledger.arms))]
    lost = [max(told - n, 0) for told, n in zip(ledger.measured, there, strict=True)]
    if not sum(lost) or objective.noise == "exact":
        return None
    covered = objective.if_missing == "worst" or (ledger.spec.is_list and objective.is_bounded)
    level, p, fields = _compared(fold, lost, ledger.measured, unless=covered)
    return Strain("gaps", level, objective.name, p, {**fields, "missing": _named(fold, lost)})


# --- values that depend on when they are asked


def _drifts(fold: Fold) -> list[Strain]:
    """On a list arms catch up later: was what they gave then as it was in step, relative to another arm?"""
    ledger = fold.ledger
    noisy = [column for column in ledger.order if ledger.spec.objectives[column].noise != "exact"]
    told = np.flatnonzero(ledger.column("state") == TOLD)
    arms, positions = ledger.column("arm")[told], ledger.column("pass_of")[told]
    turns = np.full((len(ledger.arms), int(ledger.passes)), np.inf)
    turns[arms, positions] = told  # trials are numbered as they are asked
    with np.errstate(invalid="ignore"):  # places that nobody has measured
        lag = turns - turns.min(axis=0)
    later, in_step = (lag > LONG_AFTER) & np.isfinite(lag), lag <= LONG_AFTER
    found = []
    for column in noisy:
        values = np.full(turns.shape, np.nan)
        values[arms, positions] = ledger.spec.cut(ledger.column("values")[told])[:, column]
        found.append(_drift(fold, column, values, in_step, later, len(noisy)))
    return found


def _drift(fold: Fold, column: int, values: Vector, in_step: Any, later: Any, tests: int) -> Strain:
    name, there = fold.ledger.spec.objectives[column].name, ~np.isnan(values)
    best: tuple[float, Fields] | None = None
    for arm in range(len(values)):
        sides = [rows[arm] & there[arm] & there & in_step for rows in (in_step, later)]  # by the other arm
        sizes = np.minimum(*(side.sum(axis=1) for side in sides))
        sizes[arm] = 0
        other = int(sizes.argmax())
        if sizes[other] < LEAST_TO_COMPARE:
            continue
        from scipy.stats import mannwhitneyu  # slow to import

        apart = [(values[arm] - values[other])[side[other]] for side in sides]
        p = float(mannwhitneyu(*apart).pvalue) if np.ptp(np.concatenate(apart)) > 0 else 1.0
        fields = {"worst": fold.ledger.arm_names[arm], "in step": apart[0].size, "later": apart[1].size}
        if best is None or p < best[0]:
            best = p, fields
    if best is None:
        return Strain("drift", "none", name, fields={"finding": "in step"})
    p = min(1.0, best[0] * tests * len(values))
    level = "strained" if p < DOUBT else "none"
    return Strain("drift", level, name, p, {"finding": "caught up", **best[1]})


# --- noise


def _noise(fold: Fold, column: int) -> Strain:
    ledger, objective = fold.ledger, fold.ledger.spec.objectives[column]
    arms = range(len(ledger.arms))
    values = [v for arm in arms if (v := ledger.counted_values(arm, column)).size]
    if not values:
        return Strain("noise", "not needed", objective.name, fields={"finding": "never measured"})
    word = objective.noise if isinstance(objective.noise, str) else objective.noise[0]
    level, p, fields = CHECKS[word](fold, column, values)
    if not _has_decided(fold, column):
        level = "not needed"
    return Strain("noise", level, objective.name, p, fields)


def _has_decided(fold: Fold, column: int) -> bool:
    """Whether anything rests on an objective, or is about to."""
    policy, order = fold.policy, fold.ledger.order
    if column == policy.objective or fold.ledger.spec.objectives[column].limit is not None:
        return True
    if any(left.objective == column for left in policy.eliminations):
        return True
    if policy.finished:
        return any(row.objective == column and row.verdict != "open" for row in policy.certificate)
    return policy.objective not in order or order.index(column) < order.index(policy.objective)


Found = tuple[str, float | None, dict[str, Any]]
Check = Callable[[Fold, int, list[Vector]], Found]


def _bounded(fold: Fold, column: int, values: list[Vector]) -> Found:
    objective, everything = fold.ledger.spec.objectives[column], np.concatenate(values)
    low, high = objective.bounds
    at_end = int(((everything == low) | (everything == high)).sum())
    fields = {"lowest": float(everything.min()), "highest": float(everything.max())}
    if objective.noise != "bernoulli" and not objective.is_cut and 0 < at_end < everything.size:
        return "slight", None, {"finding": "on a bound", "values": at_end, **fields}
    return "none", None, {"finding": "inside", **fields}


def _gaussian(fold: Fold, column: int, values: list[Vector]) -> Found:
    if column in fold.policy.repeating:
        return "strained", 0.0, {"finding": "repeats"}
    long = [v for v in values if v.size >= 30 and np.ptp(v) > 0]
    if not long:
        return "none", None, {"finding": "too few"}
    from scipy.stats import jarque_bera, kurtosis, levene, skew

    p = min(1.0, len(long) * min(float(jarque_bera(v).pvalue) for v in long))
    halves = [float(levene(v[: v.size // 2], v[v.size // 2 :]).pvalue) for v in long]
    p_drift = min(1.0, len(long) * min(halves))
    if p_drift < DOUBT:
        return "strained", p_drift, {"finding": "spread changed"}
    if p >= DOUBT:
        return "none", p, {"finding": "looks it"}
    shape = max(max(abs(float(skew(v))), float(kurtosis(v)) / 3) for v in long)
    return ("slight" if shape < 1 else "strained"), p, {"finding": "does not look it", "shape": shape}


def _sub_gaussian(fold: Fold, column: int, values: list[Vector]) -> Found:
    from scipy.special import chdtrc

    declared = float(fold.ledger.spec.objectives[column].noise[1])
    widest = max(values, key=lambda v: float(np.std(v)))
    free = max(widest.size - 1, 1)
    p = min(1.0, len(values) * float(chdtrc(free, widest.size * np.var(widest) / declared**2)))
    fields = {"finding": "spread", "sd": float(np.std(widest)), "declared": declared}
    return "strained" if p < DOUBT else "none", p, fields


def _finite_variance(fold: Fold, column: int, values: list[Vector]) -> Found:
    shares = [float(((v - v.mean()) ** 2).max() / max(v.size * np.var(v), math.ulp(0.0))) for v in values]
    level = "strained" if max(shares) >= 0.25 else "slight"
    return level, None, {"finding": "approximate", "share": max(shares)}


def _exact(fold: Fold, column: int, values: list[Vector]) -> Found:
    return "none", None, {"finding": "one value each"}


CHECKS: dict[str, Check] = {
    "gaussian": _gaussian,
    "sub_gaussian": _sub_gaussian,
    "finite_variance": _finite_variance,
    "exact": _exact,
    "bounded": _bounded,
    "bernoulli": _bounded,
}
