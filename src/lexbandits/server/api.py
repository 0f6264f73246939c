"""The endpoints under /api. Each is a plain function; the study layer does the work."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response, Security
from fastapi.security import HTTPBearer

from lexbandits.printable import plain
from lexbandits.server import answers, bodies, measuring
from lexbandits.server.answers import problems
from lexbandits.server.bodies import (
    After,
    ArmName,
    Key,
    Known,
    Limit,
    ObjectiveName,
    Since,
    StudyName,
    TrialId,
    TrialState,
    WorkerName,
)
from lexbandits.server.guard import needing
from lexbandits.server.problems import Refused
from lexbandits.server.replies import Reply
from lexbandits.server.rooms import Room, Rooms
from lexbandits.server.summary import event_words, glance_at, summary_of, trial_rows
from lexbandits.study.errors import StudyError, UnknownStudyError
from lexbandits.study.spec import Spec
from lexbandits.study.storage.contract import StudyRow
from lexbandits.study.study import Study, create_from_spec

_bearer = Security(HTTPBearer(auto_error=False, description="lexbandits token create"))


def router(role: str) -> APIRouter:
    """Endpoints for who has at least this role."""
    return APIRouter(prefix="/api/studies", route_class=needing(role), dependencies=[_bearer])


look, measure, decide = router("read"), router("write"), router("admin")


def rooms_of(request: Request) -> Rooms:
    """The studies of this service."""
    rooms: Rooms = request.app.state.rooms
    return rooms


@contextmanager
def _words() -> Iterator[None]:
    """What the study layer says of words it cannot use."""
    try:
        yield
    except StudyError:
        raise
    except (TypeError, ValueError) as error:
        raise Refused(422, str(error)) from error


_STUDY, _TRIAL = "$response.body#/name", "$response.body#/trials/0/id"


def _link(operation: str, description: str, **parameters: str) -> dict[str, Any]:
    return {"operationId": operation, "description": description, "parameters": parameters}


def _links(names: str, phrase: str, **parameters: str) -> dict[str, Any]:
    return {name: _link(name, f"{name} {phrase}", **parameters) for name in names.split()}


MADE = {  # what one can do with a study that was made
    **_links(
        "ask summary spec events trials results tell_many heartbeat note", "of this study", study=_STUDY
    ),
    **_links("delete add_arm set_state reorder set_budget", "of this study", study=_STUDY),
    **_links("withdraw restore", "its first arm", study=_STUDY, arm="$request.body#/arms/0"),
    **_links("amend", "its first objective", study=_STUDY, objective="$request.body#/objectives/0/name"),
}
HANDED_OUT = _links(
    "tell correct release expire", "the first trial", study="$request.path.study", trial=_TRIAL
)


def _digest(key: str | None, *said: Any) -> str | None:
    """What stands for a call with an Idempotency-Key; the same key with another call is another."""
    return None if key is None else hashlib.sha256(json.dumps([key, *said]).encode()).hexdigest()


def _do(
    request: Request, study: str, key: str | None, change: Callable[..., Any], *given: Any, **words: Any
) -> tuple[Room, str | None]:
    """A change of a study, made once for every Idempotency-Key: the study's room, and what came of it."""
    room = rooms_of(request)[study]
    with _words():
        digest = _digest(key, change.__name__, given, words)
        return room, room.change_once(digest, lambda writer: change(writer, *given, **words))


# --- looking


def with_tag(tag: str, known: str | None, content: Any) -> Response:
    """304 to who has it already."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if known is not None and tag in (part.strip().removeprefix("W/") for part in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Reply(content, headers=headers)


def _glances(rooms: Rooms, row: StudyRow) -> list[dict[str, Any]]:
    """One, or none if the study was deleted meanwhile."""
    try:
        return [glance_at(rooms.room(row))]
    except UnknownStudyError:
        return []


@look.get("", responses={200: {"model": answers.Glances}, **problems()})
def studies(request: Request, after: After = "", limit: Limit = 100) -> Response:
    """Every study at a glance, by name; and the role of who asks."""
    rooms = rooms_of(request)
    found = sorted(rooms.reads.studies(), key=lambda row: row.name)  # a database has an order of its own
    rows = [row for row in found if row.name > after]
    page = rows[: min(limit, 100)]
    content = {
        "studies": [glance for row in page for glance in _glances(rooms, row)],
        "next": page[-1].name if len(page) < len(rows) else None,
        "role": request.state.role,
    }
    return Reply(content)


@look.get(
    "/{study}", responses={200: {"model": answers.Summary}, 304: {"description": "as known"}, **problems(404)}
)
def summary(request: Request, study: StudyName, known: Known = None) -> Response:
    """Where a study stands: what a page polls, with its ETag."""
    tag, content = summary_of(rooms_of(request)[study])
    return with_tag(tag, known, content)


@look.get("/{study}/spec", responses={200: {"model": dict[str, Any]}, **problems(404)})
def spec(request: Request, study: StudyName) -> Response:
    """The question as it was asked."""
    with rooms_of(request)[study].reading() as reader:
        return Reply(reader.spec)


@look.get("/{study}/events", responses={200: {"model": answers.Events}, **problems(404)})
def events(request: Request, study: StudyName, since: Since = 0, limit: Limit = 100) -> Response:
    """The journal after event `since`."""
    room = rooms_of(request)[study]
    found = [event_words(event) for event in room.reads.read(room.row.id, since + 1, limit)]
    return Reply({"events": found, "next": found[-1]["seq"] if len(found) == limit else None})


@look.get("/{study}/trials", responses={200: {"model": answers.TrialRows}, **problems(404)})
def trials(
    request: Request, study: StudyName, state: TrialState | None = None, since: Since = 0, limit: Limit = 100
) -> Response:
    """Trials from number `since` on, of one state if so asked, with what was told of them."""
    room = rooms_of(request)[study]
    with room.reading() as reader:
        leases = room.reads.clock(room.row.id)[1]
        found, following = trial_rows(reader._journal.fold(), leases, state, since, limit)
    return Reply({"trials": found, "next": following})


@look.get("/{study}/results", responses={200: {"model": answers.Results}, **problems(404)})
def results(request: Request, study: StudyName) -> Response:
    """What was measured, one row per arm and objective."""
    with rooms_of(request)[study].reading() as reader:
        rows = reader.results().to_dict("records")
    numbers = ("mean", "low", "high")
    return Reply({"results": [{**row, **{key: plain(row[key]) for key in numbers}} for row in rows]})


# --- measuring


@measure.post(
    "/{study}/trials",
    status_code=201,
    responses={201: {"model": answers.Trials, "links": HANDED_OUT}, **problems(404, 409)},
)
def ask(request: Request, study: StudyName, body: bodies.AskBody, key: Key = None) -> Response:
    """Hand out trials; the same ones again for the same Idempotency-Key. None when the study is over."""
    (done,) = rooms_of(request)[study].change(partial(measuring.ask, body=body, key=key))
    return Reply(measuring.not_in_vain(done.outcome()), 201)


@measure.put(
    "/{study}/trials/{trial}/result", responses={200: {"model": answers.Outcome}, **problems(404, 409)}
)
def tell(request: Request, study: StudyName, trial: TrialId, body: bodies.ResultBody) -> Response:
    """Report a trial's values, or why there are none. Safe to repeat."""
    (done,) = rooms_of(request)[study].change(partial(measuring.tell, trial=trial, body=body))
    return Reply(done.outcome())


@measure.post("/{study}/results", responses={200: {"model": answers.Outcomes}, **problems(404, 409)})
def tell_many(request: Request, study: StudyName, body: bodies.ResultsBody, key: Key = None) -> Response:
    """Report results, all or none of them, and ask for new trials in the same step."""
    (done,) = rooms_of(request)[study].change(partial(measuring.tell_many, body=body, key=key))
    return Reply(done.outcome())


@measure.delete("/{study}/trials/{trial}/lease", status_code=204, responses=problems(404, 409))
def release(request: Request, study: StudyName, trial: TrialId, key: Key = None) -> Response:
    """Give a trial back unmeasured."""
    _do(request, study, key, Study.release, trial)
    return Response(status_code=204)


@measure.post(
    "/{study}/trials/{trial}/expiry", responses={200: {"model": answers.Outcome}, **problems(404, 409)}
)
def expire(request: Request, study: StudyName, trial: TrialId, key: Key = None) -> Response:
    """Declare an overdue trial's place missing now."""
    return Reply({"outcome": _do(request, study, key, Study.expire, trial)[1]})


@measure.put(
    "/{study}/trials/{trial}/correction", responses={200: {"model": answers.Outcome}, **problems(404, 409)}
)
def correct(
    request: Request, study: StudyName, trial: TrialId, body: bodies.CorrectionBody, key: Key = None
) -> Response:
    """Replace what was told, while it is not folded; later a note."""
    return Reply({"outcome": _do(request, study, key, Study.correct, trial, body.values, body.reason)[1]})


@measure.post("/{study}/workers/{worker}/heartbeat", status_code=204, responses=problems(404))
def heartbeat(request: Request, study: StudyName, worker: WorkerName) -> Response:
    """A worker is alive: its leases begin anew."""
    rooms_of(request)[study].extend(worker)
    return Response(status_code=204)


@measure.post("/{study}/notes", status_code=201, responses={201: {"model": answers.Changed}, **problems(404)})
def note(request: Request, study: StudyName, body: bodies.NoteBody, key: Key = None) -> Response:
    """A remark for the record."""
    return _changed(_do(request, study, key, Study.note, body.text)[0], 201)


# --- deciding


def _changed(room: Room, status: int = 200) -> Response:
    with room.reading() as reader:
        return Reply({"name": reader.name, "seq": reader.seq}, status)


@decide.post("", status_code=201, responses={201: {"model": answers.Changed, "links": MADE}, **problems(409)})
def create(request: Request, body: bodies.StudyBody, key: Key = None) -> Response:
    """A new study; the one that this Idempotency-Key has made is answered as if it were."""
    rooms = rooms_of(request)
    with _words():
        spec = Spec.from_json(body.words())
        nonce = (_digest(key, spec.as_json()) or "")[:32]
        made = create_from_spec(spec, rooms.storage, load_if_exists=False, nonce=nonce)
    answer = _changed(rooms[made.name], 201)
    answer.headers["Location"] = f"/api/studies/{quote(made.name, safe='')}"
    return answer


@decide.delete("/{study}", status_code=204, responses=problems(404))
def delete(request: Request, study: StudyName) -> Response:
    """Delete a study with all its results, for good."""
    rooms = rooms_of(request)
    row = rooms[study].row
    rooms.storage.delete(row.id)
    rooms.forget(row)
    return Response(status_code=204)


@decide.post(
    "/{study}/arms", status_code=201, responses={201: {"model": answers.Changed}, **problems(404, 409)}
)
def add_arm(request: Request, study: StudyName, body: bodies.ArmBody, key: Key = None) -> Response:
    """Another arm, where max_arms has left room."""
    return _changed(_do(request, study, key, Study.add_arm, body.words())[0], 201)


@decide.post(
    "/{study}/arms/{arm}/withdrawal", responses={200: {"model": answers.Changed}, **problems(404, 409)}
)
def withdraw(
    request: Request, study: StudyName, arm: ArmName, body: bodies.ReasonBody, key: Key = None
) -> Response:
    """Take an arm out of the question."""
    return _changed(_do(request, study, key, Study.withdraw, arm, body.reason)[0])


@decide.delete(
    "/{study}/arms/{arm}/withdrawal", responses={200: {"model": answers.Changed}, **problems(404, 409)}
)
def restore(request: Request, study: StudyName, arm: ArmName, key: Key = None) -> Response:
    """Bring a withdrawn arm back."""
    return _changed(_do(request, study, key, Study.restore, arm)[0])


@decide.post("/{study}/state", responses={200: {"model": answers.Changed}, **problems(404, 409)})
def set_state(request: Request, study: StudyName, body: bodies.StateBody, key: Key = None) -> Response:
    """Pause, resume; end by hand ("finished"), reopen; "measuring" resumes or reopens, as it stands."""
    change = {
        "paused": Study.pause,
        "finished": Study.end,
        "reopened": Study.reopen,
        "resumed": _resume,
        "measuring": _go_on,
    }[body.state]
    return _changed(_do(request, study, key, change, body.reason)[0])


def _resume(study: Study, why: str) -> None:
    study.resume()


def _go_on(study: Study, why: str) -> None:
    if study._journal.fold().ledger.end is not None:
        study.reopen(why)
    else:
        study.resume()


@decide.put("/{study}/objectives/{objective}", responses={200: {"model": answers.Changed}, **problems(404)})
def amend(
    request: Request, study: StudyName, objective: ObjectiveName, body: bodies.AmendBody, key: Key = None
) -> Response:
    """Another tolerance or resolution of an objective."""
    return _changed(_do(request, study, key, _amend, objective, **body.words())[0])


def _amend(study: Study, objective: str, **words: Any) -> None:
    if objective not in study._journal.fold().ledger.spec.names:
        raise Refused(404, f"no objective {objective!r}")
    study.amend(objective, **words)


@decide.put("/{study}/order", responses={200: {"model": answers.Changed}, **problems(404)})
def reorder(request: Request, study: StudyName, body: bodies.OrderBody, key: Key = None) -> Response:
    """Another order of priority."""
    return _changed(_do(request, study, key, Study.reorder, body.objectives)[0])


@decide.put("/{study}/budget", responses={200: {"model": answers.Changed}, **problems(404)})
def set_budget(request: Request, study: StudyName, body: bodies.BudgetBody, key: Key = None) -> Response:
    """Another number of trials to hand out in all."""
    return _changed(_do(request, study, key, Study.set_budget, body.budget)[0])
