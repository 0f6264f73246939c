"""LexElim-Tol about a list of items: `LexElimTol(…, n_items=N)`.

Places are (arm, position in the drawn order). All that was told is kept, so rules, arms and values may change
at any time and nothing is void: what is seen is computed anew from the table.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import direct, portion
from lexbandits._validation import checked_arm, checked_history, checked_pending, checked_reward, whole
from lexbandits.evidence.finite_population import MOST_LEVEL, finite_radius, lower_end, product, stakes
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.interval import told_difference, told_mean
from lexbandits.evidence.kinds import Kind
from lexbandits.policies.base import LEFT_AT, LEFT_ON
from lexbandits.policies.policy import _same
from lexbandits.policies.tolerance.buffer import Place
from lexbandits.policies.tolerance.finite.finite_asking import ask
from lexbandits.policies.tolerance.finite.finite_evidence import evaluate, keep_exact, still_proven
from lexbandits.policies.tolerance.finite.finite_folding import (
    fold_some,
    forget_arm,
    stored_prefix,
    take,
    take_all,
)
from lexbandits.policies.tolerance.finite.finite_moments import later_evidence, later_interval
from lexbandits.policies.tolerance.finite.finite_state import (
    ABOVE,
    BELOW,
    EMPTY,
    ENOUGH,
    FILLED,
    FLAT,
    GIVEN_UP,
    LOG_2,
    NOTED,
    TARGET_ENOUGH,
    TARGET_NOTED,
    UNDER,
    FinitePopulation,
)
from lexbandits.policies.tolerance.lexelim_tol import MOST_BYTES, NO_SHARES, LexElimTol
from lexbandits.policies.tolerance.places import checked_places
from lexbandits.policies.tolerance.state import (
    BEATS,
    BEATS_LEVEL,
    BY_PROOF,
    CANDIDATE,
    CONTRADICTION,
    FLOOR,
    LEVEL,
    MEETS_LEVEL,
    NEXT,
    NOT_WORSE,
    NOT_WORSE_LEVEL,
    OFFERED,
    OVER,
    REACH,
    TARGET,
    TARGET_LEVEL,
    TOLERANCE,
    State,
    pair_of,
    row_of_arm,
)
from lexbandits.policies.tolerance.stopping import Seen, certificate


def _coarse(n: int, n_items: int) -> int:
    """The largest number up to n of six binary digits, then zeros: at that pace intervals are computed."""
    low = max(0, n.bit_length() - 6)
    return n >> low << low if n < n_items else n


class FiniteLexElimTol(LexElimTol):
    """What `LexElimTol(…, n_items=N)` makes; the same methods, about a list.

    A place is (arm, position), 0 … n_items − 1. Every arm goes through the positions at its own pace, and two
    arms are compared on those that both have *folded*: up to the first that is not filled yet. A result of
    which all values are None gives its place up. It counts as the worst it may have been (of values that are
    not bounded: as missing), until it is told after all. Where results were told makes no difference to what
    is seen; which of them had come says when it ends.
    """

    population: FinitePopulation
    n_items: int
    _closed = False  # whether rules, changed after looking, have voided the pre-registered tests,
    _share_when_closed = 1.0  # which leaves anytime evidence this share of delta

    @property
    def name(self) -> str:
        """The class that `BY_NAME` has, and that makes this of the settings."""
        return LexElimTol.__name__

    def _first_state(self) -> State:
        settings, K, m = self._settings, self.max_arms, self.n_objectives
        self.n_items = N = whole("n_items", settings["n_items"], least=1)
        for i, kind in enumerate(self._kinds):
            if why := kind.traits.not_about_lists:
                raise ValueError(
                    f'objective {i}: {why}: say "bounded" or "gaussian", or leave out n_items '
                    '(scope="population")'
                )
        since = self._checked_since(settings.get("since"))
        settings["since"] = since.tolist() if since.any() else None
        etas, weights, risks = stakes(N)
        pairs, E = K * (K - 1) // 2, etas.size
        size = 8 * (N * K * m + 4 * E * pairs * m + 20 * pairs * m) + N * K
        if size > MOST_BYTES:
            raise ValueError(
                f"a table of {N:,} items, {K} arms and {m} objectives and all pairs of arms take "
                f"{size / 2**30:.1f} GiB, and more than {MOST_BYTES / 2**30:.0f} GiB is refused: "
                "list fewer items or arms"
            )
        bounded = any(kind.traits.bounded for kind in self._kinds)
        unbounded = any(kind.traits.unbounded for kind in self._kinds)
        n_limited = K if self._are_limits().any() else 0
        state = self._nothing_told(
            pairs=np.zeros((pairs, m, 4)),
            completed=np.zeros((0, m, 2, 5)),
            log_evidence=np.full((2, m, K, K), -math.inf),
            arm_log_evidence=np.full((3, m, n_limited), -math.inf),
            wealth=np.zeros((2, 0, m, 2, 2, 6)),
            shares=np.zeros(NO_SHARES),
        )
        self.population = FinitePopulation(
            table=np.full((K, N, m), math.nan),
            status=np.zeros((K, N), np.int8),
            until=np.zeros(K, np.int64),
            since=since,
            etas=etas,
            weights=weights,
            risks=risks,
            goals=self._goals(state.limits),
            marks=self._marks(state.limits),
            wealth=np.tile(weights[:, None], (pairs if bounded else 0, m, 1, 4)),
            sums=np.zeros((pairs if bounded else 0, m, 2, 2)),
            later=np.zeros((pairs + K if unbounded else 0, m, 5)),
            arm_wealth=np.tile(weights[:, None], (n_limited, m, 1, 3)),
            arm_sums=np.zeros((n_limited, m, 2, 2)),
            overturned=np.zeros((m, K, K), np.bool_),
        )
        return state

    def _begin(self) -> None:
        self._ends: dict[tuple[int, int, int, float], tuple[int, float, float]] = {}
        self._fold_all()

    def _fold_all(self) -> None:
        """Count all that is on record, under the rules in force, and evaluate it once."""
        fold, most = direct(fold_some), portion(self.n_items)
        for arm in range(self.max_arms):
            direct(forget_arm)(self.state, self.population, arm)
        for arm in range(self.max_arms):
            while fold(self.state, self.population, arm, most)[0] == most:
                pass
        direct(evaluate)(self.state, self.population)

    def _checked_since(self, given: Any) -> Counts:
        since = np.zeros(self.max_arms, np.int64)
        if isinstance(given, Mapping):
            for arm, position in given.items():
                since[checked_arm(arm, self.max_arms)] = whole("since", position, least=0, most=self.n_items)
        elif given is not None:
            if len(given) != self.max_arms:
                raise ValueError(f"since must be {self.max_arms} positions, one per arm, got {given!r}")
            since[:] = [whole("since", position, least=0, most=self.n_items) for position in given]
        return since

    def _has_alpha_budget(self) -> bool:
        return super()._has_alpha_budget() and not self._closed

    def _anytime_share(self) -> float:
        """As created: what was set aside for pre-registered tests stays spent."""
        return super()._anytime_share() if not self._closed else self._share_when_closed

    def _claim_levels(self) -> tuple[Vector, ...]:
        if self._has_alpha_budget():
            return super()._claim_levels()
        never = np.full(self.n_objectives, math.inf)
        return never, never, never

    def _goals(self, limits: Vector) -> Vector:
        """(m, 5, 2) N·x: what the sum of the list must exceed, of stored differences and values."""
        goals = np.zeros((self.n_objectives, 5, 2))
        for i, kind in enumerate(self._kinds):
            if not kind.traits.bounded:
                continue
            width = kind.high - kind.low
            tolerance, reach, target, floor = limits[i, [TOLERANCE, REACH, TARGET, FLOOR]].tolist()
            goals[i, 0] = product(self.n_items, (width - reach) / (2 * width))
            goals[i, 1] = product(self.n_items, (width + tolerance) / (2 * width))
            if not math.isnan(target):
                goals[i, 2] = product(self.n_items, (floor - kind.low) / width)
                goals[i, 3] = product(self.n_items, 1.0 - (target - kind.low) / width)
                goals[i, 4] = product(self.n_items, 1.0 - (floor - kind.low) / width)
        return goals

    def _marks(self, limits: Vector) -> Vector:
        m = self.n_objectives
        marks = np.zeros((m, 8))
        marks[:, ABOVE] = np.nextafter(limits[:, TOLERANCE], math.inf)
        marks[:, BELOW] = np.nextafter(-limits[:, REACH], -math.inf)
        marks[:, UNDER] = np.nextafter(limits[:, TARGET], -math.inf)
        marks[:, FLAT] = np.nextafter(limits[:, FLOOR], -math.inf)
        anytime = limits[:, LEVEL] + LOG_2
        for i, claims in enumerate(limits[:, [NOT_WORSE_LEVEL, BEATS_LEVEL]].tolist()):
            used = [level for level in (float(anytime[i]), *claims) if level <= MOST_LEVEL]
            marks[i, NOTED] = math.exp(min(used, default=MOST_LEVEL))
            marks[i, ENOUGH] = max(used, default=MOST_LEVEL)
            used = limits[i, [TARGET_LEVEL, MEETS_LEVEL, BEATS_LEVEL]].tolist()
            used = [level for level in used if level <= MOST_LEVEL]
            marks[i, TARGET_NOTED] = math.exp(min(used)) if used else math.inf
            marks[i, TARGET_ENOUGH] = max(used, default=MOST_LEVEL)
        return marks

    # --- places

    @property
    def folded(self) -> int:
        """Positions that every arm in question has folded: below it nothing is waited for."""
        return int(self.population.until[self.state.masks[OFFERED]].min())

    @property
    def until(self) -> tuple[int, ...]:
        """Per arm the positions folded: all up to its first empty place."""
        return tuple(self.population.until.tolist())

    @property
    def passes_buffered(self) -> int:
        """The most results of one arm that wait behind an empty place."""
        if self.finished:
            return 0
        told = (self.population.status != EMPTY).sum(axis=1)
        return int((told - self.population.until)[self.state.masks[OFFERED]].max())

    @property
    def at_most(self) -> int:
        """Results that can still be asked for; 0 once finished."""
        return 0 if self.finished else int((self.population.status[self.state.masks[OFFERED]] == EMPTY).sum())

    @property
    def holes(self) -> tuple[Place, ...]:
        """The places given up of arms in question."""
        found = np.argwhere(self.population.status == GIVEN_UP).tolist()
        return tuple((arm, position) for arm, position in found if self.state.masks[OFFERED, arm])

    @property
    def lacking(self) -> tuple[Place, ...]:
        """The place at which each arm that is asked waits."""
        return tuple((arm, int(self.population.until[arm])) for arm in self.wanted)

    @property
    def wanted(self) -> tuple[int, ...]:
        """The arms that may be asked next, as things stand."""
        clock, masks = self.state.clock, self.state.masks
        if self.finished:
            return ()
        rows = masks[3:5] if clock[CANDIDATE] >= 0 else masks[3:4]
        left = self.population.until < self.n_items
        return tuple(np.flatnonzero(rows.any(axis=0) & left).tolist())

    def ask(self, pending: Iterable[int] = ()) -> int:
        """The arm to measure next, given the arms in flight; the recommendation once finished. Pure."""
        return self.ask_many(1, pending)[0]

    def ask_many(self, count: int, pending: Iterable[int] = ()) -> list[int]:
        """`count` arms to measure, given the arms in flight; the recommendation where nobody is left."""
        flying = checked_pending(pending, self.max_arms)
        taken = {
            place for arm in np.flatnonzero(flying).tolist() for place in self._empty(arm, int(flying[arm]))
        }
        count = whole("count", count, least=0)
        arms = [arm for arm, _ in self.ask_places(count, taken)]
        return arms + [self.recommendation] * (count - len(arms))

    def _empty(self, arm: int, most: int) -> list[Place]:
        empty = np.flatnonzero(self.population.status[arm] == EMPTY)[:most]
        return [(arm, position) for position in empty.tolist()]

    def ask_place(self, pending: Iterable[Place] = ()) -> Place:
        """The (arm, position) to measure next, given those in flight; n_items if there is none. Pure."""
        places = self.ask_places(1, pending)
        return places[0] if places else (self.recommendation, self.n_items)

    def ask_places(self, n: int, pending: Iterable[Place] = ()) -> list[Place]:
        """Up to n places to measure, those that n calls of `ask_place` in a row would give. Pure."""
        n = whole("n", n, least=0)
        if self.finished or n == 0:
            return []
        taken = sorted(checked_places(pending, self.max_arms)) if pending else []
        positions = np.array([position for _, position in taken], np.int64)
        arms = np.array([arm for arm, _ in taken], np.int64)
        starts = np.searchsorted(arms, np.arange(self.max_arms + 1)).astype(np.int64)
        places = np.empty((min(n, self.n_items * self.max_arms), 2), np.int64)
        found = direct(ask)(self.state, self.population, starts, positions, places)
        return [(arm, position) for arm, position in places[:found].tolist()]

    # --- telling

    def tell_checked(self, arm: int, vector: Vector, number: int) -> None:
        """`tell` without checks: a study has checked what it records."""
        if self.population.status[arm, number] == FILLED or (
            self.population.status[arm, number] == GIVEN_UP and np.isnan(vector).all()
        ):
            raise ValueError(f"the place of arm {arm} at position {number} is already filled")
        self._validator.watch(arm, vector)
        if self.population.status[arm, number] == EMPTY:
            self._count([arm], [number])
        if number < self.population.until[arm]:
            self._ends = {}
        before = self.finished
        direct(take)(self.state, self.population, arm, number, vector)
        if self.finished and not before:
            self._warn_of_assumptions()

    def tell_many(self, arms: ArrayLike, rewards: ArrayLike, items: ArrayLike | None = None) -> None:
        """Report many results in the order in which they came: all are checked, then all are told."""
        played, table = checked_history(arms, rewards, self.max_arms, self.n_objectives, missing=True)
        self._validator.check_many(played.tolist(), table)
        self._check_exact(played.tolist(), table)
        positions = self._earliest_places(played) if items is None else self._checked_items(items, played)
        self._check_free(played, positions, np.isnan(table).all(axis=1))
        self._validator.watch_many(played, table)
        new = self.population.status[played, positions] == EMPTY
        places = np.unique(np.stack([played[new], positions[new]], axis=1), axis=0)
        self._count(places[:, 0].tolist(), places[:, 1].tolist())
        if (positions < self.population.until[played]).any():
            self._ends = {}
        before = self.finished
        told, take_some = 0, direct(take_all)
        while told < played.size:
            end = told + portion(played.size - told)
            take_some(self.state, self.population, played[told:end], positions[told:end], table[told:end])
            told = end
        if self.finished and not before:
            self._warn_of_assumptions()

    def correct(self, arm: int, position: int, reward: ArrayLike) -> None:
        """Replace what was told of a place: all that is seen of the arm is computed and evaluated anew."""
        arm, position = checked_arm(arm, self.max_arms), self._number(position)
        vector = checked_reward(reward, self.n_objectives, missing=True)
        if self.population.status[arm, position] == EMPTY:
            raise ValueError(f"nothing was told of arm {arm} at position {position}: tell it")
        self._validator.check(arm, vector)
        lost = np.array([kind.traits.unbounded for kind in self._kinds]) & np.isnan(
            self.population.table[arm, position]
        )
        self.population.table[arm, position] = np.where(lost, math.nan, vector)
        self.population.status[arm, position] = GIVEN_UP if np.isnan(vector).all() else FILLED
        self.state.clock[[OVER, CONTRADICTION]] = 0
        self._ends = {}
        self._fold_all()

    def _number(self, item: Any) -> int:
        return whole("item", item, least=0, most=self.n_items - 1)

    def _earliest(self, arm: int) -> int:
        if not (empty := self._empty(arm, 1)):
            raise ValueError(f"arm {arm} was measured on all {self.n_items} items")
        return empty[0][1]

    def _checked_items(self, items: ArrayLike, played: Counts) -> Counts:
        positions = np.array(items)
        if positions.shape != played.shape or (positions.size and positions.dtype.kind not in "iu"):
            raise TypeError(f"items must be {played.size} positions, one per result, got {items!r}")
        positions = positions.astype(np.int64)
        outside = (positions < 0) | (positions >= self.n_items)
        if outside.any():
            raise ValueError(f"a position is in 0..{self.n_items - 1}, got {int(positions[outside][0])}")
        return positions

    def _earliest_places(self, played: Counts) -> Counts:
        positions = np.zeros(played.size, np.int64)
        for arm in np.unique(played).tolist():
            mine = np.flatnonzero(played == arm)
            empty = np.flatnonzero(self.population.status[arm] == EMPTY)[: mine.size]
            if empty.size < mine.size:
                raise ValueError(f"arm {arm} has {empty.size} empty places left, got {mine.size} results")
            positions[mine] = empty
        return positions

    def _check_free(self, played: Counts, positions: Counts, nothing: Any) -> None:
        status = self.population.status[played, positions]
        wrong = (status == FILLED) | ((status == GIVEN_UP) & nothing)
        turn = np.lexsort((positions, played))  # a place may be given up and then filled, in this order
        same = (np.diff(played[turn]) == 0) & (np.diff(positions[turn]) == 0)
        again = turn[1:][same & (~nothing[turn[:-1]] | nothing[turn[1:]])]
        wrong[again] = True
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(f"the place of arm {played[row]} at position {positions[row]} is already filled")

    # --- changing the rules

    def amended(
        self,
        *,
        tolerance: float | ArrayLike | None = None,
        resolution: float | ArrayLike | None = None,
        order: Sequence[int] | None = None,
        offered: Sequence[int] | None = None,
        since: Mapping[int, int] | None = None,
        from_pass: int | None = None,
    ) -> Self:
        """The policy under new rules, by everything told so far; this one stays as it is.

        At any time, and nothing is void. `since` gives arms that are added the position where bets on them
        begin: above every position handed out, unless the arm was made without looking at results. With
        preregistered=True the answer is from then on proven by anytime evidence, which has a twentieth of
        delta; before anything is told or, as `from_pass` above 0 says, handed out, the new rules count as
        preregistered.
        """
        given = {"tolerance": tolerance, "resolution": resolution, "order": order, "offered": offered}
        settings = {**self.settings, **{name: value for name, value in given.items() if value is not None}}
        self._check_shares_stay(settings)
        if since:
            begins = self.population.since.copy()
            for arm, position in since.items():
                arm = checked_arm(arm, self.max_arms)
                begins[arm] = whole(f"since[{arm}]", position, least=0, most=self.n_items)
            settings["since"] = begins.tolist()
        new = type(self).__new__(type(self))
        if self.rounds or from_pass or self._closed:
            new._closed, new._share_when_closed = True, self._anytime_share()
        new.__init__(**settings)  # type: ignore[misc]
        new._validator = copy.deepcopy(self._validator)
        new.population.table[:], new.population.status[:] = self.population.table, self.population.status
        for mine, its in zip(self._tallies(), new._tallies(), strict=True):
            its[...] = mine
        new._fold_all()
        old, left = self.state.arms.left, new.state.arms.left
        for arm in np.flatnonzero(left[:, LEFT_AT]).tolist():  # who was out already left then
            if old[arm, LEFT_AT] > 0 and (old[arm, LEFT_ON:] == left[arm, LEFT_ON:]).all():
                left[arm, LEFT_AT] = old[arm, LEFT_AT]
        return new

    # --- what it knows

    @property
    def exact(self) -> bool:
        """Whether it is finished and its answer rests on arithmetic alone: no chance is involved."""
        return self._rests_on(lambda kind: True)

    @property
    def asymptotic(self) -> bool:
        """Whether the promise is only approximate, as a variance is only finite and values are unknown."""
        if not super().asymptotic:
            return False
        return not self._rests_on(lambda kind: kind.traits.approximate)

    def _rests_on(self, sure: Callable[[Kind], bool]) -> bool:
        """Whether the answer is proven if these objectives are evaluated by arithmetic alone."""
        if not self.finished or self.contradiction:
            return False
        return bool(direct(still_proven)(self._without_chance(sure), self.recommendation))

    def _without_chance(self, sure: Callable[[Kind], bool]) -> State:
        state: State = copy.deepcopy(self.state)
        population = self.population._replace(overturned=self.population.overturned.copy())
        direct(keep_exact)(state, population, np.array([sure(kind) for kind in self._kinds]))
        return state

    @property
    def overturned(self) -> tuple[tuple[int, int, int], ...]:
        """(arm, rival, objective) seen and then refuted by arithmetic; rival = arm: of its target."""
        return tuple((a, b, i) for i, a, b in np.argwhere(self.population.overturned).tolist())

    def seen(self, difference: Callable[[int, int, int], tuple[float, float]]) -> tuple[Seen, ...]:
        """Return the certificate; `difference` (arm, rival, objective) gives the intervals in it."""
        if self.contradiction:
            return ()
        exact = self._without_chance(lambda kind: True)
        return certificate(self.state, self.recommendation, difference, self._parts, exact)

    def _parts(self, x: int, y: int, i: int) -> float:
        """How much of the evidence there is that x is not worse than y."""
        limits, kind = self.state.limits[i], self._kinds[i]
        if kind.traits.exact:
            return 0.0
        enough = limits[NOT_WORSE_LEVEL] if self._has_alpha_budget() else limits[LEVEL] + LOG_2
        return float(min(1.0, max(0.0, self._evidence(NOT_WORSE, i, x, y) / enough)))

    def _evidence(self, claim: int, i: int, a: int, b: int) -> float:
        kind, row, way = self._kinds[i], pair_of(min(a, b), max(a, b), self.max_arms), int(a > b)
        if kind.traits.bounded:
            worth = float(self.population.wealth[row, i, :, 2 * way + claim].sum())
            return math.log(worth) if worth > 0.0 else 0.0
        boundary = self.state.limits[i, TOLERANCE] if claim == BEATS else -self.state.limits[i, REACH]
        since = int(max(self.population.since[a], self.population.since[b]))
        return float(later_evidence(self.population, kind, row, i, since, 1.0 - 2.0 * way, float(boundary)))

    def known_exactly(self, i: int) -> dict[int, float]:
        """Arm -> its one value on an exact objective, folded or not."""
        known = {}
        for arm in range(self.max_arms):
            values = self.population.table[arm, :, i]
            told = (
                self.state.singles[arm, i, 1:2]
                if self.state.singles[arm, i, 0] > 0
                else values[~np.isnan(values)]
            )
            if told.size:
                known[arm] = float(told[0])
        return known

    @property
    def target_bounds(self) -> Vector:
        """(rows, m, 2) where each mean lies on objectives with a target; infinite on others."""
        bounds = np.tile([-math.inf, math.inf], (self.max_arms, self.n_objectives, 1))
        for i in np.flatnonzero(~np.isnan(self.state.limits[:, TARGET])).tolist():
            for arm in range(self.max_arms):
                level = float(self.state.limits[i, TARGET_LEVEL]) + math.log(self._anytime_share())
                bounds[arm, i] = self._interval(i, arm, arm, level)
        return bounds

    @property
    def intervals(self) -> Vector:
        """(rows, m, 2) where each mean lies: all of them at all times with probability at least 1 − delta."""
        K, m, level = self.max_arms, self.n_objectives, self._level_of_arms()
        return np.array([[self._interval(i, a, a, level) for i in range(m)] for a in range(K)])

    def _differences(self, pairs: Sequence[tuple[int, int, int]]) -> Vector:
        """(n, 2) of each (arm, other, objective); of an arm that is not offered nothing is known."""
        ends = np.tile([-math.inf, math.inf], (len(pairs), 1))
        offered, lcb = self.state.masks[OFFERED], self.state.lcb
        levels = (self.state.limits[:, LEVEL] + math.log(self._anytime_share())).tolist()
        for at, (arm, other, i) in enumerate(pairs):
            a, b = min(arm, other), max(arm, other)
            if offered[a] and offered[b]:
                low, high = self._interval(i, a, b, levels[i])
                low, high = max(low, float(lcb[i, a, b])), min(high, -float(lcb[i, b, a]))
                ends[at] = (low, high) if arm == a else (-high, -low)
        return ends

    def _interval(self, i: int, a: int, b: int, level: float) -> tuple[float, float]:
        """Where the mean of a − b, or of a if a = b, lies: misses with probability ≤ exp(−level)."""
        kind, population = self._kinds[i], self.population
        since = int(max(population.since[a], population.since[b]))
        if kind.traits.exact:
            known = self.state.singles[[a, b], i, 0].min() > 0
            if a == b:
                mean = float(self.state.arms.means[a, i])
                return (mean, mean) if known else (-math.inf, math.inf)
            return float(self.state.lcb[i, a, b]), -float(self.state.lcb[i, b, a])
        if kind.traits.unbounded:
            if a == b and np.isnan(self.state.limits[i, TARGET]):
                return self._arm_interval(i, a, level)
            row = pair_of(a, b, self.max_arms) if a != b else row_of_arm(a, self.max_arms)
            low, high, _ = later_interval(population, kind, row, i, since, level)
            return (low, high) if not math.isnan(low) else (-math.inf, math.inf)
        n = _coarse(int(min(population.until[a], population.until[b])), self.n_items)
        key = i, a, b, level
        known = self._ends.get(key)
        if known is None or known[0] != n:
            bets = self.n_items, since, population.etas, population.weights, population.risks, level + LOG_2
            prefix = direct(stored_prefix)(population, kind, i, a, b, n)
            ends = [direct(lower_end)(values, *bets) for values in prefix]
            told = told_mean if a == b else told_difference
            known = self._ends[key] = n, float(told(kind, ends[0])), float(told(kind, 1.0 - ends[1]))
        (_, low, high), (least, most) = known, self._possible(i, a, b)
        return (max(low, least), min(high, most)) if n < self.n_items else (low, high)

    def _possible(self, i: int, a: int, b: int) -> tuple[float, float]:
        """Between which ends a mean of bounded values lies, whatever is still to come."""
        kind, N = self._kinds[i], self.n_items
        if a == b:
            missing, total = N - self.state.singles[a, i, 0], self.state.arms.sums[a, i]
            return float(total + missing * kind.low) / N, float(total + missing * kind.high) / N
        lead, back = self.population.sums[pair_of(a, b, self.max_arms), i].sum(axis=1).tolist()
        return float(told_difference(kind, lead / N)), float(told_difference(kind, 1.0 - back / N))

    def _arm_interval(self, i: int, a: int, level: float) -> tuple[float, float]:
        """Of an arm whose values are not bounded and which has no target, by its own moments."""
        n, mean, squares = self.state.singles[a, i, :3].tolist()
        few = n < self.n_items and self._kinds[i].traits.approximate and n < LARGE_SAMPLE
        if self.population.since[a] > 0 or few:
            return -math.inf, math.inf
        radius = finite_radius(n, self.n_items, squares, level)
        return mean - radius, mean + radius

    # --- copies

    def _snapshot(self) -> Self:
        """A copy to be looked at, which shares the intervals that were computed: those take long."""
        twin = copy.copy(self)
        twin._ends = self._ends
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ends": {}}  # looking changes nothing that anybody could see

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FiniteLexElimTol)
            and (self._settings, self._closed) == (other._settings, other._closed)
            and _same(self._essence(), other._essence())
        )

    __hash__ = None  # type: ignore[assignment]

    def _essence(self) -> tuple[Any, ...]:
        """The state but for what depends on when it was evaluated: candidate, whom it asks, rounds."""
        state = self.state
        clock, masks, left = state.clock.copy(), state.masks.copy(), state.arms.left.copy()
        clock[NEXT] = 0
        if not self.finished:
            clock[CANDIDATE] = 0
        masks[BY_PROOF] = False
        left[:, LEFT_AT] = left[:, LEFT_AT] > 0
        return self.population, state._replace(clock=clock, masks=masks, arms=state.arms._replace(left=left))
