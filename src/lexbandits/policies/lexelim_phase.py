"""LexElim-Phase: the knowledge of LexElim-Out, by averaged evidence of every witness.

In phase i an arm is on trial on the objectives up to i, by all the arms that reached their phases.
docs/proofs.md has the proof.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry, kernel
from lexbandits._validation import each_objective
from lexbandits.evidence.mixture import log_add, log_mixture
from lexbandits.policies.base import Arms, Rules, untried
from lexbandits.policies.filters import all_settled, skip_settled
from lexbandits.policies.policy import checked
from lexbandits.policies.pool_passes import (
    EVALUATED,
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

PRECISION = 2.0 * PRIOR  # R of the mixture


class State(NamedTuple):
    """The arms, their passes, and the objective of the outer loop."""

    arms: Arms
    passes: Passes
    layer: Counts  # (1,) the objective being settled; m when all are
    sizes: Counts  # (m,) |O_*(i)|
    frozen: Vector  # (K,) log of the evidence against each arm by witnesses that have left
    parting: Vector  # (K,) log E_b of an arm when it left
    noise_sd: Vector  # (m,)
    log_witnesses: float  # log N, over how many witnesses the evidence is averaged
    threshold: float  # log(|O_*(1)|/δ)


@kernel
def against(state: State, arm: int, witness: int, objective: int) -> float:
    """G_l(b, a): the witness's lead over the arm on one objective, in units of its noise."""
    totals = state.passes.totals
    return float((totals[witness, objective] - totals[arm, objective]) / state.noise_sd[objective])


@kernel
def log_evidence(state: State, arm: int) -> float:
    """log E_b: the average of every witness's mixture on every objective up to this phase."""
    variance = 2.0 * state.passes.clock[EVALUATED]
    evidence = float(state.frozen[arm])
    for objective in range(min(state.layer[0] + 1, state.sizes.size)):
        for witness in range(state.arms.active.size):
            if state.arms.active[witness] and witness != arm:
                worth = log_mixture(against(state, arm, witness, objective), variance, PRECISION)
                evidence = log_add(evidence, worth)
    return evidence - state.log_witnesses


@kernel
def noted_evidence(state: State, arm: int) -> float:
    """log E_b, kept in case the arm leaves."""
    state.parting[arm] = log_evidence(state, arm)
    return float(state.parting[arm])


@kernel
def cannot_reject(state: State, arm: int) -> bool:
    """Whether cheaper bounds already keep the evidence below the threshold.

    exp L is at most sqrt(R/(V+R)) times 2·exp(z²/2) where z > 0 and times 1 elsewhere.
    """
    # Sums of exponentials: below the level by a hair, for their rounding, and not at all where they overflow.
    level = state.threshold + state.log_witnesses - 1e-9
    if level > 600.0 or state.frozen[arm] >= level:
        return False
    spread = 2.0 * state.passes.clock[EVALUATED] + PRECISION
    room = (math.exp(level) - math.exp(state.frozen[arm])) * math.sqrt(spread / PRECISION)
    for objective in range(state.layer[0] + 1):
        for witness in range(state.arms.active.size):
            if state.arms.active[witness] and witness != arm:
                gain = against(state, arm, witness, objective)
                if gain <= 0.0:
                    room -= 1.0
                else:
                    exponent = 0.5 * gain * gain / spread
                    if exponent > level:
                        return False
                    room -= 2.0 * math.exp(exponent)
                if room <= 0.0:
                    return False
    return True


@kernel
def strongest(state: State, arm: int) -> tuple[int, int]:
    """The objective and the witness with the largest share in the evidence, first of equals."""
    best_objective, best_witness = 0, -1
    most = -math.inf
    for objective in range(state.layer[0] + 1):
        for witness in range(state.arms.active.size):
            if state.arms.active[witness] and witness != arm:
                gain = against(state, arm, witness, objective)
                if best_witness < 0 or gain > most:
                    best_objective, best_witness, most = objective, witness, gain
    return best_objective, best_witness


@kernel
def freeze(state: State, witness: int) -> None:
    """Keep a leaving witness's evidence against the others at this pass's value."""
    # The average is over a number of witnesses that was fixed beforehand. One that leaves keeps its share at
    # the value of now: a process that stands still is a supermartingale, too.
    variance = 2.0 * state.passes.clock[EVALUATED]
    for arm in range(state.arms.active.size):
        if state.arms.active[arm]:
            for objective in range(state.layer[0] + 1):
                worth = log_mixture(against(state, arm, witness, objective), variance, PRECISION)
                state.frozen[arm] = log_add(state.frozen[arm], worth)


@kernel
def evaluate(state: State) -> None:
    """Drop the arms that the evidence rejects, and go on to the next phase, until nothing changes."""
    close_block(state.arms, state.passes)
    dropping = True
    while dropping and not all_settled(state):
        rejected = drop_rejected(state, cannot_reject, noted_evidence, strongest)
        dropping = bool(rejected.any())
        for arm in range(rejected.size):
            if rejected[arm]:
                freeze(state, arm)
        skip_settled(state)
    open_block(state.arms, state.passes)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Add to the arm's block; evaluate every block that is complete."""
    observe_passes(state, arm, 1, reward, all_settled, evaluate)


class LexElimPhase(BettingPolicy):
    """LexElim-Out's knowledge, for a small part of its pulls: averaged evidence instead of widths.

    Each pass pulls every active arm once. In phase i an arm leaves when the average evidence
    against it, over all witnesses and the objectives up to i, reaches |O_*(1)|/delta. It ends with the
    lex-optimal arm with probability at least 1 − delta. The objectives of one reward vector may depend on
    each other. Rewards that come late do no harm if those of different pulls are independent, or if they
    are told pass by pass, and if delay and loss do not depend on the values.
    Told sizes that are too small it may never end: give runs a horizon. Unfinished, it recommends
    the candidate with the least evidence against it.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        optimal_set_sizes: |O_*(i)| of the instance, per objective, the last one 1.
        noise_sd: sub-Gaussian scale given everything before, one or per objective.

    >>> from lexbandits import paper_instance, simulate
    >>> instance = paper_instance(10)
    >>> policy = LexElimPhase(10, 3, delta=0.01, optimal_set_sizes=instance.optimal_set_sizes, noise_sd=0.32)
    >>> run = simulate(policy, instance, horizon=100_000, seed=0)
    >>> run.recommendation == instance.lex_optimal_arm, run.finished
    (True, True)
    """

    rules = Rules(choose_in_turn, observe, all_settled)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        optimal_set_sizes: ArrayLike,
        noise_sd: ArrayLike = 1.0,
    ) -> None:
        sizes = np.array(optimal_set_sizes)
        witnesses = int((n_arms - 1) + (sizes[:-1] - 1).sum())
        self.state = State(
            untried(n_arms, n_objectives),
            first_pass(n_arms, n_objectives),
            layer=np.zeros(1, np.int64),
            sizes=sizes,
            frozen=np.full(n_arms, -math.inf),
            parting=np.zeros(n_arms),
            noise_sd=each_objective(noise_sd, n_objectives),
            log_witnesses=math.log(max(1, witnesses)),
            threshold=math.log(sizes[0] / delta),
        )
        skip_settled(self.state)

    @property
    def evidence(self) -> Vector:
        """(K,) log E_b at the last evaluated pass, or when the arm left; it leaves at log(|O_*(1)|/delta)."""
        if not self.state.passes.clock[EVALUATED] or self.n_arms == 1:
            return np.zeros(self.n_arms)
        active, parting = self.state.arms.active, self.state.parting
        return np.array(
            [entry(log_evidence)(self.state, a) if active[a] else parting[a] for a in range(self.n_arms)]
        )
