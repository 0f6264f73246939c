"""How many results a certificate about a list of items takes, and how often it is wrong.

python benchmarks/lists.py costs [CASE …] [--lists R] [--seed S] [--rules preregistered open]
python benchmarks/lists.py edges [--orders R] [--delta D]
python benchmarks/lists.py push

Tables are (items, arms, objectives), larger is better, in drawn order. A study is asked one place at a time.
"""

import argparse
import math
import time
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

import lexbandits as lb
from lexbandits._jit import entry
from lexbandits.policies.tolerance.finite.finite_asking import play
from lexbandits.policies.tolerance.finite.finite_folding import fold_some, forget_arm

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
ONE = {"noise": "bernoulli", "tolerance": 0.03, "resolution": 0.03}
LLM = {
    "noise": [("bounded", 0, 1), ("bounded", -12, 0), ("bounded", -4, 0)],
    "tolerance": [0.03, 0.2, 0.1],
    "resolution": [0.03, 0.2, 0.1],
}


@cache
def skill(p, spread):
    """Where a model stands on the logistic scale that is right on a share p of items of this spread."""
    found = lambda a: WEIGHTS @ expit(a - spread * NODES) / WEIGHTS.sum() - p  # noqa: E731
    return brentq(found, -30, 30)


def right(rng, n, ps, spread=3.0):
    """(n, K) 0 or 1: items are hard or easy for all."""
    hard = rng.normal(0, spread, n)
    return np.stack([rng.random(n) < expit(skill(p, spread) - hard) for p in ps], axis=1).astype(float)


def llm(rng, n, latency=(0.4, 0.9, 2.1, 2.6), cost=(0.1, 0.4, 1.9, 2.4)):
    """Four models: right or wrong, then seconds, then cents."""
    found = np.empty((n, 4, 3))
    found[:, :, 0] = right(rng, n, (0.71, 0.84, 0.85, 0.86))
    size = np.exp(rng.normal(-0.045, 0.3, n))
    for a in range(4):
        found[:, a, 1] = -np.minimum(12.0, size * rng.gamma(25, latency[a] / 25, n))
        found[:, a, 2] = -np.minimum(4.0, cost[a] * np.clip(size, 0.4, 1.6) * rng.uniform(0.9, 1.1, n))
    return found


@cache
def digits():
    """(1797, 8, 1) whether each of eight models, fitted on the other folds, reads a digit right."""
    from sklearn.datasets import load_digits
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    images, known = load_digits(return_X_y=True)
    models = [
        LinearDiscriminantAnalysis(),
        LogisticRegression(C=0.01, max_iter=2000),
        RandomForestClassifier(100, random_state=0),
        ExtraTreesClassifier(100, random_state=0),
        KNeighborsClassifier(1),
        KNeighborsClassifier(3),
        SVC(C=1),
        SVC(C=10),
    ]
    guesses = [cross_val_predict(model, images, known, cv=5) for model in models]
    return (np.stack(guesses, axis=1) == known[:, None]).astype(float)[:, :, None]


CASES = {f"llm-{n}": (lambda rng, n=n: llm(rng, n), LLM) for n in (200, 500, 1000, 2000, 5000)}
for n in (1000, 5000):
    rule = {**ONE, "tolerance": 0.01, "resolution": 0.01}
    CASES[f"close-{n}"] = (lambda rng, n=n: right(rng, n, (0.83, 0.84, 0.85, 0.86))[:, :, None], rule)
for n in (500, 2000):
    rule = {**ONE, "tolerance": 0.0, "resolution": 0.01}
    CASES[f"two-{n}"] = (lambda rng, n=n: right(rng, n, (0.84, 0.86))[:, :, None], rule)
for n in (500, 1000, 2000):
    ps = tuple(np.linspace(0.77, 0.86, 10))
    rule = {**ONE, "tolerance": 0.01, "resolution": 0.01}
    CASES[f"leaderboard-{n}"] = (lambda rng, n=n, ps=ps: right(rng, n, ps)[:, :, None], rule)
CASES["digits"] = (lambda rng: rng.permutation(digits()), {**ONE, "tolerance": 0.01, "resolution": 0.01})
CASES["digits-2"] = (lambda rng: rng.permutation(digits()), {**ONE, "tolerance": 0.02, "resolution": 0.02})


def acceptable(means, rules):
    """The arms that the promise allows: none that deserves to reach an objective is better by too much."""
    n_arms, m = means.shape
    tolerance, fine = (np.broadcast_to(rules[name], m) for name in ("tolerance", "resolution"))
    good = []
    for x in range(n_arms):
        reach, fine_so_far = set(range(n_arms)), True
        for i in range(m):
            best = max(means[a, i] for a in reach)
            fine_so_far &= bool(means[x, i] >= best - tolerance[i] - fine[i] - 1e-9)
            reach = {a for a in reach if means[a, i] >= best - tolerance[i] - 1e-9} | {x}
        if fine_so_far:
            good.append(x)
    return good


def study(table, question, delta=0.05, **more):
    """The policy at its end, and how many results it took."""
    n, n_arms, m = table.shape
    policy = lb.LexElimTol(n_arms, m, delta=delta, n_items=n, **question, **more)
    return policy, entry(play, bulk=True)(
        policy.state, policy.population, np.ascontiguousarray(table), n * n_arms
    )


def costs(given):
    """Mean results to a certificate, their standard error, the most, and wrong answers."""
    print(
        f"{'case':<18}{'rules':<10}{'of':>7}{'results':>9}{'se':>6}{'most':>7}{'wrong':>7}{'certified':>11}"
    )
    for case in given.cases or CASES:
        make, rules = CASES[case]
        for declared in given.rules:
            results, wrong, certified = [], 0, 0
            for s in range(given.lists):
                table = make(np.random.default_rng(given.seed + s))
                policy, took = study(table, rules, given.delta, preregistered=declared == "preregistered")
                results.append(took)
                wrong += policy.recommendation not in acceptable(table.mean(axis=0), rules)
                certified += policy.certified
            error = np.std(results) / math.sqrt(len(results))
            print(
                f"{case:<18}{declared:<10}{table[:, :, 0].size:>7}{np.mean(results):>9.0f}{error:>6.0f}"
                f"{max(results):>7}{wrong:>4}/{given.lists}{certified:>8}/{given.lists}",
                flush=True,
            )


def edge(n, discordance, better, n_arms):
    """(n, K, 1) of 0 and 1: arm 0 differs from all others on a share, and is ahead by `better`."""
    wins = round(better * n)
    both = round(discordance * n)
    table = np.zeros((n, n_arms, 1))
    lost = (both - wins) // 2
    table[: both - lost, 0] = 1.0
    table[both - lost : both, 1:] = 1.0
    table[both : both + (n - both) // 2] = 1.0
    return table


def edges(given):
    """Wrong answers where means lie exactly at the tolerance, or just beyond reach."""
    for n in (200, 1000):
        for discordance in (0.1, 0.4):
            for n_arms in (2, 4):
                for name, lead in (("beyond reach", 0.06 + 1 / n), ("at tolerance", 0.03)):
                    table = edge(n, discordance, lead, n_arms)
                    if name == "at tolerance":  # and the cheaper arm has to be found by a second objective
                        second = np.zeros_like(table)
                        second[:, 1:] = 1.0
                        table = np.concatenate([table, second], axis=2)
                    good = acceptable(table.mean(axis=0), ONE)
                    wrong, results = 0, []
                    for s in range(given.orders):
                        rng = np.random.default_rng([given.seed, s])
                        policy, took = study(rng.permutation(table), ONE, given.delta)
                        wrong += policy.recommendation not in good
                        results.append(took)
                    share = wrong / given.orders
                    error = math.sqrt(share * (1 - share) / given.orders)
                    print(
                        f"{n_arms} arms {name:<13} N={n:<5} discordance {discordance:<4} right {good} "
                        f"wrong {share:.4f} ± {error:.4f} at {given.delta:g}, results {np.mean(results):.0f}",
                        flush=True,
                    )


def push(_):
    """Nanoseconds for one position of one pair on one objective, with everything that it entails."""
    table = llm(np.random.default_rng(0), 5000)
    policy = lb.LexElimTol(4, 3, delta=0.05, n_items=5000, **LLM)
    policy.population.table[:], policy.population.status[:] = table.transpose(1, 0, 2), 1
    replay, forget, took = entry(fold_some, bulk=True), entry(forget_arm, bulk=True), []
    for _ in range(6):
        start = time.process_time()
        for arm in range(4):
            forget(policy.state, policy.population, arm)
        for arm in range(4):
            replay(policy.state, policy.population, arm, 5000)
        took.append(time.process_time() - start)
    print(f"{1e9 * min(took[1:]) / (5000 * 6 * 3):.0f} ns")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("costs", help=costs.__doc__)
    command.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    command.add_argument("--lists", type=int, default=60)
    command.add_argument("--rules", nargs="+", default=["preregistered"], choices=["preregistered", "open"])
    command.set_defaults(run=costs, seed=5000)
    command = commands.add_parser("edges", help=edges.__doc__)
    command.add_argument("--orders", type=int, default=1500)
    command.set_defaults(run=edges, seed=7000)
    commands.add_parser("push", help=push.__doc__).set_defaults(run=push)
    for command in commands.choices.values():
        command.add_argument("--seed", type=int, default=command.get_default("seed"))
        command.add_argument("--delta", type=float, default=0.05)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
