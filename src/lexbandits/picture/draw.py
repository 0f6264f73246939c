"""The figures of a study as fragments of HTML: what decides, who left when, what is likely and certain."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from lexbandits.picture import exits
from lexbandits.picture.ladder import ENDS, Shown
from lexbandits.picture.shown import Against, Arm, Comparison, Rung, Story
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
    table_of,
    tag,
    upright,
    whisker,
)
from lexbandits.study.objective import written
from lexbandits.study.words import about, capital, count, percent

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast
    from lexbandits.picture.picture import Picture
    from lexbandits.picture.view import View

MOST_WINNERS = 6
MIDDLE = ROW / 2
Row = tuple[str, str, str, Part, Part]  # name, look, label, drawing, words


class Figure(NamedTuple):
    """A drawing with its title and how to read it."""

    title: str
    hint: str
    body: Markup

    @property
    def parts(self) -> tuple[str, Part, Markup]:
        """As a report has it: a title, a hint, the figure."""
        return self.title, self.hint and tag("p", self.hint, kind="hint"), self.body

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


def pill(picture: Shown) -> Markup:
    """The state of a study, in a shape and a word."""
    look = {"measuring": "on", "paused": "paused"}.get(picture.state, "ended")
    return tag("span", picture.pill, kind=f"pill {'ok' if picture.answer.certified else look}")


def headline(picture: Shown) -> Part:
    """Who, is it certain, what is being settled; with the answer set off."""
    name = picture.answer.arm
    before, who, after = picture.headline.partition(f"{name} is ")
    return [before, who and [tag("b", name), " is "], after]


# --- what decides


def deciding(picture: Shown, rung: Rung) -> Figure | None:
    """Every arm that reached an objective against the limit, or against one of them; None: too little."""
    if rung.limit is not None and picture.is_limit(rung.name):
        return _to_limit(picture, rung)
    for found in picture.comparisons:
        if found.objective == rung.name:
            return compared(picture, found)
    return None


def compared(picture: Shown, found: Comparison) -> Figure:
    """Every arm that reached an objective against one of them."""
    (rung,) = (rung for rung in picture.objectives if rung.name == found.objective)
    tie, margin, best = rung.tie, rung.margin, found.reference
    ends = [end for row in found.rows for end in (row.mean, row.low, row.high)]
    axis = Axis([-1.2 * margin, 1.2 * margin, *ends])
    ground = [
        box(axis, -tie, tie, 0, ROW, "band"),
        [upright(axis(end), 0, ROW, "limit dash") for end in (-margin, margin)],
        upright(axis(0), 0, ROW, "zero"),
        across(MIDDLE, "grid"),
    ]
    square = {"x": axis(0), "y": MIDDLE - 4.5, "width": 9, "height": 9, "transform": "translate(-4.5 0)"}
    lead = [ground, tag("rect", kind="lead", **square)]
    first: Row = (best, "first", f"{best}: the others are compared with it", lead, "reference")
    rows = [first, *(_against(picture, row, found, axis, ground) for row in found.rows)]
    worse = tag("span", "← worse", tag("span", f" than {best}", kind="than"))
    heads = tag("div", worse, tag("span", "better →"), kind="ends")
    hint = (
        f"Differences on the same items, with intervals {picture.at}. An arm is out once its whole interval "
        f"is worse by more than {written(tie, rung.unit)} (shaded: arms this close tie); it is as good "
        f"once all of it lies between the dashed lines (the margin, {written(margin, rung.unit)})."
    )
    if picture.answer.certified and rung.state == "enough":
        hint += " For the answer it is enough that no interval reaches beyond the right one."
    body = table_of(heads, rows, axis.scale(signed=True), "Difference, and where it stands")
    return Figure(f"{_decides(picture, rung)}: {found.objective}, against {best}", hint, body)


def _decides(picture: Shown, rung: Rung) -> str:
    if rung.state in ("settling", "not settled"):
        return "What decides now" if picture.state == "measuring" else "What is still open"
    decided = any(found.decided for found in picture.comparisons if found.objective == rung.name)
    return "What decided" if decided else "Differences"


def _against(picture: Shown, row: Against, found: Comparison, axis: Axis, ground: Part) -> Row:
    out = row.verdict in ("out", "behind")
    said = f"out by {row.by}" if row.by else row.verdict
    if row.verdict == "open":
        said = picture.open_by(row.arm, found.objective)
    marks = whisker(axis, MIDDLE, "out" if out else "in", row.mean, row.low, row.high)
    look = "gone" if out else "first" if row.arm == picture.answer.arm else ""
    label = f"{row.arm} against {found.reference}: {row.shown}, {said}"
    return row.arm, look, label, [ground, marks], [tag("span", row.shown, kind="v"), f" {said}"]


def _to_limit(picture: Shown, rung: Rung) -> Figure:
    limit, at_most = rung.limit or 0.0, rung.direction == "minimize"
    inner = limit - rung.slack if at_most else limit + rung.slack
    arms = [arm for arm in picture.arms if arm.exit.code not in exits.GONE]
    cells = {arm.name: arm.objectives[rung.name] for arm in arms}
    axis = Axis([limit, inner, *(e for c in cells.values() for e in (c.mean, c.low, c.high))])
    within = (-math.inf, limit) if at_most else (limit, math.inf)
    ground = [
        box(axis, *within, 0, ROW, "band"),
        upright(axis(limit), 0, ROW, "limit"),
        upright(axis(inner), 0, ROW, "limit dash"),
        across(MIDDLE, "grid"),
    ]
    rows: list[Row] = []
    for arm in arms:
        cell, out = cells[arm.name], arm.exit.code in ENDS
        meets = picture.meets(arm.name, rung.name)
        said = "out" if out else "meets it" if meets else picture.open_by(arm.name, rung.name)
        marks = whisker(axis, MIDDLE, "out" if out else "in", cell.mean, cell.low, cell.high)
        look = "gone" if out else "first" if arm.exit.code == exits.ANSWER else ""
        words_ = [tag("span", cell.shown, kind="v"), f" {said}"]
        rows.append((arm.name, look, f"{arm.name}: {cell.shown}, {said}", [ground, marks], words_))
    sides = ("within the limit", "beyond it") if at_most else ("beyond it", "within the limit")
    heads = tag("div", tag("span", f"← {sides[0]}"), tag("span", f"{sides[1]} →"), kind="ends")
    below = "below" if at_most else "above"
    hint = (
        f"An arm meets the limit once its whole interval is {below} {written(limit, rung.unit)}. None with a "
        f"mean {below} the dashed line (inside by the slack, {written(inner, rung.unit)}) is ever excluded."
    )
    title = f"{_decides(picture, rung)}: {rung.name}, against the limit"
    return Figure(title, hint, table_of(heads, rows, axis.scale(), "Mean, and where it stands"))


# --- who left when


class Phase(NamedTuple):
    """An objective was being settled from so many results of the study to so many."""

    objective: str
    since: int
    until: int


def phases(view: "View") -> list[Phase]:
    """Which objective was being settled when; takes a replay."""
    from lexbandits.picture.history import history_of

    found: list[Phase] = []
    last = len(view.columns) - 1
    for before, after in pairwise(history_of(view.fold)):
        position = last if before.objective > last else view.columns.index(before.objective)
        name = view.objectives[view.columns[position]].name
        if found and found[-1].objective == name:
            found[-1] = found[-1]._replace(until=after.results)
        elif after.results > before.results:
            found.append(Phase(name, before.results, after.results))
    return found


def course(picture: "Picture", spans: list[Phase], coming: "Forecast | None" = None) -> Figure:
    """A line per arm over the results counted, until it left; on to the end that is likely."""
    now, ended = max(1, picture.view.folded), picture.state == "finished"
    spans = [*spans[:-1], *(span._replace(until=now) for span in spans[-1:])]
    end = None if coming is None or ended else coming.results
    likely = None if end is None else now + end.median
    last = now + (0 if end is None else min(end.high, 20 * now))
    axis = Axis((0, last), before=0.0, after=0.03)
    ground: list[Part] = [
        box(axis, span.since, span.until, 0, ROW, "phase odd" if k % 2 else "phase")
        for k, span in enumerate(spans)
    ]
    hint = f"Results counted, of all arms together, {'until the end' if ended else 'from the first to now'}"
    if end is not None:
        shade = box(axis, now + end.low, now + end.high, 0, ROW, "band pale")
        ground += [shade, upright(axis(now + end.median), 0, ROW, "limit")]
        more = f"between {about(end.low)} and {about(end.high)} more"
        hint += f", and on to the end that is likely. Shaded: {more}"
    ground.append(upright(axis(now), 0, ROW, "zero"))
    rows = [_lane(arm, axis, now, ground, likely) for arm in picture.arms]
    room = 0.16 if ended else 0.23  # around the number of now, where names leave the axis 200 pixels
    ticks = sorted({*(t for t in axis.ticks if t <= last and abs(t - now) > room * last), now})
    here = [] if ended else [tag("tspan", " now", kind="nr")]
    scale = axis.scale(ticks=ticks, kept=now, text=lambda t: [count(t), t == now and here])
    body = table_of(_names(picture, spans, axis, likely), rows, scale, "When it left")
    return Figure("Who left when", f"{hint}.", body)


def _lane(arm: Arm, axis: Axis, now: int, ground: Part, end: float | None) -> Row:
    stays = arm.exit.code not in (*ENDS, *exits.GONE)
    stop = now if arm.exit.after is None else arm.exit.after
    said: Part = arm.standing if arm.exit.code == exits.ANSWER or not stays else None
    if arm.exit.after is not None:
        said = [tag("span", count(stop), kind="v"), f" on {arm.exit.objective}"]
    elif arm.exit.code in ENDS:
        said = f"behind on {arm.exit.objective}"
    drawn: list[Part] = [
        ground,
        line(axis(0), axis(stop), MIDDLE, MIDDLE, f"mark {'in' if stays else 'out'}"),
    ]
    if stays:
        drawn += [
            end is not None and line(axis(stop), axis(end), MIDDLE, MIDDLE, "mark later dash"),
            dot(axis(stop), MIDDLE, "in", ringed=arm.exit.code == exits.ANSWER),
        ]
    else:
        drawn.append(upright(axis(stop), MIDDLE - 5, MIDDLE + 5, "mark out"))
    label = f"{arm.name}: {'still in' if stays else 'out'} after {count(stop)} results"
    look = "gone" if not stays else "first" if arm.exit.code == exits.ANSWER else ""
    return arm.name, look, label, drawn, said


def _names(picture: "Picture", spans: list[Phase], axis: Axis, end: float | None) -> Markup:
    """Above the lines: what was being settled, where there is room for its name."""
    numbers = {rung.name: k + 1 for k, rung in enumerate(picture.objectives)}
    told = [f"{span.objective} from {count(span.since)} to {count(span.until)}" for span in spans]
    shown = []
    for span in spans:
        room = axis.share(span.until) - axis.share(span.since)
        if room >= 18:
            place = f"left:{axis(span.since)};width:{room:.2f}%"
            shown.append(tag("span", f"{numbers[span.objective]} {span.objective}", style=place))
    likely = end is not None and tag("span", "likely end", kind="now", style=f"left:{axis(end)}")
    label = f"Being settled, in results: {', '.join(told)}" if told else "Results"
    return tag("div", shown, likely, kind="names", role="img", aria_label=label)


# --- what is likely


def outlook(coming: "Forecast") -> Figure:
    """Who is likely to win, and what wider rules would save."""
    winners = sorted(((share, arm) for arm, share in coming.winners.items() if share), reverse=True)
    bars = [
        tag(
            "tr",
            tag("th", arm, scope="row"),
            tag("td", _bar(share), kind="grow"),
            tag("td", "< 1 %" if share < 0.01 else percent(share), kind="num"),
        )
        for share, arm in winners[:MOST_WINNERS]
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
        if row.shows
    ]
    others = "The others: no difference that shows." if rows else "Nothing that shows."
    relaxed = [
        tag("h3", "What doubling would do"),
        rows and tag("table", tag("tbody", rows), kind="mini"),
        len(rows) < len(coming.relax) and tag("p", others, kind="hint"),
    ]
    sides = [
        tag("div", tag("h3", "Who is likely to win"), tag("table", tag("tbody", bars), kind="mini")),
        bool(coming.relax) and tag("div", relaxed),
    ]
    hint = f"From {count(coming.runs)} runs of the rest of the study, drawn from what was measured."
    return Figure("Forecast", hint, join([tag("p", coming.sentence), tag("div", sides, kind="fc")]))


def _bar(share: float) -> Markup:
    full = tag("rect", kind="trough", width="100%", height=8, rx=1)
    part = tag("rect", kind="fillbar", width=f"{100 * share:.1f}%", height=8, rx=1)
    return drawing(8, full, part, aria_hidden="true")


# --- what is certain


def claimed(picture: "Picture") -> tuple[str, list[str]]:
    """A title and paragraphs: what the answer may give up, or before the end what is known so far."""
    sure = [claim.sentence for claim in picture.claims if claim.worst is not None]
    rest = [claim.sentence for claim in picture.claims if claim.worst is None]
    answer = picture.answer
    if not answer.certified:
        return "No certificate", [f"What is known, {picture.at}: {' '.join(sure + rest)}"]
    if answer.about == "items":
        return _claimed_on_a_list(picture, sure, rest)
    how = f"With probability at least {percent(1 - answer.delta)}"
    always = "over everything the study looked at and whenever it looked"
    lines = [f"{how}, {always}: {' '.join(sure)}", " ".join(rest)]
    return f"Certificate at δ = {percent(answer.delta)}", [text for text in lines if text]


def _claimed_on_a_list(picture: "Picture", sure: list[str], rest: list[str]) -> tuple[str, list[str]]:
    from lexbandits.picture.stories import NO_CHANCE, over_what
    from lexbandits.study.record.said import on_these

    answer, view = picture.answer, picture.view
    where = capital(on_these(answer))
    if answer.certain:
        title, first = "Certificate without chance", f"{where}: {' '.join(sure)} {NO_CHANCE}"
    else:
        title = f"Certificate at δ = {percent(answer.delta)}"
        first = f"{where}: with probability at least {percent(1 - answer.delta)} {over_what(view)}: "
        first += " ".join(sure)
    values = (
        "This is about the values this study got or would have got, one per arm and item: what one full run "
        "would have said, not the average of many."
    )
    if view.spec.repeats > 1:
        values = values.replace("one per arm and item", f"{view.spec.repeats} per arm and item")
    return title, [text for text in (first, " ".join(rest), values) if text]


def certificate(picture: "Picture") -> Figure:
    """The same, drawn."""
    title, lines = claimed(picture)
    return Figure(title, "", join(tag("p", text) for text in lines))


def stories(picture: Shown) -> Figure:
    """Every arm in one sentence."""
    gone = {arm.name for arm in picture.arms if arm.state not in ("answer", "candidate")}
    rows = [
        tag("li", told(story), kind="o" if story.arm in gone else None, data_key=story.arm)
        for story in picture.stories
    ]
    return Figure("Every arm, in one sentence", "", tag("ul", rows, kind="arms"))


def told(story: Story) -> Markup:
    """The sentence of an arm, with its name set off."""
    return join([tag("b", story.arm), tag("span", story.rest)])
