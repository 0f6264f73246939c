"""Hypothesis draws the same examples every time; one sweep and one browser serve many tests."""

import gc
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

import lexbandits as lb
from cells import cells
from lexbandits import jit

jit.MODE = jit.MODE or "1"  # compiled at once here; the processes that tests start begin as people's do

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")

FIRST = (  # the longest, so that no process is left alone with one at the end
    "server/test_page.py", "study/test_contract.py", "test_promises.py", "test_tol_percent.py",
    "study/test_trouble.py", "test_docs.py", "server/test_webhook.py", "study/test_commands.py",
    "test_report.py", "test_tol.py", "study/test_run.py", "test_jit.py", "test_cli.py",
    "server/test_thinking.py", "study/test_stopped.py", "server/test_answers_lost_over_http.py",
    "insight/test_fates.py", "test_baselines.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Processes that begin compile different kernels: each finds what the others compiled."""
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(FIRST)))


def pytest_collection_finish():
    """What is imported by now stays: nobody need look through it for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def reference():
    """150 replications of every shared cell; nobody changes it."""
    return lb.sweep(cells(), replications=150, seed=4)


FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no chromium: in CI pages must be looked at (make browser installs it)")
        pytest.skip("no chromium here: make browser installs it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()
