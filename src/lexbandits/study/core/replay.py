"""The record and the policy that follows from it: what to ask next, and what is known so far."""

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lexbandits.study.core.events import Event
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.trial_columns import RELEASED, TOLD, Place
from lexbandits.study.errors import ODD, DamagedError, StorageVersionError, StudyError
from lexbandits.study.states import StudyState

if TYPE_CHECKING:
    from lexbandits.policies import LexElimTol
    from lexbandits.policies.tolerance.finite.finite_policy import FiniteLexElimTol

PORTION = 5_000  # events
MOST_ONE_BY_ONE = 20  # results told faster one by one
MOST_AHEAD = 64  # passes that may wait behind trials under way
MOST_AHEAD_EACH = 4  # for each of these, if they are many
MISSING_AFTER = 5.0  # seconds that a trial may take before what waits behind it counts as ahead
MANY_OPEN = 64  # trials: from there on the next places are looked up ahead
AHEAD = 256  # places
LEAST_WORTH_A_LOOK = 8  # passes that wait: from there on they may decide


def make_policy(name: str, settings: dict[str, Any]) -> "LexElimTol":
    """The policy that the first event of a journal names."""
    from lexbandits.policies import BY_NAME  # numba is slow to import, and not every use folds

    if name not in BY_NAME:
        raise StorageVersionError(f"the study's policy {name!r} is unknown: written by a newer lexbandits")
    policy: Any = BY_NAME[name](**settings)
    return cast("LexElimTol", policy.quiet())  # a study warns by name, once the result is safe


def _as_arguments(change: dict[str, Any]) -> dict[str, Any]:
    """A change of the rules as the policy takes it; what was cached has texts for numbers."""
    if "since" not in change:
        return change
    return {**change, "since": {int(arm): position for arm, position in change["since"].items()}}


class Replay:
    """A projection with its policy, which is brought up to date when somebody looks at it.

    The policy's state is a function of the filled places and of the changes of the rules, so that replay
    from nothing and going on from where it was give the same.
    """

    def __init__(self, projection: Projection | None = None) -> None:
        self.projection = Projection() if projection is None else projection
        self._start_again()

    def _start_again(self) -> None:
        self.disagreements: list[str] = []  # ends on record that the replay does not confirm
        self._policy: LexElimTol | None = None
        self._fills = self._stops = self._seq = 0  # how many of each the policy knows
        self._revision = self.projection.revision
        self.memory: dict[Any, Any] = {}  # what was made of a state, by its maker
        self.soonest = math.inf, 0  # no lease ends before, of so many trials
        self._ahead: tuple[Any, int, int, list[Place]] = (None, 0, 0, [])
        self._decides = -1, 0, False

    def frozen(self) -> "Replay":
        """A copy of this state, to be looked at while the study goes on.

        It shares what was made of earlier states: whoever looks at the next copy goes on from there.
        """
        policy, twin = self.policy, copy.copy(self)
        twin.projection, twin._policy = copy.copy(self.projection), policy._snapshot()
        twin.disagreements = [*self.disagreements]
        return twin

    def apply(self, events: Iterable[Event]) -> None:
        """Record what has happened."""
        stream = iter(events)
        while portion := list(islice(stream, PORTION)):  # a tenth faster than one by one out of a storage
            self.projection.apply(portion)

    @property
    def repeating(self) -> Mapping[int, int]:
        """What looks repeated to the policy, as somebody last looked at it (`LexElimTol.repeating`)."""
        return {} if self._policy is None else self._policy.repeating

    @property
    def policy(self) -> "LexElimTol":
        """The policy after everything on record. Not to be changed: use a copy."""
        if self._policy is not None and self._seq == self.projection.seq:
            return self._policy
        try:
            return self._catch_up()
        except BaseException as error:  # Ctrl-C too: the policy may have been told more than was noted
            self._start_again()
            if isinstance(error, ODD) and not isinstance(error, StudyError):
                raise DamagedError(f"the record cannot be replayed: {error}") from error
            raise

    @property
    def list_policy(self) -> "FiniteLexElimTol":
        """The same, of a list."""
        return cast("FiniteLexElimTol", self.policy)

    def _catch_up(self) -> "LexElimTol":
        projection, policy = self.projection, self._policy
        if policy is None or self._revision != projection.revision:  # a filled place was corrected
            self._start_again()
            policy = make_policy(projection.policy, projection.settings)
        while self._stops < len(projection.stops):
            stop = projection.stops[self._stops]
            self._tell_until(policy, stop.position)
            if stop.is_end:
                self._compare(policy, stop.data)
            else:
                policy = policy.amended(**_as_arguments(stop.data))
            self._stops += 1
        if self._fills < len(projection.fills):
            self._tell_until(policy, len(projection.fills))
        self._policy, self._seq = policy, projection.seq
        return policy

    def _tell_until(self, policy: "LexElimTol", position: int) -> None:
        projection = self.projection
        if position - self._fills <= MOST_ONE_BY_ONE:
            for fill in projection.fills[self._fills : position]:
                number = ~fill if fill < 0 else fill
                policy.tell_checked(
                    projection.arm[number], projection.reward(fill), projection.pass_of[number]
                )
        else:
            arms, passes, values = projection.filled(self._fills, position)
            policy.tell_many(arms, projection.spec.signed(values), items=passes)
        self._fills = position

    def _compare(self, policy: "LexElimTol", recorded: dict[str, Any]) -> None:
        if not policy.finished:
            self.disagreements.append("the replay has not ended where the record has")
        elif (found := self.projection.arm_names[policy.recommendation]) != recorded["arm"]:
            self.disagreements.append(f"the record answers {recorded['arm']!r}, the replay {found!r}")

    # --- what to ask

    @property
    def state(self) -> StudyState:
        """Where the study stands."""
        projection = self.projection
        if projection.end is not None or self.policy.finished:
            return StudyState.FINISHED
        if projection.paused is not None:
            return StudyState.PAUSED
        if projection.budget is not None and projection.handed_out >= projection.budget:
            return StudyState.BUDGET_SPENT
        if projection.spec.is_list:
            spent = not projection.open and not projection.again and not self.policy.ask_places(1)
        else:
            spent = (
                projection.drawn is not None and self.policy.ask_place(self.pending())[1] >= projection.passes
            )
        if spent:
            return StudyState.ITEMS_SPENT
        return StudyState.MEASURING

    def next_places(self, n: int, now: float) -> list[Place]:
        """Up to n places to hand out at the time `now`, in a study that is measuring.

        Time decides when a place is handed out, never which of its values count: the policy does not know it.
        """
        projection = self.projection
        if projection.budget is not None:
            n = min(n, projection.budget - projection.handed_out)
        policy = self.policy
        if projection.spec.is_list:
            again = [*projection.again][:n]
            return again + self._next_of_list(n - len(again), self.pending(), now)
        if len(projection.open) < MANY_OPEN:
            pending = self.pending()
            places = [policy.ask_place(pending)] if n == 1 else policy.ask_places(n, pending)
        else:
            places = self._places_ahead(n)
        last = policy.folded + policy.leader_repeats - 1 if self.is_held_back(now) else projection.passes - 1
        return [place for place in places if place[1] <= last]

    def _places_ahead(self, n: int) -> list[Place]:
        """Return the next n places, looked up for many asks at once.

        The order of places changes when a pass is folded, the rules change, or a trial is released. Otherwise
        what is told was open before, so that the places that are neither filled nor open are the same but for
        those asked since. Looking through thousands of open trials on every ask would take milliseconds.
        """
        projection, policy, asked = self.projection, self.policy, len(self.projection)
        fills = len(projection.fills) if projection.stops else 0
        when = policy.folded, len(projection.stops), fills, self._revision, projection.counts[RELEASED]
        known, at, skip, places = self._ahead
        new = list(map(projection.place, range(at, asked))) if known == when else []
        if known != when or new != places[skip : skip + len(new)] or skip + len(new) + n > len(places):
            new, skip, places = [], 0, policy.ask_places(n + AHEAD, self.pending())
        skip += len(new)
        self._ahead = when, asked, skip, places
        return places[skip : skip + n]

    def _next_of_list(self, n: int, pending: list[Place], now: float) -> list[Place]:
        """The same of a list: each arm is held back by its own trials under way."""
        policy = self.list_policy
        if not self.is_held_back(now):
            return policy.ask_places(n, pending)
        if self._would_decide():
            return []
        most = self._most_ahead()
        ahead = np.count_nonzero(policy.population.status, axis=1) - policy.population.until
        late = {
            self.projection.arm[number] for number in self.projection.open if self._is_missing(number, now)
        }
        # as if all that is left of them were under way
        held = [arm for arm in np.flatnonzero(ahead > most).tolist() if arm in late]
        gone = [(arm, place) for arm in held for place in range(policy.until[arm], policy.n_items)]
        return policy.ask_places(n, [*pending, *gone])

    def _most_ahead(self) -> int:
        return max(MOST_AHEAD, MOST_AHEAD_EACH * len(self.projection.open))

    def is_held_back(self, now: float) -> bool:
        """Whether so much waits behind trials under way that to ask more would be to burn the budget.

        One dead worker holds back all that follows until its lease runs out: what waits may be enough.
        Quick workers get far ahead of one that the machine lets pause for a moment, who is not missing.
        """
        waiting = self.policy.passes_buffered
        if waiting < LEAST_WORTH_A_LOOK:
            return False
        return (waiting > self._most_ahead() and self._lacks_somebody(now)) or self._would_decide()

    def _lacks_somebody(self, now: float) -> bool:
        """Whether the trial behind which everything waits is missing; a place given back is nobody's."""
        if self.projection.spec.is_list:
            return any(self._is_missing(number, now) for number in self.projection.open)
        first = min(self._awaited(), key=self._rank, default=None)
        return first is None or self._is_missing(first, now)

    def _is_missing(self, number: int, now: float) -> bool:
        """Whether an open trial was handed out a while ago; by a clock that was set back, too."""
        return abs(now - self.projection.asked[number]) >= MISSING_AFTER

    def _would_decide(self) -> bool:
        """Whether what waits would end the study if nothing came of the trials under way."""
        projection, folded, fills = self.projection, self.policy.folded, len(self.projection.fills)
        when, again, decides = self._decides
        if when != folded or (fills >= again and not decides):
            twin = copy.copy(self.policy)
            for number in sorted(projection.open, key=self._rank):
                if twin.finished or projection.pass_of[number] < folded or number in projection.retries:
                    continue
                nothing = projection.reward_if_expired(number)
                twin.tell_checked(projection.arm[number], nothing, projection.pass_of[number])
            decides = bool(twin.finished)
            self._decides = folded, fills + max(8, fills // 20), decides
        return decides

    def pending(self) -> list[Place]:
        """The places in flight that may still be folded."""
        projection, folded = self.projection, self.policy.folded
        if not projection.open:
            return []
        places = ((projection.arm[number], projection.pass_of[number]) for number in projection.open)
        return [place for place in places if place[1] >= folded]

    # --- what a result is worth

    def told_waiting(self) -> list[int]:
        """The results that wait."""
        projection, policy = self.projection, self.policy
        if not projection.open or (projection.spec.is_list and policy.finished):
            return []
        if not projection.spec.is_list:
            told = projection.told_from(policy.folded)
            return [n for n, waits in zip(told, self.waiting(told), strict=True) if waits]
        until = np.array(self.list_policy.until)[np.frombuffer(projection.arm, "i")]
        ahead = (np.frombuffer(projection.pass_of, "q") >= until) & (
            np.frombuffer(projection.state, "b") == TOLD
        )
        return np.flatnonzero(ahead).tolist()

    def waiting(self, numbers: Sequence[int]) -> list[bool]:
        """Whether these results wait: a place before theirs, in the order of asking, may still be filled."""
        if self.projection.spec.is_list:
            until, over = self.list_policy.until, self.policy.finished
            places = map(self.projection.place, numbers)
            return [not over and position >= until[arm] for arm, position in places]
        if len(numbers) == 1:  # the oldest open trial decides it, as a rule
            mine = self._rank(numbers[0])
            return [any(self._rank(number) < mine for number in self._awaited())]
        ahead = min(map(self._rank, self._awaited()), default=None)
        return [ahead is not None and ahead < self._rank(number) for number in numbers]

    def holding_back(self, numbers: Sequence[int]) -> list[int]:
        """The open trials behind which any of these waits."""
        if self.projection.spec.is_list:
            last_of = {self.projection.arm[n]: 0 for n in numbers}
            for arm, position in map(self.projection.place, numbers):
                last_of[arm] = max(last_of[arm], position)
            places = ((number, *self.projection.place(number)) for number in sorted(self.projection.open))
            return [number for number, arm, position in places if position < last_of.get(arm, -1)]
        last = max(map(self._rank, numbers), default=(-1, -1))
        return sorted(number for number in self._awaited() if self._rank(number) < last)

    def first_awaited(self) -> int:
        """The open trial behind which everything waits that does."""
        return min(self._awaited(), key=self._rank)

    def _awaited(self) -> Iterator[int]:
        """The open trials that the current pass lacks, or that a later one may lack; the oldest first."""
        projection, policy = self.projection, self.policy
        if not projection.open or projection.spec.is_list:
            return iter(projection.open)
        arm, pass_of, lacking = projection.arm, projection.pass_of, set(policy.lacking)
        later = policy.folded + policy.leader_repeats
        return (n for n in projection.open if pass_of[n] >= later or (arm[n], pass_of[n]) in lacking)

    def _rank(self, number: int) -> tuple[int, int]:
        """Not by number: the place of a released trial is asked again as a later one."""
        return self.projection.pass_of[number], self.projection.arm[number]
