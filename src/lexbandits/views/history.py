"""How a study came to be: its journal replayed once, and looked at on the way."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lexbandits.policies.tolerance.state import RESULTS
from lexbandits.study.core.events import Event
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.verification import Verification
from lexbandits.study.study import Study

Pair = tuple[int, int, int]  # two arms and a column
STEPS = 120  # looks at a study, evenly over its results


class Moment(NamedTuple):
    """The study after some results."""

    results: int
    objective: int  # column being settled; the number of objectives when all are
    candidates: tuple[int, ...]
    differences: dict[Pair, tuple[float, float]]  # of a list what was proven, as its intervals take long


class Watched(Replay):
    """A fold that notes how the policy stood, `pairs` of it in particular, and counts the kinds of events."""

    def __init__(self, projection: Projection | None = None, pairs: Iterable[Pair] = ()) -> None:
        self.kinds, self.pairs = Counter[str](), frozenset(pairs)
        super().__init__(projection)

    def apply(self, events: Iterable[Event]) -> None:
        """Record what has happened, and count it."""
        super().apply(self._counted(events))

    def _counted(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            self.kinds[event.kind] += 1
            yield event

    def _start_again(self) -> None:
        super()._start_again()
        self.moments: list[Moment] = []

    def _tell_until(self, policy: Any, position: int) -> None:
        ends = np.linspace(0, len(self.projection.fills), STEPS + 1).astype(int).tolist()
        for end in sorted({end for end in ends if self._fills <= end < position} | {position}):
            super()._tell_until(policy, end)
            self.moments.append(_moment(policy, self.pairs))


def history_of(replay: Replay, pairs: Iterable[Pair] = ()) -> list[Moment]:
    """How a study stood after 1/STEPS, 2/STEPS, … of its results; replayed once per state of the journal.

    `pairs` are those to be shown: the intervals of all, at every step, would take gigabytes.
    """
    seq, known, moments = replay.memory.get(history_of, (-1, frozenset(), []))
    if seq != replay.projection.seq or not known.issuperset(pairs):
        moments = _moments(Watched(replay.projection, pairs))
        replay.memory[history_of] = replay.projection.seq, frozenset(pairs), moments
    found: list[Moment] = moments
    return found


def kinds_of(replay: Replay, events: Callable[[], Iterable[Event]]) -> Counter[str]:
    """How many events of each kind there are; read once per state of the journal."""
    known = replay.memory.get(kinds_of)
    if known is None or known[0] != replay.projection.seq:
        known = replay.memory[kinds_of] = replay.projection.seq, Counter(event.kind for event in events())
    kinds: Counter[str] = known[1]
    return kinds


def verified(study: Study, replay: Replay) -> Verification:
    """The journal checked, from a replay that leaves its history and the kinds of events with the fold."""
    watched = Watched()
    found = study._journal.verify(replay=watched)
    if watched.projection.seq == replay.projection.seq and found.ok:
        replay.memory[kinds_of] = replay.projection.seq, watched.kinds
        replay.memory[history_of] = replay.projection.seq, watched.pairs, _moments(watched)
    return found


def _moments(watched: Watched) -> list[Moment]:
    policy = watched.policy  # brought up to date, by way of all moments
    return [*watched.moments, _moment(policy, watched.pairs)]


def _moment(policy: Any, pairs: Iterable[Pair]) -> Moment:
    if "n_items" not in policy.settings:
        differences = {pair: policy.difference(*pair) for pair in pairs}
    else:
        lcb = policy.state.lcb
        differences = {(a, b, i): (float(lcb[i, a, b]), -float(lcb[i, b, a])) for a, b, i in pairs}
    found = int(policy.state.clock[RESULTS])
    return Moment(found, policy.objective, policy.candidates, differences)
