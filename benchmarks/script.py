"""LexElim-In as one writes it in NumPy, line by line after the paper; what `speed.py` compares with."""

import numpy as np


def lexelim_in(means, noise_sd, delta, tradeoff, width_sd, horizon, rng):
    """Play until one arm is left or the horizon; return the number of rounds."""
    K, m = means.shape
    estimates = np.zeros((K, m))
    pulls = np.zeros(K, dtype=int)
    widths = np.full(K, np.inf)
    active = np.arange(K)
    factors = 2 + 4 * np.cumsum([0.0] + [tradeoff**i for i in range(1, m)])
    t = 0
    while active.size > 1 and t < horizon:
        arm = active[np.argmax(widths[active])]
        for i in range(m):
            best = estimates[active, i].max()
            active = active[best - estimates[active, i] <= factors[i] * widths[arm]]
        reward = means[arm] + noise_sd * rng.standard_normal(m)
        pulls[arm] += 1
        estimates[arm] += (reward - estimates[arm]) / pulls[arm]
        widths[arm] = width_sd * np.sqrt(4 / pulls[arm] * np.log(6 * K * m * pulls[arm] / delta))
        t += 1
    return t


if __name__ == "__main__":
    print(__doc__)
