"""What the service says on stderr: a line for each thing, as text or as JSON, with the study's name."""

import json
import logging
import time
import traceback
import warnings
from datetime import UTC, datetime
from typing import Any

from lexbandits.printable import plain, printable
from lexbandits.study.errors import StudyWarning

LOG = logging.getLogger("lexbandits.server")
AGAIN = 3600.0  # seconds after which the same line may come again
MOST_KNOWN = 10_000  # lines remembered


def say(
    level: int, code: str, words: str, study: str | None = None, error: Exception | None = None, **fields: Any
) -> None:
    """A line: code and fields for programs, words for people; with the traceback of a defect."""
    LOG.log(level, "%s", words, extra={"code": code, "study": study, "fields": fields}, exc_info=error)


def set_up(form: str) -> None:
    """All that is logged in this process, and every warning, goes to stderr as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    handler.addFilter(_Once())
    logging.basicConfig(handlers=[handler], force=True)
    LOG.setLevel(logging.INFO)
    warnings.simplefilter("always", UserWarning)  # by default those of one place are one
    warnings.showwarning = lambda message, *_: _warn(message)


def _warn(message: Warning | str) -> None:
    if isinstance(message, StudyWarning):
        say(logging.WARNING, message.code, message.words, message.study, None, **message.fields)
    else:
        say(logging.WARNING, "warning", str(message))


class _Once(logging.Filter):
    """Drops a line that was there within the hour, and an error that was logged by who knew its study."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Any, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is new."""
        error = record.exc_info[1] if record.exc_info else None
        if hasattr(error, "was_logged"):
            return False
        if error is not None:
            error.was_logged = True  # type: ignore[attr-defined]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        now, key = time.monotonic(), (getattr(record, "study", None), record.getMessage(), repr(error))
        is_new = now - self._known.get(key, -AGAIN) >= AGAIN
        if is_new:
            self._known[key] = now
        return is_new


def _when(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _trace(record: logging.LogRecord) -> str:
    return "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""


class _Text(logging.Formatter):
    """Time, level, study and words; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        study = getattr(record, "study", None)
        words = printable(f"{'' if study is None else f'study {study!r}: '}{record.getMessage().strip()}")
        return f"{_when(record)} {record.levelname} {words}\n{_trace(record)}".rstrip()


class _Json(logging.Formatter):
    """One object a line; what others log has the code "log"."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        study, trace = getattr(record, "study", None), _trace(record)
        words = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "code": getattr(record, "code", "log"),
            **({} if study is None else {"study": study}),
            "message": record.getMessage().strip(),
            **getattr(record, "fields", {}),
            **({"traceback": trace} if trace else {}),
        }
        return json.dumps(plain(words), default=str)
