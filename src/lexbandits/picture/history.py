"""How a study came to be: its journal replayed once, and looked at on the way."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.policies.tol.state import RESULTS
from lexbandits.study.record.events import Event
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.ledger import Ledger
from lexbandits.study.record.verification import Verification
from lexbandits.study.study import Study

STEPS = 120  # looks at a study, evenly over its results


class Moment(NamedTuple):
    """The study after some results."""

    results: int
    objective: int  # column being settled; the number of objectives when all are
    candidates: tuple[int, ...]
    differences: Vector  # (K, K, m, 2); of a list what was proven, as its intervals take long


class Watched(Fold):
    """A fold that notes how the policy stood, and counts the kinds of events."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.kinds = Counter[str]()
        super().__init__(ledger)

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
        ends = np.linspace(0, len(self.ledger.fills), STEPS + 1).astype(int).tolist()
        for end in sorted({end for end in ends if self._fills <= end < position} | {position}):
            super()._tell_until(policy, end)
            self.moments.append(_moment(policy))


def history_of(fold: Fold) -> list[Moment]:
    """How a study stood after 1/STEPS, 2/STEPS, … of its results; replayed once per state of the journal."""
    known = fold.memory.get("history")
    if known is None or known[0] != fold.ledger.seq:
        known = fold.memory["history"] = fold.ledger.seq, _moments(Watched(fold.ledger))
    moments: list[Moment] = known[1]
    return moments


def kinds_of(fold: Fold, events: Callable[[], Iterable[Event]]) -> Counter[str]:
    """How many events of each kind there are; read once per state of the journal."""
    known = fold.memory.get("kinds")
    if known is None or known[0] != fold.ledger.seq:
        known = fold.memory["kinds"] = fold.ledger.seq, Counter(event.kind for event in events())
    kinds: Counter[str] = known[1]
    return kinds


def verified(study: Study, fold: Fold) -> Verification:
    """The journal checked, from a replay that leaves its history and the kinds of events with the fold."""
    watched = Watched()
    found = study._journal.verify(fold=watched)
    if watched.ledger.seq == fold.ledger.seq and found.ok:
        fold.memory["kinds"] = fold.ledger.seq, watched.kinds
        fold.memory["history"] = fold.ledger.seq, _moments(watched)
    return found


def _moments(watched: Watched) -> list[Moment]:
    policy = watched.policy  # brought up to date, by way of all moments
    return [*watched.moments, _moment(policy)]


def _moment(policy: Any) -> Moment:
    found = int(policy.state.clock[RESULTS])
    if "n_items" not in policy.settings:
        return Moment(found, policy.objective, policy.candidates, policy.differences)
    lows = policy.state.lows.transpose(1, 2, 0)
    proven = np.stack([lows, -lows.transpose(1, 0, 2)], axis=-1)
    return Moment(found, policy.objective, policy.candidates, proven)
