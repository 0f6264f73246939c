"""The question a study asks: objectives, arms and settings, as Python, JSON or TOML.

Values are turned to "larger is better" here and nowhere else; whatever people see is as they gave it.
"""

import hashlib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.checks import positive, probability, real, whole
from lexbandits.study.errors import StudyError, UnknownArmError, ValueOutOfRange

TRIAL_COLUMNS = ("number", "id", "arm", "item", "state", "worker", "asked", "resolved")
DIRECTIONS = ("maximize", "minimize")
LARGEST = 1e100  # of a value; the policy could not sum larger ones
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

Noise = str | tuple[Any, ...]


# --- small words


def checked_name(what: str, name: Any) -> str:
    """1 to 200 printable characters."""
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} must be text, got {name!r}")
    if not (1 <= len(name) <= 200 and name.isprintable()):
        raise StudyError(f"the name of {what} must be 1 to 200 printable characters, got {name!r}")
    return name


def seconds(what: str, value: Any) -> float:
    """A duration: seconds as a number, a timedelta, or "500ms", "2s", "10m", "1h", "30d"."""
    if isinstance(value, timedelta):
        return positive(what, value.total_seconds())
    if not isinstance(value, str):
        return positive(what, value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", value)
    if match is None:
        raise StudyError(f'{what} must be a duration such as "2s", "10m" or "30d", got {value!r}')
    return positive(what, float(match[1]) * UNITS[match[2]])


def duration(amount: float) -> str:
    """
    >>> duration(600.0), duration(0.25), duration(90.0)
    ('10m', '250ms', '90s')
    """
    for unit in ("d", "h", "m", "s", "ms"):
        count = amount / UNITS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{amount!r}s"


def _amount(what: str, value: Any, reference: float | None) -> float:
    """A number >= 0, or a percentage of the reference."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)
        if match is None:
            raise StudyError(f'{what} must be a number or a percentage such as "5%", got {value!r}')
        if reference is None:
            raise StudyError(
                f"{what} is {value!r} of an unknown best, which nobody knows before the end: "
                "say reference=, the number of which it is a percentage"
            )
        return float(match[1]) / 100 * abs(reference)
    number = real(what, value)
    if number < 0:
        raise StudyError(f"{what} must not be negative, got {value!r}")
    return number


def _noise(what: str, value: Any) -> Noise:
    """A kind of noise in its plain form: text, or a tuple of text and numbers."""
    parts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
    match parts:
        case ("gaussian" | "bernoulli" | "exact" | "finite_variance",):
            return str(parts[0])
        case ("bounded", low, high):
            low, high = real(f"{what}'s lower bound", low), real(f"{what}'s upper bound", high)
            if low >= high:
                raise StudyError(f"{what}: the lower bound must be below the upper one, got {value!r}")
            return ("bounded", low, high)
        case ("sub_gaussian", sd) | ("sub_gaussian", sd, "dependent"):
            return ("sub_gaussian", positive(f"{what}'s standard deviation", sd), *parts[2:])
    raise StudyError(
        f'{what} must be "gaussian", "bernoulli", ("bounded", low, high), ("sub_gaussian", sd), '
        f'"finite_variance" or "exact", got {value!r}'
    )


# --- objectives


@dataclass(frozen=True)
class Objective:
    """One measure, with the direction, unit and tolerance in which people speak of it.

    `tolerance` is what does not matter, `resolution` how finely it is told apart (the tolerance, unless
    said): numbers in the objective's unit or "5%" of `reference`. With `at_least` or `at_most` the
    objective is met or not, and all arms that meet it tie. `noise` is a kind: "gaussian" (unknown
    variance), "bernoulli", ("bounded", low, high), ("sub_gaussian", sd), "finite_variance", "exact".
    `if_failed` and `if_expired` are the values that count then; without them the value is missing.
    """

    name: str
    direction: str = "maximize"
    _: KW_ONLY
    tolerance: float | str | None = None
    resolution: float | str | None = None
    unit: str = ""
    noise: Noise = "gaussian"
    at_least: float | None = None
    at_most: float | None = None
    reference: float | None = None
    if_failed: float | None = None
    if_expired: float | None = None

    def __post_init__(self) -> None:
        checked_name("an objective", self.name)
        if self.name in TRIAL_COLUMNS:
            raise StudyError(
                f"an objective cannot be called {self.name!r}: the table of trials has that column"
            )
        if self.direction not in DIRECTIONS:
            raise StudyError(
                f'{self}: the direction must be "maximize" or "minimize", got {self.direction!r}'
            )
        if not isinstance(self.unit, str):
            raise TypeError(f"{self}: the unit must be text, got {self.unit!r}")
        object.__setattr__(self, "noise", _noise(f"{self}: noise", self.noise))
        for key in ("at_least", "at_most", "reference"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, real(f"{self}: {key}", getattr(self, key)))
        self._check_target()
        self._check_precision()
        for key in ("if_failed", "if_expired"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, self.checked(getattr(self, key), key))

    def __str__(self) -> str:
        return f"objective {self.name!r}"

    @property
    def sign(self) -> int:
        """What turns a value into one of which more is better."""
        return 1 if self.direction == "maximize" else -1

    @property
    def target(self) -> float | None:
        """The value to be met, as given."""
        return self.at_most if self.at_least is None else self.at_least

    @property
    def bounds(self) -> tuple[float, float]:
        """What values can be, as given."""
        if self.noise == "bernoulli":
            return 0.0, 1.0
        if self.noise[0] == "bounded":
            return float(self.noise[1]), float(self.noise[2])
        return -math.inf, math.inf

    @cached_property
    def tolerance_in_unit(self) -> float:
        """The tolerance as a number."""
        return (
            0.0 if self.tolerance is None else _amount(f"{self}: tolerance", self.tolerance, self.reference)
        )

    @cached_property
    def resolution_in_unit(self) -> float:
        """The resolution as a number: a tenth of a target that has neither it nor a tolerance."""
        if self.resolution is not None:
            return _amount(f"{self}: resolution", self.resolution, self.reference)
        if self.tolerance is None and self.target is not None:
            return abs(self.target) / 10
        return self.tolerance_in_unit

    def checked(self, value: Any, what: str = "") -> float:
        """The value as a number, nan if missing; an error if it cannot be one of this objective."""
        where = f"{self}{', ' + what if what else ''}"
        if value is None:
            return math.nan
        if isinstance(value, (str, bytes)):
            raise ValueOutOfRange(f"{where}: a value must be a number, got {value!r}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        except (TypeError, ValueError):
            if type(value).__name__ in ("NAType", "NaTType"):  # pandas' missing values
                return math.nan
            raise ValueOutOfRange(f"{where}: a value must be a number, got {value!r}") from None
        if abs(number) > LARGEST:
            raise ValueOutOfRange(f"{where}: a value must be finite, and at most {LARGEST:g}, got {value!r}")
        low, high = self.bounds
        if not (low <= number <= high or math.isnan(number)):
            raise ValueOutOfRange(f"{where}: a value must be in [{low:g}, {high:g}], got {value!r}")
        return number

    def as_json(self) -> dict[str, Any]:
        """The words that make it again, without those left at their default."""
        words = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        words.setdefault("direction", self.direction)
        if isinstance(self.noise, tuple):
            words["noise"] = list(self.noise)
        return words

    @classmethod
    def from_json(cls, words: Any) -> Self:
        """From the words of `as_json`, of a REST call or of TOML."""
        if isinstance(words, cls):
            return words
        _only_known("an objective", words, [f.name for f in fields(cls)])
        if "name" not in words:
            raise StudyError(f"an objective needs a name, got {words!r}")
        return cls(**words)

    def _check_target(self) -> None:
        if self.at_least is not None and self.at_most is not None:
            raise StudyError(f"{self}: one target, at_least or at_most, not both")
        wrong = "at_most" if self.direction == "maximize" else "at_least"
        if getattr(self, wrong) is not None:
            other = "minimize" if wrong == "at_most" else "maximize"
            raise StudyError(
                f'{self}: {wrong} goes with direction="{other}", got direction="{self.direction}"'
            )

    def _check_precision(self) -> None:
        both = self.tolerance_in_unit, self.resolution_in_unit  # says what is wrong with either
        if self.noise == "exact":
            return
        if self.tolerance is None and self.resolution is None and self.target is None:
            raise StudyError(
                f"{self} needs a tolerance (the difference that does not matter) or a resolution: "
                "without either, two equal arms would be measured for ever"
            )
        if self.target is not None and both[1] == 0:
            raise StudyError(f"{self}: a target needs a positive resolution, got {both[1]:g}")
        if sum(both) == 0:
            raise StudyError(
                f"{self}: tolerance and resolution are both 0, so equal arms would never be settled"
            )


def _only_known(what: str, words: Any, known: Iterable[str]) -> None:
    if not isinstance(words, Mapping):
        raise TypeError(f"{what} must be a table of names and values, got {words!r}")
    unknown = [key for key in words if key not in set(known)]
    if unknown:
        raise StudyError(f"{what} has no {unknown[0]!r}; it has {', '.join(sorted(known))}")


# --- arms and the whole


def checked_arm(arm: Any) -> dict[str, Any]:
    """An arm as {"name": …, further keys that `run` hands to a command}."""
    words = {"name": arm} if isinstance(arm, str) else arm
    if not isinstance(words, Mapping) or "name" not in words:
        raise TypeError(f"an arm is a name or a table with a name, got {arm!r}")
    checked_name("an arm", words["name"])
    for key, value in words.items():
        if not isinstance(key, str) or not isinstance(value, (str, int, float, bool)):
            raise TypeError(f"arm {words['name']!r}: {key!r} must be text or a number, got {value!r}")
    return dict(words)


def _unique(what: str, names: Sequence[Any]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise StudyError(f"{what} must differ, {name!r} is there twice")
        seen.add(name)


def _checked_items(items: Any) -> tuple[Any, ...] | None:
    if items is None:
        return None
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise TypeError(f"items must be a list, got {items!r}")
    plain = tuple(item.item() if isinstance(item, np.generic) else item for item in items)
    for item in plain:
        if isinstance(item, bool) or not isinstance(item, (str, int, float)):
            raise TypeError(f"an item must be text or a number, got {item!r}")
        if isinstance(item, float) and not math.isfinite(item):
            raise StudyError(f"an item must be finite, got {item!r}")
    if not plain:
        raise StudyError("items must not be empty")
    _unique("items", plain)
    return plain


@dataclass(frozen=True)
class Spec:
    """The whole question, checked. `as_json` is what the journal's first event holds."""

    name: str
    arms: tuple[dict[str, Any], ...]
    objectives: tuple[Objective, ...]
    delta: float = 0.05
    items: tuple[Any, ...] | None = None
    seed: int = 0
    if_infeasible: str = "go on"
    budget: int | None = None
    lease: float = 600.0
    max_failures: int = 5
    max_arms: int = field(default=0)

    @classmethod
    def from_json(cls, words: Any) -> Self:
        """Check the words of a REST call, of TOML or of `create_study`."""
        _only_known("a study", words, [f.name for f in fields(cls)])
        for key in ("name", "arms", "objectives"):
            if key not in words:
                raise StudyError(f"a study needs {key}")
        for key in ("arms", "objectives"):
            if isinstance(words[key], (str, Mapping)) or not isinstance(words[key], Iterable):
                raise TypeError(f"{key} must be a list, got {words[key]!r}")
        arms = tuple(checked_arm(arm) for arm in words["arms"])
        objectives = tuple(Objective.from_json(objective) for objective in words["objectives"])
        if not arms or not objectives:
            raise StudyError("a study needs at least one arm and one objective")
        _unique("arms", [arm["name"] for arm in arms])
        _unique("objectives", [objective.name for objective in objectives])
        policy = words.get("if_infeasible", "go on")
        if policy not in ("go on", "stop"):
            raise StudyError(f'if_infeasible must be "go on" or "stop", got {policy!r}')
        budget, most = words.get("budget"), words.get("max_arms")
        return cls(
            name=checked_name("a study", words["name"]),
            arms=arms,
            objectives=objectives,
            delta=probability("delta", words.get("delta", cls.delta)),
            items=_checked_items(words.get("items")),
            seed=whole("seed", words.get("seed", cls.seed), least=0),
            if_infeasible=policy,
            budget=None if budget is None else whole("budget", budget, least=1),
            lease=seconds("lease", words.get("lease", cls.lease)),
            max_failures=whole("max_failures", words.get("max_failures", cls.max_failures), least=1),
            max_arms=len(arms) if most is None else whole("max_arms", most, least=len(arms)),
        )

    def as_json(self) -> dict[str, Any]:
        """The whole question in words that `from_json` reads back to an equal one."""
        return {
            "name": self.name,
            "arms": [arm["name"] if len(arm) == 1 else dict(arm) for arm in self.arms],
            "objectives": [objective.as_json() for objective in self.objectives],
            "delta": self.delta,
            "items": None if self.items is None else list(self.items),
            "seed": self.seed,
            "if_infeasible": self.if_infeasible,
            "budget": self.budget,
            "lease": duration(self.lease),
            "max_failures": self.max_failures,
            "max_arms": self.max_arms,
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The objectives' names, in the order of the columns."""
        return tuple(objective.name for objective in self.objectives)

    def column(self, objective: Any) -> int:
        """The column of an objective, by name."""
        if objective not in self.names:
            raise StudyError(f"no objective {objective!r}; there are {', '.join(map(repr, self.names))}")
        return self.names.index(objective)

    def checked(self, values: Any) -> dict[str, float | None]:
        """A result as it is recorded: every value a number or None; absent keys stay absent."""
        if not isinstance(values, Mapping):
            raise ValueOutOfRange(
                f"values must be a table such as {{{self.names[0]!r}: 0.5}}, got {values!r}"
            )
        checked: dict[str, float | None] = {}
        for name, value in values.items():
            if name not in self.names:
                known = ", ".join(map(repr, self.names))
                raise ValueOutOfRange(f"no objective {name!r}; there are {known}")
            number = self.objectives[self.names.index(name)].checked(value)
            checked[name] = None if math.isnan(number) else number
        return checked

    def changed(self, objective: str, **words: Any) -> Self:
        """The spec with another tolerance or resolution of one objective."""
        column = self.column(objective)
        new = list(self.objectives)
        new[column] = replace(new[column], **words)
        return replace(self, objectives=tuple(new))

    # --- as the policy sees it

    def signed(self, values: Vector) -> Vector:
        """(n, m) values as measured -> of which more is better."""
        return values * self.signs + 0.0  # + 0.0: no negative zeros

    @cached_property
    def signs(self) -> Vector:
        """(m,) of 1 and -1."""
        return np.array([objective.sign for objective in self.objectives], dtype=np.float64)

    @property
    def tolerances(self) -> list[float]:
        """One per objective, in its unit."""
        return [objective.tolerance_in_unit for objective in self.objectives]

    @property
    def resolutions(self) -> list[float]:
        """One per objective, in its unit."""
        return [objective.resolution_in_unit for objective in self.objectives]

    def policy_settings(self) -> dict[str, Any]:
        """What makes the policy, JSON-able."""
        targets = [None if o.target is None else o.sign * o.target for o in self.objectives]
        settings: dict[str, Any] = {
            "n_arms": len(self.arms),
            "n_objectives": len(self.objectives),
            "delta": self.delta,
            "tolerance": self.tolerances,
            "resolution": self.resolutions,
            "noise": [self._signed_noise(objective) for objective in self.objectives],
            "if_infeasible": self.if_infeasible,
            "max_arms": self.max_arms,
        }
        if any(target is not None for target in targets):
            settings["at_least"] = targets
        return settings

    def _signed_noise(self, objective: Objective) -> Any:
        noise = objective.noise
        if objective.sign < 0 and (noise == "bernoulli" or noise[0] == "bounded"):
            low, high = objective.bounds
            return ["bounded", 0.0 - high, 0.0 - low]
        if noise[0] == "sub_gaussian" and self.items is not None:  # common items tie the arms' noises
            return ["sub_gaussian", noise[1], "dependent"]
        return noise if isinstance(noise, str) else list(noise)


def in_drawn_order(items: Iterable[Any], seed: int) -> list[Any]:
    """Items in an order drawn from the seed that does not depend on the order in which they are given."""

    def draw(item: Any) -> bytes:
        return hashlib.sha256(f"{seed}:{type(item).__name__}:{item!r}".encode()).digest()

    return sorted(items, key=draw)


def arm_index(names: Sequence[str], arm: Any) -> int:
    """The index of an arm, by name."""
    if arm not in names:
        raise UnknownArmError(f"no arm {arm!r}; there are {', '.join(map(repr, names))}")
    return names.index(arm)


def words_from_toml(path: str | Path) -> dict[str, Any]:
    """`[study]`, `[[objectives]]` and `[[arms]]` of a file, as one table; a `storage` in it stays in it."""
    with Path(path).open("rb") as file:
        try:
            content = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{path} is not TOML: {error}") from None
    _only_known(str(path), content, ("study", "objectives", "arms"))
    words = dict(content.get("study", {}))
    words |= {key: content[key] for key in ("objectives", "arms") if key in content}
    return words


def difference(there: Any, here: Any, where: str = "") -> str | None:
    """Where two tables of words differ, in words; None if they do not."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            found = difference(there.get(key), here.get(key), f"{where}.{key}" if where else key)
            if found:
                return found
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = enumerate(zip(there, here, strict=True))
        found_in = (difference(*pair, f"{where}[{index}]") for index, pair in pairs)
        return next(filter(None, found_in), None)
    return None if there == here else f"{where} is {there!r} there and {here!r} here"
