"""Hypothesis draws the same examples every time, for everyone; and one sweep serves many tests."""

import pytest
from hypothesis import settings

import lexbandits as lb
from cells import cells

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def reference():
    """150 replications of every shared cell; nobody changes it."""
    return lb.sweep(cells(), replications=150, seed=4)
