"""What the paper says, claim by claim, and how the tables of a section are judged."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from experiments.paper.experiment import DELTA, PAPER_WIDTHS, WIDTHS
from experiments.paper.tables import Tables

HOLDS, FAILS = "holds", "does not hold"
SURPRISE = 0.01  # an error count less likely than this under δ speaks against the guarantee

Finding = tuple[bool, str]  # whether a claim holds in one case, and the numbers that say so
Case = TypeVar("Case")


class Verdict(NamedTuple):
    """`holds`, `holds only with …` or `does not hold`, and the numbers it was computed from."""

    outcome: str
    numbers: str


Judge = Callable[[Tables], Verdict]


class Claim(NamedTuple):
    """A statement of the paper in our words; `judge` reads the tables of its section."""

    name: str
    source: str
    statement: str
    judge: Judge


def claim(name: str, source: str) -> Callable[[Judge], Claim]:
    """Written above the function that judges the claim, whose docstring is the statement."""
    return lambda judge: Claim(name, source, " ".join((judge.__doc__ or "").split()), judge)


def claims_among(names: Mapping[str, Any]) -> list[Claim]:
    """Those of a module's names that are claims, in the order in which they stand in it."""
    return [value for value in names.values() if isinstance(value, Claim)]


def by_case(
    cases: Mapping[str, Case], beside: Mapping[str, Case] | None = None
) -> Callable[[Callable[[Tables, Case], Finding]], Judge]:
    """Written above a function that looks at one case; the numbers of those `beside` are told, not judged."""

    def judge_of(look: Callable[[Tables, Case], Finding]) -> Judge:
        def judge(tables: Tables) -> Verdict:
            judged = {name: look(tables, case) for name, case in cases.items()}
            told = judged | {name: look(tables, case) for name, case in (beside or {}).items()}
            numbers = "\n".join(f"{name}: {numbers}" for name, (_, numbers) in told.items())
            return Verdict(only_with({name: holds for name, (holds, _) in judged.items()}), numbers)

        judge.__doc__ = look.__doc__
        return judge

    return judge_of


LABELLED = {WIDTHS[width].label: width for width in PAPER_WIDTHS}
by_width = by_case(LABELLED)


def only_with(cases: Mapping[str, bool]) -> str:
    """The outcome of a claim that was looked at in several cases."""
    held = [case for case, holds in cases.items() if holds]
    if len(held) == len(cases):
        return HOLDS
    return f"holds only with {' or '.join(held)}" if held else FAILS


def together(judged: Iterable[Finding], between: str = "; ") -> Finding:
    """Whether a claim holds in all of these, and all their numbers."""
    holds, numbers = zip(*judged, strict=True)
    return all(holds), between.join(numbers)


def at_most_delta(wrong: int, runs: int) -> bool:
    """Whether so many failures or more would be no surprise, P(Binomial(runs, δ) ≥ wrong) ≥ `SURPRISE`."""
    from scipy.stats import binom

    return bool(binom.sf(wrong - 1, runs, DELTA) >= SURPRISE)
