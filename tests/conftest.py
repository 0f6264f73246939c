"""Hypothesis draws the same examples every time; one sweep serves many tests."""

import gc
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

import lexbandits as lb
from lexbandits import _jit

pytest.register_assert_rewrite("support")
pytest_plugins = ["support.database", "support.browser"]
_jit.MODE = _jit.MODE or "1"  # compiled at once here; the processes that tests start begin as people's do

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")

FIRST = (  # the longest, so that no process is left alone with one at the end
    "service/test_page.py", "study/test_contract.py", "test_promises.py", "test_tol_percent.py",
    "study/test_trouble.py", "test_docs.py", "service/test_webhook.py", "study/test_commands.py",
    "test_report.py", "test_tol.py", "study/test_run.py", "test_jit.py", "test_cli.py",
    "service/test_analysis.py", "study/test_stopped.py", "service/test_answers_lost_over_http.py",
    "report/test_outcomes.py", "test_baselines.py",
)  # fmt: skip


TIMED = re.compile(  # what a case uses that others may delay
    r"subprocess|multiprocessing|threading|concurrent\.futures|asyncio|signal\."
    r"|support\.(patience|proxy|receivers|services|consoles|power_cut)|playwright"
)
WITH_OTHERS = {"address", "browser", "client", "clock", "postgres", "serve", "service", "storage"}


@cache
def _is_timed(path):
    is_live = path.parent.name in ("study", "service") or path.name in ("test_store.py", "test_jit.py")
    return is_live and TIMED.search(path.read_text("utf-8")) is not None


def pytest_collection_modifyitems(items):
    """Processes that begin compile different kernels: each finds what the others compiled."""
    for item in items:
        if _is_timed(item.path) or not WITH_OTHERS.isdisjoint(item.fixturenames):
            item.add_marker("timed")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("drawn")
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(FIRST)))


def pytest_collection_finish():
    """What is imported by now stays: nobody need look through it for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def clock(monkeypatch):
    """The time of every storage, to be moved; named before the storage."""
    from support.clock import Clock, follow

    moved = Clock()
    follow(change=monkeypatch.setattr)
    monkeypatch.setattr("lexbandits.study.storage.memory.time", moved)
    yield moved
    moved.close()


@pytest.fixture(scope="session")
def reference():
    """150 replications of every shared cell; nobody changes it."""
    from support.cells import cells

    return lb.sweep(cells(), replications=150, seed=4)
