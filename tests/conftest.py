"""Hypothesis draws the same examples every time: a failure is a failure for everyone."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")
