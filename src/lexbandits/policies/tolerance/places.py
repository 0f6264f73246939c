"""Places: a result belongs to its arm and pass, whenever it comes; what is ahead of its pass waits.

A pass is folded when the places of all its members are filled, so the state is a function of the set
of filled places, in whatever order they were filled.

Where the leader is asked r times, a place is (arm, r·pass + j): the j-th of its arm in that pass. Members,
and who leads, are functions of the passes folded before: places of arms that do not lead, j > 0, count for
nothing.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import count as numbers_from
from itertools import islice, takewhile
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import direct, portion
from lexbandits._validation import checked_arm, checked_history, checked_pending, checked_reward, whole
from lexbandits.policies.policy import Policy
from lexbandits.policies.tolerance.buffer import Place, ResultBuffer
from lexbandits.policies.tolerance.passes import (
    count,
    earliest_repeat,
    fill,
    leader_of,
    observe_place,
    pass_arrays,
    replay,
    row_asked,
)
from lexbandits.policies.tolerance.state import ASKED, FILLED, HIGHEST, LEADER, OVER, PASS, TURN
from lexbandits.policies.tolerance.validation import RewardValidator


def checked_places(pending: Iterable[Any], n_arms: int) -> set[Place]:
    """The places in flight, (arm, pass) pairs."""
    expected = "pending must be the places in flight, such as [(0, 12), (2, 12)]"
    places = set()
    try:
        for place in pending:
            arm, number = place
            if not (type(arm) is type(number) is int and 0 <= arm < n_arms and number >= 0):
                arm, number = checked_arm(arm, n_arms), whole("a pass", number, least=0)
            places.add((arm, number))
    except TypeError:
        raise TypeError(f"{expected}, got {pending!r}") from None
    except ValueError as error:
        raise ValueError(f"{expected}: {error}") from None
    return places


class PlacePolicy(Policy):
    """A policy whose results belong to places.

    Who changes the rules may have seen values of passes that are begun and not folded, so these keep their
    members: `_before`, the policy under the earlier rules, goes on folding passes below `_until`, and this
    one, which was evaluated when the rules changed, takes over from there.
    """

    max_arms: int
    _validator: RewardValidator
    _buffer: ResultBuffer
    _before: Self | None = None
    _until = 0  # passes
    leader_repeats = 1

    @property
    def finished(self) -> bool:
        """Whether the policy has its answer."""
        return bool(self.state.clock[OVER])

    @property
    def passes_folded(self) -> int:
        """Passes that are over: the number of the current one."""
        return int(self.state.clock[PASS]) if self._before is None else self._before.passes_folded

    @property
    def folded(self) -> int:
        """The number of the first places of the current pass; below it nothing is waited for."""
        return self.passes_folded * self.leader_repeats

    @property
    def until(self) -> tuple[int, ...]:
        """Per arm the numbers of places folded."""
        return (self.folded,) * self.max_arms

    @property
    def passes_buffered(self) -> int:
        """Passes of which results wait, as the current one lacks some."""
        before = 0 if self._before is None else self._before.passes_buffered
        return before + len({number // self.leader_repeats for number in self._buffer._passes})

    @property
    def lacking(self) -> tuple[Place, ...]:
        """The places that the current pass waits for."""
        if self._before is not None:
            return () if self.finished else self._before.lacking
        return tuple(self._empty_here())

    def _empty_here(self) -> list[Place]:
        """The places that the current pass of these rules lacks."""
        clock, masks, times = self.state.clock, self.state.masks, self.leader_repeats
        arms = np.flatnonzero(masks[ASKED] & ~masks[FILLED]).tolist()
        first, leader = int(clock[PASS]) * times, int(clock[LEADER])
        if leader < 0:
            return [(arm, first) for arm in arms]
        left = np.flatnonzero(self.state.repeats[:, -1] == 0.0).tolist()
        return [(arm, first + repeat) for arm in arms for repeat in (left if arm == leader else (0,))]

    def parts_of_pass(self, place: int) -> dict[int, float]:
        """Which part of the places each arm has in the pass of this one, as the folded passes decide."""
        times = self.leader_repeats
        number = place // times
        if self._before is not None and number < self._until:
            return self._before.parts_of_pass(place)
        leader = leader_of(self.state, number)
        arms = np.flatnonzero(self.state.masks[row_asked(self.state, number)]).tolist()
        places = {arm: times if arm == leader else 1 for arm in arms}
        return {arm: each / sum(places.values()) for arm, each in places.items()}

    def ask(self, pending: Iterable[int] = ()) -> int:
        """The arm to measure next, given the arms in flight; the recommendation once finished. Pure."""
        if self.finished:
            return self.recommendation
        if isinstance(pending, tuple) and not pending and not self._buffer and self._before is None:
            return int(self.state.clock[TURN])
        return self.ask_many(1, pending)[0]

    def ask_many(self, count: int, pending: Iterable[int] = ()) -> list[int]:
        """`count` arms to measure at once, given the arms in flight. Pure."""
        count = whole("count", count, least=0)
        flying = checked_pending(pending, self.max_arms)
        arms: list[int] = []
        places = self._open_places()
        while len(arms) < count:
            arm, _ = next(places)
            if flying[arm] > 0:
                flying[arm] -= 1
            else:
                arms.append(arm)
        return arms

    def ask_place(self, pending: Iterable[Place] = ()) -> Place:
        """The (arm, pass) to measure next, given those in flight. Pure.

        First what the current pass lacks, then places of the next passes as they would be asked if
        nothing changed. What is asked in vain costs a measurement, never the promise.
        """
        clock = self.state.clock
        if isinstance(pending, (list, tuple)) and not pending and clock[OVER] == 0 and self._before is None:
            arm, first = int(clock[TURN]), int(clock[PASS]) * self.leader_repeats
            return arm, first + int(earliest_repeat(self.state.repeats)) if arm == clock[LEADER] else first
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
        arm = checked_arm(arm, self.max_arms)
        vector = checked_reward(reward, self.n_objectives, missing=True)
        self._validator.check(arm, vector)
        self._check_exact([arm], vector[None, :])
        self.tell_checked(arm, vector, self._earliest(arm) if item is None else self._number(item))

    def tell_checked(self, arm: int, vector: Vector, number: int) -> None:
        """`tell` without checks: a study has checked what it records."""
        clock, (pass_, repeat) = self.state.clock, divmod(number, self.leader_repeats)
        if self._before is not None and pass_ < self._until:
            folded = self._before.folded
            self._before.tell_checked(arm, vector, number)
            self._count([arm], [number])
            if self._before.folded > folded or self._has_arrived():
                self._take_over()
        elif clock[OVER] == 1 or pass_ < clock[PASS]:
            self._count([arm], [number])
        else:
            if self._is_filled((arm, number)):
                raise ValueError(f"the place of arm {arm} in pass {number} is already filled")
            self._validator.watch(arm, vector)
            if pass_ == clock[PASS] and self._before is None:
                direct(observe_place)(self.state, arm, repeat, vector)
                if self._buffer or clock[OVER] == 1:
                    self._go_on()
            else:
                self._wait([arm], [number], vector[None, :])

    def tell_many(self, arms: ArrayLike, rewards: ArrayLike, items: ArrayLike | None = None) -> None:
        """Report many results: all are checked, then all are told, in compiled code."""
        shape = self.max_arms, self.n_objectives
        played, table = checked_history(arms, rewards, *shape, missing=True)
        self._validator.check_many(played.tolist(), table)
        self._check_exact(played.tolist(), table)
        numbers = np.full(played.size, -1, np.int64) if items is None else self._checked_items(items, played)
        if items is not None:  # the state does not depend on the order, the speed does
            turn = np.lexsort((played, numbers))
            played, table, numbers = played[turn], np.ascontiguousarray(table[turn]), numbers[turn]
        told = 0
        while self._before is not None and told < played.size:
            arm, number = int(played[told]), int(numbers[told])
            self.tell_checked(arm, table[told].copy(), self._earliest(arm) if number < 0 else number)
            told += 1
        self._validator.watch_many(played[told:], table[told:])
        while told < played.size:
            end = told + portion(played.size - told)
            came = direct(replay)(
                self.state, played[:end], table[:end], numbers[:end], told, bool(self._buffer)
            )
            if came > told:
                self._go_on()
            elif items is None:
                arm, came = int(played[told]), told + 1
                self._wait([arm], [self._earliest(arm)], table[told:came])
            else:  # by passes, so all that follow are ahead too
                came = played.size
                self._wait(played[told:].tolist(), numbers[told:].tolist(), table[told:])
            told = came

    def _wait(self, arms: list[int], numbers: list[int], table: Vector) -> None:
        for place, values in zip(zip(arms, numbers, strict=True), table.copy(), strict=True):
            self._buffer.put(place, values)
        self._count(arms, numbers)

    def _count(self, arms: list[int], numbers: list[int]) -> None:
        for arm, number in zip(arms, numbers, strict=True):
            count(pass_arrays(self.state), arm, number // self.leader_repeats)

    def _go_on(self) -> None:
        """Fill the current pass from what waits; after the end nothing waits."""
        clock, times = self.state.clock, self.leader_repeats
        while self._buffer and clock[OVER] == 0:
            number = int(clock[PASS])
            for repeat in range(times):
                for arm, values in self._buffer.take(number * times + repeat):
                    if clock[PASS] == number:
                        direct(fill)(self.state, arm, repeat, values)
            if clock[PASS] == number:
                break
        if clock[OVER] == 1:
            self._buffer.clear()

    def _take_over(self) -> None:
        """Show what the passes begun under earlier rules have brought, and go on once they are over."""
        before = self._before
        if before is None or self.finished:
            return  # an answer stays what it was when the rules changed
        if not self._has_arrived():  # and what was seen here must not decide on members there
            self._copy_evidence(before)
            return
        before._copy_seen(self)
        new = before._ruled_by(self.settings, int(self.state.clock[PASS]))
        for old, now in zip(self._tallies(), new._tallies(), strict=True):
            now[...] = old
        self.state, self._before = new.state, None
        self._go_on()

    def _has_arrived(self) -> bool:
        """Whether every pass begun under the earlier rules is over."""
        before = self._before
        return before is None or (
            before._before is None and (before.finished or before.passes_folded >= self._until)
        )

    @abstractmethod
    def _ruled_by(self, settings: dict[str, Any], start: int) -> Self:
        """A policy of other rules that begin with pass `start`, on what is folded here."""

    @abstractmethod
    def _copy_evidence(self, other: "PlacePolicy") -> None:
        """What another policy has folded."""

    @abstractmethod
    def _copy_seen(self, other: "PlacePolicy") -> None:
        """What another policy has seen of the same results, where it is more."""

    def _tallies(self) -> tuple[Counts, ...]:
        """What counts results as they are told, folded or not."""
        return self.state.arms.told, self.state.arms.pulls, self.state.clock[HIGHEST, None]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PlacePolicy)
            and super().__eq__(other)
            and (self._buffer, self._until) == (other._buffer, other._until)
            and self._before == other._before
        )

    __hash__ = None

    def _is_filled(self, place: Place) -> bool:
        arm, (pass_, repeat) = place[0], divmod(place[1], self.leader_repeats)
        if self._before is not None:
            return self._before._is_filled(place) if pass_ < self._until else place in self._buffer
        here = pass_ == self.state.clock[PASS]
        if here and arm == self.state.clock[LEADER]:
            here = self.state.repeats[repeat, -1] > 0.0
        elif here:
            here = repeat == 0 and self.state.masks[FILLED, arm]
        return bool(here) or place in self._buffer

    def _number(self, item: Any) -> int:
        """What a place is called beside its arm."""
        return whole("item", item, least=0, most=2**62)

    def _earliest(self, arm: int) -> int:
        number, times = self.folded, self.leader_repeats
        if self.state.clock[OVER] == 0:
            here = [place[1] for place in self.lacking if place[0] == arm] if times > 1 else []
            if here:
                return here[0]
            while self._is_filled((arm, number)):
                number += times
        return number

    def _open_places(self) -> Iterator[Place]:
        """Places to fill, as things stand, for ever."""
        now, times = int(self.state.clock[PASS]), self.leader_repeats
        if self.finished:
            yield from ((self.recommendation, number) for number in numbers_from(now * times, times))
        if self._before is not None:
            end = self._until * times
            yield from takewhile(lambda place: place[1] < end, self._before._open_places())
        members = [np.flatnonzero(row).tolist() for row in self.state.masks]

        def asked(number: int) -> list[Place]:  # as in `parts_of_pass`
            first, leader = number * times, leader_of(self.state, number)
            places = [(arm, first) for arm in members[row_asked(self.state, number)]]
            return places + [(leader, first + repeat) for repeat in range(1, times if leader >= 0 else 1)]

        if self._before is not None:
            now -= 1  # of this policy's own passes none is folded yet: all results wait
        else:
            yield from self._empty_here()
        yield from self._buffer.empty_places(now, asked, times)

    def _checked_items(self, items: ArrayLike, played: Counts) -> Counts:
        numbers = np.array(items)
        if numbers.shape != played.shape or (numbers.size and numbers.dtype.kind not in "iu"):
            raise TypeError(f"items must be {played.size} passes, one per result, got {items!r}")
        numbers = numbers.astype(np.int64)
        if numbers.size and numbers.min() < 0:
            raise ValueError(f"a pass is an integer from 0 on, got {int(numbers.min())}")
        if self.state.clock[OVER] == 0:
            later = numbers >= self.folded
            self._check_empty(played[later], numbers[later])
        return numbers

    def _check_empty(self, played: Counts, numbers: Counts) -> None:
        turn = np.lexsort((played, numbers))
        arms, passes = played[turn], numbers[turn]
        twice = (arms[1:] == arms[:-1]) & (passes[1:] == passes[:-1])
        here = (passes == self.state.clock[PASS]) & self.state.masks[FILLED, arms]
        some_wait = self._buffer or self._before is not None or self.leader_repeats > 1
        here &= not some_wait  # then `_is_filled` knows
        places = zip(arms.tolist(), passes.tolist(), strict=True) if some_wait else ()
        ahead = np.array([self._is_filled(place) for place in places], np.bool_)
        for filled in (here, ahead, twice):
            if filled.any():
                row = int(np.flatnonzero(filled)[0])
                raise ValueError(f"the place of arm {arms[row]} in pass {passes[row]} is already filled")

    def _check_exact(self, arms: list[int], rewards: Vector) -> None:
        """Refuse a value that an arm cannot have after what it was told; here: nothing."""
