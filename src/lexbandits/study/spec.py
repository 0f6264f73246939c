"""The question a study asks: objectives, arms and settings, as Python, JSON or TOML.

Values are turned to "larger is better" here and nowhere else; whatever people see is as they gave it.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np

from lexbandits._arrays import Vector
from lexbandits._cached import cached_property
from lexbandits._validation import BEST, IfInfeasible, flag, positive, probability, real, toml_table, whole
from lexbandits.evidence.kinds import Dependence, NoiseKind, Spread
from lexbandits.outcomes import Scope
from lexbandits.study.errors import (
    StorageVersionError,
    StudyError,
    UnknownArmError,
    ValueOutOfRange,
    study_errors,
)
from lexbandits.study.items import checked_items, id_of, items_of_file, unique
from lexbandits.study.objective import Objective, checked_name, only_known

FORMAT = 7  # of the journal, as its first event says
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PLACEHOLDERS = ("arm", "item", "repeat")  # what `run` puts into a command
RESERVED_KEYS = ("name", *PLACEHOLDERS)  # of an arm; all others are its parameters
LEADER_REPEATS = 2  # results of the leading arm per pass where visitors are served
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


def patience(value: Any, what: str = "wait") -> float:
    """How long to wait: a duration as in `seconds`, or 0 for not at all."""
    return 0.0 if value in (0, "0", "0s") else seconds(what, value)


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
    payload = {"name": arm} if isinstance(arm, str) else arm
    if not isinstance(payload, Mapping) or "name" not in payload:
        raise TypeError(f"an arm is a name or a table with a name, got {arm!r}")
    checked_name("an arm", payload["name"])
    for key, value in payload.items():
        if key in PLACEHOLDERS:
            raise StudyError(
                f"arm {payload['name']!r}: {key!r} cannot be a key of an arm: `run` fills in {{{key}}}; "
                "call it otherwise"
            )
        if not isinstance(key, str) or not isinstance(value, (str, int, float, bool)):
            raise TypeError(f"arm {payload['name']!r}: {key!r} must be text or a number, got {value!r}")
    return dict(payload)


@dataclass(frozen=True)
class Spec:
    """The whole question, checked. `as_json` is what the journal's first event holds."""

    name: str
    arms: tuple[dict[str, Any], ...]
    objectives: tuple[Objective, ...]
    delta: float = 0.05
    items: tuple[Any, ...] | None = None
    scope: Scope = Scope.POPULATION  # what an answer is about: these "items", or the population they sample
    repeats: int = 1  # places per item of a list
    source: dict[str, str] | None = None  # the file that the items are from, and its hash
    seed: int | None = None  # of the order; drawn when the study is made
    if_infeasible: str = IfInfeasible.CONTINUE.value
    budget: int | None = None
    lease: float = 600.0
    max_failures: int = 5
    max_arms: int = field(default=0)
    preregistered: bool = True
    serve: bool = False  # whether the arm that leads is asked more often: each result is a visitor's
    traffic: float = 1.0  # the share of visitors who take part
    warmup: float = 0.0  # seconds over which that share grows from nothing
    shares: dict[str, tuple[float, float]] | None = None  # arm -> the least and the largest share that see it
    baseline: str | None = None  # the current arm, which answers unless another is better
    burn_in: dict[str, dict[str, list[float]]] | None = None  # objective -> arm -> values, which do not count
    objects: bool = False  # whether arms are objects to `measure`; each process has its own

    @classmethod
    @study_errors()
    def from_json(cls, payload: Any) -> Self:
        """Check the words of a REST call, of TOML or of `create_study`."""
        only_known("a study", payload, [f.name for f in fields(cls)])
        for key in ("name", "arms", "objectives"):
            if key not in payload:
                raise StudyError(f"a study needs {key}")
        for key in ("arms", "objectives"):
            if isinstance(payload[key], (str, Mapping)) or not isinstance(payload[key], Iterable):
                raise TypeError(f"{key} must be a list, got {payload[key]!r}")
        arms = tuple(checked_arm(arm) for arm in payload["arms"])
        objectives = tuple(Objective.from_json(objective) for objective in payload["objectives"])
        if not arms or not objectives:
            raise StudyError("a study needs at least one arm and one objective")
        for objective in objectives:
            if objective.quantile is not None:
                raise StudyError(
                    f"{objective}: quantile= is for judge: give a study a limit, {objective.as_a_share}"
                )
        names = [arm["name"] for arm in arms]
        burn_in, objectives = _burnt_in(payload.get("burn_in"), objectives, names)
        unique("arms", names)
        unique("objectives", [objective.name for objective in objectives])
        items = checked_items(payload.get("items"))
        scope, repeats = _checked_scope(payload, items)
        if scope == Scope.ITEMS:
            objectives = tuple(objective.with_default_noise(NoiseKind.GAUSSIAN) for objective in objectives)
        for objective in objectives:
            _check_reference(objective, names, scope)
        for objective in objectives if scope == Scope.POPULATION else ():
            objective.check_settled()
        policy = payload.get("if_infeasible", IfInfeasible.CONTINUE)
        if policy not in [*IfInfeasible]:
            raise StudyError(f'if_infeasible must be "continue" or "stop", got {policy!r}')
        preregistered = flag("preregistered", payload.get("preregistered", cls.preregistered))
        baseline = payload.get("baseline")
        if baseline is not None and baseline not in names:
            raise StudyError(
                f"baseline must be one of the arms {', '.join(map(repr, names))}, got {baseline!r}"
            )
        objects = payload.get("objects", cls.objects)
        if not isinstance(objects, bool):
            raise TypeError(f"objects must be true or false, got {objects!r}")
        serve = flag("serve", payload.get("serve", cls.serve))
        if serve:
            _check_served(objectives, items)
        traffic = _checked_traffic(payload.get("traffic", cls.traffic))
        warmup = patience(payload.get("warmup", cls.warmup), "warmup")
        budget, most, seed = payload.get("budget"), payload.get("max_arms"), payload.get("seed")
        max_arms = len(arms) if most is None else whole("max_arms", most, least=len(arms))
        shares = _checked_shares(payload.get("shares"), names, max_arms)
        if shares is not None and items is not None:
            raise StudyError("shares are of visitors, who come once: leave items out")
        if shares is not None and baseline in shares:
            _check_share_of_baseline(str(baseline), shares, len(names), traffic, warmup)
        return cls(
            name=checked_name("a study", payload["name"]),
            arms=arms,
            objectives=objectives,
            delta=probability("delta", payload.get("delta", cls.delta)),
            items=items,
            scope=scope,
            repeats=repeats,
            source=payload.get("source"),
            seed=None if seed is None else whole("seed", seed, least=0),
            if_infeasible=str(policy),
            budget=None if budget is None else whole("budget", budget, least=1),
            lease=seconds("lease", payload.get("lease", cls.lease)),
            max_failures=whole("max_failures", payload.get("max_failures", cls.max_failures), least=1),
            max_arms=max_arms,
            preregistered=preregistered,
            serve=serve,
            traffic=traffic,
            warmup=warmup,
            shares=shares,
            baseline=baseline,
            burn_in=burn_in,
            objects=objects,
        )

    def as_json(self) -> dict[str, Any]:
        """The whole question in words that `from_json` reads back to an equal one."""
        payload = {each.name: getattr(self, each.name) for each in fields(self)}
        payload |= {
            "arms": [arm["name"] if len(arm) == 1 else dict(arm) for arm in self.arms],
            "objectives": [objective.as_json() for objective in self.objectives],
            "items": None if self.items is None else list(self.items),
            "lease": duration(self.lease),
            "warmup": duration(self.warmup) if self.warmup else 0,
            "shares": None if self.shares is None else {arm: [*both] for arm, both in self.shares.items()},
        }
        unsaid: dict[str, Any] = {"repeats": 1, "source": None, "baseline": None, "objects": False}
        unsaid |= {"burn_in": None, "serve": False, "traffic": 1.0, "warmup": 0, "shares": None}
        unsaid |= {"scope": Scope.POPULATION} if self.items is None else {}
        return {key: word for key, word in payload.items() if key not in unsaid or word != unsaid[key]}

    @cached_property
    def is_list(self) -> bool:
        """Whether an answer is about the items alone, in an order that nobody may know beforehand."""
        return self.scope == Scope.ITEMS

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

    def changed(self, objective: str, **payload: Any) -> Self:
        """The spec with another margin or tie of one objective; says what is wrong with it."""
        column = self.column(objective)
        new = list(self.objectives)
        if new[column].limit is not None:
            raise StudyError(
                f"{new[column]}: a limit and its slack cannot be changed: make a new study, and import what "
                "was measured"
            )
        new[column] = replace(new[column], **payload)
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
    def tolerance_settings(self) -> dict[str, list[float]]:
        """Margins and ties in the words of the policy, one per objective; what `amend` changes."""
        found = [objective.tolerance_settings for objective in self.objectives]
        return {
            "tolerance": [each.tolerance for each in found],
            "resolution": [each.resolution for each in found],
        }

    def policy_settings(self) -> dict[str, Any]:
        """What makes the policy of a new study, JSON-able."""
        for objective in self.objectives:
            objective.check_agreed()
        targets = [objective.tolerance_settings.target for objective in self.objectives]
        settings: dict[str, Any] = {
            "n_arms": len(self.arms),
            "n_objectives": len(self.objectives),
            "delta": self.delta,
            **self.tolerance_settings,
            "noise": [self._signed_noise(objective) for objective in self.objectives],
            "if_infeasible": self.if_infeasible,
            "max_arms": self.max_arms,
            "preregistered": self.preregistered,
        }
        if self.serve:
            settings["leader_repeats"] = LEADER_REPEATS
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
        return [BEST if objective.is_of_best else names.index(objective.reference), objective.sign]

    @cached_property
    def references(self) -> dict[str, str]:
        """Arms of whose mean percentages are -> the first objective with such; they stay in question."""
        relative = [objective for objective in reversed(self.objectives) if objective.is_relative]
        return {
            str(objective.reference): objective.name for objective in relative if not objective.is_of_best
        }

    def _seems_steady(self, objective: Objective) -> bool:
        """Whether a burn-in has set its cap, and had no zeros, as times have none and revenue has many."""
        by_arm = (self.burn_in or {}).get(objective.name, {})
        return bool(by_arm) and not self.is_list and all(min(values) > 0 for values in by_arm.values())

    def _signed_noise(self, objective: Objective) -> Any:
        noise = objective.noise
        if objective.is_bounded:
            low, high = objective.bounds
            parts = [noise] if isinstance(noise, str) else list(noise)
            if objective.sign < 0:
                parts = [NoiseKind.BOUNDED.value, 0.0 - high, 0.0 - low]
            if objective.if_missing is not None and not self.is_list:  # where what is missing always is
                parts.append(objective.if_missing)
            elif self._seems_steady(objective):
                parts.append(Spread.STEADY.value)
            return parts[0] if len(parts) == 1 else parts
        if self.is_list and (why := objective.kind.traits.not_about_lists):
            raise StudyError(
                f'{objective}: {why}: say noise=("bounded", low, high) or "gaussian", or scope="population"'
            )
        if noise[2:] == (Dependence.INDEPENDENT,) and self.items is not None:
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
        writer = "a newer" if isinstance(written, int) and written > FORMAT else "an older"
        raise StorageVersionError(
            f"the study was created by {writer} lexbandits ({payload.get('version', 'of unknown version')}): "
            "open it with that version"
        )


def _burnt_in(
    given: Any, objectives: tuple[Objective, ...], arms: list[str]
) -> tuple[dict[str, dict[str, list[float]]] | None, tuple[Objective, ...]]:
    """Check the values of a burn-in, and fix the caps that they give."""
    waiting = [objective for objective in objectives if objective.awaits_cap]
    if given is None:
        if waiting:
            raise StudyError(
                f'{waiting[0]}: cap="auto" needs burn_in={{{waiting[0].name!r}: {{arm: [values]}}}}, a few '
                "values of each arm that do not count; `lexbandits run --measure` takes them by itself"
            )
        return None, objectives
    only_known("burn_in", given, [objective.name for objective in objectives])
    found = {name: {arm: [*values] for arm, values in by_arm.items()} for name, by_arm in given.items()}
    capped = []
    for objective in objectives:
        by_arm = found.get(objective.name)
        if by_arm is None:
            capped.append(_burnt_in(None, (objective,), arms)[1][0])
            continue
        only_known(f"burn_in of {objective.name!r}", by_arm, arms)
        if missing := [arm for arm in arms if not by_arm.get(arm)]:
            raise StudyError(
                f"burn_in of {objective.name!r} needs values of every arm, {missing[0]!r} has none"
            )
        fixed = replace(objective, cap="auto").capped_by(by_arm)
        if not objective.awaits_cap and objective.cap != fixed.cap:
            raise StudyError(
                f'{objective}: its burn-in gives cap={fixed.cap:g}, got {objective.cap}: say cap="auto"'
            )
        capped.append(fixed)
    return found, tuple(capped)


def _checked_traffic(value: Any) -> float:
    share = positive("traffic", value)
    if share > 1:
        raise StudyError(f"traffic must be a share of the visitors, above 0 and at most 1, got {value!r}")
    return share


def _checked_shares(value: Any, names: list[str], max_arms: int) -> dict[str, tuple[float, float]] | None:
    """Return the least and the largest share of each arm that has one, or refuse what cannot be had."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise TypeError(f"shares must be a table such as {{{names[0]!r}: 0.5}}, got {value!r}")
    shares = {}
    for arm, given in value.items():
        if arm not in names:
            raise StudyError(f"shares must be of the arms {', '.join(map(repr, names))}, got {arm!r}")
        bounds = [given, 1.0] if isinstance(given, (int, float)) else given
        if isinstance(bounds, (str, Mapping)) or not isinstance(bounds, Sequence) or len(bounds) != 2:
            raise TypeError(f"the share of {arm!r} must be a floor or (floor, ceiling), got {given!r}")
        low, high = (real(f"the share of {arm!r}", bound) for bound in bounds)
        if not 0 <= low <= high <= 1 or high == 0 or low == 1:
            raise StudyError(
                f"the share of {arm!r} must be 0 <= floor <= ceiling <= 1, with a floor below 1 and a "
                f"ceiling above 0, got {given!r}"
            )
        shares[arm] = low, high
    floors, ceilings = (math.fsum(bounds) for bounds in zip(*shares.values(), strict=True))
    free = max_arms > len(shares)
    if floors > 1 + 1e-9 or (free and floors > 1 - 1e-9):
        raise StudyError(
            f"the floors of shares add up to {floors:g} of the visitors"
            + (", which leaves none for the other arms" if floors <= 1 + 1e-9 else ": at most 1")
        )
    if not free and ceilings < 1 - 1e-9:
        raise StudyError(f"the ceilings of shares add up to {ceilings:g} of the visitors: at least 1")
    return shares


def _check_share_of_baseline(
    baseline: str, shares: dict[str, tuple[float, float]], n_arms: int, traffic: float, warmup: float
) -> None:
    """Refuse a ceiling that whoever does not take part would break."""
    takes_part = 0.0 if warmup else traffic
    seen, high = 1 - takes_part * (1 - 1 / n_arms), shares[baseline][1]
    if takes_part < 1 and seen > high + 1e-9:
        why = "warmup begins with" if warmup else f"with traffic={traffic:g}"
        raise StudyError(
            f"{why} {seen:g} of the visitors on the baseline {baseline!r}, above its ceiling of {high:g}"
        )


def _check_served(objectives: tuple[Objective, ...], items: tuple[Any, ...] | None) -> None:
    """Refuse what is not proven where the mean of several values is compared with one."""
    if items is not None:
        raise StudyError("serve=True goes with visitors, who come once: leave items out")
    for objective in objectives:
        if objective.is_relative:
            raise StudyError(
                f"{objective}: serve=True takes no percentages of a mean: say margin= as a number, or "
                "reference=, the number they are of"
            )
        if not objective.kind.traits.about_averages:
            raise StudyError(
                f"{objective}: serve=True compares the mean of two visitors with one, of which "
                f'"{objective.kind}" noise says nothing. Say noise="bernoulli", ("bounded", low, high) or '
                '("sub_gaussian", sd), or cap= the largest value that matters'
            )


def _check_reference(objective: Objective, arms: list[str], scope: Scope) -> None:
    """Refuse percentages of a mean that nobody can know."""
    if not objective.is_relative:
        return
    if scope == Scope.ITEMS:
        raise StudyError(
            f"{objective}: percentages of the mean of an arm are for a population: say reference=, the "
            'number they are of, or scope="population"; or judge the table when all is measured'
        )
    if objective.reference not in (BEST, *arms):
        raise StudyError(
            f'{objective}: reference must be "best", one of the arms {", ".join(map(repr, arms))} or a '
            f"number, got {objective.reference!r}"
        )


def _checked_scope(payload: Mapping[str, Any], items: tuple[Any, ...] | None) -> tuple[Scope, int]:
    """What an answer is about, and how often each item is measured."""
    scope = payload.get("scope", Scope.POPULATION if items is None else Scope.ITEMS)
    if scope not in [*Scope]:
        raise StudyError(
            'scope must be "items", for an answer on this list, or "population", if the list is a random '
            f"sample and the answer is about what it samples; got {scope!r}"
        )
    if scope == Scope.ITEMS and items is None:
        raise StudyError('scope="items" needs items: say items=[…], the list that the answer is about')
    repeats = whole("repeats", payload.get("repeats", 1), least=1)
    if repeats > 1 and scope == Scope.POPULATION:
        raise StudyError(
            'repeats goes with items=[…] and scope="items": values of one item are no new draws from a '
            "population; tell their mean"
        )
    if repeats > 1 and items is not None:
        unique("items", [str(id_of(item)) for item in items])  # tables call them "q17#2"
    return Scope(scope), repeats


def arm_index(names: Sequence[str], arm: Any) -> int:
    """The index of an arm, by name."""
    if arm not in names:
        raise UnknownArmError(f"no arm {arm!r}; there are {', '.join(map(repr, names))}")
    return names.index(arm)


def fields_from_toml(path: str | Path) -> dict[str, Any]:
    """`[study]`, `[[objectives]]` and `[[arms]]` of a file, as one table; a `storage` in it stays in it."""
    with study_errors():
        content = toml_table(path)
    only_known(str(path), content, ("study", "objectives", "arms"))
    payload = dict(content.get("study", {}))
    if isinstance(payload.get("items"), str):
        payload |= items_of_file(payload["items"], Path(path).parent)
    payload |= {key: content[key] for key in ("objectives", "arms") if key in content}
    return payload
