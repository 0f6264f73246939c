"""What holds of every test: it begins the same way each time."""

import ast
from collections import Counter

import pytest

from support import TESTS

FILES = sorted(TESTS.rglob("*.py"))


def unseeded(tree):
    """Lines on which a study is made whose seed nobody has said: `seed=None` says that it is drawn."""
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    said = {id(call) for part in parts if _names_a_seed(part) for call in ast.walk(part)}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _name(call.func) == "create_study":
            given = {word.arg for word in call.keywords}
            if "seed" not in given and not (None in given and id(call) in said):
                yield call.lineno


def _name(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _names_a_seed(part):
    return any(isinstance(node, ast.Constant) and node.value == "seed" for node in ast.walk(part))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_study_has_a_seed(path):
    assert list(unseeded(ast.parse(path.read_text("utf-8")))) == []


def test_no_two_files_have_one_name():
    """In one process pytest imports them by their names."""
    names = [path.name for path in FILES if path.name.startswith("test_")]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_a_study_without_a_seed_is_found():
    code = """
def one():
    lb.create_study("s", arms=["a"])
def two(**words):
    create_study("s", **words)
def three(**words):
    lb.create_study("s", **{"seed": 1, **words})
lb.create_study("s", seed=None)
"""
    assert list(unseeded(ast.parse(code))) == [3, 5]
