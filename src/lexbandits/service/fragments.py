"""What the page shows of a study: its summary, and the figures as fragments of HTML, in one answer."""

import json
import zlib
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query, Request, Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from lexbandits.outcomes import ObjectiveStage, Scope
from lexbandits.service import overview, schemas
from lexbandits.service.analysis import Course, analyses_shown, course_key
from lexbandits.service.bodies import Known, StudyName, TrialStateQuery
from lexbandits.service.endpoints import registry_of, router, studies_from, with_tag
from lexbandits.service.registry import Answered, OpenStudy, StudyRegistry
from lexbandits.service.replies import describe
from lexbandits.service.requests import looking
from lexbandits.service.summary import latest_events, summarized, trial_rows
from lexbandits.service.trials_page import MOST_OPEN, address, button, trials, workers
from lexbandits.study.core.lifecycle import ProofKind, cost_of_closing, proof_of
from lexbandits.study.core.trial_columns import EXPIRED
from lexbandits.study.number_format import about, capital, count, listed, many, percent, span
from lexbandits.study.states import StudyState, TrialState
from lexbandits.views import drawing
from lexbandits.views.activity import OFTEN, Line, latest
from lexbandits.views.arms_table import arms_table
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import Part, join, kept_together, tag
from lexbandits.views.trial_counts import tally_of

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast

ENOUGH_TO_FORETELL = 5  # results of an arm
MANY_FAILURES = (3, 0.02)  # failures of an arm, and their share of its results
Fields = Mapping[str, Any]

_DRAWN: Any = {304: {"description": "as known"}, **describe(200, schemas.Drawn, 404)}
Asked = Annotated[str, Query(max_length=200)]
StateFilter = Annotated[Literal["all", "measuring", "certified", "paused", "stopped"], Query()]
PageNumber = Annotated[int, Query(ge=1, le=10**9)]
MOST_PAGES = 20  # of a hundred studies

look = router(looking("read", in_line=True))
beside = router(looking("read"), "/api/fragments")


@look.get(
    "/{study}/fragments",
    responses={304: {"description": "as known"}, **describe(200, schemas.Fragments, 404)},
)
def fragments(request: Request, study: StudyName, known: Known = None) -> Response:
    """The summary, and what the page shows of it drawn; `wanted` is what to ask for that takes long."""
    etag, content = fragments_of(registry_of(request).find(study))
    return with_tag(etag, known, content)


@look.get("/{study}/fragments/trials", responses=_DRAWN)
def trials_fragment(
    request: Request,
    study: StudyName,
    arm: Asked = "",
    state: TrialStateQuery | Literal[""] = "",
    worker: Asked = "",
    page: PageNumber = 1,
    known: Known = None,
) -> Response:
    """A page of the trials of an arm, a state, a worker, drawn; the latest first."""
    opened = registry_of(request).find(study)
    with opened.reading(note_due=True) as reader:
        etag, summary = summarized(opened, reader)
        etag = f'{etag[:-1]}-{zlib.crc32(repr((arm, state, worker, page)).encode()):08x}"'
        leases = opened.reads.clock(opened.row.id)[1]
        drawn = trials(StudyView.of(reader), leases, arm, state, worker, page)
    content = {"title": f"{study}, trials", "summary": summary, "fragments": {"trials": drawn}}
    return with_tag(etag, known, content)


@beside.get("/studies", responses=_DRAWN)
def studies_fragment(
    request: Request,
    search: Asked = "",
    show: StateFilter = "all",
    pages: PageNumber = 1,
    known: Known = None,
) -> Response:
    """Every study at a glance, drawn."""
    found = studies_from(request, "", 100 * min(pages, MOST_PAGES), search)
    drawn = overview.studies(found.studies, search, show, pages, found.next is not None)
    content = {"title": "Studies", "fragments": {"studies": join(drawn)}}
    return with_tag(f'"{zlib.crc32(json.dumps(content).encode()):08x}"', known, content)


@beside.get("/comparison", responses=_DRAWN)
async def comparison_fragment(request: Request, first: Asked, second: Asked, known: Known = None) -> Response:
    """Two studies side by side, drawn."""
    views = []
    for name in (first, second):  # one after the other: who waits for one is in nobody's way in the other
        async with request.app.state.lines.turn(name):
            views.append(await run_in_threadpool(_compared, registry_of(request), name))

    def answer() -> Response:
        units = [objective.unit for view in views for objective in view.objectives]
        drawn = kept_together(overview.comparison(*views), units)
        content = {"title": f"{first}, {second}", "fragments": {"comparison": drawn}}
        return with_tag(f'"{zlib.crc32(json.dumps(content).encode()):08x}"', known, content)

    return await run_in_threadpool(answer)


def _compared(registry: StudyRegistry, name: str) -> StudyView:
    with registry.find(name).reading() as reader:
        view = StudyView.of(reader)
        _ = view.arms, view.objectives, view.headline  # made under the lock
        return view


def fragments_of(opened: OpenStudy) -> Answered:
    """With their ETag, which changes when a forecast or the course of the study was made, too."""
    with opened.reading(note_due=True) as study:
        known, summary = summarized(opened, study)
        foretold, followed = analyses_shown(opened)
        states = repr([made and made.state for made in (foretold, followed)])
        tag = f'{known[:-1]}-{zlib.crc32(states.encode()):08x}"'
        if opened.page.tag == tag:
            return opened.page
        view = StudyView.of(study)
        coming = foretold.found if foretold and view.state == StudyState.MEASURING else None
        course, (now, leases) = followed.found if followed else None, opened.reads.clock(opened.row.id)
        replay = view.estimates.replay
        rare = {
            event.seq: event for event in latest_events(opened, replay, OFTEN)
        }  # not hidden by what is often
        events = {**rare, **{event.seq: event for event in latest_events(opened, replay)}}
        activity = latest(view, (events[seq] for seq in sorted(events, reverse=True)), _turns(view, course))
        held = (
            trial_rows(replay, leases, TrialState.OPEN, 0, MOST_OPEN).trials if replay.projection.open else []
        )
        holders = workers(view, summary["workers"], summary["more_workers"], held)
        opened.page = Answered(tag, _content(view, summary, coming, course, now, activity, holders))
        return opened.page


def _content(
    view: StudyView,
    summary: Fields,
    coming: "Forecast | None",
    course: Course | None,
    now: float,
    activity: drawing.Figure,
    holders: drawing.Figure,
) -> dict[str, Any]:
    phases = [phase for phase, _ in course.phases] if course else []
    units = [objective.unit for objective in view.objectives]
    drawn: dict[str, Part] = {
        "head": tag(
            "section",
            tag("div", _head(view, summary, coming)),
            _actions(view),
            kind="head",
            data_key="head",
            aria_label="The answer",
        ),
        "strip": _strip(view, summary, coming, now),
        "arms": tag(
            "section",
            tag("h2", "Objectives in order, and the arms", kind="unseen", id="arms-title"),
            arms_table(view, actions=True),
            kind="panel",
            data_key="arms",
            aria_labelledby="arms-title",
        ),
        "figures": tag(
            "div",
            [_figures(view, coming, phases), activity.panel("latest")],
            kind="two",
            data_key="figures",
        ),
        "stories": drawing.stories(view).panel("stories") if view.estimates.folded else None,
        "workers": holders.panel("workers"),
        "end": tag(
            "p",
            f"event {count(summary['seq'])} · δ = {summary['delta']} · lease {summary['lease']} · since ",
            tag("time", datetime=summary["created"], data_time="clock"),
            kind="end",
            data_key="end",
        ),
    }
    wanted = ["forecast"] * (view.state == StudyState.MEASURING and _can_be_foretold(view))
    if view.estimates.folded and (course is None or course.key != course_key(view)):
        wanted.append("course")
    return {
        "summary": summary,
        "fragments": {name: kept_together(join(part), units) for name, part in drawn.items()},
        "closing": closing(view),
        "wanted": wanted,
    }


def _can_be_foretold(view: StudyView) -> bool:
    arms = [arm for arm in view.arms if arm.decision.is_candidate]
    return all(c.results >= ENOUGH_TO_FORETELL for arm in arms for c in arm.objectives.values())


def closing(view: StudyView) -> str | None:
    """What a change of the rules costs, if anything: it closes the proof under the rules as created."""
    projection = view.estimates.replay.projection
    if proof_of(projection) != ProofKind.PREREGISTERED or not len(projection) or projection.end is not None:
        return None
    return cost_of_closing("A change of the rules", view.estimates.results)


def _figures(view: StudyView, coming: "Forecast | None", phases: list[drawing.Phase]) -> list[Markup]:
    found: list[tuple[str, drawing.Figure | None]] = []
    if view.estimates.folded:
        settling = [
            objective
            for objective in view.objectives
            if objective.stage in (ObjectiveStage.SETTLING, ObjectiveStage.NOT_SETTLED)
        ]
        found += [("deciding", drawing.deciding(view, objective)) for objective in settling[:1]]
        found += [
            ("certificate", drawing.certificate(view)),
            ("race", drawing.course(view, phases, coming)),
        ]
    if coming is not None:
        found.append(("forecast", drawing.outlook(coming)))
    if view.state == StudyState.FINISHED and view.cost is not None:
        found.append(("cost", drawing.Figure("What learning cost", "", tag("p", view.cost.sentence))))
    return [figure.panel(key) for key, figure in found if figure is not None]


# --- the sentence


def _head(view: StudyView, summary: Fields, coming: "Forecast | None") -> list[Part]:
    order = [
        [k > 0 and tag("i", "›", aria_hidden="true"), objective.name]
        for k, objective in enumerate(view.objectives)
    ]
    return [
        tag(
            "h1",
            tag("span", view.name, kind="name"),
            drawing.badge(view),
            tag("span", order, kind="order"),
            tabindex=-1,
        ),
        tag(
            "p",
            drawing.headline(view),
            coming is not None and tag("span", f" {coming.sentence}", kind="q"),
            kind="say",
        ),
        tag("p", _below(view, summary), kind="sub"),
    ]


def _below(view: StudyView, summary: Fields) -> Part:
    if view.state == StudyState.FINISHED:
        unused = [
            objective.name for objective in view.objectives if objective.stage == ObjectiveStage.NOT_NEEDED
        ]
        were = f" Not needed: {listed(unused)}." if unused else ""
        times = [_seconds(summary[key]) for key in ("created", "ended")]
        return (
            f"{capital(many(view.estimates.results, 'result'))} in {span(max(1, times[1] - times[0]))}.{were}"
        )
    if not view.estimates.results:
        return "Start workers with lexbandits run, ask from your own code, or measure by hand."
    if view.state == StudyState.BUDGET_SPENT:
        return "A larger budget lets the study go on."
    if view.state == StudyState.ITEMS_SPENT and view.answer.scope == Scope.POPULATION:
        return "Every item was measured once; a certificate would need more of them."
    if view.messages:
        return tag("span", capital("; ".join(view.messages)), ".", kind="warnt")
    return view.open


# --- the strip


def _strip(view: StudyView, summary: Fields, coming: "Forecast | None", now: float) -> Markup:
    ended, certified = view.state == StudyState.FINISHED, view.answer.certified
    waits = f", {count(summary['waiting'])} wait" if summary["waiting"] else ""
    tiles: list[tuple[str, Part, Part, bool]] = [
        ("Results", count(summary["results"]), f"{count(summary['open'])} open{waits}", False)
    ]
    if coming is not None:
        low, median, high = coming.results
        needed = f"{about(low)}–{about(high)} in 8 of 10 runs"
        tiles.append(("Still needed, forecast", f"≈ {about(median)}", needed, False))
    if summary["budget"] is not None:
        left = max(0, summary["budget"] - summary["handed_out"])
        tiles.append(("Budget left", count(left), f"of {count(summary['budget'])} trials", False))
    elif summary["at_most"] is not None and not ended:
        full = count(summary["answer"]["full"])
        tiles.append(("At most", count(summary["at_most"]), f"more results, of {full} in all", False))
    elif coming is None:
        tiles.append(("Handed out", count(summary["handed_out"]), "trials, no limit set", False))
    sure = "–" if ended and not certified else percent(1 - summary["delta"])
    if view.answer.exact:
        sure = "exact"
    of = "of the certificate" if certified else "nothing is certified" if ended else "once it is certified"
    tiles += [("Confidence", sure, of, False), _workers(summary, ended, now)]
    if not ended:
        late, holds = summary["overdue"], summary["waiting"]
        why = f"{'holds' if late == 1 else 'hold'} back {count(holds)}" if holds else "leases ran out"
        tiles.append(("Overdue", count(late), _attention(why) if late else "no lease ran out", late > 0))
    late = summary["late"]
    tiles.append(("Late", count(late), "kept, not counted" if late else "all in time", False))
    tiles.append(_lost(view, summary))
    return tag("dl", [_tile(*tile) for tile in tiles], kind="strip", data_key="strip")


def _tile(name: str, value: Part, more: Part, many_failures: bool) -> Markup:
    inner = tag("dt", name), tag("dd", value, kind="v"), tag("dd", more, kind="n")
    return tag("div", inner, kind="att" if many_failures else None, data_key=name)


def _attention(text: str) -> Markup:
    return tag("span", text, kind="warnt")


def _workers(summary: Fields, ended: bool, now: float) -> tuple[str, Part, Part, bool]:
    workers = summary["workers"]
    if not workers:
        said = "nobody measured" if ended else "nobody has asked yet"
        if summary["results"]:
            said = "gave no names" if summary["handed_out"] else "all was imported"
        return "Workers", "–", said, False
    if ended:
        return "Workers", count(len(workers)), "measured", False
    busy = sum(worker.open > 0 for worker in workers)
    silent = [worker.name for worker in workers if worker.until is not None and _seconds(worker.until) <= now]
    said = f"{listed(silent) if len(silent) < 3 else count(len(silent))} silent"
    value = [count(busy), tag("small", f" of {count(len(workers))} measuring")]
    return "Workers", value, _attention(said) if silent else None, bool(silent)


def _lost(view: StudyView, summary: Fields) -> tuple[str, Part, Part, bool]:
    """Trials without a result; neither what counts as declared nor what came after the end is missing."""
    failed, expired = summary["failed"], summary["expired"]
    after = _ran_out_after_the_end(view, summary["ended"])
    expired -= after
    worst = max(view.arms, key=lambda arm: arm.failed)
    of = f" ({count(worst.failed)} on {worst.name})" if failed > worst.failed else f" ({worst.name})"
    objectives = view.estimates.objectives
    missing = failed * any(o.if_failed is None for o in objectives)
    missing += expired * any(o.if_expired is None for o in objectives)
    parts = [f"{count(failed)} failed{of}"] * bool(failed) + [f"{count(expired)} ran out"] * bool(expired)
    if parts and not missing:
        parts[-1] += "; they count as declared"
    parts += [f"{count(after)} ran out after the end"] * bool(after)
    text = ", ".join(parts) or "none failed"
    many_failures = worst.failed >= MANY_FAILURES[0] and worst.failed > MANY_FAILURES[1] * worst.results
    name, total = ("Without a result", failed + expired) if parts and not missing else ("Missing", missing)
    return name, count(total), _attention(text) if many_failures else text, many_failures


def _ran_out_after_the_end(view: StudyView, ended: str | None) -> int:
    projection = view.estimates.replay.projection
    if ended is None or not projection.counts[EXPIRED]:
        return 0
    late = projection.column("resolved") > _seconds(ended) + 0.001  # which is written in milliseconds
    return int((late & (projection.column("state") == EXPIRED)).sum())


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


# --- activity


def _turns(view: StudyView, course: Course | None) -> list[Line]:
    """Who left, and what was settled: nobody did that, so no event says it."""
    tally = tally_of(view.estimates.replay)
    after = {arm.name: arm.decision.after for arm in view.arms}
    rows = [
        Line(tally.reached(after[found.arm] or 0), f"left {found.arm}", drawing.told(found))
        for found in view.explanations
        if after[found.arm] is not None
    ]
    order = [objective.name for objective in view.objectives]
    for (before, _), (then, at) in pairwise(course.phases if course else ()):
        if at and order.index(before.objective) < order.index(then.objective):
            words = [tag("b", before.objective), " settled; ", tag("b", then.objective), " is next"]
            rows.append(Line(_seconds(at), f"settled {before.objective} {at}", words))
    return rows


# --- what people can do


def _actions(view: StudyView) -> Markup:
    """What can be done with a study in this state; who may not will not see it."""
    state, name = view.state, view.name
    over, has_items = state == StudyState.FINISHED, view.estimates.spec.items is not None
    more = [
        button("note", "Write a note", "plain", "write"),
        button("add-arm", "Add an arm", "plain", "admin"),
        not over and button("amend", "Change a margin", "plain", "admin"),
        not over and len(view.objectives) > 1 and button("reorder", "Change the order", "plain", "admin"),
        state != StudyState.BUDGET_SPENT and button("budget", "Set the budget", "plain", "admin"),
        button("compare", "Compare with another", "plain"),
        not over
        and bool(view.estimates.replay.projection.holes)
        and button("retry", "Ask again for what is missing", "plain", "admin"),
        has_items and button("show-items", "Show every item", "plain"),
        has_items and button("export-items", "Download the items", "plain"),
        button("export-trials", "Download the trials", "plain"),
        button("export-events", "Download the record", "plain"),
        button("verify", "Check the record", "plain"),
        not over and button("end", "End without a certificate", "plain", "admin"),
    ]
    return tag(
        "div",
        state == StudyState.MEASURING and button("measure", "Measure by hand", "", "write"),
        state == StudyState.PAUSED and button("resume", "Resume", "", "admin"),
        state == StudyState.MEASURING and button("pause", "Pause", "", "admin"),
        state == StudyState.BUDGET_SPENT and button("budget", "Set the budget", "pri", "admin"),
        over and button("reopen", "Reopen", "", "admin"),
        tag("a", "Trials", href=f"#{address(name, 'trials')}", kind="btn"),
        tag("details", tag("summary", "More"), tag("div", more), kind="menu", data_key="more"),
        button("report", "Report", "pri"),
        kind="acts",
        role="group",
        aria_label="Actions",
    )
