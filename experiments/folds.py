"""How often cross-validation calls one of two equally good learners better: docs/cross-validation.md.

Each learner is least squares on features of its own, of which two carry the same signal: neither is better.
"""

import math

import numpy as np
from scipy.stats import ttest_1samp

EXAMPLES, FEATURES, FOLDS, SEEDS, LEVEL = 200, 20, 10, 10, 0.05


def is_right(rng: np.random.Generator) -> np.ndarray:
    """(2, SEEDS, EXAMPLES) whether each learner is right on each example, and the fold of each: (3, …)."""
    y = rng.choice([-1.0, 1.0], EXAMPLES)
    features = rng.standard_normal((2, EXAMPLES, FEATURES))
    features[:, :, :2] += 0.5 * y[None, :, None]
    found = np.zeros((3, SEEDS, EXAMPLES))
    for seed in range(SEEDS):
        fold = rng.permutation(EXAMPLES) % FOLDS
        found[2, seed] = fold
        for k in range(FOLDS):
            train, test = fold != k, fold == k
            for learner in range(2):
                weights = np.linalg.lstsq(features[learner, train], y[train], rcond=None)[0]
                found[learner, seed, test] = features[learner, test] @ weights * y[test] > 0
    return found


def calls(found: np.ndarray) -> dict[str, bool]:
    """Whether a one-sided t-test at LEVEL calls the first learner better, by what is taken as an item."""
    lead = found[0] - found[1]
    of_folds = np.array(
        [[lead[seed, found[2, seed] == k].mean() for k in range(FOLDS)] for seed in range(SEEDS)]
    )
    items = {
        "fold, of one seed": of_folds[0],
        "fold × seed": of_folds.ravel(),
        "example, of one seed": lead[0],
        "example, mean over seeds": lead.mean(axis=0),
        "example × seed": lead.ravel(),
    }
    return {
        name: bool(ttest_1samp(values, 0.0, alternative="greater").pvalue < LEVEL)
        for name, values in items.items()
    }


def folds_markdown(tables: int, seed: int) -> str:
    """The table of docs/cross-validation.md, with standard errors."""
    rng, counts = np.random.default_rng(seed), dict[str, int]()
    for _ in range(tables):
        for name, called in calls(is_right(rng)).items():
            counts[name] = counts.get(name, 0) + called
    lines = ["| an item is | called better |", "| --- | --- |"]
    for name, count in counts.items():
        share = count / tables
        error = math.sqrt(share * (1 - share) / tables)
        lines.append(f"| {name} | {100 * share:.1f} % ± {100 * error:.1f} |")
    return "\n".join(lines)
