"""The endpoints under /api. Those that look are the framework's; those that write wait for their turn."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from lexbandits._printable import plain
from lexbandits.service import bodies, schemas
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.replies import (
    AssignmentOut,
    Changed,
    Forgotten,
    Outcome,
    Outcomes,
    Places,
    Reply,
    TrialOut,
    Trials,
    describe,
    refuse,
)
from lexbandits.service.requests import DecidingRoute, InUnit, MeasuringRoute, OnceInUnit, digest_of, looking
from lexbandits.service.summary import event_fields, glances_at, summary_of, trial_rows
from lexbandits.service.write_queue import NothingToAsk
from lexbandits.study.core import ask_tell, assignment, changes, imports
from lexbandits.study.core.events import without_order
from lexbandits.study.core.journal import UnitOfWork
from lexbandits.study.errors import StudyError, StudyPaused, StudyWaiting, study_errors
from lexbandits.study.spec import Spec, patience, seconds
from lexbandits.study.states import StateChange
from lexbandits.study.study import create_from_spec
from lexbandits.study.trial import Trial

_bearer = Security(HTTPBearer(auto_error=False, description="lexbandits token create"))


def router(route: type[APIRoute], prefix: str = "/api/studies") -> APIRouter:
    """Endpoints whose requests all come in the same way."""
    return APIRouter(prefix=prefix, route_class=route, dependencies=[_bearer])


look, make = router(looking("read", in_line=True)), router(looking("admin"))
measure, decide = router(MeasuringRoute), router(DecidingRoute)


def registry_of(request: Request) -> StudyRegistry:
    """The studies of this service."""
    registry: StudyRegistry = request.app.state.registry
    return registry


_STUDY, _TRIAL = "$response.body#/name", "$response.body#/trials/0/id"


def _links(names: str, phrase: str, **parameters: str) -> dict[str, Any]:
    return {
        name: {"operationId": name, "description": f"{name} {phrase}", "parameters": parameters}
        for name in names.split()
    }


WAYS = (
    "ask assign evaluate_flag summary spec events trials results tell_many heartbeat note delete add_arm "
    "set_state reorder"
)
MADE = {  # what one can do with a study that was made
    **_links(f"{WAYS} set_budget", "of this study", study=_STUDY),
    **_links("withdraw restore", "its first arm", study=_STUDY, arm="$request.body#/arms/0"),
    **_links("amend", "its first objective", study=_STUDY, objective="$request.body#/objectives/0/name"),
}
HANDED_OUT = _links(
    "tell correct release expire", "the first trial", study="$request.path.study", trial=_TRIAL
)


# --- looking


def with_tag(tag: str, known: str | None, content: Any) -> Response:
    """Answer 304 to a client that has it already."""
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if known is not None and tag in (part.strip().removeprefix("W/") for part in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Reply(content, headers=headers)


@look.get("", responses=describe(200, schemas.StudyList))
def studies(request: Request, after: bodies.After = "", limit: bodies.Limit = 100) -> Response:
    """Every study at a glance, by name; and the caller's role."""
    return Reply(studies_from(request, after, min(limit, 100)))


def studies_from(request: Request, after: str, limit: int, search: str = "") -> schemas.StudyList:
    """Studies by name, from `after` on, whose name has what is searched for."""
    registry, wanted = registry_of(request), search.casefold()
    found = sorted(registry.reads.studies(), key=lambda row: row.name)  # a database has an order of its own
    rows = [row for row in found if row.name > after and wanted in row.name.casefold()]
    page = rows[:limit]
    return schemas.StudyList(
        studies=glances_at(registry, page),
        next=page[-1].name if len(page) < len(rows) else None,
        role=request.state.role,
    )


@look.get("/{study}", responses={304: {"description": "as known"}, **describe(200, schemas.Summary, 404)})
def summary(request: Request, study: bodies.StudyName, known: bodies.Known = None) -> Response:
    """Where a study stands: what a page polls, with its ETag."""
    tag, content = summary_of(registry_of(request).find(study))
    return with_tag(tag, known, content)


@look.get("/{study}/spec", responses=describe(200, dict[str, Any], 404))
def spec(request: Request, study: bodies.StudyName) -> Response:
    """The question as it was asked."""
    with registry_of(request).find(study).reading() as reader:
        return Reply(reader._journal.shown().as_json())


@look.get("/{study}/events", responses=describe(200, schemas.Events, 404))
def events(
    request: Request, study: bodies.StudyName, since: bodies.Since = 0, limit: bodies.Limit = 100
) -> Response:
    """The journal after event `since`."""
    opened = registry_of(request).find(study)
    with opened.reading() as reader:
        whole = reader._settled().projection.shows_order
    read = opened.reads.read(opened.row.id, since + 1, limit)
    found = [event_fields(event if whole else without_order(event)) for event in read]
    return Reply(schemas.Events(events=found, next=found[-1].seq if len(found) == limit else None))


@look.get("/{study}/trials", responses=describe(200, schemas.TrialRows, 404))
def trials(
    request: Request,
    study: bodies.StudyName,
    state: bodies.TrialStateQuery | None = None,
    since: bodies.Since = 0,
    limit: bodies.Limit = 100,
) -> Response:
    """Trials from number `since` on, of one state if so asked, with what was told of them."""
    opened = registry_of(request).find(study)
    with opened.reading() as reader:
        leases = opened.reads.clock(opened.row.id)[1]
        return Reply(trial_rows(reader._settled(), leases, state, since, limit))


@look.get("/{study}/results", responses=describe(200, schemas.Results, 404))
def results(request: Request, study: bodies.StudyName) -> Response:
    """What was measured, one row per arm and objective."""
    with registry_of(request).find(study).reading() as reader:
        rows = reader._results()
    return Reply(schemas.Results(results=[schemas.ResultRow(**plain(row)) for row in rows]))


# --- measuring


@measure.post("/{study}/trials", status_code=201, responses=describe(201, Trials, 404, 409, links=HANDED_OUT))
def ask(unit: InUnit, body: bodies.AskBody, key: bodies.Key = None) -> Trials | StudyError | NothingToAsk:
    """Hand out trials; the same ones again for the same Idempotency-Key. None when the study is over.

    While results of others must come first, it waits for them, as long as `wait` says.
    """
    _, handed, reason = ask_tell.exchange(unit, [], body.n, _seconds(body.lease), body.worker, key)
    if isinstance(reason, StudyWaiting):
        return NothingToAsk(reason, partial(ask, body=body, key=key), patience(body.wait))
    if isinstance(reason, StudyPaused):
        return reason
    return Trials(**_trials(unit, handed, reason))


@measure.post("/{study}/assign", responses=describe(200, AssignmentOut, 404))
def assign(unit: InUnit, body: bodies.AssignBody) -> AssignmentOut:
    """The arm to show to a visitor, the same one every time; a trial while the study measures."""
    given = assignment.assign(unit, body.key, _seconds(body.lease), body.worker)
    return AssignmentOut(**given.as_json(), best=assignment.best_arm(unit.replay))


@measure.put("/{study}/trials/{trial}/result", responses=describe(200, Outcome, 404, 409))
def tell(unit: InUnit, trial: bodies.TrialId, body: bodies.ResultBody) -> Outcome:
    """Report a trial's values, or why there are none. Safe to repeat."""
    if (body.values is None) == (body.failed is None):
        raise HTTPException(422, "a result has values, or failed says why there are none; not both")
    if body.values is not None and body.interrupted:
        raise HTTPException(422, "interrupted goes with failed: a trial that has values was not broken off")
    if body.failed is not None and body.partial:
        raise HTTPException(422, "partial goes with values: after a failure nothing follows")
    if body.values is not None:
        return Outcome(ask_tell.take(unit, trial, body.values, body.partial))
    return Outcome(ask_tell.fail(unit, trial, str(body.failed), body.interrupted))


@measure.post("/{study}/results", responses=describe(200, Outcomes, 404, 409))
def tell_many(unit: InUnit, body: bodies.ResultsBody, key: bodies.Key = None) -> Outcomes | NothingToAsk:
    """Report results, all or none of them, and ask for new trials in the same step.

    What is reported is safe before it waits for results of others.
    """
    told = [(each.trial, each.values) for each in body.results]
    return _ask_after(ask_tell.take_all(unit, told) if told else [], body, key, unit)


def _ask_after(
    outcomes: list[str], body: bodies.ResultsBody, key: str | None, unit: UnitOfWork
) -> Outcomes | NothingToAsk:
    _, handed, reason = ask_tell.exchange(unit, [], body.ask, _seconds(body.lease), body.worker, key)
    answer = Outcomes(outcomes=outcomes, **_trials(unit, handed, reason))
    if not isinstance(reason, StudyWaiting):
        return answer
    return NothingToAsk(answer, partial(_ask_after, outcomes, body, key), patience(body.wait))


def _seconds(lease: float | str | None) -> float | None:
    return None if lease is None else seconds("lease", lease)


def _trials(unit: UnitOfWork, handed: Sequence[Trial], reason: StudyError | None) -> dict[str, Any]:
    until = reason.until if isinstance(reason, StudyWaiting) else None
    return {
        "trials": [TrialOut(**trial.as_json()) for trial in handed],
        "state": unit.replay.state,
        "reason": None if reason is None else str(reason),
        "waiting_until": None if until is None else until.isoformat(),
    }


@measure.delete("/{study}/trials/{trial}/lease", status_code=204, responses=refuse(404, 409))
def release(unit: OnceInUnit, trial: bodies.TrialId) -> None:
    """Give a trial back unmeasured."""
    ask_tell.release(unit, trial)


@measure.post("/{study}/trials/{trial}/expiry", responses=describe(200, Outcome, 404, 409))
def expire(unit: OnceInUnit, trial: bodies.TrialId) -> str:
    """Declare an overdue trial's place missing now."""
    return ask_tell.expire(unit, trial)


@measure.put("/{study}/trials/{trial}/correction", responses=describe(200, Outcome, 404, 409))
def correct(unit: OnceInUnit, trial: bodies.TrialId, body: bodies.CorrectionBody) -> str:
    """Replace what was told, while it is not folded; later a note."""
    return ask_tell.correct(unit, trial, body.values, body.reason)


@measure.post("/{study}/workers/{worker}/heartbeat", status_code=204, responses=refuse(404))
def heartbeat(study: bodies.StudyName, worker: bodies.WorkerName) -> str:
    """A worker is alive: its leases start again."""
    return worker


@measure.post("/{study}/notes", status_code=201, responses=describe(201, Changed, 404))
def note(unit: OnceInUnit, body: bodies.NoteBody) -> None:
    """A remark for the record."""
    changes.note(unit, body.text)


# --- deciding


@make.post("", status_code=201, responses=describe(201, Changed, 409, links=MADE))
def create(request: Request, body: bodies.StudyBody, key: bodies.Key = None) -> Response:
    """A new study; the one that this Idempotency-Key has made is answered as if it were."""
    registry = registry_of(request)
    with study_errors(TypeError):
        spec = Spec.from_json(body.given())
        _check_cost(spec)
        nonce = "" if key is None else digest_of(key, spec.as_json())[:32]
        made = create_from_spec(spec, registry.storage, load_if_exists=False, nonce=nonce)
    where = {"Location": f"/api/studies/{quote(made.name, safe='')}"}
    return Reply(Changed(made.name, made.seq), 201, where)


def _check_cost(spec: Spec) -> None:
    """Refuse a study that would keep the service busy, or fill its memory, for all others."""
    K, m = spec.max_arms, len(spec.objectives)
    comparisons, values = K * (K - 1) * m, K * m * len(spec.ids) * spec.repeats
    if comparisons > bodies.MOST_COMPARISONS:
        raise StudyError(
            f"{K} arms on {m} objectives are {comparisons:,} comparisons, more than the "
            f"{bodies.MOST_COMPARISONS:,} of one study here: ask about fewer arms or objectives"
        )
    if spec.is_list and values > bodies.MOST_VALUES:
        raise StudyError(
            f"{K} arms on {len(spec.ids):,} items, {spec.repeats} times each, are {values:,} values, more "
            f"than the {bodies.MOST_VALUES:,} of one study here: ask about fewer, or repeat them less"
        )


@make.delete("/{study}", status_code=204, responses=refuse(404))
def delete(request: Request, study: bodies.StudyName) -> Response:
    """Delete a study with all its results, for good."""
    registry = registry_of(request)
    row = registry.find(study).row
    registry.storage.delete(row.id)
    registry.forget(row)
    return Response(status_code=204)


@decide.post("/{study}/arms", status_code=201, responses=describe(201, Changed, 404, 409))
def add_arm(unit: OnceInUnit, body: bodies.ArmBody) -> None:
    """Another arm, where max_arms has left room."""
    changes.add_arm(unit, body.given())


@decide.post("/{study}/blind-arms", status_code=201, responses=describe(201, Changed, 404, 409))
def add_blind_arm(unit: OnceInUnit, body: bodies.ArmBody) -> None:
    """The same of an arm of a list that was made without looking at any result of the study."""
    changes.add_arm(unit, body.given(), blind=True)


@decide.post("/{study}/arms/{arm}/withdrawal", responses=describe(200, Changed, 404, 409))
def withdraw(unit: OnceInUnit, arm: bodies.ArmName, body: bodies.ReasonBody) -> None:
    """Take an arm out of the question."""
    changes.withdraw(unit, arm, body.reason)


@decide.delete("/{study}/arms/{arm}/withdrawal", responses=describe(200, Changed, 404, 409))
def restore(unit: OnceInUnit, arm: bodies.ArmName) -> None:
    """Bring a withdrawn arm back."""
    changes.restore(unit, arm)


@decide.post("/{study}/retry", responses=describe(200, Places, 404, 409))
def retry(unit: InUnit) -> Places:
    """Ask again for what failed or ran out, on a list."""
    return Places(changes.retry(unit))


@decide.post("/{study}/state", responses=describe(200, Changed, 404, 409))
def set_state(unit: OnceInUnit, body: bodies.StateBody) -> None:
    """Pause, resume; end by hand ("finished"), reopen; "measuring" resumes or reopens, as it stands."""
    if body.state == StateChange.FINISHED:
        ask_tell.end(unit, body.reason)
    elif body.state == StateChange.PAUSED:
        changes.pause(unit, body.reason)
    elif body.state == StateChange.REOPENED or (
        body.state == StateChange.MEASURING and unit.projection.end is not None
    ):
        changes.reopen(unit, body.reason)
    else:
        changes.resume(unit)


@decide.post("/{study}/forget", responses=describe(200, Forgotten, 404))
def forget(unit: InUnit, body: bodies.ForgetBody) -> Forgotten:
    """Delete what is kept of a visitor, or of all. Results stay: nothing says whose they are."""
    return Forgotten(assignment.forget(unit, body.key))


@decide.put("/{study}/objectives/{objective}", responses=describe(200, Changed, 404))
def amend(unit: OnceInUnit, objective: bodies.ObjectiveName, body: bodies.AmendBody) -> None:
    """Another margin or tie of an objective."""
    if objective not in unit.projection.spec.names:
        raise HTTPException(404, f"no objective {objective!r}")
    changes.amend(unit, objective, body.margin, body.tie)


@decide.post("/{study}/imports", status_code=201, responses=describe(201, Changed, 404, 409))
def import_results(unit: OnceInUnit, body: bodies.ImportBody) -> None:
    """Results measured before, as one table, before the first ask."""
    imports.take(unit, body.columns, body.arm, body.fair, body.again, ())


@decide.put("/{study}/order", responses=describe(200, Changed, 404))
def reorder(unit: OnceInUnit, body: bodies.OrderBody) -> None:
    """Another order of priority."""
    changes.reorder(unit, body.objectives)


@decide.put("/{study}/budget", responses=describe(200, Changed, 404))
def set_budget(unit: OnceInUnit, body: bodies.BudgetBody) -> None:
    """Another number of trials to hand out in all."""
    changes.set_budget(unit, body.budget)
