"""Results that came ahead of their pass."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lexbandits._arrays import Vector

Place = tuple[int, int]  # (arm, pass), passes from 0; see `places` where one arm is asked several times


class ResultBuffer:
    """Results of passes to come, by pass and arm: equal for equal contents, however they came."""

    _looked: tuple[int, int, list[Place]] = (-1, 0, [])  # in which pass, how far, what was empty

    def __init__(self) -> None:
        self._passes: dict[int, dict[int, Vector]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_passes": self._passes}  # asking changes nothing that anybody could see

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
        if not isinstance(other, ResultBuffer) or len(self) != len(other):
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

    def empty_places(
        self, current: int, asked: Callable[[int], list[Place]], per_pass: int
    ) -> Iterator[Place]:
        """Places of the passes after the current one that have no result, for ever; `asked` by a pass.

        Thousands may wait behind one lost trial: what was full once is not looked at again.
        """
        during, number, empty = self._looked
        if during != current:
            number, empty = current + 1, []
        empty = [place for place in empty if place[1] < number * per_pass and place not in self]
        self._looked = current, number, empty
        yield from tuple(empty)
        while True:
            found = [place for place in asked(number) if place not in self]
            yield from found
            number += 1
            empty += found
            self._looked = current, number, empty

    def clear(self) -> None:
        """Forget everything."""
        self._passes.clear()
