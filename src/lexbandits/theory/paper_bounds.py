"""The paper's bounds as functions of an instance: one function per lemma and theorem, in two versions.

`constants="printed"` evaluates the paper's formula, letter by letter. `constants="proved"` is what its
proof gives once repaired: on the good event of Lemma 1, hence with probability at least 1 − δ, no run of
`LexElimOut` or `LexElimIn` exceeds it. docs/errata.md derives every difference.

`noise_sd` is the scale of the algorithm's widths, σ or one per objective; the paper has 1. Dividing the
rewards of objective i by σ_i turns the widths into the paper's, so every gap Δ^i enters as Δ^i/σ_i, and
λ through the scaled sums of `tradeoff_sums`. `tradeoff=None` is the instance's own least λ. A λ below
it leaves Eq. (2) unfulfilled: `printed` still evaluates the formula, which then promises nothing, and
`proved` refuses. Arms and objectives count from 0.
"""

import inspect
import math
from collections.abc import Callable
from typing import Literal, NamedTuple, ParamSpec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._arrays import Vector
from lexbandits._validation import at_least, positive, probability, whole
from lexbandits.environments.instance import Instance
from lexbandits.evidence import radius
from lexbandits.theory.arguments import checked_instance, noise_scales, told_tradeoff, with_exact_ties

P = ParamSpec("P")
Algorithm = Literal["out", "in"]
Constants = Literal["printed", "proved"]
VERSIONS: tuple[Constants, Constants] = ("printed", "proved")


def confidence_width(
    pulls: int, n_arms: int, n_objectives: int, delta: float, *, noise_sd: float = 1.0
) -> float:
    """Lemma 1, Eq. (4): σ·c(a), the half-width of an arm's interval after `pulls` pulls; inf before any.

    For rewards that are σ-sub-Gaussian, Eq. (1) with the mean taken off, every mean stays inside at all
    times with probability at least 1 − δ: the good event. Lemma 3: it strictly decreases from the first
    pull on, for every K, m and δ < 1, so that the widest active arm is the one with the fewest pulls
    and, Lemma 4, active arms differ by at most one pull.
    """
    width = radius.confidence_width(
        whole("pulls", pulls, least=0),
        whole("n_arms", n_arms, least=1),
        whole("n_objectives", n_objectives, least=1),
        probability("delta", delta),
    )
    return positive("noise_sd", noise_sd) * width


def log_crossing(a: float, b: float, *, constants: Constants = "printed") -> float:
    """Lemma 2: the x beyond which x > a·log(b·x) is claimed to hold.

    `printed` is a·log(ab), too small for every ab > e: there a·log(bx) exceeds x by a·log log(ab).
    `proved` is the larger root of x = a·log(bx), −a·W₋₁(−1/(ab)) with Lambert's W, which is sharp; 0 if
    ab < e, where the inequality holds for every x. The root is at most 2a·log(ab).

    >>> round(log_crossing(1, 10), 3), round(log_crossing(1, 10, constants="proved"), 3)
    (2.303, 3.577)
    """
    a, b = positive("a", a), positive("b", b)
    if _checked_constants(constants) == "printed":
        return a * math.log(a * b)
    return float(_larger_root(np.array([a]), b)[0])


def tradeoff_sums(tradeoff: float, n_objectives: int, *, noise_sd: float | ArrayLike = 1.0) -> Vector:
    """Theorem 3: Λ^i(λ) = 1 + λ + … + λ^(i−1) for every objective, (m,).

    For one σ per objective Λ^i becomes σ_i + λ·max_{j<i} Λ^j: a quarter of the largest gap, in widths
    c(a_t), that LexElim-In can leave in the running (Lemma 6), by the same induction. One σ multiplies.

    >>> tradeoff_sums(2, 3).tolist(), tradeoff_sums(2, 3, noise_sd=[1, 0.1, 1]).tolist()
    ([1.0, 3.0, 7.0], [1.0, 2.1, 5.2])
    """
    tradeoff = at_least("tradeoff", tradeoff, 0.0)
    n_objectives = whole("n_objectives", n_objectives, least=1)
    sums = noise_scales(noise_sd, n_objectives)
    for i in range(1, n_objectives):
        sums[i] += tradeoff * sums[:i].max()
    return sums


def effective_gaps(
    instance: Instance, *, tradeoff: float | None = None, noise_sd: float | ArrayLike = 1.0
) -> Vector:
    """Table 1, note 4: Δ̃(a) = max_i Δ^i(a)/Λ^i over the objectives where a is worse, (K,).

    In units of the width scale; 0 for the lex-optimal arm. What LexElim-In's pulls depend on.
    """
    tradeoff = told_tradeoff(instance, tradeoff)
    sums = tradeoff_sums(tradeoff, instance.n_objectives, noise_sd=noise_sd)
    largest: Vector = np.where(_worse(instance), instance.gaps / sums, 0.0).max(axis=1)
    return largest


def cone_margins(
    instance: Instance, *, tradeoff: float | None = None, noise_sd: float | ArrayLike = 1.0
) -> Vector:
    """D(b) = max(Δ¹, max_{i≥2} min_{j<i} (Δ^i + λΔ^j)/(1 + λ)): how far b is from passing for a_*, (K,).

    In units of the width scale (σ_1, and σ_i + λσ_j: any dependence between objectives). Not in the
    paper: LexElim-Pool's margin, in the place of Δ̃; D(b) ≥ Δ̃(b) for every λ that satisfies Eq. (2).
    """
    tradeoff = told_tradeoff(instance, tradeoff)
    scales = noise_scales(noise_sd, instance.n_objectives)
    gaps = instance.gaps
    margins: Vector = gaps[:, 0] / scales[0]
    for i in range(1, instance.n_objectives):
        faces = (gaps[:, [i]] + tradeoff * gaps[:, :i]) / (scales[i] + tradeoff * scales[:i])
        margins = np.maximum(margins, faces.min(axis=1))
    return margins


def active_gap_limits(
    pulls: int,
    n_arms: int,
    n_objectives: int,
    delta: float,
    *,
    tradeoff: float,
    noise_sd: float | ArrayLike = 1.0,
) -> Vector:
    """Lemma 6: on the good event an arm that LexElim-In keeps has Δ^i(a) ≤ 4Λ^i·c(a_t), (m,).

    `pulls` are those of a_t, the fewest of any active arm. True as printed.
    """
    width = confidence_width(pulls, n_arms, n_objectives, delta)
    return 4.0 * tradeoff_sums(tradeoff, n_objectives, noise_sd=noise_sd) * width


class _Case(NamedTuple):
    """The arguments of a bound, checked, and the parts that the bounds of an algorithm are made of."""

    instance: Instance
    log_factor: float  # 6Km/δ
    tradeoff: float | None
    noise_sd: Vector  # (m,)
    printed: bool

    def sums(self, algorithm: Algorithm) -> Vector:
        """(m,) Λ^i, scaled; for LexElim-Out, which knows no λ, Λ = 1."""
        if algorithm == "out":
            return self.noise_sd
        tradeoff = told_tradeoff(self.instance, self.tradeoff, promised=not self.printed)
        return tradeoff_sums(tradeoff, self.instance.n_objectives, noise_sd=self.noise_sd)

    def pulls(self, algorithm: Algorithm) -> Vector:
        """(K,) the most pulls of each arm; inf for an arm that stays."""
        limits = self._limits(algorithm)
        if algorithm == "in":
            fewest: Vector = limits.min(axis=1)
            return fewest if self.printed else fewest + 2
        pulls = np.full(self.instance.n_arms, np.inf)
        level = 0.0  # when a phase begins, some active arm has at most this many pulls
        for i in range(self.instance.n_objectives):
            arms = list(self.instance.suboptimal_set(i))
            if self.printed:
                pulls[arms] = limits[arms, i]
            elif arms:
                pulls[arms] = np.maximum(limits[arms, i] + 2, level + 1)
                level = max(level, limits[arms, i].max()) + 1
        return pulls

    def leaving(self, algorithm: Algorithm) -> NDArray[np.bool_]:
        """(K, m) the arms that must leave before objective i is settled."""
        if algorithm == "in":
            return _worse(self.instance)
        settled = np.zeros(self.instance.means.shape, np.bool_)
        for i in range(self.instance.n_objectives):
            settled[list(self.instance.suboptimal_set(i)), i:] = True
        return settled

    def regret_shares(self, algorithm: Algorithm) -> Vector:
        """(K, m) what each arm adds to the bound on R^i."""
        gaps = self.instance.gaps
        counted = self.leaving(algorithm) if self.printed else gaps > 0
        return np.multiply(self.pulls(algorithm)[:, None], gaps, where=counted, out=np.zeros(gaps.shape))

    def sample_shares(self, algorithm: Algorithm) -> Vector:
        """(K, m) what each arm adds to the bound on the samples until the `leaving` arms are gone."""
        pulls = self.pulls(algorithm)[:, None]
        shares = np.where(self.leaving(algorithm), pulls, 0.0)
        return shares if self.printed else np.minimum(pulls, shares.max(axis=0))

    def _limits(self, algorithm: Algorithm) -> Vector:
        """(K, m) how often a_t can have been pulled while the arm survives on i; inf if Δ ≤ 0."""
        limits = np.full(self.instance.means.shape, np.inf)
        worse = _worse(self.instance)
        gaps = self.instance.gaps[worse]
        sums = np.broadcast_to(self.sums(algorithm), worse.shape)[worse]
        scales = np.broadcast_to(self.noise_sd, worse.shape)[worse]
        with np.errstate(over="ignore"):
            a = (8.0 * sums / gaps) ** 2
            if self.printed:
                # 392Km/δ, and Λ² left out of the logarithm
                limits[worse] = a * np.log(392.0 / 6.0 * self.log_factor * (scales / gaps) ** 2)
            else:
                limits[worse] = np.floor(_larger_root(a, self.log_factor))
        return limits


def _case(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> _Case:
    checked_instance(instance)
    delta = probability("delta", delta)
    scales = noise_scales(noise_sd, instance.n_objectives)
    printed = _checked_constants(constants) == "printed"
    if tradeoff is not None:
        tradeoff = at_least("tradeoff", tradeoff, 0.0)
    seen = instance if printed else _as_the_algorithms_see_it(instance)
    return _Case(seen, 6.0 * instance.means.size / delta, tradeoff, scales, printed)


def _asked_as(check: Callable[P, _Case]) -> Callable[[Callable[[_Case], Vector]], Callable[P, Vector]]:
    """Makes the formula of a bound a function with the arguments of `check`, which all bounds share."""

    def named(formula: Callable[[_Case], Vector]) -> Callable[P, Vector]:
        def bound(*args: P.args, **kwargs: P.kwargs) -> Vector:
            return formula(check(*args, **kwargs))

        bound.__name__ = bound.__qualname__ = formula.__name__
        bound.__doc__ = formula.__doc__
        signature = inspect.signature(check).replace(return_annotation=Vector)
        bound.__signature__ = signature  # type: ignore[attr-defined]
        return bound

    return named


@_asked_as(_case)
def lexelim_out_pulls(case: _Case) -> Vector:
    """Lemma 5: the most pulls of each arm under LexElim-Out, (K,); inf for an arm that stays.

    `printed` is 64/Δ²·log(392Km/(Δ²δ)) with the gap of the objective i that eliminates the arm, a ∈ S(i).
    `proved` has the larger root of Lemma 2 in its place, plus two pulls, and lets the arm wait: nobody in
    S(i) can leave before the last arm of S(1), …, S(i−1) has, which no constant in the printed formula
    makes up for. `tradeoff` is checked and ignored, here and below: LexElim-Out does not know λ.
    """
    return case.pulls("out")


@_asked_as(_case)
def lexelim_in_pulls(case: _Case) -> Vector:
    """Lemma 7: the most pulls of each arm under LexElim-In, (K,); inf for an arm that stays.

    `printed` is 64Λ²/Δ²·log(392Km/(Δ²δ)) at the best objective with Δ > 0. `proved` has the larger root of
    Lemma 2, with Λ² inside the logarithm as well, and two pulls more.
    """
    return case.pulls("in")


@_asked_as(_case)
def lexelim_out_regret(case: _Case) -> Vector:
    """Theorem 1: R^i(t) of LexElim-Out for every t, (m,).

    `printed` multiplies Lemma 5 by gaps of either sign; an upper bound on pulls times a negative gap
    bounds nothing from above. `proved` counts positive gaps only, with the pulls of Lemma 5 as proved.
    """
    return _over_arms(case.regret_shares("out"))


@_asked_as(_case)
def lexelim_out_samples(case: _Case) -> Vector:
    """Theorem 2: T^i(δ), the pulls of LexElim-Out until only O_*(i) is left, (m,); 0 if it is all arms.

    `printed` adds up the eliminated arms alone. `proved` counts the others too, each at most as often
    as the last arm to leave may be pulled.
    """
    return _over_arms(case.sample_shares("out"))


@_asked_as(_case)
def lexelim_in_regret(case: _Case) -> Vector:
    """Theorem 3: R^i(t) of LexElim-In for every t, (m,): the sum over Δ^i(a) > 0 of Δ^i(a) times Lemma 7.

    Its proof's "=" is "≤": arms better than a_* on objective i only lower R^i. `proved` differs by its
    Lemma 7 alone.
    """
    return _over_arms(case.regret_shares("in"))


@_asked_as(_case)
def lexelim_in_samples(case: _Case) -> Vector:
    """Theorem 4: T̃^i(δ), the pulls of LexElim-In until no active arm is worse than a_* on i, (m,).

    `printed` adds up the arms with Δ^i > 0 alone; `proved` counts the others too, as for Theorem 2.
    """
    return _over_arms(case.sample_shares("in"))


def lexelim_in_anytime_regret(
    instance: Instance,
    delta: float,
    t: int,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> Vector:
    """Corollary 1: R^i(t) of LexElim-In whatever the gaps, (m,).

    `printed` is 16Λ^i·sqrt(Kt·log(6Kmt/δ)), the constant of the corollary's proof. That proof bounds the
    gap of each round by the width of the round before, which is infinite for the first K + 1 rounds.
    `proved` adds what these cost, exactly: every arm once by index and arm 0 again, which is played
    even when it has just been eliminated. The later t − K − 1 rounds follow the printed proof.
    """
    t = whole("t", t, least=1)
    case = _case(instance, delta, tradeoff=tradeoff, noise_sd=noise_sd, constants=constants)
    scale = 16.0 * case.sums("in")
    n_arms = case.instance.n_arms
    first = n_arms + 1
    if case.printed:
        return scale * math.sqrt(n_arms * t * math.log(case.log_factor * t))
    opening = _over_arms(case.instance.gaps[np.arange(min(t, first)) % n_arms])
    if t <= first or n_arms == 1:
        return opening
    later = math.sqrt(n_arms * (t - first) * math.log(case.log_factor * (t - n_arms)))
    return opening + scale * later


def _as_the_algorithms_see_it(instance: Instance) -> Instance:
    """With exact ties, all that the algorithms know of; refuses if other arms tie within the tolerance."""
    exact = with_exact_ties(instance)
    if any(exact.optimal_set(i) != instance.optimal_set(i) for i in range(instance.n_objectives)):
        raise ValueError(
            "a proved bound needs ties that are exact, since the algorithms have no tolerance; with"
            f" tie_tolerance={instance.tie_tolerance} arms tie that differ"
        )
    return exact


def _worse(instance: Instance) -> NDArray[np.bool_]:
    """(K, m) Δ^i(a) > 0: the arms outside Õ_*(i)."""
    worse = np.ones(instance.means.shape, np.bool_)
    for i in range(instance.n_objectives):
        worse[list(instance.objective_optimal_set(i)), i] = False
    return worse


def _larger_root(a: Vector, b: float) -> Vector:
    """The larger x = a·log(bx); 0 where there is none."""
    from scipy.special import lambertw  # slow to import

    product = a * b
    roots = np.where(product >= math.e, a, 0.0)  # a double root at ab = e, where W₋₁ has its branch point
    inside = (product > math.e * (1 + 1e-12)) & np.isfinite(product)
    roots[inside] *= -lambertw(-1.0 / product[inside], -1).real
    return roots


def _over_arms(shares: Vector) -> Vector:
    total: Vector = shares.sum(axis=0)
    return total


def _checked_constants(constants: Constants) -> Constants:
    if constants not in VERSIONS:
        raise ValueError(f'constants must be "printed" or "proved", got {constants!r}')
    return constants
