"""Checks of a policy's settings: each returns the value in its plain form or says what was wrong."""

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def whole(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """An integer in least..most."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if number < least or (most is not None and number > most):
        expected = f"at least {least}" if most is None else f"in {least}..{most}"
        raise ValueError(f"{name} must be {expected}, got {number}")
    return number


def real(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, (bool, str, bytes, np.bool_)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def probability(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be strictly between 0 and 1, got {number}")
    return number


def at_least(name: str, value: Any, least: float) -> float:
    """A finite number >= least."""
    number = real(name, value)
    if number < least:
        raise ValueError(f"{name} must be at least {least:g}, got {number}")
    return number


def positive(name: str, value: Any) -> float:
    """A finite number > 0."""
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number}")
    return number


def per_objective(
    name: str, value: float | ArrayLike, n_objectives: int, *, zero: bool = False
) -> float | list[float]:
    """One positive number (or zero, if allowed), or a list of one per objective."""
    check = (lambda n, v: at_least(n, v, 0.0)) if zero else positive
    n_objectives = whole("n_objectives", n_objectives, least=1)
    if np.ndim(value) == 0:
        return check(name, value)
    values: list[Any] = list(value)  # type: ignore[arg-type]
    if len(values) != n_objectives:
        raise ValueError(
            f"{name} must be one number or one per objective ({n_objectives}), got {len(values)}"
        )
    return [check(f"{name}[{i}]", v) for i, v in enumerate(values)]


def spread(value: float | Sequence[float], n_objectives: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(m,) array of a setting given once or per objective."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=np.float64), (n_objectives,)))


def set_sizes(value: Any, n_arms: int, n_objectives: int) -> list[int]:
    """|O_*(i)| for each objective: at most K, never rising, the last one 1."""
    n_arms = whole("n_arms", n_arms, least=1)
    n_objectives = whole("n_objectives", n_objectives, least=1)
    try:
        sizes = [whole(f"optimal_set_sizes[{i}]", size, least=1, most=n_arms) for i, size in enumerate(value)]
    except TypeError as error:
        raise TypeError(f"optimal_set_sizes must be {n_objectives} integers, got {value!r}") from error
    if len(sizes) != n_objectives:
        raise ValueError(
            f"optimal_set_sizes must have one size per objective ({n_objectives}), got {len(sizes)}"
        )
    if any(later > earlier for earlier, later in pairwise(sizes)):
        raise ValueError(f"optimal_set_sizes must never rise, got {sizes}")
    if sizes[-1] != 1:
        raise ValueError(f"optimal_set_sizes must end in 1, the lex-optimal arm alone, got {sizes}")
    return sizes
