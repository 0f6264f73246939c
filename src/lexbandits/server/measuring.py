"""What workers send all day long, ask and tell: each a piece of a commit that many of them share."""

from datetime import datetime
from typing import Any

from lexbandits.server.bodies import AskBody, ResultBody, ResultsBody
from lexbandits.server.problems import Refused
from lexbandits.study.errors import StudyError, StudyPaused, StudyWaiting
from lexbandits.study.study import Study
from lexbandits.study.trial import Trial

Words = dict[str, Any]


def ask(study: Study, *, body: AskBody, key: str | None) -> Words:
    """Trials, or why there are none."""
    _, handed, reason = study._exchange([], body.n, body.lease, body.worker, key)
    return _handed_out(study, handed, reason)


def not_in_vain(words: Words) -> Words:
    """What an ask was given; that a study is paused or waits is an error, once its record is safe."""
    if words["state"] == "paused" and not words["trials"]:
        raise StudyPaused(words["reason"])
    if "waiting_until" in words:
        raise StudyWaiting(words["reason"], datetime.fromisoformat(words["waiting_until"]))
    return words


def tell(study: Study, *, trial: str, body: ResultBody) -> Words:
    """One result, or why there is none."""
    if (body.values is None) == (body.failed is None):
        raise Refused(422, "a result has values, or failed says why there are none; not both")
    if body.values is not None and body.interrupted:
        raise Refused(422, "interrupted goes with failed: a trial that has values was not broken off")
    if body.values is not None:
        return {"outcome": study.tell(trial, body.values)}
    return {"outcome": study.fail(trial, str(body.failed), interrupted=body.interrupted)}


def tell_many(study: Study, *, body: ResultsBody, key: str | None) -> Words:
    """Many results, all or none of them, and new trials."""
    told = [(each.trial, each.values) for each in body.results]
    if body.ask == 0:
        return {"outcomes": study.tell_many(told), **_handed_out(study, [], None)}
    outcomes, handed, reason = study._exchange(told, body.ask, body.lease, body.worker, key)
    return {"outcomes": outcomes, **_handed_out(study, handed, reason)}


def _handed_out(study: Study, handed: list[Trial], reason: StudyError | None) -> Words:
    words: Words = {"trials": [trial.as_json() for trial in handed], "state": study._journal.fold().state}
    if reason is not None:
        words["reason"] = str(reason)
    if isinstance(reason, StudyWaiting) and reason.until is not None:
        words["waiting_until"] = reason.until.isoformat()
    return words
