"""The order of objectives as the head of the arms' table: a row stops where its arm left, with the reason."""

import math

from markupsafe import Markup

from lexbandits.picture import exits as fates
from lexbandits.picture.exits import Fate, fate_of, is_tied
from lexbandits.picture.explain import deciding, story_of
from lexbandits.picture.reasons import Reason
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
from lexbandits.picture.view import View
from lexbandits.picture.words import amount, beyond, count, many, value
from lexbandits.study.objective import Objective

LOOKS = {"settled": "done", "being settled": "now", "later": "later", "not needed": "later"}
TURN = 62  # percent of a rung at which arms leave
MOST_STRANDS = 6  # more arms are one ribbon
MANY = 5  # objectives; more scroll sideways
TALL = 240  # pixels: a band runs on below the row, which cuts it


def ladder(view: View, *, actions: bool = False) -> Markup:
    """The table in its panel; with `actions` each row has a button."""
    places = range(len(view.columns))
    axes = [_axis(view, position) for position in places]
    longest = max(map(len, view.arms))
    name_width = min(max(126, 8 * longest + 24), max(126, 300 - 45 * len(places)))
    width = f"min-width:{name_width + 156 + 190 * len(places)}px" if len(places) > MANY else None
    columns = [tag("col", kind="a", style=f"width:{name_width}px"), [tag("col") for _ in places]]
    columns += [tag("col", kind="n"), actions and tag("col", kind="x")]
    head = [
        _th(tag("span", many(len(view.arms), "arm"), kind="rt from wide"), "Arm"),
        [_head(view, position) for position in places],
        _th(tag("span", _end(view), kind="rt to wide"), "Measured", kind="num"),
        actions and _th(tag("span", "Details", kind="unseen")),
    ]
    foot = [_scale(view, position, axes[position]) for position in places]
    empty = tag("td", role="cell")
    table = tag(
        "table",
        tag("colgroup", columns),
        tag("thead", tag("tr", head, role="row"), role="rowgroup"),
        tag("tbody", [_row(view, arm, axes, actions) for arm in view.by_standing], role="rowgroup"),
        tag(
            "tfoot",
            tag("tr", empty, foot, empty, actions and empty, role="row"),
            role="rowgroup",
            aria_hidden="true",
        ),
        kind="lad",
        role="table",
        style=width,
    )
    sideways = {"tabindex": 0, "role": "region", "aria_label": "Arms and objectives, scrolls sideways"}
    return join([tag("div", table, kind="scroll", **(sideways if width else {})), _legend(view)])


def _th(*inner: Part, kind: str = "") -> Markup:
    return tag("th", *inner, scope="col", role="columnheader", kind=kind)


def _end(view: View) -> Part:
    """Who stands at the end of the rail."""
    if not view.results:
        return None
    return tag("b", view.answer.arm) if view.answer.certified else f"{view.answer.arm}?"


def _legend(view: View) -> Markup:
    axis = Axis((0.0, 1.0), before=0.03)
    known, gone = (whisker(axis, 6, 0.5, 0.0, 1.0, look) for look in ("in", "out"))
    signs: list[tuple[int, Part, str]] = [
        (34, known, "mean and interval, valid at all times"),
        (22, _sample("band"), "what does not matter, from the best; or within the limit"),
        (34, gone, "out, behind, or not deciding"),
    ]
    if any(map(view.stops, range(len(view.arms)))):
        signs.append((22, _sample("pastbox"), "no longer counts"))
    spans = [
        tag("span", tag("svg", sign, width=width, height=12, aria_hidden="true"), text)
        for width, sign, text in signs
    ]
    note = (
        "Arms are compared by their differences on the same items: an arm can be out although its interval "
        "here still touches the band. Measured are all results; means rest on those that count."
    )
    return tag("div", spans, tag("p", note), kind="foot")


def _sample(kind: str) -> Markup:
    return tag("rect", kind=kind, x="0.5", y="0.5", width=21, height=11)


# --- the head


def rule(objective: Objective) -> tuple[str, str]:
    """What kind of objective it is and what does not matter, in few words."""
    if objective.target is not None:
        word = "at most" if objective.at_most is not None else "at least"
        return "limit", f"{word} {amount(objective, objective.target)}"
    direction = "higher is better" if objective.sign > 0 else "lower is better"
    kind = f"{objective.unit}, {direction}" if objective.unit else direction
    slack = objective.tolerance_in_unit
    return kind, f"{amount(objective, slack)} does not matter" if slack else "every difference matters"


def stage_words(view: View, position: int) -> str:
    """Where an objective stands."""
    stage, ended = view.stage(position), view.state == "finished"
    entered = view.entered(position)
    out = [a for a in entered if a in view.eliminations and view.position_left(a) == position]
    stay = f"{len(entered)} → {many(len(entered) - len(out), 'arm')}"
    nobody = "Nobody meets it" if view.columns[position] in view.infeasible else ""
    if stage == "settled" and view.settled_by_rule(position):
        return f"{nobody or 'Settled'}: {stay}"
    if stage == "settled":
        behind = sum(view.behind.get(arm) == view.columns[position] for arm in entered)
        words = [f"{len(out)} out"] * bool(out) + [f"{behind} behind"] * bool(behind)
        return f"{nobody or 'Enough for the answer'}{': ' if words else ''}{', '.join(words)}"
    if stage == "being settled":
        return (
            f"{nobody or ('Not settled' if ended else 'Being settled')}: {stay}{'' if ended else ' so far'}"
        )
    if stage == "later":
        return "Not reached" if ended else "Later, among those that stay"
    return "Not needed: one arm left"


def _head(view: View, position: int) -> Markup:
    objective, stage = view.objectives[view.columns[position]], view.stage(position)
    look = LOOKS[stage]
    return tag(
        "th",
        tag(
            "div",
            _rail(view, position, look),
            _down(view, position, look),
            kind="rail",
            aria_hidden="true",
        ),
        tag("span", objective.name, kind="nm"),
        [tag("span", text, kind="rule") for text in rule(objective)],
        tag("span", stage_words(view, position), kind="stt tick" if look == "done" else "stt"),
        scope="col",
        role="columnheader",
        kind=f"st {look}",
        data_key=objective.name,
    )


def _rail(view: View, position: int, look: str) -> Markup:
    """A strand per arm that got here, ending where it left, or one ribbon; and the number of the rung."""
    entered = sorted(view.entered(position), key=view.by_standing.index)
    leave = [arm for arm in entered if view.stops(arm) and view.position_left(arm) == position]
    goes = "in" if look == "done" or view.state == "finished" else "later"
    if len(view.arms) > MOST_STRANDS:
        drawn = _ribbon(len(view.arms), len(entered), len(leave), look)
    else:
        drawn = [_strand(10 + 4 * k, arm in leave, goes, look) for k, arm in enumerate(entered)]
    return tag("svg", drawn, _rung(position, look, 23, 20), kind="w wide", height=40)


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


def _down(view: View, position: int, look: str) -> Markup:
    more = position < len(view.columns) - 1
    strand = f"strand thick {'in' if look == 'done' else 'later'}"
    down = more and tag("line", kind=strand, x1=11, x2=11, y1=20, y2="100%")
    return tag("svg", down, _rung(position, look, 11, 11), kind="only", width=22, height="100%")


def _rung(position: int, look: str, x: int, y: int) -> Part:
    return [
        tag("circle", kind=f"step {look}", cx=x, cy=y, r="10.5"),
        words(f"{x}", y + 4, f"{position + 1}", kind=f"stepn {look}", text_anchor="middle"),
    ]


# --- the rows


def _axis(view: View, position: int) -> Axis:
    column = view.columns[position]
    entered = [a for a in view.entered(position) if view.counts[a, column]]
    ends = [e for a in entered for e in (*view.interval(a, column), view.mean(a, column))]
    target = view.objectives[column].target
    low, high = _band(view, position) or (math.nan, math.nan)
    ends += [low, high] if target is None else [target]
    most = 3 if max((abs(e) for e in ends if math.isfinite(e)), default=0.0) >= 1000 else 4
    return Axis(ends, most, before=0.04)


def _band(view: View, position: int) -> tuple[float, float] | None:
    """What does not matter, seen from the best; or what meets the limit. An open end is infinite."""
    column = view.columns[position]
    objective = view.objectives[column]
    means = [objective.sign * view.mean(a, column) for a in view.entered(position) if view.counts[a, column]]
    if objective.target is not None:
        at_most = objective.at_most is not None
        return (-math.inf, objective.target) if at_most else (objective.target, math.inf)
    if not means or not objective.tolerance_in_unit:
        return None
    ends = [objective.sign * end for end in (max(means), max(means) - objective.tolerance_in_unit)]
    return min(ends), max(ends)


def _row(view: View, arm: int, axes: list[Axis], actions: bool) -> Markup:
    standing, fate, name = view.standing(arm), fate_of(view, arm), view.arms[arm]
    is_answer = standing == "answer" and view.results > 0
    said = _standing(view, arm, fate)
    why = view.fold.ledger.withdrawn.get(name)
    button = tag(
        "button",
        "···",
        kind="btn sm",
        data_do="arm",
        data_arm=name,
        aria_label=f"{name}: details and actions",
        aria_haspopup="dialog",
    )
    return tag(
        "tr",
        tag(
            "th",
            tag("b", name),
            tag("span", said, kind="standing is" if is_answer else "standing"),
            why is not None and tag("p", why, kind="why"),
            scope="row",
            role="rowheader",
            kind="arm",
            title=name if len(name) > 40 else None,
        ),
        [_cell(view, arm, p, axes[p], fate) for p in range(len(axes))],
        tag(
            "td",
            count(view.measured[arm]),
            tag("span", _losses(view, arm), kind="s"),
            role="cell",
            kind="num",
        ),
        actions and tag("td", button, role="cell", kind="act"),
        role="row",
        kind="ans" if is_answer else None if standing in ("answer", "candidate") else "out",
        data_key=name,
        data_arm=name,
        data_exit=fate.kind,
    )


def _standing(view: View, arm: int, fate: Fate) -> str:
    standing = view.standing(arm)
    return {
        "answer": view.called if view.results else "candidate",
        "candidate": _candidate(view, arm, fate),
        "left": f"out after {count(story_of(view, arm).after or 0)}",
    }.get(standing, standing)


def _losses(view: View, arm: int) -> str:
    counted = view.counted(arm)
    more = [f"{count(counted)} counted"] if counted < view.measured[arm] else []
    more += [f"{view.open_of(arm)} open"] if view.open_of(arm) else []
    return ", ".join([*more, *(f"{n} {word}" for word, n in view.losses(arm).items() if n)])


def _candidate(view: View, arm: int, fate: Fate) -> str:
    """How a candidate stands to the answer."""
    if view.state != "finished":
        return "candidate"
    if fate.kind == fates.BEHIND:
        return "behind the answer"
    if not view.is_proven:
        return "not ruled out"
    if is_tied(view, arm):
        return "ties with the answer"
    return "behind by the means" if fate.kind == fates.BY_THE_MEANS else "not told apart"


def _cell(view: View, arm: int, position: int, axis: Axis, fate: Fate) -> Markup:
    column = view.columns[position]
    objective, stage = view.objectives[column], view.stage(position)
    mean = view.mean(arm, column)
    parts: list[Part] = [tag("span", value(objective, mean), kind="m")]
    how = {"role": "cell", "data_l": objective.name, "data_objective": objective.name}
    if not view.counts[arm, column]:
        return tag("td", tag("div", parts, tag("span", "not measured", kind="unseen"), kind="cell"), **how)
    if fate.kind == fates.GONE or (view.stops(arm) and view.position_left(arm) < position):
        past = tag("span", "no longer counts", kind="unseen")
        return tag("td", tag("div", parts, past, kind="cell"), kind="past", **how)
    low, high = view.interval(arm, column)
    out = view.stops(arm) and view.position_left(arm) == position
    inside = not out and stage in ("settled", "being settled")
    band, tall = _band(view, position), 43 if out else TALL
    target = objective.target
    drawn = [
        band and box(axis, *band, -9, tall, "band" if stage in ("settled", "being settled") else "prov"),
        target is not None and upright(axis(target), -9, tall - 9, "limit"),
        across(17, "grid"),
        whisker(axis, 17, mean, low, high, "in" if inside else "out", arm == view.leader and inside),
    ]
    finite = math.isfinite(low) and math.isfinite(high)
    ends = f"{value(objective, low, rounded='down')} – {value(objective, high, rounded='up')}"
    parts += [tag("span", ends if finite else "too few", kind="r"), drawing(34, drawn, aria_hidden="true")]
    why = _why(view, arm, position, fate)
    return tag(
        "td", tag("div", parts, kind="cell"), why, kind="now" if stage == "being settled" else None, **how
    )


def _why(view: View, arm: int, position: int, fate: Fate) -> Part:
    """What decides on an arm, below its interval on the objective that does."""
    words = {fates.LEFT: "Out", fates.BEHIND: "Behind", fates.BY_THE_MEANS: "By the means"}
    if position != fate.position or fate.kind not in words:
        return None
    if fate.kind == fates.BY_THE_MEANS and view.state != "finished":
        return None
    short = _short(deciding(view, arm, fate), view.objectives[view.columns[position]])
    return tag("p", tag("b", f"{words[fate.kind]}:"), f" {short}", kind="why")


def _short(reason: Reason, objective: Objective) -> str:
    above = objective.at_most is not None
    if reason.verdict == "beyond the limit":
        bound, line = reason.low if above else reason.high, objective.target or 0.0
        word, how = ("at least", "down") if above else ("at most", "up")
        shown = beyond(objective, math.nan if bound is None else bound, line, rounded=how)
        return f"certainly {'above' if above else 'below'} the limit, {word} {shown}"
    if reason.rival is None:
        return f"{value(objective, reason.difference or 0.0)}, not known to be within the limit"
    text = f"worse than {reason.rival} by {value(objective, reason.difference or 0.0)}"
    if reason.verdict != "worse" or reason.low is None or reason.low == reason.high:
        return text
    if reason.low <= objective.tolerance_in_unit:  # a step of the proof takes less evidence than an interval
        return text
    return f"{text}, at least {beyond(objective, reason.low, objective.tolerance_in_unit, rounded='down')}"


def _scale(view: View, position: int, axis: Axis) -> Markup:
    now, name = view.stage(position) == "being settled", view.objectives[view.columns[position]].name
    inner = tag("div", tag("span", kind="m"), axis.scale(), kind="cell")
    return tag("td", inner, role="cell", kind="now" if now else None, data_l=name)
