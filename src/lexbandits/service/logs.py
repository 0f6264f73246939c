"""What the service says on stderr: a line for each thing, as text or as JSON, with the study's name."""

import json
import logging
import time
import traceback
import warnings
from datetime import UTC, datetime
from typing import Any

from lexbandits._code import Code
from lexbandits._printable import plain, printable
from lexbandits.study.errors import StudyWarning

LOG = logging.getLogger("lexbandits.service")
AGAIN = 3600.0  # seconds after which the same line may be repeated
MOST_KNOWN = 10_000  # lines remembered


class LogFormat(Code):
    """How lines of a log are written."""

    TEXT = "text"
    JSON = "json"


def say(
    level: int, code: str, text: str, study: str | None = None, error: Exception | None = None, **fields: Any
) -> None:
    """A line: code and fields for programs, words for people; with the traceback of a defect."""
    LOG.log(level, "%s", text, extra={"code": code, "study": study, "fields": fields}, exc_info=error)


def set_up(form: str) -> None:
    """All that is logged in this process, and every warning, goes to stderr as "text" or "json"."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines(form))
    handler.addFilter(_Once())
    logging.basicConfig(handlers=[handler], force=True)
    LOG.setLevel(logging.INFO)
    warnings.simplefilter("always", UserWarning)  # by default those of one place are one
    warnings.showwarning = lambda message, *_: _warn(message)


def _warn(message: Warning | str) -> None:
    if isinstance(message, StudyWarning):
        say(logging.WARNING, message.code, message.text, message.study, None, **message.fields)
    else:
        say(logging.WARNING, "warning", str(message))


class _Once(logging.Filter):
    """Drops a line that was there within the hour, and an error that was logged where its study was known."""

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


class _Lines(logging.Formatter):
    """Time, level, study and words; a traceback follows. As JSON, with code and fields, all in one line."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._as_json = LogFormat(form) is LogFormat.JSON

    def format(self, record: logging.LogRecord) -> str:
        """What is to be written of a record; what others log has the code "log"."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        study, message = getattr(record, "study", None), record.getMessage().strip()
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        if not self._as_json:
            about = "" if study is None else f"study {study!r}: "
            return f"{at} {record.levelname} {printable(about + message)}\n{trace}".rstrip()
        fields = {"time": at, "level": record.levelname.lower(), "code": getattr(record, "code", "log")}
        fields |= {} if study is None else {"study": study}
        fields |= {"message": message, **getattr(record, "fields", {})}
        fields |= {"traceback": trace} if trace else {}
        return json.dumps(plain(fields), default=str)
