"""LexElim-Cone: the knowledge and promise of LexElim-In, by betting against every arm.

Beside a lex-optimal arm b every other arm a has d = μ(b) − μ(a) in the cone d¹ ≥ 0 and, for each
i ≥ 2, d^i + λd^j ≥ 0 for some j < i. A gambler bets, block by block and from the past alone, that b
is not lex-optimal; if it is, no bet is favourable. docs/proofs.md has the proofs.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.confidence import log_mixture, mixture_ceiling
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms, Counts, Rules, Vector, eliminate, record, untried
from lexbandits.policies.checks import at_least, per_objective, probability, spread
from lexbandits.policies.sweeps import (
    ACTIVE,
    FIRST,
    ISSUED,
    JUDGED,
    MISSING,
    PRIOR,
    SweepPolicy,
    Sweeps,
    choose_in_turn,
    close_block,
    enlist,
    first_sweep,
    open_block,
)

PRECISION = 1.5 * PRIOR  # R of the mixture


class Bets(NamedTuple):
    """What each arm's gambler has staked on the current block, and what the past paid."""

    objective: Counts  # (K,) of the face; 0 and 1 are coalitions' faces, later ones a witness's
    witness: Counts  # (K,) whom a bet on a later objective names
    weights: Vector  # (K, K) row b: the coalition against b
    gain: Vector  # (K,) G_b of the coalitions
    variance: Vector  # (K,) V_b
    witness_gain: Vector  # (K, m) G_bj of the last witness, one per selector j
    witness_variance: Vector  # (K,) V'_b
    last_witness: Counts  # (K, 2) the witness and objective they belong to; −1 before the first
    bank: Vector  # (K,) log wealth won with earlier witnesses


class Scratch(NamedTuple):
    """Working memory of `place_bets`."""

    order: Counts  # (m, K) active arms by `score`, descending
    score: Vector  # (m, K) ĝ of each arm times the number of sweeps: face 1, face 21, faces i1
    slack: Vector  # (m,) how far round-off can move a difference of scores
    members: Counts  # (2, K) the best arms on each coalition's face, in order
    margins: Vector  # (2, K) their q
    size: Counts  # (2,) how many of them form the coalition


class State(NamedTuple):
    """The arms, their sweeps, the bets against them, and the cone."""

    arms: Arms
    sweeps: Sweeps
    bets: Bets
    scratch: Scratch
    scales: Vector  # (m, m) s_ij below the diagonal, s_1 at (0, 0)
    tradeoff: float
    threshold: float  # log(1/δ)


@kernel
def choose(state: State, pending: Counts) -> int:
    """Sweeps: the active arm with the fewest pulls, lowest index."""
    return choose_in_turn(state.arms, state.sweeps.clock, pending)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Add to the arm's block; judge every block that is complete."""
    if finished(state) or not state.arms.active[arm]:
        record(state.arms, arm, reward)
        return
    enlist(state.arms, state.sweeps, arm, reward)
    while state.sweeps.clock[MISSING] == 0 and not finished(state):
        judge(state)


@kernel
def finished(state: State) -> bool:
    """One arm is left."""
    return state.sweeps.clock[ACTIVE] <= 1


@kernel
def judge(state: State) -> None:
    """At a judged sweep: settle the bets on the block, drop whom they convict, place new ones."""
    previous = state.sweeps.clock[JUDGED]
    sums = close_block(state.arms, state.sweeps)
    if previous >= FIRST:
        for arm in range(state.arms.active.size):
            if state.arms.active[arm]:
                settle(state, arm, sums, state.sweeps.clock[JUDGED] - previous)
        drop_convicted(state)
    open_block(state.arms, state.sweeps)
    if not finished(state):
        place_bets(state)


@kernel
def settle(state: State, arm: int, sums: Vector, sweeps: int) -> None:
    """Pay the bet against `arm` from the sums of a block of `sweeps` sweeps."""
    bets, tradeoff = state.bets, state.tradeoff
    i = bets.objective[arm]
    if i < 2:
        gain, squares = 0.0, 0.0
        for a in range(sums.shape[0]):
            weight = bets.weights[arm, a]
            if weight > 0.0:
                gain += weight * (sums[a, 0] if i == 0 else sums[a, 1] + tradeoff * sums[a, 0])
                squares += weight * weight
        gain -= sums[arm, 0] if i == 0 else sums[arm, 1] + tradeoff * sums[arm, 0]
        bets.gain[arm] += gain / state.scales[i, 0]
        bets.variance[arm] += sweeps * (1.0 + squares)
        return
    a = bets.witness[arm]
    if bets.last_witness[arm, 0] != a or bets.last_witness[arm, 1] != i:
        bets.bank[arm] += witness_wealth(bets, arm)
        bets.witness_gain[arm] = 0.0
        bets.witness_variance[arm] = 0.0
        bets.last_witness[arm, 0] = a
        bets.last_witness[arm, 1] = i
    for j in range(i):
        gain = (sums[a, i] + tradeoff * sums[a, j]) - (sums[arm, i] + tradeoff * sums[arm, j])
        bets.witness_gain[arm, j] += gain / state.scales[i, j]
    bets.witness_variance[arm] += 2.0 * sweeps


@kernel
def witness_wealth(bets: Bets, arm: int) -> float:
    """min_j L(G_bj, V'_b): the selector is unknown, so the worst one counts; 0 before the first witness."""
    if bets.last_witness[arm, 0] < 0:
        return 0.0
    least = math.inf
    for j in range(bets.last_witness[arm, 1]):
        least = min(least, log_mixture(bets.witness_gain[arm, j], bets.witness_variance[arm], PRECISION))
    return least


@kernel
def log_wealth(bets: Bets, arm: int) -> float:
    """log E_b: the bank, the coalitions' mixture and the current witness's."""
    coalitions = log_mixture(bets.gain[arm], bets.variance[arm], PRECISION)
    return float(bets.bank[arm]) + coalitions + witness_wealth(bets, arm)


@kernel
def cannot_convict(bets: Bets, arm: int, threshold: float) -> bool:
    """Whether bounds without logarithms already keep the wealth below the threshold."""
    ceiling = mixture_ceiling(bets.gain[arm], bets.variance[arm], PRECISION)
    if bets.last_witness[arm, 0] >= 0:
        least = math.inf
        for j in range(bets.last_witness[arm, 1]):
            worth = mixture_ceiling(bets.witness_gain[arm, j], bets.witness_variance[arm], PRECISION)
            least = min(least, worth)
        ceiling += least
    return bool(bets.bank[arm] + ceiling < threshold)


@kernel
def drop_convicted(state: State) -> None:
    """Drop every arm whose gambler has 1/δ; if that is everyone, the one with the least stays."""
    arms, bets = state.arms, state.bets
    convicted = np.zeros(arms.active.size, np.bool_)
    spared = -1
    least = math.inf
    acquitted = False
    for arm in range(arms.active.size):
        if not arms.active[arm]:
            continue
        if cannot_convict(bets, arm, state.threshold):
            acquitted = True
            continue
        wealth = log_wealth(bets, arm)
        convicted[arm] = wealth >= state.threshold
        if not convicted[arm]:
            acquitted = True
        elif spared < 0 or wealth < least:
            spared = arm
            least = wealth
    for arm in range(arms.active.size):
        if convicted[arm] and (acquitted or arm != spared):
            eliminate(arms, arm, state.sweeps.clock[ISSUED], bets.objective[arm], rival(bets, arm))


@kernel
def rival(bets: Bets, arm: int) -> int:
    """The largest weight of the coalition against `arm`, lowest index, or the witness."""
    if bets.objective[arm] >= 2:
        return int(bets.witness[arm])
    strongest = 0
    for a in range(bets.weights.shape[1]):
        if bets.weights[arm, a] > bets.weights[arm, strongest]:
            strongest = a
    return strongest


@kernel
def margin(state: State, a: int, b: int, i: int, j: int) -> float:
    """q = (ĝ_ij(a) − ĝ_ij(b))/s_ij from the judged sweeps; on face 1 when i is 0."""
    totals, n = state.sweeps.totals, state.sweeps.clock[JUDGED]
    if i == 0:
        return float((totals[a, 0] - totals[b, 0]) / state.scales[0, 0] / n)
    ahead = (totals[a, i] - totals[b, i]) + state.tradeoff * (totals[a, j] - totals[b, j])
    return float(ahead / state.scales[i, j] / n)


@kernel
def place_bets(state: State) -> None:
    """For every active arm the coalition or witness with the largest estimated margin."""
    rank_arms(state)
    m = state.sweeps.totals.shape[1]
    bets = state.bets
    for arm in range(state.arms.active.size):
        if not state.arms.active[arm]:
            continue
        best = form_coalition(state, arm, 0)
        chosen = 0
        if m > 1:
            value = form_coalition(state, arm, 1)
            if value > best:
                best = value
                chosen = 1
        witness = -1
        for i in range(2, m):
            found, value = best_witness(state, arm, i, best)
            if found >= 0:
                witness = found
                best = value
                chosen = i
        bets.objective[arm] = chosen
        bets.witness[arm] = witness
        if witness < 0:
            weigh_coalition(state, arm, chosen)


@kernel
def rank_arms(state: State) -> None:
    """Sort the active arms by their score on each face that a search walks down.

    Scores order the margins of all pairs up to round-off, which `slack` bounds with room to spare;
    the searches compare true margins. Insertion into the last order: little has moved.
    """
    totals, scratch = state.sweeps.totals, state.scratch
    for i in range(totals.shape[1]):
        order, score = scratch.order[i], scratch.score[i]
        largest = 0.0
        kept = 0
        for position in range(order.size):
            arm = order[position]
            if arm < 0:
                break
            if not state.arms.active[arm]:
                continue
            if i == 0:
                score[arm] = totals[arm, 0]
                largest = max(largest, abs(totals[arm, 0]))
            else:
                score[arm] = totals[arm, i] + state.tradeoff * totals[arm, 0]
                largest = max(largest, abs(totals[arm, i]) + state.tradeoff * abs(totals[arm, 0]))
            place = kept
            while place > 0 and score[order[place - 1]] < score[arm]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = arm
            kept += 1
        if kept < order.size:
            order[kept] = -1
        scratch.slack[i] = 1e-13 * largest


@kernel
def form_coalition(state: State, arm: int, face: int) -> float:
    """Find the coalition against `arm` on face 1 or 21; return its value.

    The weights that maximise (Σ w q)/sqrt(1 + Σ w²) lie on the arms with the largest q. Their
    threshold S/(r+1) only rises while arms join, so the walk down the scores stops at the first arm
    that cannot reach it.
    """
    scratch = state.scratch
    order, score = scratch.order[face], scratch.score[face]
    members, q = scratch.members[face], scratch.margins[face]
    unit = state.scales[face, 0] * state.sweeps.clock[JUDGED]
    found = 0
    total = 0.0
    for position in range(order.size):
        a = order[position]
        if a < 0:
            break
        if a == arm:
            continue
        if found > 0:
            bound = (score[a] - score[arm] + scratch.slack[face]) / unit
            if q[0] > 0.0:
                if bound * (found + 1) < total * (1.0 - 1e-12):
                    break
            elif bound < q[0]:
                break
        here = margin(state, a, arm, face, 0)
        place = found
        while place > 0 and (q[place - 1] < here or (q[place - 1] == here and members[place - 1] > a)):
            q[place] = q[place - 1]
            members[place] = members[place - 1]
            place -= 1
        q[place] = here
        members[place] = a
        found += 1
        total += here
    scratch.size[face] = 1
    if q[0] <= 0.0:
        return float(q[0] / math.sqrt(2.0))
    total = q[0]
    squares = q[0] * q[0]
    r = 1
    while r < found and (r + 1) * q[r] > total:
        total += q[r]
        squares += q[r] * q[r]
        r += 1
    scratch.size[face] = r
    return math.sqrt(max(0.0, squares - total * total / (r + 1)))


@kernel
def weigh_coalition(state: State, arm: int, face: int) -> None:
    """w_a = (r+1)·q_a/S − 1 on the r arms of the coalition; 1 on the best arm when none is ahead."""
    members, q, r = state.scratch.members[face], state.scratch.margins[face], state.scratch.size[face]
    weights = state.bets.weights[arm]
    for a in range(weights.size):
        weights[a] = 0.0
    if q[0] <= 0.0:
        weights[members[0]] = 1.0
        return
    total = 0.0
    for place in range(r):
        total += q[place]
    for place in range(r):
        weights[members[place]] = (r + 1) * q[place] / total - 1.0


@kernel
def best_witness(state: State, arm: int, i: int, best: float) -> tuple[int, float]:
    """The arm with the largest min_j q^ij/√2 above `best`, lowest index, and that value; −1 if none."""
    scratch = state.scratch
    order, score = scratch.order[i], scratch.score[i]
    unit = state.scales[i, 0] * state.sweeps.clock[JUDGED] * math.sqrt(2.0)
    witness = -1
    for position in range(order.size):
        a = order[position]
        if a < 0:
            break
        if a == arm:
            continue
        if (score[a] - score[arm] + scratch.slack[i]) / unit < best:
            break  # min_j is at most the margin for j = 1
        value = math.inf
        for j in range(i):
            value = min(value, margin(state, a, arm, i, j))
        value /= math.sqrt(2.0)
        if value > best or (witness >= 0 and value == best and a < witness):
            witness = a
            best = value
    return witness, best


class LexElimCone(SweepPolicy):
    """LexElim-In's knowledge and promise, for a small part of its pulls: every arm is put on trial.

    Each sweep pulls every active arm once. Against each arm a gambler bets that it is not
    lex-optimal, and the arm leaves when his wealth reaches 1/delta. Given `tradeoff` at least the
    instance's least λ of Eq. (2), a unique lex-optimal arm, and rewards whose objective i is
    `noise_sd`[i]-sub-Gaussian given everything before, it ends with the lex-optimal arm with
    probability at least 1 − delta.

    `correlated` says how the noise of one reward vector's objectives depends on each other: False,
    independent; True, in any way; an (m, m) correlation matrix, jointly Gaussian with exactly that
    correlation. When another arm ties with the lex-optimal one on every objective it never ends:
    give runs a horizon. Unfinished, it recommends the candidate with the least evidence against it.
    The state takes O(K²) memory.
    """

    rules = Rules(choose, observe, finished)

    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        tradeoff: float,
        noise_sd: float | ArrayLike = 1.0,
        correlated: bool | ArrayLike = False,
    ) -> None:
        super().__init__(
            n_arms,
            n_objectives,
            delta=probability("delta", delta),
            tradeoff=at_least("tradeoff", tradeoff, 0.0),
            noise_sd=per_objective("noise_sd", noise_sd, n_objectives),
            correlated=dependence(correlated, n_objectives),
        )
        settings = self._settings
        scales = face_scales(
            settings["tradeoff"], spread(settings["noise_sd"], n_objectives), settings["correlated"]
        )
        self.state = State(
            untried(n_arms, n_objectives),
            first_sweep(n_arms, n_objectives),
            no_bets(n_arms, n_objectives),
            scratch(n_arms, n_objectives),
            scales,
            settings["tradeoff"],
            math.log(1.0 / settings["delta"]),
        )

    @property
    def evidence(self) -> Vector:
        """(K,) log E_b at the last judged sweep: an arm leaves at log(1/delta)."""
        return np.array([log_wealth(self.state.bets, arm) for arm in range(self.n_arms)])


def no_bets(n_arms: int, n_objectives: int) -> Bets:
    """Wealth 1 for every gambler."""
    return Bets(
        objective=np.zeros(n_arms, np.int64),
        witness=np.full(n_arms, -1, np.int64),
        weights=np.zeros((n_arms, n_arms)),
        gain=np.zeros(n_arms),
        variance=np.zeros(n_arms),
        witness_gain=np.zeros((n_arms, n_objectives)),
        witness_variance=np.zeros(n_arms),
        last_witness=np.full((n_arms, 2), -1, np.int64),
        bank=np.zeros(n_arms),
    )


def scratch(n_arms: int, n_objectives: int) -> Scratch:
    """Arms in order of index."""
    return Scratch(
        order=np.tile(np.arange(n_arms, dtype=np.int64), (n_objectives, 1)),
        score=np.zeros((n_objectives, n_arms)),
        slack=np.zeros(n_objectives),
        members=np.zeros((2, n_arms), np.int64),
        margins=np.zeros((2, n_arms)),
        size=np.zeros(2, np.int64),
    )


def dependence(correlated: Any, n_objectives: int) -> bool | list[list[float]]:
    """False, True, or a correlation matrix as lists."""
    if isinstance(correlated, (bool, np.bool_)):
        return bool(correlated)
    expected = f"correlated must be True, False or an ({n_objectives}, {n_objectives}) correlation matrix"
    try:
        matrix = np.array(correlated, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{expected}, got {correlated!r}") from None
    if matrix.ndim == 0:
        raise TypeError(f"{expected}, got {correlated!r}")
    if matrix.shape != (n_objectives, n_objectives):
        raise ValueError(f"{expected}, got shape {matrix.shape}")
    symmetric = np.isfinite(matrix).all() and np.array_equal(matrix, matrix.T)
    if not symmetric or not np.all(np.diag(matrix) == 1) or np.linalg.eigvalsh(matrix)[0] < -1e-12:
        raise ValueError(
            f"{expected}: symmetric, ones on the diagonal, positive semi-definite; got {matrix.tolist()}"
        )
    rows: list[list[float]] = matrix.tolist()
    return rows


def face_scales(tradeoff: float, noise_sd: Vector, correlated: bool | list[list[float]]) -> Vector:
    """(m, m) s_ij, the sub-Gaussian scale of r^i + λr^j for j < i; s_1 = σ_1 at (0, 0).

    >>> face_scales(2.0, spread(1.0, 2), False)[1, 0] ** 2, face_scales(2.0, spread(1.0, 2), True)[1, 0]
    (5.000000000000001, 3.0)
    """
    scales = np.zeros((noise_sd.size, noise_sd.size))
    scales[0, 0] = noise_sd[0]
    for i in range(1, noise_sd.size):
        for j in range(i):
            high, low = float(noise_sd[i]), tradeoff * float(noise_sd[j])
            if correlated is True:
                scales[i, j] = high + low
            else:
                cross = correlated[i][j] if correlated else 0.0
                scales[i, j] = math.sqrt(max(0.0, high * high + low * low + 2.0 * cross * high * low))
            if scales[i, j] == 0.0:
                raise ValueError(
                    f"objectives {i} and {j} cancel: their correlation leaves reward {i} + tradeoff·reward {j} "
                    "no noise; use correlated=True"
                )
    return scales
