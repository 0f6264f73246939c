"""LexElim-Phase: the knowledge of LexElim-Out, by averaged evidence of every witness.

In phase i an arm is on trial on the objectives up to i, by all the arms that reached their phases.
docs/proofs.md has the proof.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import checked_settings, each_objective
from lexbandits.evidence.mixture import log_add, log_mixture
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms, Rules, eliminate, fewest_pulls, record, untried
from lexbandits.policies.passes import (
    ACTIVE,
    END,
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

PRECISION = 2.0 * PRIOR  # R of the mixture


class State(NamedTuple):
    """The arms, their sweeps, and the objective of the outer loop."""

    arms: Arms
    sweeps: Sweeps
    phase: Counts  # (1,) the objective being settled; m when all are
    sizes: Counts  # (m,) |O_*(i)|
    frozen: Vector  # (K,) log of the evidence against each arm by witnesses that have left
    parting: Vector  # (K,) log E_b of an arm when it left
    noise_sd: Vector  # (m,)
    log_witnesses: float  # log N, over how many witnesses the evidence is averaged
    threshold: float  # log(|O_*(1)|/δ)


@kernel
def choose(state: State, pending: Counts) -> int:
    """Sweeps: the active arm with the fewest pulls, lowest index.

    With nothing in flight that is whose turn it is: nobody has fewer pulls, and nobody before as few.
    """
    turn = state.sweeps.clock[TURN]
    return int(turn) if pending[turn] == 0 else fewest_pulls(state.arms, pending)


@kernel
def finished(state: State) -> bool:
    """Every objective is settled."""
    return bool(state.phase[0] == state.sizes.size)


@kernel
def skip_settled(state: State) -> None:
    """Leave every phase that has no arm left to drop."""
    while not finished(state) and state.sweeps.clock[ACTIVE] <= state.sizes[state.phase[0]]:
        state.phase[0] += 1


@kernel
def against(state: State, arm: int, witness: int, objective: int) -> float:
    """G_l(b, a): the witness's lead over the arm on one objective, in units of its noise."""
    totals = state.sweeps.totals
    return float((totals[witness, objective] - totals[arm, objective]) / state.noise_sd[objective])


@kernel
def log_evidence(state: State, arm: int) -> float:
    """log E_b: the average of every witness's mixture on every objective up to this phase."""
    variance = 2.0 * state.sweeps.clock[JUDGED]
    evidence = float(state.frozen[arm])
    for objective in range(min(state.phase[0] + 1, state.sizes.size)):
        for witness in range(state.arms.active.size):
            if state.arms.active[witness] and witness != arm:
                worth = log_mixture(against(state, arm, witness, objective), variance, PRECISION)
                evidence = log_add(evidence, worth)
    return evidence - state.log_witnesses


@kernel
def cannot_convict(state: State, arm: int) -> bool:
    """Whether cheaper bounds already keep the evidence below the threshold.

    exp L is at most sqrt(R/(V+R)) times 2·exp(z²/2) where z > 0 and times 1 elsewhere.
    """
    level = state.threshold + state.log_witnesses - 1e-9
    if level > 600.0 or state.frozen[arm] >= level:
        return False
    spread = 2.0 * state.sweeps.clock[JUDGED] + PRECISION
    room = (math.exp(level) - math.exp(state.frozen[arm])) * math.sqrt(spread / PRECISION)
    for objective in range(state.phase[0] + 1):
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
    for objective in range(state.phase[0] + 1):
        for witness in range(state.arms.active.size):
            if state.arms.active[witness] and witness != arm:
                gain = against(state, arm, witness, objective)
                if best_witness < 0 or gain > most:
                    best_objective, best_witness, most = objective, witness, gain
    return best_objective, best_witness


@kernel
def freeze(state: State, witness: int) -> None:
    """Keep a leaving witness's evidence against the others at this sweep's value."""
    variance = 2.0 * state.sweeps.clock[JUDGED]
    for arm in range(state.arms.active.size):
        if state.arms.active[arm]:
            for objective in range(state.phase[0] + 1):
                worth = log_mixture(against(state, arm, witness, objective), variance, PRECISION)
                state.frozen[arm] = log_add(state.frozen[arm], worth)


@kernel
def drop_convicted(state: State) -> bool:
    """Drop every arm with E_b ≥ |O_*(1)|/δ, or all but the least if that is everyone; whether any left."""
    arms = state.arms
    convicted = np.zeros(arms.active.size, np.bool_)
    spared = -1
    acquitted = False
    for arm in range(arms.active.size):
        if not arms.active[arm]:
            continue
        if cannot_convict(state, arm):
            acquitted = True
            continue
        state.parting[arm] = log_evidence(state, arm)
        convicted[arm] = state.parting[arm] >= state.threshold
        if not convicted[arm]:
            acquitted = True
        elif spared < 0 or state.parting[arm] < state.parting[spared]:
            spared = arm
    if spared < 0:
        return False
    if not acquitted:
        convicted[spared] = False
    for arm in range(arms.active.size):
        if convicted[arm]:
            objective, rival = strongest(state, arm)
            arms.left[arm, 1] = objective
            arms.left[arm, 2] = rival
    for arm in range(arms.active.size):
        if convicted[arm]:
            eliminate(arms, arm, state.sweeps.clock[ISSUED], arms.left[arm, 1], arms.left[arm, 2])
            state.sweeps.clock[ACTIVE] -= 1
    for arm in range(arms.active.size):
        if convicted[arm]:
            freeze(state, arm)
    return True


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
        close_block(arms, state.sweeps)
        while not finished(state) and drop_convicted(state):
            skip_settled(state)
        open_block(arms, state.sweeps)


class LexElimPhase(SweepPolicy):
    """LexElim-Out's knowledge, for a small part of its pulls: averaged evidence instead of widths.

    Each sweep pulls every active arm once. In phase i an arm leaves when the average evidence
    against it, over all witnesses and the objectives up to i, reaches |O_*(1)|/delta. Given
    `optimal_set_sizes` = |O_*(i)| of the instance, the last one 1, and rewards whose objective i is
    `noise_sd`[i]-sub-Gaussian given everything before, it ends with the lex-optimal arm with
    probability at least 1 − delta. The objectives of one reward vector may depend on each other.
    Told sizes that are too small it may never end: give runs a horizon. Unfinished, it recommends
    the candidate with the least evidence against it.
    """

    rules = Rules(choose, observe, finished)

    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        optimal_set_sizes: ArrayLike,
        noise_sd: float | ArrayLike = 1.0,
    ) -> None:
        settings = checked_settings(
            n_arms, n_objectives, delta=delta, optimal_set_sizes=optimal_set_sizes, noise_sd=noise_sd
        )
        super().__init__(**settings)
        sizes = settings["optimal_set_sizes"]
        witnesses = (n_arms - 1) + sum(size - 1 for size in sizes[:-1])
        self.state = State(
            untried(n_arms, n_objectives),
            first_sweep(n_arms, n_objectives),
            phase=np.zeros(1, np.int64),
            sizes=np.array(sizes, np.int64),
            frozen=np.full(n_arms, -math.inf),
            parting=np.zeros(n_arms),
            noise_sd=each_objective(settings["noise_sd"], n_objectives),
            log_witnesses=math.log(max(1, witnesses)),
            threshold=math.log(sizes[0] / settings["delta"]),
        )
        skip_settled(self.state)

    @property
    def evidence(self) -> Vector:
        """(K,) log E_b at the last judged sweep, or when the arm left; it leaves at log(|O_*(1)|/delta)."""
        if not self.state.sweeps.clock[JUDGED] or self.n_arms == 1:
            return np.zeros(self.n_arms)
        active, parting = self.state.arms.active, self.state.parting
        return np.array(
            [log_evidence(self.state, a) if active[a] else parting[a] for a in range(self.n_arms)]
        )
