"""One measure: its direction, unit, margin or limit, its kind of noise, and which values it can have.

What people write is what is certified: an answer is at most `margin` below the best, and on the right side of
a limit. `Objective.tolerance_settings` alone turns that into a policy's tolerance, resolution and target.
"""

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from decimal import ROUND_CEILING, Decimal
from functools import wraps
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np

from lexbandits._cached import cached_property
from lexbandits._code import Code
from lexbandits._validation import BEST, LARGEST, is_missing_in_pandas, known_names, real, scale, sized
from lexbandits._validation import bounds as checked_bounds
from lexbandits.evidence.kinds import Dependence, Missing, NoiseKind
from lexbandits.study.errors import StudyError, ValueOutOfRange, study_errors
from lexbandits.study.trial import TRIAL_COLUMNS


class Direction(Code):
    """Which values of an objective are better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


DIRECTIONS: dict[str, Direction] = {  # as people write them
    **dict.fromkeys(("maximize", "max", "higher"), Direction.MAXIMIZE),
    **dict.fromkeys(("minimize", "min", "lower"), Direction.MINIMIZE),
}
ALONE = frozenset(kind for kind in NoiseKind if not kind.traits.n_numbers)
AUTO = "auto"  # noise that was left out
BURN_IN_TIMES = 4  # the largest value of a burn-in, at which cap="auto" cuts
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
    """A margin or a limit, as it was given.

    >>> written(1500.0, "ms")
    '1,500 ms'
    """
    text = f"{number:,.12g}".replace("-", "−")
    return f"{text} {unit}" if unit else text


def _exact(number: float) -> Decimal:
    """The number as people write it: 0.06 / 2 is 0.03, and 0.3 - 0.1 is 0.2."""
    return Decimal(str(number))


def _amount(what: str, value: Any, reference: Any) -> Decimal:
    """A number >= 0, or a percentage of the reference; of an arm's mean a share."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", value)
        if match is None:
            raise StudyError(f'{what} must be a number or a percentage such as "5%", got {value!r}')
        return Decimal(match[1]) / 100 * (1 if isinstance(reference, str) else abs(_exact(reference)))
    if isinstance(reference, str):
        raise StudyError(f'{what} of {reference!r} is a percentage such as "5%", got {value!r}')
    number = real(what, value)
    if number < 0:
        raise StudyError(f"{what} must not be negative, got {value!r}")
    return _exact(number)


class ToleranceSettings(NamedTuple):
    """What a policy is told of an objective, in signed values (more is better)."""

    tolerance: float  # the tie; 0 of a limit
    resolution: float  # from the tie to the margin; the slack of a limit
    target: float | None  # a limit's inner line, which the slack separates from the limit


def _noise(what: str, value: Any) -> Noise:
    """A kind of noise in its plain form: text, or a tuple of text and numbers."""
    parts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
    match parts:
        case (str() as word,) if word in ALONE:
            return str(word)
        case (NoiseKind.BOUNDED, low, high):
            return (NoiseKind.BOUNDED.value, *checked_bounds(what, low, high))
        case (NoiseKind.SUB_GAUSSIAN, sd, *rest) if rest in ([], *([word] for word in Dependence)):
            sd = scale(f"{what}'s standard deviation", sd)
            return (NoiseKind.SUB_GAUSSIAN.value, sd, *map(str, rest))
    near = near_kind(parts[0]) if parts else None
    hint = f"did you mean {near!r}? " if near and near != parts[0] else ""
    raise StudyError(
        f'{hint}{what} must be "gaussian", "symmetric", "bernoulli", ("bounded", low, high), '
        '("sub_gaussian", sd), ("sub_gaussian", sd, "independent"), "finite_variance" or "exact", '
        f"got {value!r}"
    )


def near_kind(word: Any) -> str | None:
    """Return the kind of noise that a word is, or is a misspelling of.

    >>> near_kind("bernouli"), near_kind("ms")
    ('bernoulli', None)
    """
    plain = str(word).lower().replace("-", "_")
    near = difflib.get_close_matches(plain, [*NoiseKind], 1, 0.75)
    also = {"binary": NoiseKind.BERNOULLI, "boolean": NoiseKind.BERNOULLI, "normal": NoiseKind.GAUSSIAN}.get(
        plain
    )
    found = near[0] if near else also
    return None if found is None else str(found)


def _refusing_words_of_policies(cls: type[Any]) -> type[Any]:
    """Say what an objective is told instead of a policy's tolerance and resolution."""
    initialize = cls.__init__

    @wraps(initialize)
    def construct(self: Any, *args: Any, **settings: Any) -> None:
        _refuse_words_of_policies(settings)
        initialize(self, *args, **settings)

    cls.__init__ = construct
    return cls


def _refuse_words_of_policies(settings: Mapping[str, Any]) -> None:
    for word in ("tolerance", "resolution"):
        if word in settings:
            raise StudyError(
                f"an objective takes no {word}=: say margin=, how far below the best an answer may be (a "
                "policy's tolerance + resolution), and tie= (its tolerance); of a limit slack="
            )


@_refusing_words_of_policies
@dataclass(frozen=True)
class Objective:
    """One measure, with the direction, unit and margin in which people speak of it.

    Args:
        name: a column of the results.
        direction: "maximize" (or "max", "higher") or "minimize" ("min", "lower").
        margin: how far below the best an answer may be, in its unit, or "5%" of `reference`. This is what is
            certified.
        tie: arms this close to the best are never excluded for it; by default half of the margin. Between
            the two either may happen.
        unit: shown beside numbers.
        noise: a kind. "symmetric": differences of two arms are symmetric about their mean given the past.
            "gaussian": of unknown variance. "bernoulli". ("bounded", low, high). ("sub_gaussian", sd), or
            ("sub_gaussian", sd, "independent") where nothing ties the arms measured in one pass. "exact": no
            noise. "finite_variance": approximate, no certificate. Left out: for 0/1 values in `judge`
            "bernoulli", for limits, percentages and lists "gaussian", else "symmetric".
        at_least, at_most: a limit: a certified answer meets it as written.
        slack: arms inside the limit by this much are never excluded by it. By default a tenth of the limit,
            or half of the room that the kind of noise leaves, if that is less.
        reference: what percentages are of. "best" is the mean of the best arm (the default), an arm's name
            its mean; or a number.
        if_failed, if_expired: the value of a trial that failed, or came too late or never. It is given as it
            would have been measured; else the value is missing.
        if_missing: "worst": a missing value counts as the worst it could have been for whatever is claimed.
        cap, floor: values are cut here, and the question is about the mean of what is left. cap="auto" is
            four times the largest value of a burn-in, which then counts no further.
        above: the question is how often a value is above it.
        quantile: for `judge`: the question is about this quantile, such as 0.95, not about the mean.

    >>> Objective("latency", "minimize", unit="ms", margin="5%", reference=400).margin_in_unit
    20.0
    """

    name: str
    direction: str = "maximize"
    _: KW_ONLY
    margin: float | str | None = None
    tie: float | str | None = None
    unit: str = ""
    noise: Noise = AUTO
    at_least: float | None = None
    at_most: float | None = None
    slack: float | None = None
    reference: float | str | None = None
    if_failed: float | None = None
    if_expired: float | None = None
    if_missing: str | None = None
    cap: float | str | None = None
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
        if not isinstance(self.direction, str) or self.direction not in DIRECTIONS:
            raise StudyError(
                f'{self}: the direction must be "maximize" (max, higher) or "minimize" (min, lower), '
                f"got {self.direction!r}"
            )
        object.__setattr__(self, "direction", DIRECTIONS[self.direction].value)
        if not isinstance(self.unit, str):
            raise TypeError(f"{self}: the unit must be text, got {self.unit!r}")
        object.__setattr__(self, "_noise_left_out", self.noise == AUTO)
        about_one_arm = self.limit is not None or isinstance(self.reference, str)
        about_one_arm = about_one_arm or any(isinstance(said, str) for said in (self.margin, self.tie))
        default = NoiseKind.GAUSSIAN if about_one_arm else NoiseKind.SYMMETRIC
        self._set_noise(default if self.noise == AUTO else self.noise)
        self._check_cuts()
        if self.reference is None and any(isinstance(said, str) for said in (self.margin, self.tie)):
            object.__setattr__(self, "reference", BEST)
        for key in ("at_least", "at_most", "slack", "reference"):
            if getattr(self, key) is not None and not (key == "reference" and self.is_relative):
                object.__setattr__(self, key, sized(f"{self}: {key}", getattr(self, key)))
        for key in ("margin", "tie"):
            if not isinstance(getattr(self, key), str | None):
                object.__setattr__(self, key, sized(f"{self}: {key}", getattr(self, key)))
        if self.limit is None:
            self._check_margin()
        else:
            self._check_limit()
        self._check_missing()
        for key in ("if_failed", "if_expired"):
            number = self.checked(getattr(self, key), key)
            object.__setattr__(self, key, None if math.isnan(number) else number)

    def __str__(self) -> str:
        return f"objective {self.name!r}"

    @cached_property
    def sign(self) -> int:
        """What turns a value into one of which more is better."""
        return 1 if self.direction == Direction.MAXIMIZE else -1

    def with_default_noise(self, noise: Noise) -> "Objective":
        """Return it with this kind of `noise` if none was said."""
        left_out = self.__dict__["_noise_left_out"] and not self.is_cut
        return replace(self, noise=noise) if left_out else self

    def with_default_cap(self) -> "Objective":
        """Return it with cap="auto" if neither a kind of noise nor a cut was said."""
        left_out = self.__dict__["_noise_left_out"] and not self.is_cut and self.quantile is None
        return replace(self, noise=AUTO, cap=AUTO) if left_out else self

    def _set_noise(self, noise: Noise) -> None:
        object.__setattr__(self, "noise", _noise(f"{self}: noise", noise))
        self.__dict__.pop("kind", None)

    @cached_property
    def kind(self) -> NoiseKind:
        """The kind of its noise, without the numbers that go with it."""
        return NoiseKind(self.noise if isinstance(self.noise, str) else self.noise[0])

    @property
    def is_exact(self) -> bool:
        """Whether it has no noise."""
        return self.kind.traits.exact

    @property
    def is_relative(self) -> bool:
        """Whether margin and tie are shares of the mean of the best, or of a named arm."""
        return isinstance(self.reference, str)

    @property
    def is_of_best(self) -> bool:
        """Whether margin and tie are shares of the mean of the best."""
        return self.reference == BEST

    @property
    def limit(self) -> float | None:
        """The value to be met, as given."""
        return self.at_most if self.at_least is None else self.at_least

    @property
    def bounds(self) -> tuple[float, float]:
        """What values can be, as given."""
        if self.kind is NoiseKind.BERNOULLI:
            return 0.0, 1.0
        if self.kind is NoiseKind.BOUNDED:
            return float(self.noise[1]), float(self.noise[2])
        return -math.inf, math.inf

    @property
    def scale(self) -> float:
        """The declared scale of sub-Gaussian noise."""
        return float(self.noise[1])

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
    def awaits_cap(self) -> bool:
        """Whether a burn-in is still to say where values are cut."""
        return self.cap == AUTO

    def capped_by(self, burn_in: Mapping[str, Iterable[float]]) -> "Objective":
        """Return it with the cap that `burn_in` gives, arm -> its values, in two digits, upwards.

        It is four times the largest value, or four margins or limits if that is more. A slow arm raises it
        too: below its times it would tie with all slow arms once the quick ones have left.

        >>> speed = Objective("latency", "minimize", margin=0.1, cap="auto")
        >>> speed.capped_by({"a": [0.41], "b": [0.79]}).cap
        3.2
        """
        read = (self.checked(value, "burn-in") for value in chain.from_iterable(burn_in.values()))
        found, least = [value for value in read if not math.isnan(value)], max(0.0, self.floor or 0.0)
        known = max(found, default=0.0)
        if not known > least:
            raise StudyError(
                f'{self}: cap="auto" needs a burn-in with a value above {least:g}, got {found!r}: '
                "say cap= as a number"
            )
        if not self.is_relative:
            known = max(known, self.margin_in_unit)  # or all would tie
        known = max(known, abs(self.limit or 0.0))  # or every mean would meet it
        cap = Decimal(BURN_IN_TIMES) * _exact(known)
        return replace(self, cap=float(cap.quantize(Decimal((0, (1,), cap.adjusted() - 1)), ROUND_CEILING)))

    @property
    def unit_of_mean(self) -> str:
        """How often has no unit."""
        return self.unit if self.above is None else ""

    def cut(self, values: Any) -> Any:
        """Measured values as they count; nan stays."""
        if self.above is not None:
            return np.where(np.isnan(values), math.nan, values > self.above)
        cap = None if self.awaits_cap else self.cap
        return np.clip(values, self.floor, cap) if self.floor is not None or cap is not None else values

    @cached_property
    def _margin(self) -> Decimal:
        return Decimal(0) if self.margin is None else _amount(f"{self}: margin", self.margin, self.reference)

    @cached_property
    def _tie(self) -> Decimal:
        if self.tie is not None:
            return _amount(f"{self}: tie", self.tie, self.reference)
        return self._margin if self.is_exact else self._margin / 2

    @cached_property
    def margin_in_unit(self) -> float:
        """How far below the best an answer may be; 0 of a limit."""
        return float(self._margin)

    @cached_property
    def tie_in_unit(self) -> float:
        """How far below the best an arm is never excluded for it; 0 of a limit."""
        return float(self._tie)

    @cached_property
    def slack_in_unit(self) -> float:
        """How far inside the limit an arm is never excluded by it; 0 without a limit."""
        if self.limit is None:
            return 0.0
        if self.slack is not None or self.is_exact:
            return self.slack or 0.0
        tenth, room = abs(_exact(self.limit)) / 10, self._room
        return float(tenth if math.isinf(room) else min(tenth, _exact(room) / 2))

    @cached_property
    def inner_limit(self) -> float | None:
        """The line inside the limit by the slack, in the unit of the objective."""
        if self.limit is None:
            return None
        return float(_exact(self.limit) + self.sign * _exact(self.slack_in_unit))

    @property
    def _room(self) -> float:
        """Between the limit and the end of what values can be."""
        assert self.limit is not None
        end = self.bounds[1 if self.sign > 0 else 0]
        return math.inf if math.isinf(end) else float(self.sign * (_exact(end) - _exact(self.limit)))

    @cached_property
    def tolerance_settings(self) -> ToleranceSettings:
        """The same in the words of a policy."""
        if self.inner_limit is not None:
            return ToleranceSettings(0.0, self.slack_in_unit, self.sign * self.inner_limit + 0.0)
        return ToleranceSettings(self.tie_in_unit, float(self._margin - self._tie), None)

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
            if is_missing_in_pandas(value):
                return math.nan
            raise ValueOutOfRange(f"{where}: a value must be a number, got {value!r}") from None
        if abs(number) > LARGEST:
            raise ValueOutOfRange(f"{where}: a value must be finite, and at most {LARGEST:g}, got {value!r}")
        if not (low <= number <= high or math.isnan(number)):
            raise ValueOutOfRange(f"{where}: a value must be in [{low:g}, {high:g}], got {value!r}")
        return number

    def as_json(self) -> dict[str, Any]:
        """The words that make it again, without those left at their default."""
        payload = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        payload.setdefault("direction", self.direction)
        if isinstance(self.noise, tuple):
            payload["noise"] = list(self.noise)
        return payload

    @classmethod
    def from_json(cls, payload: Any) -> Self:
        """From the words of `as_json`, of a REST call or of TOML."""
        if isinstance(payload, cls):
            return payload
        if isinstance(payload, Mapping):
            _refuse_words_of_policies(payload)
        only_known("an objective", payload, [f.name for f in fields(cls)])
        if "name" not in payload:
            raise StudyError(f"an objective needs a name, got {payload!r}")
        return cls(**payload)

    @property
    def is_bounded(self) -> bool:
        """Whether its noise may be any, as long as values lie within their bounds."""
        return self.kind.traits.bounded

    @property
    def most_apart(self) -> float:
        """How far apart two means can be."""
        low, high = self.bounds
        return high - low

    @property
    def agrees_badly(self) -> bool:
        """Whether values were agreed that are no noise of the declared kind: nothing is certified then."""
        agreed = self.if_failed is not None or self.if_expired is not None
        return agreed and not self.is_bounded and self.quantile is None

    def check_agreed(self) -> None:
        """Refuse agreed values that its noise never gives: in a new study, not on record, and in `judge`."""
        for key in ("if_failed", "if_expired") if self.agrees_badly else ():
            if getattr(self, key) is None:
                continue
            if self.is_exact:
                raise StudyError(
                    f"{self} is exact, so an arm has one value of it, which {key} would contradict: "
                    f"leave {key} out, a failed trial then says nothing about it"
                )
            raise StudyError(
                f'{self}: {key} is one value again and again, which "{self.kind}" noise never gives: '
                f'say noise=("bounded", low, high), or "bernoulli", or leave {key} out'
            )

    def _check_cuts(self) -> None:
        """What is cut is bounded by its ends, and how often is a share of 0/1 values."""
        cut = [getattr(self, key) for key in CUTS]
        for key, value in zip(CUTS, cut, strict=True):
            if not (key == "cap" and value == AUTO):
                object.__setattr__(self, key, None if value is None else sized(f"{self}: {key}", value))
        cap, floor, above, quantile = cut
        cap = LARGEST if cap == AUTO else cap
        if quantile is not None:
            self._check_quantile(quantile)
        elif above is not None:
            if cap is not None or floor is not None:
                raise StudyError(f"{self}: above= or cap= and floor=, not both")
            self._set_noise(NoiseKind.BERNOULLI)
        elif cap is not None or floor is not None:
            low, high = self.bounds if self.kind is NoiseKind.BOUNDED else (0.0, math.inf)
            low, high = low if floor is None else floor, high if cap is None else cap
            if math.isinf(high):
                raise StudyError(f'{self}: floor= needs cap=, or noise=("bounded", low, high)')
            self._set_noise((NoiseKind.BOUNDED, low, high))

    def _check_quantile(self, share: float) -> None:
        if not 0 < share < 1:
            raise StudyError(f"{self}: a quantile is between 0 and 1, such as 0.95, got {share:g}")
        if self.limit is not None:
            raise StudyError(f"{self}: a limit on a quantile is a share: {self.as_a_share}")
        if any(word is not None for word in (self.cap, self.floor, self.above)) or self.is_relative:
            raise StudyError(f"{self}: quantile= takes no cap=, floor=, above= or percentage")
        if self.is_exact:
            raise StudyError(f"{self}: what is exact has no quantiles")

    @property
    def as_a_share(self) -> str:
        """How a limit on a quantile is said."""
        beyond = 1 - (self.quantile or 0.0)
        return f"above=LIMIT, at_most={beyond:.6g} says that at most {100 * beyond:.6g} % are above it"

    def _check_missing(self) -> None:
        if self.if_missing not in (None, Missing.WORST):
            raise StudyError(f'{self}: if_missing must be "worst", or left out, got {self.if_missing!r}')
        if self.if_missing is None:
            return
        object.__setattr__(self, "if_missing", str(self.if_missing))
        if not self.is_bounded:
            raise StudyError(
                f'{self}: if_missing="worst" needs values that have a worst: '
                f'noise="bernoulli" or ("bounded", low, high), got {self.noise!r}'
            )

    def _check_limit(self) -> None:
        if self.at_least is not None and self.at_most is not None:
            raise StudyError(f"{self}: one limit, at_least or at_most, not both")
        wrong = "at_most" if self.sign > 0 else "at_least"
        if getattr(self, wrong) is not None:
            other = Direction.MINIMIZE if self.sign > 0 else Direction.MAXIMIZE
            raise StudyError(
                f'{self}: {wrong} goes with direction="{other}", got direction="{self.direction}"'
            )
        for key in ("margin", "tie"):
            if getattr(self, key) is not None:
                raise StudyError(
                    f"{self}: {key}= does not go with a limit, on which arms tie that are within it: name "
                    "two objectives, one with the limit and one with the margin, to ask both"
                )
        if not self.kind.traits.about_one_arm:
            raise StudyError(
                f'{self}: "{self.kind}" noise is about differences of two arms and says nothing about one '
                'arm and a limit: say noise="gaussian", "bernoulli" or ("bounded", low, high)'
            )
        if self.is_relative:
            raise StudyError(f"{self}: a limit is a number, so reference= does not go with it")
        assert self.limit is not None
        if self.slack is not None and self.slack < 0:
            raise StudyError(f"{self}: slack must not be negative, got {self.slack:g}")
        if self.is_exact or self.slack == 0:
            return
        if self._room <= 0:
            raise StudyError(
                f"{self}: no mean of {self._values} can be shown to meet {self._bound_message}: "
                f"move the limit {'below' if self.sign > 0 else 'above'} the end of what values can be"
            )
        worst = self.bounds[0 if self.sign > 0 else 1]
        if self.is_cut and self.sign * (worst - self.limit) >= 0:
            raise StudyError(
                f"{self}: any mean of {self._values} meets {self._bound_message}: "
                f"move the cut beyond the limit, or the limit inside it"
            )
        if self.slack is None and self.limit == 0:
            raise StudyError(
                f"{self}: a limit of 0 needs slack=, how far inside it an arm must be to be never excluded "
                "by it (of other limits it is a tenth by default)"
            )
        if self.slack_in_unit > self._room:
            raise StudyError(
                f"{self}: no mean of {self._values} is inside {self._bound_message} by slack={self.slack:g}: "
                f"say a slack below {self._room:.6g}"
            )

    @property
    def _values(self) -> str:
        low, high = self.bounds
        return f"values in [{low:g}, {high:g}]"

    @property
    def _bound_message(self) -> str:
        key = "at_most" if self.at_least is None else "at_least"
        return f"{key}={self.limit:g}"

    def _check_margin(self) -> None:
        if self.slack is not None:
            raise StudyError(f"{self}: slack= goes with a limit, at_least= or at_most=")
        margin, tie = self._margin, self._tie  # says what is wrong with either
        if self.is_relative and not self.kind.traits.about_one_arm:
            raise StudyError(
                f'{self}: a percentage of a mean weighs two arms unequally, of which "{self.kind}" noise '
                'says nothing: say noise="gaussian" or ("bounded", low, high), or give the margin as a number'
            )
        if self.is_relative and margin >= 1:
            raise StudyError(f"{self}: the margin must be below 100 %, got {self.margin!r}")
        if self.is_relative and self.is_bounded and self.bounds[0] < 0:
            raise StudyError(
                f"{self}: percentages of a mean need values that are not negative, got noise={self.noise!r}"
            )
        if self.is_exact:
            if tie != margin:
                raise StudyError(f"{self} is exact, so arms within the margin tie: leave tie= out")
            return
        if self.margin is None:
            raise StudyError(
                f"{self} needs a margin, how far below the best an answer may be: without one, two equal "
                "arms would be measured for ever"
            )
        if tie > margin:
            raise StudyError(f"{self}: the tie must be below the margin {self.margin!r}, got {self.tie!r}")
        if not self.is_relative and margin >= self.most_apart:
            hint = ", such as 0.02 for two points" if self.kind is NoiseKind.BERNOULLI else ""
            raise StudyError(
                f"{self}: a margin of {self.margin_in_unit:g} would accept any arm, as means of "
                f"{self._values} differ by at most {self.most_apart:g}: say a smaller one{hint}"
            )

    def check_settled(self) -> None:
        """Refuse what equal arms would be measured for ever for; a list has an end."""
        if self.is_exact:
            return
        if self.limit is not None and self.slack_in_unit == 0:
            raise StudyError(f"{self}: a limit needs a positive slack: noise never shows what is just at it")
        if self.limit is None and self.margin_in_unit == 0:
            raise StudyError(f"{self}: the margin must be positive, or equal arms would never be settled")
        if self.limit is None and self._tie == self._margin:
            raise StudyError(
                f"{self}: the tie must be below the margin, or arms at it would never be settled: leave it "
                f"out, and it is half of {self.margin!r}, got tie={self.tie!r}"
            )


def only_known(what: str, payload: Any, known: Iterable[str]) -> None:
    """Refuse a table with a key that nobody reads."""
    if not isinstance(payload, Mapping):
        raise TypeError(f"{what} must be a table of names and values, got {payload!r}")
    unknown = [key for key in payload if key not in set(known)]
    if unknown:
        raise StudyError(f"{what} has no {unknown[0]!r}; {known_names(unknown[0], sorted(known))}")
