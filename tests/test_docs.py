"""Are the documents true? Their examples run, and every row of PAPER.md resolves."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import lexbandits as lb

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")])
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_give_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS)
    assert result.failed == 0


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "PAPER.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name
)
def test_links_between_pages_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def modules():
    return [m.name for m in pkgutil.walk_packages(lb.__path__, "lexbandits.")]


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.failed == 0


def test_the_readme_has_an_example():
    assert ">>>" in (ROOT / "README.md").read_text()


def rows():
    table = (ROOT / "PAPER.md").read_text().split("## Symbols")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line[:1] == "|"
    ]
    return cells[2:]


def resolve(path):
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise LookupError(path)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_row_of_the_paper_resolves_to_a_symbol_that_cites_it(row):
    item, symbol, remark = row
    if symbol == "none":
        assert len(remark) > 20, f"{item} needs a sentence that says why it has no symbol"
        return
    found = resolve(symbol.strip("`"))
    document = found.__doc__ or ""
    if item.split()[0] in {
        "Definition",
        "Eq.",
        "Lemma",
        "Theorem",
        "Corollary",
        "Algorithm",
        "Figure",
        "Remark",
    }:
        number = item.split()[1].strip("()")
        cited = re.search(
            rf"(Definitions?|Eqs?\.|Lemmas?|Theorems?|Corollary|Algorithms?|Figures?|Remarks?)[^.;]*\b{number}\b",
            document,
        )
        assert cited, f"the docstring of {symbol} does not cite {item}"
    else:
        assert item in document, f"the docstring of {symbol} does not mention {item}"


def test_every_numbered_item_of_the_paper_has_a_row():
    items = {row[0] for row in rows()}
    expected = {f"Theorem {n}" for n in range(1, 5)} | {f"Lemma {n}" for n in range(1, 8)}
    expected |= {f"Eq. ({n})" for n in range(1, 7)} | {
        "Definition 1",
        "Definition 2",
        "Corollary 1",
        "Table 1",
    }
    expected |= (
        {"Algorithm 1", "Algorithm 2"}
        | {f"Remark {n}" for n in range(1, 5)}
        | {f"Figure {n}" for n in range(1, 4)}
    )
    assert expected <= items


@pytest.mark.parametrize("name", lb.__all__)
def test_every_public_name_exists_and_is_documented(name):
    value = getattr(lb, name)
    if callable(value):
        assert value.__doc__
