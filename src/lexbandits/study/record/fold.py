"""The record and the policy that follows from it: what to ask next, and what is known so far."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lexbandits.study.errors import ODD, DamagedError, StorageVersionError, StudyError
from lexbandits.study.record import stretches
from lexbandits.study.record.events import Event
from lexbandits.study.record.ledger import Ledger
from lexbandits.study.record.trials import TOLD, Place

if TYPE_CHECKING:
    from lexbandits.policies import LexElimTol
    from lexbandits.policies.tol.list_policy import ListTol

MOST_ONE_BY_ONE = 20  # results told faster one by one
MOST_AHEAD = 64  # passes that may wait behind trials under way
MOST_AHEAD_EACH = 4  # for each of these, if they are many
MISSING_AFTER = 5.0  # seconds that a trial may take before what waits behind it counts as ahead
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


class Fold:
    """A ledger with its policy, which is brought up to date when somebody looks at it.

    The policy's state is a function of the filled places and of the changes of the rules, so that replay
    from nothing and going on from where it was give the same.
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = Ledger() if ledger is None else ledger
        self.disagreements: list[str] = []  # ends on record that the replay does not confirm
        self._start_again()

    def _start_again(self) -> None:
        self._policy: LexElimTol | None = None
        self._fills = self._stops = self._seq = 0  # how many of each the policy knows
        self._revision = self.ledger.revision
        self.memory: dict[str, Any] = {}  # what was made of a state, by who made it
        self.disagreements.clear()

    def apply(self, events: Iterable[Event]) -> None:
        """Record what has happened."""
        stretches.apply(self.ledger, events)

    @property
    def repeating(self) -> Mapping[int, int]:
        """What looks repeated to the policy, as somebody last looked at it (`LexElimTol.repeating`)."""
        return {} if self._policy is None else self._policy.repeating

    @property
    def policy(self) -> "LexElimTol":
        """The policy after everything on record. Not to be changed: use a copy."""
        if self._policy is not None and self._seq == self.ledger.seq:
            return self._policy
        try:
            return self._catch_up()
        except BaseException as error:  # Ctrl-C too: the policy may have been told more than was noted
            self._start_again()
            if isinstance(error, ODD) and not isinstance(error, StudyError):
                raise DamagedError(f"the record cannot be replayed: {error}") from error
            raise

    @property
    def list_policy(self) -> "ListTol":
        """The same, of a list."""
        return cast("ListTol", self.policy)

    def _catch_up(self) -> "LexElimTol":
        ledger, policy = self.ledger, self._policy
        if policy is None or self._revision != ledger.revision:  # a filled place was corrected
            self._start_again()
            policy = make_policy(ledger.policy, ledger.settings)
        while self._stops < len(ledger.stops):
            stop = ledger.stops[self._stops]
            self._tell_until(policy, stop.position)
            if stop.kind == "rules":
                policy = policy.amended(**_as_arguments(stop.data))
            else:
                self._compare(policy, stop.data)
            self._stops += 1
        if self._fills < len(ledger.fills):
            self._tell_until(policy, len(ledger.fills))
        self._policy, self._seq = policy, ledger.seq
        return policy

    def _tell_until(self, policy: "LexElimTol", position: int) -> None:
        ledger = self.ledger
        if position - self._fills <= MOST_ONE_BY_ONE:
            for fill in ledger.fills[self._fills : position]:
                number = ~fill if fill < 0 else fill
                policy.tell_checked(ledger.arm[number], ledger.reward(fill), ledger.pass_of[number])
        else:
            arms, passes, values = ledger.filled(self._fills, position)
            policy.tell_many(arms, ledger.spec.signed(values), items=passes)
        self._fills = position

    def _compare(self, policy: "LexElimTol", recorded: dict[str, Any]) -> None:
        if not policy.finished:
            self.disagreements.append("the replay has not ended where the record has")
        elif (found := self.ledger.arm_names[policy.recommendation]) != recorded["arm"]:
            self.disagreements.append(f"the record answers {recorded['arm']!r}, the replay {found!r}")

    # --- what to ask

    @property
    def state(self) -> str:
        """ "measuring", "finished", "paused", "budget spent" or "items spent"."""
        ledger = self.ledger
        if ledger.end is not None or self.policy.finished:
            return "finished"
        if ledger.paused is not None:
            return "paused"
        if ledger.budget is not None and ledger.handed_out >= ledger.budget:
            return "budget spent"
        if ledger.spec.is_list:
            spent = not ledger.open and not ledger.again and not self.policy.ask_places(1)
        else:
            spent = ledger.drawn is not None and self.policy.ask_place(self.pending())[1] >= ledger.passes
        if spent:
            return "items spent"
        return "measuring"

    def next_places(self, n: int, now: float) -> list[Place]:
        """Up to n places to hand out at the time `now`, in a study that is measuring.

        Time decides when a place is handed out, never which of its values count: the policy does not know it.
        """
        ledger = self.ledger
        if ledger.budget is not None:
            n = min(n, ledger.budget - ledger.handed_out)
        policy, pending = self.policy, self.pending()
        if ledger.spec.is_list:
            again = [*ledger.again][:n]
            return again + self._next_of_list(n - len(again), pending, now)
        places = [policy.ask_place(pending)] if n == 1 else policy.ask_places(n, pending)
        last = policy.folded if self.is_held_back(now) else ledger.passes - 1
        return [place for place in places if place[1] <= last]

    def _next_of_list(self, n: int, pending: list[Place], now: float) -> list[Place]:
        """The same of a list: each arm is held back by its own trials under way."""
        policy = self.list_policy
        if not self.is_held_back(now):
            return policy.ask_places(n, pending)
        if self._would_decide():
            return []
        most = self._most_ahead()
        ahead = np.count_nonzero(policy.listed.status, axis=1) - policy.listed.until
        late = {self.ledger.arm[number] for number in self.ledger.open if self._is_missing(number, now)}
        # as if all that is left of them were under way
        held = [arm for arm in np.flatnonzero(ahead > most).tolist() if arm in late]
        gone = [(arm, place) for arm in held for place in range(policy.until[arm], policy.n_items)]
        return policy.ask_places(n, [*pending, *gone])

    def _most_ahead(self) -> int:
        return max(MOST_AHEAD, MOST_AHEAD_EACH * len(self.ledger.open))

    def is_held_back(self, now: float) -> bool:
        """Whether so much waits behind trials under way that to ask more would be to burn the budget.

        One dead worker holds back all that follows until its lease runs out: what waits may be enough.
        Quick workers get far ahead of one that the machine lets pause for a moment, who is not missing.
        """
        waiting = self.policy.passes_waiting
        if waiting < LEAST_WORTH_A_LOOK:
            return False
        return (waiting > self._most_ahead() and self._lacks_somebody(now)) or self._would_decide()

    def _lacks_somebody(self, now: float) -> bool:
        """Whether the trial behind which everything waits is missing; a place given back is nobody's."""
        if self.ledger.spec.is_list:
            return any(self._is_missing(number, now) for number in self.ledger.open)
        awaited = self._awaited()
        return not awaited or self._is_missing(min(awaited, key=self._rank), now)

    def _is_missing(self, number: int, now: float) -> bool:
        """Whether an open trial was handed out a while ago; by a clock that was set back, too."""
        return abs(now - self.ledger.asked[number]) >= MISSING_AFTER

    def _would_decide(self) -> bool:
        """Whether what waits would end the study if nothing came of the trials under way."""
        ledger, folded, fills = self.ledger, self.policy.folded, len(self.ledger.fills)
        when, again, decides = self.memory.get("would decide", (-1, 0, False))
        if when != folded or (fills >= again and not decides):
            twin = copy.copy(self.policy)
            for number in sorted(ledger.open, key=self._rank):
                if twin.finished or ledger.pass_of[number] < folded or number in ledger.retries:
                    continue
                nothing = ledger.reward_if_expired(number)
                twin.tell_checked(ledger.arm[number], nothing, ledger.pass_of[number])
            decides = bool(twin.finished)
            self.memory["would decide"] = folded, fills + max(8, fills // 20), decides
        return bool(decides)

    def pending(self) -> list[Place]:
        """The places in flight that may still be folded."""
        ledger, folded = self.ledger, self.policy.folded
        if not ledger.open:
            return []
        places = ((ledger.arm[number], ledger.pass_of[number]) for number in ledger.open)
        return [place for place in places if place[1] >= folded]

    # --- what a result is worth

    def told_waiting(self) -> list[int]:
        """The results that wait."""
        ledger, policy = self.ledger, self.policy
        if not ledger.open or (ledger.spec.is_list and policy.finished):
            return []
        if not ledger.spec.is_list:
            told = ledger.told_from(policy.folded)
            return [n for n, waits in zip(told, self.waiting(told), strict=True) if waits]
        until = np.array(self.list_policy.until)[np.frombuffer(ledger.arm, "i")]
        ahead = (np.frombuffer(ledger.pass_of, "q") >= until) & (np.frombuffer(ledger.state, "b") == TOLD)
        return np.flatnonzero(ahead).tolist()

    def waiting(self, numbers: Sequence[int]) -> list[bool]:
        """Whether these results wait: a place before theirs, in the order of asking, may still be filled."""
        if self.ledger.spec.is_list:
            until, over = self.list_policy.until, self.policy.finished
            places = map(self.ledger.place, numbers)
            return [not over and position >= until[arm] for arm, position in places]
        ahead = min(map(self._rank, self._awaited()), default=None)
        return [ahead is not None and ahead < self._rank(number) for number in numbers]

    def holding_back(self, numbers: Sequence[int]) -> list[int]:
        """The open trials behind which any of these waits."""
        if self.ledger.spec.is_list:
            last_of = {self.ledger.arm[n]: 0 for n in numbers}
            for arm, position in map(self.ledger.place, numbers):
                last_of[arm] = max(last_of[arm], position)
            places = ((number, *self.ledger.place(number)) for number in sorted(self.ledger.open))
            return [number for number, arm, position in places if position < last_of.get(arm, -1)]
        last = max(map(self._rank, numbers), default=(-1, -1))
        return [number for number in sorted(self._awaited()) if self._rank(number) < last]

    def first_awaited(self) -> int:
        """The open trial behind which everything waits that does."""
        return min(self._awaited(), key=self._rank)

    def _awaited(self) -> list[int]:
        """The open trials that the current pass lacks, or that a later one may lack."""
        ledger, policy = self.ledger, self.policy
        if not ledger.open or ledger.spec.is_list:
            return list(ledger.open)
        arm, pass_of, folded, lacking = ledger.arm, ledger.pass_of, policy.folded, set(policy.lacking)
        return [n for n in ledger.open if pass_of[n] > folded or (arm[n], pass_of[n]) in lacking]

    def _rank(self, number: int) -> tuple[int, int]:
        """Not by number: the place of a released trial is asked again as a later one."""
        return self.ledger.pass_of[number], self.ledger.arm[number]
