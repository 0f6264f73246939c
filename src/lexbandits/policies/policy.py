"""`Policy`: what a user drives. Ask for an arm, tell its reward, until it is finished."""

import copy
import math
import operator
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import whole
from lexbandits.jit import fused
from lexbandits.policies.base import (
    Elimination,
    Rules,
    best_of,
)


class Policy:
    """Ask for an arm, tell its reward vector, until `finished`.

    A policy is a function of its history: `ask` changes nothing, and two policies told the same
    history are in the same state. Replay, storage and simulation all rest on this. A subclass gives
    `rules`, passes its settings to `super().__init__` and sets `state`, a named tuple whose field
    `arms` is an `Arms`; everything else is inherited.
    """

    rules: ClassVar[Rules]
    accepts_missing: ClassVar[bool] = False  # None for a value that was not measured
    round_robin: ClassVar[bool] = False  # each active arm once by index: eliminations tell the rest
    state: Any

    def __init__(self, n_arms: int, n_objectives: int, **settings: Any) -> None:
        self.n_arms = whole("n_arms", n_arms, least=1)
        self.n_objectives = whole("n_objectives", n_objectives, least=1)
        self._settings = {"n_arms": self.n_arms, "n_objectives": self.n_objectives, **settings}
        self._none_pending = np.zeros(self.n_arms, np.int64)

    # --- driving it

    def ask(self, pending: Iterable[int] = ()) -> int:
        """The arm to pull next, given the arms in flight; the recommendation once finished. Pure."""
        nobody = isinstance(pending, tuple) and not pending
        in_flight = self._none_pending if nobody else self._in_flight(pending)
        arm = int(_next_arm(self.rules)(self.state, in_flight))
        return self.recommendation if arm < 0 else arm

    def tell(self, arm: int, reward: ArrayLike) -> None:
        """Report the reward vector of a pull of `arm`: late, out of order or after the end if need be."""
        arm = self._checked_arm(arm)
        self.rules.observe(self.state, arm, self._checked_reward(reward))

    def tell_many(self, arms: ArrayLike, rewards: ArrayLike) -> None:
        """Report many pulls in order: all are checked, then all are told, in compiled code."""
        played, table = self._checked_history(arms, rewards)
        _replay_loop(self.rules)(self.state, played, table)

    @property
    def finished(self) -> bool:
        """Whether the policy has its answer; a run that ends at its horizon before has none."""
        return bool(self.rules.finished(self.state))

    # --- what it knows

    @property
    def candidates(self) -> tuple[int, ...]:
        """The arms still in the running, ascending."""
        return tuple(np.flatnonzero(self.state.arms.active).tolist())

    @property
    def recommendation(self) -> int:
        """The only candidate; before that `best_guess`, which carries no certificate."""
        candidates = self.candidates
        return candidates[0] if len(candidates) == 1 else self.best_guess()

    def best_guess(self) -> int:
        """The candidate with the largest mean on the policy's objective (0 if it has none), lowest index."""
        objective = self._settings.get("objective", 0)
        return best_of(self.state.arms, self.candidates, objective)

    @property
    def rounds(self) -> int:
        """Rewards told so far."""
        return int(self.state.arms.told[0])

    @property
    def pulls(self) -> Counts:
        """(K,) rewards told of each arm."""
        return np.array(self.state.arms.pulls)

    @property
    def means(self) -> Vector:
        """(K, m) average reward of each arm; nan where unpulled."""
        arms = self.state.arms
        return np.where(arms.pulls[:, None] > 0, arms.means, math.nan)

    @property
    def eliminations(self) -> tuple[Elimination, ...]:
        """Who left when, on which objective, beaten by whom; in order of round, then arm."""
        left = self.state.arms.left
        out = [Elimination(arm, *map(int, left[arm])) for arm in np.flatnonzero(left[:, 0]).tolist()]
        return tuple(sorted(out, key=lambda e: (e.round, e.arm)))

    @property
    def name(self) -> str:
        """The class name, which finds the class in `BY_NAME`."""
        return type(self).__name__

    @property
    def settings(self) -> dict[str, Any]:
        """JSON-able keyword arguments that make a fresh equal policy."""
        return copy.deepcopy(self._settings)

    # --- copies

    def fresh(self) -> Self:
        """A policy with the same settings and an empty history."""
        return type(self)(**self.settings)

    def start_run(self, seed: int, replication: int) -> None:
        """Tie the draws of a randomised policy to a simulated run; nothing to do for the others."""

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Policy)
            and type(self) is type(other)
            and self._settings == other._settings
            and _same(self.state, other.state)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in self._settings.items())
        return f"{self.name}({settings})"

    # --- checks, before anything changes

    def _checked_arm(self, arm: int) -> int:
        try:
            if isinstance(arm, (bool, np.bool_)):
                raise TypeError
            index = operator.index(arm)
        except TypeError:
            raise TypeError(f"an arm is an integer in 0..{self.n_arms - 1}, got {arm!r}") from None
        if not 0 <= index < self.n_arms:
            raise ValueError(f"an arm is an integer in 0..{self.n_arms - 1}, got {index}")
        return index

    def _checked_reward(self, reward: ArrayLike) -> Vector:
        try:
            vector = np.array(reward)
        except ValueError:
            raise ValueError(f"a reward is {self.n_objectives} numbers, got {reward!r}") from None
        if vector.shape != (self.n_objectives,):
            raise ValueError(f"a reward is {self.n_objectives} numbers, one per objective, got {reward!r}")
        kind = vector.dtype.kind
        if kind != "f" or vector.dtype.itemsize != 8:
            vector = self._converted(vector, reward)
            if kind == "O":
                return vector  # checked one by one
        for value in vector.tolist():
            if not math.isfinite(value):
                raise ValueError(f"rewards must be finite, got {reward!r}")
        return vector

    def _converted(self, values: NDArray[Any], given: Any) -> Vector:
        if values.dtype.kind in "fiub":
            return np.ascontiguousarray(values, dtype=np.float64)
        if values.dtype.kind != "O":
            raise TypeError(f"rewards must be numbers, got {given!r}")
        converted = np.empty(values.shape)
        for index, value in np.ndenumerate(values):
            if values.ndim > 1:
                given = f"{values[index[0]].tolist()} in row {index[0]}"
            if value is None:
                if not self.accepts_missing:
                    raise ValueError(f"{self.name} needs every objective measured, got {given!r}")
                converted[index] = math.nan
                continue
            if isinstance(value, (str, bytes)):
                raise TypeError(f"rewards must be numbers, got {given!r}")
            try:
                converted[index] = float(value)
            except (TypeError, ValueError):
                raise TypeError(f"rewards must be numbers, got {given!r}") from None
            except OverflowError:
                raise ValueError(f"rewards must be finite, got {given!r}") from None
            if not math.isfinite(converted[index]):
                raise ValueError(f"rewards must be finite, got {given!r}")
        return converted

    def _checked_history(self, arms: ArrayLike, rewards: ArrayLike) -> tuple[Counts, Vector]:
        try:
            played = np.array(arms)
        except ValueError:
            raise TypeError(f"arms must be a list of integers, got {arms!r}") from None
        if played.size == 0:
            played = played.astype(np.int64)
        if played.ndim != 1 or played.dtype.kind not in "iu":
            raise TypeError(f"arms must be a list of integers, got {arms!r}")
        outside = (played < 0) | (played >= self.n_arms)
        if outside.any():
            raise ValueError(f"arms are integers in 0..{self.n_arms - 1}, got {int(played[outside][0])}")
        try:
            table = np.array(rewards)
        except ValueError:
            raise ValueError(f"rewards must be a table with {self.n_objectives} columns") from None
        if table.size == 0 and played.size == 0:
            table = np.empty((0, self.n_objectives))
        if table.shape != (played.size, self.n_objectives):
            expected = (played.size, self.n_objectives)
            raise ValueError(f"rewards must have shape {expected}, one row per pull, got {table.shape}")
        kind = table.dtype.kind
        table = self._converted(table, "the table given")
        if kind != "O" and not np.isfinite(table).all():
            row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
            raise ValueError(f"rewards must be finite, got {table[row].tolist()} in row {row}")
        return played.astype(np.int64), np.ascontiguousarray(table)

    def _in_flight(self, pending: Iterable[int]) -> Counts:
        counts = np.zeros(self.n_arms, np.int64)
        try:
            arms = list(pending)
        except TypeError:
            raise TypeError(f"pending must be the arms in flight, such as [0, 2], got {pending!r}") from None
        for arm in arms:
            counts[self._checked_arm(arm)] += 1
        return counts


@cache
def _next_arm(rules: Rules) -> Callable[[Any, Counts], int]:
    """One compiled call where `finished` and `choose` would be two; negative once finished."""
    choose, finished = rules.choose, rules.finished

    def next_arm(state: Any, pending: Counts) -> int:
        return -1 if finished(state) else choose(state, pending)

    return fused(next_arm, choose, finished)


@cache
def _replay_loop(rules: Rules) -> Callable[[Any, Counts, Vector], None]:
    observe = rules.observe

    def replay(state: Any, arms: Counts, rewards: Vector) -> None:
        for t in range(arms.size):
            observe(state, arms[t], rewards[t])

    return fused(replay, observe)


def _same(left: Any, right: Any) -> bool:
    """Whether two states hold the same values, field by field."""
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    return bool(left == right)
