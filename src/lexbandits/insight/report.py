"""One file from which a stranger can check a study's answer: HTML without scripts, or Markdown."""

import json
import platform
import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

import lexbandits
from lexbandits.forecasting.forecast import Forecast, forecast
from lexbandits.picture import exits as fates
from lexbandits.picture.exits import fate_of
from lexbandits.picture.explain import Explanation, explanation_of
from lexbandits.picture.ladder import ladder, rule, stage_words
from lexbandits.picture.reasons import AT
from lexbandits.picture.svg import TICK, WARN, differences, element, icon, race, reference
from lexbandits.picture.view import View
from lexbandits.printable import printable, unmarked
from lexbandits.study.objective import Objective
from lexbandits.study.record.verification import Verification
from lexbandits.study.study import Study
from lexbandits.study.words import amount, count, listed, many, percent, toml_key, value

MOST_ITEMS = 200  # more are not written out
DECIDED = (fates.LEFT, fates.BEHIND, fates.BY_THE_MEANS)
FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}


def write(study: Study, path: Path, format: str | None = None) -> Path:
    """Write the report; the format follows from the name unless given."""
    kind = format or FORMATS.get(path.suffix.lower(), "html")
    if kind not in ("html", "md"):
        raise ValueError(f'format must be "html" or "md", got {format!r}')
    contents = Contents.of(study)
    text = contents.html() if kind == "html" else contents.markdown()
    path.write_text(text, encoding="utf-8", errors="backslashreplace")  # an item may be no UTF-8
    return path


@dataclass(frozen=True)
class Contents:
    """What a report says, whatever it looks like."""

    view: View
    explanation: Explanation
    forecast: Forecast | None
    verification: Verification

    @classmethod
    def of(cls, study: Study) -> "Contents":
        """Of a study as it stands."""
        view = View.of(study)
        coming = None
        if view.state != "finished":
            try:
                coming = forecast(study, runs=100)
            except ValueError:  # too little measured
                coming = None
        return cls(view, explanation_of(view), coming, study.verify())

    # --- words

    @property
    def title(self) -> str:
        """What it is about."""
        return f"{self.view.name}: which arm to use"

    @property
    def pill(self) -> str:
        """The state in one word."""
        if self.view.answer.certified:
            return "Certified, with flags" if self.view.answer.flags else "Certified"
        return "Not certified" if self.view.state == "finished" else self.view.state.capitalize()

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
            slack = amount(objective, objective.tolerance_in_unit)
            if objective.target is not None:
                word = "at most" if objective.at_most is not None else "at least"
                before, after = "", f" of {word} {amount(objective, objective.target)}"
            else:
                best = "highest" if objective.sign > 0 else "lowest"
                matter = f", where {slack} does not matter" if objective.tolerance_in_unit else ""
                before, after = f"the {best} ", matter
            start = "" if len(pieces) == 1 else "; of those, "
            pieces += [(f"{start}which has {before}", False), (objective.name, True), (after, False)]
        return [*pieces, ("?", False)]

    @property
    def certificate(self) -> tuple[str, list[str]]:
        """A title and paragraphs."""
        view, claims = self.view, self.explanation.claims
        claimed = [c.sentence for c in claims if c.worst is not None]
        rest = [c.sentence for c in claims if c.worst is None]
        if view.answer.certified:
            sure = f"With probability at least {percent(1 - view.answer.delta)}"
            always = "over everything the study looked at and whenever it looked"
            text = [f"{sure}, {always}: {' '.join(claimed)}", " ".join(rest)]
            return f"Certificate at δ = {percent(view.answer.delta)}", [line for line in text if line]
        return "No certificate", [f"What is known, {AT}: {' '.join(claimed + rest)}"]

    @property
    def deciding(self) -> list[int]:
        """The positions of objectives on which pairs were compared."""
        view = self.view
        return [
            p
            for p, column in enumerate(view.columns)
            if not view.is_target(column)
            and view.stage(p) in ("settled", "being settled")
            and len(view.entered(p)) > 1
            and view.counts[view.entered(p), column].min() > 0
        ]

    @property
    def specification(self) -> str:
        """The question as a TOML file."""
        return toml(self.view.study.spec)

    @property
    def verifying(self) -> tuple[str, str]:
        """How to replay the journal: in words, and the command or the call."""
        where, name = self.view.study.storage, self.view.name
        if where == "memory":
            say = (
                "This study lives in the memory of the program that made it, where no command can reach it, "
                "as it could with storage=. That program can replay it and compare the end and the hash:"
            )
            return say, "study.verify()"
        say = "The journal alone gives this report again. Replay it and compare the end and the hash:"
        return say, f"lexbandits study verify {shlex.quote(name)} --storage {shlex.quote(where)}"

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
            ("SHA-256 of the events", found.sha256),
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
        template = Template((files("lexbandits.insight") / "report.html").read_text("utf-8"))
        sections = [
            ("Question", f'<p class="lead">{"".join(map(_html_piece, self.question))}</p>'),
            ("Answer", self._html_answer()),
            ("Every arm, in one sentence", self._html_arms()),
        ]
        body = [self._html_header(), *(_section(*section) for section in sections)]
        body.append(_section("The order, and who stopped where", ladder(self.view), full=True))
        for position in self.deciding:
            body.append(_section(*self._html_differences(position)))
        if self.view.results:
            body.append(_section("Who left when", f"<figure>{race(self.view)}</figure>"))
        if self.forecast is not None:
            body.append(_section("Forecast", self._html_forecast(self.forecast)))
        body += [
            _section("What learning cost", _html_lines([c.sentence for c in self.explanation.costs])),
            _section("Assumptions, and what strained them", self._html_strains()),
            _section("Specification", f'<pre tabindex="0">{escape(self.specification)}</pre>'),
            _section("How to verify", self._html_checks()),
        ]
        text = _kept_together("\n".join(body), [objective.unit for objective in self.view.objectives])
        return template.substitute(title=escape(f"{self.view.name}: report"), body=text)

    def _html_header(self) -> str:
        kind, mark = ("pill ok", icon(TICK, 11)) if self.view.answer.certified else ("pill", "")
        pill = element("span", f"{mark}{self.pill}", kind=kind)
        title = f"<h1>{escape(self.title)} {pill}</h1><p>{escape(self.subtitle)}</p>"
        return element("header", title, kind="title")

    def _html_answer(self) -> str:
        head, lines = self.certificate
        certified, name = self.view.answer.certified, self.view.answer.arm
        kind, mark = ("cert", icon(TICK, 11)) if certified else ("cert nocert", "")
        rest = escape(self.explanation.sentence.removeprefix(name))
        paragraphs = "".join(f"<p>{escape(line)}</p>" for line in lines)
        lead = element("p", f"<b>{escape(name)}</b>{rest}", kind="lead")
        return lead + element("div", f"<h3>{mark}{head}</h3>{paragraphs}", kind=kind)

    def _html_arms(self) -> str:
        rows = []
        for story in self.explanation.arms:
            rest = escape(story.sentence.removeprefix(story.arm).strip())
            kind = "" if story.standing in ("answer", "candidate") else "o"
            rows.append(element("li", f"<b>{escape(story.arm)}</b><span>{rest}</span>", kind=kind))
        return element("ul", "".join(rows), kind="arms")

    def _html_differences(self, position: int) -> tuple[str, str]:
        view = self.view
        objective = view.objectives[view.columns[position]]
        hint = element("p", escape(self._about_differences(position, objective)), kind="hint")
        decides = "What decided" if view.state == "finished" else "What decides"
        head = decides if self._has_decided(position) else "Differences in"
        return f"{head} {objective.name}", f"{hint}<figure>{differences(view, position)}</figure>"

    def _has_decided(self, position: int) -> bool:
        """Whether the objective tells some arm from the answer, or is about to."""
        view = self.view
        found = [fate_of(view, arm) for arm in view.entered(position) if arm != view.leader]
        being = view.state != "finished" and view.stage(position) == "being settled"
        return being or any(f.position == position and f.kind in DECIDED for f in found)

    def _about_differences(self, position: int, objective: Objective) -> str:
        """How to read the figure; at length the first time."""
        view = self.view
        slack = amount(objective, -objective.tolerance_in_unit + 0.0)
        reach = amount(objective, objective.tolerance_in_unit + objective.resolution_in_unit)
        text = f"Differences to {view.arms[reference(view, position)]} in common passes, with their intervals"
        if position != self.deciding[0]:
            return f"{text}: out below {slack}, tied within ±{reach}."
        text += (
            f" {AT}. An arm leaves once its whole interval is below {slack}; arms tie once all of it lies "
            f"between the dashed lines (±{reach}). "
        )
        if view.is_proven and not view.settled_by_rule(position):
            text += "For the answer it is enough that no interval reaches beyond the right one. "
        return f"{text}Intervals of single arms, above, may overlap although a difference is certain."

    def _html_forecast(self, coming: Forecast) -> str:
        winners = sorted(coming.winners.items(), key=lambda row: -row[1])
        shares = [(arm, percent(share)) for arm, share in winners if share]
        relax = [
            (f"{row.setting} of {row.objective or 'the study'} {row.now:g} → {row.then:g}", row.effect)
            for row in coming.relax
        ]
        tables = [
            _html_table(("Who is likely to win", "futures"), shares),
            _html_table(("What doubling would do", "results"), relax),
        ]
        return f"<p>{escape(coming.sentence)}</p>{''.join(tables)}"

    def _html_strains(self) -> str:
        rows = []
        for strain in self.explanation.strains:
            mark, kind = (icon(WARN, 13), "warnt") if strain.level == "strained" else ("", "mut")
            said = f"<td>{escape(strain.assumption)}</td><td>{escape(strain.happened)}</td>"
            rows.append(f"<tr>{said}{element('td', mark + strain.level, kind=kind)}</tr>")
        widths = (("Assumed", "width:34%"), ("What happened", ""), ("Strain", "width:104px"))
        heads = "".join(element("th", head, scope="col", style=width) for head, width in widths)
        table = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
        return element("table", table, kind="mini as")

    def _html_checks(self) -> str:
        rows = []
        for name, text in self.checks:
            head = element("th", name, scope="row", style="width:180px", kind="mut")
            rows.append(f"<tr>{head}{element('td', escape(text), style='overflow-wrap:anywhere')}</tr>")
        say, call = self.verifying
        command = f"<p>{say}</p>" + element("pre", escape(call), tabindex=0)
        return command + element("table", f"<tbody>{''.join(rows)}</tbody>", kind="mini")

    # --- Markdown

    def markdown(self) -> str:
        """The same without figures, for a pull request."""
        head, lines = self.certificate
        blocks = [
            f"# {unmarked(self.title)}",
            f"{self.pill}. {unmarked(self.subtitle)}.",
            "## Question",
            "".join(f"*{unmarked(text)}*" if strong else unmarked(text) for text, strong in self.question),
            "## Answer",
            f"**{unmarked(self.explanation.sentence)}**",
            "\n>\n".join([f"> {head}.", *(f"> {unmarked(line)}" for line in lines)]),
            "## Arms",
            "\n".join(f"- {unmarked(story.sentence)}" for story in self.explanation.arms),
            self._markdown_table(),
        ]
        if self.forecast is not None:
            blocks += ["## Forecast", "\n".join(f"- {unmarked(line)}" for line in self.forecast.lines)]
        if self.explanation.costs:
            blocks += [
                "## What learning cost",
                "\n".join(f"- {unmarked(c.sentence)}" for c in self.explanation.costs),
            ]
        strains = [
            f"| {unmarked(s.assumption)} | {unmarked(s.happened)} | {s.level} |"
            for s in self.explanation.strains
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
        view = self.view
        objectives = [view.objectives[column] for column in view.columns]
        heads = [f"{unmarked(o.name)} ({unmarked(', '.join(rule(o)))})" for o in objectives]
        stages = [stage_words(view, position) for position in range(len(objectives))]
        rows = [
            f"| Arm | {' | '.join(heads)} | Measured |",
            f"| --- | {' | '.join('---' for _ in heads)} | ---: |",
            f"| | {' | '.join(stages)} | |",
        ]
        for arm in view.by_standing:
            cells = [self._markdown_cell(arm, position) for position in range(len(objectives))]
            name = f"**{unmarked(view.arms[arm])}**" if arm == view.leader else unmarked(view.arms[arm])
            rows.append(f"| {name} | {' | '.join(cells)} | {count(view.measured[arm])} |")
        return "\n".join(rows)

    def _markdown_cell(self, arm: int, position: int) -> str:
        view, column = self.view, self.view.columns[position]
        if not view.counts[arm, column]:
            return "–"
        mean = value(view.objectives[column], view.mean(arm, column))
        if not view.stops(arm) or position < view.position_left(arm):
            return mean
        word = "out" if arm in view.eliminations else "behind"
        return f"{mean}, **{word}**" if position == view.position_left(arm) else f"({mean})"


def _kept_together(text: str, units: list[str]) -> str:
    """No line ends between a number and its unit."""
    words = "|".join(re.escape(escape(unit)) for unit in {*units, "%"} if unit)
    return re.sub(rf"(?<=\d) (?=(?:{words})(?!\w))", "\xa0", text)


def _section(title: str, content: str, *, full: bool = False) -> str:
    kind = ' class="full"' if full else ""
    return f"<section{kind}><h2>{escape(title)}</h2><div>{content}</div></section>"


def _html_table(heads: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    head = f"<th>{heads[0]}</th>{element('th', heads[1], kind='num')}"
    body = "".join(f"<tr><td>{escape(a)}</td>{element('td', escape(b), kind='num')}</tr>" for a, b in rows)
    return element("table", f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>", kind="mini")


def _html_lines(lines: list[str]) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in lines) or "<p>Nothing was measured.</p>"


def _html_piece(piece: tuple[str, bool]) -> str:
    text, strong = piece
    return f"<b>{escape(text)}</b>" if strong else escape(text)


# --- the question as a file


def toml(spec: dict[str, Any]) -> str:
    """The spec as the TOML file that makes the same study."""
    study = {k: v for k, v in spec.items() if v is not None and k not in ("arms", "objectives")}
    lines = ["[study]"]
    items = study.pop("items", None)
    lines += [f"{key} = {_word(found)}" for key, found in study.items()]
    if items is not None and len(items) <= MOST_ITEMS:
        lines.append(f"items = {_word(items)}")
    elif items is not None:
        lines.append(f"# items: {len(items)} of them, in the journal")
    plain = all(isinstance(arm, str) for arm in spec["arms"])
    if plain:
        lines.append(f"arms = {_word(spec['arms'])}")
    tables = [("objectives", row) for row in spec["objectives"]]
    tables += (
        [] if plain else [("arms", {"name": row} if isinstance(row, str) else row) for row in spec["arms"]]
    )
    for table, row in tables:
        lines += ["", f"[[{table}]]", *(f"{toml_key(key)} = {_word(found)}" for key, found in row.items())]
    return "\n".join(lines)


def _word(found: Any) -> str:
    if isinstance(found, (list, tuple)):
        return f"[{', '.join(map(_word, found))}]"
    return printable(json.dumps(found, ensure_ascii=False))  # JSON's text, numbers and booleans are TOML's
