"""Is the record what it says? Replay it from nothing and compare."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lexbandits.study.errors import StudyError
from lexbandits.study.record.events import Event
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.ledger import RELEASED
from lexbandits.study.storage.contract import Storage, StudyRow


@dataclass(frozen=True)
class Verification:
    """What a replay found. `sha256` is that of all events, as the journal holds them."""

    events: int
    trials: int
    problems: tuple[str, ...]
    sha256: str

    @property
    def ok(self) -> bool:
        """Whether the record holds."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


def verify(storage: Storage, row: StudyRow) -> Verification:
    """Read the whole journal, without the cache."""
    return replay(storage.read(row.id, 1))


def replay(events: Iterable[Event], fold: Fold | None = None) -> Verification:
    """Fold events from nothing: what cannot be, and the ends that the replay does not confirm."""
    fold, digest = Fold() if fold is None else fold, hashlib.sha256()
    problems: list[str] = []
    try:
        fold.apply(_digested(events, digest))
        _ = fold.policy
    except StudyError as error:
        problems.append(str(error))
    except ValueError as error:
        problems.append(f"the policy refuses the record: {error}")
    ledger = fold.ledger
    if ledger.seq and not problems:
        places = [
            (arm, place)
            for arm, place, state in zip(ledger.arm, ledger.place, ledger.state, strict=True)
            if state != RELEASED
        ]
        if len(set(places)) < len(places):
            problems.append("a place was handed out twice")
    problems += fold.disagreements
    return Verification(ledger.seq, len(ledger), tuple(problems), digest.hexdigest())


def _digested(events: Iterable[Event], digest: "hashlib._Hash") -> Iterator[Event]:
    for event in events:
        digest.update(repr(event.as_row()).encode())
        yield event
