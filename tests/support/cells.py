"""Cells that the tests of sweeps share, and what it means that two results are the same."""

import lexbandits as lb

PAPER = lb.paper_instance(10)


def lexelim_in(noise_sd=0.1):
    return lb.LexElimIn(10, 3, delta=0.1, tradeoff=2, noise_sd=noise_sd)


def lexelim_out(noise_sd=0.1):
    return lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1), noise_sd=noise_sd)


def cells(horizon=10**6):
    ege = lb.ExponentialGapElimination(10, 3, delta=0.1, noise_sd=0.3, target_size=3)
    return [
        lb.simulation.Cell("in", lexelim_in(), PAPER, horizon),
        lb.simulation.Cell("out", lexelim_out(), PAPER, horizon),
        lb.simulation.Cell("ege", ege, PAPER, 10**8),
        lb.simulation.Cell("ucb", lb.UCB1(10, 3, noise_sd=0.3), PAPER, 3000),
    ]


def same(left, right):
    """All that two results hold, to the bit."""
    return left.runs.keys() == right.runs.keys() and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for name in left.runs
        for a, b in zip(left.runs[name], right.runs[name], strict=True)
    )


EXAMPLES = {
    "LexElimOut": {"delta": 0.3, "optimal_set_sizes": [2, 1], "noise_sd": 0.2},
    "LexElimIn": {"delta": 0.3, "tradeoff": 0.5, "noise_sd": [0.2, 0.1]},
    "LexElimPool": {
        "delta": 0.3,
        "tradeoff": 0.5,
        "noise_sd": [0.2, 0.1],
        "correlated": [[1.0, 0.2], [0.2, 1.0]],
    },
    "LexDMED": {"tradeoff": 0.5, "noise_sd": [0.2, 0.1], "caution": 0.7, "loglog": 0.5, "first": 2},
    "LexIMED": {"tradeoff": 0.5, "noise_sd": None, "tradeoff_slack": 1.5, "first": 3},
    "LexElimPhase": {"delta": 0.3, "optimal_set_sizes": [2, 1], "noise_sd": 0.2},
    "LexElimTol": {"delta": 0.3, "tolerance": [0.5, 0.0], "resolution": 0.3, "noise_sd": [0.2, 0.1]},
    "ExponentialGapElimination": {"delta": 0.3, "noise_sd": [0.3, 0.2], "target_size": 2, "scale": 500.0},
    "UCBAlpha": {
        "delta": 0.3,
        "alpha": 1.5,
        "objective": 1,
        "noise_sd": 0.2,
        "target_size": 1,
        "rigorous": True,
    },
    "PFLex": {"delta": 0.3, "epsilon": 0.5, "noise_sd": [0.1, 0.2], "variant": "official", "seed": 3},
    "UCB1": {"objective": 1, "noise_sd": [0.3, 0.2]},
    "MOSSAnytime": {"noise_sd": 0.3},
    "ThompsonSampling": {"objective": 1, "noise_sd": 0.3, "seed": 7},
    "KLUCB": {"objective": 1, "divergence": "bernoulli", "exploration": 3.0},
    "IMED": {"objective": 1, "noise_sd": [0.3, 0.2]},
    "MTLO": {"tradeoff": 0.5, "horizon": 50, "noise_sd": 0.01, "bound": 0.1, "scale": 0.1, "seed": 5},
    "RoundRobin": {"noise_sd": 0.3},
}
