"""One file from which a stranger can check a study's answer: HTML without scripts, or Markdown."""

import platform
import shlex
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

import lexbandits
from lexbandits._files import beside
from lexbandits._printable import printable, unmarked
from lexbandits.forecasting.forecast import Forecast, forecast
from lexbandits.report.html_page import Format, format_of, page_of, section, toml_word
from lexbandits.study.core.verification import Verification
from lexbandits.study.number_format import amount, count, estimand, listed, many, toml_key
from lexbandits.study.states import Severity, StudyState
from lexbandits.study.storage.contract import MEMORY
from lexbandits.study.study import Study
from lexbandits.views import drawing
from lexbandits.views.arms_table import arms_table
from lexbandits.views.estimates import Estimates
from lexbandits.views.history import verified
from lexbandits.views.item_table import ByItem
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import Part, join, tag

MOST_IN_A_FILE = 20_000  # items whose values a report carries as a CSV
MOST_ITEMS = 200  # more are not written out


def write(study: Study, path: Path, format: str | None = None) -> Path:
    """Write the report; the format follows from the name unless given."""
    chosen = format_of(path, format)
    text = Contents.of(study).written(chosen)
    with beside(path) as new:
        new.write_text(text, encoding="utf-8", errors="backslashreplace")  # an item may be no UTF-8
    return path


@dataclass(frozen=True)
class Contents:
    """What a report says, whatever it looks like."""

    study: Study
    view: StudyView
    forecast: Forecast | None
    verification: Verification

    @classmethod
    def of(cls, study: Study) -> "Contents":
        """Of a study as it stands."""
        view = StudyView.of(study)
        coming = None if view.state == StudyState.FINISHED else coming_of(study)
        return cls(study, view, coming, verified(study, view.estimates.replay))

    # --- words

    @property
    def estimates(self) -> Estimates:
        """What it is made of."""
        return self.view.estimates

    @property
    def title(self) -> str:
        """What it is about."""
        return f"{self.estimates.name}: which arm to use"

    @property
    def subtitle(self) -> str:
        """How large, and when."""
        estimates = self.estimates
        arms, objectives = len(estimates.arms), len(estimates.columns)
        at = datetime.fromtimestamp(estimates.replay.projection.at, UTC)
        what = "ended" if estimates.state == StudyState.FINISHED else "as of"
        results = many(estimates.results, "result")
        if estimates.folded < estimates.results:
            results += f" ({count(estimates.folded)} of them count)"
        size = f"{results}, {many(arms, 'arm')}, {many(objectives, 'objective')}"
        return f"Report of a lexicographic study: {size}; {what} {at:%d %B %Y %H:%M} UTC"

    @property
    def question(self) -> list[tuple[str, bool]]:
        """The question in one sentence: pieces of text, and whether each is an objective's name."""
        estimates = self.estimates
        pieces = [(f"Among {listed(estimates.arms)}: ", False)]
        for column in estimates.columns:
            objective = estimates.objectives[column]
            if objective.limit is not None:
                word = "at most" if objective.at_most is not None else "at least"
                before, after = "", f" of {word} {amount(objective, objective.limit)}"
            else:
                best = "highest" if objective.sign > 0 else "lowest"
                margin = objective.margin_in_unit
                matter = f" (margin {amount(objective, margin)})" if margin else ""
                before, after = f"the {best} ", matter
            about = f" ({of})" if (of := estimand(objective)) else ""
            start = "" if len(pieces) == 1 else "; of those, "
            pieces += [(f"{start}which has {before}", False), (objective.name, True), (about + after, False)]
        return [*pieces, ("?", False)]

    @property
    def specification(self) -> str:
        """The question as a TOML file."""
        return toml(self.study.spec)

    @property
    def verifying(self) -> tuple[str, str]:
        """How to replay the journal: in words, and the command or the call."""
        where, name, digest = self.study.storage, self.estimates.name, self.verification.sha256
        if where == MEMORY:
            say = (
                "This study lives in the memory of the program that made it, where no command can reach it, "
                "as it could with storage=. That program can replay it and compare its end and its digest:"
            )
            return say, f'study.verify("{digest}")'
        say = "The journal alone gives this report again. Replay it and compare its end and its digest:"
        where = shlex.quote(where)
        return say, f"lexbandits study verify {shlex.quote(name)} --storage {where} --digest {digest}"

    @property
    def checks(self) -> list[tuple[str, str]]:
        """What to compare."""
        estimates, found = self.estimates, self.verification
        projection, m, rows = estimates.replay.projection, len(estimates.columns), estimates.spec.max_arms
        replayed = (
            "the replay confirms the record" if found.ok else f"the replay finds: {'; '.join(found.problems)}"
        )
        pairs = rows * (rows - 1) // 2
        shared = f"{many(m, 'objective')} and {many(pairs, 'pair')}"
        versions = [
            f"lexbandits {lexbandits.__version__}",
            f"Python {platform.python_version()}",
            f"numpy {np.__version__}",
        ]
        if projection.version != lexbandits.__version__:
            versions.append(f"the study was made by lexbandits {projection.version}")
        return [
            ("SHA-256 of the record", found.sha256),
            ("Events", f"{count(found.events)}; {replayed}"),
            ("Versions", ", ".join(versions)),
            (
                "Method",
                f"{projection.policy}: differences in common passes, intervals valid at all times, "
                f"δ = {estimates.spec.delta:g} shared over {shared}",
            ),
        ]

    # --- HTML

    def written(self, format: Format) -> str:
        """The report in a format."""
        return self.html() if format is Format.HTML else self.markdown()

    def html(self) -> str:
        """The whole page."""
        estimates = self.estimates
        body = [
            self._header(),
            section("Question", tag("p", [tag("b", t) if b else t for t, b in self.question], kind="lead")),
            section("Answer", self._answer()),
            section("Arms by objective", tag("div", arms_table(self.view), kind="panel"), full=True),
            section(*drawing.stories(self.view).parts),
            [section(*drawing.compared(self.view, found).parts) for found in self.view.comparisons],
        ]
        if estimates.results:
            body.append(section(*drawing.course(self.view, drawing.phases(estimates), self.forecast).parts))
        if self.forecast is not None:
            body.append(section(*drawing.outlook(self.forecast).parts))
        if self.view.by_item is not None and estimates.results:
            body.append(section("Every item", self._items(self.view.by_item), full=True))
        cost = self.view.cost
        body += [
            section(
                "What learning cost", tag("p", "Nothing was measured." if cost is None else cost.sentence)
            ),
            section("Assumptions and diagnostics", self._diagnostics()),
            section("Specification", tag("pre", self.specification, tabindex=0)),
            section("How to verify", self._checks()),
        ]
        units = [objective.unit for objective in estimates.objectives]
        return page_of(f"{estimates.name}: report", join(body), units)

    def _header(self) -> Markup:
        title = tag("h1", self.title, " ", drawing.badge(self.view))
        return tag("header", title, tag("p", self.subtitle), kind="title")

    def _answer(self) -> Markup:
        figure, sure = drawing.certificate(self.view), self.view.answer.certified
        lead = tag("p", drawing.headline(self.view), kind="lead")
        head = tag("h3", figure.title, kind="tick" if sure else None)
        return join([lead, tag("div", head, figure.body, kind="sure" if sure else "sure not")])

    def _items(self, table: ByItem) -> Part:
        if len(table.items) > MOST_IN_A_FILE:
            how = f"lexbandits study items {shlex.quote(self.estimates.name)} items.csv"
            return [table.table(), tag("p", f"All of them: {how}")]
        content = b64encode(table.csv().encode("utf-8", "backslashreplace")).decode()
        name, link = "items.csv", f"data:text/csv;base64,{content}"
        return [table.table(), tag("p", tag("a", "Download as CSV", href=link, download=name))]

    def _diagnostics(self) -> Markup:
        rows = [
            tag(
                "tr",
                tag("td", diagnostic.assumption),
                tag("td", diagnostic.observed),
                tag(
                    "td",
                    diagnostic.severity.label,
                    kind="warnt" if diagnostic.severity == Severity.WARNING else "mut",
                ),
            )
            for diagnostic in self.view.diagnostics
        ]
        heads = [tag("th", head, scope="col") for head in ("Assumption", "Observed", "Severity")]
        return tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), kind="mini as")

    def _checks(self) -> Markup:
        rows = [
            tag("tr", tag("th", name, scope="row", kind="mut"), tag("td", text)) for name, text in self.checks
        ]
        say, call = self.verifying
        command = tag("p", say), tag("pre", call, tabindex=0)
        return join([command, tag("table", tag("tbody", rows), kind="mini checks")])

    # --- Markdown

    def markdown(self) -> str:
        """The same without figures, for a pull request."""
        head, lines = self.view.claimed
        blocks = [
            f"# {unmarked(self.title)}",
            f"{self.view.badge}. {unmarked(self.subtitle)}.",
            "## Question",
            "".join(f"*{unmarked(text)}*" if strong else unmarked(text) for text, strong in self.question),
            "## Answer",
            f"**{unmarked(self.view.headline)}**",
            "\n>\n".join([f"> {head}.", *(f"> {unmarked(line)}" for line in lines)]),
            "## Arms",
            "\n".join(f"- {unmarked(arm.sentence)}" for arm in self.view.explanations),
            self._markdown_table(),
        ]
        if self.view.by_item is not None and self.estimates.results:
            blocks += ["## Items", self.view.by_item.summary]
        if self.forecast is not None:
            blocks += ["## Forecast", "\n".join(f"- {unmarked(line)}" for line in self.forecast.lines)]
        if self.view.cost is not None:
            blocks += ["## What learning cost", unmarked(self.view.cost.sentence)]
        diagnostics = [
            f"| {unmarked(s.assumption)} | {unmarked(s.observed)} | {s.severity.label} |"
            for s in self.view.diagnostics
        ]
        blocks += [
            "## Assumptions and diagnostics",
            "\n".join(["| Assumption | Observed | Severity |", "| --- | --- | --- |", *diagnostics]),
            "## Specification",
            f"```toml\n{self.specification}\n```",
            "## How to verify",
            self.verifying[0],
            f"```\n{printable(self.verifying[1])}\n```",
            "\n".join(f"- {name}: {unmarked(text)}" for name, text in self.checks),
        ]
        return "\n\n".join(blocks) + "\n"

    def _markdown_table(self) -> str:
        objectives = self.view.objectives
        heads = [
            f"{unmarked(objective.name)} ({unmarked(f'{objective.rule}, {objective.matters}')})"
            for objective in objectives
        ]
        rows = [
            f"| Arm | Stands | {' | '.join(heads)} | Measured |",
            f"| --- | --- | {' | '.join('---' for _ in heads)} | ---: |",
            f"| | | {' | '.join(objective.message for objective in objectives)} | |",
        ]
        for arm in self.view.arms:
            cells = [unmarked(cell.in_full) for cell in arm.objectives.values()]
            name = f"**{unmarked(arm.name)}**" if arm.leads else unmarked(arm.name)
            rows.append(f"| {name} | {arm.label} | {' | '.join(cells)} | {count(arm.results)} |")
        return "\n".join(rows)


def coming_of(study: Study) -> Forecast | None:
    """A forecast, unless too little was measured for one."""
    try:
        return forecast(study, runs=100)
    except ValueError:
        return None


# --- the question as a file


def toml(spec: dict[str, Any]) -> str:
    """The spec as the TOML file that makes the same study."""
    study = {k: v for k, v in spec.items() if v is not None and k not in ("arms", "objectives")}
    lines = ["[study]"]
    items = study.pop("items", None)
    lines += [f"{key} = {toml_word(found)}" for key, found in study.items() if key != "source"]
    source = study.pop("source", None)
    if source is not None:
        lines += [f"items = {toml_word(source['file'])}", f"# SHA-256 of it {source['sha256']}"]
    elif items is not None and len(items) <= MOST_ITEMS and not any(isinstance(i, dict) for i in items):
        lines.append(f"items = {toml_word(items)}")
    elif items is not None:
        lines.append(f"# items: {len(items)} of them, in the journal")
    plain = all(isinstance(arm, str) for arm in spec["arms"])
    if plain:
        lines.append(f"arms = {toml_word(spec['arms'])}")
    tables = [("objectives", row) for row in spec["objectives"]]
    tables += (
        [] if plain else [("arms", {"name": row} if isinstance(row, str) else row) for row in spec["arms"]]
    )
    for table, row in tables:
        lines += [
            "",
            f"[[{table}]]",
            *(f"{toml_key(key)} = {toml_word(found)}" for key, found in row.items()),
        ]
    return "\n".join(lines)
