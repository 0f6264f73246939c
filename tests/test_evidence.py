"""The parts of the proofs, checked by numbers: the coalition, the faces, the mixture, the radius."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

import lexbandits as lb
from lexbandits.evidence.mixture import log_mixture, log_tail, mixture_ceiling
from lexbandits.evidence.radius import mixture_radius, spread_of_mean
from lexbandits.evidence.tradeoff_cone import face_scales
from lexbandits.policies.lexelim_pool import weigh
from support.examples import up_to

# --- the closed form of the coalition


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
@settings(max_examples=up_to(60))
def test_the_coalition_is_the_best_there_is(lead):
    """Against arm 0: no weights do better, by constrained optimisation from several starts."""
    q = np.array(lead)
    weights = np.zeros((1, q.size + 1))
    weights[0, 1:] = q
    weigh(weights, 0, 1 + int(q.argmax()))
    w = weights[0, 1:]
    assert weights[0, 0] == 0
    assert np.all(w >= 0)
    assert w.sum() == pytest.approx(1)
    if q.max() <= 0:
        assert w.tolist() == np.eye(q.size)[q.argmax()].tolist()  # nobody is ahead: the best arm alone
        return
    value = w @ q / math.sqrt(1 + w @ w)
    for start in [np.full(q.size, 1 / q.size), np.eye(q.size)[int(q.argmax())]]:
        found = minimize(
            lambda x: -(x @ q) / math.sqrt(1 + x @ x),
            start,
            bounds=[(0, 1)] * q.size,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        )
        assert -found.fun <= value + 1e-6


# --- the scales of the faces

sds = st.lists(st.floats(0.1, 3), min_size=3, max_size=3)


@given(sds, st.floats(0.01, 3), st.integers(0, 10**6))
@settings(max_examples=up_to(60))
def test_a_face_is_as_noisy_as_its_linear_form(sd, tradeoff, seed):
    """The variance of r^i + λr^j for the correlation told, where nothing cancels; any dependence: no more."""
    root = np.abs(np.random.default_rng(seed).standard_normal((3, 3)))  # correlations are positive
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    matrix = (root @ root.T + (root @ root.T).T) / 2
    np.fill_diagonal(matrix, 1.0)
    covariance = matrix * np.outer(sd, sd)
    told = face_scales(tradeoff, np.array(sd), matrix.tolist())
    safe = face_scales(tradeoff, np.array(sd), True)
    independent = face_scales(tradeoff, np.array(sd), False)
    for i in range(1, 3):
        for j in range(i):
            form = np.zeros(3)
            form[i], form[j] = 1.0, tradeoff
            assert told[i, j] == pytest.approx(math.sqrt(form @ covariance @ form))
            assert independent[i, j] == pytest.approx(math.hypot(sd[i], tradeoff * sd[j]))
            assert safe[i, j] == pytest.approx(sd[i] + tradeoff * sd[j])
    assert told[0, 0] == safe[0, 0] == sd[0]


@given(sds, sds, st.floats(0.01, 3), st.sampled_from([-1.0, -0.9, -0.3, 0.0, 0.7]))
def test_a_face_is_no_noisier_when_the_noise_is_less_than_told(one, other, tradeoff, correlation):
    """`noise_sd` is an upper bound: noises that cancel may cancel less than those told would."""
    told, true = np.maximum(one, other)[:2], np.minimum(one, other)[:2]
    matrix = [[1.0, correlation], [correlation, 1.0]]
    form = np.array([tradeoff, 1.0])
    variance = form @ (np.array(matrix) * np.outer(true, true)) @ form
    assert face_scales(tradeoff, told, matrix)[1, 0] >= math.sqrt(max(0.0, variance)) * (1 - 1e-12)


# --- the mixture


@pytest.mark.parametrize("precision", [45.0, 60.0])
@pytest.mark.parametrize("variance", [1.0, 30.0, 2000.0])
@pytest.mark.parametrize("z", [-8.0, -1.0, 0.0, 0.5, 4.0, 12.0])
def test_the_mixture_is_the_integral_it_stands_for(z, variance, precision):
    gain = z * math.sqrt(variance + precision)
    peak = max(0.0, gain / (variance + precision))
    height = peak * gain - peak**2 * (variance + precision) / 2

    def wealth(bet):
        prior = 2 * math.sqrt(precision) * norm.pdf(bet * math.sqrt(precision))
        return prior * math.exp(bet * gain - bet**2 * variance / 2 - height)

    width = 1 / math.sqrt(variance + precision)
    area, _ = quad(wealth, max(0.0, peak - 12 * width), peak + 12 * width, epsabs=0, epsrel=1e-11)
    assert log_mixture(gain, variance, precision) == pytest.approx(math.log(area) + height, abs=1e-8)


@given(st.floats(-6, 8), st.floats(0.1, 500), st.floats(0.1, 60), st.floats(-1, 0))
@settings(max_examples=up_to(60))
def test_no_unfavourable_bet_makes_the_wealth_grow(z, variance, step, drift):
    """E exp L(G + X, V + v) ≤ exp L(G, V) for X Gaussian of variance v and mean ≤ 0; equal at mean 0."""
    gain = z * math.sqrt(variance + 45.0)
    now = log_mixture(gain, variance, 45.0)

    def paid(x, mean):
        return math.exp(log_mixture(gain + x, variance + step, 45.0) - now) * norm.pdf(
            x, mean, math.sqrt(step)
        )

    # the tilted law of X has mean up to gain·step/(V + R); integrate around both
    reach = 12 * math.sqrt(step * (variance + step + 45.0) / (variance + 45.0))
    shift = gain * step / (variance + 45.0)
    limits = (min(0.0, shift) - reach, max(0.0, shift) + reach)
    fair, _ = quad(paid, *limits, args=(0.0,), epsrel=1e-9, limit=400)
    unfair, _ = quad(paid, *limits, args=(drift,), epsrel=1e-9, limit=400)
    assert fair == pytest.approx(1, rel=1e-6)
    assert unfair <= 1 + 1e-6


@given(st.floats(-1e7, 1e7), st.floats(0, 1e12))
def test_evidence_neither_overflows_nor_underflows(z, variance):
    gain = z * math.sqrt(variance + 45.0)
    value = log_mixture(gain, variance, 45.0)
    assert math.isfinite(value)
    assert value <= mixture_ceiling(gain, variance, 45.0) or variance == 0


def test_the_tail_is_one_function_on_both_sides_of_its_switch():
    for z in (-30.0, -29.5, -31.0, -200.0, -1e8):
        exact = -math.log(-z) - 0.5 * math.log(2 * math.pi) + math.log1p(-1 / z**2 + 3 / z**4 - 15 / z**6)
        assert log_tail(z) == pytest.approx(exact, rel=1e-9)
    assert log_tail(0.0) == math.log(0.5)
    assert log_tail(1e8) == pytest.approx(5e15)


# --- radii


def test_an_unobserved_arm_has_an_infinite_radius():
    assert spread_of_mean(0, 30.0) == math.inf
    assert mixture_radius(0, 1.0, 3.0, 30.0) == math.inf


# --- dominance over LexElim-In


@given(
    st.integers(2, 6),
    st.integers(1, 5),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.booleans(),
)
@settings(max_examples=up_to(300))
def test_the_cone_s_margin_is_at_least_the_paper_s_effective_gap(K, m, seed, extra, ties):
    """D(b) ≥ Δ̃(b) = max_i Δ^i/Λ^i for every arm of every instance, with the any-dependence scale."""
    instance = lb.random_instance(K, m, seed=seed, ties=ties, max_tradeoff=None if ties else 2.0)
    assume(math.isfinite(instance.tradeoff))
    lam = instance.tradeoff + extra
    sums = np.cumsum([lam**i for i in range(m)])
    for gap in instance.gaps:
        faces = [min(gap[i] + lam * gap[j] for j in range(i)) / (1 + lam) for i in range(1, m)]
        assert max(gap[0], *faces, -math.inf) >= np.max(gap / sums) - 1e-9
