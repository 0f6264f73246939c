"""What the page shows of a study: its summary, and the figures as fragments of HTML, in one answer."""

import zlib
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import Request, Response
from markupsafe import Markup

from lexbandits.picture import draw
from lexbandits.picture.ladder import ladder
from lexbandits.picture.picture import Picture
from lexbandits.picture.svg import Part, join, kept_together, tag
from lexbandits.picture.tally import Tally
from lexbandits.server import schemas
from lexbandits.server.api import rooms_of, router, with_tag
from lexbandits.server.bodies import Known, StudyName
from lexbandits.server.replies import describe
from lexbandits.server.rooms import Room
from lexbandits.server.routes import looking
from lexbandits.server.summary import summary_of, when
from lexbandits.study.record.rules import cost_of_closing, proof_of
from lexbandits.study.study import Study
from lexbandits.study.words import about, capital, count, listed, many, percent, span

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast

ENOUGH_TO_FORETELL = 5  # results of an arm
STRAINED = (3, 0.02)  # failures of an arm, and their share of its results
Words = Mapping[str, Any]

look = router(looking("read"))


@look.get(
    "/{study}/fragments",
    responses={304: {"description": "as known"}, **describe(200, schemas.Fragments, 404)},
)
def fragments(request: Request, study: StudyName, known: Known = None) -> Response:
    """The summary, and what the page shows of it drawn; `wanted` is what to ask for that takes long."""
    etag, content = fragments_of(rooms_of(request).find(study))
    return with_tag(etag, known, content)


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
        course, (now, _) = followed[1] if followed else None, room.reads.clock(room.row.id)
        found = _tag(known, thoughts), _content(picture, summary, coming, course, now)
        room.memory["page"] = found
        return found


def _thoughts(room: Room) -> list[Any]:
    """The last forecast and the last course, each with the state that it is of; None if there is none."""
    return [room.thought(what) for what in ("forecast 100", "course")]


def _tag(known: str, thoughts: list[Any]) -> str:
    states = repr([thought and thought[0] for thought in thoughts])
    return f'{known[:-1]}-{zlib.crc32(states.encode()):08x}"'


def _content(
    picture: Picture, summary: Words, coming: "Forecast | None", course: "Course | None", now: float
) -> dict[str, Any]:
    phases = [phase for phase, _ in course.phases] if course else []
    units = [rung.unit for rung in picture.objectives]
    drawn: dict[str, Part] = {
        "head": _head(picture, summary, coming),
        "strip": _strip(picture, summary, coming, now),
        "ladder": tag(
            "section",
            tag("h2", "Objectives in order, and the arms", kind="unseen", id="ladder-title"),
            ladder(picture, actions=True),
            kind="panel",
            data_key="ladder",
            aria_labelledby="ladder-title",
        ),
        "figures": _figures(picture, coming, phases),
        "stories": draw.stories(picture).panel("stories") if picture.view.folded else None,
    }
    wanted = ["forecast"] * (picture.state == "measuring" and _can_be_foretold(picture))
    if picture.view.folded and (course is None or course.standing != standing_of(picture)):
        wanted.append("course")
    return {
        "summary": summary,
        "fragments": {name: kept_together(join(part), units) for name, part in drawn.items()},
        "turns": _turns(picture, summary, course),
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
        times = [datetime.fromisoformat(summary[key]).timestamp() for key in ("created", "ended")]
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
    if ended:
        return "Workers", count(len(workers)), "measured", False
    busy = sum(worker["open"] > 0 for worker in workers)
    held = [worker for worker in workers if worker["until"] is not None]
    silent = [w["name"] for w in held if datetime.fromisoformat(w["until"]).timestamp() <= now]
    said = f"{listed(silent) if len(silent) < 3 else count(len(silent))} silent"
    value = [count(busy), tag("small", f" of {count(len(workers))} measuring")]
    return "Workers", value, _attention(said) if silent else None, bool(silent)


def _lost(picture: Picture, summary: Words) -> tuple[str, Part, Part, bool]:
    """Trials without a result; those that count by what was declared are not missing."""
    failed, expired = summary["failed"], summary["expired"]
    worst = max(picture.arms, key=lambda arm: arm.failed)
    of = f" ({count(worst.failed)} on {worst.name})" if failed > worst.failed else f" ({worst.name})"
    parts = [f"{count(failed)} failed{of}"] * bool(failed) + [f"{count(expired)} ran out"] * bool(expired)
    objectives = picture.view.objectives
    counts = parts and all(o.if_failed is not None and o.if_expired is not None for o in objectives)
    text = f"{', '.join(parts)}{'; they count as declared' if counts else ''}" if parts else "none failed"
    strained = worst.failed >= STRAINED[0] and worst.failed > STRAINED[1] * worst.results
    name = "Without a result" if counts else "Missing"
    return name, count(failed + expired), _attention(text) if strained else text, strained


# --- what happened


def _turns(picture: Picture, summary: Words, course: Course | None) -> list[dict[str, Any]]:
    """Who left, and what was settled: nobody did that, so no event says it."""
    times = {arm["name"]: arm["left"]["at"] for arm in summary["arms"] if arm["left"]}
    rows = [
        {"key": f"left {story.arm}", "at": times[story.arm], "words": draw.told(story)}
        for story in picture.stories
        if times.get(story.arm)
    ]
    order = [rung.name for rung in picture.objectives]
    for (before, _), (after, at) in pairwise(course.phases if course else ()):
        if at and order.index(before.objective) < order.index(after.objective):
            words = join([tag("b", before.objective), " settled; ", tag("b", after.objective), " is next"])
            rows.append({"key": f"settled {before.objective} {at}", "at": at, "words": words})
    return rows
