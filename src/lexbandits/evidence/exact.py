"""No noise: the first value of an arm is its mean, and its interval is that point.

People write decimals, and 0.86 − 0.83 is 0.03 to them, whatever the last binary digits of the three.
`rounding` is what those digits may add up to; all that compares exact numbers allows for it.
"""

from typing import Any

from lexbandits._jit import kernel


def rounding(value: Any, other: Any, limit: Any) -> Any:
    """How far value − other may be from `limit` and be equal to it as written; exact for fractions."""
    return (abs(value) + abs(other) + abs(limit)) / 2**52


_rounding = kernel(rounding)


@kernel
def exact_difference(value: float, other: float, tolerance: float, reach: float) -> float:
    """value − other, and 0 or plus or minus a limit where it is equal to that as written."""
    difference = value - other
    size = abs(difference)
    for limit in (0.0, tolerance, reach):
        if abs(size - limit) <= _rounding(value, other, limit):
            return limit if difference > 0.0 else 0.0 - limit
    return difference


@kernel
def exact_value(value: float, target: float, floor: float) -> float:
    """The value, and the target or the floor, a resolution below it, where it is equal to that as written."""
    for limit in (target, floor):
        if abs(value - limit) <= _rounding(value, target, target - floor):
            return limit
    return value


def check_exact(arm: int, objective: int, known: float, value: float) -> None:
    """Refuse a second value that differs from the first, in the last digit too."""
    if value != known:
        raise ValueError(
            f'arm {arm} gave {value} on objective {objective} after {known}, but the noise there is "exact": '
            "every value of an arm must be the same to the last digit. Round it before you tell it"
        )
