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
from lexbandits.policies.base import Arms, Counts, Rules, Vector, eliminate, fewest_pulls, record, untried
from lexbandits.policies.checks import at_least, per_objective, probability, spread
from lexbandits.policies.faces import dependence, face_scales
from lexbandits.policies.sweeps import (
    ACTIVE,
    END,
    FIRST,
    ISSUED,
    JUDGED,
    MISSING,
    PRIOR,
    SLOT,
    TURN,
    SweepPolicy,
    Sweeps,
    close_block,
    enlist,
    find_turn,
    first_sweep,
    open_block,
)

PRECISION = 1.5 * PRIOR  # R of the mixture

# A compiled call counts references to every array it is handed, so the state packs them into few.
# Columns of State.ledger: G_b and V_b of the coalitions, V'_b of the last witness, the log wealth won
# with earlier ones, and from SELECTORS on G_bj of the last witness for every j.
GAIN, VARIANCE, WITNESS_VARIANCE, BANK, SELECTORS = range(5)
# Columns of State.stakes: the objective of the bet's face (0 and 1 are coalitions', later ones a
# witness's), whom it names, and whom and which objective the last witness bet named (−1: none yet).
OBJECTIVE, WITNESS, LAST_WITNESS, LAST_OBJECTIVE = range(4)


class State(NamedTuple):
    """The arms, their sweeps, the bets against them, and the cone."""

    arms: Arms
    sweeps: Sweeps
    ledger: Vector  # (K, 4 + m) what the past paid against each arm
    stakes: Counts  # (K, 4) what is staked against it on the current block
    weights: Vector  # (K, K) row b: the coalition against b
    lists: Counts  # (m + 2, K) active arms by score on each face searched; two coalitions in the making
    work: Vector  # (m + 2, K) those scores; the members' margins
    scales: Vector  # (m, m) s_ij below the diagonal, s_1 at (0, 0)
    tradeoff: float
    threshold: float  # log(1/δ)


@kernel
def choose(state: State, pending: Counts) -> int:
    """Sweeps: the active arm with the fewest pulls, lowest index.

    With nothing in flight that is whose turn it is: nobody has fewer pulls, and nobody before as few.
    """
    turn = state.sweeps.clock[TURN]
    return int(turn) if pending[turn] == 0 else fewest_pulls(state.arms, pending)


@kernel
def finished(state: State) -> bool:
    """One arm is left."""
    return bool(state.sweeps.clock[ACTIVE] <= 1)


@kernel
def witness_wealth(ledger: Vector, stakes: Counts, arm: int) -> float:
    """min_j L(G_bj, V'_b): the selector is unknown, so the worst one counts; 0 before the first witness."""
    if stakes[arm, LAST_WITNESS] < 0:
        return 0.0
    least = math.inf
    for j in range(stakes[arm, LAST_OBJECTIVE]):
        worth = log_mixture(ledger[arm, SELECTORS + j], ledger[arm, WITNESS_VARIANCE], PRECISION)
        least = min(least, worth)
    return least


@kernel
def log_wealth(ledger: Vector, stakes: Counts, arm: int) -> float:
    """log E_b: the bank, the coalitions' mixture and the current witness's."""
    coalitions = log_mixture(ledger[arm, GAIN], ledger[arm, VARIANCE], PRECISION)
    return float(ledger[arm, BANK]) + coalitions + witness_wealth(ledger, stakes, arm)


@kernel
def settle(state: State, sums: Vector, sweeps: int) -> None:
    """Pay the bet against each active arm from the sums of a block of `sweeps` sweeps."""
    ledger, stakes, weights = state.ledger, state.stakes, state.weights
    scales, tradeoff = state.scales, state.tradeoff
    for arm in range(sums.shape[0]):
        if not state.arms.active[arm]:
            continue
        i = stakes[arm, OBJECTIVE]
        a = stakes[arm, WITNESS]
        if i < 2:
            gain = 0.0
            squares = 0.0
            for member in range(sums.shape[0]):
                weight = weights[arm, member]
                if weight > 0.0:
                    if i == 0:
                        gain += weight * sums[member, 0]
                    else:
                        gain += weight * (sums[member, 1] + tradeoff * sums[member, 0])
                    squares += weight * weight
            gain -= sums[arm, 0] if i == 0 else sums[arm, 1] + tradeoff * sums[arm, 0]
            ledger[arm, GAIN] += gain / scales[i, 0]
            ledger[arm, VARIANCE] += sweeps * (1.0 + squares)
            continue
        if stakes[arm, LAST_WITNESS] != a or stakes[arm, LAST_OBJECTIVE] != i:
            ledger[arm, BANK] += witness_wealth(ledger, stakes, arm)
            ledger[arm, WITNESS_VARIANCE] = 0.0
            for j in range(SELECTORS, ledger.shape[1]):
                ledger[arm, j] = 0.0
            stakes[arm, LAST_WITNESS] = a
            stakes[arm, LAST_OBJECTIVE] = i
        for j in range(i):
            gain = (sums[a, i] + tradeoff * sums[a, j]) - (sums[arm, i] + tradeoff * sums[arm, j])
            ledger[arm, SELECTORS + j] += gain / scales[i, j]
        ledger[arm, WITNESS_VARIANCE] += 2.0 * sweeps


@kernel
def strongest(stakes: Counts, weights: Vector, arm: int) -> int:
    """The largest weight of the coalition against `arm`, lowest index, or the witness."""
    if stakes[arm, OBJECTIVE] >= 2:
        return int(stakes[arm, WITNESS])
    rival = 0
    for a in range(weights.shape[1]):
        if weights[arm, a] > weights[arm, rival]:
            rival = a
    return rival


@kernel
def drop_convicted(state: State) -> None:
    """Drop every arm whose gambler has 1/δ; if that is everyone, the one with the least stays."""
    active, ledger, stakes = state.arms.active, state.ledger, state.stakes
    convicted = np.zeros(active.size, np.bool_)
    spared = -1
    least = math.inf
    acquitted = False
    for arm in range(active.size):
        if not active[arm]:
            continue
        # bounds without logarithms settle most cases
        ceiling = mixture_ceiling(ledger[arm, GAIN], ledger[arm, VARIANCE], PRECISION)
        if stakes[arm, LAST_WITNESS] >= 0:
            lowest = math.inf
            for j in range(stakes[arm, LAST_OBJECTIVE]):
                gain = ledger[arm, SELECTORS + j]
                lowest = min(lowest, mixture_ceiling(gain, ledger[arm, WITNESS_VARIANCE], PRECISION))
            ceiling += lowest
        if ledger[arm, BANK] + ceiling < state.threshold:
            acquitted = True
            continue
        wealth = log_wealth(ledger, stakes, arm)
        convicted[arm] = wealth >= state.threshold
        if not convicted[arm]:
            acquitted = True
        elif spared < 0 or wealth < least:
            spared = arm
            least = wealth
    if spared < 0:
        return
    for arm in range(active.size):
        if convicted[arm] and (acquitted or arm != spared):
            rival = strongest(stakes, state.weights, arm)
            eliminate(state.arms, arm, state.sweeps.clock[ISSUED], stakes[arm, OBJECTIVE], rival)


@kernel
def rank_arms(active: Any, totals: Vector, lists: Counts, work: Vector, tradeoff: float) -> float:
    """Sort the active arms by their score on each face that a search walks down.

    Scores order the margins of all pairs up to round-off; the searches compare true margins. Returns
    more than round-off can move a difference of scores. Insertion into the last order: little has
    moved.
    """
    largest = 0.0
    for i in range(totals.shape[1]):
        kept = 0
        for position in range(active.size):
            arm = lists[i, position]
            if arm < 0:
                break
            if not active[arm]:
                continue
            score = totals[arm, 0] if i == 0 else totals[arm, i] + tradeoff * totals[arm, 0]
            work[i, arm] = score
            largest = max(largest, abs(totals[arm, i]))
            place = kept
            while place > 0 and work[i, lists[i, place - 1]] < score:
                lists[i, place] = lists[i, place - 1]
                place -= 1
            lists[i, place] = arm
            kept += 1
        if kept < active.size:
            lists[i, kept] = -1
    return 1e-13 * (1.0 + tradeoff) * largest


@kernel
def margin(
    totals: Vector, a: int, b: int, i: int, j: int, scale: float, sweeps: int, tradeoff: float
) -> float:
    """q = (ĝ_ij(a) − ĝ_ij(b))/s_ij from the judged sweeps."""
    lead = (totals[a, i] - totals[b, i]) + tradeoff * (totals[a, j] - totals[b, j])
    return float(lead / scale / sweeps)


@kernel
def form_coalition(
    totals: Vector,
    lists: Counts,
    work: Vector,
    arm: int,
    face: int,
    scale: float,
    sweeps: int,
    tradeoff: float,
    slack: float,
) -> tuple[float, int]:
    """The value and the size of the best coalition against `arm` on face 1 or 21, listed by margin.

    The weights that maximise (Σ w q)/sqrt(1 + Σ w²) lie on the arms with the largest q. Their
    threshold S/(r+1) only rises while arms join, so the walk down the scores stops at the first arm
    that cannot reach it.
    """
    row = totals.shape[1] + face
    unit = scale * sweeps
    found = 0
    total = 0.0
    for position in range(lists.shape[1]):
        a = lists[face, position]
        if a < 0:
            break
        if a == arm:
            continue
        if found > 0:
            bound = (work[face, a] - work[face, arm] + slack) / unit
            if work[row, 0] > 0.0:
                if bound * (found + 1) < total * (1.0 - 1e-12):
                    break
            elif bound < work[row, 0]:
                break
        if face == 0:
            q = (totals[a, 0] - totals[arm, 0]) / scale / sweeps
        else:
            q = margin(totals, a, arm, 1, 0, scale, sweeps, tradeoff)
        place = found
        while place > 0 and (
            work[row, place - 1] < q or (work[row, place - 1] == q and lists[row, place - 1] > a)
        ):
            work[row, place] = work[row, place - 1]
            lists[row, place] = lists[row, place - 1]
            place -= 1
        work[row, place] = q
        lists[row, place] = a
        found += 1
        total += q
    total = work[row, 0]
    if total <= 0.0:
        return total / math.sqrt(2.0), 1
    squares = total * total
    r = 1
    while r < found and (r + 1) * work[row, r] > total:
        total += work[row, r]
        squares += work[row, r] * work[row, r]
        r += 1
    return math.sqrt(max(0.0, squares - total * total / (r + 1))), r


@kernel
def weigh_coalition(lists: Counts, work: Vector, weights: Vector, arm: int, face: int, size: int) -> None:
    """w_a = (r+1)·q_a/S − 1 on the r arms of the coalition; 1 on the best arm when none is ahead."""
    row = lists.shape[0] - 2 + face
    for a in range(weights.shape[1]):
        weights[arm, a] = 0.0
    if work[row, 0] <= 0.0:
        weights[arm, lists[row, 0]] = 1.0
        return
    total = 0.0
    for place in range(size):
        total += work[row, place]
    for place in range(size):
        weights[arm, lists[row, place]] = (size + 1) * work[row, place] / total - 1.0


@kernel
def best_witness(
    totals: Vector,
    lists: Counts,
    work: Vector,
    scales: Vector,
    arm: int,
    i: int,
    sweeps: int,
    tradeoff: float,
    slack: float,
    best: float,
) -> tuple[int, float]:
    """The arm with the largest min_j q^ij/√2 above `best`, lowest index, and that value; −1 if none."""
    unit = scales[i, 0] * sweeps * math.sqrt(2.0)
    witness = -1
    for position in range(lists.shape[1]):
        a = lists[i, position]
        if a < 0:
            break
        if a == arm:
            continue
        if (work[i, a] - work[i, arm] + slack) / unit < best:
            break  # min_j is at most the margin for the first j
        value = math.inf
        for j in range(i):
            value = min(value, margin(totals, a, arm, i, j, scales[i, j], sweeps, tradeoff))
        value /= math.sqrt(2.0)
        if value > best or (witness >= 0 and value == best and a < witness):
            witness = a
            best = value
    return witness, best


@kernel
def place_bets(state: State) -> None:
    """For every active arm the coalition or witness with the largest estimated margin."""
    active, totals, n = state.arms.active, state.sweeps.totals, state.sweeps.clock[JUDGED]
    lists, work, stakes = state.lists, state.work, state.stakes
    scales, tradeoff, m = state.scales, state.tradeoff, totals.shape[1]
    slack = rank_arms(active, totals, lists, work, tradeoff)
    for arm in range(active.size):
        if not active[arm]:
            continue
        best, size = form_coalition(totals, lists, work, arm, 0, scales[0, 0], n, tradeoff, slack)
        chosen = 0
        if m > 1:
            value, other = form_coalition(totals, lists, work, arm, 1, scales[1, 0], n, tradeoff, slack)
            if value > best:
                best = value
                size = other
                chosen = 1
        witness = -1
        for i in range(2, m):
            found, value = best_witness(totals, lists, work, scales, arm, i, n, tradeoff, slack, best)
            if found >= 0:
                witness = found
                best = value
                chosen = i
        stakes[arm, OBJECTIVE] = chosen
        stakes[arm, WITNESS] = witness
        if witness < 0:
            weigh_coalition(lists, work, state.weights, arm, chosen, size)


@kernel
def judge(state: State) -> None:
    """At a judged sweep: settle the bets on the block, drop whom they convict, place new ones."""
    clock = state.sweeps.clock
    previous = clock[JUDGED]
    sums = close_block(state.arms, state.sweeps)
    if previous >= FIRST:
        settle(state, sums, clock[JUDGED] - previous)
        drop_convicted(state)
    open_block(state.arms, state.sweeps)
    if clock[ACTIVE] > 1:
        place_bets(state)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Add to the arm's block; judge every block that is complete."""
    arms, clock = state.arms, state.sweeps.clock
    if finished(state) or not arms.active[arm]:
        record(arms, arm, reward)
        return
    sweep = arms.pulls[arm]
    if sweep >= clock[END] or clock[TURN] != arm:
        enlist(arms, state.sweeps, arm, reward)
    else:
        # `enlist` for an arm in its turn, written out: handing the state on takes a fifth of the time
        arms.told[0] += 1
        arms.pulls[arm] = sweep + 1
        for i in range(reward.size):
            state.sweeps.waiting[clock[SLOT], arm, i] += reward[i]
            arms.sums[arm, i] += reward[i]
            arms.means[arm, i] = arms.sums[arm, i] / (sweep + 1)
        if sweep + 1 == clock[END]:
            clock[MISSING] -= 1
        following = arm + 1
        while following < arms.pulls.size and not (arms.active[following] and arms.pulls[following] == sweep):
            following += 1
        if following < arms.pulls.size:
            clock[TURN] = following
        else:
            find_turn(arms, clock)
    while clock[MISSING] == 0 and not finished(state):
        judge(state)


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
            ledger=np.zeros((n_arms, SELECTORS + n_objectives)),
            stakes=np.tile(np.array([0, -1, -1, -1], np.int64), (n_arms, 1)),
            weights=np.zeros((n_arms, n_arms)),
            lists=np.tile(np.arange(n_arms, dtype=np.int64), (n_objectives + 2, 1)),
            work=np.zeros((n_objectives + 2, n_arms)),
            scales=scales,
            tradeoff=settings["tradeoff"],
            threshold=math.log(1.0 / settings["delta"]),
        )

    @property
    def evidence(self) -> Vector:
        """(K,) log E_b at the last judged sweep: an arm leaves at log(1/delta)."""
        ledger, stakes = self.state.ledger, self.state.stakes
        return np.array([log_wealth(ledger, stakes, arm) for arm in range(self.n_arms)])
