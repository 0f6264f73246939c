"""What replications say about a mean and about a probability, with how well they say it."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def mean_and_error(values: NDArray[Any]) -> tuple[Any, Any]:
    """Mean over the first axis and its standard error; nan where there is too little.

    >>> mean_and_error(np.array([1.0, 2.0, 3.0]))[0]
    np.float64(2.0)
    """
    n = len(values)
    nothing = np.full(values.shape[1:], math.nan)[()]
    mean = np.mean(values, axis=0) if n else nothing
    return mean, np.std(values, axis=0, ddof=1) / math.sqrt(n) if n > 1 else nothing


def clopper_pearson(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability that was met `count` times in n."""
    from scipy.stats import beta

    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, count, n - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return low, high
