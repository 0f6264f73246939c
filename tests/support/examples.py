"""How many examples Hypothesis draws: a third in `make test`, all in `make test-slow` (EXAMPLES=all)."""

import os

ALL = os.environ.get("EXAMPLES") == "all"


def up_to(number):
    return number if ALL else max(20, number // 3)
