"""Studies beside each other: every one at a glance, and two of them compared."""

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from markupsafe import Markup

from lexbandits.outcomes import ObjectiveStage
from lexbandits.service.schemas import ListedStudy
from lexbandits.service.trials_page import address, button, listing, listing_row
from lexbandits.study.number_format import count, percent
from lexbandits.study.states import StudyState
from lexbandits.views import drawing
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import Part, tag

UNKNOWN = {StudyState.BUSY: "not known yet", StudyState.UNREADABLE: "open it to see why"}
SHOWN: dict[str, tuple[str, Callable[[ListedStudy], bool]]] = {
    "all": ("All", lambda study: True),
    "measuring": ("Measuring", lambda study: study.state == StudyState.MEASURING),
    "certified": ("Certified", lambda study: study.certified),
    "paused": ("Paused", lambda study: study.state == StudyState.PAUSED),
    "stopped": (
        "Stopped without a certificate",
        lambda study: (
            not study.certified
            and study.state not in (StudyState.MEASURING, StudyState.PAUSED, StudyState.BUSY)
        ),
    ),
}
HEADS = (
    "Study, objectives in order",
    "State",
    "Answer",
    "Settled",
    "Can win",
    "Results",
    "Attention",
    "Last event",
)
SEGMENTS = {
    ObjectiveStage.SETTLED: "d",
    ObjectiveStage.ENOUGH: "d",
    ObjectiveStage.SETTLING: "n",
    ObjectiveStage.NOT_SETTLED: "n",
}
NUMBERS = ("Can win", "Results", "Last event")
LEGEND = "Bars: objectives in order. Full: settled. Half: being settled. Empty: later, or not needed."


def studies(found: Sequence[ListedStudy], search: str, show: str, pages: int, more: bool) -> list[Markup]:
    """The list, with what was searched for and what is shown."""
    if not found and not search:
        return [_nothing()]
    shown = sorted((study for study in found if SHOWN[show][1](study)), key=_group)
    head = [
        tag("h1", _sentence(found), kind="say", tabindex=-1),
        tag("div", button("create", "New study", "pri", "admin"), kind="acts"),
    ]
    field = {"type": "search", "name": "search", "value": search, "id": "search", "maxlength": 200}
    filters = [
        tag("input", **field, placeholder="Search by name", aria_label="Search by name", data_key="search"),
        [_filter(key, found, search, show) for key in SHOWN],
    ]
    none = tag("p", "None at the moment.", kind="pad mut")
    following = _query(search, show, pages + 1)
    return [
        tag("div", head, kind="bar head", data_key="head"),
        tag("form", filters, kind="filter", role="search", aria_label="Show", data_key="filter"),
        tag(
            "section",
            listing(HEADS, NUMBERS, map(_row, shown), "ls") if shown else none,
            kind="panel",
            aria_label="Studies",
            data_key="studies",
        ),
        *([tag("p", tag("a", "Show more", href=following, kind="btn"), data_key="more")] if more else []),
        tag("p", LEGEND, kind="end", data_key="end"),
    ]


def _query(search: str, show: str, pages: int = 1) -> str:
    asked = {"search": search, "show": show if show != "all" else "", "pages": pages if pages > 1 else ""}
    said = urlencode({key: text for key, text in asked.items() if text})
    return f"#/?{said}" if said else "#/"


def _filter(key: str, found: Sequence[ListedStudy], search: str, show: str) -> Markup:
    name, fits = SHOWN[key]
    here = "true" if key == show else None
    return tag(
        "a", f"{name} {sum(map(fits, found))}", href=_query(search, key), data_key=key, aria_current=here
    )


def _group(study: ListedStudy) -> int:
    return 0 if study.state == StudyState.MEASURING else 1 if study.certified else 2


def _sentence(found: Sequence[ListedStudy]) -> Part:
    def number(fits: Callable[[ListedStudy], bool], one: str, many: str) -> list[str]:
        n = sum(map(fits, found))
        return [f"{count(n)} {one if n == 1 else many}"] * bool(n)

    busy = [study for study in found if study.state == StudyState.BUSY]
    none = "No study is known to be measuring." if busy else "No study is measuring."
    (first,) = number(SHOWN["measuring"][1], "study is measuring.", "studies are measuring.") or [none]
    rest = [f"{count(len(busy))} {'is' if len(busy) == 1 else 'are'} being computed"] * bool(busy)
    rest += number(lambda study: study.overdue > 0, "needs attention", "need attention")
    rest += number(SHOWN["certified"][1], "is certified", "are certified")
    return [tag("b", first), " ", tag("span", f"{'; '.join(rest)}.", kind="q") if rest else None]


def _row(study: ListedStudy) -> Markup:
    look = (
        "ok"
        if study.certified
        else {StudyState.MEASURING: "on", StudyState.PAUSED: "paused"}.get(study.state, "ended")
    )
    answer: Part = [tag("b", study.answer), tag("span", _certificate(study), kind="s")]
    if not study.results:
        answer = tag("span", UNKNOWN.get(study.state, "no results yet"), kind="mut")
    unknown = study.state in UNKNOWN
    overdue = tag("span", f"{count(study.overdue)} overdue", kind="warnt") if study.overdue else None
    budget = study.budget is not None and tag("span", f"budget {count(study.budget)}", kind="s")
    cells: list[tuple[Part, str | None]] = [
        (tag("span", study.badge, kind=f"badge {look}"), None),
        (answer, None),
        (_settled(study), None),
        ("–" if unknown else f"{1 if study.certified else len(study.candidates)} of {study.arms}", "num"),
        ("–" if unknown else [count(study.results), budget], "num"),
        (overdue or tag("span", "–", kind="mut wide"), None),
        (tag("time", datetime=study.changed, data_time="ago"), "num mut"),
    ]
    heading = [
        tag("a", study.name, href=f"#{address(study.name)}"),
        tag("span", " › ".join(study.objectives), kind="s"),
    ]
    return listing_row(heading, cells, study.name)


def _certificate(study: ListedStudy) -> str:
    if study.certified:
        return "certified"
    return {StudyState.MEASURING: "not yet certified", StudyState.PAUSED: "best guess"}.get(
        study.state, "best guess, no certificate"
    )


def _settled(study: ListedStudy) -> Part:
    looks = [SEGMENTS.get(ObjectiveStage(stage), "k") for stage in study.stages]
    bars = [tag("i", kind=look if study.results else "k") for look in looks]
    done = looks.count("d")
    text = f"{done} of {len(study.stages)} settled when it ended"
    if study.certified:
        text = "all that was needed"
    elif study.settling is not None:
        now = f"now {study.settling}" if study.state == StudyState.MEASURING else f"{study.settling} next"
        text = f"{done} of {len(study.stages)} settled, {now}"
    return [tag("span", bars, kind="seg", aria_hidden="true"), tag("span", text, kind="s")] if bars else None


def _nothing() -> Markup:
    here = tag("span", "here, ", data_may="admin")
    words = [
        "Create one ",
        here,
        "from Python, from the command line or through the API; it appears at once.",
    ]
    return tag(
        "section",
        tag("h1", "No studies yet.", kind="say", tabindex=-1),
        tag("p", words, kind="sub"),
        tag("p", button("create", "New study", "pri", "admin")),
        tag("pre", "lexbandits study create question.toml"),
        kind="blank",
        data_key="none",
    )


# --- two of them


def comparison(first: StudyView, second: StudyView) -> Markup:
    """Two studies side by side: what was asked, what is answered, and each arm on each objective."""
    both = (first, second)

    def row(name: str, *cells: Part) -> Markup:
        return tag("tr", tag("th", name, scope="row"), [tag("td", cell) for cell in cells])

    def group(title: str) -> Markup:
        return tag("tr", tag("th", title, scope="colgroup", colspan=3), kind="group")

    def each(name: str, told: Callable[..., Part], *more: str) -> Markup:
        return row(name, *(told(view, *more) for view in both))

    objectives = list(dict.fromkeys(objective.name for view in both for objective in view.objectives))
    arms = list(dict.fromkeys(arm.name for view in both for arm in view.arms))
    rows = [
        each("State", drawing.badge),
        each("Answer", drawing.headline),
        each("Results", lambda view: count(view.estimates.results)),
        each("Confidence", lambda view: f"{percent(1 - view.answer.delta)}, once certified"),
        group("Arms"),
        *(each(arm, _of_arm, arm) for arm in arms),
    ]
    for name in objectives:
        rows += [group(name), each("Asked", _asked, name), *(each(arm, _of_arm, arm, name) for arm in arms)]
    heads = [tag("th", tag("a", p.name, href=f"#{address(p.name)}"), scope="col") for p in both]
    table = tag("table", tag("thead", tag("tr", tag("td"), heads)), tag("tbody", rows), kind="mini cmp")
    title = tag("h1", "Two studies side by side", kind="say", tabindex=-1)
    return tag("section", title, tag("div", table, kind="panel pad"), kind="list", data_key="comparison")


def _asked(view: StudyView, name: str) -> str:
    for position, objective in enumerate(view.objectives):
        if objective.name == name:
            return f"{position + 1}. {objective.rule}, {objective.matters}. {objective.message}"
    return "–"


def _of_arm(view: StudyView, name: str, objective: str | None = None) -> Part:
    for arm in view.arms:
        if arm.name == name:
            if objective is None:
                return arm.label
            cell = arm.objectives.get(objective)
            return "–" if cell is None else cell.in_full if cell.counts else f"{cell.shown}, no longer counts"
    return "–"
