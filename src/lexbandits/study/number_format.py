"""Numbers as people read them: as many digits as the margin needs, a real minus sign, units."""

import json
import math
from collections.abc import Sequence

from lexbandits.evidence.kinds import NoiseKind
from lexbandits.study.objective import Objective, written

DIGITS = 4  # of values whose margin is a share


def count(number: float) -> str:
    """
    >>> count(1284), count(math.inf)
    ('1,284', 'without end')
    """
    return "without end" if math.isinf(number) else f"{number:,.0f}"


def many(number: float, noun: str) -> str:
    """A count of things.

    >>> many(1, "result"), many(1284, "common result")
    ('1 result', '1,284 common results')
    """
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def about(number: float, up: bool = False) -> str:
    """A count that is a forecast: two digits, rounded `up` if it must be enough.

    >>> about(1284), about(7), about(96_512), about(1234, up=True)
    ('1,300', '7', '97,000', '1,300')
    """
    if math.isinf(number) or number < 10:
        return count(number)
    step = 10 ** (math.floor(math.log10(number)) - 1)
    return count((math.ceil(number / step) if up else round(number / step)) * step)


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def capital(text: str) -> str:
    """
    >>> capital("no arm of GPT")
    'No arm of GPT'
    """
    return f"{text[:1].upper()}{text[1:]}"


def percent(share: float) -> str:
    """
    >>> percent(0.05), percent(0.004), percent(0.875), percent(0.0)
    ('5 %', '0.4 %', '88 %', '0 %')
    """
    shown = f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.3g}"
    return f"{float(shown):g} %"


def decimals(objective: Objective) -> int:
    """How many decimals an objective's values are shown with: one more than what matters has."""
    steps = [step for step in objective.tolerance_settings[:2] if step > 0]
    if not steps:
        return 3
    return min(max(0, 1 - math.floor(math.log10(min(steps)))), 12)


def value(objective: Objective, number: float, *, unit: bool = False, more: int = 0) -> str:
    """A value of the objective, with `more` decimals; what is exact as it was given.

    >>> value(Objective("size", "minimize", margin=5, unit="MB", noise="exact"), 0.1, unit=True)
    '0.1 MB'
    """
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    digits = ".12g" if objective.is_exact else f".{decimals(objective) + more}f"
    if objective.is_relative:  # nobody said how precise it is
        number, digits = float(f"{number:.{DIGITS + more}g}"), ".12g"
        if abs(number) >= 1e-4:  # 100.0 beside 99.61
            digits = f".{max(DIGITS + more - 1 - math.floor(math.log10(abs(number))), 0)}f"
    text = f"{number:,{digits}}"
    if not any(digit in text for digit in "123456789"):
        text = text.lstrip("-")
    text = text.replace("-", "−")
    return f"{text} {objective.unit_of_mean}" if unit and objective.unit_of_mean else text


def is_nothing(objective: Objective, number: float) -> bool:
    """Whether a value is shown as 0."""
    return not any(digit in value(objective, number) for digit in "123456789")


def bound(
    objective: Objective, number: float, rounded: str, *, beyond: float = math.nan, unit: bool = False
) -> str:
    """An end of what was proven, rounded "down" or "up", away from what it claims.

    `beyond` is a line on whose other side it lies, which as many digits as it takes will show.

    >>> bound(Objective("correct", margin=0.2), 0.1032, "up")
    '0.11'
    >>> bound(Objective("correct", margin=0.2), 0.1032, "down", beyond=0.1)
    '0.103'
    >>> bound(Objective("seconds", margin=100), 100.00000000001, "down", beyond=100)
    '100'
    """
    if objective.is_exact or not math.isfinite(number):
        return value(objective, number, unit=unit)
    places, more = decimals(objective), 0
    if objective.is_relative and number != 0:
        places = DIGITS - 1 - math.floor(math.log10(abs(number)))
    while more < 6 and abs(_rounded(number, places + more, rounded) - beyond) <= 1e-9 * abs(beyond):
        more += 1
    if abs(_rounded(number, places + more, rounded) - beyond) <= 1e-9 * abs(beyond):
        more = 0  # it is this line
    return value(objective, _rounded(number, places + more, rounded), unit=unit, more=more)


def points(objective: Objective, number: float, rounded: str = "") -> str:
    """Write a difference: in the objective's unit, and of 0/1 values without one in points, hundredths.

    With `rounded`, "down" or "up", it is an end of what was proven beyond the margin, with "near" what was
    measured; else as it was given.

    >>> points(Objective("correct", margin=0.02, noise="bernoulli"), 0.0319, "down")
    '3.1 points'
    >>> points(Objective("latency", "minimize", margin=0.2, unit="s"), 0.2)
    '0.2 s'
    >>> points(Objective("correct", margin=0.2), 0.1032, "near")
    '0.10'
    """
    if objective.kind is not NoiseKind.BERNOULLI or objective.unit_of_mean or objective.is_relative:
        if not rounded:
            return amount(objective, number)
        return bound(objective, number, rounded, beyond=objective.margin_in_unit, unit=True)
    number, beyond, places = 100 * number, 100 * objective.margin_in_unit, max(0, decimals(objective) - 2)
    if rounded:
        while places < 12 and abs(_rounded(number, places, rounded) - beyond) <= 1e-9 * beyond:
            places += 1
        number = _rounded(number, places, rounded)
    number = round(number, 10)
    return written(number, "point" if number == 1 else "points")


def limit_of(objective: Objective) -> str:
    """
    >>> limit_of(Objective("refusals", "minimize", at_most=0.05, noise="bernoulli"))
    'at most 0.05'
    """
    word = "at most" if objective.at_most is not None else "at least"
    return f"{word} {amount(objective, objective.limit or 0.0)}"


def beyond_limit(objective: Objective) -> str:
    """
    >>> beyond_limit(Objective("refusals", "minimize", at_most=0.05, noise="bernoulli"))
    'more than 0.05'
    """
    word = "more" if objective.at_most is not None else "less"
    return f"{word} than {amount(objective, objective.limit or 0.0)}"


def _rounded(number: float, places: int, rounded: str) -> float:
    exact = number * 10**places
    near = round(exact)
    if rounded != "near" and abs(exact - near) > 1e-12 * abs(exact):  # more than binary fractions add
        near = math.floor(exact) if rounded == "down" else math.ceil(exact)
    return float(near / 10**places)


def between(objective: Objective, low: float, high: float) -> str:
    """Where a mean lies, for a table.

    >>> between(Objective("correct", margin=0.2), 0.2999, 0.5001)
    '0.29 – 0.51'
    """
    if objective.is_exact:
        return "exact"
    if not math.isfinite(high - low):
        return "too few"
    return f"{bound(objective, low, 'down')} – {bound(objective, high, 'up')}"


def evidence(parts: float | None) -> str:
    """How far a row of the certificate is; never all of it while it is open.

    >>> evidence(0.999), evidence(0.31), evidence(0.04), evidence(None)
    ('undecided, 90 % of the evidence', 'undecided, 30 % of the evidence', 'undecided', 'undecided')
    """
    tenths = 0 if parts is None else min(math.floor(10 * parts), 9)
    return f"undecided, {10 * tenths} % of the evidence" if tenths else "undecided"


def amount(objective: Objective, number: float) -> str:
    """A margin or a limit, as it was given.

    >>> amount(Objective("latency", "minimize", margin=80, unit="ms"), 80.0)
    '80 ms'
    >>> amount(Objective("latency", "minimize", margin="2%"), 0.02)
    '2 % of the best'
    """
    if objective.is_relative:
        whose = "the best" if objective.is_of_best else objective.reference
        return f"{written(100 * number, '%')} of {whose}"
    return written(number, objective.unit_of_mean)


def estimand(objective: Objective) -> str:
    """What of its values an objective is about, if not their mean as they are.

    >>> estimand(Objective("revenue", margin=2, unit="€", cap=200))
    'the mean of values up to 200 €'
    >>> estimand(Objective("latency", "minimize", at_most=0.05, unit="s", above=2))
    'how often it is above 2 s'
    """
    if objective.above is not None:
        return f"how often it is above {written(objective.above, objective.unit)}"
    if objective.quantile is not None:
        return f"the value that {percent(objective.quantile)} do not exceed"
    ends = ("down to", objective.floor), ("up to", objective.cap)
    cut = [
        f"{word} {'a cap that a burn-in sets' if isinstance(end, str) else written(end, objective.unit)}"
        for word, end in ends
        if end is not None
    ]
    return f"the mean of values {' and '.join(cut)}" if cut else ""


def toml_key(name: str) -> str:
    """A name as a key of TOML.

    >>> toml_key("large+cot"), toml_key("small")
    ('"large+cot"', 'small')
    """
    plain = name.replace("_", "").replace("-", "").isalnum() and name.isascii()
    return name if plain else json.dumps(name, ensure_ascii=False)


def span(seconds: float) -> str:
    """A length of time.

    >>> span(42), span(5400), span(200_000)
    ('42 s', '1.5 h', '2.3 days')
    """
    if math.isinf(seconds):
        return "without end"
    for limit, size, word in ((90, 1, "s"), (5400, 60, "min"), (129_600, 3600, "h")):
        if seconds < limit:
            return f"{_short(seconds / size)} {word}"
    return f"{_short(seconds / 86400)} days"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"
