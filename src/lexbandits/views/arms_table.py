"""The order of objectives as the head of the arms' table: a row stops where its arm left, with the reason."""

import math
from typing import TYPE_CHECKING, TypeAlias

from markupsafe import Markup

from lexbandits.outcomes import ObjectiveStage
from lexbandits.study.core.queries import WITHOUT
from lexbandits.study.number_format import count, many
from lexbandits.study.objective import Direction
from lexbandits.study.states import StudyState
from lexbandits.views.svg import Axis, Part, across, box, drawing, join, line, tag, upright, whisker, words
from lexbandits.views.view_parts import Arm, Cell, ObjectiveRow, legend_of

if TYPE_CHECKING:
    from lexbandits.views.study_view import StudyView
    from lexbandits.views.verdict_view import VerdictView

AnyView: TypeAlias = "StudyView | VerdictView"
Band: TypeAlias = tuple[float, float] | None

LOOKS = {
    ObjectiveStage.SETTLED: "done",
    ObjectiveStage.ENOUGH: "done",
    ObjectiveStage.SETTLING: "now",
    ObjectiveStage.NOT_SETTLED: "now",
    ObjectiveStage.LATER: "later",
    ObjectiveStage.NOT_REACHED: "later",
    ObjectiveStage.NOT_NEEDED: "later",
}
TURN = 62  # percent of a column at which arms leave
MOST_STRANDS = 6  # more arms are one ribbon
MANY = 5  # objectives; more scroll sideways
TALL = 240  # pixels: a band runs on below the row, which cuts it


def arms_table(view: AnyView, *, actions: bool = False) -> Markup:
    """The table and its legend; with `actions` each row has a button."""
    objectives, arms = view.objectives, view.arms
    axes = [(axis_of(view, objective), band_of(view, objective)) for objective in objectives]
    longest = max(len(arm.name) for arm in arms)
    name_width = min(max(126, 8 * longest + 24), max(126, min(420, 1060 - 230 * len(objectives))))
    width = f"min-width:{name_width + 156 + 190 * len(objectives)}px" if len(objectives) > MANY else None
    columns: list[Part] = [
        tag("col", kind="a", style=f"width:{name_width}px"),
        [tag("col") for _ in objectives],
    ]
    columns += [tag("col", kind="n"), actions and tag("col", kind="x")]
    head = [
        _th(tag("span", many(len(arms), "arm"), kind="rt from wide"), "Arm"),
        [_head(view, objective, position) for position, objective in enumerate(objectives)],
        _th(tag("span", _end(view), kind="rt to wide"), "Measured", kind="num"),
        actions and _th(tag("span", "Details", kind="unseen"), kind="act"),
    ]
    scales = [_scale(objective, axis) for objective, (axis, _) in zip(objectives, axes, strict=True)]
    empty = tag("td", role="cell")
    foot = tag("tr", empty, scales, empty, actions and tag("td", role="cell", kind="act"), role="row")
    table = tag(
        "table",
        tag("colgroup", columns),
        tag("thead", tag("tr", head, role="row"), role="rowgroup"),
        tag("tbody", [_row(view, arm, axes, actions) for arm in arms], role="rowgroup"),
        tag("tfoot", foot, role="rowgroup", aria_hidden="true"),
        kind="arms-table",
        role="table",
        style=width,
    )
    sideways = {"tabindex": 0, "role": "region", "aria_label": "Arms and objectives, scrolls sideways"}
    return join([tag("div", table, kind="scroll", **(sideways if width else {})), _legend(view)])


def _th(*inner: Part, kind: str = "") -> Markup:
    return tag("th", *inner, scope="col", role="columnheader", kind=kind)


def _end(view: AnyView) -> Part:
    """Who stands at the end of the rail."""
    answer = view.answer
    if not view.results:
        return None
    return tag("b", answer.arm) if answer.certified else f"{answer.arm}?"


def _legend(view: AnyView) -> Markup:
    axis = Axis((0.0, 1.0), before=0.03)
    limited = any(objective.limit is not None for objective in view.objectives)
    known, gone = (whisker(axis, 6, look, 0.5, 0.0, 1.0) for look in ("in", "out"))
    signs: list[tuple[int, Part, str]] = [
        (34, known, view.marks),
        (22, _sample("band"), f"ties with the best{'; or within the limit' if limited else ''}"),
        (34, gone, "excluded, or not deciding"),
    ]
    if view.always is not None:
        signs.insert(1, (34, line("3", "31", 6, 6, "always in"), view.always))
    if any(not cell.counts for arm in view.arms for cell in arm.objectives.values()):
        signs.append((22, _sample("pastbox"), "no longer counts"))
    spans = [
        tag("span", tag("svg", sign, width=width, height=12, aria_hidden="true"), text)
        for width, sign, text in signs
    ]
    is_gate = getattr(view.answer, "gate", None) is not None  # whose arms are the baseline and the candidate
    named = legend_of(view.objectives) if view.results and not is_gate else ()
    outcomes = [[tag("b", label), f": {meaning}. "] for label, meaning in named]
    return tag("div", spans, named and tag("p", outcomes, kind="key"), tag("p", view.note), kind="foot")


def _sample(kind: str) -> Markup:
    return tag("rect", kind=kind, x="0.5", y="0.5", width=21, height=11)


# --- the head


def _head(view: AnyView, objective: ObjectiveRow, position: int) -> Markup:
    look = LOOKS[objective.stage]
    sure = objective.name not in view.unmet and not WITHOUT & set(view.answer.flags)
    return tag(
        "th",
        tag(
            "div",
            _rail(view, objective, position),
            _down(view, position, look),
            kind="rail",
            aria_hidden="true",
        ),
        tag("span", objective.name, kind="nm"),
        [tag("span", text, kind="rule") for text in (objective.rule, objective.matters)],
        tag("span", objective.message, kind="stt tick" if look == "done" and sure else "stt"),
        scope="col",
        role="columnheader",
        kind=f"st {look}",
        data_key=objective.name,
    )


def _rail(view: AnyView, objective: ObjectiveRow, position: int) -> Markup:
    """A strand per arm that got here, ending where it left, or one ribbon; and its number."""
    look = LOOKS[objective.stage]
    entered = [arm for arm in view.arms if arm.name in objective.entered]
    leave = [arm for arm in entered if ends_at(arm, objective)]
    if len(view.arms) > MOST_STRANDS:
        drawn = _ribbon(len(view.arms), len(entered), len(leave), look)
    else:
        goes = "in" if look == "done" or view.state == StudyState.FINISHED else "later"
        drawn = [_strand(10 + 4 * k, arm in leave, goes, look) for k, arm in enumerate(entered)]
    return tag("svg", drawn, _step(position, look, 23, 20), kind="w wide", height=40)


def stays(arm: Arm, objective: ObjectiveRow) -> bool:
    """Whether an objective that decides keeps an arm."""
    return not ends_at(arm, objective) and LOOKS[objective.stage] != "later"


def ends_at(arm: Arm, objective: ObjectiveRow) -> bool:
    """Whether an arm's way ends on an objective."""
    return arm.decision.is_out and arm.decision.objective == objective.name


def _strand(y: float, leaves: bool, goes: str, look: str) -> Part:
    turn = f"{TURN}%"
    if leaves:
        return [line("0", turn, y, y, "strand out"), upright(turn, y - 2.5, y + 2.5, "strand out")]
    if look == "now":
        return [line("0", turn, y, y, "strand in"), line(turn, "100%", y, y, f"strand {goes}")]
    return line("0", "100%", y, y, f"strand {goes}{' dash' if look == 'later' else ''}")


def _ribbon(arms: int, entered: int, leave: int, look: str) -> Part:
    """As high as the share of arms that came this far, and lower from where some left."""
    one = 26 / arms
    stays = one * (entered - leave)
    kind = "ribbon later" if look == "later" else "ribbon"
    return [
        tag("rect", kind=kind, x=0, y=7, width="100%", height=f"{max(stays, 1.5):.1f}"),
        leave > 0
        and tag(
            "rect",
            kind="ribbon out",
            x=0,
            y=f"{7 + stays:.1f}",
            width=f"{TURN}%",
            height=f"{one * leave:.1f}",
        ),
    ]


def _down(view: AnyView, position: int, look: str) -> Markup:
    more = position < len(view.objectives) - 1
    strand = f"strand thick {'in' if look == 'done' else 'later'}"
    down = more and tag("line", kind=strand, x1=11, x2=11, y1=20, y2="100%")
    return tag("svg", down, _step(position, look, 11, 11), kind="only", width=22, height="100%")


def _step(position: int, look: str, x: int, y: int) -> Part:
    return [
        tag("circle", kind=f"step {look}", cx=x, cy=y, r="10.5"),
        words(f"{x}", y + 4, f"{position + 1}", kind=f"stepn {look}", text_anchor="middle"),
    ]


# --- the rows


def _entered(view: AnyView, objective: ObjectiveRow) -> list[Cell]:
    """What was measured of the arms that an objective counts for."""
    entered = set(objective.entered)
    cells = [arm.objectives[objective.name] for arm in view.arms if arm.name in entered]
    return [cell for cell in cells if cell.mean is not None]


def axis_of(view: AnyView, objective: ObjectiveRow) -> Axis | None:
    """From the lowest to the highest of what an objective shows; None if nothing was measured."""
    cells = _entered(view, objective)
    if not cells:
        return None
    ends = [end for cell in cells for end in (cell.mean, cell.low, cell.high) if end is not None]
    band = band_of(view, objective) or ()
    ends += band if objective.limit is None else (objective.limit, inner_of(objective))
    most = 3 if max(map(abs, ends)) >= 1000 else 4
    return Axis(ends, most, before=0.04)


def inner_of(objective: ObjectiveRow) -> float:
    """The line inside a limit by the slack."""
    slack = -objective.slack if objective.direction == Direction.MINIMIZE else objective.slack
    return (objective.limit or 0.0) + slack


def band_of(view: AnyView, objective: ObjectiveRow) -> Band:
    """What ties with the best; or what meets the limit. An open end is infinite."""
    smaller = objective.direction == Direction.MINIMIZE
    means = [cell.mean or 0.0 for cell in _entered(view, objective)]
    if objective.limit is not None:
        return (-math.inf, objective.limit) if smaller else (objective.limit, math.inf)
    if not means or not objective.tie:
        return None
    return (min(means), min(means) + objective.tie) if smaller else (max(means) - objective.tie, max(means))


def _row(view: AnyView, arm: Arm, axes: list[tuple[Axis | None, Band]], actions: bool) -> Markup:
    is_answer = arm.leads and view.results > 0
    button = tag(
        "button",
        "···",
        kind="btn sm",
        data_do="arm",
        data_arm=arm.name,
        aria_label=f"{arm.name}: details and actions",
        aria_haspopup="dialog",
    )
    heading = tag(
        "th",
        tag("b", arm.name),
        tag("span", arm.label, kind="standing is" if is_answer else "standing"),
        scope="row",
        role="rowheader",
        kind="arm",
        title=arm.name if len(arm.name) > 40 else None,
    )
    cells = [
        _cell(view, arm, objective, *axis) for objective, axis in zip(view.objectives, axes, strict=True)
    ]
    return tag(
        "tr",
        heading,
        cells,
        tag("td", count(arm.results), tag("span", losses(arm), kind="s"), role="cell", kind="num"),
        actions and tag("td", button, role="cell", kind="act"),
        role="row",
        kind="ans" if is_answer else None if arm.decision.is_candidate else "out",
        data_key=arm.name,
        data_arm=arm.name,
        data_outcome=arm.decision.outcome,
    )


def losses(arm: Arm) -> str:
    """What did not come to count, in words."""
    more = [f"{count(arm.counted)} counted"] if arm.counted < arm.results else []
    lost = {"open": arm.open, "failed": arm.failed, "expired": arm.expired, "late": arm.late}
    return ", ".join([*more, *(f"{count(n)} {word}" for word, n in lost.items() if n)])


def _cell(view: AnyView, arm: Arm, objective: ObjectiveRow, axis: Axis | None, band: Band) -> Markup:
    cell = arm.objectives[objective.name]
    how = {"role": "cell", "data_l": objective.name, "data_objective": objective.name}
    shown = tag("span", cell.shown, kind="m")
    if not cell.counts or not cell.results or axis is None:
        text = "not measured" if cell.counts else "no longer counts"
        note = tag("span", text, kind="unseen")
        because = objective is view.objectives[0] and arm.withdrawn
        kind = f"{'' if cell.counts else 'past'}{_long(objective)}".strip()
        why = because and tag("p", because, kind="because")
        return tag("td", tag("div", shown, note, kind="cell"), why, kind=kind, **how)
    out, decides = ends_at(arm, objective), LOOKS[objective.stage] != "later"
    look, ringed = "in" if stays(arm, objective) else "out", arm.leads and decides
    tall = 43 if out else TALL
    drawn = [
        band and box(axis, *band, -9, tall, "band" if decides else "prov"),
        objective.limit is not None and upright(axis(objective.limit), -9, tall - 9, "limit"),
        across(17, "grid"),
        whisker(axis, 17, look, cell.mean, cell.low, cell.high, ringed, (cell.always_low, cell.always_high)),
    ]
    inner = [shown, tag("span", cell.range, kind="r"), drawing(34, drawn, aria_hidden="true")]
    word, colon, rest = cell.why.partition(":")
    why = cell.why and tag("p", tag("b", word, colon), rest, kind="why")
    now = f"{'now' if LOOKS[objective.stage] == 'now' else ''}{_long(objective)}".strip()
    return tag("td", tag("div", inner, kind="cell"), why, kind=now, **how)


def _long(objective: ObjectiveRow) -> str:
    """A name that has a line of its own on a phone."""
    return " long" if len(objective.name) > 20 else ""


def _scale(objective: ObjectiveRow, axis: Axis | None) -> Markup:
    inner = axis is not None and tag("div", tag("span", kind="m"), axis.scale(), kind="cell")
    now = f"{'now' if LOOKS[objective.stage] == 'now' else ''}{_long(objective)}".strip()
    return tag("td", inner, role="cell", kind=now, data_l=objective.name if axis else None)
