"""Where a study and a trial stand, and how severe a diagnostic is: one set of codes for everybody."""

from lexbandits._code import Code


class StudyState(Code):
    """Where a study stands.

    Attributes:
        MEASURING: it hands out trials.
        PAUSED: somebody paused it, or an arm that it needs keeps failing.
        BUDGET_SPENT: as many trials were handed out as its budget allows, without an answer.
        ITEMS_SPENT: every item was used, without an answer.
        FINISHED: it has an answer, or was ended by hand.
        BUSY: a service lists it while its state is being computed.
        UNREADABLE: a service lists it and cannot read its journal.

    >>> import lexbandits as lb
    >>> size = lb.Objective("size", "minimize", noise="exact")
    >>> study = lb.create_study("sizes", arms=["a", "b"], objectives=[size], storage="memory", seed=1)
    >>> study.status.state == lb.StudyState.MEASURING
    True
    """

    MEASURING = "measuring"
    PAUSED = "paused"
    BUDGET_SPENT = "budget_spent"
    ITEMS_SPENT = "items_spent"
    FINISHED = "finished"
    BUSY = "busy"
    UNREADABLE = "unreadable"

    @property
    def label(self) -> str:
        """The state as people read it."""
        return self.replace("_", " ")


class StateChange(Code):
    """What a person can do to the state of a study; MEASURING resumes or reopens it, whichever applies."""

    MEASURING = "measuring"
    PAUSED = "paused"
    RESUMED = "resumed"
    FINISHED = "finished"
    REOPENED = "reopened"


class TrialState(Code):
    """Where a trial stands.

    Attributes:
        OPEN: handed out, and not yet told.
        TOLD: its result counts.
        FAILED: it could not be measured.
        EXPIRED: its lease ran out before a result came.
        LATE: a result came after its lease had run out; it is kept and not counted.
        RELEASED: it was given back unmeasured.
        IMPORTED: its result was imported.

    >>> import lexbandits as lb
    >>> size = lb.Objective("size", "minimize", noise="exact")
    >>> study = lb.create_study("sizes", arms=["a", "b"], objectives=[size], storage="memory", seed=1)
    >>> trial = study.ask()
    >>> list(study.trials()["state"]) == [lb.TrialState.OPEN]
    True
    """

    OPEN = "open"
    TOLD = "told"
    FAILED = "failed"
    EXPIRED = "expired"
    LATE = "late"
    RELEASED = "released"
    IMPORTED = "imported"


class Severity(Code):
    """How far what was observed is from what a study assumes.

    Attributes:
        OK: nothing contradicts the assumption.
        NOTICE: worth knowing; the answer stands as it is.
        WARNING: the assumption is in doubt, and the answer is flagged.
        NOT_NEEDED: nothing rests on the assumption.

    >>> import lexbandits as lb
    >>> lb.Severity.NOT_NEEDED.label
    'not needed'
    """

    OK = "ok"
    NOTICE = "notice"
    WARNING = "warning"
    NOT_NEEDED = "not_needed"

    @property
    def label(self) -> str:
        """The severity as people read it."""
        return self.replace("_", " ")
