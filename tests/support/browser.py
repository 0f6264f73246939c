"""Debian's Chromium, one for the tests of a file."""

import os
import shutil

import pytest

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
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
