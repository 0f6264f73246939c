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
from lexbandits.forecasting.forecast import Forecast, forecast
from lexbandits.insight.page import kind_of, page_of, section, toml_word
from lexbandits.picture import draw
from lexbandits.picture.history import verified
from lexbandits.picture.items import ByItem
from lexbandits.picture.ladder import ladder
from lexbandits.picture.picture import Picture
from lexbandits.picture.svg import Part, join, tag
from lexbandits.picture.view import View
from lexbandits.printable import printable, unmarked
from lexbandits.study.files import beside
from lexbandits.study.record.verification import Verification
from lexbandits.study.study import Study
from lexbandits.study.words import amount, count, estimand, listed, many, toml_key

MOST_IN_A_FILE = 20_000  # items whose values a report carries as a CSV
MOST_ITEMS = 200  # more are not written out


def write(study: Study, path: Path, format: str | None = None) -> Path:
    """Write the report; the format follows from the name unless given."""
    kind = kind_of(path, format)
    contents = Contents.of(study)
    text = contents.html() if kind == "html" else contents.markdown()
    with beside(path) as new:
        new.write_text(text, encoding="utf-8", errors="backslashreplace")  # an item may be no UTF-8
    return path


@dataclass(frozen=True)
class Contents:
    """What a report says, whatever it looks like."""

    study: Study
    picture: Picture
    forecast: Forecast | None
    verification: Verification

    @classmethod
    def of(cls, study: Study) -> "Contents":
        """Of a study as it stands."""
        picture = Picture.of(study)
        coming = None if picture.state == "finished" else coming_of(study)
        return cls(study, picture, coming, verified(study, picture.view.fold))

    # --- words

    @property
    def view(self) -> View:
        """What it is made of."""
        return self.picture.view

    @property
    def title(self) -> str:
        """What it is about."""
        return f"{self.view.name}: which arm to use"

    @property
    def subtitle(self) -> str:
        """How large, and when."""
        view = self.view
        arms, objectives = len(view.arms), len(view.columns)
        at = datetime.fromtimestamp(view.fold.ledger.at, UTC)
        what = "ended" if view.state == "finished" else "as of"
        results = many(view.results, "result")
        if view.folded < view.results:
            results += f" ({count(view.folded)} of them count)"
        size = f"{results}, {many(arms, 'arm')}, {many(objectives, 'objective')}"
        return f"Report of a lexicographic study: {size}; {what} {at:%d %B %Y %H:%M} UTC"

    @property
    def question(self) -> list[tuple[str, bool]]:
        """The question in one sentence: pieces of text, and whether each is an objective's name."""
        view = self.view
        pieces = [(f"Among {listed(view.arms)}: ", False)]
        for column in view.columns:
            objective = view.objectives[column]
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
        where, name, digest = self.study.storage, self.view.name, self.verification.sha256
        if where == "memory":
            say = (
                "This study lives in the memory of the program that made it, where no command can reach it, "
                "as it could with storage=. That program can replay it and compare its end and its digest:"
            )
            return say, f'study.verify("{digest}")'
        say = "The journal alone gives this report again. Replay it and compare its end and its digest:"
        where = shlex.quote(where)
        return say, f"lexbandits study verify {shlex.quote(name)} --storage {where} --record {digest}"

    @property
    def checks(self) -> list[tuple[str, str]]:
        """What to compare."""
        view, found = self.view, self.verification
        ledger, m, rows = view.fold.ledger, len(view.columns), view.spec.max_arms
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
        if ledger.version != lexbandits.__version__:
            versions.append(f"the study was made by lexbandits {ledger.version}")
        return [
            ("SHA-256 of the record", found.sha256),
            ("Events", f"{count(found.events)}; {replayed}"),
            ("Versions", ", ".join(versions)),
            (
                "Method",
                f"{ledger.policy}: differences in common passes, intervals valid at all times, "
                f"δ = {view.spec.delta:g} shared over {shared}",
            ),
        ]

    # --- HTML

    def html(self) -> str:
        """The whole page."""
        view = self.view
        body = [
            self._header(),
            section("Question", tag("p", [tag("b", t) if b else t for t, b in self.question], kind="lead")),
            section("Answer", self._answer()),
            section(*draw.stories(self.picture).parts),
            section(
                "The order, and who stopped where", tag("div", ladder(self.picture), kind="panel"), full=True
            ),
            [section(*draw.compared(self.picture, found).parts) for found in self.picture.comparisons],
        ]
        if view.results:
            body.append(section(*draw.course(self.picture, draw.phases(view), self.forecast).parts))
        if self.forecast is not None:
            body.append(section(*draw.outlook(self.forecast).parts))
        if self.picture.by_item is not None and view.results:
            body.append(section("Every item", self._items(self.picture.by_item), full=True))
        costs = [tag("p", cost.sentence) for cost in self.picture.costs]
        body += [
            section("What learning cost", costs or tag("p", "Nothing was measured.")),
            section("Assumptions, and what strained them", self._strains()),
            section("Specification", tag("pre", self.specification, tabindex=0)),
            section("How to verify", self._checks()),
        ]
        units = [objective.unit for objective in view.objectives]
        return page_of(f"{view.name}: report", join(body), units)

    def _header(self) -> Markup:
        title = tag("h1", self.title, " ", draw.pill(self.picture))
        return tag("header", title, tag("p", self.subtitle), kind="title")

    def _answer(self) -> Markup:
        figure, sure = draw.certificate(self.picture), self.picture.answer.certified
        lead = tag("p", draw.headline(self.picture), kind="lead")
        head = tag("h3", figure.title, kind="tick" if sure else None)
        return join([lead, tag("div", head, figure.body, kind="sure" if sure else "sure not")])

    def _items(self, table: ByItem) -> Part:
        if len(table.items) > MOST_IN_A_FILE:
            how = f"lexbandits study items {shlex.quote(self.view.name)} items.csv"
            return [table.table(), tag("p", f"All of them: {how}")]
        content = b64encode(table.csv().encode("utf-8", "backslashreplace")).decode()
        name, link = "items.csv", f"data:text/csv;base64,{content}"
        return [table.table(), tag("p", tag("a", "Download as CSV", href=link, download=name))]

    def _strains(self) -> Markup:
        rows = [
            tag(
                "tr",
                tag("td", strain.assumption),
                tag("td", strain.happened),
                tag("td", strain.level, kind="warnt" if strain.level == "strained" else "mut"),
            )
            for strain in self.picture.strains
        ]
        heads = [tag("th", head, scope="col") for head in ("Assumed", "What happened", "Strain")]
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
        head, lines = draw.claimed(self.picture)
        blocks = [
            f"# {unmarked(self.title)}",
            f"{self.picture.pill}. {unmarked(self.subtitle)}.",
            "## Question",
            "".join(f"*{unmarked(text)}*" if strong else unmarked(text) for text, strong in self.question),
            "## Answer",
            f"**{unmarked(self.picture.headline)}**",
            "\n>\n".join([f"> {head}.", *(f"> {unmarked(line)}" for line in lines)]),
            "## Arms",
            "\n".join(f"- {unmarked(story.sentence)}" for story in self.picture.stories),
            self._markdown_table(),
        ]
        if self.picture.by_item is not None and self.view.results:
            blocks += ["## Items", self.picture.by_item.summary]
        if self.forecast is not None:
            blocks += ["## Forecast", "\n".join(f"- {unmarked(line)}" for line in self.forecast.lines)]
        if self.picture.costs:
            blocks += [
                "## What learning cost",
                "\n".join(f"- {unmarked(c.sentence)}" for c in self.picture.costs),
            ]
        strains = [
            f"| {unmarked(s.assumption)} | {unmarked(s.happened)} | {s.level} |" for s in self.picture.strains
        ]
        blocks += [
            "## Assumptions, and what strained them",
            "\n".join(["| Assumed | What happened | Strain |", "| --- | --- | --- |", *strains]),
            "## Specification",
            f"```toml\n{self.specification}\n```",
            "## How to verify",
            self.verifying[0],
            f"```\n{printable(self.verifying[1])}\n```",
            "\n".join(f"- {name}: {unmarked(text)}" for name, text in self.checks),
        ]
        return "\n\n".join(blocks) + "\n"

    def _markdown_table(self) -> str:
        rungs = self.picture.objectives
        heads = [f"{unmarked(rung.name)} ({unmarked(f'{rung.rule}, {rung.matters}')})" for rung in rungs]
        rows = [
            f"| Arm | Stands | {' | '.join(heads)} | Measured |",
            f"| --- | --- | {' | '.join('---' for _ in heads)} | ---: |",
            f"| | | {' | '.join(rung.said for rung in rungs)} | |",
        ]
        for arm in self.picture.arms:
            cells = [unmarked(cell.said) for cell in arm.objectives.values()]
            name = f"**{unmarked(arm.name)}**" if arm.state == "answer" else unmarked(arm.name)
            rows.append(f"| {name} | {arm.standing} | {' | '.join(cells)} | {count(arm.results)} |")
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
