"""Tables of what was measured: how their rows are read and their numbers written.

A column `x` that holds means has their standard errors in `x_se`.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lexbandits.simulation.results import mean_and_error

Row = dict[str, Any]
Tables = Mapping[str, pd.DataFrame]

ERRORS = 2.0  # two means differ when they are this many standard errors apart


class Mean(NamedTuple):
    """A mean and its standard error (nan where a single value has none), written to two digits of the error.

    >>> print(Mean(24_741.6, 246.2), Mean(84.31, 3.41), Mean(39.5e6, 553_300.0), sep=", ")
    24,742 ± 246, 84.3 ± 3.4, 39.50 ± 0.55 million
    """

    value: float
    error: float

    def __str__(self) -> str:
        value, error = self
        if math.isnan(error) or math.isnan(value) or error == 0:
            return count(value)
        unit, name = (1e6, " million") if abs(value) >= 1e7 else (1.0, "")
        decimals = min(3, max(0, 1 - math.floor(math.log10(error / unit))))
        text = f"{value / unit:,.{decimals}f} ± {error / unit:,.{decimals}f}{name}"
        return text.replace("-", "−")

    def below(self, other: "Mean | float") -> bool:
        """Whether it is smaller by more than `ERRORS` standard errors of the difference."""
        value, error = other if isinstance(other, Mean) else (other, 0.0)
        errors = (0.0 if math.isnan(each) else each for each in (self.error, error))
        return self.value + ERRORS * math.hypot(*errors) < value

    def minus(self, other: "Mean") -> "Mean":
        """The difference of independent means."""
        return Mean(self.value - other.value, math.hypot(self.error, other.error))

    def over(self, other: "Mean") -> "Mean":
        """The ratio of independent means, its error to first order."""
        ratio = self.value / other.value
        return Mean(ratio, abs(ratio) * math.hypot(self.error / self.value, other.error / other.value))


def averaged(name: str, values: NDArray[np.float64]) -> Row:
    """The columns of a mean and its standard error, over the values that are not nan."""
    value, error = mean_and_error(values[~np.isnan(values)])
    return {name: value, f"{name}_se": error}


def mean(row: Row, name: str) -> Mean:
    """A mean of a row with its error."""
    return Mean(row[name], row[f"{name}_se"])


def less(name: str, row: Row, *others: Row) -> bool:
    """Whether a mean of a row is below that of all others."""
    return all(mean(row, name).below(mean(other, name)) for other in others)


def grow(means: Sequence[Mean]) -> bool:
    """Whether the last is above the first, and none below the one before it."""
    return means[0].below(means[-1]) and not any(later.below(former) for former, later in pairwise(means))


def rows_of(table: pd.DataFrame, **where: Any) -> list[Row]:
    """The rows with these values, in order."""
    chosen = table
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return [{str(key): value for key, value in row.items()} for row in chosen.to_dict("records")]


def one(table: pd.DataFrame, **where: Any) -> Row:
    """The only row with these values."""
    rows = rows_of(table, **where)
    if len(rows) != 1:
        raise LookupError(f"expected one row with {where}, found {len(rows)}")
    return rows[0]


def count(value: float) -> str:
    """Whole above 100, in millions from ten of them, three digits below.

    >>> count(1234.5), count(12_345_678.0), count(-3.14159)
    ('1,234', '12.3 million', '−3.14')
    """
    if math.isnan(value):
        return "none"
    if abs(value) >= 1e7:
        return f"{value / 1e6:,.1f} million".replace("-", "−")
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}").replace("-", "−")


def errors(row: Row) -> str:
    """Wrong answers of all runs, and how many gave none."""
    text = f"{row['wrong']}/{row['replications']} wrong"
    return text if row["unstopped"] == 0 else f"{text}, {row['unstopped']} without an answer"
