"""Rounds a second of other packages' UCB on ten Gaussian arms; run by speed.py in .venv-bench.

Prints JSON: name -> list of rates. Each peer runs the way its own documentation runs it, and keeps
nothing but its state where it lets us choose.
"""

import json
import random
import sys
import time
from importlib.metadata import version

MEANS = [0.8, 0.9, 1.0, 0.9, 0.9, 1.0, 0.9, 0.9, 1.0, 0.9]
DEVIATION = 0.1**0.5


def river_ucb(rounds):
    from river import bandit

    policy = bandit.UCB(delta=DEVIATION, seed=1)
    noise = random.Random(1)
    arms = range(len(MEANS))
    start = time.process_time()
    for _ in range(rounds):
        arm = policy.pull(arms)
        policy.update(arm, noise.gauss(MEANS[arm], DEVIATION))
    return rounds / (time.process_time() - start)


def pymab_ucb(rounds, backend):
    import pymab
    from pymab.policies import UCBPolicy

    def experiment(horizon):
        return pymab.Experiment(
            environment=pymab.BanditEnvironment(MEANS, pymab.GaussianReward(std=DEVIATION)),
            policies={"ucb": UCBPolicy(n_arms=len(MEANS), reward_scale=DEVIATION)},
            config=pymab.ExperimentConfig(horizon=horizon, n_replicates=1, seed=1, backend=backend),
        )

    experiment(10).run()
    start = time.process_time()
    experiment(rounds).run()
    return rounds / (time.process_time() - start)


def main(repeats):
    rates = {
        f"river {version('river')} UCB": [river_ucb(20_000) for _ in range(repeats)],
        f"pymab {version('pymab')} UCB, its Python backend": [
            pymab_ucb(3_000, "python") for _ in range(repeats)
        ],
        f"pymab {version('pymab')} UCB, its Rust backend": [
            pymab_ucb(300_000, "rust") for _ in range(repeats)
        ],
    }
    print(json.dumps(rates))


if __name__ == "__main__":
    if "--help" in sys.argv:
        sys.exit(print(__doc__))
    main(int(sys.argv[1]))
