"""An exported journal as a storage of one study, to be read: reported, explained, verified."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from lexbandits.study.core.events import Event, EventKind
from lexbandits.study.errors import DamagedError, StorageError
from lexbandits.study.storage.contract import Seal
from lexbandits.study.storage.memory import MemoryStorage
from lexbandits.study.table_files import check_size, parsed

SQLITE = b"SQLite format 3\0"
COLUMNS: tuple[Any, ...] = (int, str, (int, type(None)), (str, type(None)), dict, float, (str, type(None)))


def is_journal_file(path: Path) -> bool:
    """Whether a file is there, and no database."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) != SQLITE


class JournalFile(MemoryStorage):
    """The events of a file, and the digests that they were exported with."""

    is_read_only = True

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.shown, self._path = str(path), path
        events, self._seals, self._last = _read(path)
        created = events[0]
        if created.kind != EventKind.CREATED:
            raise DamagedError(f"{path} is no exported journal: it begins with {created.kind!r}")
        name = created.payload.get("spec", {}).get("name")
        row, _ = super().create(str(name), "", created.payload)
        self._journals[row.id].events[:] = events

    def __reduce__(self) -> tuple[Any, ...]:
        return JournalFile, (self._path,)

    def seals(self, study: int) -> Iterator[Seal]:
        return iter(self._seals)

    def last_seal(self, study: int) -> Seal:
        return self._last

    def _refuse(self, *_: Any) -> NoReturn:
        raise StorageError(f"{self.shown} is an exported journal, which can be read only")

    create = transact = delete = extend = _refuse  # type: ignore[assignment]


def _read(path: Path) -> tuple[list[Event], list[Seal], Seal]:
    check_size(path)
    events, seals, last = [], [], None
    with path.open("rb") as lines:  # what is no UTF-8 is named by its line
        for number, line in enumerate(lines, 1):
            where = f"{path}, line {number}"
            fields = parsed(where, line)
            digest, sealed = (
                fields.pop(key, None) if isinstance(fields, dict) else None for key in ("digest", "sealed")
            )
            event = _event(fields)
            if event is None:
                raise DamagedError(f"{where} is no event of an exported journal")
            events.append(event)
            if digest is not None:
                seals.append(Seal(event.seq, str(digest)))
            if sealed is not None and number == 1:
                seq, _, of_all = str(sealed).partition(":")
                last = Seal(int(seq) if seq.isdecimal() else 0, of_all)
    if not events:
        raise DamagedError(f"{path} is no exported journal: it is empty")
    if last is None:
        raise StorageError(
            f"{path} has no digests: while its order is hidden, a list of items is exported without the "
            "seed, and so without digests; export it again after its end"
        )
    return events, [*seals, last], last


def _event(fields: Any) -> Event | None:
    """The event that a line says, if it says one and nothing else."""
    if not isinstance(fields, dict) or fields.keys() != set(Event._fields):
        return None
    event = Event(**fields)
    fits = all(isinstance(value, kind) for value, kind in zip(event, COLUMNS, strict=True))
    return event if fits and not isinstance(event.seq, bool) else None
