"""What the page shows of a study's record: who measures, and the table of trials with its filters."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from markupsafe import Markup

from lexbandits.service.schemas import TrialRow, WorkerOut
from lexbandits.service.summary import trial_row
from lexbandits.study.core.trial_columns import STATES
from lexbandits.study.number_format import count, many
from lexbandits.study.objective import written
from lexbandits.study.states import StudyState, TrialState
from lexbandits.views.activity import clock_time
from lexbandits.views.drawing import Figure
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import Part, tag

PAGE = 50  # trials
MOST_OPEN = 100  # trials that are listed with their workers
WAITING = (
    "A trial whose lease ran out is declared missing at the next ask and not repeated: whoever could "
    "repeat slow ones until they are quick would choose which values count."
)


def button(action: str, text: str, kind: str = "", may: str = "", **more: Any) -> Markup:
    """What a click does; who may not will not see it."""
    dialog = None if action in ("report", "retry") else "dialog"
    key = None if more else action
    fields = {"data_do": action, "data_may": may, "aria_haspopup": dialog, "data_key": key, **more}
    return tag("button", text, kind=f"btn {kind}".strip(), **fields)


def listing(heads: Iterable[str], numbers: Sequence[str], rows: Part, kind: str) -> Markup:
    """A table that a phone shows as blocks, and that is read out as a table all the same."""
    cells = [
        tag("th", text, scope="col", role="columnheader", kind="num" if text in numbers else None)
        for text in heads
    ]
    return tag(
        "table",
        tag("thead", tag("tr", cells, role="row"), role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        kind=kind,
        role="table",
    )


def listing_row(head: Part, cells: Iterable[tuple[Part, str | None]], key: str) -> Markup:
    """A row of it: cells, each with its kind."""
    rest = [tag("td", inner, role="cell", kind=kind) for inner, kind in cells]
    return tag("tr", tag("th", head, scope="row", role="rowheader"), rest, role="row", data_key=key)


# --- who measures


def workers(view: StudyView, holders: Sequence[WorkerOut], more: int, trials: Sequence[TrialRow]) -> Figure:
    """Each worker with the trials it holds."""
    over = view.state == StudyState.FINISHED
    title = "Workers" if over else "Workers and open trials"
    if not holders and not trials:
        said = "Nobody measured." if over else "Nobody has asked for a trial yet."
        if view.estimates.results:
            asked = view.estimates.replay.projection.handed_out
            said = "The workers gave no names." if asked else "All results were imported."
        return Figure(title, "", tag("p", said, kind="mut"))
    rows = sorted(holders, key=lambda worker: _by_name(worker.name))
    known = {worker.name for worker in rows}
    body = [_worker(w.name, w, [t for t in trials if t.worker == w.name]) for w in rows]
    others = [trial for trial in trials if trial.worker not in known]
    if others:
        called = "others" if any(trial.worker for trial in others) else "without a name"
        body.append(_worker(tag("span", called, kind="mut"), None, others))
    table = listing(("Worker", "Last asked or told", "Measuring", "Told"), ("Told",), body, "mini wk")
    rest = more > 0 and tag("p", f"and {count(more)} more, not heard of for longer", kind="mut")
    return Figure(title, "" if over else WAITING, tag("div", table, rest))


def _by_name(name: str) -> list[tuple[bool, int, str]]:
    """Numbers as numbers; ordered by who was heard last, rows would not stay where they are."""
    return [(bool(word), int(number or 0), word) for number, word in re.findall(r"(\d+)|(\D+)", name.lower())]


def _worker(name: Part, worker: WorkerOut | None, held: Sequence[TrialRow]) -> Markup:
    hidden = 0 if worker is None else worker.open - len(held)
    measures = [
        not held and hidden <= 0 and tag("span", "–", kind="mut"),
        bool(held) and tag("ul", [_held(trial) for trial in held], kind="held"),
        hidden > 0 and tag("span", f"{'and ' if held else ''}{count(hidden)} more", kind="mut"),
    ]
    heard = worker.heard if worker is not None else None
    told = None if worker is None else count(worker.resolved)
    when = heard and tag("time", datetime=heard, data_time="ago")
    cells: list[tuple[Part, str | None]] = [(when, "mut"), (measures, None), (told, "num")]
    return listing_row(name, cells, f"worker {worker.name if worker else ''}")


def item_text(item: Any) -> str:
    """What is measured on."""
    return f"item {item}"


def _held(trial: TrialRow) -> Markup:
    named = f"{trial.arm}, {item_text(trial.item)}"
    left = tag("time", datetime=trial.until, data_time="left", kind="mut")
    does = tag("span", _does(trial), kind="does")
    return tag("li", tag("span", named, kind="what"), left, does, data_key=trial.id)


def _does(trial: TrialRow) -> Part:
    """What can be done with a trial, by whom."""
    fields = {"data_trial": trial.id, "data_arm": trial.arm, "data_item": item_text(trial.item)}
    named = f"{trial.arm}, {item_text(trial.item)}"

    def does(action: str, text: str, **more: Any) -> Markup:
        return button(action, text, "sm", "write", aria_label=f"{text}: {named}", **fields, **more)

    if trial.state == TrialState.OPEN:
        return [does("enter", "Enter result", data_until=trial.until), does("release", "Give back")]
    if trial.state == TrialState.TOLD:
        told = {f"data_v{k}": "" if v is None else f"{v!r}" for k, v in enumerate(trial.values.values())}
        return does("correct", "Correct", **told)
    return None


# --- trials, one by one


def trials(view: StudyView, leases: dict[int, float], arm: str, state: str, worker: str, page: int) -> Markup:
    """A page of them, the latest first."""
    replay, study = view.estimates.replay, view.name
    projection = replay.projection
    numbers = np.arange(len(projection))
    if arm:
        numbers = numbers[projection.column("arm") == _index(projection.arm_names, arm)]
    if state:
        numbers = numbers[projection.column("state")[numbers] == STATES.index(state)]
    if worker:
        numbers = numbers[projection.column("worker")[numbers] == _index(projection.workers, worker)]
    found, pages = len(numbers), max(1, -(-len(numbers) // PAGE))
    page = min(page, pages)
    rows = [
        trial_row(replay, leases, number)
        for number in numbers[::-1][PAGE * (page - 1) : PAGE * page].tolist()
    ]
    asked = {key: text for key, text in (("arm", arm), ("state", state), ("worker", worker)) if text}

    def link(text: str, to: int) -> Part:
        if not 1 <= to <= pages:
            return tag("span", text, kind="mut")
        return tag("a", text, href=f"#{address(study, 'trials', page=to, **asked)}")

    choices = {
        "arm": projection.arm_names,
        "state": STATES,
        "worker": sorted(projection.workers, key=_by_name)[:500],
    }
    chosen = {"arm": arm, "state": state, "worker": worker}
    fields = [_choice(name, names, chosen[name]) for name, names in choices.items()]
    heads = [
        tag("th", text, scope="col") for text in ("Trial", "Arm", "Item", "State", "Worker", "Asked", "Told")
    ]
    heads += [tag("th", objective.name, scope="col", kind="num") for objective in view.estimates.objectives]
    heads.append(tag("th", tag("span", "Actions", kind="unseen"), scope="col"))
    table = tag(
        "table", tag("thead", tag("tr", heads)), tag("tbody", [_row(row) for row in rows]), kind="mini one"
    )
    nav = [link("← newer", page - 1), f" page {count(page)} of {count(pages)} ", link("older →", page + 1)]
    none = tag("p", "No such trial.", kind="mut")
    return tag(
        "section",
        tag(
            "h1",
            tag("span", study, kind="name"),
            tag("a", "back to the study", href=f"#{address(study)}"),
            tabindex=-1,
        ),
        tag(
            "p",
            tag("b", many(found, "trial")),
            f" of {count(len(projection))}, the latest first.",
            kind="say",
        ),
        tag("form", fields, kind="filters", id="filters"),
        tag(
            "div",
            tag(
                "div", table if rows else none, kind="scroll", tabindex=0, role="region", aria_label="Trials"
            ),
            kind="panel pad",
        ),
        pages > 1 and tag("nav", nav, aria_label="Pages", kind="pages"),
        kind="list",
        data_key="trials",
    )


def address(study: str, *more: str, **asked: Any) -> str:
    """Of a view of a study, which can be shared."""
    path = "/".join(["/study", quote(study, safe=""), *more])
    return f"{path}?{urlencode(asked)}" if asked else path


def _index(names: Sequence[str], name: str) -> int:
    return list(names).index(name) if name in names else -2


def _choice(name: str, names: Sequence[str], chosen: str) -> Markup:
    options = [tag("option", f"any {name}", value=True)]
    options += [tag("option", text, value=text, selected=text == chosen) for text in names]
    return tag(
        "label",
        tag("span", name.capitalize(), kind="unseen"),
        tag("select", options, name=name, data_key=name),
    )


def _row(trial: TrialRow) -> Markup:
    times = [t and clock_time(datetime.fromisoformat(t).timestamp()) for t in (trial.asked, trial.resolved)]
    cells: list[Part] = [trial.arm, f"{trial.item}", trial.state, trial.worker, *times]
    values = [tag("td", "–" if v is None else written(v, ""), kind="num") for v in trial.values.values()]
    return tag(
        "tr",
        tag("th", count(trial.number), scope="row"),
        [tag("td", cell) for cell in cells],
        values,
        tag("td", _does(trial), kind="does"),
        data_key=trial.id,
    )
