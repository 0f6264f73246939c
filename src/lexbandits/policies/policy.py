"""`Policy`: what a user drives. Ask for an arm, tell its reward, until it is finished."""

import copy
import inspect
import math
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry, fused, portion
from lexbandits._validation import (
    checked_arm,
    checked_history,
    checked_pending,
    checked_reward,
    checked_settings,
    whole,
)
from lexbandits.policies.base import LEFT_AT, Elimination, Rules, ranked

F = TypeVar("F", bound=Callable[..., Any])


class Policy:
    """Ask for an arm, tell its reward vector, until `finished`.

    A policy is a function of its history: `ask` changes nothing, and two policies told the same
    history are in the same state. Replay, storage and simulation all rest on this. A subclass gives
    `rules`, passes its settings to `super().__init__`, as `checked` does, and sets `state`, a named
    tuple whose field `arms` is an `Arms`; everything else is inherited: docs/own-policy.md.

    Args:
        n_arms, n_objectives: K and m.
        **settings: those of the subclass, kept in `settings`.

    >>> from lexbandits import LexElimIn
    >>> policy = LexElimIn(2, 1, delta=0.1, tradeoff=0)
    >>> while not policy.finished:
    ...     arm = policy.ask()
    ...     policy.tell(arm, [float(arm)])
    >>> policy.recommendation, policy.fresh().rounds
    (1, 0)
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
        """The arm to pull next, given `pending`, the arms in flight; the recommendation once finished."""
        nobody = isinstance(pending, tuple) and not pending
        in_flight = self._none_pending if nobody else checked_pending(pending, self.n_arms)
        arm = int(_next_arm(self.rules)(self.state, in_flight))
        return self.recommendation if arm < 0 else arm

    def ask_many(self, count: int, pending: Iterable[int] = ()) -> list[int]:
        """`count` arms to pull at once: what as many asks say, each `pending` for the next."""
        count = whole("count", count, least=0)
        in_flight, next_arm = checked_pending(pending, self.n_arms), _next_arm(self.rules)
        arms: list[int] = []
        while len(arms) < count:
            arm = int(next_arm(self.state, in_flight))
            if arm < 0:
                return [self.recommendation] * count
            in_flight[arm] += 1
            arms.append(arm)
        return arms

    def tell(self, arm: int, reward: ArrayLike) -> None:
        """Report the `reward` vector of a pull of `arm`: late or after the end if need be.

        Arms may come in any order, but the results of one arm in the order in which it was asked for:
        they count as its first, second, … as they are told.
        """
        arm = checked_arm(arm, self.n_arms)
        self._observe(arm, checked_reward(reward, self.n_objectives, missing=self.accepts_missing))

    def tell_many(self, arms: ArrayLike, rewards: ArrayLike) -> None:
        """Report many pulls, `arms` and their `rewards`, in order: all are checked, then all are told."""
        shape = self.n_arms, self.n_objectives
        self._replay(*checked_history(arms, rewards, *shape, missing=self.accepts_missing))

    @property
    def finished(self) -> bool:
        """Whether the policy has its answer; a run that ends at its horizon before has none."""
        return bool(entry(self.rules.finished)(self.state))

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
        return ranked(self.state.arms, self.candidates, objective)[0]

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
        """Who left when, and on which objective and by whom it is out; in order of round, then arm."""
        left = self.state.arms.left
        out = [Elimination(arm, *map(int, left[arm])) for arm in np.flatnonzero(left[:, LEFT_AT]).tolist()]
        return tuple(sorted(out, key=lambda e: (e.round, e.arm)))

    @property
    def name(self) -> str:
        """The class name, which finds the class in `BY_NAME`."""
        return type(self).__name__

    @property
    def settings(self) -> dict[str, Any]:
        """JSON-able keyword arguments that make a fresh equal policy."""
        return copy.deepcopy(self._settings)

    @property
    def by_sums(self) -> bool:
        """Whether it looks at nothing but sums of fresh pulls, which a simulator may then draw at once."""
        return self.rules.batch is not None and self.rules.observe_sum is not None

    # --- copies

    def fresh(self) -> Self:
        """A policy with the same settings and an empty history."""
        return type(self)(**self.settings)

    def start_run(self, seed: int, replication: int) -> None:
        """Tie the draws of a randomised policy to a run (`seed`, `replication`); the others have none."""

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

    # --- what is told, checked; a policy whose state must grow first does it here

    def _observe(self, arm: int, reward: Vector) -> None:
        entry(self.rules.observe)(self.state, arm, reward)

    def _replay(self, arms: Counts, rewards: Vector) -> None:
        replay, told = _replay_loop(self.rules), 0
        while told < arms.size:
            end = told + portion(arms.size - told)
            replay(self.state, arms[told:end], rewards[told:end])
            told = end


def checked(init: F) -> F:
    """An `__init__` that is handed its settings in plain form, checked by their names and kept.

    A setting whose default is None may be None.
    """
    signature = inspect.signature(init)
    optional = {name for name, parameter in signature.parameters.items() if parameter.default is None}

    @wraps(init)
    def checking(self: Policy, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        del bound.arguments["self"]
        given = bound.arguments
        said = {name: value for name, value in given.items() if value is not None or name not in optional}
        Policy.__init__(self, **{**given, **checked_settings(**said)})
        init(self, **self._settings)

    return cast(F, checking)


@cache
def _next_arm(rules: Rules) -> Callable[[Any, Counts], int]:
    """One compiled call where `finished` and `choose` would be two; negative once finished."""
    choose, finished = rules.choose, rules.finished

    def next_arm(state: Any, pending: Counts) -> int:
        return -1 if finished(state) else choose(state, pending)

    return fused(next_arm, choose, finished, bulk=False)


@cache
def _replay_loop(rules: Rules) -> Callable[[Any, Counts, Vector], None]:
    observe = rules.observe

    def replay(state: Any, arms: Counts, rewards: Vector) -> None:
        for t in range(arms.size):
            observe(state, arms[t], rewards[t])

    return fused(replay, observe, bulk=False)


def _same(left: Any, right: Any) -> bool:
    """Whether two states hold the same values, field by field."""
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    return bool(left == right)
