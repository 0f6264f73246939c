"""The order of objectives as the head of the arms' table: a row stops where its arm left, with the reason."""

import math
from typing import TYPE_CHECKING, TypeAlias

from markupsafe import Markup

from lexbandits.picture import exits
from lexbandits.picture.shown import Arm, Cell, Rung
from lexbandits.picture.svg import (
    Axis,
    Part,
    across,
    box,
    drawing,
    join,
    line,
    tag,
    upright,
    whisker,
    words,
)
from lexbandits.study.record.answers import WITHOUT
from lexbandits.study.words import count, many

if TYPE_CHECKING:
    from lexbandits.picture.judged import Judged
    from lexbandits.picture.picture import Picture

Shown: TypeAlias = "Picture | Judged"

LOOKS = {
    "settled": "done",
    "enough": "done",
    "settling": "now",
    "not settled": "now",
    "later": "later",
    "not reached": "later",
    "not needed": "later",
}
ENDS = (exits.LEFT, exits.BEHIND, *exits.BY_LIMIT)
TURN = 62  # percent of a rung at which arms leave
MOST_STRANDS = 6  # more arms are one ribbon
MANY = 5  # objectives; more scroll sideways
TALL = 240  # pixels: a band runs on below the row, which cuts it


def ladder(picture: Shown, *, actions: bool = False) -> Markup:
    """The table and its legend; with `actions` each row has a button."""
    rungs, arms = picture.objectives, picture.arms
    axes = [_axis(picture, rung) for rung in rungs]
    longest = max(len(arm.name) for arm in arms)
    name_width = min(max(126, 8 * longest + 24), max(126, min(420, 1060 - 230 * len(rungs))))
    width = f"min-width:{name_width + 156 + 190 * len(rungs)}px" if len(rungs) > MANY else None
    columns: list[Part] = [tag("col", kind="a", style=f"width:{name_width}px"), [tag("col") for _ in rungs]]
    columns += [tag("col", kind="n"), actions and tag("col", kind="x")]
    head = [
        _th(tag("span", many(len(arms), "arm"), kind="rt from wide"), "Arm"),
        [_head(picture, rung, position) for position, rung in enumerate(rungs)],
        _th(tag("span", _end(picture), kind="rt to wide"), "Measured", kind="num"),
        actions and _th(tag("span", "Details", kind="unseen"), kind="act"),
    ]
    scales = [_scale(rung, axis) for rung, axis in zip(rungs, axes, strict=True)]
    empty = tag("td", role="cell")
    foot = tag("tr", empty, scales, empty, actions and tag("td", role="cell", kind="act"), role="row")
    table = tag(
        "table",
        tag("colgroup", columns),
        tag("thead", tag("tr", head, role="row"), role="rowgroup"),
        tag("tbody", [_row(picture, arm, axes, actions) for arm in arms], role="rowgroup"),
        tag("tfoot", foot, role="rowgroup", aria_hidden="true"),
        kind="lad",
        role="table",
        style=width,
    )
    sideways = {"tabindex": 0, "role": "region", "aria_label": "Arms and objectives, scrolls sideways"}
    return join([tag("div", table, kind="scroll", **(sideways if width else {})), _legend(picture)])


def _th(*inner: Part, kind: str = "") -> Markup:
    return tag("th", *inner, scope="col", role="columnheader", kind=kind)


def _end(picture: Shown) -> Part:
    """Who stands at the end of the rail."""
    answer = picture.answer
    if not picture.results:
        return None
    return tag("b", answer.arm) if answer.certified else f"{answer.arm}?"


def _legend(picture: Shown) -> Markup:
    axis = Axis((0.0, 1.0), before=0.03)
    known, gone = (whisker(axis, 6, look, 0.5, 0.0, 1.0) for look in ("in", "out"))
    signs: list[tuple[int, Part, str]] = [
        (34, known, picture.marks),
        (22, _sample("band"), "ties with the best; or within the limit"),
        (34, gone, "out, behind, or not deciding"),
    ]
    if any(not cell.counts for arm in picture.arms for cell in arm.objectives.values()):
        signs.append((22, _sample("pastbox"), "no longer counts"))
    spans = [
        tag("span", tag("svg", sign, width=width, height=12, aria_hidden="true"), text)
        for width, sign, text in signs
    ]
    return tag("div", spans, tag("p", picture.note), kind="foot")


def _sample(kind: str) -> Markup:
    return tag("rect", kind=kind, x="0.5", y="0.5", width=21, height=11)


# --- the head


def _head(picture: Shown, rung: Rung, position: int) -> Markup:
    look = LOOKS[rung.state]
    sure = rung.name not in picture.unmet and not WITHOUT & set(picture.answer.flags)
    return tag(
        "th",
        tag(
            "div",
            _rail(picture, rung, position),
            _down(picture, position, look),
            kind="rail",
            aria_hidden="true",
        ),
        tag("span", rung.name, kind="nm"),
        [tag("span", text, kind="rule") for text in (rung.rule, rung.matters)],
        tag("span", rung.said, kind="stt tick" if look == "done" and sure else "stt"),
        scope="col",
        role="columnheader",
        kind=f"st {look}",
        data_key=rung.name,
    )


def _rail(picture: Shown, rung: Rung, position: int) -> Markup:
    """A strand per arm that got here, ending where it left, or one ribbon; and the number of the rung."""
    look = LOOKS[rung.state]
    entered = [arm for arm in picture.arms if arm.name in rung.entered]
    leave = [arm for arm in entered if ends_at(arm, rung)]
    if len(picture.arms) > MOST_STRANDS:
        drawn = _ribbon(len(picture.arms), len(entered), len(leave), look)
    else:
        goes = "in" if look == "done" or picture.state == "finished" else "later"
        drawn = [_strand(10 + 4 * k, arm in leave, goes, look) for k, arm in enumerate(entered)]
    return tag("svg", drawn, _rung(position, look, 23, 20), kind="w wide", height=40)


def stays(arm: Arm, rung: Rung) -> bool:
    """Whether an objective that decides keeps an arm."""
    return not ends_at(arm, rung) and LOOKS[rung.state] != "later"


def ends_at(arm: Arm, rung: Rung) -> bool:
    """Whether an arm's way ends on an objective."""
    return arm.exit.code in ENDS and arm.exit.objective == rung.name


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


def _down(picture: Shown, position: int, look: str) -> Markup:
    more = position < len(picture.objectives) - 1
    strand = f"strand thick {'in' if look == 'done' else 'later'}"
    down = more and tag("line", kind=strand, x1=11, x2=11, y1=20, y2="100%")
    return tag("svg", down, _rung(position, look, 11, 11), kind="only", width=22, height="100%")


def _rung(position: int, look: str, x: int, y: int) -> Part:
    return [
        tag("circle", kind=f"step {look}", cx=x, cy=y, r="10.5"),
        words(f"{x}", y + 4, f"{position + 1}", kind=f"stepn {look}", text_anchor="middle"),
    ]


# --- the rows


def _entered(picture: Shown, rung: Rung) -> list[Cell]:
    """What was measured of the arms that an objective counts for."""
    cells = [arm.objectives[rung.name] for arm in picture.arms if arm.name in rung.entered]
    return [cell for cell in cells if cell.mean is not None]


def _axis(picture: Shown, rung: Rung) -> Axis | None:
    cells = _entered(picture, rung)
    if not cells:
        return None
    ends = [end for cell in cells for end in (cell.mean, cell.low, cell.high) if end is not None]
    ends += [rung.limit] if rung.limit is not None else band_of(picture, rung) or ()
    most = 3 if max(map(abs, ends)) >= 1000 else 4
    return Axis(ends, most, before=0.04)


def band_of(picture: Shown, rung: Rung) -> tuple[float, float] | None:
    """What ties with the best; or what meets the limit. An open end is infinite."""
    smaller, means = rung.direction == "minimize", [cell.mean or 0.0 for cell in _entered(picture, rung)]
    if rung.limit is not None:
        return (-math.inf, rung.limit) if smaller else (rung.limit, math.inf)
    if not means or not rung.tie:
        return None
    return (min(means), min(means) + rung.tie) if smaller else (max(means) - rung.tie, max(means))


def _row(picture: Shown, arm: Arm, axes: list[Axis | None], actions: bool) -> Markup:
    is_answer = arm.exit.code == exits.ANSWER and picture.results > 0
    button = tag(
        "button",
        "···",
        kind="btn sm",
        data_do="arm",
        data_arm=arm.name,
        aria_label=f"{arm.name}: details and actions",
        aria_haspopup="dialog",
    )
    who = tag(
        "th",
        tag("b", arm.name),
        tag("span", arm.standing, kind="standing is" if is_answer else "standing"),
        scope="row",
        role="rowheader",
        kind="arm",
        title=arm.name if len(arm.name) > 40 else None,
    )
    cells = [_cell(picture, arm, rung, axis) for rung, axis in zip(picture.objectives, axes, strict=True)]
    return tag(
        "tr",
        who,
        cells,
        tag("td", count(arm.results), tag("span", _losses(arm), kind="s"), role="cell", kind="num"),
        actions and tag("td", button, role="cell", kind="act"),
        role="row",
        kind="ans" if is_answer else None if arm.state in ("answer", "candidate") else "out",
        data_key=arm.name,
        data_arm=arm.name,
        data_exit=arm.exit.code,
    )


def _losses(arm: Arm) -> str:
    more = [f"{count(arm.counted)} counted"] if arm.counted < arm.results else []
    lost = {"open": arm.open, "failed": arm.failed, "expired": arm.expired, "late": arm.late}
    return ", ".join([*more, *(f"{count(n)} {word}" for word, n in lost.items() if n)])


def _cell(picture: Shown, arm: Arm, rung: Rung, axis: Axis | None) -> Markup:
    cell = arm.objectives[rung.name]
    how = {"role": "cell", "data_l": rung.name, "data_objective": rung.name}
    shown = tag("span", cell.shown, kind="m")
    if not cell.counts or not cell.results or axis is None:
        text = "not measured" if cell.counts else "no longer counts"
        note = tag("span", text, kind="unseen")
        because = rung is picture.objectives[0] and arm.withdrawn
        kind = f"{'' if cell.counts else 'past'}{_long(rung)}".strip()
        why = because and tag("p", because, kind="because")
        return tag("td", tag("div", shown, note, kind="cell"), why, kind=kind, **how)
    out, decides = ends_at(arm, rung), LOOKS[rung.state] != "later"
    look, ringed = "in" if stays(arm, rung) else "out", arm.exit.code == exits.ANSWER and decides
    band, tall = band_of(picture, rung), 43 if out else TALL
    drawn = [
        band and box(axis, *band, -9, tall, "band" if decides else "prov"),
        rung.limit is not None and upright(axis(rung.limit), -9, tall - 9, "limit"),
        across(17, "grid"),
        whisker(axis, 17, look, cell.mean, cell.low, cell.high, ringed),
    ]
    inner = [shown, tag("span", cell.range, kind="r"), drawing(34, drawn, aria_hidden="true")]
    word, colon, rest = cell.why.partition(":")
    why = cell.why and tag("p", tag("b", word, colon), rest, kind="why")
    now = f"{'now' if LOOKS[rung.state] == 'now' else ''}{_long(rung)}".strip()
    return tag("td", tag("div", inner, kind="cell"), why, kind=now, **how)


def _long(rung: Rung) -> str:
    """A name that has a line of its own on a phone."""
    return " long" if len(rung.name) > 20 else ""


def _scale(rung: Rung, axis: Axis | None) -> Markup:
    inner = axis is not None and tag("div", tag("span", kind="m"), axis.scale(), kind="cell")
    now = f"{'now' if LOOKS[rung.state] == 'now' else ''}{_long(rung)}".strip()
    return tag("td", inner, role="cell", kind=now, data_l=rung.name if axis else None)
