"""What holds of every test: it begins the same way each time."""

import ast
import re
import runpy
import textwrap
from collections import Counter

import pytest

from support import TESTS

ROOT = TESTS.parent

FILES = sorted(TESTS.rglob("*.py"))


def unseeded(tree):
    """Lines on which a study is made whose seed nobody has said: `seed=None` says that it is drawn."""
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    said = {id(call) for part in parts if _names_a_seed(part) for call in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func).removeprefix("lb.") == "create_study":
            given = {word.arg for word in node.keywords}
            if "seed" not in given and not (None in given and id(node) in said):
                yield node.lineno
        elif isinstance(node, ast.Constant) and "create_study(" in str(node.value):
            yield from (node.lineno for _ in unseeded(_code(node.value)))


def _name(function):
    return ast.unparse(function) if isinstance(function, (ast.Attribute, ast.Name)) else ""


def _code(text):
    """The program that a text is, for a process of its own; nothing if it is none, or a part of one."""
    try:
        return ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return ast.Module([], [])


def _names_a_seed(part):
    return any(isinstance(node, ast.Constant) and node.value == "seed" for node in ast.walk(part))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_study_has_a_seed(path):
    assert list(unseeded(ast.parse(path.read_text("utf-8")))) == []


def test_no_two_files_have_one_name():
    """In one process pytest imports them by their names."""
    names = [path.name for path in FILES if path.name.startswith("test_")]
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_what_several_files_use_is_in_support(path):
    """No file of tests is imported by another one."""
    own = {file.stem for file in FILES if "support" not in file.parts}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            named = {alias.name for alias in node.names} | {getattr(node, "module", None) or ""}
            assert not own & {name.partition(".")[0] for name in named}, node.lineno


def test_a_study_without_a_seed_is_found():
    code = """
def one():
    lb.NEW("s", arms=["a"])
def two(**words):
    NEW("s", **words)
def three(**words):
    lb.NEW("s", **{"seed": 1, **words})
lb.NEW("s", seed=None)
optuna.NEW()
""".replace("NEW", "create_study")
    assert list(unseeded(ast.parse(code))) == [3, 5]
    assert list(unseeded(ast.parse(f"x = 1\nprocess({code!r})"))) == [2, 2]
    assert list(unseeded(ast.parse("process('    create_study(seed=1)'), print('create_study(')"))) == []


# --- .ci/words.py, which `make check` runs

words = runpy.run_path(str(TESTS.parent / ".ci" / "words.py"))


@pytest.mark.parametrize(
    "comparison",
    [
        'x == "code"',
        '"code" != x',
        'x in ("other", "code")',
        'x not in {"code"}',
        'x in ["code"]',
        'match x:\n    case "other" | "code":\n        pass',
        'match x:\n    case ("code", y):\n        pass',
        'y < x == "code"',
    ],
)
def test_a_literal_that_two_files_compare_is_found(comparison):
    assert [each.word for each in words["literals"]([("a.py", comparison), ("b.py", 'y == "code"')])] == [
        "code"
    ]


def test_a_literal_that_is_not_compared_twice_is_not_found():
    alone = [
        ("a.py", 'x == "code" or y == "code"'),
        ("b.py", 'x = "code"\ny == Kind.CODE'),
        ("c.py", 'x == "c"'),
    ]
    assert list(words["literals"](alone)) == []
    assert list(words["literals"]([("a.py", 'x == "__main__"'), ("b.py", '__name__ == "__main__"')])) == []


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.py", "def warn_if_strained(): ...", "strained"),
        ("a.py", "from b import Scrutiny", "scrutiny"),
        ("a.py", "x.the_rung = 1", "rung"),
        ("a.py", "import b as ledger", "ledger"),
        ("a.py", "class Turn: ...", "Turn"),
        ("a.py", "Way = tuple[int, int]", "Way"),
        ("a.py", "f(**words)", "words"),
        ("a.py", 'words["name"]', "words"),
        ("a.py", "def f(words: dict[str, int]): ...", "words"),
        ("a.py", "def flags_said(): ...", "*_said"),
        ("a.py", "f(settle=1)", "settle"),
        ("a.py", "def f(*, about): ...", "about"),
        ("a.py", "who = mask", "who"),
        ("a.py", 'x = "arm given up"', "arm given up"),
        ("a.py", '"""It is proven worse."""', "proven worse"),
        ("world/a.py", "", "world"),
        ("a/list_policy.py", "", "list_*"),
        ("static/a.css", ".pill { color: red }", "pill"),
        ("docs/a.md", "Say `study.fates`.", "fates"),
        ("docs/a.md", "```python\nverdict.fates\n```", "fates"),
        ("docs/a.md", "The flag `large-sample`.", "large-sample"),
    ],
)
def test_a_word_that_was_replaced_is_found(name, text, word):
    assert {each.word for each in words["words"](name, text)} == {word}


def test_every_replaced_word_is_noticed_where_it_comes_back():
    """Each word of the table, planted as what it is looked for."""
    forms = {
        "part": "def {}(): ...",
        "name": "{} = 1",
        "class": "class {}: ...",
        "parameter": "f({}=1)",
        "quoted": "x = '{}'",
        "phrase": "# {}",
    }
    for word, (how, _) in words["WORDS"].items():
        name, text = "a.py", forms[how].format(word) if how in forms else ""
        if how == "file":
            name, text = f"{word.replace('*', 'b')}.py", ""
        assert word in {found.word for found in words["words"](name, text)}, word


def test_a_file_that_breaks_the_rules_is_found_wherever_it_lies(tmp_path, monkeypatch):
    """A replaced word planted beside each kind of file that is looked at."""
    planted = {
        "src/lexbandits/study/a.py": "ledger = 1",
        "src/lexbandits/service/static/a.js": "const ledger = 1",
        "README.md": "`ledger`",
        "docs/reference/a.md": "`ledger`",
        "examples/b/a.py": "ledger = 1",
        "experiments/paper/a.py": "ledger = 1",
        "benchmarks/a.py": "ledger = 1",
        "tests/support/a.py": "ledger = 1",
        ".ci/a.py": "ledger = 1",
    }
    for name, text in planted.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    everything = words["everything"]
    monkeypatch.setitem(everything.__globals__, "ROOT", tmp_path)
    found = {each.where.partition(":")[0] for each in everything()}
    assert found == {name.removeprefix("src/lexbandits/") for name in planted}


def test_every_file_of_the_package_has_a_name_of_its_own():
    """But for the command of a thing, which is called as the thing is."""
    paths = [path for path in (ROOT / "src/lexbandits").rglob("*.py") if not path.stem.startswith("__")]
    counts = Counter(path.stem for path in paths if path.parent.name != "cli")
    assert {stem for stem, n in counts.items() if n > 1} == set()


def test_the_map_names_every_file_of_the_package():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"\w+", text))
    for path in (ROOT / "src/lexbandits").rglob("*.py"):
        stem, folder = path.stem, path.parent.name
        is_named = stem in named or stem.removeprefix(folder) in named  # finite/: _state, _folding, …
        assert stem.startswith("__") or is_named, path
    files = [
        path.as_posix()
        for place in ("src", "tests", "experiments", "benchmarks", ".ci", "docs")
        for path in (ROOT / place).rglob("*.py")
    ]
    for name in re.findall(r"[\w/]+\.py\b", text):
        assert any(path.endswith(f"/{name}") for path in files), name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "is_far_apart = looks_good = who_is = wrung = 1"),
        ("a.py", '"""Who looks at a desk in turn, in a manner of speaking."""'),
        ("docs/a.md", "A picture of the world, on a ladder; a large-sample test."),
    ],
)
def test_a_word_with_its_ordinary_meaning_is_not_found(name, text):
    assert list(words["words"](name, text)) == []
