"""One measure: its direction, unit, tolerance and kind of noise, and which values it can have."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from lexbandits.checks import LARGEST, known_names, real, scale, sized
from lexbandits.checks import bounds as checked_bounds
from lexbandits.study.errors import StudyError, ValueOutOfRange, study_errors
from lexbandits.study.trial import TRIAL_COLUMNS

DIRECTIONS = ("maximize", "minimize")
CUTS = ("cap", "floor", "above", "quantile")  # words that say what of the values it is about

Noise = str | tuple[Any, ...]


def checked_name(what: str, name: Any) -> str:
    """1 to 200 printable characters."""
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} must be text, got {name!r}")
    if not (1 <= len(name) <= 200 and name.isprintable()):
        raise StudyError(f"the name of {what} must be 1 to 200 printable characters, got {name!r}")
    return name


def written(number: float, unit: str) -> str:
    """A tolerance or a limit, as it was given.

    >>> written(1500.0, "ms")
    '1,500 ms'
    """
    text = f"{number:,.12g}".replace("-", "−")
    return f"{text} {unit}" if unit else text


def _amount(what: str, value: Any, reference: Any) -> float:
    """A number >= 0, or a percentage of the reference; of the best a share."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)
        if match is None:
            raise StudyError(f'{what} must be a number or a percentage such as "5%", got {value!r}')
        return float(match[1]) / 100 * (1.0 if isinstance(reference, str) else abs(reference))
    if isinstance(reference, str):
        raise StudyError(f'{what} of {reference!r} is a percentage such as "5%", got {value!r}')
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
            return ("bounded", *checked_bounds(what, low, high))
        case ("sub_gaussian", sd) | ("sub_gaussian", sd, "dependent" | "independent"):
            return ("sub_gaussian", scale(f"{what}'s standard deviation", sd), *parts[2:])
    raise StudyError(
        f'{what} must be "gaussian", "bernoulli", ("bounded", low, high), ("sub_gaussian", sd), '
        f'("sub_gaussian", sd, "independent"), "finite_variance" or "exact", got {value!r}'
    )


@dataclass(frozen=True)
class Objective:
    """One measure, with the direction, unit and tolerance in which people speak of it.

    Args:
        name: a column of the results.
        direction: "maximize" or "minimize".
        tolerance: what does not matter, in its unit, or "5%" of `reference`.
        resolution: how finely it is told apart; the tolerance, unless said, or a tenth of a limit.
        unit: shown beside numbers.
        noise: a kind: "gaussian" (of unknown variance), "bernoulli", ("bounded", low, high),
            ("sub_gaussian", sd), ("sub_gaussian", sd, "independent") where nothing ties the arms measured in
            one pass, "exact" (no noise), or "finite_variance" (approximate: no certificate).
        at_least, at_most: a limit: all arms that meet it tie.
        reference: what percentages are of: "best", the mean of the best arm, unless said; an arm's name, its
            mean; or a number.
        if_failed, if_expired: the value of a trial that failed, or came too late or never, as it would have
            been measured; else missing.
        if_missing: "worst": a missing value counts as the worst it could have been for whatever is claimed.
        cap, floor: values are cut here, and the question is about the mean of what is left.
        above: the question is how often a value is above it.
        quantile: for `judge`: the question is about this quantile, such as 0.95, not about the mean.

    >>> Objective("latency", "minimize", unit="ms", tolerance="5%", reference=400).tolerance_in_unit
    20.0
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
    reference: float | str | None = None
    if_failed: float | None = None
    if_expired: float | None = None
    if_missing: str | None = None
    cap: float | None = None
    floor: float | None = None
    above: float | None = None
    quantile: float | None = None

    @study_errors()
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
        self._check_cuts()
        if self.reference is None and any(
            isinstance(said, str) for said in (self.tolerance, self.resolution)
        ):
            object.__setattr__(self, "reference", "best")
        for key in ("at_least", "at_most", "reference"):
            if getattr(self, key) is not None and not (key == "reference" and self.is_relative):
                object.__setattr__(self, key, sized(f"{self}: {key}", getattr(self, key)))
        for key in ("tolerance", "resolution"):
            if not isinstance(getattr(self, key), str | None):
                object.__setattr__(self, key, sized(f"{self}: {key}", getattr(self, key)))
        self._check_target()
        self._check_precision()
        self._check_missing()
        for key in ("if_failed", "if_expired"):
            number = self.checked(getattr(self, key), key)
            object.__setattr__(self, key, None if math.isnan(number) else number)

    def __str__(self) -> str:
        return f"objective {self.name!r}"

    @cached_property
    def sign(self) -> int:
        """What turns a value into one of which more is better."""
        return 1 if self.direction == "maximize" else -1

    @property
    def is_relative(self) -> bool:
        """Whether tolerance and resolution are shares of the mean of the best, or of a named arm."""
        return isinstance(self.reference, str)

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
    def _range(self) -> tuple[float, float]:
        """What may be measured, before it is cut."""
        low, high = self.bounds
        low = -LARGEST if self.floor is not None or self.above is not None else max(low, -LARGEST)
        low = max(low, 0.0) if self.is_relative and not self.is_cut else low
        return low, LARGEST if self.cap is not None or self.above is not None else min(high, LARGEST)

    @cached_property
    def is_cut(self) -> bool:
        """Whether it is about something else than values as they are measured."""
        return self.cap is not None or self.floor is not None or self.above is not None

    @property
    def unit_of_mean(self) -> str:
        """How often has no unit."""
        return self.unit if self.above is None else ""

    def cut(self, values: Any) -> Any:
        """Measured values as they count; nan stays."""
        if self.above is not None:
            return np.where(np.isnan(values), math.nan, values > self.above)
        return np.clip(values, self.floor, self.cap) if self.is_cut else values

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
        """The value as a number, nan if missing; an error, about `what`, if it cannot be one of these."""
        low, high = self._range
        if type(value) in (int, float) and low <= value <= high:  # the common case is quick
            return float(value)
        if value is None:
            return math.nan
        where = f"{self}{', ' + what if what else ''}"
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
        only_known("an objective", words, [f.name for f in fields(cls)])
        if "name" not in words:
            raise StudyError(f"an objective needs a name, got {words!r}")
        return cls(**words)

    @property
    def is_bounded(self) -> bool:
        """Whether its noise may be any, as long as values lie within their bounds."""
        return self.noise == "bernoulli" or self.noise[0] == "bounded"

    @property
    def agrees_badly(self) -> bool:
        """Whether values were agreed that are no noise of the declared kind: nothing is certain then."""
        agreed = self.if_failed is not None or self.if_expired is not None
        return agreed and not self.is_bounded and self.quantile is None

    def check_agreed(self) -> None:
        """Refuse agreed values that its noise never gives: in a new study, not on record, and in `judge`."""
        for key in ("if_failed", "if_expired") if self.agrees_badly else ():
            if getattr(self, key) is None:
                continue
            if self.noise == "exact":
                raise StudyError(
                    f"{self} is exact, so an arm has one value of it, which {key} would contradict: "
                    f"leave {key} out, a failed trial then says nothing about it"
                )
            kind = self.noise if isinstance(self.noise, str) else self.noise[0]
            raise StudyError(
                f'{self}: {key} is one value again and again, which "{kind}" noise never gives: '
                f'say noise=("bounded", low, high), or "bernoulli", or leave {key} out'
            )

    def _check_cuts(self) -> None:
        """What is cut is bounded by its ends, and how often is a share of 0/1 values."""
        cut = [getattr(self, key) for key in CUTS]
        for key, value in zip(CUTS, cut, strict=True):
            object.__setattr__(self, key, None if value is None else sized(f"{self}: {key}", value))
        cap, floor, above, quantile = cut
        if quantile is not None:
            self._check_quantile(quantile)
        elif above is not None:
            if cap is not None or floor is not None:
                raise StudyError(f"{self}: above= or cap= and floor=, not both")
            object.__setattr__(self, "noise", "bernoulli")
        elif cap is not None or floor is not None:
            low, high = self.bounds if self.noise[0] == "bounded" else (0.0, math.inf)
            low, high = low if floor is None else floor, high if cap is None else cap
            if math.isinf(high):
                raise StudyError(f'{self}: floor= needs cap=, or noise=("bounded", low, high)')
            object.__setattr__(self, "noise", _noise(f"{self}: noise", ("bounded", low, high)))

    def _check_quantile(self, share: float) -> None:
        if not 0 < share < 1:
            raise StudyError(f"{self}: a quantile is between 0 and 1, such as 0.95, got {share:g}")
        if self.target is not None:
            raise StudyError(f"{self}: a limit on a quantile is a share: {self.as_a_share}")
        if any(word is not None for word in (self.cap, self.floor, self.above)) or self.is_relative:
            raise StudyError(f"{self}: quantile= takes no cap=, floor=, above= or percentage")
        if self.noise == "exact":
            raise StudyError(f"{self}: what is exact has no quantiles")

    @property
    def as_a_share(self) -> str:
        """How a limit on a quantile is said."""
        beyond = 1 - (self.quantile or 0.0)
        return f"above=LIMIT, at_most={beyond:.6g} says that at most {100 * beyond:.6g} % are above it"

    def _check_missing(self) -> None:
        if self.if_missing not in (None, "worst"):
            raise StudyError(f'{self}: if_missing must be "worst", or left out, got {self.if_missing!r}')
        if self.if_missing is not None and not self.is_bounded:
            raise StudyError(
                f'{self}: if_missing="worst" needs values that have a worst: '
                f'noise="bernoulli" or ("bounded", low, high), got {self.noise!r}'
            )

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
        if self.is_relative and self.target is not None:
            raise StudyError(
                f"{self}: a percentage of the mean of an arm goes with no target: say reference=, the number "
                "of which it is a percentage"
            )
        if self.is_relative and sum(both) >= 1:
            raise StudyError(
                f"{self}: tolerance and resolution together must be below 100 %, got {100 * sum(both):g} %"
            )
        if self.is_relative and self.is_bounded and self.bounds[0] < 0:
            raise StudyError(
                f"{self}: percentages of a mean need values that are not negative, got noise={self.noise!r}"
            )
        if self.noise == "exact":
            return
        if self.tolerance is None and self.resolution is None and self.target is None:
            raise StudyError(
                f"{self} needs a tolerance (the difference that does not matter) or a resolution: "
                "without either, two equal arms would be measured for ever"
            )

    def check_settled(self) -> None:
        """Refuse a precision at which equal arms would be measured for ever; a list has an end."""
        both = self.tolerance_in_unit, self.resolution_in_unit
        if self.noise == "exact":
            return
        if self.target is not None and both[1] == 0:
            raise StudyError(f"{self}: a target needs a positive resolution, got {both[1]:g}")
        if sum(both) == 0:
            raise StudyError(
                f"{self}: tolerance and resolution are both 0, so equal arms would never be settled"
            )
        if both[1] == 0:
            raise StudyError(
                f"{self}: the resolution must be positive, or left out to be the tolerance, got {both[1]:g}"
            )


def only_known(what: str, words: Any, known: Iterable[str]) -> None:
    """Refuse a table with a key that nobody reads."""
    if not isinstance(words, Mapping):
        raise TypeError(f"{what} must be a table of names and values, got {words!r}")
    unknown = [key for key in words if key not in set(known)]
    if unknown:
        raise StudyError(f"{what} has no {unknown[0]!r}; {known_names(unknown[0], sorted(known))}")
