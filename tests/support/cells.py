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
        lb.Cell("in", lexelim_in(), PAPER, horizon),
        lb.Cell("out", lexelim_out(), PAPER, horizon),
        lb.Cell("ege", ege, PAPER, 10**8),
        lb.Cell("ucb", lb.UCB1(10, 3, noise_sd=0.3), PAPER, 3000),
    ]


def same(left, right):
    """All that two results hold, to the bit."""
    return left.runs.keys() == right.runs.keys() and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for name in left.runs
        for a, b in zip(left.runs[name], right.runs[name], strict=True)
    )
