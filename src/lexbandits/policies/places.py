"""Places: a result belongs to its arm and pass, whenever it comes. Results ahead of their pass wait here."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Vector
from lexbandits.checks import whole

Place = tuple[int, int]  # (arm, pass), passes from 0


class Waiting:
    """Results of passes to come, by pass and arm: equal for equal contents, however they came."""

    def __init__(self) -> None:
        self._passes: dict[int, dict[int, Vector]] = {}

    def __contains__(self, place: Place) -> bool:
        arm, number = place
        return arm in self._passes.get(number, ())

    def __bool__(self) -> bool:
        return bool(self._passes)

    def __len__(self) -> int:
        return sum(map(len, self._passes.values()))

    def __iter__(self) -> Iterator[tuple[Place, Vector]]:
        for number in sorted(self._passes):
            for arm in sorted(self._passes[number]):
                yield (arm, number), self._passes[number][arm]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Waiting) or len(self) != len(other):
            return False
        return all(
            mine == theirs and np.array_equal(values, others, equal_nan=True)
            for (mine, values), (theirs, others) in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def put(self, place: Place, values: Vector) -> None:
        """Keep a result until its pass."""
        arm, number = place
        self._passes.setdefault(number, {})[arm] = values

    def take(self, number: int) -> list[tuple[int, Vector]]:
        """The results of a pass that begins, by arm."""
        return sorted(self._passes.pop(number, {}).items(), key=lambda item: item[0])

    def drop_before(self, number: int) -> None:
        """Forget passes below `number`."""
        for passed in [k for k in self._passes if k < number]:
            del self._passes[passed]

    def clear(self) -> None:
        """Forget everything."""
        self._passes.clear()


def checked_places(pending: Iterable[Any], n_arms: int) -> set[Place]:
    """The places in flight, (arm, pass) pairs."""
    expected = "pending must be the places in flight, such as [(0, 12), (2, 12)]"
    try:
        pairs = [tuple(place) for place in pending]
    except TypeError:
        raise TypeError(f"{expected}, got {pending!r}") from None
    places = set()
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(f"{expected}, got {pair!r}")
        arm = whole("an arm", pair[0], least=0, most=n_arms - 1)
        places.add((arm, whole("a pass", pair[1], least=0)))
    return places


def told_numbers(given: ArrayLike, shape: tuple[int, ...]) -> Vector:
    """Rewards as floats, nan where a value was not measured (None or nan)."""
    try:
        raw = np.array(given)
    except ValueError:
        raise ValueError(f"rewards must have shape {shape}, one column per objective, got {given!r}") from None
    if raw.size == 0 and shape[0] == 0:
        return np.empty(shape)
    if raw.shape != shape:
        raise ValueError(f"rewards must have shape {shape}, one column per objective, got {given!r}")
    if raw.dtype.kind in "fiub":
        return np.ascontiguousarray(raw, dtype=np.float64)
    if raw.dtype.kind != "O" or any(isinstance(value, (str, bytes)) for value in raw.flat):
        raise TypeError(f"rewards must be numbers, got {given!r}")
    try:
        return np.ascontiguousarray(raw.astype(np.float64))
    except OverflowError:
        raise ValueError(f"rewards must be finite, got {given!r}") from None
    except (TypeError, ValueError):
        raise TypeError(f"rewards must be numbers, got {given!r}") from None
