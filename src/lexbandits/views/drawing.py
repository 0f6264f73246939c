"""The figures of a study as HTML: what decides, who left when, what is likely, what is certified."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from lexbandits.outcomes import ArmOutcome, ClaimVerdict, ObjectiveStage
from lexbandits.study.number_format import about, count, percent
from lexbandits.study.objective import Direction, written
from lexbandits.study.states import StudyState
from lexbandits.views.arms_table import AnyView, axis_of, band_of, ends_at, inner_of, stays
from lexbandits.views.svg import (
    ROW,
    Axis,
    Chart,
    Part,
    Row,
    across,
    box,
    bracket,
    dot,
    drawing,
    join,
    line,
    shortened,
    tag,
    upright,
    whisker,
    words,
)
from lexbandits.views.view_parts import (
    BASES,
    BASIS_NOTES,
    LABELS,
    Against,
    Arm,
    ArmExplanation,
    Basis,
    Comparison,
    ObjectiveRow,
)

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast
    from lexbandits.views.estimates import Estimates
    from lexbandits.views.study_view import StudyView

MOST_WINNERS = 6
MIDDLE = ROW / 2


class Figure(NamedTuple):
    """A chart, or text, with its title and how to read it."""

    title: str
    hint: str
    content: Chart | Markup

    @property
    def body(self) -> Markup:
        """The content as HTML."""
        return self.content.table() if isinstance(self.content, Chart) else self.content

    @property
    def charts(self) -> tuple[Chart, ...]:
        """The content, if it is drawn on an axis."""
        return (self.content,) if isinstance(self.content, Chart) else ()

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


def badge(view: AnyView) -> Markup:
    """The state of a study, in a shape and a word."""
    look = {StudyState.MEASURING: "on", StudyState.PAUSED: "paused"}.get(view.state, "ended")
    return tag("span", view.badge, kind=f"badge {'ok' if view.answer.certified else look}")


def headline(view: AnyView) -> Part:
    """Return the headline with the answer set off."""
    for says in (" wins", " is "):
        before, named, after = view.headline.partition(f"{view.answer.arm}{says}")
        if named:
            return [before, tag("b", view.answer.arm), says, after]
    return view.headline


# --- what decides


def deciding(view: AnyView, objective: ObjectiveRow) -> Figure | None:
    """Every arm that reached an objective against the limit, or against one of them; None: too little."""
    if objective.limit is not None and view.is_limit(objective.name):
        return _to_limit(view, objective)
    for found in view.comparisons:
        if found.objective == objective.name:
            return compared(view, found)
    return None


def compared(view: AnyView, found: Comparison) -> Figure:
    """Every arm that reached an objective against one of them."""
    (objective,) = (objective for objective in view.objectives if objective.name == found.objective)
    tie, margin, best = objective.tie, objective.margin, found.reference
    ends = [end for row in found.rows for end in (row.mean, row.low, row.high)]
    axis = Axis([-1.2 * margin, 1.2 * margin, *ends])

    def ground(height: float) -> Part:
        return [
            box(axis, -tie, tie, 0, height, "band"),
            [upright(axis(end), 0, height, "limit dash") for end in (-margin, margin)],
            upright(axis(0), 0, height, "zero"),
        ]

    square = {"x": axis(0), "y": MIDDLE - 4.5, "width": 9, "height": 9, "transform": "translate(-4.5 0)"}
    lead = [across(MIDDLE, "grid"), tag("rect", kind="lead", **square)]
    first = Row(best, "first", f"{best}: the others are compared with it", lead, more="reference")
    rows = [first, *(_against(view, row, found, axis) for row in found.rows)]
    heads = _ends("← worse", "better →", f" than {best}")
    hint = (
        f"Differences on {view.common}: mean and an ordinary 95 % interval, a picture and not the guarantee. "
        f"Arms closer than {written(_neat(tie), objective.unit)} tie (shaded). Dashed lines are the margin, "
        f"{written(_neat(margin), objective.unit)}. Brackets are certified bounds."
    )
    if view.always is not None:
        hint += f" Thin dotted lines hold at all times.{_notes(row.basis for row in found.rows)}"
    said = "Difference, and where it stands"
    chart = Chart(rows, axis.scale(signed=True), said, *heads, ground)
    return Figure(f"{_decides(view, objective)}: {found.objective}, against {best}", hint, chart)


def _notes(bases: Iterable[Basis]) -> str:
    """How to read bounds that thin dotted lines do not show."""
    found = set(bases)
    return "".join(f" {note}" for basis, note in BASIS_NOTES.items() if basis in found)


def _ends(left: str, right: str, more: str = "") -> tuple[Markup, Part]:
    """What the two ends of an axis mean, in HTML and in SVG; `more` of the left one if there is room."""
    first = tag("span", left, more and tag("span", more, kind="than"))
    signs = words("0", 12, left + more), words("100%", 12, right, text_anchor="end")
    return tag("div", first, tag("span", right), kind="ends"), signs


def _decides(view: AnyView, objective: ObjectiveRow) -> str:
    if objective.stage in (ObjectiveStage.SETTLING, ObjectiveStage.NOT_SETTLED):
        return "What decides now" if view.state == StudyState.MEASURING else "What is still open"
    decided = any(found.decided for found in view.comparisons if found.objective == objective.name)
    return "What decided" if decided else "Differences"


def _neat(number: float) -> float:
    """Four digits of a margin that is a share of a mean."""
    return float(f"{number:.4g}")


def _against(view: AnyView, row: Against, found: Comparison, axis: Axis) -> Row:
    out, text = row.verdict in (ClaimVerdict.WORSE, ClaimVerdict.BEATEN), verdict_text(view, row, found)
    ends = (row.mean, row.low, row.high)
    marks = [
        whisker(axis, MIDDLE, "out" if out else "in", *ends, always=(row.always_low, row.always_high)),
        bracket(axis, MIDDLE, row.proven_low, 1),
        bracket(axis, MIDDLE, row.proven_high, -1),
    ]
    look = "gone" if out else "first" if row.arm == view.answer.arm else ""
    label = f"{row.arm} against {found.reference}: {row.shown}, {text}"
    return Row(row.arm, look, label, [across(MIDDLE, "grid"), marks], row.shown, text)


def verdict_text(view: AnyView, row: Against, found: Comparison) -> str:
    """What a comparison shows, in few words."""
    match row.verdict:
        case ClaimVerdict.OPEN:
            of_answer = found.reference == view.answer.arm
            return view.open_by(row.arm, found.objective) if of_answer else LABELS[ArmOutcome.UNDECIDED]
        case ClaimVerdict.BEATEN:
            return f"excluded by {row.by}"
        case ClaimVerdict.WORSE:
            return f"{LABELS[ArmOutcome.EXCLUDED]}{by_what(row.basis)}"
        case ClaimVerdict.TIED:
            return f"{LABELS[ArmOutcome.TIED]}{by_what(row.basis)}"
        case ClaimVerdict.BETTER:
            return "better by more than the tie"
        case ClaimVerdict.NOT_WORSE:
            return "not worse by more than the margin"
    return f"at most the margin better{by_what(row.basis)}"


def by_what(basis: Basis) -> str:
    """What shows a bound, if the interval that holds at all times does not."""
    return "" if basis == Basis.ALWAYS else f", {BASES[basis].removeprefix('proven ').rstrip(':')}"


def _to_limit(view: AnyView, objective: ObjectiveRow) -> Figure | None:
    chart = means(view, objective)
    at_most, unit = objective.direction == Direction.MINIMIZE, objective.unit
    sides = ("within the limit", "beyond it") if at_most else ("beyond it", "within the limit")
    heads, signs = _ends(f"← {sides[0]}", f"{sides[1]} →")
    hint = (
        "Means with ordinary 95 % intervals, a picture and not the guarantee. A bracket at the limit, "
        f"{written(objective.limit or 0.0, unit)}, says that it is certified to be met, or violated. No arm "
        f"with a true mean {'below' if at_most else 'above'} the dashed line "
        f"({written(inner_of(objective), unit)}, inside by the slack) is excluded."
    )
    if view.always is not None:
        cells = [arm.objectives[objective.name] for arm in view.arms if arm.name in objective.entered]
        hint += f" Thin dotted lines hold at all times.{_notes(cell.basis for cell in cells)}"
    title = f"{_decides(view, objective)}: {objective.name}, against the limit"
    return None if chart is None else Figure(title, hint, replace(chart, heads=heads, signs=signs))


def means(view: AnyView, objective: ObjectiveRow, caption: str = "") -> Chart | None:
    """The mean of every arm that reached an objective, and what ties with the best, or meets the limit."""
    axis, band = axis_of(view, objective), band_of(view, objective)
    if axis is None:
        return None

    def ground(height: float) -> Part:
        shade = band and box(axis, *band, 0, height, "band")
        if objective.limit is None:
            return shade
        inner = upright(axis(inner_of(objective)), 0, height, "limit dash")
        return [shade, upright(axis(objective.limit), 0, height, "limit"), inner]

    rows = [_mean(view, arm, objective, axis) for arm in view.arms if arm.name in objective.entered]
    kept = [row for row in rows if row is not None]
    return Chart(kept, axis.scale(), "Mean, and where it lies", ground=ground, caption=caption)


def _mean(view: AnyView, arm: Arm, objective: ObjectiveRow, axis: Axis) -> Row | None:
    cell, inside = arm.objectives[objective.name], stays(arm, objective)
    if cell.mean is None:
        return None
    ends, always = (cell.mean, cell.low, cell.high), (cell.always_low, cell.always_high)
    drawn = whisker(axis, MIDDLE, "in" if inside else "out", *ends, arm.leads, always)
    kind = "first" if arm.leads else "" if inside else "gone"
    if objective.limit is None or not view.is_limit(objective.name):
        marks, more = [across(MIDDLE, "grid"), drawn], cell.range and f"({cell.range})"
        return Row(arm.name, kind, f"{arm.name}: {cell.in_short}", marks, cell.shown, more)
    more = "within" if cell.meets else view.open_by(arm.name, objective.name)
    more = f"{arm.label if ends_at(arm, objective) else more}{by_what(cell.basis)}"
    side = -1 if (objective.direction == Direction.MINIMIZE) == cell.meets else 1
    proven = cell.meets is not None and bracket(axis, MIDDLE, objective.limit, side)
    marks = [across(MIDDLE, "grid"), drawn, proven]
    return Row(arm.name, kind, f"{arm.name}: {cell.shown}, {more}", marks, cell.shown, more)


# --- who left when


class Phase(NamedTuple):
    """An objective was being settled from so many results of the study to so many."""

    objective: str
    since: int
    until: int


def phases(estimates: "Estimates") -> list[Phase]:
    """Which objective was being settled when; takes a replay."""
    from lexbandits.views.history import history_of

    found: list[Phase] = []
    last = len(estimates.columns) - 1
    for before, after in pairwise(history_of(estimates.replay)):
        position = last if before.objective > last else estimates.columns.index(before.objective)
        name = estimates.objectives[estimates.columns[position]].name
        if found and found[-1].objective == name:
            found[-1] = found[-1]._replace(until=after.results)
        elif after.results > before.results:
            found.append(Phase(name, before.results, after.results))
    return found


def course(view: "StudyView", spans: list[Phase], coming: "Forecast | None" = None) -> Figure:
    """A line per arm over the results counted, until it left; on to the end that is likely."""
    now, ended = max(1, view.estimates.folded), view.state == StudyState.FINISHED
    spans = [*spans[:-1], *(span._replace(until=now) for span in spans[-1:])]
    end = None if coming is None or ended else coming.results
    likely = None if end is None else now + end.median
    last = now + (0 if end is None else min(end.high, 20 * now))
    axis = Axis((0, last), before=0.0, after=0.03)
    hint = f"Trials counted, of all arms together, {'until the end' if ended else 'from the first to now'}"
    if end is not None:
        more = f"between {about(end.low)} and {about(end.high)} more"
        hint += f", and on to the end that is likely. Shaded: {more}"

    def ground(height: float) -> Part:
        return [
            [
                box(axis, span.since, span.until, 0, height, "phase odd" if k % 2 else "phase")
                for k, span in enumerate(spans)
            ],
            end and box(axis, now + end.low, now + end.high, 0, height, "band pale"),
            end and upright(axis(now + end.median), 0, height, "limit"),
            upright(axis(now), 0, height, "zero"),
        ]

    rows = [_lane(arm, axis, now, likely) for arm in view.arms]
    room = 0.16 if ended else 0.23  # around the number of now, where names leave the axis 200 pixels
    ticks = sorted({*(t for t in axis.ticks if t <= last and abs(t - now) > room * last), now})
    here = [] if ended else [tag("tspan", " now", kind="nr")]
    scale = axis.scale(ticks=ticks, kept=now, text=lambda t: [count(t), t == now and here])
    heads = _names(view, spans, axis, likely)
    return Figure("Who left when", f"{hint}.", Chart(rows, scale, "When it left", *heads, ground))


def _lane(arm: Arm, axis: Axis, now: int, end: float | None) -> Row:
    decision = arm.decision
    stays = not decision.is_out and not decision.is_gone
    stop = now if decision.after is None else decision.after
    value, text = "", "" if decision.outcome is ArmOutcome.UNDECIDED else arm.label
    if decision.after is not None:
        value, text = count(stop), f"on {decision.objective}"
    elif decision.is_out:
        text = f"{arm.label} on {decision.objective}"
    drawn: list[Part] = [line(axis(0), axis(stop), MIDDLE, MIDDLE, f"mark {'in' if stays else 'out'}")]
    if stays:
        drawn += [
            end is not None and line(axis(stop), axis(end), MIDDLE, MIDDLE, "mark later dash"),
            dot(axis(stop), MIDDLE, "in", ringed=arm.leads),
        ]
    else:
        drawn.append(upright(axis(stop), MIDDLE - 5, MIDDLE + 5, "mark out"))
    label = f"{arm.name}: {'still in' if stays else arm.label} after {count(stop)} trials"
    look = "gone" if not stays else "first" if arm.leads else ""
    return Row(arm.name, look, label, drawn, value, text)


def _names(view: "StudyView", spans: list[Phase], axis: Axis, end: float | None) -> tuple[Markup, Part]:
    """Above the lines: what was being settled, where there is room for its name; in HTML and in SVG."""
    numbers = {objective.name: k + 1 for k, objective in enumerate(view.objectives)}
    told = [f"{span.objective} from {count(span.since)} to {count(span.until)}" for span in spans]
    shown, signs = [], []
    for span in spans:
        room = axis.share(span.until) - axis.share(span.since)
        if room >= 18:
            place = f"left:{axis(span.since)};width:{room:.2f}%"
            name = f"{numbers[span.objective]} {span.objective}"
            shown.append(tag("span", name, style=place))
            signs.append(words(axis(span.since), 12, shortened(name, 0.7 * room)))
    likely = end is not None and tag("span", "likely end", kind="now", style=f"left:{axis(end)}")
    label = f"Being settled, in results: {', '.join(told)}" if told else "Results"
    return tag("div", shown, likely, kind="names", role="img", aria_label=label), signs


# --- what is likely


def outlook(coming: "Forecast") -> Figure:
    """Who is likely to win, and what wider rules would save."""
    winners = sorted(((share, arm) for arm, share in coming.winners.items() if share), reverse=True)
    bars = [
        tag(
            "tr",
            tag("th", arm, scope="row"),
            tag("td", drawing(8, bar(share), aria_hidden="true"), kind="grow"),
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
    return Figure(
        "Forecast",
        hint,
        join([tag("p", " ".join([coming.sentence, *coming.notes])), tag("div", sides, kind="fc")]),
    )


def bar(share: float) -> Part:
    """A part of one, 8 pixels high."""
    full = tag("rect", kind="trough", width="100%", height=8, rx=1)
    return [full, tag("rect", kind="fillbar", width=f"{100 * share:.1f}%", height=8, rx=1)]


# --- what is certified


def certificate(view: "StudyView") -> Figure:
    """The same, drawn."""
    title, lines = view.claimed
    return Figure(title, "", join(tag("p", text) for text in lines))


def stories(view: AnyView) -> Figure:
    """Every arm in one sentence."""
    rows = [
        tag("li", told(found), kind=None if found.decision.is_candidate else "o", data_key=found.arm)
        for found in view.explanations
    ]
    return Figure("Every arm, in one sentence", "", tag("ul", rows, kind="arms"))


def told(found: ArmExplanation) -> Markup:
    """The sentence of an arm, with its name set off."""
    return join([tag("b", found.arm), tag("span", found.rest)])
