"""Is the record what it says? Replay it from nothing and compare."""

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lexbandits.checks import difference
from lexbandits.study.errors import StudyError
from lexbandits.study.record.answers import Answer, recorded
from lexbandits.study.record.events import Event
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.trials import RELEASED


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


def replay(events: Iterable[Event], fold: Fold | None = None) -> Verification:
    """Fold events from nothing: what cannot be, and the ends that the replay does not confirm."""
    fold, digest = Fold() if fold is None else fold, hashlib.sha256()
    problems: list[str] = []
    try:
        problems += _fold_all(fold, _hash_all(events, digest))
    except StudyError as error:
        problems.append(str(error))
    except ValueError as error:
        problems.append(f"the policy refuses the record: {error}")
    ledger = fold.ledger
    if ledger.seq and not problems:
        trials = enumerate(ledger.state)
        places = [ledger.place(n) for n, state in trials if state != RELEASED and n not in ledger.retries]
        if len(set(places)) < len(places):
            problems.append("a place was handed out twice")
    problems += fold.disagreements
    return Verification(ledger.seq, len(ledger), tuple(problems), digest.hexdigest())


def _fold_all(fold: Fold, events: Iterator[Event]) -> list[str]:
    """Fold them; where an end was recorded, what the replay would have recorded otherwise."""
    problems: list[str] = []
    for is_end, part in groupby(events, lambda event: event.kind == "finished"):
        if not is_end:
            fold.apply(part)
            continue
        for event in part:
            problems += _compare(fold, event)
            fold.apply([event])
    _ = fold.policy
    return problems


def _compare(fold: Fold, end: Event) -> list[str]:
    """What differs beside the arm, which the fold compares; the evidence of 0.2 was another."""
    if fold.ledger.settings["rules"] == "0.2" or not fold.policy.finished:
        return []
    found = recorded(fold)
    try:
        told = Answer.from_json(end.payload).as_json()
    except (KeyError, TypeError, AttributeError) as error:
        return [f"event {end.seq} records no answer: {type(error).__name__} {error}"]
    return [
        f"event {end.seq} records other {part} than the replay: {difference(told[part], found[part])}"
        for part in ("flags", "candidates", "certificate")
        if not _same(told[part], found[part])
    ]


def _same(told: Any, found: Any) -> bool:
    """Equal but for the last digits of a number, which another processor may round otherwise."""
    if isinstance(found, dict):
        return isinstance(told, dict) and all(_same(told.get(key), found[key]) for key in found)
    if isinstance(found, list):
        return isinstance(told, list) and len(told) == len(found) and all(map(_same, told, found))
    if isinstance(found, float) and isinstance(told, (int, float)):
        return math.isclose(told, found, rel_tol=1e-6, abs_tol=1e-9)
    return bool(told == found)


def _hash_all(events: Iterable[Event], digest: "hashlib._Hash") -> Iterator[Event]:
    for event in events:
        digest.update(repr(event.as_row()).encode())
        yield event
