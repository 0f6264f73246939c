"""Checks of settings and of rewards: each returns the value in its plain form or says what was wrong.

A setting's name decides its check, in every policy alike: `checked_settings`.
"""

import difflib
import inspect
import math
import operator
import reprlib
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._code import Code

P = ParamSpec("P")
T = TypeVar("T")
PLAIN, FLOAT = {float, int}, np.dtype(np.float64)
SMALLEST = 1e-100  # of a scale: its square stays positive
BEST = "best"  # whose mean margins are shares of, unless it is an arm's that is named
LARGEST = 1e100  # of a reward: sums of any number of them, and their squares, stay finite


class IfInfeasible(Code):
    """What happens where nobody meets a limit: it counts as any other objective, or that is the answer."""

    CONTINUE = "continue"
    STOP = "stop"


class StopWhen(Code):
    """What a policy stops with: an answer that is certified, or a decision on every arm."""

    ANSWER = "answer"
    ALL = "all"


# --- names


def is_missing_in_pandas(value: Any) -> bool:
    """Whether it is one of pandas' own missing values, which need not be imported to be known."""
    return type(value).__name__ in ("NAType", "NaTType")


def known_names(word: Any, known: Iterable[Any], there: str = "it has") -> str:
    """List the known names, after the one that was probably meant.

    >>> known_names("detla", ["delta", "seed"])
    "did you mean 'delta'? It has delta, seed"
    """
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(word), names, 1)
    start = f"did you mean {near[0]!r}? {there.capitalize()}" if near else there
    return f"{start} {', '.join(names)}"


def suggesting(function: Callable[P, T]) -> Callable[P, T]:
    """Refuse a misspelt argument with the nearest name, which Python itself does from 3.13 on."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                hint = known_names(name, sorted(known))
                raise TypeError(f"{function.__name__}() has no argument {name!r}; {hint}")
        return function(*args, **kwargs)

    return called


# --- numbers


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


def sized(name: str, value: Any) -> float:
    """A number whose square, and sums of such squares, floating point can hold."""
    number = real(name, value)
    if abs(number) > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:g} in size, got {number:g}")
    return number


def scale(name: str, value: Any) -> float:
    """A positive number that is neither too large nor too small to be squared."""
    number = sized(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number}")
    if number < SMALLEST:
        raise ValueError(f"{name} must be at least {SMALLEST:g}, got {number:g}: say it in a smaller unit")
    return number


def bounds(name: str, low: Any, high: Any) -> tuple[float, float]:
    """Two ends that values lie between."""
    low, high = sized(f"{name}'s lower bound", low), sized(f"{name}'s upper bound", high)
    if not low < high:
        raise ValueError(f"{name}: the lower bound must be below the upper one, got {low:g} and {high:g}")
    if high - low < SMALLEST:
        raise ValueError(
            f"{name}: the bounds must be at least {SMALLEST:g} apart, got {low:g} and {high:g}: "
            "say them in a smaller unit"
        )
    return low, high


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
        raise ValueError(f"{name} must be one number or {n_objectives}, one per objective, got {len(values)}")
    return [check(f"{name}[{i}]", v) for i, v in enumerate(values)]


def each_objective(value: ArrayLike, n_objectives: int) -> NDArray[np.float64]:
    """(m,) array of its own for a setting given once or per objective."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (n_objectives,)))


def targets(name: str, value: Any, n_objectives: int) -> list[float | None] | None:
    """None or a number for each objective; None if no objective has a target."""
    given = [value] * n_objectives if np.ndim(value) == 0 else list(value)
    if len(given) != n_objectives:
        raise ValueError(f"{name} must be a number or None per objective ({n_objectives}), got {len(given)}")
    checked = [None if target is None else real(f"{name}[{i}]", target) for i, target in enumerate(given)]
    return None if all(target is None for target in checked) else checked


def different(name: str, value: Any, *, most: int) -> list[int]:
    """Different integers in 0..most, at least one."""
    try:
        numbers = [whole(f"{name}[{i}]", number, least=0, most=most) for i, number in enumerate(value)]
    except TypeError as error:
        raise TypeError(f"{name} must be a list of integers, got {value!r}") from error
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"{name} must name at least one, and none twice, got {value!r}")
    return numbers


def permutation(name: str, value: Any, size: int) -> list[int]:
    """Each of 0..size − 1 once."""
    numbers = different(name, value, most=size - 1)
    if len(numbers) < size:
        raise ValueError(f"{name} must name each of 0..{size - 1} once, got {value!r}")
    return numbers


def true_or_false(name: str, value: Any) -> bool:
    """A truth value, and no number that stands for one."""
    if not isinstance(value, (bool, np.bool_)):
        wrong = ValueError if isinstance(value, str) else TypeError
        raise wrong(f"{name} must be True or False, got {value!r}")
    return bool(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of the names in `choices`."""
    if value not in choices:
        wrong = ValueError if isinstance(value, str) else TypeError
        raise wrong(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return str(value)


def flag(name: str, value: Any) -> bool:
    """Accept True and False alone: 0, 1 or "yes" would hide a mistake."""
    if not isinstance(value, (bool, np.bool_)):
        wrong = ValueError if isinstance(value, str) else TypeError
        raise wrong(f"{name} must be True or False, got {value!r}")
    return bool(value)


def correlation_matrix(name: str, value: Any, n_objectives: int) -> NDArray[np.float64]:
    """(m, m) symmetric, positive semi-definite, with ones on its diagonal."""
    expected = f"{name} must be an ({n_objectives}, {n_objectives}) correlation matrix"
    try:
        matrix = np.array(value)
    except ValueError:  # rows of several lengths
        matrix = np.array(None)
    if matrix.dtype.kind not in "fiu" or matrix.ndim == 0:
        raise TypeError(f"{expected}, got {value!r}")
    matrix = matrix.astype(np.float64)
    if matrix.shape != (n_objectives, n_objectives):
        raise ValueError(f"{expected}, got shape {matrix.shape}")
    symmetric = np.isfinite(matrix).all() and np.array_equal(matrix, matrix.T)
    if not symmetric or not np.all(np.diag(matrix) == 1) or np.linalg.eigvalsh(matrix)[0] < -1e-12:
        raise ValueError(
            f"{expected}: symmetric, ones on the diagonal, positive semi-definite; got {matrix.tolist()}"
        )
    return matrix


def dependence(name: str, value: Any, n_objectives: int) -> bool | list[list[float]]:
    """False, True, or a correlation matrix as lists."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    rows: list[list[float]] = correlation_matrix(
        f"{name}, if not True or False,", value, n_objectives
    ).tolist()
    return rows


def set_sizes(value: Any, n_arms: int, n_objectives: int) -> list[int]:
    """|O_*(i)| for each objective: at most K, never rising, the last one 1."""
    try:
        sizes = [whole(f"optimal_set_sizes[{i}]", size, least=1, most=n_arms) for i, size in enumerate(value)]
    except TypeError as error:
        raise TypeError(f"optimal_set_sizes must be {n_objectives} integers, got {value!r}") from error
    if len(sizes) != n_objectives:
        raise ValueError(f"optimal_set_sizes must be {n_objectives}, one per objective, got {len(sizes)}")
    if sizes != sorted(sizes, reverse=True) or sizes[-1] != 1:
        raise ValueError(f"optimal_set_sizes must never rise and end in 1, the lex-optimal arm, got {sizes}")
    return sizes


# --- the settings of a policy

_SETTINGS: dict[str, Callable[[str, Any, int, int], Any]] = {
    "delta": lambda name, value, K, m: probability(name, value),
    "tradeoff": lambda name, value, K, m: at_least(name, value, 0.0),
    "tradeoff_slack": lambda name, value, K, m: at_least(name, value, 1.0),
    "caution": lambda name, value, K, m: at_least(name, value, 0.0),
    "loglog": lambda name, value, K, m: at_least(name, value, 0.0),
    "first": lambda name, value, K, m: whole(name, value, least=1),
    "then": lambda name, value, K, m: one_of(name, value, ("stop", "regret")),
    "most_passes": lambda name, value, K, m: whole(name, value, least=1),
    "optimal_set_sizes": lambda name, value, K, m: set_sizes(value, K, m),
    "tolerance": lambda name, value, K, m: per_objective(name, value, m, zero=True),
    "resolution": lambda name, value, K, m: per_objective(name, value, m, zero=True),
    "at_least": lambda name, value, K, m: targets(name, value, m),
    "if_infeasible": lambda name, value, K, m: one_of(name, value, [*IfInfeasible]),
    "stop_when": lambda name, value, K, m: one_of(name, value, [*StopWhen]),
    "preregistered": lambda name, value, K, m: flag(name, value),
    "order": lambda name, value, K, m: permutation(name, value, m),
    "leader_repeats": lambda name, value, K, m: whole(name, value, least=1),
    "max_arms": lambda name, value, K, m: whole(name, value, least=K),
    "n_items": lambda name, value, K, m: whole(name, value, least=1),
    "noise_sd": lambda name, value, K, m: per_objective(name, value, m),
    "correlated": lambda name, value, K, m: dependence(name, value, m),
    "objective": lambda name, value, K, m: whole(name, value, least=0, most=m - 1),
    "target_size": lambda name, value, K, m: whole(name, value, least=1, most=K),
    "alpha": lambda name, value, K, m: at_least(name, value, 1.0),
    "divergence": lambda name, value, K, m: one_of(name, value, ("gaussian", "bernoulli")),
    "exploration": lambda name, value, K, m: at_least(name, value, 0.0),
    "horizon": lambda name, value, K, m: whole(name, value, least=1),
    "bound": lambda name, value, K, m: positive(name, value),
    "epsilon": lambda name, value, K, m: positive(name, value),
    "scale": lambda name, value, K, m: positive(name, value),
    "rigorous": lambda name, value, K, m: true_or_false(name, value),
    "variant": lambda name, value, K, m: one_of(name, value, ("official", "xue")),
    "seed": lambda name, value, K, m: whole(name, value, least=0),
}


def checked_settings(n_arms: int, n_objectives: int, **given: Any) -> dict[str, Any]:
    """All settings of a policy in their plain form, the shape first; an unknown name goes unchecked."""
    n_arms = whole("n_arms", n_arms, least=1)
    n_objectives = whole("n_objectives", n_objectives, least=1)
    for name, check in _SETTINGS.items():
        if name in given:
            given[name] = check(name, given[name], n_arms, n_objectives)
    return {"n_arms": n_arms, "n_objectives": n_objectives, **given}


# --- what was written down before


def difference(there: Any, here: Any, where: str = "") -> str | None:
    """Where two values made of dicts and lists differ, in words; None if they do not."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            name = key if len(key) <= 60 and key.isprintable() else reprlib.repr(key)
            found = difference(there.get(key), here.get(key), f"{where}.{name}" if where else name)
            if found:
                return found
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = enumerate(zip(there, here, strict=True))
        found_in = (difference(*pair, f"{where}[{index}]") for index, pair in pairs)
        return next(filter(None, found_in), None)
    return None if there == here else f"{where} is {reprlib.repr(there)} there and {reprlib.repr(here)} here"


# --- what a policy is told


def checked_arm(arm: Any, n_arms: int) -> int:
    """An arm's index."""
    if type(arm) is int and 0 <= arm < n_arms:  # asked hundreds of thousands of times a second
        return arm
    return whole("an arm", arm, least=0, most=n_arms - 1)


def checked_pending(pending: Iterable[int], n_arms: int) -> NDArray[np.int64]:
    """(K,) how many pulls of each arm are in flight."""
    counts = np.zeros(n_arms, np.int64)
    try:
        arms = list(pending)
    except TypeError:
        raise TypeError(f"pending must be the arms in flight, such as [0, 2], got {pending!r}") from None
    for arm in arms:
        counts[checked_arm(arm, n_arms)] += 1
    return counts


def checked_reward(reward: ArrayLike, n_objectives: int, *, missing: bool) -> NDArray[np.float64]:
    """(m,) one reward; where values may be missing, nan for None, nan or a masked value."""
    try:
        plain = isinstance(reward, (tuple, list)) and PLAIN.issuperset(map(type, reward))
        vector = np.array(reward if plain else _unmasked(reward))
    except ValueError:
        raise ValueError(f"a reward is {n_objectives} numbers, got {reward!r}") from None
    if vector.shape != (n_objectives,):
        raise ValueError(f"a reward is {n_objectives} numbers, one per objective, got {reward!r}")
    if vector.dtype is not FLOAT:
        return _numbers(vector, missing, lambda _: repr(reward))
    for value in vector.tolist():
        if not (-LARGEST <= value <= LARGEST or (missing and math.isnan(value))):
            raise _not_finite(repr(reward))
    return vector


def checked_history(
    arms: ArrayLike, rewards: ArrayLike, n_arms: int, n_objectives: int, *, missing: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(T,) arms and (T, m) rewards, one row per pull."""
    try:
        played = np.array(arms)
    except ValueError:
        raise TypeError(f"arms must be a list of integers, got {arms!r}") from None
    if played.size == 0:
        played = played.astype(np.int64)
    if played.ndim != 1 or played.dtype.kind not in "iu":
        raise TypeError(f"arms must be a list of integers, got {arms!r}")
    outside = (played < 0) | (played >= n_arms)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ValueError(f"an arm must be in 0..{n_arms - 1}, got {int(played[row])} in row {row}")
    given = _unmasked(rewards)
    try:
        table = np.array(given)
    except ValueError:
        raise ValueError(f"rewards must be a table with {n_objectives} columns") from None
    if table.size == 0 and played.size == 0:
        table = np.empty((0, n_objectives))
    if table.shape != (played.size, n_objectives):
        expected = (played.size, n_objectives)
        raise ValueError(f"rewards must have shape {expected}, one row per pull, got {table.shape}")
    if table.dtype.kind in "US":  # one text makes all of them text: look at what was given
        table = np.array(given, dtype=object)
    return played.astype(np.int64), _numbers(
        table, missing, lambda row: f"{table[row].tolist()} in row {row}"
    )


def _unmasked(values: Any) -> Any:
    """`values`, with None where a masked array hides a value."""
    mask = getattr(values, "mask", None)
    if mask is not None and isinstance(values, np.ndarray):
        shown = np.array(values, dtype=object)
        shown[np.broadcast_to(mask, shown.shape)] = None
        return shown.tolist()
    if isinstance(values, (list, tuple)) and any(isinstance(value, np.ndarray) for value in values):
        return [_unmasked(value) for value in values]
    return values


def _numbers(values: NDArray[Any], missing: bool, where: Callable[[int], str]) -> NDArray[np.float64]:
    """`values` as floats; `where(row)` says in an error what was given."""
    if values.dtype.kind in "fiub":
        numbers = np.ascontiguousarray(values, dtype=np.float64)
        fine = (np.abs(numbers) <= LARGEST) | (missing & np.isnan(numbers))
        if not fine.all():
            raise _not_finite(where(int(np.argwhere(~fine)[0][0])))
        return numbers
    if values.dtype.kind not in "OUS":
        raise TypeError(f"rewards must be numbers, got {where(0)}")
    numbers = np.empty(values.shape)
    for index, value in np.ndenumerate(values):
        if value is None and not missing:
            raise ValueError(f"every objective must be measured, got {where(index[0])}")
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            numbers[index] = math.nan if value is None else float(value)
        except (TypeError, ValueError):
            raise TypeError(f"rewards must be numbers, got {where(index[0])}") from None
        except OverflowError:
            raise _not_finite(where(index[0])) from None
        if not (abs(numbers[index]) <= LARGEST or (missing and math.isnan(numbers[index]))):
            raise _not_finite(where(index[0]))
    return numbers


def _not_finite(given: str) -> ValueError:
    return ValueError(f"rewards must be finite and at most {LARGEST:g} in size, got {given}")


def toml_table(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file, which is UTF-8, with or without the mark that some editors put first."""
    content = Path(path).read_bytes()
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path} is not UTF-8 (line {line}): save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
