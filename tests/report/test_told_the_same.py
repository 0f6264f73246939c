"""JSON, page, both reports and the terminal say the same of any study, and claim no more than was proven.

Each view is read into one shape: {arm: (outcome, label, {objective: (mean, range, why)})}. Tables of page
and report have the class `arms-table`, a row per arm with `data-arm` and `data-outcome`, cells with
`data-objective`; the words are in `.standing`, `.m`, `.r` and `.why`.
"""

import io
import json
import math
import re
from html.parser import HTMLParser
from urllib.parse import quote

import numpy as np
import pytest
from rich.console import Console

import lexbandits as lb
from lexbandits.report import study_report, terminal_report
from lexbandits.views.view_parts import LABELS
from support.services import Service, fast

STUDIES, ON_THE_PAGE = 60, 30
ARMS = [
    "it's",
    'say "hi"',
    "<b>bold</b>",
    "עברית 1",
    "two words",
    "a|b*c_d",
    "could not be measured",
    "plain",
]
NAMES = ["correct", "<i>cost</i>", "זמן תגובה", 'it\'s "how" long', "size | MB", "re_fus*als"]
ENDS = (
    ["certified"] * 4
    + ["under way"] * 3
    + ["empty", "by hand", "paused", "spent", "amended", "withdrawn", "failed"]
)
NUMBER = r"−?\d+(?:,\d{3})*(?:\.\d+)?"


# --- studies in every state


def objective(rng, name, first, of_list, arms):
    slack = float(rng.choice([0.013, 0.4, 1.0]))
    kind = rng.choice(["gaussian", "bernoulli", "bounded", "exact", "limit"], p=[0.3, 0.2, 0.2, 0.15, 0.15])
    way = str(rng.choice(["maximize", "minimize"]))
    unit = str(rng.choice(["", "ms", "<MB>"]))
    if kind == "bounded" and not of_list and rng.random() < 0.5:  # in percent
        of = {"reference": str(rng.choice(arms))} if rng.random() < 0.5 else {}
        precise = {"margin": "50%", "tie": "20%", "noise": ("bounded", 0, 100)}
        return lb.Objective(name, way, unit=unit, **precise, **of)
    if kind == "limit":
        within = {"at_most" if way == "minimize" else "at_least": 0.5}
        return lb.Objective(name, way, unit=unit, slack=0.4, noise="bernoulli", **within)
    if kind == "bernoulli":
        return lb.Objective(name, way, margin=0.3, noise="bernoulli")
    if kind == "bounded":
        return lb.Objective(name, way, unit=unit, margin=50, tie=20, noise=("bounded", 0, 100))
    if kind == "exact" and not first:
        return lb.Objective(name, way, unit=unit, margin=float(rng.choice([0.0, 0.1])), noise="exact")
    return lb.Objective(name, way, unit=unit, margin=3 * slack, tie=slack, noise="gaussian")


def measured(rng, objectives, tilt):
    """Values of one arm; `tilt` is how good it is on each, from 0 to 1."""
    values = {}
    for o, good in zip(objectives, tilt, strict=True):
        share = good if o.direction == "maximize" else 1 - good
        if o.noise == "bernoulli":
            values[o.name] = int(rng.random() < 0.1 + 0.8 * share)
        elif o.noise == "exact":
            values[o.name] = 0.1 * round(4 * share)
        elif o.noise == "gaussian":
            spread = o.margin_in_unit
            values[o.name] = float(rng.normal(2 * spread * share, 0.5 * spread))
        else:
            values[o.name] = float(100 * np.clip(rng.normal(0.2 + 0.6 * share, 0.05), 0, 1))
    return values


def played(seed, storage):
    """A small study in some state."""
    rng, end = np.random.default_rng(seed), ENDS[seed % len(ENDS)]
    arms = [str(a) for a in rng.permutation(ARMS)[: rng.integers(2, 6)]]
    names = [str(n) for n in rng.permutation(NAMES)[: rng.integers(1, 4)]]
    of_list = end != "spent" and seed % 3 == 0
    objectives = [objective(rng, name, k == 0, of_list, arms) for k, name in enumerate(names)]
    tilts = {arm: rng.choice([0.0, 0.5, 0.5, 1.0], len(objectives)) for arm in arms}
    if seed % 9 == 2:  # nobody meets a limit
        objectives[0] = lb.Objective(names[0], at_least=0.4, slack=0.2, noise="bernoulli")
        tilts = {arm: [0.0, *tilt[1:]] for arm, tilt in tilts.items()}
    how = {"delta": 0.2, "preregistered": bool(rng.integers(2)), "max_failures": 3}
    if end == "spent":
        sample = {"items": list(range(4)), "seed": 1, "scope": "population"}
        how |= {"budget": 12} if seed % 4 == 2 else sample
    elif of_list:  # some of it is lost
        how |= {"items": [f"q{i}" for i in range(40)], "seed": seed, "max_failures": 50}
    study = lb.create_study(
        f"{seed} <'{arms[0]}", storage, arms=arms, objectives=objectives, **{"seed": 0, **how}
    )
    most = {"certified": 1200, "failed": 60, "empty": 0}.get(end, int(rng.integers(6, 50)))
    size, told = (24, 0) if end == "certified" else (len(arms), 0)
    while told < most and (trials := study.ask_many(size, worker="w")):
        told += len(trials)
        lost = [trial for trial in trials if end == "failed" and trial.arm == arms[-1]]
        lost += [t for t in trials if "items" in how and t not in lost and rng.random() < 0.02]
        for trial in lost:
            study.fail(trial, "connection <refused>")
        kept = [trial for trial in trials if trial not in lost]
        study.tell_many([(trial, measured(rng, objectives, tilts[trial.arm])) for trial in kept])
    if study.status.state != "measuring":
        return study
    if end == "paused":
        study.pause("could not be measured on <Sunday>")
    elif end == "by hand":
        study.end("it's enough")
    elif end == "amended" and isinstance(objectives[0].margin, float) and objectives[0].noise != "exact":
        study.amend(objectives[0].name, margin=1.5 * objectives[0].margin_in_unit)
    elif end == "withdrawn" and arms[0] not in [o.reference for o in objectives]:
        study.withdraw(arms[0], "could not be measured well: <too dear>")
    return study


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(fast(tmp_path_factory.mktemp("same")))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def studies(service):
    return [played(seed, service.storage) for seed in range(STUDIES)]


@pytest.fixture(scope="module")
def given(service, studies):
    """What the service gives."""
    with service.client() as client:
        return [client.get(f"/api/studies/{quote(study.name, safe='')}").json() for study in studies]


# --- how each view is read


def from_json(words):
    return {
        arm["name"]: (
            arm["decision"]["outcome"],
            arm["label"],
            {name: (c["shown"], c["range"], c["why"]) for name, c in arm["objectives"].items()},
        )
        for arm in sorted(words["arms"], key=lambda arm: arm["rank"])
    }


class ArmsTable(HTMLParser):
    """The rows of table.arms-table."""

    def __init__(self, text):
        super().__init__()
        self.arms, self._open, self._row, self._cell = {}, [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in ("meta", "line", "circle", "rect", "path", "col", "br"):
            self._open.append((tag, found.get("class") or ""))
        if tag == "tr" and "data-arm" in found:
            self._row = self.arms[found["data-arm"]] = [found["data-outcome"], "", {}]
        if "data-objective" in found and self._row is not None:
            self._cell = self._row[2][found["data-objective"]] = ["", "", ""]

    def handle_endtag(self, tag):
        if self._open and self._open[-1][0] == tag:
            self._open.pop()

    def handle_data(self, text):
        kinds = {kind for _, kinds in self._open for kind in kinds.split()}
        if self._row is None:
            return
        if "standing" in kinds:
            self._row[1] += text
        for k, kind in enumerate(("m", "r", "why")):
            if kind in kinds and self._cell is not None:
                self._cell[k] += text


def tidy(text):
    return " ".join(text.split())  # no-break spaces too


def from_html(text):
    rows = ArmsTable(text).arms
    return {
        arm: (code, tidy(said), {o: tuple(map(tidy, cell)) for o, cell in cells.items()})
        for arm, (code, said, cells) in rows.items()
    }


READ_PAGE = """() => {
  const text = (where, kind) => where.querySelector(kind)?.textContent ?? "";
  const all = (where, kind) => [...where.querySelectorAll(kind)];
  const cell = (td) => [td.dataset.objective, [".m", ".r", ".why"].map((kind) => text(td, kind))];
  const cells = (row) => Object.fromEntries(all(row, "[data-objective]").map(cell));
  const row = (tr) => [tr.dataset.arm, [tr.dataset.outcome, text(tr, ".standing"), cells(tr)]];
  return Object.fromEntries(all(document, ".arms-table tbody tr[data-arm]").map(row));
}"""


def cell_in_words(mean, span, why):
    """As a table of plain text has it."""
    return f"{mean}{f' ({span})' if span else ''}{f'; {why}' if why else ''}"


def in_words(arms):
    """What a table of plain text must say, from what the service gives: its rows."""
    return [
        [arm, said, *(cell_in_words(*cell) for cell in cells.values())]
        for arm, (_, said, cells) in arms.items()
    ]


def from_markdown(text):
    """The rows of the table of arms: arm, standing, a cell per objective."""
    table = re.search(r"(?m)^\| Arm \|.*\n\|.*\n\|.*\n((?:\|.*\n)+)", text)[1]
    rows = [re.split(r"(?<!\\)\|", line)[1:-2] for line in table.splitlines()]
    return [[tidy(re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)\*\*", "", cell))) for cell in row] for row in rows]


def from_terminal(study):
    out = io.StringIO()
    terminal_report.print_explanation(study, console=Console(file=out, width=2000))
    return tidy(out.getvalue())


# --- they agree


def test_the_studies_are_in_every_state(studies, given):
    states = [words["state"] for words in given]
    assert set(states) == {"measuring", "finished", "paused", "budget_spent", "items_spent"}
    assert sum(words["answer"]["certified"] for words in given) >= 12
    flags = {flag for words in given for flag in words["answer"]["flags"]}
    assert {"arm_excluded", "rules_changed", "infeasible"} <= flags
    decisions = [arm["decision"] for words in given for arm in words["arms"]]
    assert {decision["outcome"] for decision in decisions} == set(lb.ArmOutcome)
    assert {decision["by"] for decision in decisions} == {None, *lb.DecidedBy}
    labels = {arm["label"] for words in given for arm in words["arms"]}
    assert labels == set(LABELS.values())


def test_both_reports_say_what_the_service_gives(studies, given, monkeypatch):
    monkeypatch.setattr(study_report, "coming_of", lambda study: None)  # a forecast takes a second
    for study, words in zip(studies, given, strict=True):
        contents, told = study_report.Contents.of(study), from_json(words)
        shown = from_html(contents.html())
        assert shown == told, study.name
        assert list(shown) == list(told), "and in one order"
        assert from_markdown(contents.markdown()) == in_words(told), study.name


def test_the_terminal_says_what_the_service_gives(studies, given):
    for study, words in zip(studies, given, strict=True):
        text = from_terminal(study)
        for arm, (_, said, cells) in from_json(words).items():
            spans = [cell_in_words(mean, span.replace(" – ", "–"), "") for mean, span, _ in cells.values()]
            assert tidy(" ".join([arm, said, *spans])) in text, study.name
            story = re.search(rf"{re.escape(arm)} (?:was|is) (?:excluded|outside|undecided).*", text)
            decided = [
                n for *_, why in cells.values() for n in re.findall(rf"(?:by|least|most) ({NUMBER})", why)
            ]
            assert all(n in story[0] for n in decided), (study.name, "why is in the sentence", decided)


def test_the_page_says_what_the_service_gives(service, studies, given, browser):
    page = browser.new_page()
    page.goto(f"{service.address}/#token={service.token}")
    for study, words in list(zip(studies, given, strict=True))[:ON_THE_PAGE]:
        page.goto(f"{service.address}/#/study/{quote(study.name, safe='')}")
        page.wait_for_function(
            "name => document.querySelector('h1 .name')?.textContent === name", arg=study.name
        )
        shown = {
            arm: (code, tidy(said), {o: tuple(map(tidy, cell)) for o, cell in cells.items()})
            for arm, (code, said, cells) in page.evaluate(READ_PAGE).items()
        }
        assert shown == from_json(words), study.name
        assert list(shown) == list(from_json(words)), "and in one order"
    page.close()


# --- no claim is sharper than what was proven


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def check_range(text, low, high, where):
    """An interval in words holds the interval that was proven."""
    for found, least in re.findall(rf"({NUMBER})( – |$)", text):
        shown = number(found)
        assert shown <= low * (1 + 1e-12) if least.strip() else shown >= high * (1 - 1e-12), (
            where,
            text,
            low,
            high,
        )


def test_what_is_claimed_was_proven(studies, given):
    for study, words in zip(studies, given, strict=True):
        policy, names = study.policy, list(study.arms)
        declared = {o.name: (k, o) for k, o in enumerate(study.objectives)}
        columns = [list(study.spec["objectives"]).index(o) for o in study.spec["objectives"]]
        assert columns == list(range(len(declared)))
        for arm in words["arms"]:
            index = names.index(arm["name"])
            for name, cell in arm["objectives"].items():
                column, o = declared[name]
                ends = sorted((o.sign * policy.intervals[index, column]).tolist())
                always = cell["always_low"], cell["always_high"]
                known = [None if math.isinf(end) or math.isnan(end) else end for end in ends]
                assert always == pytest.approx(tuple(known), abs=1e-12), (study.name, cell, ends)
                if cell["range"] and "–" in cell["range"]:  # rounded outwards
                    check_range(cell["range"], cell["low"], cell["high"], study.name)
                if least := re.search(rf"at least ({NUMBER})", cell["why"]):
                    assert number(least[1]) <= proven(policy, names, arm, declared), (study.name, cell)
                if beyond := re.search(rf"certified (?:more|less) than ({NUMBER})", cell["why"]):
                    assert number(beyond[1]) == o.limit, (study.name, cell)


def proven(policy, names, arm, declared):
    """How far an arm is out, by the policy's own floats."""
    column, _ = declared[arm["decision"]["objective"]]
    index, rival = names.index(arm["name"]), arm["decision"]["rival"]
    return float(policy.differences[names.index(rival), index, column, 0])


def test_reasons_and_claims_are_no_sharper_than_their_numbers(studies):
    for study in studies:
        found = study.explain()
        worst = {claim.objective: claim.worst for claim in found.claims}
        for reason in [reason for story in found.arms for reason in story.reasons]:
            text = reason.sentence.partition("at the study's confidence")[0]
            if shown := re.search(rf"at most ({NUMBER})[^;]* (?:below|above) the best", text):  # the answer's
                assert number(shown[1]) >= (worst[reason.objective] or 0.0) * (1 - 1e-9), reason
                continue
            for word, end in (("at least", reason.low), ("at most", reason.high)):
                for shown in re.findall(rf"{word} ({NUMBER})", text):
                    close = abs(number(shown) - end) <= 1e-9 * abs(end)
                    if "better than" in text and reason.rival is not None:
                        assert number(shown) <= -reason.high + 1e-12
                    else:
                        assert close or (number(shown) <= end if word == "at least" else number(shown) >= end)
        for claim in found.claims:
            shown = re.search(rf"is (?:shown to be )?at most ({NUMBER})", claim.sentence)
            if claim.worst and shown:
                assert number(shown[1]) >= claim.worst * (1 - 1e-9), claim
        json.dumps(found.as_json(), allow_nan=False)
        assert not re.search(r"e−\d\d|is 0\.0+ (better|worse)|\bnan\b|\binf\b", str(found)), study.name
