"""What the page shows of a study: its summary, and the figures as fragments of HTML, in one answer."""

import json
import zlib
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from fastapi import Query, Request, Response
from markupsafe import Markup

from lexbandits.picture import draw
from lexbandits.picture.happened import OFTEN, Line, latest
from lexbandits.picture.ladder import ladder
from lexbandits.picture.picture import Picture
from lexbandits.picture.svg import Part, join, kept_together, tag
from lexbandits.picture.tally import Tally, tally_of
from lexbandits.server import overview, schemas
from lexbandits.server.api import rooms_of, router, studies_from, with_tag
from lexbandits.server.bodies import Known, StudyName, TrialState
from lexbandits.server.record import MOST_OPEN, address, button, trials, workers
from lexbandits.server.replies import describe
from lexbandits.server.rooms import Room
from lexbandits.server.routes import looking
from lexbandits.server.summary import latest_events, summary_of, trial_rows, when
from lexbandits.study.record.rules import cost_of_closing, proof_of
from lexbandits.study.record.trials import EXPIRED
from lexbandits.study.study import Study
from lexbandits.study.words import about, capital, count, listed, many, percent, span

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast

ENOUGH_TO_FORETELL = 5  # results of an arm
STRAINED = (3, 0.02)  # failures of an arm, and their share of its results
Words = Mapping[str, Any]

_DRAWN: Any = {304: {"description": "as known"}, **describe(200, schemas.Drawn, 404)}
Asked = Annotated[str, Query(max_length=200)]
Shown = Annotated[Literal["all", "measuring", "certified", "paused", "stopped"], Query()]
PageNumber = Annotated[int, Query(ge=1, le=10**9)]
MOST_PAGES = 20  # of a hundred studies

look = router(looking("read"))
beside = router(looking("read"), "/api/fragments")


@look.get(
    "/{study}/fragments",
    responses={304: {"description": "as known"}, **describe(200, schemas.Fragments, 404)},
)
def fragments(request: Request, study: StudyName, known: Known = None) -> Response:
    """The summary, and what the page shows of it drawn; `wanted` is what to ask for that takes long."""
    etag, content = fragments_of(rooms_of(request).find(study))
    return with_tag(etag, known, content)


@look.get("/{study}/fragments/trials", responses=_DRAWN)
def trials_fragment(
    request: Request,
    study: StudyName,
    arm: Asked = "",
    state: TrialState | Literal[""] = "",
    worker: Asked = "",
    page: PageNumber = 1,
    known: Known = None,
) -> Response:
    """A page of the trials of an arm, a state, a worker, drawn; the latest first."""
    room = rooms_of(request).find(study)
    with room.reading() as reader:
        etag, summary = summary_of(room)
        etag = f'{etag[:-1]}-{zlib.crc32(repr((arm, state, worker, page)).encode()):08x}"'
        picture = Picture.of_fold(reader._journal.fold(), reader)
        leases = room.reads.clock(room.row.id)[1]
        drawn = trials(picture, picture.view.fold, leases, arm, state, worker, page)
    content = {"title": f"{study}, trials", "summary": summary, "fragments": {"trials": drawn}}
    return with_tag(etag, known, content)


@beside.get("/studies", responses=_DRAWN)
def studies_fragment(
    request: Request, search: Asked = "", show: Shown = "all", pages: PageNumber = 1, known: Known = None
) -> Response:
    """Every study at a glance, drawn."""
    found = studies_from(request, "", 100 * min(pages, MOST_PAGES), search)
    drawn = overview.studies(found.studies, search, show, pages, found.next is not None)
    content = {"title": "Studies", "fragments": {"studies": join(drawn)}}
    return with_tag(f'"{zlib.crc32(json.dumps(content).encode()):08x}"', known, content)


@beside.get("/comparison", responses=_DRAWN)
def comparison_fragment(request: Request, first: Asked, second: Asked, known: Known = None) -> Response:
    """Two studies side by side, drawn."""
    pictures = []
    for name in (first, second):
        with rooms_of(request).find(name).reading() as reader:
            picture = Picture.of_fold(reader._journal.fold(), reader)
            _ = picture.arms, picture.objectives, picture.headline  # made under the lock
            pictures.append(picture)
    drawn = kept_together(overview.comparison(*pictures), [r.unit for p in pictures for r in p.objectives])
    content = {"title": f"{first}, {second}", "fragments": {"comparison": drawn}}
    return with_tag(f'"{zlib.crc32(json.dumps(content).encode()):08x}"', known, content)


def fragments_of(room: Room) -> tuple[str, dict[str, Any]]:
    """With their ETag, which changes when a forecast or the course of the study was made, too."""
    found: tuple[str, dict[str, Any]] = room.memory.get("page", ("", {}))
    if found[0] == _tag(summary_of(room)[0], _thoughts(room)):
        return found
    with room.reading() as study:
        known, summary = summary_of(room)  # of the state that is drawn, whatever has come meanwhile
        foretold, followed = thoughts = _thoughts(room)
        picture = Picture.of_fold(study._journal.fold(), study)
        coming = foretold[1] if foretold and picture.state == "measuring" else None
        course, (now, leases) = followed[1] if followed else None, room.reads.clock(room.row.id)
        fold = picture.view.fold
        rare = {event.seq: event for event in latest_events(room, fold, OFTEN)}  # not hidden by what is often
        events = {**rare, **{event.seq: event for event in latest_events(room, fold)}}
        happened = latest(
            picture, (events[seq] for seq in sorted(events, reverse=True)), _turns(picture, course)
        )
        held = trial_rows(fold, leases, "open", 0, MOST_OPEN).trials if fold.ledger.open else []
        who = workers(picture, summary["workers"], summary["more_workers"], held)
        found = _tag(known, thoughts), _content(picture, summary, coming, course, now, happened, who)
        room.memory["page"] = found
        return found


def _thoughts(room: Room) -> list[Any]:
    """The last forecast and the last course, each with the state that it is of; None if there is none."""
    return [room.thoughts.get(what) for what in ("forecast 100", "course")]


def _tag(known: str, thoughts: list[Any]) -> str:
    states = repr([thought and thought[0] for thought in thoughts])
    return f'{known[:-1]}-{zlib.crc32(states.encode()):08x}"'


def _content(
    picture: Picture,
    summary: Words,
    coming: "Forecast | None",
    course: "Course | None",
    now: float,
    happened: draw.Figure,
    who: draw.Figure,
) -> dict[str, Any]:
    phases = [phase for phase, _ in course.phases] if course else []
    units = [rung.unit for rung in picture.objectives]
    drawn: dict[str, Part] = {
        "head": tag(
            "section",
            tag("div", _head(picture, summary, coming)),
            _actions(picture),
            kind="head",
            data_key="head",
            aria_label="The answer",
        ),
        "strip": _strip(picture, summary, coming, now),
        "ladder": tag(
            "section",
            tag("h2", "Objectives in order, and the arms", kind="unseen", id="ladder-title"),
            ladder(picture, actions=True),
            kind="panel",
            data_key="ladder",
            aria_labelledby="ladder-title",
        ),
        "figures": tag(
            "div",
            [_figures(picture, coming, phases), happened.panel("latest")],
            kind="two",
            data_key="figures",
        ),
        "stories": draw.stories(picture).panel("stories") if picture.view.folded else None,
        "workers": who.panel("workers"),
        "end": tag(
            "p",
            f"event {count(summary['seq'])} · δ = {summary['delta']} · lease {summary['lease']} · since ",
            tag("time", datetime=summary["created"], data_time="clock"),
            kind="end",
            data_key="end",
        ),
    }
    wanted = ["forecast"] * (picture.state == "measuring" and _can_be_foretold(picture))
    if picture.view.folded and (course is None or course.standing != standing_of(picture)):
        wanted.append("course")
    return {
        "summary": summary,
        "fragments": {name: kept_together(join(part), units) for name, part in drawn.items()},
        "closing": closing(picture),
        "wanted": wanted,
    }


def _can_be_foretold(picture: Picture) -> bool:
    arms = [arm for arm in picture.arms if arm.state in ("answer", "candidate")]
    return all(c.results >= ENOUGH_TO_FORETELL for arm in arms for c in arm.objectives.values())


def closing(picture: Picture) -> str | None:
    """What a change of the rules costs, if anything: it closes the proof under the rules as created."""
    ledger = picture.view.fold.ledger
    if proof_of(ledger) != "declared" or not len(ledger) or ledger.end is not None:
        return None
    return cost_of_closing("A change of the rules", picture.view.results)


def _figures(picture: Picture, coming: "Forecast | None", phases: list[draw.Phase]) -> list[Markup]:
    found: list[tuple[str, draw.Figure | None]] = []
    if picture.view.folded:
        settling = [rung for rung in picture.objectives if rung.state in ("settling", "not settled")]
        found += [("deciding", draw.deciding(picture, rung)) for rung in settling[:1]]
        found += [("certificate", draw.certificate(picture)), ("race", draw.course(picture, phases, coming))]
    if coming is not None:
        found.append(("forecast", draw.outlook(coming)))
    return [figure.panel(key) for key, figure in found if figure is not None]


# --- what was being settled when


class Course(NamedTuple):
    """What was being settled when, each with the time of its first result; as it was at a standing."""

    standing: str
    phases: list[tuple[draw.Phase, str | None]]


def course_of(study: Study) -> Course:
    """It takes a replay of the study."""
    picture = Picture.of(study)
    tally = Tally(picture.view.fold.ledger)
    spans = [(phase, when(tally.reached(phase.since + 1))) for phase in draw.phases(picture.view)]
    return Course(standing_of(picture), spans)


def standing_of(picture: Picture) -> str:
    """What the course of a study depends on."""
    return repr(
        (picture.state, [rung.state for rung in picture.objectives], [arm.exit for arm in picture.arms])
    )


# --- the sentence


def _head(picture: Picture, summary: Words, coming: "Forecast | None") -> list[Part]:
    order = [
        [k > 0 and tag("i", "›", aria_hidden="true"), rung.name] for k, rung in enumerate(picture.objectives)
    ]
    return [
        tag(
            "h1",
            tag("span", picture.name, kind="name"),
            draw.pill(picture),
            tag("span", order, kind="order"),
            tabindex=-1,
        ),
        tag(
            "p",
            draw.headline(picture),
            coming is not None and tag("span", f" {coming.sentence}", kind="q"),
            kind="say",
        ),
        tag("p", _below(picture, summary), kind="sub"),
    ]


def _below(picture: Picture, summary: Words) -> Part:
    if picture.state == "finished":
        unused = [rung.name for rung in picture.objectives if rung.state == "not needed"]
        were = f" Not needed: {listed(unused)}." if unused else ""
        times = [_seconds(summary[key]) for key in ("created", "ended")]
        return (
            f"{capital(many(picture.view.results, 'result'))} in {span(max(1, times[1] - times[0]))}.{were}"
        )
    if not picture.view.results:
        return "Start workers with lexbandits run, ask from your own code, or measure by hand."
    if picture.state == "budget spent":
        return "A larger budget lets the study go on."
    if picture.state == "items spent" and picture.answer.about == "population":
        return "Every item was measured once; a certificate would need more of them."
    if picture.said:
        return tag("span", capital("; ".join(picture.said)), ".", kind="warnt")
    return picture.open


# --- the strip


def _strip(picture: Picture, summary: Words, coming: "Forecast | None", now: float) -> Markup:
    ended, certified = picture.state == "finished", picture.answer.certified
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
    risk = "–" if ended and not certified else f"≤ {percent(summary['delta'])}"
    if summary["answer"]["about"] == "items" and picture.answer.certain:
        risk = "0"
    valid = (
        "for the whole study" if certified else "nothing is certified" if ended else "when it is certified"
    )
    tiles += [("Wrong with probability", risk, valid, False), _workers(summary, ended, now)]
    if not ended:
        late, holds = summary["overdue"], summary["waiting"]
        why = f"{'holds' if late == 1 else 'hold'} back {count(holds)}" if holds else "leases ran out"
        tiles.append(("Overdue", count(late), _attention(why) if late else "no lease ran out", late > 0))
    late = summary["late"]
    tiles.append(("Late", count(late), "kept, not counted" if late else "all in time", False))
    tiles.append(_lost(picture, summary))
    return tag("dl", [_tile(*tile) for tile in tiles], kind="strip", data_key="strip")


def _tile(name: str, value: Part, more: Part, strained: bool) -> Markup:
    inner = tag("dt", name), tag("dd", value, kind="v"), tag("dd", more, kind="n")
    return tag("div", inner, kind="att" if strained else None, data_key=name)


def _attention(text: str) -> Markup:
    return tag("span", text, kind="warnt")


def _workers(summary: Words, ended: bool, now: float) -> tuple[str, Part, Part, bool]:
    workers = summary["workers"]
    if not workers:
        said = "nobody measured" if ended else "nobody has asked yet"
        if summary["results"]:
            said = "gave no name" if summary["handed_out"] else "all was imported"
        return "Workers", "–", said, False
    if ended:
        return "Workers", count(len(workers)), "measured", False
    busy = sum(worker.open > 0 for worker in workers)
    silent = [worker.name for worker in workers if worker.until is not None and _seconds(worker.until) <= now]
    said = f"{listed(silent) if len(silent) < 3 else count(len(silent))} silent"
    value = [count(busy), tag("small", f" of {count(len(workers))} measuring")]
    return "Workers", value, _attention(said) if silent else None, bool(silent)


def _lost(picture: Picture, summary: Words) -> tuple[str, Part, Part, bool]:
    """Trials without a result; neither what counts as declared nor what came after the end is missing."""
    failed, expired = summary["failed"], summary["expired"]
    after = _ran_out_after_the_end(picture, summary["ended"])
    expired -= after
    worst = max(picture.arms, key=lambda arm: arm.failed)
    of = f" ({count(worst.failed)} on {worst.name})" if failed > worst.failed else f" ({worst.name})"
    objectives = picture.view.objectives
    missing = failed * any(o.if_failed is None for o in objectives)
    missing += expired * any(o.if_expired is None for o in objectives)
    parts = [f"{count(failed)} failed{of}"] * bool(failed) + [f"{count(expired)} ran out"] * bool(expired)
    if parts and not missing:
        parts[-1] += "; they count as declared"
    parts += [f"{count(after)} ran out after the end"] * bool(after)
    text = ", ".join(parts) or "none failed"
    strained = worst.failed >= STRAINED[0] and worst.failed > STRAINED[1] * worst.results
    name, total = ("Without a result", failed + expired) if parts and not missing else ("Missing", missing)
    return name, count(total), _attention(text) if strained else text, strained


def _ran_out_after_the_end(picture: Picture, ended: str | None) -> int:
    ledger = picture.view.fold.ledger
    if ended is None or not ledger.counts[EXPIRED]:
        return 0
    late = ledger.column("resolved") > _seconds(ended) + 0.001  # which is written in milliseconds
    return int((late & (ledger.column("state") == EXPIRED)).sum())


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


# --- what happened


def _turns(picture: Picture, course: Course | None) -> list[Line]:
    """Who left, and what was settled: nobody did that, so no event says it."""
    tally = tally_of(picture.view.fold)
    after = {arm.name: arm.exit.after for arm in picture.arms}
    rows = [
        Line(tally.reached(after[story.arm] or 0), f"left {story.arm}", draw.told(story))
        for story in picture.stories
        if after[story.arm] is not None
    ]
    order = [rung.name for rung in picture.objectives]
    for (before, _), (then, at) in pairwise(course.phases if course else ()):
        if at and order.index(before.objective) < order.index(then.objective):
            words = [tag("b", before.objective), " settled; ", tag("b", then.objective), " is next"]
            rows.append(Line(_seconds(at), f"settled {before.objective} {at}", words))
    return rows


# --- what people can do


def _actions(picture: Picture) -> Markup:
    """What can be done with a study in this state; who may not will not see it."""
    state, name = picture.state, picture.name
    over, has_items = state == "finished", picture.view.spec.items is not None
    more = [
        button("note", "Write a note", "plain", "write"),
        button("add-arm", "Add an arm", "plain", "admin"),
        not over and button("amend", "Change a margin", "plain", "admin"),
        not over and len(picture.objectives) > 1 and button("reorder", "Change the order", "plain", "admin"),
        state != "budget spent" and button("budget", "Set the budget", "plain", "admin"),
        button("compare", "Compare with another", "plain"),
        not over
        and bool(picture.view.fold.ledger.holes)
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
        state == "measuring" and button("measure", "Measure by hand", "", "write"),
        state == "paused" and button("resume", "Resume", "", "admin"),
        state == "measuring" and button("pause", "Pause", "", "admin"),
        state == "budget spent" and button("budget", "Set the budget", "pri", "admin"),
        over and button("reopen", "Reopen", "", "admin"),
        tag("a", "Trials", href=f"#{address(name, 'trials')}", kind="btn"),
        tag("details", tag("summary", "More"), tag("div", more), kind="menu", data_key="more"),
        button("report", "Report", "pri"),
        kind="acts",
        role="group",
        aria_label="Actions",
    )
