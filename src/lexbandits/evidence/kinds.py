"""What is known of the noise: its kind, one for all objectives or one each, and which values it allows."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Vector
from lexbandits._code import Code
from lexbandits._validation import bounds as checked_bounds
from lexbandits._validation import per_objective, scale, whole


class NoiseKind(Code):
    """What is known of the noise on an objective.

    Attributes:
        SUB_GAUSSIAN: sub-Gaussian, of a known scale.
        GAUSSIAN: Gaussian, of an unknown variance.
        FINITE_VARIANCE: of a finite variance, and so many values that their mean is nearly Gaussian.
        SYMMETRIC: differences of two arms are symmetric about their mean, given earlier results.
        EXACT: none.
        BOUNDED: any, of values within known bounds.
        BERNOULLI: any, of values in [0, 1]; most often 0 and 1.

    >>> import lexbandits as lb
    >>> lb.Objective("correct", margin=0.02, noise=lb.NoiseKind.BERNOULLI).noise
    'bernoulli'
    """

    SUB_GAUSSIAN = "sub_gaussian"
    GAUSSIAN = "gaussian"
    FINITE_VARIANCE = "finite_variance"
    SYMMETRIC = "symmetric"
    EXACT = "exact"
    BOUNDED = "bounded"
    BERNOULLI = "bernoulli"

    @property
    def traits(self) -> "Traits":
        """What it says something about."""
        return TRAITS[self]

    @property
    def is_bounded(self) -> bool:
        """Whether values have bounds, and the noise may be any within them."""
        return self.traits.bounded

    @property
    def n_numbers(self) -> int:
        """How many numbers go with it: the two bounds, or the scale."""
        return self.traits.n_numbers


class Dependence(Code):
    """How the sub-Gaussian noises of two arms in a pass may depend on each other; by default in any way."""

    DEPENDENT = "dependent"
    INDEPENDENT = "independent"


class Spread(Code):
    """What is expected of bounded values. It decides which stakes are tried, and never what is true.

    Attributes:
        STEADY: values keep to a small part of their range, as times below a cap do.
    """

    STEADY = "steady"


class Missing(Code):
    """What is done about a value that is missing.

    Attributes:
        ERROR: it is refused.
        WORST: it counts as the worst it could have been for whatever is claimed.
        DROP: its item is left out.
    """

    ERROR = "error"
    WORST = "worst"
    DROP = "drop"


class Traits(NamedTuple):
    """What a kind of noise says something about: asked of it everywhere but in kernels."""

    n_numbers: int = 0  # that go with it: the two bounds, or the scale
    bounded: bool = False  # values have bounds, and the noise may be any within them
    exact: bool = False  # there is none
    scaled: bool = False  # its scale is known
    normal: bool = False  # of a continuous law, whose values never repeat
    approximate: bool = False  # what is said holds for many results
    about_one_arm: bool = True  # and about two that are weighed unequally; else about differences alone
    about_averages: bool = False  # about the mean of several values beside one value
    not_about_lists: str = ""  # why it says nothing about values drawn without replacement

    @property
    def unbounded(self) -> bool:
        """Whether there is noise, and values have no bounds."""
        return not (self.bounded or self.exact)


TRAITS = {
    NoiseKind.SUB_GAUSSIAN: Traits(
        n_numbers=1,
        scaled=True,
        about_averages=True,
        not_about_lists="given the mean of a list, its values are not sub-Gaussian of the same scale",
    ),
    NoiseKind.GAUSSIAN: Traits(normal=True),
    NoiseKind.FINITE_VARIANCE: Traits(approximate=True),
    NoiseKind.SYMMETRIC: Traits(
        about_one_arm=False,
        not_about_lists='"symmetric" noise says nothing about a list, which is drawn without replacement',
    ),
    NoiseKind.EXACT: Traits(exact=True, about_averages=True),
    NoiseKind.BOUNDED: Traits(n_numbers=2, bounded=True, about_averages=True),
    NoiseKind.BERNOULLI: Traits(bounded=True, about_averages=True),
}

# The same for kernels, in the order of `NoiseKind`; those from BOUNDED on have values in [low, high].
SUB_GAUSSIAN, GAUSSIAN, FINITE_VARIANCE, SYMMETRIC, EXACT, BOUNDED, BERNOULLI = range(7)
NAMES = tuple(NoiseKind)
CODES = {kind: code for code, kind in enumerate(NAMES)}
FORMS = (
    '"gaussian", "symmetric", "bernoulli", ("bernoulli", "worst"), ("bounded", lo, hi), '
    '("bounded", lo, hi, "worst"), ("bounded", lo, hi, "steady"), ("sub_gaussian", sd), '
    '("sub_gaussian", sd, "independent"), "finite_variance" or "exact"'
)
IN_PART = 0.5  # Kind.worst where a mean of several values counts so if some of them are missing
WATCHED = 30  # values of an arm among which a repetition is noticed


class Kind(NamedTuple):
    """The noise on one objective, as kernels take it."""

    code: int
    low: float = -math.inf  # the least and the largest value
    high: float = math.inf
    sd: float = math.nan  # sub-Gaussian scale of one arm's values,
    pair_sd: float = math.nan  # and of the difference of two arms' values in one pass
    worst: float = 0.0  # 1 if a missing value counts as the worst it could have been, or IN_PART
    steady: float = 0.0  # 1 if values are expected to keep to a small part of their range

    @property
    def noise(self) -> NoiseKind:
        """What people call it."""
        return NAMES[int(self.code)]

    @property
    def traits(self) -> Traits:
        """What it says something about; kernels compare codes."""
        return TRAITS[self.noise]


Setting = str | list[Any]  # "gaussian" or ["bounded", 0.0, 1.0]: JSON keeps it


def checked_kinds(noise: Any, noise_sd: float | ArrayLike | None, n_objectives: int) -> Setting:
    """The setting `noise` in its plain form: one kind, or a list of one per objective.

    `noise_sd`, one number or one per objective, is short for ("sub_gaussian", sd, "independent"). Together
    with it `noise` must be None or "gaussian", which such noise also is.
    """
    n_objectives = whole("n_objectives", n_objectives, least=1)
    if noise_sd is not None:
        if noise is not None and not (isinstance(noise, str) and noise == NoiseKind.GAUSSIAN):
            raise ValueError(
                f"give noise or noise_sd, not both; got noise {noise!r} and noise_sd {noise_sd!r}"
            )
        scales = per_objective("noise_sd", noise_sd, n_objectives)
        if isinstance(scales, list):
            return [_independent(scale) for scale in scales]
        return _independent(scales)
    if noise is None:
        return NoiseKind.GAUSSIAN.value
    if isinstance(noise, str) or _is_one_kind(noise):
        return _checked_kind("noise", noise)
    try:
        kinds = list(noise)
    except TypeError:
        raise TypeError(f"noise must be {FORMS}, or a list of one per objective; got {noise!r}") from None
    if len(kinds) != n_objectives:
        raise ValueError(f"noise must be one kind or one per objective ({n_objectives}), got {len(kinds)}")
    return [_checked_kind(f"noise[{i}]", kind) for i, kind in enumerate(kinds)]


def spread_kinds(setting: Setting, n_objectives: int) -> tuple[Kind, ...]:
    """One `Kind` per objective of a setting in its plain form."""
    one = isinstance(setting, str) or _is_one_kind(setting)
    return tuple(_kind(s) for s in ([setting] * n_objectives if one else setting))


def kind_rows(kinds: Sequence[Kind]) -> Vector:
    """(m, 7) the kinds as an array, a row each, for a state; `interval.kind_at` reads them."""
    return np.array(kinds, dtype=np.float64).reshape(len(kinds), len(Kind._fields))


def check_rewards(kinds: Sequence[Kind], arms: Iterable[int], rewards: Vector) -> None:
    """Refuse the first of the (n, m) rewards, nan where nothing was measured, that its kind rules out."""
    low = np.array([kind.low for kind in kinds])
    high = np.array([kind.high for kind in kinds])
    wrong = np.isinf(rewards) | (rewards < low) | (rewards > high)
    if not wrong.any():
        return
    row, objective = (int(i) for i in np.argwhere(wrong)[0])
    value, kind = float(rewards[row, objective]), kinds[objective]
    where = f"of arm {list(arms)[row]} on objective {objective}"
    if math.isinf(value):
        raise ValueError(f"the value {where} must be finite, or nan where it was not measured; got {value}")
    if kind.code == BERNOULLI:
        raise ValueError(f'the value {where} must be in [0, 1] for "bernoulli" noise, got {value}')
    raise ValueError(
        f"the value {where} must be in the declared bounds [{kind.low}, {kind.high}], got {value}; "
        "widen the bounds in a new policy rather than clip the value, which would move the mean"
    )


def repetition_warning(arm: int, objective: int, value: float) -> str:
    """What to say of a repeated value under "gaussian"."""
    return (
        f"arm {arm} gave {value} more than once on objective {objective}, which Gaussian noise never does: "
        'its intervals may be wrong; say noise="bernoulli", ("bounded", lo, hi) or "exact" instead'
    )


def _independent(sd: float) -> list[Any]:
    return [NoiseKind.SUB_GAUSSIAN.value, sd, Dependence.INDEPENDENT.value]


def _is_one_kind(noise: Any) -> bool:
    """Whether a sequence is one kind with its numbers, not one kind per objective."""
    if not isinstance(noise, (list, tuple)) or not noise or not isinstance(noise[0], str):
        return False
    if noise[1:] and noise[-1] == Missing.WORST:
        return True
    return any(not isinstance(part, (str, list, tuple)) for part in noise[1:])


def _checked_kind(name: str, kind: Any) -> Setting:
    parts = [kind] if isinstance(kind, str) else list(kind) if isinstance(kind, (list, tuple)) else []
    if not parts or not isinstance(parts[0], str):
        raise TypeError(f"{name} must be {FORMS}; got {kind!r}")
    word, *rest = parts
    if rest and rest[-1] == Missing.WORST:
        return _checked_worst(name, kind, word, rest[:-1])
    if word not in set(NoiseKind):
        near = difflib.get_close_matches(word, [*NoiseKind], n=1, cutoff=0.5)
        hint = f"did you mean {str(near[0])!r}? " if near else ""
        raise ValueError(f"{name}: unknown kind {word!r}; {hint}it must be {FORMS}")
    word = str(word)
    if word == NoiseKind.BOUNDED:
        steady = [Spread.STEADY.value] if rest[-1:] == [Spread.STEADY] else []
        return [word, *_checked_bounds(name, kind, rest[:-1] if steady else rest), *steady]
    if word == NoiseKind.SUB_GAUSSIAN:
        if not rest or len(rest) > 2 or (rest[1:] and rest[1] not in set(Dependence)):
            raise ValueError(
                f'{name} must be ("sub_gaussian", sd) or, where two arms of a pass have independent noise, '
                f'("sub_gaussian", sd, "independent"), got {kind!r}'
            )
        return [word, scale(f"the sd of {name}", rest[0]), *map(str, rest[1:])]
    if rest:
        raise ValueError(f'{name} must be "{word}" alone, got {kind!r}')
    return word


def _checked_worst(name: str, kind: Any, word: str, bounds: list[Any]) -> Setting:
    if word == NoiseKind.BOUNDED:
        return [str(word), *_checked_bounds(name, kind, bounds), Missing.WORST.value]
    if word == NoiseKind.BERNOULLI and not bounds:
        return [str(word), Missing.WORST.value]
    raise ValueError(
        f'{name}: "worst" needs values that have a worst: ("bernoulli", "worst") or '
        f'("bounded", lo, hi, "worst"), got {kind!r}'
    )


def _checked_bounds(name: str, kind: Any, bounds: list[Any]) -> list[float]:
    if len(bounds) != 2:
        raise ValueError(f'{name} must be ("bounded", lo, hi), got {kind!r}')
    return [*checked_bounds(name, *bounds)]


def _kind(setting: Setting) -> Kind:
    parts: list[Any] = [setting] if isinstance(setting, str) else setting
    word, *numbers = parts
    worst = float(numbers[-1:] == [Missing.WORST])
    if word == NoiseKind.BERNOULLI:
        return Kind(BERNOULLI, 0.0, 1.0, worst=worst)
    if word == NoiseKind.BOUNDED:
        steady = float(numbers[-1:] == [Spread.STEADY])
        return Kind(BOUNDED, numbers[0], numbers[1], worst=worst, steady=steady)
    if word == NoiseKind.SUB_GAUSSIAN:
        factor = math.sqrt(2.0) if numbers[1:] == [Dependence.INDEPENDENT] else 2.0
        return Kind(SUB_GAUSSIAN, sd=numbers[0], pair_sd=factor * numbers[0])
    return Kind(CODES[NoiseKind(word)])
