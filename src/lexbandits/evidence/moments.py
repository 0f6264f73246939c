"""Running moments of a sequence: all that an interval knows of its data, whatever their number.

The recurrences are Welford's (1962) for M2 and Pébay's (2008, SAND2008-6212) for M3 and M4.
"""

from lexbandits._jit import kernel

ROUNDING = 2.0**-48  # 16 times what two numbers and their difference may be off, as a share of them


@kernel
def unless_rounded(value: float, mean: float, size: float) -> float:
    """A value computed from numbers that add up to `size`, or the mean so far if only rounding is between.

    Values that are equal as written then have an M2 of 0, which proves nothing: a test of their spread would
    be one of rounding errors.
    """
    return mean if abs(value - mean) <= ROUNDING * size else value


@kernel
def push(
    n: float, mean: float, m2: float, m3: float, m4: float, value: float
) -> tuple[float, float, float, float, float]:
    """(n, mean, M2, M3, M4) with one more value; Mp is the sum of the p-th powers of value − mean."""
    before = n
    n = before + 1.0
    d = value - mean
    dn = d / n
    dn2 = dn * dn
    t = d * dn * before
    m4 += t * dn2 * (n * n - 3.0 * n + 3.0) + 6.0 * dn2 * m2 - 4.0 * dn * m3
    m3 += t * dn * (n - 2.0) - 3.0 * dn * m2
    return n, mean + dn, m2 + t, m3, m4


@kernel
def push_squares(n: float, mean: float, m2: float, value: float) -> tuple[float, float, float]:
    """(n, mean, M2) with one more value: the first three of `push`, to the bit."""
    before = n
    n = before + 1.0
    d = value - mean
    dn = d / n
    return n, mean + dn, m2 + d * dn * before


@kernel
def push_weighted(
    n: float, mean: float, m2: float, value: float, weight: float
) -> tuple[float, float, float]:
    """(n, mean, M2) with one more value that counts as `weight` of them."""
    before = n
    n = before + weight
    d = value - mean
    dn = d * weight / n
    return n, mean + dn, m2 + d * dn * before
