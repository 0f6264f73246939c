"""Are the documents true? Their examples run, their links lead somewhere, every row of PAPER.md resolves."""

import doctest
import importlib
import inspect
import pkgutil
import re
import runpy
import subprocess
import tomllib
import zlib
from enum import EnumType
from operator import attrgetter
from pathlib import Path

import pytest

import lexbandits as lb
from support.consoles import OPTIONS, unlike
from support.public_names import research_names

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
README = (ROOT / "README.md").read_text("utf-8")
LINK = r"\]\(([^)#]+?)(?:#[^)]*)?\)"


def prose(page):
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_give_what_they_show(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    result = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS, encoding="utf-8")
    assert result.failed == 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```console" in page.read_text("utf-8")], ids=lambda p: p.name
)
def test_the_commands_of_a_page_print_what_it_shows(page, tmp_path):
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    assert unlike(page, tmp_path) == []


def test_the_readme_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    [(code, shown)] = re.findall(r"```python\n((?!>>>).*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    exec(code, {})
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages(lb.__path__, "lexbandits.")])
def test_the_examples_in_docstrings_give_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.failed == 0


@pytest.mark.parametrize(
    "name", ["README.md", "docs/getting-started.md", "docs/choosing.md", "docs/studies.md", "docs/judge.md"]
)
def test_a_page_about_use_has_an_example(name):
    assert ">>>" in (ROOT / name).read_text("utf-8")


def test_llms_txt_lists_every_page():
    written = (ROOT / "llms.txt").read_text("utf-8")
    assert written == runpy.run_path(str(ROOT / ".ci" / "llms.py"))["llms"](), "run python .ci/llms.py"
    assert all(f"(docs/{page.name})" in written for page in DOCS if page.stem != "index")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(LINK, prose(page)):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_the_index_leads_to_every_page(page):
    assert page.name in [*re.findall(LINK, prose(ROOT / "docs" / "index.md")), "index.md"]


def test_the_page_of_the_built_package_names_files_where_the_readme_links_to_them():
    """The rule is in pyproject.toml: on a package index there are no files beside the page."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    page = (ROOT / "README.md").read_text("utf-8")
    for rule in settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    assert "getting started (`docs/getting-started.md`)" in page
    assert all("://" in target for target in re.findall(r"\]\(([^)]+)\)", page))


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.stem == "figure3"), id=p.stem) for p in NOTEBOOKS],
)
def test_a_notebook_runs_and_is_kept_without_outputs(path, monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    monkeypatch.setenv("PYTHONWARNINGS", "error::UserWarning")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert sum(len(cell.get("outputs", ())) for cell in notebook.cells) >= 2


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as strictly as by `make docs`; notebooks are run by their own tests."""
    python = ROOT / ".venv-docs/bin/python"
    if not python.exists():
        pytest.skip("there is no .venv-docs: make .venv-docs/.ready")
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "sphinx", "-W", "--keep-going", "-q", "-D", "nb_execution_mode=off", "-c", "docs", "-d"]
    built = subprocess.run(
        [python, *command, folder / "doctrees", ROOT, folder / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


@pytest.mark.slow
def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site):
    loads = (
        r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=.(?:https?:)?//|@import|url\(.?(?:https?:)?//"
    )
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert [path.name for path in files if re.search(loads, path.read_text("utf-8"))] == []
    for page in [*PAGES, *NOTEBOOKS]:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").is_file()
    index = (site / "searchindex.js").read_text("utf-8")
    assert "LexElimTol" in index
    assert "margin" in index


@pytest.mark.slow
def test_the_site_documents_every_public_name(site):
    lines = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    names = {line.split()[0].removeprefix("lexbandits.") for line in lines.splitlines()}
    assert set(PUBLIC) <= names
    assert {"Study.tell", "LexElimTol.amended", "theory.lexelim_in_regret", "plot.intervals"} <= names


# --- PAPER.md


def rows():
    table = (ROOT / "PAPER.md").read_text("utf-8").split("## Symbols")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


KINDS = {
    "Algorithm": "Algorithms?",
    "Corollary": "Corollary|Corollaries",
    "Definition": "Definitions?",
    "Eq.": r"Eqs?\.",
    "Figure": "Figures?",
    "Lemma": "Lemmas?",
    "Remark": "Remarks?",
    "Theorem": "Theorems?",
}


def cited(kind, document):
    """The numbers of this kind that a text names: "Lemma 2", "Lemmas 5 and 7", "Theorems 1 to 4"."""
    number = r"\(?(\d+)\)?(?![\d.]\d)"
    several = rf"(?<!\w)(?:{KINDS[kind]})\s+{number}((?:(?:, and|,|\s+and|\s+to|–|-)\s*{number})*)"
    numbers = set()
    for first, rest, *_ in re.findall(several, document):
        last = int(first)
        numbers.add(last)
        for joined, text in re.findall(r"(and|to|,|–|-)\s*\(?(\d+)", rest):
            numbers |= set(range(last, int(text) + 1)) if joined in ("to", "–", "-") else {int(text)}
            last = int(text)
    return numbers


@pytest.mark.parametrize(
    ("kind", "text", "numbers"),
    [
        ("Lemma", "Lemma 2", {2}),
        ("Lemma", "Lemma 21: Eq. (2), Theorem 2, 2 pulls", {21}),
        ("Lemma", "Dilemma 2 and 2 more", set()),
        ("Lemma", "Lemmas 5 and 7 and Theorem 3", {5, 7}),
        ("Theorem", "Theorems 1 to 4, Corollary 1", {1, 2, 3, 4}),
        ("Eq.", "Lemma 1, Eq. (4); Eqs. (7)–(9)", {4, 7, 8, 9}),
        ("Definition", "Definitions 1, 2, and 3: 4", {1, 2, 3}),
        ("Corollary", "Corollary 1", {1}),
    ],
)
def test_a_citation_has_its_kind_and_its_number(kind, text, numbers):
    assert cited(kind, text) == numbers


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
    document = resolve(symbol.strip("`")).__doc__ or ""
    kind, _, number = item.partition(" ")
    if kind in KINDS:
        assert int(number.strip("()")) in cited(kind, document), f"{symbol} does not cite {item}"
    else:
        assert item in document, f"the docstring of {symbol} does not mention {item}"


def test_every_numbered_item_of_the_paper_has_a_row():
    counts = {"Theorem": 4, "Lemma": 7, "Definition": 2, "Algorithm": 2, "Corollary": 1, "Table": 1}
    counts |= {"Remark": 4, "Figure": 3}
    expected = {f"{kind} {n}" for kind, last in counts.items() for n in range(1, last + 1)}
    expected |= {f"Eq. ({n})" for n in range(1, 7)}
    assert expected <= {row[0] for row in rows()}


# --- the reference

REFERENCE = "".join(page.read_text("utf-8") for page in sorted((ROOT / "docs/reference").glob("*.md")))
PUBLIC = [*(name for name in lb.__all__ if name != "__version__"), *research_names()]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_reference_with_its_parameters(name):
    value = attrgetter(name)(lb)
    full, last = re.escape(name), re.escape(name.rpartition(".")[2])
    named = rf"^\.\. ((auto\w+|module):: lexbandits\.{full}|data:: {last})$"
    assert re.search(named, REFERENCE, re.MULTILINE)
    if not callable(value):
        return
    is_error = inspect.isclass(value) and issubclass(value, Exception)
    expected = [] if is_error and value.__init__ is ValueError.__init__ else parameters(value)
    assert [p for p in expected if p not in documented(value)] == []
    if not inspect.isclass(value):
        return
    assert ">>>" in value.__doc__ or (is_error and value is not lb.StudyError)
    for method in vars(value).values():
        if inspect.isfunction(method) and not method.__name__.startswith("_"):
            unnamed = [p for p in parameters(method) if not re.search(rf"\b{p}\b", method.__doc__)]
            assert unnamed == [], f"{name}.{method.__name__} does not speak of them"


def parameters(function):
    if isinstance(function, EnumType):
        return list(function.__members__)
    return [name for name in inspect.signature(function).parameters if name != "self" and name[0] != "_"]


def documented(value):
    """The names before the colons of "Args:" or "Attributes:"; several may share a line."""
    listed = re.search(r"^(?:Args|Attributes):\n((?: .*\n)+)", inspect.getdoc(value) + "\n", re.MULTILINE)
    rows = re.findall(r"^    (\S[^:]*): \S", listed[1] if listed else "", re.MULTILINE)
    return {name.lstrip("*") for row in rows for name in row.split(", ")}
