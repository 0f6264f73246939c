"""Tables of many arms: what they would take is known first, and memory is bounded."""

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.judging import claims, verdict

OBJECTIVES = [
    lb.Objective("hit", margin=0.1, noise="bernoulli"),
    lb.Objective("wait", "minimize", margin=2),
    lb.Objective("cost", "minimize", margin=0.1, noise=("bounded", 0, 1)),
]


def table(K, n, seed=0):
    luck = np.random.default_rng(seed)
    return {
        "arm": np.repeat([f"a{arm}" for arm in range(K)], n),
        "item": np.tile(np.arange(n), K),
        "hit": (luck.random(K * n) < np.repeat(np.linspace(0.9, 0.3, K), n)).astype(float),
        "wait": luck.normal(10, 2, K * n),
        "cost": luck.random(K * n),
    }


def test_too_many_arms_are_refused_with_what_they_would_take():
    with pytest.raises(lb.StudyError) as said:
        lb.judge(table(500, 2), OBJECTIVES)
    assert str(said.value).startswith(
        "500 arms on 3 objectives are 748,500 comparisons, which would take about 4 minutes"
    )
    assert "keep 258 arms" in str(said.value)
    K, m = 258, 3
    assert K * (K - 1) * m <= verdict.MOST_COMPARISONS < 300 * 299 * m


def test_a_verdict_does_not_depend_on_how_much_is_kept(monkeypatch):
    cells = table(8, 60)
    whole = lb.judge(cells, OBJECTIVES)
    monkeypatch.setattr(claims, "MOST_KEPT", 600)
    kept = lb.judge(cells, OBJECTIVES)
    assert kept == whole
    assert len(kept._claims._samples) <= 11
    assert len(whole._claims._samples) > 11


@pytest.mark.slow
def test_the_largest_table_that_is_taken_fits_the_memory():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert lb.judge(table(258, 200), OBJECTIVES).arm
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_500_000, "kB"
