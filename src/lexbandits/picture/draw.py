"""The figures of a study as fragments of HTML: what decides, who left when, what is likely and certain."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from lexbandits.picture.explain import Explanation, Story
from lexbandits.picture.reasons import AT
from lexbandits.picture.svg import (
    ROW,
    Axis,
    Part,
    across,
    box,
    dot,
    drawing,
    join,
    line,
    result_ticks,
    results_text,
    table_of,
    tag,
    upright,
    whisker,
    words,
)
from lexbandits.picture.view import View
from lexbandits.picture.words import about, amount, count, percent, value
from lexbandits.study.record.answers import Answer

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast

MOST_WINNERS = 6


class Figure(NamedTuple):
    """A drawing with its title and how to read it."""

    title: str
    hint: str
    body: Markup

    def panel(self, key: str) -> Markup:
        """As the page has it."""
        title = tag("h2", self.title, id=f"{key}-title")
        hint = self.hint and tag("p", self.hint, kind="hint")
        return tag(
            "section",
            tag("header", title, hint),
            tag("div", self.body, kind="pad"),
            kind="panel",
            data_key=key,
            aria_labelledby=f"{key}-title",
        )


# --- the state, in a shape and a word


def pill(view: View) -> Markup:
    """The state of a study."""
    look = {"measuring": "on", "paused": "paused"}.get(view.state, "ended")
    kind = f"pill {'ok' if view.answer.certified else look}"
    return tag("span", called(view.state, view.answer), kind=kind)


def called(state: str, answer: Answer) -> str:
    """The state of a study in few words."""
    if answer.certified:
        return "Certified, with flags" if answer.flags else "Certified"
    return "Ended, no certificate" if state == "finished" else state.capitalize()


# --- what decides


def reference(view: View, position: int) -> int:
    """The arm that others are compared with: who removed most, else a proven answer, else the best mean."""
    column = view.columns[position]
    entered = view.entered(position)
    if view.is_proven and not view.settled_by_rule(position):
        return view.leader
    rivals = [e.rival for e in view.eliminations.values() if e.objective == column and e.rival >= 0]
    if rivals:
        return max(entered, key=lambda arm: (rivals.count(arm), -arm))
    sign = view.objectives[column].sign
    return max(entered, key=lambda arm: (sign * view.mean(arm, column), -arm))


def deciding(view: View, position: int) -> Figure:
    """Every arm that reached an objective against the limit, or against one of them."""
    return _to_limit(view, position) if view.is_target(view.columns[position]) else _apart(view, position)


def _heading(view: View, position: int) -> str:
    being = view.stage(position) == "being settled"
    if view.state == "finished":
        return "What decided" if not being else "What is still open"
    return (
        "What decides now"
        if being and view.state == "measuring"
        else "What is still open"
        if being
        else "What decided"
    )


def _apart(view: View, position: int) -> Figure:
    column = view.columns[position]
    objective, best = view.objectives[column], reference(view, position)
    slack = objective.tolerance_in_unit
    reach = slack + objective.resolution_in_unit
    others = [arm for arm in view.by_standing if arm in view.entered(position) and arm != best]
    found = {arm: view.lead(arm, best, column) for arm in others}
    ends = [end for d in found.values() for end in (d.mean, d.low, d.high)]
    axis = Axis([-1.2 * reach, 1.2 * reach, *ends])
    middle, name = ROW / 2, view.arms[best]
    ground = [
        box(axis, -slack, slack, 0, ROW, "band"),
        [upright(axis(end), 0, ROW, "limit dash") for end in (-reach, reach)],
        upright(axis(0), 0, ROW, "zero"),
        across(middle, "grid"),
    ]
    square = tag(
        "rect", kind="lead", x=axis(0), y=middle - 4.5, width=9, height=9, transform="translate(-4.5 0)"
    )
    rows: list[tuple[str, str, str, Part, Part]] = [
        (
            name,
            "first" if best == view.leader else "",
            f"{name}: the others are compared with it",
            [ground, square],
            "reference",
        )
    ]
    for arm in others:
        d, (word, out) = found[arm], _verdict(view, arm, best, column)
        shown = f"{'+' if d.mean > 0 else ''}{value(objective, d.mean)}" if d.results else "–"
        marks = whisker(axis, middle, d.mean, d.low, d.high, "out" if out else "in")
        look = "gone" if out else "first" if arm == view.leader else ""
        label = f"{view.arms[arm]} against {name}: {shown}, {word}"
        rows.append(
            (view.arms[arm], look, label, [ground, marks], [tag("span", shown, kind="v"), f" {word}"])
        )
    heads = tag(
        "div",
        tag("span", "← worse", tag("span", f" than {name}", kind="than")),
        tag("span", "better →"),
        kind="ends",
    )
    hint = (
        f"Differences on the same items, with intervals {AT}. An arm is out once its whole interval is worse "
        f"by more than {amount(objective, slack)} (shaded: does not matter); it ties once all of it lies "
        f"between the dashed lines (with the resolution, {amount(objective, reach)})."
    )
    title = f"{_heading(view, position)}: {objective.name}, against {name}"
    body = table_of(heads, rows, axis.scale(signed=True), "Difference, and where it stands", _longest(view))
    return Figure(title, hint, body)


def _verdict(view: View, arm: int, best: int, column: int) -> tuple[str, bool]:
    """A word, and whether the arm is out."""
    left = view.eliminations.get(arm)
    if left is not None and left.objective == column:
        return "out" if left.rival in (best, -1) else f"out by {view.arms[left.rival]}", True
    if view.behind.get(arm) == column:
        return "behind", True
    if view.close(arm, best, column):
        return "ties", False
    if view.not_worse(best, arm, column):
        return "not better", False
    return f"open{_parts(view, arm, column)}", False


def _parts(view: View, arm: int, column: int) -> str:
    """How much of the evidence is there."""
    rows = [
        row for row in view.seen if row.rival == arm and row.objective == column and row.verdict == "open"
    ]
    known = [row.parts for row in rows if row.parts is not None and math.isfinite(row.parts)]
    return f": {math.floor(10 * min(max(known[0], 0.0), 0.99))} of 10 parts of the evidence" if known else ""


def _to_limit(view: View, position: int) -> Figure:
    column = view.columns[position]
    objective = view.objectives[column]
    limit, at_most = objective.target or 0.0, objective.at_most is not None
    far = limit - objective.sign * objective.resolution_in_unit
    offered = [
        arm for arm in view.by_standing if view.standing(arm) not in ("withdrawn", "could not be measured")
    ]
    bounds = {arm: view.interval(arm, column) for arm in offered}
    axis = Axis([limit, far, *(e for arm in offered for e in (*bounds[arm], view.mean(arm, column)))])
    within = (-math.inf, limit) if at_most else (limit, math.inf)
    ground = [
        box(axis, *within, 0, ROW, "band"),
        upright(axis(limit), 0, ROW, "limit"),
        upright(axis(far), 0, ROW, "limit dash"),
        across(ROW / 2, "grid"),
    ]
    rows: list[tuple[str, str, str, Part, Part]] = []
    for arm in offered:
        mean, gone = view.mean(arm, column), view.stops(arm) or view.misses(arm, column)
        word = "out" if gone else "meets it" if view.meets(arm, column) else "open"
        shown = value(objective, mean)
        marks = whisker(axis, ROW / 2, mean, *bounds[arm], "out" if gone else "in")
        look = "gone" if gone else "first" if arm == view.leader else ""
        rows.append(
            (
                view.arms[arm],
                look,
                f"{view.arms[arm]}: {shown}, {word}",
                [ground, marks],
                [tag("span", shown, kind="v"), f" {word}"],
            )
        )
    sides = ("within the limit", "beyond it") if at_most else ("beyond it", "within the limit")
    heads = tag("div", tag("span", f"← {sides[0]}"), tag("span", f"{sides[1]} →"), kind="ends")
    above, below = ("above", "below") if at_most else ("below", "above")
    hint = (
        f"An arm leaves once its whole interval is {above} {amount(objective, limit)}. It stays once all of "
        f"it is {below} the dashed line (limit and resolution, {amount(objective, far)})."
    )
    title = f"{_heading(view, position)}: {objective.name}, against the limit"
    return Figure(
        title, hint, table_of(heads, rows, axis.scale(), "Mean, and where it stands", _longest(view))
    )


def _longest(view: View) -> int:
    return max(map(len, view.arms))


# --- who left when


class Phase(NamedTuple):
    """The objective at `position` was being settled from so many results of the study to so many."""

    position: int
    since: int
    until: int


def phases(view: View) -> list[Phase]:
    """Which objective was being settled when."""
    found: list[Phase] = []
    last = len(view.columns) - 1
    for before, after in pairwise(view.history()):
        position = last if before.objective > last else view.columns.index(before.objective)
        if found and found[-1].position == position:
            found[-1] = found[-1]._replace(until=after.results)
        elif after.results > before.results:
            found.append(Phase(position, before.results, after.results))
    return found


def course(view: View, spans: list[Phase], coming: "Forecast | None" = None) -> Figure:
    """A line per arm over the results counted, until it left; on to the end that is likely."""
    now = max(1, view.folded)
    spans = [*spans[:-1], *(span._replace(until=now) for span in spans[-1:])]
    end = None if coming is None or view.state == "finished" else coming.results
    last = now + (0 if end is None else min(end.high, 20 * now))
    axis = Axis((0, last), before=0.0, after=0.03)
    ground: list[Part] = [
        box(axis, span.since, span.until, 0, ROW, "phase odd" if k % 2 else "phase")
        for k, span in enumerate(spans)
    ]
    if end is not None:
        ground += [
            box(axis, now + end.low, now + end.high, 0, ROW, "band pale"),
            upright(axis(now + end.median), 0, ROW, "limit"),
        ]
    ground.append(upright(axis(now), 0, ROW, "zero"))
    rows = [_lane(view, arm, axis, now, ground, end and now + end.median) for arm in view.by_standing]
    hint = "Results counted, of all arms together, " + (
        "until the end." if view.state == "finished" else "from the first to now."
    )
    if end is not None:
        more = f"between {about(end.low)} and {about(end.high)} more"
        hint = f"{hint[:-1]}, and on to the end that is likely. Shaded: {more}."
    word = "" if view.state == "finished" else " now"
    scale = axis.scale(text=results_text(now, word), ticks=result_ticks(axis, last, now))
    body = table_of(
        _names(view, spans, axis, end and now + end.median), rows, scale, "When it left", _longest(view)
    )
    return Figure("Who left when", hint, body)


def _lane(
    view: View, arm: int, axis: Axis, now: int, ground: Part, end: float | None
) -> tuple[str, str, str, Part, Part]:
    name, left, middle = view.arms[arm], view.eliminations.get(arm), ROW / 2
    stays = view.standing(arm) in ("answer", "candidate") and arm not in view.behind
    stop = left.round if left is not None else now
    look = "in" if stays else "out"
    said: Part = None
    if left is not None:
        said = [tag("span", count(stop), kind="v"), f" on {view.objectives[left.objective].name}"]
    elif arm in view.behind:
        said = f"behind on {view.objectives[view.behind[arm]].name}"
    elif not stays:
        said = view.standing(arm)
    elif arm == view.leader and view.results:
        said = view.called
    drawn: list[Part] = [ground, line(axis(0), axis(stop), middle, middle, f"mark {look}")]
    if stays:
        drawn += [
            end is not None and line(axis(stop), axis(end), middle, middle, "mark later dash"),
            dot(axis(stop), middle, "in", ringed=arm == view.leader),
        ]
    else:
        drawn.append(upright(axis(stop), middle - 5, middle + 5, "mark out"))
    label = f"{name}: {'still in' if stays else 'out'} after {count(stop)} results"
    return name, "gone" if not stays else "first" if arm == view.leader else "", label, drawn, said


def _names(view: View, spans: list[Phase], axis: Axis, end: float | None) -> Markup:
    """Above the lines: what was being settled, where there is room for its name."""
    names = [view.objectives[view.columns[span.position]].name for span in spans]
    told = [f"{name} from {count(s.since)} to {count(s.until)}" for name, s in zip(names, spans, strict=True)]
    shown = []
    for name, span in zip(names, spans, strict=True):
        room = axis.share(span.until) - axis.share(span.since)
        if room >= 18:
            text = words("2", 13, f"{span.position + 1} {name}")
            shown.append(tag("svg", text, kind="cut", x=axis(span.since), width=f"{room:.2f}%", height=18))
    likely = end is not None and words(axis(end), 13, "likely end", kind="now", text_anchor="middle")
    label = f"Being settled, in results: {', '.join(told)}" if told else "Results"
    return drawing(18, tag("g", shown, likely, kind="names"), role="img", aria_label=label)


# --- what is likely


def outlook(coming: "Forecast") -> Figure:
    """Who is likely to win, and what wider rules would save."""
    winners = sorted(((s, arm) for arm, s in coming.winners.items() if s), reverse=True)[:MOST_WINNERS]
    bars = [
        tag(
            "tr",
            tag("th", arm, scope="row"),
            tag("td", _bar(share), kind="grow"),
            tag("td", "< 1 %" if share < 0.01 else percent(share), kind="num"),
        )
        for share, arm in winners
    ]
    rows = [
        tag(
            "tr",
            tag(
                "th",
                f"{row.setting} of {row.objective or 'the study'} {row.now:g} → {row.then:g}",
                scope="row",
            ),
            tag("td", row.effect, kind="num"),
        )
        for row in coming.relax
    ]
    sides = [
        tag("div", tag("h3", "Who is likely to win"), tag("table", tag("tbody", bars), kind="mini")),
        rows
        and tag("div", tag("h3", "What doubling would do"), tag("table", tag("tbody", rows), kind="mini")),
    ]
    hint = f"From {count(coming.runs)} runs of the rest of the study, drawn from what was measured."
    return Figure("Forecast", hint, join([tag("p", coming.sentence), tag("div", sides, kind="fc")]))


def _bar(share: float) -> Markup:
    full = tag("rect", kind="trough", width="100%", height=8, rx=1)
    return drawing(
        8, full, tag("rect", kind="fillbar", width=f"{100 * share:.1f}%", height=8, rx=1), aria_hidden="true"
    )


# --- what is certain


def claimed(view: View, explanation: Explanation) -> tuple[str, list[str]]:
    """A title and paragraphs: what the answer may give up, or before the end what is known so far."""
    sure = [c.sentence for c in explanation.claims if c.worst is not None]
    rest = [c.sentence for c in explanation.claims if c.worst is None]
    if not view.answer.certified:
        return "No certificate", [f"What is known, {AT}: {' '.join(sure + rest)}"]
    how = f"With probability at least {percent(1 - view.answer.delta)}"
    always = "over everything the study looked at and whenever it looked"
    lines = [f"{how}, {always}: {' '.join(sure)}", " ".join(rest)]
    return f"Certificate at δ = {percent(view.answer.delta)}", [text for text in lines if text]


def certificate(view: View, explanation: Explanation) -> Figure:
    """The same, drawn."""
    title, lines = claimed(view, explanation)
    return Figure(title, "", join(tag("p", text) for text in lines))


def stories(explanation: Explanation) -> Figure:
    """Every arm in one sentence."""
    rows = [
        tag(
            "li",
            told(story),
            kind=None if story.standing in ("answer", "candidate") else "o",
            data_key=story.arm,
        )
        for story in explanation.arms
    ]
    return Figure("Every arm, in one sentence", "", tag("ul", rows, kind="arms"))


def told(story: Story) -> Markup:
    """The sentence of an arm, with its name set off."""
    return join([tag("b", story.arm), tag("span", story.sentence.removeprefix(story.arm))])
