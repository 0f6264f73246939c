"""What can go wrong with a study. All are `StudyError`, which is a `ValueError`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime


class StudyError(ValueError):
    """Something a study refuses, in words for the person who asked for it.

    >>> import lexbandits as lb
    >>> lb.open_study("spring", "nowhere.db")
    Traceback (most recent call last):
    lexbandits.study.errors.UnknownStudyError: no study 'spring': there is no nowhere.db
    """


class StudyWarning(UserWarning):
    """What looks wrong in a study: a `code` and `fields` for programs, `text` for people."""

    def __init__(self, code: str, study: str, text: str, **fields: str) -> None:
        super().__init__(f"study {study!r}: {text}")
        self.code, self.study, self.text, self.fields = code, study, text, fields


@contextmanager
def study_errors(*also: type[Exception]) -> Iterator[None]:
    """Whatever is wrong with a value is a `StudyError`, and so are these errors."""
    kinds: tuple[type[Exception], ...] = (ValueError, *also)
    try:
        yield
    except StudyError:
        raise
    except kinds as error:
        raise StudyError(str(error)) from error


class StudyExistsError(StudyError):
    """A study of this name is there already."""


class UnknownStudyError(StudyError):
    """No study of this name."""


class SpecMismatchError(StudyError):
    """A study of this name exists and asks another question."""


class StudyFinished(StudyError):  # noqa: N818 (news, not a mistake)
    """Nothing is left to measure: the answer is there, or the budget or the items are spent."""


class StudyPaused(StudyError):  # noqa: N818
    """Nothing is handed out until somebody resumes the study."""


class StudyWaiting(StudyError):  # noqa: N818
    """Nothing is handed out before a trial under way comes back or runs out.

    Args:
        message: what is waited for.
        until: when to ask again.
    """

    def __init__(self, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.until = until


class UnknownTrialError(StudyError):
    """This study never handed out that trial."""


class ConflictError(StudyError):
    """It contradicts what is on record."""


class UnknownArmError(StudyError):
    """No arm of this name."""


class ValueOutOfRange(StudyError):  # noqa: N818
    """Not a value this objective can have."""


class StorageError(StudyError):
    """The storage cannot be read or written."""


class StorageBusyError(StorageError):
    """Others held the storage for too long; nothing was changed."""


class StorageVersionError(StorageError):
    """Written by a newer version of lexbandits."""


class DamagedError(StorageError):
    """The record is not what was written: it was damaged, or edited from outside."""


# what reading a damaged or edited record may raise, wherever it first does not fit
ODD = ValueError, TypeError, LookupError, AttributeError, ArithmeticError


class AuthError(StudyError):
    """The service does not know this token, or it may not do this."""
