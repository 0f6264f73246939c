"""The distance to C_λ against the naive one: every selector, every set of faces."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexbandits.evidence.tradeoff_cone import squared_distance
from support.examples import up_to
from support.kernels import projected

TRADEOFFS = (0.0, 0.3, 1.0, 2.0, 5.0, 30.0)


def naive(x, weights, tradeoff):
    """The least of Σ w(x − y)² over C_λ: each of (m−1)! cones, each set of its faces, in exact arithmetic."""
    m = len(x)
    x, w, lam = [Fraction(v) for v in x], [Fraction(v) for v in weights], Fraction(tradeoff)
    best = None
    for selector in product(*(range(i) for i in range(1, m))):
        faces = [[Fraction(i == k) for k in range(m)] for i in range(m)]
        for i, j in enumerate(selector, start=1):
            faces[i][j] += lam
        for size in range(m + 1):
            for active in combinations(range(m), size):
                y = on_faces(x, w, [faces[i] for i in active])
                if all(sum(f * v for f, v in zip(face, y, strict=True)) >= 0 for face in faces):
                    cost = sum(a * (p - q) ** 2 for a, p, q in zip(w, x, y, strict=True))
                    best = cost if best is None else min(best, cost)
    return best


def on_faces(x, w, active):
    """x moved to where all the faces are 0, in the norm of w: Gaussian elimination on A W⁻¹ A' t = A x."""
    rows = [
        [sum(a * b / c for a, b, c in zip(f, g, w, strict=True)) for g in active]
        + [sum(a * v for a, v in zip(f, x, strict=True))]
        for f in active
    ]
    n = len(rows)
    for i in range(n):
        rows[i] = [v / rows[i][i] for v in rows[i]]  # positive definite: no pivot is 0
        for k in range(n):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    moves = [sum(rows[i][n] * active[i][k] for i in range(n)) / w[k] for k in range(len(x))]
    return [v - move for v, move in zip(x, moves, strict=True)]


def is_member(y, tradeoff, slack):
    top = y[0]
    for value in y[1:]:
        if value < -tradeoff * max(top, 0.0) - slack:
            return False
        top = max(top, value)
    return y[0] >= -slack


def case(rng, m):
    kind = rng.integers(3)
    x = rng.normal(size=m) * rng.choice([0.3, 1.0, 3.0], size=m)
    if kind == 1:  # on a grid: many ties
        x = np.round(x * 2) / 2
    elif kind == 2:  # as the differences of two nearly equal arms
        x[: m // 2] *= 1e-6
    return x, np.exp(rng.normal(size=m)), float(rng.choice(TRADEOFFS))


def compare(m, seed, cases):
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        x, weights, tradeoff = case(rng, m)
        square, nearest = projected(x, weights, tradeoff)
        exact = float(naive(x.tolist(), weights.tolist(), tradeoff))
        size = float(np.sum(weights * x * x))
        assert abs(square - exact) <= 1e-12 * exact + 1e-26 * size, (x.tolist(), weights.tolist(), tradeoff)
        assert np.sum(weights * (x - nearest) ** 2) == pytest.approx(square, rel=1e-12, abs=1e-26 * size)
        assert is_member(nearest, tradeoff, 1e-14 * np.abs(x).max(initial=0))


@pytest.mark.parametrize(("m", "cases"), [(1, 30), (2, 60), (3, 100), (4, 20), (5, 2)])
def test_it_is_the_naive_distance(m, cases):
    compare(m, m, cases)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "cases"), [(3, 500), (4, 120), (5, 30)])
def test_it_is_the_naive_distance_in_many_cases(m, cases):
    compare(m, 100 + m, cases)


points = st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=6).map(np.array)


@given(points, st.sampled_from(TRADEOFFS), st.floats(1e-3, 1e3))
@settings(max_examples=up_to(150), deadline=None)
def test_it_is_a_distance_to_a_cone(x, tradeoff, scale):
    weights = np.linspace(1.0, 2.0, x.size)
    square, nearest = projected(x, weights, tradeoff)
    size = float(np.sum(weights * x * x))
    assert 0.0 <= square <= size * (1 + 1e-12)  # 0 is in the cone
    assert projected(scale * x, weights, tradeoff)[0] == pytest.approx(
        scale**2 * square, rel=1e-9, abs=1e-20 * scale**2 * size
    )
    assert projected(nearest, weights, tradeoff)[0] <= 1e-20 * (1.0 + size)
    assert (square == 0.0) == is_member(x, tradeoff, 0.0) or square <= 1e-20 * (1.0 + size)
    assert projected(x, weights, tradeoff + 1.0)[0] <= square * (1 + 1e-9) + 1e-20 * size  # a larger cone


def test_both_tiers_agree_to_the_bit():
    rng = np.random.default_rng(0)
    for m in (1, 2, 3, 5):
        for _ in range(20):
            x, weights, tradeoff = case(rng, m)
            assert squared_distance(x, weights, tradeoff, np.empty(m)) == projected(x, weights, tradeoff)[0]


def test_theorem_2s_counterexample():
    """The nearest point to one arm lies where it beats the best arm, and not the third one."""
    square, nearest = projected(np.array([-0.2, -2.3, -2.3]), np.ones(3), 2.0)
    assert square == pytest.approx(1.62)
    assert nearest.tolist() == pytest.approx([1.0, -2.0, -2.0])
    assert projected(nearest - [0.0, -1.0, 2.0], np.ones(3), 2.0)[0] > 0.1
