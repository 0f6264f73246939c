"""A lexicographic bandit: true means and the structure the paper's Preliminaries define on them."""

from collections.abc import Callable, Mapping, Set
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._cached import cached_property
from lexbandits._code import Code
from lexbandits._validation import at_least, correlation_matrix, per_objective, whole

Sampler = Callable[[np.random.Generator, int], ArrayLike]

NO_ROW = (str, bytes, Mapping, Set)  # that can be gone through, but not for numbers in order


class Distribution(Code):
    """From what an instance draws rewards."""

    GAUSSIAN = "gaussian"
    BERNOULLI = "bernoulli"
    BETA = "beta"


class Instance:
    """True means (K, m), most important objective first, larger is better, and their noise.

    Arms and objectives count from 0.

    Args:
        means: rows of numbers, an array or a data frame whose columns are the objectives. Floats, ints or
            Fractions: ties, gaps and λ are computed exactly and rounded once.
        noise_sd: standard deviation, one or per objective.
        noise: "gaussian"; "bernoulli" with the means as probabilities; "beta" with these means and standard
            deviations; or a sampler (rng, arm) -> vector.
        correlation: (m, m) of the objectives' Gaussian noise.
        tie_tolerance: two means within it count as equal.

    >>> instance = Instance([[1, 0.5], [1, 1], [0, 2]])
    >>> instance.lex_optimal_arm, instance.optimal_set_sizes, instance.tradeoff
    (1, (2, 1), 1.0)
    """

    def __init__(
        self,
        means: Any,
        *,
        noise_sd: float | ArrayLike = 1.0,
        noise: str | Sampler = "gaussian",
        correlation: ArrayLike | None = None,
        tie_tolerance: float = 0.0,
    ) -> None:
        self._exact = _exact_means(means)
        self.means: NDArray[np.float64] = _frozen([[float(x) for x in row] for row in self._exact])
        self.n_arms, self.n_objectives = self.means.shape
        scale = per_objective("noise_sd", noise_sd, self.n_objectives)
        self.noise_sd = scale if isinstance(scale, float) else _frozen(scale)
        self.noise = str(noise) if isinstance(noise, str) else noise
        self.correlation = None
        if correlation is not None:
            self.correlation = _frozen(correlation_matrix("correlation", correlation, self.n_objectives))
        self.tie_tolerance = at_least("tie_tolerance", tie_tolerance, 0.0)
        self._exact_tolerance = Fraction(self.tie_tolerance)
        self._check_noise()

    @property
    def arm_noise_sds(self) -> NDArray[np.float64]:
        """(K, m) the standard deviation of each arm's noise; with a sampler, what `noise_sd` says."""
        if self.noise == Distribution.BERNOULLI:
            return np.sqrt(self.means * (1 - self.means))
        return np.array(np.broadcast_to(self.noise_sd, self.means.shape))

    @property
    def noise_sds(self) -> NDArray[np.float64]:
        """(m,) the standard deviation of each objective's noise, that of the noisiest arm."""
        return np.asarray(self.arm_noise_sds.max(axis=0))

    @property
    def sub_gaussian_sds(self) -> NDArray[np.float64]:
        """(m,) a σ for which all arms' noise is σ-sub-Gaussian: what a policy must know to keep its promise.

        More than the standard deviation for Bernoulli (the least σ: Kearns and Saul 1998) and Beta rewards
        (Marchal and Arbel 2017), unless a mean is 1/2.
        """
        sds = self.arm_noise_sds
        if self.noise == Distribution.BERNOULLI:
            slant = np.abs(1 - 2 * self.means)
            inside = (slant > 1e-6) & (slant < 1)
            sds = np.where(slant < 1, 0.5, 0.0)
            sds[inside] *= np.sqrt(slant[inside] / np.arctanh(slant[inside]))
        elif self.noise == Distribution.BETA:
            sds = sds / (2 * np.sqrt(self.means * (1 - self.means)))
        return np.asarray(sds.max(axis=0))

    @cached_property
    def lex_optimal_arm(self) -> int:
        """Definitions 1 and 2: a_*, the lexicographically largest row of means; the first if several.

        With a tie tolerance each objective keeps the arms within it of the best survivor, and the
        largest mean on the last objective decides.
        """
        survivors = list(range(self.n_arms))
        for i in range(self.n_objectives):
            best = max(self._exact[arm][i] for arm in survivors)
            tolerance = self._exact_tolerance if i < self.n_objectives - 1 else 0
            survivors = [arm for arm in survivors if best - self._exact[arm][i] <= tolerance]
        return survivors[0]

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """(K, m) Δ^i(a) = μ^i(a_*) − μ^i(a); may be negative from the second objective on."""
        return _frozen([[float(gap) for gap in row] for row in self._exact_gaps])

    def optimal_set(self, i: int) -> tuple[int, ...]:
        """O_*(i): the arms that tie with a_* on objectives 0..i."""
        whole("objective", i, least=0, most=self.n_objectives - 1)
        tied = [[abs(gap) <= self._exact_tolerance for gap in row[: i + 1]] for row in self._exact_gaps]
        return tuple(arm for arm, ties in enumerate(tied) if all(ties))

    @cached_property
    def optimal_set_sizes(self) -> tuple[int, ...]:
        """|O_*(i)| for every objective i: what LexElim-Out must know."""
        return tuple(len(self.optimal_set(i)) for i in range(self.n_objectives))

    def objective_optimal_set(self, i: int) -> tuple[int, ...]:
        """Õ_*(i): the arms at least as good as a_* on objective i alone."""
        whole("objective", i, least=0, most=self.n_objectives - 1)
        return tuple(arm for arm, row in enumerate(self._exact_gaps) if row[i] <= self._exact_tolerance)

    def suboptimal_set(self, i: int) -> tuple[int, ...]:
        """S(i): the arms of O_*(i−1) that are worse than a_* on objective i."""
        whole("objective", i, least=0, most=self.n_objectives - 1)
        reached = range(self.n_arms) if i == 0 else self.optimal_set(i - 1)
        return tuple(arm for arm in reached if self._exact_gaps[arm][i] > self._exact_tolerance)

    @cached_property
    def tradeoff(self) -> float:
        """Eq. (2): the least λ with μ^i(a) − μ^i(a_*) ≤ λ·max_{j<i}(μ^j(a_*) − μ^j(a)).

        Infinite when an arm gains on a later objective without losing on an earlier one. Only a tie
        tolerance makes that possible: such a gain is within it, and Eq. (2) knows no tolerance.
        """
        least = Fraction(0)
        for row in self._exact_gaps:
            for i in range(1, self.n_objectives):
                gain, loss = -row[i], max(row[:i])
                if gain > 0:
                    if loss <= 0:
                        return float("inf")
                    least = max(least, gain / loss)
        return float(least)

    @property
    def settings(self) -> dict[str, Any]:
        """What `Instance(**settings)` needs to make this instance again; JSON-able but for a sampler."""
        return {
            "means": [[_plain(x) for x in row] for row in self._exact],
            "noise_sd": self.noise_sd if np.ndim(self.noise_sd) == 0 else np.array(self.noise_sd).tolist(),
            "noise": self.noise,
            "correlation": None if self.correlation is None else self.correlation.tolist(),
            "tie_tolerance": self.tie_tolerance,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and self.settings == other.settings

    def __hash__(self) -> int:
        return hash(tuple(map(tuple, self._exact)))

    def __repr__(self) -> str:
        return f"Instance({self.n_arms} arms, {self.n_objectives} objectives, noise={self.noise!r})"

    @cached_property
    def _exact_gaps(self) -> list[list[Fraction]]:
        best = self._exact[self.lex_optimal_arm]
        return [[b - x for b, x in zip(best, row, strict=True)] for row in self._exact]

    def _check_noise(self) -> None:
        if not callable(self.noise) and not (isinstance(self.noise, str) and self.noise in set(Distribution)):
            expected = f"one of {', '.join(Distribution)} or a sampler (rng, arm) -> vector"
            raise ValueError(f"noise must be {expected}, got {self.noise!r}")
        if self.correlation is not None and self.noise != Distribution.GAUSSIAN:
            raise ValueError(f"correlation is for gaussian noise, got noise={self.noise!r}")
        if self.noise == Distribution.BERNOULLI and not np.all((self.means >= 0) & (self.means <= 1)):
            raise ValueError("bernoulli noise needs means in [0, 1]; got a mean outside")
        if self.noise == Distribution.BETA:
            room = self.means * (1 - self.means)
            if not np.all((self.means > 0) & (self.means < 1) & (self.noise_sds**2 < room)):
                raise ValueError(
                    "beta noise needs means in (0, 1) and noise_sd² < mean·(1 − mean) everywhere"
                )


def _exact_means(means: Any) -> list[list[Fraction]]:
    table = means.to_numpy() if hasattr(means, "to_numpy") else means  # a data frame's names are names
    try:
        if isinstance(table, NO_ROW) or any(isinstance(row, NO_ROW) for row in table):
            raise TypeError
        rows = [list(row) for row in table]
    except TypeError:
        raise TypeError(
            f"means must be a table, a row per arm, a column per objective, got {means!r}"
        ) from None
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise ValueError(f"means must be equal, non-empty rows; got row lengths {[len(row) for row in rows]}")
    return [[_exact(x) for x in row] for row in rows]


def _exact(x: Any) -> Fraction:
    try:
        exact = Fraction(x.item() if isinstance(x, np.generic) else x)
        float(exact)
        return exact
    except (OverflowError, ValueError, ZeroDivisionError):
        raise ValueError(f"means must be finite numbers, got {x!r}") from None
    except TypeError:
        raise TypeError(f"means must be numbers, got {x!r}") from None


def _plain(x: Fraction) -> float | str:
    """A float where it says the same, else "p/q", which Fraction reads back."""
    return float(x) if Fraction(float(x)) == x else str(x)


def _frozen(values: Any) -> NDArray[np.float64]:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
