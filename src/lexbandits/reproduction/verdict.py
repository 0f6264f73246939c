"""What the paper says, claim by claim, and how the tables of a section are judged."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lexbandits.reproduction.experiment import DELTA, PAPER_WIDTHS, WIDTHS
from lexbandits.reproduction.tables import Tables

HOLDS, FAILS = "holds", "does not hold"
SURPRISE = 0.01  # an error count less likely than this under δ speaks against the guarantee

Judged = tuple[bool, str]  # whether a claim holds in one case, and the numbers that say so


class Verdict(NamedTuple):
    """`holds`, `holds only with …` or `does not hold`, and the numbers it was computed from."""

    outcome: str
    numbers: str


class Claim(NamedTuple):
    """A statement of the paper in our words; `judge` reads the tables of its section."""

    name: str
    source: str
    statement: str
    judge: Callable[[Tables], Verdict]


def claim(name: str, source: str) -> Callable[[Callable[[Tables], Verdict]], Claim]:
    """Written above the function that judges the claim, whose docstring is the statement."""
    return lambda judge: Claim(name, source, " ".join((judge.__doc__ or "").split()), judge)


def only_with(cases: Mapping[str, bool]) -> str:
    """The outcome of a claim that was looked at in several cases."""
    held = [case for case, holds in cases.items() if holds]
    if len(held) == len(cases):
        return HOLDS
    return f"holds only with {' or '.join(held)}" if held else FAILS


def by_case(cases: Mapping[str, Judged], *remarks: str) -> Verdict:
    """The verdict over several cases; remarks follow the numbers."""
    told = [f"{case}: {numbers}" for case, (_, numbers) in cases.items()]
    outcome = only_with({case: holds for case, (holds, _) in cases.items()})
    return Verdict(outcome, "\n".join([*told, *remarks]))


def by_width(look: Callable[[str], Judged], *remarks: str) -> Verdict:
    """The verdict over the paper's three widths."""
    return by_case({WIDTHS[width].label: look(width) for width in PAPER_WIDTHS}, *remarks)


def at_most_delta(wrong: int, runs: int) -> bool:
    """Whether so many failures or more would be no surprise, P(Binomial(runs, δ) ≥ wrong) ≥ `SURPRISE`."""
    from scipy.stats import binom

    return bool(binom.sf(wrong - 1, runs, DELTA) >= SURPRISE)
