"""LexElim-Tol: no trade-off, no set sizes and no noise scale, only the differences that do not matter.

Arms are measured in passes and compared by their differences in common passes, whatever the noise.
Objective by objective: whoever is beaten by more than the tolerance is out; an objective is settled
when all pairs left are close. Facts about pairs are in facts.py, the earlier end with an answer that
is already certain in proof.py, results that come early or late in places.py; docs/proofs.md proves it.
"""

import copy
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import per_objective, probability, real, spread, whole
from lexbandits.evidence.interval import arm_interval, kind_at, pair_interval
from lexbandits.evidence.kinds import (
    BOUNDED,
    EXACT,
    FINITE_VARIANCE,
    GAUSSIAN,
    WATCHED,
    check_rewards,
    checked_kinds,
    kind_rows,
    repetition_warning,
    spread_kinds,
)
from lexbandits.jit import apart, kernel
from lexbandits.policies.base import Rules, untried
from lexbandits.policies.facts import (
    ASKED,
    BY_PROOF,
    BY_RULE,
    CANDIDATE,
    CONTRADICTION,
    FILLED,
    HIGH,
    HIGHEST,
    LACKS,
    LEVEL,
    LOW,
    NEXT,
    OFFERED,
    OVER,
    PASS,
    POSITION,
    PROVE,
    RESULTS,
    STOP,
    TURN,
    State,
    beats,
    close,
    fold_values,
    is_open,
    look,
    look_at_arm,
    meets,
    misses,
    moments,
    not_worse,
    pair_of,
    paired,
    survey,
)
from lexbandits.policies.places import Place, Waiting, checked_places, told_numbers
from lexbandits.policies.policy import Policy
from lexbandits.policies.proof import best_by_differences, look_for, plug_in, prove

FIRST_JUDGED = 5  # passes; with an exact objective the first pass is judged
FIRST_PROOF = 10  # passes before there is a candidate
RULE_EVERY = 5  # once there is one, every fifth pass asks as if there were none
MOST_BYTES = 1 << 30  # for all pairs


@kernel
def next_judged(number: int) -> int:
    """The pass after which pairs are looked at again."""
    return number + max(1, number // 100)


@apart
def look_around(state: State) -> None:
    """Look at what the current objective still needs to know of the survivors."""
    active, lows, limits = state.arms.active, state.lows, state.limits
    i = state.order[state.clock[POSITION]]
    for a in range(active.size):
        if active[a] and state.must[i]:
            if not meets(state.bounds, limits, i, a):
                look_at_arm(state, i, a)
        elif active[a]:
            for b in range(a + 1, active.size):
                if active[b] and not close(lows, limits, i, a, b):
                    look(state, i, a, b)


@kernel
def settle(state: State, looked: int) -> None:
    """Drop, and look at the next objective, until nothing changes; `looked` at this position already."""
    while True:
        survey(state)
        if state.clock[OVER] == 1 or state.clock[POSITION] == looked:
            return
        looked = state.clock[POSITION]
        look_around(state)


@apart
def judge(state: State) -> None:
    """Who survives, who answers, and whom the rule and the proof of the answer would ask next."""
    arms, clock, who = state.arms, state.clock, state.who
    proving = clock[PROVE] == 1 and clock[PASS] >= FIRST_PROOF
    candidate = -1
    for turn in range(2):
        settle(state, -1 if turn == 0 else clock[POSITION])
        if clock[OVER] == 1 or not proving:
            break
        if candidate < 0 or not arms.active[candidate]:
            candidate = plug_in(state)
        if turn == 0:
            look_for(state, candidate)
    for arm in range(arms.active.size):
        who[BY_RULE, arm] = who[BY_PROOF, arm] = False
    if clock[OVER] == 1:
        settled = clock[POSITION] == state.order.size and clock[CONTRADICTION] == 0
        clock[CANDIDATE] = best_by_differences(state, arms.active, state.order[-1]) if settled else plug_in(state)
        return
    clock[CANDIDATE] = candidate
    if proving and prove(state, candidate):
        clock[OVER] = 1
    i = state.order[clock[POSITION]]
    for arm in range(arms.active.size):
        who[BY_RULE, arm] = arms.active[arm] and is_open(state, arms.active, i, arm)


@kernel
def row_asked(state: State, number: int) -> int:
    """Which arms pass `number` asks, as things stand: the rule's, or the proof's four times of five."""
    return BY_PROOF if state.clock[CANDIDATE] >= 0 and number % RULE_EVERY != 0 else BY_RULE


@kernel
def open_pass(state: State) -> None:
    """Fix the members of the current pass; nobody once it is over."""
    clock, who = state.clock, state.who
    row = row_asked(state, clock[PASS])
    clock[LACKS] = 0
    clock[TURN] = -1
    for arm in range(who.shape[1] - 1, -1, -1):
        for i in range(state.values.shape[1]):
            state.values[arm, i] = 0.0
        who[FILLED, arm] = False
        who[ASKED, arm] = clock[OVER] == 0 and who[row, arm]
        if who[ASKED, arm]:
            clock[LACKS] += 1
            clock[TURN] = arm


@apart
def close_pass(state: State) -> None:
    """Fold the current pass, judge if it is time, and open the next."""
    clock = state.clock
    fold_values(state)
    clock[PASS] += 1
    if clock[PASS] == clock[NEXT]:
        judge(state)
        clock[NEXT] = next_judged(clock[PASS])
    open_pass(state)


@kernel
def fill(state: State, arm: int, reward: Vector) -> None:
    """Fill the arm's place in the current pass; the last place folds it, and opens the next."""
    clock, who, kinds = state.clock, state.who, state.kinds
    if who[FILLED, arm]:
        raise ValueError("the arm's place in this pass is filled: use tell, which keeps what comes early")
    for i in range(reward.size):
        if reward[i] < kinds[i, 1] or reward[i] > kinds[i, 2]:
            raise ValueError("a value lies outside the bounds of its noise")
        if kinds[i, 0] == EXACT and state.singles[arm, i, 0] > 0.0:
            if abs(reward[i] - state.singles[arm, i, 1]) > 0.0:
                raise ValueError("an exact objective was measured twice with different values")
    who[FILLED, arm] = True
    if not who[ASKED, arm]:
        return
    for i in range(reward.size):
        state.values[arm, i] = reward[i]
    clock[LACKS] -= 1
    if clock[LACKS] == 0:
        close_pass(state)
    else:
        while not (who[ASKED, clock[TURN]] and not who[FILLED, clock[TURN]]):
            clock[TURN] += 1


@kernel
def count(state: State, arm: int, number: int) -> None:
    """Count a result of the arm in pass `number`."""
    state.arms.told[0] += 1
    state.arms.pulls[arm] += 1
    state.clock[HIGHEST] = max(state.clock[HIGHEST], number)


@kernel
def choose(state: State, pending: Counts) -> int:
    """Whose turn it is; with results in flight, the member of the pass with the fewest taken places."""
    turn = state.clock[TURN]
    if pending[turn] == 0:
        return int(turn)
    chosen = -1
    fewest = 0
    for arm in range(pending.size):
        taken = pending[arm] + state.who[FILLED, arm]
        if state.who[ASKED, arm] and (chosen < 0 or taken < fewest):
            chosen = arm
            fewest = taken
    return chosen


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Count a result of the current pass, one after the other; after the end it is only counted."""
    if state.clock[OVER] == 0:
        number = state.clock[PASS]
        fill(state, arm, reward)
        count(state, arm, number)
    else:
        count(state, arm, state.clock[PASS])


@kernel
def finished(state: State) -> bool:
    """The answer is certain, or there is none to be had."""
    return bool(state.clock[OVER] == 1)


@kernel
def replay(
    state: State, arms: Counts, rewards: Vector, items: Counts, start: int, somebody_waits: bool
) -> int:
    """Tell in order until a result must wait, or until those that wait may go on; return how far it came.

    items: the pass of each result, −1 for the earliest that the arm lacks.
    """
    clock = state.clock
    for t in range(start, arms.size):
        if clock[OVER] == 1 or 0 <= items[t] < clock[PASS]:
            count(state, arms[t], max(items[t], clock[PASS] if items[t] < 0 else 0))
            continue
        number = clock[PASS]
        if state.who[FILLED, arms[t]] or items[t] > number:
            return t
        observe(state, arms[t], rewards[t])
        if somebody_waits and clock[PASS] != number:
            return t + 1
    return int(arms.size)


@kernel
def begin(state: State) -> None:
    """Judge by the rules in force and open a pass."""
    judge(state)
    open_pass(state)


@kernel
def fill_intervals(state: State, level: float, singles: Vector, pairs: Vector) -> None:
    """(K, m, 2) where the means lie, (K, K, m, 2) and their differences, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for a in range(n_arms):
            n, mean, m2, m3, m4 = moments(state.singles, a, i)
            singles[a, i, LOW], singles[a, i, HIGH] = arm_interval(kind, n, mean, m2, m3, m4, level)
            for b in range(a + 1, n_arms):
                low, high = state.lows[i, a, b], -state.lows[i, b, a]
                n, mean, m2, m3, m4 = moments(state.pairs, pair_of(a, b, n_arms), i)
                if kind.code == EXACT:
                    known, difference = paired(state, i, a, b)
                    if known > 0.0:
                        low = high = difference
                elif n >= 2.0:
                    below, above = pair_interval(kind, n, mean, m2, m3, m4, state.limits[i, LEVEL])
                    low, high = max(low, below), min(high, above)
                pairs[a, b, i, LOW], pairs[a, b, i, HIGH] = low, high
                pairs[b, a, i, LOW], pairs[b, a, i, HIGH] = -high, -low


class Seen(NamedTuple):
    """What was seen of the answer against one rival on one objective."""

    rival: int
    objective: int
    difference: float  # answer − rival, the mean over common results; nan without any
    low: float  # the true difference lies between these,
    high: float
    results: int  # common results
    verdict: str  # "beats", "close", "not worse", "beaten by 3", "misses the target", "meets the target", "open"


class LexElimTol(Policy):
    """For ties that are never exact: all it needs are the differences that do not matter.

    Per objective i, differences up to `tolerance`[i] are immaterial: such arms go on to the next
    objective. An arm worse by more than tolerance + `resolution` does not; in between either may
    happen. Without a resolution it is the tolerance; both zero is an error, except where noise is "exact".

    `noise` is a kind, one for all objectives or one each: "gaussian" (unknown variances, one per pair
    of arms), "bernoulli", ("bounded", lo, hi), ("sub_gaussian", sd), or with "dependent" behind where the arms of a pass share
    their luck, "exact", and "finite_variance", which is approximate. `noise_sd` is short for sub-Gaussian.
    `at_least`, None or a number per objective: a target to be met, where all arms that meet it tie.

    With probability at least 1 − delta, for every i: an arm within tolerance[i] of the best arm that
    reached objective i survives it, and every survivor is within tolerance[i] + resolution[i] of
    that best arm; with a target, arms that meet it survive and survivors miss it by less than the
    resolution. settle="all" goes on until that is so; settle="answer" stops once the answer is acceptable for
    certain: no arm that deserves to reach objective i is better there by more than tolerance +
    resolution. Needed: given all earlier passes, the difference of two arms in a pass has the same mean in every pass
    (and for "gaussian" the same normal law).

    A result belongs to a place, (arm, pass): `ask_place` and `tell(…, item=pass)` are for who measures in
    parallel or on common items; the state depends on which places are filled, never on the order. A
    result told without an item fills the arm's earliest empty place, which is right when results are
    told in the order asked. `None` in a reward is a value not measured.

    `order` (objectives by priority), `offered` (the arms in question), tolerances and resolutions may
    be changed after looking, at the same delta: `amended`. `max_arms` counts arms that may be added.
    """

    rules = Rules(choose, observe, finished)
    accepts_missing = True
    round_robin = False
    warns = True  # of values that repeat under "gaussian"; False for who reads `repeating`

    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        tolerance: float | ArrayLike,
        resolution: float | ArrayLike | None = None,
        noise: Any = "gaussian",
        noise_sd: float | ArrayLike | None = None,
        at_least: float | Sequence[float | None] | None = None,
        if_infeasible: str = "go on",
        settle: str = "answer",
        order: Sequence[int] | None = None,
        offered: Sequence[int] | None = None,
        max_arms: int | None = None,
    ) -> None:
        m = whole("n_objectives", n_objectives, least=1)
        rows = n_arms if max_arms is None else max_arms
        super().__init__(
            n_arms,
            n_objectives,
            delta=probability("delta", delta),
            tolerance=per_objective("tolerance", tolerance, m, zero=True),
            resolution=None if resolution is None else per_objective("resolution", resolution, m, zero=True),
            noise=checked_kinds(noise, noise_sd, m),
            at_least=_checked_targets(at_least, m),
            if_infeasible=_one_of("if_infeasible", if_infeasible, ("go on", "stop")),
            settle=_one_of("settle", settle, ("answer", "all")),
            order=None if order is None else _checked_order(order, m),
            offered=None if offered is None else _checked_arms("offered", offered, rows),
            max_arms=None if max_arms is None else whole("max_arms", max_arms, least=n_arms),
        )
        self.max_arms = self.n_arms if max_arms is None else self._settings["max_arms"]
        self._kinds = spread_kinds(self._settings["noise"], m)
        self._waiting = Waiting()
        self._early: dict[int, list[list[float]]] = {}  # the first values told of each arm
        self._suspect: set[int] = set()  # objectives of which a warning was given
        self.state = self._first_state()
        begin(self.state)

    def _first_state(self) -> State:
        K, m = self.max_arms, self.n_objectives
        n_pairs, depth = K * (K - 1) // 2, 5 if any(kind.code >= BOUNDED for kind in self._kinds) else 3
        size = 8 * n_pairs * m * (depth + 2)
        if size > MOST_BYTES:
            raise ValueError(
                f"{self.name} compares all pairs of arms: with {K} arms and {m} objectives that takes "
                f"{size / 2**30:.1f} GiB, and more than {MOST_BYTES / 2**30:.0f} GiB is refused"
            )
        settings = self._settings
        clock = np.zeros(12, np.int64)
        clock[[HIGHEST, CANDIDATE]] = -1
        clock[NEXT] = 1 if any(kind.code == EXACT for kind in self._kinds) else FIRST_JUDGED
        clock[PROVE] = settings["settle"] == "answer"
        clock[STOP] = settings["if_infeasible"] == "stop"
        offered = range(self.n_arms) if settings["offered"] is None else settings["offered"]
        who = np.zeros((5, K), np.bool_)
        who[OFFERED, list(offered)] = True
        arms = untried(K, m)
        arms.active[:] = who[OFFERED]
        return State(
            arms,
            clock,
            who,
            values=np.zeros((K, m)),
            singles=np.zeros((K, m, depth)),
            pairs=np.zeros((n_pairs, m, depth)),
            lows=np.full((m, K, K), -math.inf),
            bounds=np.tile([-math.inf, math.inf], (m, K, 1)),
            gone=np.full((K, 2), -1),
            must=np.zeros(m, np.bool_),
            reached=np.zeros((m, K), np.bool_),
            order=np.array(range(m) if settings["order"] is None else settings["order"], np.int64),
            limits=self._limits(),
            kinds=kind_rows(self._kinds),
        )

    def _limits(self) -> Vector:
        settings, m = self._settings, self.n_objectives
        slack = spread(settings["tolerance"], m)
        fine = slack if settings["resolution"] is None else spread(settings["resolution"], m)
        targets = settings["at_least"]
        target = np.array([math.nan if t is None else t for t in targets or [None] * m], np.float64)
        for i in range(m):
            if fine[i] == 0 and self._kinds[i].code != EXACT:
                raise ValueError(
                    f"objective {i} needs a positive tolerance or a positive resolution to be settled, "
                    f"got tolerance {slack[i]:g} and resolution {settings['resolution']}"
                )
        # half of an objective's share of delta for its target, half for its pairs, should nobody meet it
        half = np.where(np.isnan(target), 0.0, math.log(2.0))
        pairs = max(1, self.max_arms * (self.max_arms - 1) // 2)
        level = math.log(m * pairs / settings["delta"]) + half
        target_level = np.full(m, math.log(2 * self.max_arms * m / settings["delta"]))
        return np.stack([slack, slack + fine, target, target - fine, level, target_level], axis=1)

    # --- driving it

    def ask(self, pending: Iterable[int] = ()) -> int:
        """The arm to measure next, given the arms in flight; the recommendation once finished. Pure."""
        if self.finished:
            return self.recommendation
        if isinstance(pending, tuple) and not pending and not self._waiting:
            return int(self.state.clock[TURN])
        in_flight = self._in_flight(pending)
        for arm, _ in self._open_places():
            if in_flight[arm] == 0:
                return arm
            in_flight[arm] -= 1
        raise AssertionError("places never end")

    def ask_place(self, pending: Iterable[Place] = ()) -> Place:
        """The (arm, pass) to measure next, given those in flight. Pure.

        First what the current pass lacks, then places of the next passes as they would be asked if
        nothing changed. What is asked in vain costs a measurement, never the promise.
        """
        return self.ask_places(1, pending)[0]

    def ask_places(self, n: int, pending: Iterable[Place] = ()) -> list[Place]:
        """n places to measure, those that n calls of `ask_place` in a row would give."""
        taken = checked_places(pending, self.max_arms)
        free = (place for place in self._open_places() if place not in taken)
        return list(islice(free, whole("n", n, least=0)))

    def tell(self, arm: int, reward: ArrayLike, item: int | None = None) -> None:
        """Report the result of `arm` in pass `item`; `None` where a value was not measured.

        All `None`: nothing will come for this place. Without an item: the arm's earliest empty place
        from the current pass on. Results of passes that are over, and after the end, are only counted.
        """
        arm = self._checked_arm(arm)
        vector = told_numbers(reward, (self.n_objectives,))
        for kind, value in zip(self._kinds, vector.tolist(), strict=True):
            if not (kind.low <= value <= kind.high and math.isfinite(value)) and not math.isnan(value):
                check_rewards(self._kinds, [arm], vector[None, :])
        self._check_exact([arm], vector[None, :])
        clock = self.state.clock
        number = self._earliest(arm) if item is None else whole("item", item, least=0)
        if clock[OVER] == 1 or number < clock[PASS]:
            count(self.state, arm, number)
        else:
            if self._is_filled((arm, number)):
                raise ValueError(f"the place of arm {arm} in pass {number} is already filled")
            self._watch(arm, vector)
            if number == clock[PASS]:
                self.rules.observe(self.state, arm, vector)
                self._go_on()
            else:
                self._waiting.put((arm, number), vector)
                count(self.state, arm, number)

    def tell_many(self, arms: ArrayLike, rewards: ArrayLike, items: ArrayLike | None = None) -> None:
        """Report many results: all are checked, then all are told, in compiled code."""
        played = self._checked_played(arms)
        table = told_numbers(rewards, (played.size, self.n_objectives))
        check_rewards(self._kinds, played, table)
        self._check_exact(played.tolist(), table)
        numbers = np.full(played.size, -1, np.int64) if items is None else self._checked_items(items, played)
        self._watch_many(played, table)
        if items is not None:  # the state does not depend on the order, the speed does
            turn = np.lexsort((played, numbers))
            played, table, numbers = played[turn], np.ascontiguousarray(table[turn]), numbers[turn]
        told = 0
        while told < played.size:
            came = replay(self.state, played, table, numbers, told, bool(self._waiting))
            if came == told:
                arm = int(played[told])
                number = self._earliest(arm) if numbers[told] < 0 else int(numbers[told])
                self._waiting.put((arm, number), table[told].copy())
                count(self.state, arm, number)
                came += 1
            else:
                self._go_on()
            told = came

    def _go_on(self) -> None:
        """Fill the current pass from what waits; after the end nothing waits."""
        clock = self.state.clock
        while self._waiting and clock[OVER] == 0:
            number = int(clock[PASS])
            for arm, values in self._waiting.take(number):
                if clock[PASS] == number:
                    fill(self.state, arm, values)
            if clock[PASS] == number:
                break
        if clock[OVER] == 1:
            self._waiting.clear()

    def amended(
        self,
        *,
        tolerance: float | ArrayLike | None = None,
        resolution: float | ArrayLike | None = None,
        order: Sequence[int] | None = None,
        offered: Sequence[int] | None = None,
        from_pass: int | None = None,
    ) -> Self:
        """The policy under new rules, by what was seen so far; this one stays as it is.

        The new rules begin with `from_pass`, which must lie above every pass told or asked (without it: told). What is not folded below it is void: who changes the rules has seen it.
        """
        given = {"tolerance": tolerance, "resolution": resolution, "order": order, "offered": offered}
        changes = {name: value for name, value in given.items() if value is not None}
        new = type(self)(**{**self.settings, **changes})
        old, state = self.state, new.state
        least = int(old.clock[HIGHEST]) + 1
        start = least if from_pass is None else whole("from_pass", from_pass, least=least)
        for name in ("singles", "pairs", "lows", "bounds"):
            getattr(state, name)[:] = getattr(old, name)
        for name in ("pulls", "sums", "means", "told"):
            getattr(state.arms, name)[:] = getattr(old.arms, name)
        state.clock[[HIGHEST, RESULTS]] = old.clock[[HIGHEST, RESULTS]]
        state.clock[PASS] = max(start, int(old.clock[PASS]))
        state.clock[[OVER, CONTRADICTION]] = 0
        state.arms.active[:] = state.who[OFFERED]
        state.arms.left[:] = 0
        while state.clock[NEXT] <= state.clock[PASS]:
            state.clock[NEXT] = next_judged(state.clock[NEXT])
        begin(state)
        for arm in np.flatnonzero(state.arms.left[:, 0]).tolist():
            _, objective, rival = old.arms.left[arm].tolist()
            if old.arms.left[arm, 0] and objective == state.arms.left[arm, 1]:
                if rival < 0 or state.who[OFFERED, rival]:
                    state.arms.left[arm] = old.arms.left[arm]
        new._early, new._suspect = copy.deepcopy(self._early), set(self._suspect)
        return new

    # --- what it knows

    @property
    def folded(self) -> int:
        """Passes that are over: the number of the current one."""
        return int(self.state.clock[PASS])

    @property
    def repeating(self) -> tuple[int, ...]:
        """The "gaussian" objectives on which an arm gave one value twice, which Gaussian noise never does."""
        return tuple(sorted(self._suspect))

    @property
    def wanted(self) -> tuple[int, ...]:
        """The arms that the current pass asks."""
        return tuple(np.flatnonzero(self.state.who[ASKED]).tolist())

    @property
    def lacking(self) -> tuple[Place, ...]:
        """The places that the current pass waits for."""
        who = self.state.who
        return tuple((arm, self.folded) for arm in np.flatnonzero(who[ASKED] & ~who[FILLED]).tolist())

    @property
    def objective(self) -> int:
        """The objective being settled; n_objectives when all are."""
        position = int(self.state.clock[POSITION])
        return self.n_objectives if position == self.n_objectives else int(self.state.order[position])

    @property
    def certified(self) -> bool:
        """Whether it is finished and its promise holds for the answer."""
        sound = not self.contradiction and not self.large_sample and not self.infeasible
        return self.finished and sound

    @property
    def large_sample(self) -> bool:
        """Whether the promise is only approximate, as the noise is only known to have a variance."""
        return any(kind.code == FINITE_VARIANCE for kind in self._kinds)

    @property
    def infeasible(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The targets that nobody meets, with the arms that were tested against them."""
        reached = self.state.reached
        return tuple(
            (int(i), tuple(np.flatnonzero(reached[i]).tolist())) for i in self.state.order if reached[i].any()
        )

    @property
    def contradiction(self) -> bool:
        """Whether the data refuted every arm: the noise is not what was said, or it was bad luck."""
        return bool(self.state.clock[CONTRADICTION])

    @property
    def means(self) -> Vector:
        """(rows, m) average of the values folded; nan where there is none."""
        return np.where(self.state.singles[:, :, 0] > 0, self.state.arms.means, math.nan)

    @property
    def counts(self) -> Counts:
        """(rows, m) values folded."""
        return self.state.singles[:, :, 0].astype(np.int64)

    @property
    def paired(self) -> Counts:
        """(rows, rows, m) passes in which both arms were measured."""
        K, m = self.max_arms, self.n_objectives
        full = np.zeros((K, K, m), np.int64)
        above = np.triu_indices(K, 1)
        full[above] = self.state.pairs[:, :, 0]
        return full + full.transpose(1, 0, 2)

    @property
    def intervals(self) -> Vector:
        """(rows, m, 2) where each mean lies, all of them at all times, with probability at least 1 − delta.

        For people who watch a run: it decides by differences.
        """
        return self._all_intervals()[0]

    @property
    def differences(self) -> Vector:
        """(rows, rows, m, 2) the best ends of the interval of each difference, row − column, seen so far.

        All of them hold at all times with probability at least 1 − delta.
        """
        return self._all_intervals()[1]

    def _all_intervals(self) -> tuple[Vector, Vector]:
        K, m = self.max_arms, self.n_objectives
        singles, pairs = np.zeros((K, m, 2)), np.zeros((K, K, m, 2))
        fill_intervals(self.state, math.log(K * m / self._settings["delta"]), singles, pairs)
        return singles, pairs

    @property
    def certificate(self) -> tuple[Seen, ...]:
        """Per rival of the recommendation, objective by objective until it is done, what was seen.

        "open" where something is missing; empty after a contradiction.
        """
        if self.contradiction:
            return ()
        x, differences, seen = self.recommendation, self.differences, []
        for y in np.flatnonzero(self.state.who[OFFERED]).tolist():
            if y != x:
                for i in self.state.order.tolist():
                    verdict = self._verdict(x, y, i)
                    results, mean = paired(self.state, i, x, y)
                    mean = mean if results else math.nan
                    seen.append(Seen(y, i, mean, *differences[x, y, i].tolist(), int(results), verdict))
                    if verdict == "beats" or verdict.startswith(("beaten", "misses")):
                        break
        return tuple(seen)

    def _verdict(self, x: int, y: int, i: int) -> str:
        state = self.state
        position, rival = state.gone[y].tolist()
        if state.must[i]:
            if misses(state.bounds, state.limits, i, y):
                return "misses the target"
            return "meets the target" if meets(state.bounds, state.limits, i, y) else "open"
        if beats(state.lows, state.limits, i, x, y):
            return "beats"
        if position >= 0 and state.order[position] == i:
            return f"beaten by {rival}"
        if close(state.lows, state.limits, i, x, y):
            return "close"
        return "not worse" if not_worse(state.lows, state.limits, i, x, y) else "open"

    def best_guess(self) -> int:
        """Once finished the answer; before that what today's means would give."""
        return int(self.state.clock[CANDIDATE]) if self.finished else int(plug_in(self.state))

    @property
    def recommendation(self) -> int:
        """The answer once finished; before that `best_guess`, which carries no certificate."""
        return self.best_guess()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LexElimTol) and super().__eq__(other) and self._waiting == other._waiting

    __hash__ = None  # type: ignore[assignment]

    # --- places

    def _is_filled(self, place: Place) -> bool:
        arm, number = place
        here = number == self.state.clock[PASS] and self.state.who[FILLED, arm]
        return bool(here) or place in self._waiting

    def _earliest(self, arm: int) -> int:
        number = int(self.state.clock[PASS])
        if self.state.clock[OVER] == 0:
            while self._is_filled((arm, number)):
                number += 1
        return number

    def _open_places(self) -> Iterator[Place]:
        """Places to fill, as things stand, for ever."""
        number, answer = self.folded, self.recommendation if self.finished else -1
        while True:
            if answer >= 0:
                yield answer, number
            else:
                row = row_asked(self.state, number)
                for arm in np.flatnonzero(self.state.who[row]).tolist():
                    if not self._is_filled((arm, number)):
                        yield arm, number
            number += 1

    # --- checks, before anything changes

    def _checked_arm(self, arm: int) -> int:
        return whole("an arm", arm, least=0, most=self.max_arms - 1)

    def _checked_played(self, arms: ArrayLike) -> Counts:
        try:
            played = np.array(arms)
        except ValueError:
            raise TypeError(f"arms must be a list of integers, got {arms!r}") from None
        if played.size == 0:
            played = played.astype(np.int64)
        if played.ndim != 1 or played.dtype.kind not in "iu":
            raise TypeError(f"arms must be a list of integers, got {arms!r}")
        outside = (played < 0) | (played >= self.max_arms)
        if outside.any():
            raise ValueError(f"arms are integers in 0..{self.max_arms - 1}, got {int(played[outside][0])}")
        return played.astype(np.int64)

    def _checked_items(self, items: ArrayLike, played: Counts) -> Counts:
        numbers = np.array(items)
        if numbers.shape != played.shape or (numbers.size and numbers.dtype.kind not in "iu"):
            raise TypeError(f"items must be {played.size} passes, one per result, got {items!r}")
        numbers = numbers.astype(np.int64)
        if numbers.size and numbers.min() < 0:
            raise ValueError(f"a pass is an integer from 0 on, got {int(numbers.min())}")
        new: set[Place] = set()
        if self.state.clock[OVER] == 0:
            later = numbers >= self.state.clock[PASS]
            for place in zip(played[later].tolist(), numbers[later].tolist(), strict=True):
                if place in new or self._is_filled(place):
                    raise ValueError(f"the place of arm {place[0]} in pass {place[1]} is already filled")
                new.add(place)
        return numbers

    def _check_exact(self, arms: Sequence[int], rewards: Vector) -> None:
        """Refuse a second, different value of an arm on an exact objective."""
        state = self.state
        for i, kind in enumerate(self._kinds):
            if kind.code != EXACT:
                continue
            known = {arm: values[i] for (arm, _), values in self._waiting if not math.isnan(values[i])}
            for arm in range(self.max_arms):
                if state.who[ASKED, arm] and state.who[FILLED, arm] and not math.isnan(state.values[arm, i]):
                    known[arm] = state.values[arm, i]
                if state.singles[arm, i, 0] > 0:
                    known[arm] = state.singles[arm, i, 1]
            for arm, value in zip(arms, rewards[:, i].tolist(), strict=True):
                if not math.isnan(value) and known.setdefault(arm, value) != value:
                    raise ValueError(
                        f"objective {i} is exact, but arm {arm} gave {value} after {float(known[arm])}"
                    )

    def _watch(self, arm: int, values: Vector) -> None:
        """Warn if a value repeats among the first of an arm, which Gaussian noise never does."""
        early = self._early.setdefault(arm, [])
        if len(early) < WATCHED:
            row = values.tolist()
            for i, kind in enumerate(self._kinds):
                if kind.code == GAUSSIAN and i not in self._suspect and any(old[i] == row[i] for old in early):
                    self._suspect.add(i)
                    if not self.warns:
                        continue
                    warnings.warn(repetition_warning(arm, i, row[i]), UserWarning, stacklevel=3)
            early.append(row)

    def _watch_many(self, arms: Counts, rewards: Vector) -> None:
        for arm in np.unique(arms).tolist():
            for row in np.flatnonzero(arms == arm)[:WATCHED].tolist():
                self._watch(arm, rewards[row])


def _one_of(name: str, value: str, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ValueError(f"{name} must be {' or '.join(map(repr, words))}, got {value!r}")
    return value


def _checked_targets(value: Any, n_objectives: int) -> list[float | None] | None:
    if value is None:
        return None
    targets = [value] * n_objectives if np.ndim(value) == 0 else list(value)
    if len(targets) != n_objectives:
        raise ValueError(
            f"at_least must be one target or None per objective ({n_objectives}), got {len(targets)}"
        )
    checked = [None if t is None else real(f"at_least[{i}]", t) for i, t in enumerate(targets)]
    return None if all(t is None for t in checked) else checked


def _checked_arms(name: str, value: Any, n_arms: int) -> list[int]:
    arms = [whole(f"{name}[{i}]", arm, least=0, most=n_arms - 1) for i, arm in enumerate(value)]
    if not arms or len(set(arms)) != len(arms):
        raise ValueError(f"{name} must name at least one arm, and each arm once, got {value!r}")
    return sorted(arms)


def _checked_order(value: Any, n_objectives: int) -> list[int]:
    order = [whole(f"order[{i}]", k, least=0, most=n_objectives - 1) for i, k in enumerate(value)]
    if sorted(order) != list(range(n_objectives)):
        raise ValueError(f"order must name each of the {n_objectives} objectives once, got {value!r}")
    return order
