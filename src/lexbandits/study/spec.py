"""The question a study asks: objectives, arms and settings, as Python, JSON or TOML.

Values are turned to "larger is better" here and nowhere else; whatever people see is as they gave it.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.checks import positive, probability, toml_table, whole
from lexbandits.study.errors import (
    StorageVersionError,
    StudyError,
    UnknownArmError,
    ValueOutOfRange,
    study_errors,
)
from lexbandits.study.items import checked_items, id_of, items_of_file, unique
from lexbandits.study.objective import Objective, checked_name, only_known

FORMAT = 4  # of the journal, as its first event says
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PLACEHOLDERS = ("arm", "item", "repeat")  # what `run` puts into a command
LONGEST = 1e6 * UNITS["d"]  # a calendar ends some time later
WAIT = (
    2.0  # seconds that an ask waits for results that must come first; who asks may itself have to tell them
)

# --- small words


@study_errors()
def seconds(what: str, value: Any) -> float:
    """A duration: seconds as a number, a timedelta, or "500ms", "2s", "10m", "1h", "30d"."""
    amount = _amount(what, value)
    if amount > LONGEST:
        raise StudyError(f"{what} must be at most {duration(LONGEST)}, got {value!r}")
    return amount


def patience(value: Any) -> float:
    """How long to wait: a duration as in `seconds`, or 0 for not at all."""
    return 0.0 if value in (0, "0", "0s") else seconds("wait", value)


def _amount(what: str, value: Any) -> float:
    if isinstance(value, timedelta):
        return positive(what, value.total_seconds())
    if not isinstance(value, str):
        return positive(what, value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", value)
    if match is None:
        raise StudyError(f'{what} must be a duration such as "2s", "10m" or "30d", got {value!r}')
    amount = float(match[1]) * UNITS[match[2]]
    if amount <= 0:
        raise StudyError(f"{what} must be longer than nothing, got {value!r}")
    return amount


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


# --- arms and the whole


def checked_arm(arm: Any) -> dict[str, Any]:
    """An arm as {"name": …, further keys that `run` hands to a command}."""
    words = {"name": arm} if isinstance(arm, str) else arm
    if not isinstance(words, Mapping) or "name" not in words:
        raise TypeError(f"an arm is a name or a table with a name, got {arm!r}")
    checked_name("an arm", words["name"])
    for key, value in words.items():
        if key in PLACEHOLDERS:
            raise StudyError(
                f"arm {words['name']!r}: {key!r} cannot be a key of an arm: `run` fills in {{{key}}} itself; "
                "call it otherwise"
            )
        if not isinstance(key, str) or not isinstance(value, (str, int, float, bool)):
            raise TypeError(f"arm {words['name']!r}: {key!r} must be text or a number, got {value!r}")
    return dict(words)


@dataclass(frozen=True)
class Spec:
    """The whole question, checked. `as_json` is what the journal's first event holds."""

    name: str
    arms: tuple[dict[str, Any], ...]
    objectives: tuple[Objective, ...]
    delta: float = 0.05
    items: tuple[Any, ...] | None = None
    about: str = "population"  # what an answer is about: these "items", or the population they sample
    repeats: int = 1  # places per item of a list
    source: dict[str, str] | None = None  # the file that the items are from, and its hash
    seed: int | None = None  # of the order; drawn when the study is made
    if_infeasible: Literal["go on", "stop"] = "go on"
    budget: int | None = None
    lease: float = 600.0
    max_failures: int = 5
    max_arms: int = field(default=0)
    rules: Literal["declared", "open"] = "declared"
    baseline: str | None = None  # the current arm, which answers unless another is better
    objects: bool = False  # whether arms are objects to `measure`; each process has its own

    @classmethod
    @study_errors()
    def from_json(cls, words: Any) -> Self:
        """Check the words of a REST call, of TOML or of `create_study`."""
        only_known("a study", words, [f.name for f in fields(cls)])
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
        for objective in objectives:
            if objective.quantile is not None:
                raise StudyError(
                    f"{objective}: quantile= is for judge: give a study a limit, {objective.as_a_share}"
                )
        names = [arm["name"] for arm in arms]
        unique("arms", names)
        unique("objectives", [objective.name for objective in objectives])
        items = checked_items(words.get("items"))
        about, repeats = _checked_about(words, items)
        for objective in objectives:
            _check_reference(objective, names, about)
        for objective in objectives if about == "population" else ():
            objective.check_settled()
        policy = words.get("if_infeasible", "go on")
        if policy not in ("go on", "stop"):
            raise StudyError(f'if_infeasible must be "go on" or "stop", got {policy!r}')
        rules = words.get("rules", cls.rules)
        if rules not in ("declared", "open"):
            raise StudyError(
                'rules must be "declared", which is cheaper while they are kept, or "open", if you know '
                f"that you will change them, got {rules!r}"
            )
        baseline = words.get("baseline")
        if baseline is not None and baseline not in names:
            raise StudyError(
                f"baseline must be one of the arms {', '.join(map(repr, names))}, got {baseline!r}"
            )
        objects = words.get("objects", cls.objects)
        if not isinstance(objects, bool):
            raise TypeError(f"objects must be true or false, got {objects!r}")
        budget, most, seed = words.get("budget"), words.get("max_arms"), words.get("seed")
        return cls(
            name=checked_name("a study", words["name"]),
            arms=arms,
            objectives=objectives,
            delta=probability("delta", words.get("delta", cls.delta)),
            items=items,
            about=about,
            repeats=repeats,
            source=words.get("source"),
            seed=None if seed is None else whole("seed", seed, least=0),
            if_infeasible=policy,
            budget=None if budget is None else whole("budget", budget, least=1),
            lease=seconds("lease", words.get("lease", cls.lease)),
            max_failures=whole("max_failures", words.get("max_failures", cls.max_failures), least=1),
            max_arms=len(arms) if most is None else whole("max_arms", most, least=len(arms)),
            rules=rules,
            baseline=baseline,
            objects=objects,
        )

    def as_json(self) -> dict[str, Any]:
        """The whole question in words that `from_json` reads back to an equal one."""
        words = {each.name: getattr(self, each.name) for each in fields(self)}
        words |= {
            "arms": [arm["name"] if len(arm) == 1 else dict(arm) for arm in self.arms],
            "objectives": [objective.as_json() for objective in self.objectives],
            "items": None if self.items is None else list(self.items),
            "lease": duration(self.lease),
        }
        unsaid: dict[str, Any] = {"repeats": 1, "source": None, "baseline": None, "objects": False}
        unsaid |= {"about": "population"} if self.items is None else {}
        return {key: word for key, word in words.items() if key not in unsaid or word != unsaid[key]}

    @cached_property
    def is_list(self) -> bool:
        """Whether an answer is about the items alone, in an order that nobody may know beforehand."""
        return self.about == "items"

    @cached_property
    def ids(self) -> tuple[Any, ...]:
        """What each item is called."""
        return tuple(map(id_of, self.items or ()))

    def without_order(self) -> Self:
        """What may be shown of it while items of a list are still to come."""
        return replace(self, seed=None) if self.is_list else self

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
            objective = self._by_name.get(name)
            if objective is None:
                known = ", ".join(map(repr, self.names))
                raise ValueOutOfRange(f"no objective {name!r}; there are {known}")
            number = objective.checked(value)
            checked[name] = None if math.isnan(number) else number
        return checked

    @cached_property
    def _by_name(self) -> dict[str, Objective]:
        return {objective.name: objective for objective in self.objectives}

    def changed(self, objective: str, **words: Any) -> Self:
        """The spec with another margin or tie of one objective; says what is wrong with it."""
        column = self.column(objective)
        new = list(self.objectives)
        if new[column].limit is not None:
            raise StudyError(
                f"{new[column]}: a limit and its slack cannot be changed: make a new study, and import what "
                "was measured"
            )
        new[column] = replace(new[column], **words)
        if self.objectives[column].is_relative or new[column].is_relative:
            raise StudyError(
                f"{new[column]}: percentages of a mean cannot be changed, nor can a number become one: what "
                "is kept of the values is for what was declared; make a new study"
            )
        if not self.is_list:
            new[column].check_settled()
        return replace(self, objectives=tuple(new))

    # --- as the policy sees it

    def signed(self, values: Vector) -> Vector:
        """(n, m) values as measured -> of which more is better."""
        return self.cut(values) * self.signs + 0.0  # + 0.0: no negative zeros

    def cut(self, values: Vector) -> Vector:
        """(n, m) values as measured -> as they count."""
        if not any(objective.is_cut for objective in self.objectives):
            return values
        columns = zip(self.objectives, values.T, strict=True)
        return np.stack([objective.cut(column) for objective, column in columns], axis=1)

    def signed_row(self, values: list[float]) -> Vector:
        """The same of one row; NumPy takes longer for so few."""
        rows = zip(values, self.objectives, strict=True)
        return np.array([(o.cut(value) if o.is_cut else value) * o.sign + 0.0 for value, o in rows])

    @cached_property
    def signs(self) -> Vector:
        """(m,) of 1 and -1."""
        return np.array([objective.sign for objective in self.objectives], dtype=np.float64)

    @property
    def thresholds(self) -> dict[str, list[float]]:
        """Margins and ties in the words of the policy, one per objective; what `amend` changes."""
        found = [objective.thresholds for objective in self.objectives]
        return {
            "tolerance": [each.tolerance for each in found],
            "resolution": [each.resolution for each in found],
        }

    def policy_settings(self) -> dict[str, Any]:
        """What makes the policy of a new study, JSON-able."""
        for objective in self.objectives:
            objective.check_agreed()
        targets = [objective.thresholds.target for objective in self.objectives]
        settings: dict[str, Any] = {
            "n_arms": len(self.arms),
            "n_objectives": len(self.objectives),
            "delta": self.delta,
            **self.thresholds,
            "noise": [self._signed_noise(objective) for objective in self.objectives],
            "if_infeasible": self.if_infeasible,
            "max_arms": self.max_arms,
            "rules": self.rules,
        }
        if self.baseline is not None:
            settings["baseline"] = [arm["name"] for arm in self.arms].index(self.baseline)
        if any(objective.is_relative for objective in self.objectives):
            settings["reference"] = [self._reference(objective) for objective in self.objectives]
        if self.is_list:
            settings["n_items"] = len(self.ids) * self.repeats
        if any(target is not None for target in targets):
            settings["at_least"] = targets
        return settings

    def _reference(self, objective: Objective) -> list[Any] | None:
        """Of whose mean percentages are, as the policy takes it."""
        if not objective.is_relative:
            return None
        names = [arm["name"] for arm in self.arms]
        return ["best" if objective.reference == "best" else names.index(objective.reference), objective.sign]

    @cached_property
    def references(self) -> dict[str, str]:
        """Arms of whose mean percentages are -> the first objective with such; they stay in question."""
        relative = [objective for objective in reversed(self.objectives) if objective.is_relative]
        return {
            str(objective.reference): objective.name
            for objective in relative
            if objective.reference != "best"
        }

    def _signed_noise(self, objective: Objective) -> Any:
        noise = objective.noise
        if objective.is_bounded:
            low, high = objective.bounds
            parts = [noise] if isinstance(noise, str) else list(noise)
            if objective.sign < 0:
                parts = ["bounded", 0.0 - high, 0.0 - low]
            if objective.if_missing is not None and not self.is_list:  # where what is missing always is
                parts.append(objective.if_missing)
            return parts[0] if len(parts) == 1 else parts
        if noise[0] == "sub_gaussian" and self.is_list:
            raise StudyError(
                f"{objective}: given the mean of a list, its values are not sub-Gaussian of the same scale: "
                'say noise=("bounded", low, high) or "gaussian", or about="population"'
            )
        if noise[0] == "sub_gaussian" and noise[2:] == ("independent",) and self.items is not None:
            raise StudyError(
                f"{objective}: arms measured on common items share what an item has in common, so their "
                f'noise is not independent: leave "independent" out, or items'
            )
        return noise if isinstance(noise, str) else list(noise)


def in_drawn_order(items: Iterable[Any], seed: int, *of: Any) -> list[Any]:
    """Items in an order drawn from the seed that does not depend on the order in which they are given.

    `of`: what has an order of its own.
    """
    drawn_from = ":".join([str(seed), *map(repr, of)])

    def draw(item: Any) -> bytes:
        return hashlib.sha256(f"{drawn_from}:{type(item).__name__}:{item!r}".encode()).digest()

    return sorted(items, key=draw)


def check_format(payload: Mapping[str, Any]) -> None:
    """Refuse the first event of a journal that an older or a newer lexbandits has written."""
    written = payload.get("format")
    if written != FORMAT:
        who = "a newer" if isinstance(written, int) and written > FORMAT else "an older"
        raise StorageVersionError(
            f"the study was created by {who} lexbandits ({payload.get('version', 'of unknown version')}): "
            "open it with that version"
        )


def _check_reference(objective: Objective, arms: list[str], about: str) -> None:
    """Refuse percentages of a mean that nobody can know."""
    if not objective.is_relative:
        return
    if about == "items":
        raise StudyError(
            f"{objective}: percentages of the mean of an arm are for a population: say reference=, the "
            'number they are of, or about="population"; or judge the table when all is measured'
        )
    if objective.reference not in ("best", *arms):
        raise StudyError(
            f'{objective}: reference must be "best", one of the arms {", ".join(map(repr, arms))} or a '
            f"number, got {objective.reference!r}"
        )


def _checked_about(words: Mapping[str, Any], items: tuple[Any, ...] | None) -> tuple[str, int]:
    """What an answer is about, and how often each item is measured."""
    about = words.get("about", "population" if items is None else "items")
    if about not in ("items", "population"):
        raise StudyError(
            'about must be "items", for an answer on this list, or "population", if the list is a random '
            f"sample and the answer is about what it samples; got {about!r}"
        )
    if about == "items" and items is None:
        raise StudyError('about="items" needs items: say items=[…], the list that the answer is about')
    repeats = whole("repeats", words.get("repeats", 1), least=1)
    if repeats > 1 and about == "population":
        raise StudyError(
            'repeats goes with items=[…] and about="items": values of one item are no new draws from a '
            "population; tell their mean"
        )
    if repeats > 1 and items is not None:
        unique("items", [str(id_of(item)) for item in items])  # tables call them "q17#2"
    return about, repeats


def arm_index(names: Sequence[str], arm: Any) -> int:
    """The index of an arm, by name."""
    if arm not in names:
        raise UnknownArmError(f"no arm {arm!r}; there are {', '.join(map(repr, names))}")
    return names.index(arm)


def words_from_toml(path: str | Path) -> dict[str, Any]:
    """`[study]`, `[[objectives]]` and `[[arms]]` of a file, as one table; a `storage` in it stays in it."""
    with study_errors():
        content = toml_table(path)
    only_known(str(path), content, ("study", "objectives", "arms"))
    words = dict(content.get("study", {}))
    if isinstance(words.get("items"), str):
        words |= items_of_file(words["items"], Path(path).parent)
    words |= {key: content[key] for key in ("objectives", "arms") if key in content}
    return words
