"""What the service says on stderr: one line per thing, as text or as JSON, with the study's name."""

import json
import logging
import sys
import time
import traceback
import warnings
from datetime import UTC, datetime
from typing import Any

from lexbandits.printable import plain, printable

LOG = logging.getLogger("lexbandits.server")
AGAIN = 3600.0  # seconds after which the same line may come again
MOST_KNOWN = 10_000  # lines remembered


def say(level: int, code: str, words: str, study: str | None = None, **fields: Any) -> None:
    """A line: the code and the fields for programs, the words for people."""
    LOG.log(level, "%s", words, extra={"code": code, "study": study, "fields": fields})


def set_up(form: str) -> None:
    """All that is logged in this process, and every warning, goes to stderr as "text" or "json"."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    handler.addFilter(_Once())
    logging.basicConfig(handlers=[handler], force=True)
    warnings.showwarning = lambda message, *_: say(
        logging.WARNING,
        getattr(message, "code", "warning"),
        str(message),
        getattr(message, "study", None),
        **getattr(message, "fields", {}),
    )
    warnings.simplefilter("always", UserWarning)  # each study has its own; the filter drops repeats


class _Once(logging.Filter):
    """Drops a line that was there within the hour."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Any, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        now, key = time.monotonic(), (record.name, getattr(record, "study", None), record.getMessage())
        known = now - self._known.get(key, -AGAIN) < AGAIN
        if not known:
            self._known[key] = now
        return not known


def _when(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _trace(record: logging.LogRecord) -> str:
    return "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""


class _Text(logging.Formatter):
    """Time, level, study and words; a traceback on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        study = getattr(record, "study", None)
        about = "" if study is None else f"study {study!r}: "
        line = f"{_when(record)} {record.levelname} {printable(about + record.getMessage())}"
        return f"{line}\n{_trace(record)}".rstrip()


class _Json(logging.Formatter):
    """One object a line; what others log has the code "log"."""

    def format(self, record: logging.LogRecord) -> str:
        study, trace = getattr(record, "study", None), _trace(record)
        words = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "code": getattr(record, "code", "log"),
            **({} if study is None else {"study": study}),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
            **({} if record.name == LOG.name else {"logger": record.name}),
            **({"traceback": trace} if trace else {}),
        }
        return json.dumps(plain(words), ensure_ascii=False, allow_nan=False, default=str)
