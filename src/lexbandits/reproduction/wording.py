"""How measured numbers are written in verdicts, tables and the report."""

import math


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


def pm(mean: float, error: float) -> str:
    """Mean ± standard error, to two digits of the error.

    >>> pm(24_741.6, 246.2), pm(84.31, 3.41), pm(39.5e6, 553_300.0)
    ('24,742 ± 246', '84.3 ± 3.4', '39.50 ± 0.55 million')
    """
    if math.isnan(error) or math.isnan(mean) or error == 0:
        return count(mean)
    unit, name = (1e6, " million") if abs(mean) >= 1e7 else (1.0, "")
    decimals = min(3, max(0, 1 - math.floor(math.log10(error / unit))))
    text = f"{mean / unit:,.{decimals}f} ± {error / unit:,.{decimals}f}{name}"
    return text.replace("-", "−")


def percent(share: float) -> str:
    """A share of one."""
    return "–" if math.isnan(share) else f"{100 * share:.0f} %"
