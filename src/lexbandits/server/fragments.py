"""What the page shows of a study: its summary, and the figures as fragments of HTML, in one answer."""

import zlib
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import Request, Response
from markupsafe import Markup

from lexbandits.picture import draw
from lexbandits.picture.explain import Explanation, explanation_of
from lexbandits.picture.ladder import ladder
from lexbandits.picture.svg import Part, join, tag
from lexbandits.picture.view import View
from lexbandits.picture.words import about, capital, count, listed, many, percent, span
from lexbandits.server import answers
from lexbandits.server.answers import problems
from lexbandits.server.api import rooms_of, router, with_tag
from lexbandits.server.bodies import Known, StudyName
from lexbandits.server.rooms import Room
from lexbandits.server.summary import summary_of, when
from lexbandits.server.tally import Tally
from lexbandits.study.study import Study

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast

ENOUGH_TO_FORETELL = 5  # results of an arm
STRAINED = (3, 0.02)  # failures of an arm, and their share of its results
Words = Mapping[str, Any]


look = router("read")


@look.get(
    "/{study}/fragments",
    responses={200: {"model": answers.Fragments}, 304: {"description": "as known"}, **problems(404)},
)
def fragments(request: Request, study: StudyName, known: Known = None) -> Response:
    """The summary, and what the page shows of it drawn; `wanted` is what to ask for that takes long."""
    etag, content = fragments_of(rooms_of(request)[study])
    return with_tag(etag, known, content)


def fragments_of(room: Room) -> tuple[str, dict[str, Any]]:
    """With their ETag, which changes when a forecast or the course of the study was made, too."""
    summary_of(room)  # what has run out is noted
    with room.reading() as study:
        known, summary = summary_of(room)
        foretold, followed = room.thought("forecast 100"), room.thought("course")
        thoughts = repr([thought and thought[0] for thought in (foretold, followed)])
        etag = f'{known[:-1]}-{zlib.crc32(thoughts.encode()):08x}"'
        if room.memory.get("page", (None, None))[0] != etag:
            view = View(study, study._journal.fold())
            coming = foretold[1] if foretold and view.state == "measuring" else None
            course, (now, _) = followed[1] if followed else None, room.reads.clock(room.row.id)
            room.memory["page"] = etag, _content(view, summary, coming, course, now)
        found: tuple[str, dict[str, Any]] = room.memory["page"]
        return found


def _content(
    view: View, summary: Words, coming: "Forecast | None", course: "Course | None", now: float
) -> dict[str, Any]:
    explanation = explanation_of(view)
    phases = [phase for phase, _ in course.phases] if course else []
    drawn: dict[str, Part] = {
        "head": _head(view, summary, explanation, coming),
        "strip": _strip(view, summary, coming, now),
        "ladder": tag(
            "section",
            tag("h2", "Objectives in order, and the arms", kind="unseen", id="ladder-title"),
            ladder(view, actions=True),
            kind="panel",
            data_key="ladder",
            aria_labelledby="ladder-title",
        ),
        "figures": _figures(view, explanation, coming, phases),
    }
    wanted = []
    if view.state == "measuring" and _can_be_foretold(view):
        wanted.append("forecast")
    if view.folded and (course is None or course.standing != standing_of(view)):
        wanted.append("course")
    return {
        "summary": summary,
        "fragments": {name: join(part) for name, part in drawn.items()},
        "turns": _turns(view, summary, explanation, course),
        "closing": closing(view),
        "wanted": wanted,
    }


class Course(NamedTuple):
    """What was being settled when, each with the time of its first result; as it was at a standing."""

    standing: str
    phases: list[tuple[draw.Phase, str | None]]


def course_of(study: Study) -> Course:
    """It takes a replay of the study."""
    view = View.of(study)
    tally = Tally(view.fold.ledger)
    spans = [(phase, when(tally.reached(phase.since + 1))) for phase in draw.phases(view)]
    return Course(standing_of(view), spans)


def standing_of(view: View) -> str:
    """What the course of a study depends on."""
    return repr((view.state, view.settling, sorted(view.eliminations)))


def _can_be_foretold(view: View) -> bool:
    arms = [arm for arm in range(len(view.arms)) if view.standing(arm) in ("answer", "candidate")]
    return int(view.counts[arms].min(initial=10**9)) >= ENOUGH_TO_FORETELL


def closing(view: View) -> str | None:
    """What another change of the rules costs, if anything: a proof under the rules as created."""
    ledger = view.fold.ledger
    if not view.policy.state.shown.size or not len(ledger) or ledger.end is not None:
        return None
    return (
        "A change of the rules closes the proof under the rules as created; what is then needed grows by "
        f"about a quarter. {capital(many(view.results, 'result'))} so far stay."
    )


def _figures(
    view: View, explanation: Explanation, coming: "Forecast | None", phases: list[draw.Phase]
) -> list[Markup]:
    found = []
    if view.settling is not None and view.folded:
        found.append(draw.deciding(view, view.columns.index(view.settling)).panel("deciding"))
    if view.folded:
        found.append(draw.certificate(view, explanation).panel("certificate"))
        found.append(draw.stories(explanation).panel("stories"))
        found.append(draw.course(view, phases, coming).panel("race"))
    if coming is not None:
        found.append(draw.outlook(coming).panel("forecast"))
    return found


# --- the sentence


def _head(view: View, summary: Words, explanation: Explanation, coming: "Forecast | None") -> list[Part]:
    names = [view.objectives[column].name for column in view.columns]
    order = [[k > 0 and tag("i", "›", aria_hidden="true"), name] for k, name in enumerate(names)]
    sentence, answer = explanation.sentence, view.answer.arm
    if sentence.startswith(f"{answer} is "):
        said: Part = [tag("b", answer), sentence.removeprefix(answer)]
    else:
        said = sentence
    return [
        tag(
            "h1",
            tag("span", view.name, kind="name"),
            draw.pill(view),
            tag("span", order, kind="order"),
            tabindex=-1,
        ),
        tag("p", said, coming and tag("span", f" {coming.sentence}", kind="q"), kind="say"),
        tag("p", _below(view, summary), kind="sub"),
    ]


def _below(view: View, summary: Words) -> Part:
    if view.state == "finished":
        unused = [
            view.objectives[c].name for p, c in enumerate(view.columns) if view.stage(p) == "not needed"
        ]
        lasted = datetime.fromisoformat(summary["ended"]) - datetime.fromisoformat(summary["created"])
        were = (
            f" {capital(listed(unused))} {'was' if len(unused) == 1 else 'were'} not needed."
            if unused
            else ""
        )
        return f"{capital(many(view.results, 'result'))} in {span(lasted.total_seconds())}.{were}"
    if not view.results:
        return "Start workers with lexbandits run, ask from your own code, or measure by hand."
    if view.state == "budget spent":
        return "A larger budget lets the study go on."
    if view.state == "items spent":
        return "Every item was measured once; a certificate would need more of them."
    if summary["answer"]["said"]:
        return tag("span", capital("; ".join(summary["answer"]["said"])), ".", kind="warnt")
    return None


# --- the strip


def _strip(view: View, summary: Words, coming: "Forecast | None", now: float) -> Markup:
    ended, certified = view.state == "finished", view.answer.certified
    waits = f", {count(summary['waiting'])} wait" if summary["waiting"] else ""
    tiles: list[tuple[str, Part, Part, bool]] = [
        ("Results", count(summary["results"]), f"{count(summary['open'])} open{waits}", False)
    ]
    if coming is not None:
        low, median, high = coming.results
        range_ = f"{about(low)}–{about(high)} in 8 of 10 runs"
        tiles.append(("Still needed, forecast", f"≈ {about(median)}", range_, False))
    if summary["budget"] is not None:
        left = max(0, summary["budget"] - summary["handed_out"])
        tiles.append(("Budget left", count(left), f"of {count(summary['budget'])} trials", False))
    elif coming is None:
        tiles.append(("Handed out", count(summary["handed_out"]), "trials, no limit set", False))
    risk = "–" if ended and not certified else f"≤ {percent(view.spec.delta)}"
    valid = (
        "for the whole study" if certified else "nothing is certified" if ended else "when it is certified"
    )
    tiles += [("Wrong with probability", risk, valid, False), _workers(summary, ended, now)]
    if not ended:
        late, holds = summary["overdue"], summary["waiting"]
        why = f"{'holds' if late == 1 else 'hold'} back {count(holds)}" if holds else "leases ran out"
        tiles.append(("Overdue", count(late), _attention(why) if late else "no lease ran out", late > 0))
    late = summary["late"]
    tiles += [
        ("Late", count(late), "kept, not counted" if late else "all in time", False),
        _lost(view, summary),
    ]
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
    silent = [worker["name"] for worker in workers if _has_passed(worker["until"], now)]
    said = f"{listed(silent) if len(silent) < 3 else count(len(silent))} silent"
    value = [count(busy), tag("small", f" of {count(len(workers))} measuring")]
    return "Workers", value, _attention(said) if silent else None, bool(silent)


def _has_passed(until: str | None, now: float) -> bool:
    return until is not None and datetime.fromisoformat(until).timestamp() <= now


def _lost(view: View, summary: Words) -> tuple[str, Part, Part, bool]:
    """Trials without a result; those that count by what was declared are not missing."""
    failed, expired = summary["failed"], summary["expired"]
    worst = max(summary["arms"], key=lambda arm: arm["failed"])
    of = (
        f" ({count(worst['failed'])} on {worst['name']})"
        if failed > worst["failed"]
        else f" ({worst['name']})"
    )
    parts = [f"{count(failed)} failed{of}"] * bool(failed) + [f"{count(expired)} ran out"] * bool(expired)
    counts = all(o.if_failed is not None and o.if_expired is not None for o in view.objectives)
    name = "Without a result" if counts and parts else "Missing"
    text = f"{', '.join(parts)}{'; they count as declared' if counts else ''}" if parts else "none failed"
    strained = worst["failed"] >= STRAINED[0] and worst["failed"] > STRAINED[1] * worst["results"]
    return name, count(failed + expired), _attention(text) if strained else text, strained


# --- what happened


def _turns(
    view: View, summary: Words, explanation: Explanation, course: "Course | None"
) -> list[dict[str, Any]]:
    """Who left, and what was settled: nobody did that, so no event says it."""
    times = {arm["name"]: arm["left"]["at"] for arm in summary["arms"] if arm["left"]}
    rows = [
        {"key": f"left {story.arm}", "at": times[story.arm], "words": draw.told(story)}
        for story in explanation.arms
        if times.get(story.arm)
    ]
    for (before, _), (after, at) in pairwise(course.phases if course else ()):
        if at and before.position < after.position:
            names = [
                tag("b", view.objectives[view.columns[phase.position]].name) for phase in (before, after)
            ]
            words = join([names[0], " settled; ", names[1], " is next"])
            rows.append({"key": f"settled {before.position} {at}", "at": at, "words": words})
    return rows
