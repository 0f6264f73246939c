"""The least regret of a policy that is consistent on every instance with trade-off λ, per nat of log T.

Pulls n per nat must give at least one nat of evidence against every alternative ν that leaves the lex-optimal
arm where it is: ½n_a‖x − μ(a)‖² + ½Σ_{b≠a} n_b·dist²(x − μ(b), C_λ) ≥ 1 for every other arm a and every
x ∈ μ(a_*) + C_λ. Minimise the regret of such n, objective by objective. Not in the paper; docs/lower-bound.md
says what it means, docs/proofs.md proves it (Theorems R1 to R7).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry
from lexbandits._validation import probability
from lexbandits.environments.instance import Instance
from lexbandits.theory.alternatives import Problem, costs_of_moves, respond
from lexbandits.theory.arguments import told_tradeoff
from lexbandits.theory.cones import cones_of, leave_nearest, squared_length
from lexbandits.theory.lower_bound import bounded_instance, prove, sample_lower_bound

Mask = NDArray[np.bool_]

MAX_ROUNDS = 400  # per objective
MAX_NODES = 200_000  # of branch and bound, over the whole computation
HEAVY = (1e4, 1e6, 1e8)  # weights of arms that must not move, in units of that of the arm that becomes best
ENOUGH = 1.05  # pulls that a tied arm may take, in units of what it needs for itself
ROUNDING = 1e-7  # relative: both ends are moved outwards by as much, for the errors of the arithmetic


class RegretConstants(NamedTuple):
    """What the regret of a consistent policy is at least, per nat: multiply by log T or by kl(δ, 1 − δ).

    The regret on objective 0 is at least `low[0]`. A policy whose regret on the objectives before i is at
    most `high` has at least `low[i]` on objective i. Regret is signed: on later objectives a policy may win.

    Attributes:
        low: (m,) proved, up to rounding errors.
        high: (m,) the regret of `pulls`; proved to be enough when `certified`.
        pulls: (K,) per nat; infinite for the lex-optimal arms.
        certified: whether `pulls` are proved to be enough.
        attained: False if, on some objective, ever more pulls of arms that cost nothing up to it bring the
            regret down; later objectives are then nan.
        separable: (m,) the regret if every arm had to be refuted alone; never less than needed, and exact
            for m ≤ 2 or λ = 0.
        alone: what objective 0 costs at least if only one arm moves in an alternative; a simple lower bound.
        first_objective: the constant of Lai and Robbins for objective 0 without the others.

    >>> regret_constants(Instance([[1.0], [0.5]])).low.round(3).tolist()
    [4.0]
    """

    low: Vector  # (m,)
    high: Vector  # (m,)
    pulls: Vector  # (K,)
    certified: bool
    attained: bool
    separable: Vector  # (m,)
    alone: float
    first_objective: float

    def over(self, horizon: float) -> Vector:
        """Return low·log T, the leading term of the regret over `horizon` pulls.

        Args:
            horizon: T, at least 1.
        """
        if not horizon >= 1:
            raise ValueError(f"horizon must be at least 1, got {horizon!r}")
        return self.low * math.log(horizon)

    def until_certified(self, delta: float) -> Vector:
        """Return low·kl(δ, 1 − δ), what regret is until the lex-optimal arm is known.

        Args:
            delta: the probability of a wrong answer; from 1/2 on a guess is good enough.
        """
        return self.low * sample_lower_bound(1.0, delta)


def regret_constants(
    instance: Instance, tradeoff: float | None = None, *, relative_gap: float = 1e-4
) -> RegretConstants:
    """Return the constants of the regret lower bound, an interval for each objective.

    For independent Gaussian noise of known variance and means anywhere in R. Arms that tie with the
    lex-optimal one on every objective cost nothing and are left out. Raises ValueError when the instance's
    own λ exceeds `tradeoff`.

    Args:
        instance: what is true.
        tradeoff: λ; None: the instance's own least.
        relative_gap: the interval of objective i closes to relative_gap·Σ_a pulls(a)·|gap_i(a)|, where the
            limits on the work allow it.

    >>> constants = regret_constants(Instance([[1.0, 1.0], [1.0, 0.5]], noise_sd=0.5), 3.0)
    >>> constants.high.round(2).tolist(), constants.pulls.round(1).tolist()
    ([0.0, 10.0], [inf, 20.0])
    """
    exact = bounded_instance(instance)
    tradeoff = told_tradeoff(exact, tradeoff, promised=True)
    relative_gap = probability("relative_gap", relative_gap)
    gaps, sds = exact.gaps, exact.noise_sds
    optimal = ~gaps.any(axis=1)
    whitened = -gaps / sds
    # Sorted, so that the same arms in another order give the same pulls in that order; a_* comes last.
    rivals = np.flatnonzero(~optimal)
    rivals = rivals[np.lexsort(whitened[rivals].T)]
    pulls = np.full(exact.n_arms, math.inf)
    first = gaps[:, 0][gaps[:, 0] > 0]
    first_objective = float((2 * sds[0] ** 2 / first).sum())
    if rivals.size == 0:
        nothing = np.zeros(exact.n_objectives)
        return RegretConstants(nothing, nothing, pulls, True, True, nothing, 0.0, 0.0)
    unit = float(np.abs(whitened).max())
    means = np.vstack([whitened[rivals] / unit, np.zeros(exact.n_objectives)])
    search = _Search(Problem(means, cones_of(tradeoff, sds)), gaps[rivals] / unit**2, sds, tradeoff)
    low, high, found, certified, attained = search.constants(relative_gap)
    pulls[rivals] = found / unit**2
    return RegretConstants(
        low,
        high,
        pulls,
        certified,
        attained,
        search.separable @ search.gaps,
        float(search.alone @ search.gaps[:, 0]) * (1 - ROUNDING),
        first_objective,
    )


class _Search:
    """Cutting planes for the least regret, in units in which the largest whitened gap is 1.

    Every alternative found is a cut, and a member of the class: its costs (per unit of pulls) are kept.
    The next pulls to be tried lie midway between the best that are enough and those the cuts like.
    """

    def __init__(self, problem: Problem, gaps: Vector, sds: Vector, tradeoff: float) -> None:
        self.problem, self.gaps, self.sds, self.tradeoff = problem, gaps, sds, tradeoff
        self.n_rivals, self.n_objectives = gaps.shape
        self.decided_by = (gaps != 0).argmax(axis=1)  # the objective on which a_* is better
        self.points = np.zeros_like(problem.means)  # of each arm, where its cheapest alternative had it last
        self.nodes, self.heaviest, self.certified = MAX_NODES, 0.0, True
        self.cuts = np.empty((0, self.n_rivals))
        distances = np.array([self._distance(b) for b in range(self.n_rivals)])
        self.separable = 1 / distances
        self.margins = np.minimum(1e-12, 1e-6 * np.sqrt(distances))
        self.alone = self._alone()

    def _distance(self, b: int) -> float:
        """½dist²(μ(b) − μ(a_*), C_λ), and `points` there."""
        residual = np.empty(self.n_objectives)
        entry(leave_nearest, bulk=True)(self.problem.cones, self.problem.means[b], residual)
        self.points[b] = self.problem.means[b] - residual
        return 0.5 * float(squared_length(residual))

    def _alone(self) -> Vector:
        """The pulls that the alternatives ask for in which one arm alone moves; these are the first cuts."""
        costs, ones = np.empty(self.n_rivals), np.ones(self.n_rivals)
        for b in range(self.n_rivals):
            others, rival = np.arange(self.n_rivals) != b, np.array([b])
            lifted = self._lifted(b, self.problem.means[b], others) - self.problem.means[b]
            costs[b] = 0.5 * float(squared_length(lifted))
            self.attack(ones, rival, others)
            missed = True
            while missed:
                found = self._costs(rival, others)[0, b]
                missed = found < costs[b] and self.certify(ones, rival, others, 0.999 * found) == 0
                costs[b] = min(costs[b], found)
            self._distance(b)
        self.cuts = np.diag(costs)
        return 1 / costs

    def _lifted(self, b: int, x: Vector, held: Mask) -> Vector:
        """x raised, objective by objective, until b beats a_* and all that is held there: they need not move.

        To raise x on one objective relaxes what is demanded on later ones. `margins` make up for rounding.
        """
        x = x.copy()
        rows = self.problem.means[np.append(held, True)]
        for i in range(x.size):
            ahead = (self.sds[:i] * (x[:i] - rows[:, :i])).max(axis=1, initial=-math.inf)
            demands = rows[:, i] - (self.tradeoff * ahead / self.sds[i] if i else 0.0)
            x[i] = max(x[i], demands.max()) + self.margins[b]
        return x

    def attack(self, pulls: Vector, rivals: Counts, held: Mask) -> tuple[float, Vector]:
        """The least evidence found against alternatives in which a rival is best, and their costs (n, K)."""
        value, ignored = np.empty(1), np.empty((1, self.n_rivals + 1))
        for b in rivals:
            weights = self._weights(pulls, held, HEAVY[1] * pulls[b])
            entry(respond, bulk=True)(self.problem, weights, b[np.newaxis], self.points, value, ignored)
        costs = self._costs(rivals, held)
        return float((costs @ np.where(held, 0.0, pulls)).min()), costs

    def _weights(self, pulls: Vector, held: Mask, heavy: float) -> Vector:
        return np.append(np.where(held, heavy, pulls), heavy)

    def _costs(self, rivals: Counts, held: Mask) -> Vector:
        costs = np.empty((rivals.size, self.n_rivals + 1))
        for k, b in enumerate(rivals):
            x = self._lifted(b, self.points[b], held)
            entry(costs_of_moves, bulk=True)(self.problem, b, x, costs[k])
        return np.where(held, 0.0, costs[:, :-1])

    def constants(self, relative_gap: float) -> tuple[Vector, Vector, Vector, bool, bool]:
        """low, high, the pulls of `high`, whether these are certified, whether the minimum is attained."""
        nobody = np.zeros(self.n_rivals, np.bool_)
        pulls, reached = self.separable, self.n_objectives
        budgets = np.empty(0)
        for i in range(self.n_objectives):
            free = self.decided_by > i  # these arms cost nothing so far
            start = np.where(free, ENOUGH * self.separable, pulls)
            pulls = self.minimise(i, start, nobody, budgets, relative_gap / 2)
            low, _ = self.bound(i, pulls, free, budgets)
            size = float(np.abs(self.gaps[:, i]) @ pulls)
            if self.gaps[:, i] @ pulls - low > 0.6 * relative_gap * size:
                # Cuts are missing in which free arms stay where they are, or ever more of their pulls help.
                much = self.minimise(i, pulls, free, budgets, relative_gap / 2)
                if self.gaps[:, i] @ much < self.bound(i, pulls, nobody, budgets)[0]:
                    pulls, reached = np.where(free, self.heaviest, much), i + 1
                    break
                low, _ = self.bound(i, much, free, budgets)
            within = np.append(budgets, low + 0.75 * relative_gap * size)
            budgets = np.maximum(within, self.gaps[:, : i + 1].T @ pulls)
        high = self.gaps.T @ pulls
        lower = np.full(self.n_objectives, math.nan)
        for i in range(reached):
            lower[i], _ = self.bound(i, pulls, self.decided_by > i, high[:i])
        high[reached:] = math.nan
        spread = ROUNDING * (np.abs(self.gaps).T @ pulls)
        return lower - spread, high + spread, pulls, self.certified, bool(reached == self.n_objectives)

    def minimise(self, i: int, pulls: Vector, held: Mask, budgets: Vector, relative_gap: float) -> Vector:
        """Lower the regret on objective i of pulls that are enough, to near the least.

        Only pulls of arms decided by objective i or before are changed. Arms that are held have infinitely
        many, the others keep theirs. The regret on earlier objectives stays within `budgets`.
        """
        active = self.decided_by <= i
        rivals = np.flatnonzero(active)
        if rivals.size == 0:
            return pulls
        gaps = self.gaps[:, i]
        best = pulls
        for _ in range(MAX_ROUNDS):
            low, liked = self.bound(i, best, held, budgets)
            if gaps @ best - low <= relative_gap * (np.abs(gaps) @ best):
                evidence = self.certify(best, rivals, held, 1 - relative_gap / 8)
                if evidence > 0:
                    break
                best = pulls
                continue
            # Halfway, as for the characteristic time: pulls that are enough stay positive.
            trial = np.where(active, (best + liked) / 2, best)
            evidence, costs = self.attack(trial, rivals, held)
            self.cuts = np.vstack([self.cuts, costs[costs @ trial < 1.1]])
            if evidence >= 1 - relative_gap / 16:
                best = trial
        else:
            evidence = self.certify(best, rivals, held, 1 - relative_gap / 8)
            if evidence <= 0:
                return pulls
        return best / min(1.0, evidence)

    def certify(self, pulls: Vector, rivals: Counts, held: Mask, threshold: float) -> float:
        """The evidence that these pulls give against every alternative; 0 if it is below `threshold`.

        Arms that must not move are heavy instead. That allows more alternatives than there are, so the
        bound holds; where one of the surplus is below the threshold, they are made heavier. What is found
        below it otherwise is a cut.
        """
        least = math.inf
        for b in rivals:
            proved = 0.0
            for step in HEAVY:
                heavy = step * pulls[b]
                weights = self._weights(pulls, held, heavy)
                one = b[np.newaxis]
                bound, _, self.nodes = prove(self.problem, weights, one, self.points, threshold, self.nodes)
                proved = max(proved, bound)
                if proved >= threshold * (1 - ROUNDING):
                    self.heaviest = max(self.heaviest, heavy)
                    break
                costs = self._costs(one, held)
                if costs[0] @ np.where(held, 0.0, pulls) < threshold:
                    self.cuts = np.vstack([self.cuts, costs])
                    return 0.0
            else:
                self.certified, proved = False, threshold
            least = min(least, proved)
        return least

    def bound(self, i: int, pulls: Vector, held: Mask, budgets: Vector) -> tuple[float, Vector]:
        """What the cuts say: a lower bound on the regret on objective i, and the pulls they like best.

        As in `minimise`. True for any multipliers, whatever the solver's tolerance: where they ask too
        much of an arm, the bound is lowered by that times the most pulls that the arm can have.
        """
        from scipy.optimize import linprog

        active = self.decided_by <= i
        if not active.any():
            return 0.0, pulls
        fixed = ~active & ~held
        rows = self.cuts[(self.cuts[:, held] == 0).all(axis=1)]
        right = 1 - rows[:, fixed] @ pulls[fixed]
        rows, right = rows[right > 0], right[right > 0]
        units = self.separable[active]
        prices = self.gaps[active, i] * units
        largest = np.abs(prices).max()
        if largest == 0:
            return 0.0, pulls
        spent = self.gaps[active, : budgets.size].T * units
        sizes = np.maximum(np.abs(spent).max(axis=1, initial=0.0), 1e-300)
        demands = rows[:, active] * units
        solution = linprog(
            prices / largest,
            A_ub=np.vstack([-np.minimum(demands, 1e12), spent / sizes[:, np.newaxis]]),
            b_ub=np.append(-right, budgets / sizes),
            method="highs",
        )
        if solution.x is None:
            raise RuntimeError(f"the linear program was not solved: {solution.message}")
        multipliers = np.maximum(-solution.ineqlin.marginals, 0.0) * largest
        of_cuts, of_budgets = multipliers[: len(rows)], multipliers[len(rows) :] / sizes
        # Weak duality: the solver's multipliers need not be feasible, and what they ask too much is paid for.
        excess = np.maximum(of_cuts @ demands - of_budgets @ spent - prices, 0.0)
        total = float(self.gaps[:, i] @ np.where(active, pulls, 0.0))
        ceilings = self._most_pulls(i, np.append(budgets, max(total, 0.0)))[active] / units
        low = float(of_cuts @ right - of_budgets @ budgets - excess @ ceilings)
        liked = pulls.copy()
        liked[active] = np.maximum(solution.x, 0.0) * units
        return min(low, total), liked

    def _most_pulls(self, i: int, budgets: Vector) -> Vector:
        """The most pulls that an arm can have if the regret on objectives 0..i is within `budgets`."""
        most = np.zeros(self.n_rivals)
        for j in range(i + 1):
            here = self.decided_by == j
            won = np.maximum(-self.gaps[:, j], 0.0) @ most
            most[here] = (budgets[j] + won) / self.gaps[here, j]
        return most
