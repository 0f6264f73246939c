"""Diagnostics: what contradicts the assumptions of a study, as codes and numbers.

Results may be lost because of their values, and values may contradict the declared noise. The proof cannot
rule out either, but both can be noticed. views/diagnostic_text.py has the sentences.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lexbandits._arrays import Vector
from lexbandits._code import Code
from lexbandits.evidence.kinds import Missing, NoiseKind
from lexbandits.outcomes import ClaimVerdict
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, IMPORTED, LATE, OPEN, RELEASED, TOLD
from lexbandits.study.objective import Objective
from lexbandits.study.states import Severity

DOUBT = 0.001  # p-value below which values are said to contradict what was declared
UNEQUAL = 0.01  # p-value below which arms are said to lose results unequally, or differences to be skewed
TABLES = 9_999  # random tables for the test of that
MANY = 0.1  # a share of what was handed out, lost by all arms alike, that is too large to be said nothing of
HARDLY = 0.05  # a skewness over the root of the number of values that hardly moves a quantile
LONG_AFTER = 100  # trials after another arm on the same item: caught up, not in step
LEAST_TO_COMPARE = 20  # values on each side
FEW = 3  # more than that share, for whatever it is: a run that was stopped once

Fields = dict[str, Any]


class DiagnosticCode(Code):
    """The assumption that a diagnostic is about."""

    LOSSES = "losses"  # failed, expired or late results
    RETURNED = "returned"  # trials released or broken off
    RETRIED = "retried"  # places of a list that were asked again
    CORRECTED = "corrected"
    GAPS = "gaps"  # results that left out an objective
    DRIFT = "drift"  # values that depend on when they are measured, on a list
    NOISE = "noise"


class Finding(Code):
    """What was found about the values of one objective."""

    IN_STEP = "in_step"
    CAUGHT_UP = "caught_up"
    NEVER_MEASURED = "never_measured"
    ONE_VALUE_EACH = "one_value_each"
    INSIDE = "inside"
    ON_BOUND = "on_bound"
    REPEATS = "repeats"
    ONLY_BINARY = "only_binary"
    ASYMMETRIC = "asymmetric"
    TOO_FEW = "too_few"
    SPREAD_CHANGED = "spread_changed"
    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"
    SPREAD = "spread"
    APPROXIMATE = "approximate"


@dataclass(frozen=True)
class Diagnostic:
    """What was observed of one assumption.

    Gaps, drift and noise are about one objective; `fields` holds the counts by arm, and for drift and noise
    the `finding`.
    """

    code: DiagnosticCode
    severity: Severity
    objective: str | None = None
    p: float | None = None  # of the test behind it, if there is one
    fields: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return its code and numbers as plain JSON."""
        named = {} if self.objective is None else {"objective": self.objective}
        return {"code": self.code, **named, **({} if self.p is None else {"p": self.p}), **self.fields}


def diagnostics_of(replay: Replay) -> tuple[Diagnostic, ...]:
    """What was lost and what was measured, against what was assumed; made once per state of the journal."""
    known = replay.memory.get(diagnostics_of)
    if known is None or known[0] != replay.projection.seq:
        columns, is_list = replay.projection.order, replay.projection.spec.is_list
        found = [_losses(replay), _returned(replay)]
        if is_list:
            found.append(_touched(replay, DiagnosticCode.RETRIED, replay.projection.retries))
        if is_list and replay.projection.first_told:
            found.append(_touched(replay, DiagnosticCode.CORRECTED, replay.projection.first_told))
        found += [gap for column in columns if (gap := _gaps(replay, column)) is not None]
        found += _drifts(replay) if is_list else []
        found += [_noise(replay, column) for column in columns]
        known = replay.memory[diagnostics_of] = replay.projection.seq, tuple(found)
    diagnostics: tuple[Diagnostic, ...] = known[1]
    return diagnostics


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


def _named(replay: Replay, counts: Iterable[int]) -> dict[str, int]:
    return {name: n for name, n in zip(replay.projection.arm_names, counts, strict=True) if n}


def _compared(
    replay: Replay, lost: list[int], of: list[int], unless: bool = False
) -> tuple[Severity, float, Fields]:
    """The severity, the p-value, and who loses the largest share if arms differ."""
    p = unequal(lost, of)
    worst = max(range(len(lost)), key=lambda arm: lost[arm] / max(of[arm], 1))
    in_doubt = p < UNEQUAL or sum(lost) > MANY * sum(of) + FEW  # arms may lose alike, and by value
    fields = {
        "lost": sum(lost),
        "of": sum(of),
        "worst": replay.projection.arm_names[worst] if p < UNEQUAL else None,
    }
    return Severity.WARNING if in_doubt and not unless else Severity.NOTICE, p, fields


def _losses(replay: Replay) -> Diagnostic:
    projection = replay.projection
    failed = [f - i for f, i in zip(projection.count_by_arm(FAILED), projection.interrupted, strict=True)]
    lost = {
        "failed": failed,
        "expired": projection.count_by_arm(EXPIRED),
        "late": projection.count_by_arm(LATE),
    }
    all_lost = [sum(counts) for counts in zip(*lost.values(), strict=True)]
    before, of = zip(
        *(projection.lost_before.get(name, (0, 0)) for name in projection.arm_names), strict=True
    )
    if not any(all_lost) and not any(before):
        return Diagnostic(DiagnosticCode.LOSSES, Severity.OK)
    given = zip(_handed_out(replay), projection.interrupted, of, strict=True)
    handed_out = [n - broken + imported for n, broken, imported in given]
    noisy = [o for o in projection.spec.objectives if not o.is_exact]
    instead = {word: [o.name for o in noisy if _counts_when_lost(o, word)] for word in lost}
    bare = [counts for word, counts in lost.items() if len(instead[word]) < len(noisy)]
    without = [sum(counts) for counts in zip(*bare, strict=True)] or [0] * len(all_lost)
    named = zip(projection.arm_names, without, strict=True)
    counted = [0 if name in projection.given_up else n for name, n in named]  # who was given up has a flag
    if not all(o.if_missing == Missing.WORST for o in noisy):
        counted = [n + b for n, b in zip(counted, before, strict=True)]
    severity, p, fields = _compared(replay, counted, handed_out)
    fields |= {word: _named(replay, counts) for word, counts in lost.items()}
    fields |= {"imported": _named(replay, before)} if any(before) else {}
    covered = dict.fromkeys(name for word, names in instead.items() if any(lost[word]) for name in names)
    if projection.spec.is_list and all(o.is_bounded or o.is_exact for o in noisy):
        severity = Severity.NOTICE  # a hole counts at its worst, whyever it is there
    return Diagnostic(DiagnosticCode.LOSSES, severity, p=p, fields={**fields, "instead": list(covered)})


def _handed_out(replay: Replay) -> list[int]:
    """Trials by arm that were not given back."""
    return replay.projection.count_by_arm(OPEN, TOLD, FAILED, EXPIRED, LATE)


def _counts_when_lost(objective: Objective, how: str) -> bool:
    """Whether a result of it that failed, expired or came late has a value, or counts at its worst."""
    agreed = objective.if_failed if how == "failed" else objective.if_expired
    return agreed is not None or objective.if_missing == Missing.WORST


def _returned(replay: Replay) -> Diagnostic:
    """What was given back, or begun and broken off: who does that may have seen what it would give."""
    projection = replay.projection
    released = projection.count_by_arm(RELEASED)
    both = [r + i for r, i in zip(released, projection.interrupted, strict=True)]
    if not any(both):
        return Diagnostic(DiagnosticCode.RETURNED, Severity.OK)
    of = [n + back for n, back in zip(_handed_out(replay), released, strict=True)]
    severity, p, fields = _compared(replay, both, of)
    fields |= {"released": _named(replay, released), "interrupted": _named(replay, projection.interrupted)}
    return Diagnostic(DiagnosticCode.RETURNED, severity, p=p, fields=fields)


def _touched(replay: Replay, code: DiagnosticCode, trials: Collection[int]) -> Diagnostic:
    """Places that were asked again, or told anew: who does that may have seen what was there."""
    if not trials:
        return Diagnostic(code, Severity.OK)
    by_arm = Counter(replay.projection.arm[number] for number in trials)
    again = [by_arm[arm] for arm in range(len(replay.projection.arms))]
    severity, p, fields = _compared(replay, again, _handed_out(replay))
    return Diagnostic(code, severity, p=p, fields={**fields, "again": _named(replay, again)})


def _gaps(replay: Replay, column: int) -> Diagnostic | None:
    """Results that left out an objective."""
    projection, objective = replay.projection, replay.projection.spec.objectives[column]
    there = [projection.counted_values(arm, column).size for arm in range(len(projection.arms))]
    lost = [max(told - n, 0) for told, n in zip(projection.measured, there, strict=True)]
    if not sum(lost) or objective.is_exact:
        return None
    covered = objective.if_missing == Missing.WORST or (projection.spec.is_list and objective.is_bounded)
    severity, p, fields = _compared(replay, lost, projection.measured, unless=covered)
    return Diagnostic(
        DiagnosticCode.GAPS, severity, objective.name, p, {**fields, "missing": _named(replay, lost)}
    )


# --- values that depend on when they are asked


def _drifts(replay: Replay) -> list[Diagnostic]:
    """On a list arms catch up later: was what they gave then as it was in step, relative to another arm?"""
    projection = replay.projection
    noisy = [column for column in projection.order if not projection.spec.objectives[column].is_exact]
    turns = _by_place(replay, lambda told: told)  # trials are numbered as they are asked
    lag = turns - np.fmin.reduce(turns, axis=0)
    later, in_step = lag > LONG_AFTER, lag <= LONG_AFTER
    return [
        _drift(replay, column, _values_by_place(replay, column), in_step, later, len(noisy))
        for column in noisy
    ]


def _by_place(replay: Replay, cells_of: Callable[[Any], Any], *states: int) -> Vector:
    """(arms, passes) of the trials that were told, or are in other states; nan where none was."""
    projection = replay.projection
    told = np.flatnonzero(np.isin(projection.column("state"), states or (TOLD,)))
    arms, passes = projection.column("arm")[told], projection.column("pass_of")[told]
    table = np.full((len(projection.arms), int(passes.max(initial=0)) + 1), np.nan)
    table[arms, passes] = cells_of(told)
    return table


def _values_by_place(replay: Replay, column: int, *states: int) -> Vector:
    spec, values = replay.projection.spec, replay.projection.column("values")
    return _by_place(replay, lambda told: spec.cut(values[told])[:, column], *states)


def _drift(replay: Replay, column: int, values: Vector, in_step: Any, later: Any, tests: int) -> Diagnostic:
    name, there = replay.projection.spec.objectives[column].name, ~np.isnan(values)
    best: tuple[float, Fields] | None = None
    for arm in range(len(values)):
        sides = [rows[arm] & there[arm] & there & in_step for rows in (in_step, later)]  # by the other arm
        sizes = np.minimum(*(side.sum(axis=1) for side in sides))
        sizes[arm] = 0
        other = int(sizes.argmax())
        if sizes[other] < LEAST_TO_COMPARE:
            continue
        from scipy.stats import mannwhitneyu  # slow to import

        differences = [(values[arm] - values[other])[side[other]] for side in sides]
        p = float(mannwhitneyu(*differences).pvalue) if np.ptp(np.concatenate(differences)) > 0 else 1.0
        fields = {
            "worst": replay.projection.arm_names[arm],
            "in_step": differences[0].size,
            "later": differences[1].size,
        }
        if best is None or p < best[0]:
            best = p, fields
    if best is None:
        return Diagnostic(DiagnosticCode.DRIFT, Severity.OK, name, fields={"finding": Finding.IN_STEP})
    p = min(1.0, best[0] * tests * len(values))
    severity = Severity.WARNING if p < DOUBT else Severity.OK
    return Diagnostic(DiagnosticCode.DRIFT, severity, name, p, {"finding": Finding.CAUGHT_UP, **best[1]})


# --- noise


def _noise(replay: Replay, column: int) -> Diagnostic:
    projection, objective = replay.projection, replay.projection.spec.objectives[column]
    arms = range(len(projection.arms))
    values = [v for arm in arms if (v := projection.counted_values(arm, column)).size]
    if not values:
        return Diagnostic(
            DiagnosticCode.NOISE,
            Severity.NOT_NEEDED,
            objective.name,
            fields={"finding": Finding.NEVER_MEASURED},
        )
    severity, p, fields = CHECKS[objective.kind](replay, column, values)
    if not _has_decided(replay, column):
        severity = Severity.NOT_NEEDED
    return Diagnostic(DiagnosticCode.NOISE, severity, objective.name, p, fields)


def _has_decided(replay: Replay, column: int) -> bool:
    """Whether anything rests on an objective, or is about to."""
    policy, order = replay.policy, replay.projection.order
    if column == policy.objective or replay.projection.spec.objectives[column].limit is not None:
        return True
    if any(left.objective == column for left in policy.eliminations):
        return True
    if policy.finished:
        return any(row.objective == column and row.verdict != ClaimVerdict.OPEN for row in policy.certificate)
    return policy.objective not in order or order.index(column) < order.index(policy.objective)


Found = tuple[Severity, float | None, dict[str, Any]]
Check = Callable[[Replay, int, list[Vector]], Found]


def _bounded(replay: Replay, column: int, values: list[Vector]) -> Found:
    objective, everything = replay.projection.spec.objectives[column], np.concatenate(values)
    low, high = objective.bounds
    at_end = int(((everything == low) | (everything == high)).sum())
    fields = {"lowest": float(everything.min()), "highest": float(everything.max())}
    if objective.kind is not NoiseKind.BERNOULLI and not objective.is_cut and 0 < at_end < everything.size:
        return Severity.NOTICE, None, {"finding": Finding.ON_BOUND, "values": at_end, **fields}
    return Severity.OK, None, {"finding": Finding.INSIDE, **fields}


def _gaussian(replay: Replay, column: int, values: list[Vector]) -> Found:
    if column in replay.policy.repeating:
        return Severity.WARNING, 0.0, {"finding": Finding.REPEATS}
    long = [v for v in values if v.size >= 30 and np.ptp(v) > 0]
    if not long:
        return Severity.OK, None, {"finding": Finding.TOO_FEW}
    p = min(1.0, len(long) * min(map(jarque_bera, long)))
    halves = [levene(v[: v.size // 2], v[v.size // 2 :]) for v in long]
    p_drift = min(1.0, len(long) * min(halves))
    if p_drift < DOUBT:
        return Severity.WARNING, p_drift, {"finding": Finding.SPREAD_CHANGED}
    if p >= DOUBT:
        return Severity.OK, p, {"finding": Finding.CONSISTENT}
    shape = max(max(abs(skew), kurtosis / 3) for skew, kurtosis in map(_shape, long))
    return (
        (Severity.NOTICE if shape < 1 else Severity.WARNING),
        p,
        {"finding": Finding.INCONSISTENT, "shape": shape},
    )


def _shape(values: Vector) -> tuple[float, float]:
    """Skewness and excess kurtosis."""
    z = (values - values.mean()) / values.std()
    return float((z**3).mean()), float((z**4).mean()) - 3.0


def jarque_bera(values: Vector) -> float:
    """The p-value of "normal", by skewness and kurtosis; scipy.stats has it too, and is slow to import."""
    skew, kurtosis = _shape(values)
    return math.exp(-values.size / 12 * (skew**2 + kurtosis**2 / 4))


def levene(first: Vector, second: Vector) -> float:
    """The p-value of "both spread alike", by distances from medians (Brown and Forsythe)."""
    from scipy.special import fdtrc  # slow to import

    distances = [np.abs(half - np.median(half)) for half in (first, second)]
    between = float(distances[0].mean() - distances[1].mean()) ** 2 / sum(1 / d.size for d in distances)
    within = sum(float(((d - d.mean()) ** 2).sum()) for d in distances)
    free = first.size + second.size - 2
    return float(fdtrc(1, free, free * between / within)) if within > 0 else float(between == 0)


def _symmetric(replay: Replay, column: int, values: list[Vector]) -> Found:
    """Whether differences from the leader are skewed, and whether so few may hide what that does."""
    if all(np.isin(v, (0.0, 1.0)).all() for v in values):
        return Severity.WARNING, 0.0, {"finding": Finding.ONLY_BINARY}
    table, leader = _values_by_place(replay, column, TOLD, IMPORTED), replay.policy.recommendation
    found: list[tuple[float, float, int]] = []
    for arm in range(len(table)):
        differences = table[arm] - table[leader]
        differences = differences[~np.isnan(differences)]
        if arm != leader and differences.size >= LEAST_TO_COMPARE and np.ptp(differences) > 0:
            found.append((*_asymmetry(differences), arm))
    if not found:
        return Severity.OK, None, {"finding": Finding.TOO_FEW}
    p, matters, arm = min(found)
    p = min(1.0, p * len(found))
    if p >= UNEQUAL:
        return Severity.OK, p, {"finding": Finding.CONSISTENT}
    severity = Severity.WARNING if matters > HARDLY else Severity.NOTICE
    return severity, p, {"finding": Finding.ASYMMETRIC, "worst": replay.projection.arm_names[arm]}


def cannot_be_symmetric(replay: Replay) -> tuple[int, ...]:
    """Return the "symmetric" objectives whose values are none, by what is folded: nothing is certified then.

    All are 0 or 1, or one difference from the answer makes up clearly more than half of all.
    """
    from lexbandits.policies.tolerance.validation import one_difference_prevails  # who asks has a policy

    found, policy = [], replay.policy
    for column in replay.projection.order:
        is_symmetric = replay.projection.spec.objectives[column].kind is NoiseKind.SYMMETRIC
        if not is_symmetric or not _has_decided(replay, column):
            continue
        table = _values_by_place(replay, column, TOLD, IMPORTED)[:, : policy.folded]
        differences = np.delete(table - table[policy.recommendation], policy.recommendation, axis=0)
        size = 2 * float(np.nanmax(np.abs(table), initial=0.0))
        prevails = any(one_difference_prevails(row[~np.isnan(row)], size) for row in differences)
        told = table[~np.isnan(table)]
        if prevails or (told.size and np.isin(told, (0.0, 1.0)).all()):
            found.append(column)
    return tuple(found)


def _asymmetry(values: Vector) -> tuple[float, float]:
    """The p-value of two measures of skewness, and skewness over the root of n.

    The second is about what skewness adds to a quantile, in standard errors of the mean.
    """
    from scipy.special import ndtr  # slow to import

    from lexbandits.evidence.fixed_sample import asymmetry, skewness

    z = max(map(abs, asymmetry(values)))
    return min(1.0, 4.0 * float(ndtr(-z))), abs(skewness(values)) / math.sqrt(values.size)


def _sub_gaussian(replay: Replay, column: int, values: list[Vector]) -> Found:
    from scipy.special import chdtrc

    declared = float(replay.projection.spec.objectives[column].noise[1])
    widest = max(values, key=lambda v: float(np.std(v)))
    free = max(widest.size - 1, 1)
    p = min(1.0, len(values) * float(chdtrc(free, widest.size * np.var(widest) / declared**2)))
    fields = {"finding": Finding.SPREAD, "sd": float(np.std(widest)), "declared": declared}
    return Severity.WARNING if p < DOUBT else Severity.OK, p, fields


def _finite_variance(replay: Replay, column: int, values: list[Vector]) -> Found:
    shares = [float(((v - v.mean()) ** 2).max() / max(v.size * np.var(v), math.ulp(0.0))) for v in values]
    severity = Severity.WARNING if max(shares) >= 0.25 else Severity.NOTICE
    return severity, None, {"finding": Finding.APPROXIMATE, "share": max(shares)}


def _exact(replay: Replay, column: int, values: list[Vector]) -> Found:
    return Severity.OK, None, {"finding": Finding.ONE_VALUE_EACH}


CHECKS: dict[NoiseKind, Check] = {
    NoiseKind.GAUSSIAN: _gaussian,
    NoiseKind.SYMMETRIC: _symmetric,
    NoiseKind.SUB_GAUSSIAN: _sub_gaussian,
    NoiseKind.FINITE_VARIANCE: _finite_variance,
    NoiseKind.EXACT: _exact,
    NoiseKind.BOUNDED: _bounded,
    NoiseKind.BERNOULLI: _bounded,
}
