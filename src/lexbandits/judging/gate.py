"""The gate: may a candidate take the place of a baseline? Two arms, one question, two error rates.

A candidate is a *regression* if it is outside a limit, or worse than the baseline by more than a margin on an
objective before one on which it is better. It is better on an objective if it wins by more than the tie; on a
limit, if the baseline is outside. Theorem G in docs/proofs.md has the levels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lexbandits._code import Code
from lexbandits.judging.claims import BEATS, CLEARS, HOLDS, MEETS, SEEN, TIES, VIOLATES, Claims
from lexbandits.judging.scheme import OPEN, Claim, Need, Refutation, Step, beats

# How far beyond the margin a bound may be shown, in what lies between tie and margin: no data choose it.
BEYOND = np.r_[np.arange(1, 20) / 10, 2 * 1.1 ** np.arange(36)]


class GateOutcome(Code):
    """What a gate says of a candidate.

    Attributes:
        SHIP: it may take the baseline's place.
        NOT_SHOWN: neither of the others is shown.
        REGRESSION: it is outside a limit, or worse by more than a margin before it is better.

    >>> import lexbandits as lb
    >>> lb.GateOutcome.NOT_SHOWN == "not_shown"
    True
    """

    SHIP = "ship"
    NOT_SHOWN = "not_shown"
    REGRESSION = "regression"


class GateRule(Code):
    """What a candidate must be shown to be: not worse than the baseline, or better."""

    NOT_WORSE = "not_worse"
    SWITCH = "switch"


class GateFinding(Code):
    """What a gate found on one objective."""

    BETTER = "better"
    NOT_WORSE = "not_worse"
    NOT_BETTER = "not_better"
    WORSE = "worse"
    WITHIN_LIMIT = "within_limit"
    OUTSIDE_LIMIT = "outside_limit"
    OPEN = "open"
    NOT_NEEDED = "not_needed"


class OpenReason(Code):
    """Why nothing is shown."""

    MAY_BE_WORSE = "may_be_worse"
    MAY_VIOLATE_LIMIT = "may_violate_limit"
    NOT_BETTER = "not_better"
    DOUBTED = "doubted"  # a flag takes the claims away


@dataclass(frozen=True)
class Gate:
    """What a gate says of a candidate, and why.

    Attributes:
        outcome: whether it may ship.
        rule: what it had to be shown to be.
        baseline, candidate: the two arms.
        objective: the objective that decides: of a regression where it is, of what may ship where it is
            better (None: nowhere), else the first that is open.
        reason: while nothing is shown, why.
        bound: of a regression by how much it is worse at least, and of what may be worse by how much at most,
            in the objective's unit; None if unknown.
        findings: objective -> what was found there.

    >>> import lexbandits as lb
    >>> verdict = lb.judge({"arm": ["old", "new"], "item": [1, 1], "size": [3, 4]},
    ...                    [lb.Objective("size", "minimize", noise="exact")], scope="items",
    ...                    baseline="old", candidate="new")
    >>> verdict.gate.outcome, verdict.gate.objective, verdict.gate.bound
    ('regression', 'size', 1.0)
    """

    outcome: GateOutcome
    rule: GateRule
    baseline: str
    candidate: str
    objective: str | None
    reason: OpenReason | None
    bound: float | None
    findings: dict[str, GateFinding]


Route = list[Need]  # all of them are needed


# --- Theorem G: the claims and their levels


def ways_to_ship(claims: Claims, w: int, c: int, delta: float, rule: GateRule) -> list[Route]:
    """What must be claimed so that w may ship: all of one of these."""
    limits: Route = [
        (w, i, [(((MEETS, i, w, None),), delta)]) for i in range(claims.n_objectives) if claims.is_limit[i]
    ]
    if rule is GateRule.SWITCH:
        return [limits + route for route in _ways_to_be_better(claims, w, c, delta)]
    return [limits + [_not_worse(claims, w, c, i, delta) for i in _ordinary(claims)]]


def _not_worse(claims: Claims, w: int, c: int, i: int, delta: float) -> Need:
    """That w is not worse on i, or better before; what is exact takes no share."""
    earlier = [_better(claims, w, c, j) for j in range(i)]
    noisy = sum(claims.noisy[:i])
    share = 0.5 if noisy and claims.noisy[i] else 1.0
    before: list[Refutation] = [(way, share * delta / max(1, noisy)) for way in earlier]
    return c, i, [(((HOLDS, i, w, c),), share * delta), *before]


def _ways_to_be_better(claims: Claims, w: int, c: int, delta: float) -> list[Route]:
    """That w is better on some objective, and not worse before: J2 for two arms."""
    noisy, place, held, routes = max(1, sum(claims.noisy)), 0, list[Need](), list[Route]()
    for k in range(claims.n_objectives):
        if not claims.is_limit[k]:
            held.append((c, k, [(((HOLDS, k, w, c),), delta * (1 - place / noisy))]))
        routes.append([*held, (c, k, [(_better(claims, w, c, k), delta / noisy)])])
        place += claims.noisy[k]
    return routes


def _better(claims: Claims, w: int, c: int, j: int) -> tuple[Claim, ...]:
    """That w is better than c on j, as it meets all limits."""
    return ((VIOLATES, j, c, None),) if claims.is_limit[j] else ((BEATS, j, w, c),)


def ways_to_regress(claims: Claims, w: int, c: int, delta: float) -> list[Route]:
    """What must be claimed so that w is called a regression: all of one of these."""
    ordinary = _ordinary(claims)
    limits = [i for i in range(claims.n_objectives) if claims.is_limit[i]]
    taken = sum(claims.noisy[i] for i in limits)  # each limit of w may be claimed to be violated
    slots = taken + sum(claims.noisy[i] for i in ordinary)
    if taken and ordinary and not claims.noisy[ordinary[-1]]:
        slots += 1  # or nothing would be left to show that c meets a limit
    slots = max(1, slots)
    routes: list[Route] = [[(w, i, [(((VIOLATES, i, w, None),), delta / slots)])] for i in limits]
    no_excuse: Route = []
    for i in range(claims.n_objectives):
        level = delta * (1 - taken / slots)
        if claims.is_limit[i]:
            no_excuse.append((c, i, [(((MEETS, i, c, None),), level)]))
            continue
        no_excuse.append((w, i, [(((TIES, i, c, w),), level)]))
        routes.append([*no_excuse, (w, i, [(((CLEARS, i, c, w),), delta / slots)])])
        taken += claims.noisy[i]
    return routes


def _ordinary(claims: Claims) -> list[int]:
    return [i for i in range(claims.n_objectives) if not claims.is_limit[i]]


# --- what a table says


class Decided(NamedTuple):
    """An outcome, the way to it, and the claims that were made on it."""

    outcome: GateOutcome
    route: Route
    steps: tuple[Step, ...]


def decide(
    claims: Claims,
    w: int,
    c: int,
    delta: float,
    rule: GateRule,
    is_sure: Callable[[tuple[Step, ...]], bool] = lambda _: True,
) -> Decided:
    """Ask the table whether w may take the place of c.

    `is_sure` says whether no flag takes away the claims of some steps.
    """

    def tried(routes: list[Route]) -> list[tuple[Route, tuple[Step, ...], bool]]:
        found = ((route, tuple(_step(claims, w, need) for need in route)) for route in routes)
        return [(route, steps, all(step.verdict != OPEN for step in steps)) for route, steps in found]

    worse = [found for found in tried(ways_to_regress(claims, w, c, delta)) if found[2] and is_sure(found[1])]
    if worse:
        return Decided(GateOutcome.REGRESSION, *min(worse, key=lambda found: found[1][-1].objective)[:2])
    better = tried(ways_to_ship(claims, w, c, delta, rule))
    made = [found for found in better if found[2]]
    sure = [found for found in made if is_sure(found[1])]
    route, steps, _ = (sure or made or better[-1:])[0]
    return Decided(GateOutcome.SHIP if sure else GateOutcome.NOT_SHOWN, route, steps)


def gate_of(claims: Claims, w: int, c: int, delta: float, rule: GateRule, decided: Decided) -> Gate:
    """Put an outcome into fields."""
    outcome, route, steps = decided
    names, objectives = claims.table.arms, claims.table.objectives
    at: int | None
    reason, bound = None, None
    if outcome is GateOutcome.REGRESSION:
        at = steps[-1].objective
        found = _of_regression(claims, at)
        bound = None if claims.is_limit[at] else _least(claims, at, c, w, steps[-1].level)
    else:
        found = _found(claims, route, steps, w, c, delta)
        at = next((step.objective for step in steps if _is_better(step, c)), None)
    if outcome is GateOutcome.NOT_SHOWN:
        at, reason = _open(claims, w, rule, steps)
        if at is not None and reason is OpenReason.MAY_BE_WORSE:
            most, (low, high) = -claims.bound(at, w, c, claims.side(at, delta)), objectives[at].bounds
            bound = most if most < high - low else None  # else all that values can differ by
    return Gate(
        outcome=outcome,
        rule=rule,
        baseline=names[c],
        candidate=names[w],
        objective=None if at is None else objectives[at].name,
        reason=reason,
        bound=bound,
        findings={objective.name: found[i] for i, objective in enumerate(objectives)},
    )


def _step(claims: Claims, w: int, need: Need) -> Step:
    """The first claim that is made, or what is open."""
    rival, i, ways = need[0], need[1], [*need[2]]
    for ((fact, j, a, b),), level in ways:
        if claims.says(fact, j, a, b, level):
            return Step(a if b is None else b, j, fact, a if b is not None and a != w else -1, level)
    return Step(rival, i, OPEN, -1, ways[0][1])


def _is_better(step: Step, c: int) -> bool:
    return step.verdict == BEATS or (step.verdict == VIOLATES and step.rival == c)


def _open(claims: Claims, w: int, rule: GateRule, steps: tuple[Step, ...]) -> tuple[int | None, OpenReason]:
    """The objective on which nothing is shown, and why."""
    first = next((step for step in steps if step.verdict == OPEN), None)
    if first is None:
        return None, OpenReason.DOUBTED
    if claims.is_limit[first.objective] and first.rival == w:
        return first.objective, OpenReason.MAY_VIOLATE_LIMIT
    if rule is GateRule.SWITCH and first is steps[-1]:
        return None, OpenReason.NOT_BETTER
    return first.objective, OpenReason.MAY_BE_WORSE


def _of_regression(claims: Claims, at: int) -> dict[int, GateFinding]:
    """What is known on the way to a regression: before it the candidate is nowhere better."""
    found = {at: GateFinding.OUTSIDE_LIMIT if claims.is_limit[at] else GateFinding.WORSE}
    for i in range(claims.n_objectives):
        is_passed = i < at and not claims.is_limit[at] and not claims.is_limit[i]
        found.setdefault(i, GateFinding.NOT_BETTER if is_passed else GateFinding.NOT_NEEDED)
    return found


def _found(
    claims: Claims, route: Route, steps: tuple[Step, ...], w: int, c: int, delta: float
) -> dict[int, GateFinding]:
    """What is known on the way to ship; that it is better also where all facts hold together."""
    found = dict.fromkeys(range(claims.n_objectives), GateFinding.NOT_NEEDED)
    for (_, i, _), step in zip(route, steps, strict=True):
        if step.verdict == OPEN and found[i] is GateFinding.NOT_NEEDED:
            found[i] = GateFinding.OPEN
        elif step.verdict == MEETS:
            found[i] = GateFinding.WITHIN_LIMIT
        elif step.verdict == BEATS:
            found[step.objective] = GateFinding.BETTER
        elif step.verdict == HOLDS:
            is_better = beats(claims, i, w, c, delta)
            found[i] = GateFinding.BETTER if is_better else GateFinding.NOT_WORSE
    return found


def _least(claims: Claims, i: int, a: int, b: int, alpha: float) -> float | None:
    """a − b is at least this: from the margin on, the last point of a grid up to which all is claimed."""
    objective = claims.table.objectives[i]
    if objective.is_relative:
        return None
    if not claims.noisy[i]:
        return claims.sample(SEEN, i, a, b).mean
    sample, least = claims.sample(CLEARS, i, a, b), claims.limit(CLEARS, i)
    for limit in least + BEYOND * objective.tolerance_settings.resolution:
        if sample.mean <= limit or not claims.exceeds(i, sample, float(limit), alpha):
            break
        least = float(limit)
    return least
