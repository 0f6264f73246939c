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

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits.checks import at_least, per_objective, positive, probability, spread, whole
from lexbandits.evidence import width as widths
from lexbandits.world.instance import Instance

if TYPE_CHECKING:
    import pandas as pd


Vector = NDArray[np.float64]
Constants = Literal["printed", "proved"]


def confidence_width(
    pulls: int, n_arms: int, n_objectives: int, delta: float, *, noise_sd: float = 1.0
) -> float:
    """Lemma 1, Eq. (4): σ·c(a), the half-width of an arm's interval after `pulls` pulls; inf before any.

    With probability at least 1 − δ every mean stays inside at all times: the good event. Lemma 3: it
    strictly decreases from the first pull on, for every K, m and δ < 1, so that the widest active arm
    is the one with the fewest pulls and, Lemma 4, active arms differ by at most one pull.
    """
    width = widths.confidence_width(
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
    sums = _noise_scales(noise_sd, n_objectives)
    for i in range(1, n_objectives):
        sums[i] += tradeoff * sums[:i].max()
    return sums


def effective_gaps(
    instance: Instance, *, tradeoff: float | None = None, noise_sd: float | ArrayLike = 1.0
) -> Vector:
    """Table 1, note 4: Δ̃(a) = max_i Δ^i(a)/Λ^i over the objectives where a is worse, (K,).

    In units of the width scale; 0 for the lex-optimal arm. What LexElim-In's pulls depend on.
    """
    sums = tradeoff_sums(_tradeoff(instance, tradeoff), instance.n_objectives, noise_sd=noise_sd)
    largest: Vector = np.where(_worse(instance), instance.gaps / sums, 0.0).max(axis=1)
    return largest


def cone_margins(
    instance: Instance, *, tradeoff: float | None = None, noise_sd: float | ArrayLike = 1.0
) -> Vector:
    """D(b) = max(Δ¹, max_{i≥2} min_{j<i} (Δ^i + λΔ^j)/(1 + λ)): how far b is from passing for a_*, (K,).

    In units of the width scale (σ_1, and σ_i + λσ_j: any dependence between objectives). Not in the
    paper: it takes the place of Δ̃ in LexElim-Cone, and D(b) ≥ Δ̃(b) for every λ that satisfies Eq. (2).
    """
    tradeoff = _tradeoff(instance, tradeoff)
    scales = _noise_scales(noise_sd, instance.n_objectives)
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


def lexelim_out_pulls(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> Vector:
    """Lemma 5: the most pulls of each arm under LexElim-Out, (K,); inf for an arm that stays.

    `printed` is 64/Δ²·log(392Km/(Δ²δ)) with the gap of the objective i that eliminates the arm, a ∈ S(i).
    `proved` has the larger root of Lemma 2 in its place, plus two pulls, and lets the arm wait: nobody in
    S(i) can leave before the last arm of S(1), …, S(i−1) has, which no constant in the printed formula
    makes up for. `tradeoff` is checked and ignored, here and below: LexElim-Out does not know λ.
    """
    return _out_pulls(_case(instance, delta, tradeoff, noise_sd, constants, algorithm="out"))


def lexelim_in_pulls(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> Vector:
    """Lemma 7: the most pulls of each arm under LexElim-In, (K,); inf for an arm that stays.

    `printed` is 64Λ²/Δ²·log(392Km/(Δ²δ)) at the best objective with Δ > 0. `proved` has the larger root of
    Lemma 2, with Λ² inside the logarithm as well, and two pulls more.
    """
    return _in_pulls(_case(instance, delta, tradeoff, noise_sd, constants, algorithm="in"))


def lexelim_out_regret(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> Vector:
    """Theorem 1: R^i(t) of LexElim-Out for every t, (m,).

    `printed` multiplies Lemma 5 by gaps of either sign; an upper bound on pulls times a negative gap
    bounds nothing from above. `proved` counts positive gaps only, with the pulls of Lemma 5 as proved.
    """
    case = _case(instance, delta, tradeoff, noise_sd, constants, algorithm="out")
    return _over_arms(_regret_shares(case, _out_pulls(case), _settled(case.instance)))


def lexelim_out_samples(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> Vector:
    """Theorem 2: T^i(δ), the pulls of LexElim-Out until only O_*(i) is left, (m,); 0 if it is all arms.

    `printed` adds up the eliminated arms alone. `proved` counts the others too, each at most as often
    as the last arm to leave may be pulled.
    """
    case = _case(instance, delta, tradeoff, noise_sd, constants, algorithm="out")
    return _over_arms(_sample_shares(case, _out_pulls(case), _settled(case.instance)))


def lexelim_in_regret(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> Vector:
    """Theorem 3: R^i(t) of LexElim-In for every t, (m,): the sum over Δ^i(a) > 0 of Δ^i(a) times Lemma 7.

    Its proof's "=" is "≤": arms better than a_* on objective i only lower R^i. `proved` differs by its
    Lemma 7 alone.
    """
    case = _case(instance, delta, tradeoff, noise_sd, constants, algorithm="in")
    return _over_arms(_regret_shares(case, _in_pulls(case), _worse(case.instance)))


def lexelim_in_samples(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
    constants: Constants = "printed",
) -> Vector:
    """Theorem 4: T̃^i(δ), the pulls of LexElim-In until no active arm is worse than a_* on i, (m,).

    `printed` adds up the arms with Δ^i > 0 alone; `proved` counts the others too, as for Theorem 2.
    """
    case = _case(instance, delta, tradeoff, noise_sd, constants, algorithm="in")
    return _over_arms(_sample_shares(case, _in_pulls(case), _worse(case.instance)))


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
    case = _case(instance, delta, tradeoff, noise_sd, constants, algorithm="in")
    n_arms = case.instance.n_arms
    first = n_arms + 1
    if case.constants == "printed":
        return 16.0 * case.sums * math.sqrt(n_arms * t * math.log(case.log_factor * t))
    opening = _over_arms(case.instance.gaps[np.arange(min(t, first)) % n_arms])
    if t <= first or n_arms == 1:
        return opening
    later = math.sqrt(n_arms * (t - first) * math.log(case.log_factor * (t - n_arms)))
    return opening + 16.0 * case.sums * later


def bounds_table(
    instance: Instance,
    delta: float,
    *,
    tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
) -> "pd.DataFrame":
    """Everything above in one tidy table, a row for each arm and objective.

    Columns: arm, objective, gap, tradeoff, effective_gap, cone_margin, then for each algorithm (out, in)
    and each version (printed, proved) `<algorithm>_pulls_<version>` of the arm, inf if it stays, and
    `_regret_` and `_samples_`: the arm's share of the theorem's bound on that objective. Shares add up:
    the sum over arms is the bound.
    """
    import pandas as pd

    tradeoff = _tradeoff(instance, tradeoff)
    n_arms, n_objectives = instance.means.shape
    arms, objectives = np.indices((n_arms, n_objectives))
    columns: dict[str, NDArray[np.int64] | Vector] = {
        "arm": arms,
        "objective": objectives,
        "gap": instance.gaps,
        "tradeoff": np.full((n_arms, n_objectives), tradeoff),
        "effective_gap": _every_objective(
            effective_gaps(instance, tradeoff=tradeoff, noise_sd=noise_sd), n_objectives
        ),
        "cone_margin": _every_objective(
            cone_margins(instance, tradeoff=tradeoff, noise_sd=noise_sd), n_objectives
        ),
    }
    versions: tuple[Constants, ...] = ("printed", "proved")
    for algorithm, pulls_of, leaving_of in (
        ("out", _out_pulls, _settled),
        ("in", _in_pulls, _worse),
    ):
        for version in versions:
            case = _case(instance, delta, tradeoff, noise_sd, version, algorithm=algorithm)
            pulls, leaving = pulls_of(case), leaving_of(case.instance)
            columns[f"{algorithm}_pulls_{version}"] = _every_objective(pulls, n_objectives)
            columns[f"{algorithm}_regret_{version}"] = _regret_shares(case, pulls, leaving)
            columns[f"{algorithm}_samples_{version}"] = _sample_shares(case, pulls, leaving)
    return pd.DataFrame({name: values.ravel() for name, values in columns.items()})


class _Case(NamedTuple):
    """The arguments of a bound, checked. For LexElim-Out `sums` are the width scales: Λ = 1."""

    instance: Instance
    log_factor: float  # 6Km/δ
    noise_sd: Vector  # (m,)
    sums: Vector  # (m,) Λ^i, scaled
    constants: Constants


def _case(
    instance: Instance,
    delta: float,
    tradeoff: float | None,
    noise_sd: float | ArrayLike,
    constants: Constants,
    *,
    algorithm: str,
) -> _Case:
    _check_instance(instance)
    delta = probability("delta", delta)
    scales = _noise_scales(noise_sd, instance.n_objectives)
    if _checked_constants(constants) == "proved":
        instance = _without_tolerance(instance)
    sums = scales
    if algorithm == "in":
        tradeoff = _tradeoff(instance, tradeoff)
        if constants == "proved" and tradeoff < instance.tradeoff:
            raise ValueError(
                f"a proved bound of LexElim-In needs a tradeoff of at least {instance.tradeoff}, the"
                f" instance's own, got {tradeoff}: below it Eq. (2) fails and the lex-optimal arm may go"
            )
        sums = tradeoff_sums(tradeoff, instance.n_objectives, noise_sd=scales)
    elif tradeoff is not None:
        at_least("tradeoff", tradeoff, 0.0)
    return _Case(instance, 6.0 * instance.means.size / delta, scales, sums, constants)


def _without_tolerance(instance: Instance) -> Instance:
    """The same means with exact ties, which is all that the algorithms know of.

    Refuses if the tolerance matters: then the arm or the sets that it defines are not what they find.
    """
    if instance.tie_tolerance == 0:
        return instance
    exact = Instance(**{**instance.settings, "tie_tolerance": 0.0})
    objectives = range(instance.n_objectives)
    same_sets = all(exact.optimal_set(i) == instance.optimal_set(i) for i in objectives)
    if exact.lex_optimal_arm != instance.lex_optimal_arm or not same_sets:
        raise ValueError(
            "a proved bound needs ties that are exact, since the algorithms have no tolerance; with"
            f" tie_tolerance={instance.tie_tolerance} arms tie that differ"
        )
    return exact


def _out_pulls(case: _Case) -> Vector:
    limits = _pull_limits(case)
    pulls = np.full(case.instance.n_arms, np.inf)
    # What `proved` tracks: when a phase begins, some active arm has at most this many pulls.
    level = 0.0
    for i in range(case.instance.n_objectives):
        arms = list(case.instance.suboptimal_set(i))
        if not arms:
            continue
        pulls[arms] = limits[arms, i]
        if case.constants == "proved":
            pulls[arms] = np.maximum(limits[arms, i] + 2, level + 1)
            level = max(level, limits[arms, i].max()) + 1
    return pulls


def _in_pulls(case: _Case) -> Vector:
    fewest: Vector = _pull_limits(case).min(axis=1)
    return fewest + 2 if case.constants == "proved" else fewest


def _pull_limits(case: _Case) -> Vector:
    """(K, m) how often a_t can have been pulled while the arm survives on that objective; inf if Δ ≤ 0."""
    limits = np.full(case.instance.means.shape, np.inf)
    worse = _worse(case.instance)
    gaps = case.instance.gaps[worse]
    sums = np.broadcast_to(case.sums, worse.shape)[worse]
    scales = np.broadcast_to(case.noise_sd, worse.shape)[worse]
    with np.errstate(over="ignore"):
        a = (8.0 * sums / gaps) ** 2
        if case.constants == "printed":
            # 392Km/δ, and Λ² left out of the logarithm
            limits[worse] = a * np.log(392.0 / 6.0 * case.log_factor * (scales / gaps) ** 2)
        else:
            limits[worse] = np.floor(_larger_root(a, case.log_factor))
    return limits


def _larger_root(a: Vector, b: float) -> Vector:
    """The larger x = a·log(bx); 0 where there is none."""
    from scipy.special import lambertw  # slow to import

    product = a * b
    roots = np.where(product >= math.e, a, 0.0)  # a double root at ab = e, where W₋₁ has its branch point
    inside = (product > math.e * (1 + 1e-12)) & np.isfinite(product)
    roots[inside] *= -lambertw(-1.0 / product[inside], -1).real
    return roots


def _regret_shares(case: _Case, pulls: Vector, leaving: NDArray[np.bool_]) -> Vector:
    """(K, m) what each arm adds to the bound on R^i."""
    gaps = case.instance.gaps
    counted = leaving if case.constants == "printed" else gaps > 0
    return np.multiply(pulls[:, None], gaps, where=counted, out=np.zeros(gaps.shape))


def _sample_shares(case: _Case, pulls: Vector, leaving: NDArray[np.bool_]) -> Vector:
    """(K, m) what each arm adds to the bound on the samples until the `leaving` arms are gone."""
    shares = np.where(leaving, pulls[:, None], 0.0)
    if case.constants == "proved":
        shares = np.minimum(pulls[:, None], shares.max(axis=0))
    return shares


def _over_arms(shares: Vector) -> Vector:
    total: Vector = shares.sum(axis=0)
    return total


def _settled(instance: Instance) -> NDArray[np.bool_]:
    """(K, m) the arms of S(1), …, S(i): those that must leave for O_*(i) to remain."""
    settled = np.zeros(instance.means.shape, np.bool_)
    for i in range(instance.n_objectives):
        settled[list(instance.suboptimal_set(i)), i:] = True
    return settled


def _worse(instance: Instance) -> NDArray[np.bool_]:
    """(K, m) Δ^i(a) > 0: the arms outside Õ_*(i)."""
    worse = np.ones(instance.means.shape, np.bool_)
    for i in range(instance.n_objectives):
        worse[list(instance.objective_optimal_set(i)), i] = False
    return worse


def _every_objective(values: Vector, n_objectives: int) -> Vector:
    return np.repeat(values[:, None], n_objectives, axis=1)


def _check_instance(instance: Instance) -> None:
    if not isinstance(instance, Instance):
        raise TypeError(f"instance must be an Instance, got {instance!r}")


def _tradeoff(instance: Instance, tradeoff: float | None) -> float:
    _check_instance(instance)
    if tradeoff is not None:
        return at_least("tradeoff", tradeoff, 0.0)
    if not math.isfinite(instance.tradeoff):
        raise ValueError(
            "no λ satisfies Eq. (2) on this instance, where within the tie tolerance an arm gains on an"
            " objective without losing on an earlier one: give a finite tradeoff"
        )
    return instance.tradeoff


def _noise_scales(noise_sd: float | ArrayLike, n_objectives: int) -> Vector:
    return np.array(spread(per_objective("noise_sd", noise_sd, n_objectives), n_objectives))


def _checked_constants(constants: Constants) -> Constants:
    if constants not in ("printed", "proved"):
        raise ValueError(f'constants must be "printed" or "proved", got {constants!r}')
    return constants
