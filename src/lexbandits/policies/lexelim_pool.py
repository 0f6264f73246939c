"""LexElim-Pool: one pot against each arm, into which all its witnesses pay.

Every witness attacks on the objective where it is furthest ahead, and the coalition weighs them
together. From objective 3 on the selector is unknown; the smallest of the selectors' sums over the
whole history counts. docs/proofs.md has the proof. `LexElimPool(…, then="regret")` plays on as LexDMED.
"""

import inspect
import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry, kernel
from lexbandits._validation import each_objective
from lexbandits.evidence.mixture import log_mixture, mixture_ceiling
from lexbandits.evidence.tradeoff_cone import face_scales
from lexbandits.policies.base import NEVER, Arms, Rules, add_rewards, never, untried
from lexbandits.policies.plausibility import (
    Contest,
    choose_planned,
    count_planned,
    first_contest,
    plan_pass,
    planned,
)
from lexbandits.policies.policy import checked
from lexbandits.policies.pool_passes import (
    ACTIVE,
    END,
    EVALUATED,
    FIRST,
    PRIOR,
    BettingPolicy,
    Passes,
    choose_in_turn,
    close_block,
    drop_rejected,
    first_pass,
    observe_passes,
    open_block,
)

PRECISION = 1.5 * PRIOR  # R of the mixture


class State(NamedTuple):
    """The arms, their passes, the pots and bets against them, and the cone."""

    arms: Arms
    passes: Passes
    gains: Vector  # (K,) G_b, what the pot against each arm has won
    variances: Vector  # (K,) V_b
    weights: Vector  # (K, K) row b: the coalition against b on the current block
    fronts: Counts  # (K, K) on which objective each witness attacks b
    selectors: Vector  # (K, K, m(m−1)/2 − 1) D: what each selector's face has paid, for objectives 3..m
    scales: Vector  # (m, m) s_ij below the diagonal, s_1 at (0, 0)
    tradeoff: float
    threshold: float  # log(1/δ)


@kernel
def finished(state: State) -> bool:
    """One arm is left."""
    return bool(state.passes.clock[ACTIVE] <= 1)


@kernel
def settle(state: State, sums: Vector, passes: int) -> None:
    """Pay the coalition against each active arm from the sums of a block of `passes` passes."""
    weights, fronts, selectors = state.weights, state.fronts, state.selectors
    scales, tradeoff = state.scales, state.tradeoff
    for arm in range(sums.shape[0]):
        if not state.arms.active[arm]:
            continue
        gain = 0.0
        squares = 0.0
        for a in range(sums.shape[0]):
            weight = weights[arm, a]
            if weight > 0.0:
                squares += weight * weight
                i = fronts[arm, a]
                if i == 0:
                    gain += weight * (sums[a, 0] - sums[arm, 0]) / scales[0, 0]
                elif i == 1:
                    lead = (sums[a, 1] - sums[arm, 1]) + tradeoff * (sums[a, 0] - sums[arm, 0])
                    gain += weight * lead / scales[1, 0]
                else:
                    # Which j < i decides is unknown. Each face keeps its own total, and the pot has their
                    # minimum: so it is paid what the minimum grows by, which may be negative.
                    first = i * (i - 1) // 2 - 1
                    before = math.inf
                    after = math.inf
                    for j in range(i):
                        lead = (sums[a, i] - sums[arm, i]) + tradeoff * (sums[a, j] - sums[arm, j])
                        before = min(before, selectors[arm, a, first + j])
                        selectors[arm, a, first + j] += weight * lead / scales[i, j]
                        after = min(after, selectors[arm, a, first + j])
                    gain += after - before
        state.gains[arm] += gain
        state.variances[arm] += passes * (1.0 + squares)


@kernel
def cannot_reject(state: State, arm: int) -> bool:
    """Whether a bound without a logarithm already keeps the pot below the threshold."""
    return mixture_ceiling(state.gains[arm], state.variances[arm], PRECISION) < state.threshold


@kernel
def log_evidence(state: State, arm: int) -> float:
    """log E_b."""
    return log_mixture(state.gains[arm], state.variances[arm], PRECISION)


@kernel
def strongest(state: State, arm: int) -> tuple[int, int]:
    """The witness with the most weight and the objective on which it attacks."""
    rival = int(np.argmax(state.weights[arm]))
    return state.fronts[arm, rival], rival


@kernel
def weigh(weights: Vector, arm: int, best: int) -> None:
    """Turn row `arm` of margins q into the weights that maximise (Σ w q)/sqrt(1 + Σ w²).

    The members are the arms above the threshold c = Σq/(r+1) of themselves, and w = q/c − 1. From
    all who are ahead, those below the threshold leave until nobody does.
    """
    K = weights.shape[1]
    if weights[arm, best] <= 0.0:
        weights[arm] = 0.0
        weights[arm, best] = 1.0
        return
    # c rises as members leave, so whoever is below it now is below every later one: the order is no matter
    threshold = 0.0
    members = -1
    for _ in range(K + 1):  # a member or more leaves each time
        total = 0.0
        left = 0
        for a in range(K):
            if weights[arm, a] > threshold:
                total += weights[arm, a]
                left += 1
        if left == members:
            break
        members = left
        threshold = total / (left + 1)
    for a in range(K):
        if weights[arm, a] > threshold:
            weights[arm, a] = (members + 1) * weights[arm, a] / total - 1.0
        else:
            weights[arm, a] = 0.0


@kernel
def place_bets(state: State) -> None:
    """For every active arm: each witness's best objective, and the coalition of them all."""
    active, totals, n = state.arms.active, state.passes.totals, state.passes.clock[EVALUATED]
    weights, fronts, scales, tradeoff = state.weights, state.fronts, state.scales, state.tradeoff
    for arm in range(active.size):
        if not active[arm]:
            continue
        best = -1
        for a in range(active.size):
            weights[arm, a] = 0.0
            if not active[a] or a == arm:
                continue
            # By totals of all blocks before: a bet must not depend on the block that pays it.
            front = 0
            furthest = (totals[a, 0] - totals[arm, 0]) / scales[0, 0] / n
            for i in range(1, totals.shape[1]):
                least = math.inf
                for j in range(i):
                    lead = (totals[a, i] - totals[arm, i]) + tradeoff * (totals[a, j] - totals[arm, j])
                    least = min(least, lead / scales[i, j] / n)
                if least > furthest:
                    furthest = least
                    front = i
            fronts[arm, a] = front
            weights[arm, a] = furthest
            if best < 0 or furthest > weights[arm, best]:
                best = a
        weigh(weights, arm, best)


@kernel
def evaluate(state: State) -> None:
    """Settle the bets on the block, drop the arms that they reject, place new ones."""
    clock = state.passes.clock
    previous = clock[EVALUATED]
    sums = close_block(state.arms, state.passes)
    # Bets are placed on what earlier blocks have shown, so nothing was staked on the first block.
    if previous >= FIRST:
        settle(state, sums, clock[EVALUATED] - previous)
        drop_rejected(state, cannot_reject, log_evidence, strongest)
    open_block(state.arms, state.passes)
    if clock[ACTIVE] > 1:
        place_bets(state)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Add to the arm's block; evaluate every block that is complete."""
    observe_passes(state, arm, 1, reward, finished, evaluate)


# --- then="regret": certify, then go on as LexDMED


class PlayingState(NamedTuple):
    """What `State` has, and the contest that follows: its arms are the same arrays, with all data."""

    arms: Arms
    passes: Passes
    gains: Vector
    variances: Vector
    weights: Vector
    fronts: Counts
    selectors: Vector
    scales: Vector
    tradeoff: float
    threshold: float
    contest: Contest
    most_passes: int


@kernel
def is_playing(state: PlayingState) -> bool:
    """Whether the certificate has come, or its time is over."""
    return bool(state.passes.clock[ACTIVE] <= 1 or state.passes.clock[EVALUATED] >= state.most_passes)


@kernel
def observe_sum_then(state: PlayingState, arm: int, count: int, sums: Vector) -> None:
    """Add to the arm's block; once that is over, to the plan of the contest."""
    contest = state.contest
    if not is_playing(state):
        observe_passes(state, arm, count, sums, is_playing, evaluate)
        if not is_playing(state):
            return
        state.passes.clock[END] = NEVER  # nothing waits for a block any more
        contest.wanted[:] = 0
        contest.lacking[0] = contest.wanted[arm] = 1
        count = 1  # which completes the plan, and the contest begins
    else:
        add_rewards(state.arms, arm, count, sums)
    count_planned(contest, arm, count, plan_pass)


@kernel
def observe_then(state: PlayingState, arm: int, reward: Vector) -> None:
    """Fold in one reward."""
    observe_sum_then(state, arm, 1, reward)


@kernel
def choose_then(state: PlayingState, pending: Counts) -> int:
    """The active arms in turn, then the arms that are plausible."""
    return choose_planned(state.contest, pending) if is_playing(state) else choose_in_turn(state, pending)


@kernel
def batch_then(state: PlayingState, counts: Counts) -> None:
    """What active arms lack in the current block; then what the contest has planned."""
    if is_playing(state):
        planned(state.contest, counts)
    else:
        for arm in range(counts.size):
            missing = state.passes.clock[END] - state.arms.pulls[arm]
            counts[arm] = missing if state.arms.active[arm] else 0


class LexElimPool(BettingPolicy):
    """LexElim-In's knowledge, the trade-off λ of Eq. (2), for a small part of its pulls.

    Against each arm there is one pot: a gambler bets that the arm is not lex-optimal. Every other arm
    pays into it on the objective where it is furthest ahead, and the arm leaves when the pot has
    1/delta. For a unique lex-optimal arm: it ends with that arm with probability at least 1 − delta.

    Rewards that come late do no harm if those of different pulls are independent, or if they are told
    pass by pass, and if delay and loss do not depend on the values. When another arm ties with the
    lex-optimal one on every objective it never ends: give runs a horizon. Unfinished, it recommends the
    candidate with the least evidence against it. Its state takes O(K²m²) memory.

    With then="regret" it goes on as `LexDMED` on all data once it has its certificate, so that a wrong one,
    which has probability at most delta, does not cost linear regret. It then never finishes. The certificate
    names `certified_arm` and stays what it is; `leader` is the arm LexDMED favours at the time. Where two
    arms may have equal means on every objective give it `most_passes`, after which it goes on without a
    certificate.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        tradeoff: λ, at least the instance's least.
        noise_sd: sub-Gaussian scale given everything before, one or per objective.
        correlated: how the objectives of one reward vector depend on each other. False: not at all; True: in
            any way, which is always safe and costs some pulls; or the correlation matrix of jointly
            Gaussian noise, for which `noise_sd` may still be an upper bound.
        then: "stop" with the certificate, or "regret": go on as LexDMED.
        most_passes: with then="regret", the passes after which it goes on in any case.
        caution, tradeoff_slack: with then="regret", those of LexDMED.

    >>> from lexbandits import paper_instance, simulate
    >>> instance = paper_instance(10)
    >>> policy = LexElimPool(10, 3, delta=0.01, tradeoff=2, noise_sd=0.32)
    >>> run = simulate(policy, instance, horizon=100_000, seed=0)
    >>> run.recommendation == instance.lex_optimal_arm, run.finished
    (True, True)
    """

    rules = Rules(choose_in_turn, observe, finished)

    def __new__(cls, *_: Any, then: str = "stop", **__: Any) -> Self:
        """With then="regret" a policy that plays on."""
        if cls is LexElimPool and then == "regret":
            cls = PlayingPool  # type: ignore[assignment]
        return super().__new__(cls)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        tradeoff: float,
        noise_sd: ArrayLike = 1.0,
        correlated: bool | ArrayLike = False,
        then: str = "stop",
        most_passes: int | None = None,
        caution: float = 0.5,
        tradeoff_slack: float = 1.1,
    ) -> None:
        if then == "stop":  # results stored before there was a choice do not know these
            if most_passes is not None:
                raise ValueError('most_passes goes with then="regret": say it too, or leave most_passes out')
            for name in ("then", "most_passes", "caution", "tradeoff_slack"):
                del self._settings[name]
        unknown = max(0, n_objectives * (n_objectives - 1) // 2 - 1)
        self.state = State(
            untried(n_arms, n_objectives),
            first_pass(n_arms, n_objectives),
            gains=np.zeros(n_arms),
            variances=np.zeros(n_arms),
            weights=np.zeros((n_arms, n_arms)),
            fronts=np.zeros((n_arms, n_arms), np.int64),
            selectors=np.zeros((n_arms, n_arms, unknown)),
            scales=face_scales(tradeoff, each_objective(noise_sd, n_objectives), correlated),
            tradeoff=tradeoff,
            threshold=math.log(1.0 / delta),
        )
        if then == "regret":
            contest = first_contest(
                self.state.arms,
                tradeoff=tradeoff_slack * tradeoff,
                noise_sd=noise_sd,
                first=FIRST,
                caution=caution,
            )
            before, most = self.state._asdict(), most_passes or NEVER
            self.state = PlayingState(**before, contest=contest, most_passes=most)

    # __new__ would hide it from those who ask what the class takes
    __signature__ = inspect.Signature(list(inspect.signature(__init__).parameters.values())[1:])

    @property
    def certified_arm(self) -> int | None:
        """The only candidate that is left; None before that."""
        candidates = self.candidates
        return candidates[0] if len(candidates) == 1 else None

    @property
    def leader(self) -> int:
        """The arm to play if one must be played now: the recommendation, or LexDMED's leader."""
        return self.recommendation

    @property
    def evidence(self) -> Vector:
        """(K,) log E_b at the last evaluated pass: an arm leaves at log(1/delta)."""
        return np.array([entry(log_evidence)(self.state, arm) for arm in range(self.n_arms)])


class PlayingPool(LexElimPool):
    """What `LexElimPool(…, then="regret")` makes."""

    rules = Rules(choose_then, observe_then, never, batch=batch_then, observe_sum=observe_sum_then)
    round_robin = False

    @property
    def name(self) -> str:
        """The name of the class that makes it."""
        return "LexElimPool"

    @property
    def leader(self) -> int:
        """LexDMED's leader; the recommendation before there is one."""
        leader = int(self.state.contest.leader[0])
        return leader if leader >= 0 else super().leader
