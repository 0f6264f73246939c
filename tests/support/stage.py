"""A question with every kind of objective, and measurements that give each arm its own outcome.

Its rules are open, so that arms leave one by one instead of being behind when the answer is proven.
"""

import random

import lexbandits as lb

TRUTH = {  # refusals, correct, latency, cost
    "base": (0.02, 0.86, 908.0, 2.4),
    "large": (0.02, 0.87, 2500.0, 7.8),
    "small": (0.02, 0.55, 120.0, 0.9),
    "tiny": (0.60, 0.50, 310.0, 0.4),
}


def create(name="prompts", storage="memory", **changes):
    words = {
        "arms": list(TRUTH),
        "objectives": [
            lb.Objective("refusals", "minimize", at_most=0.2, slack=0.1, noise="bernoulli"),
            lb.Objective("correct", margin=0.16, noise="bernoulli"),
            lb.Objective("latency", "minimize", unit="ms", margin=300, noise=("bounded", 0, 5000)),
            lb.Objective("cost", "minimize", unit="USD", margin=1, noise="gaussian"),
        ],
    }
    return lb.create_study(name, storage, **{"seed": 0, "preregistered": False, **words, **changes})


def measure(arm, item):
    luck, own = random.Random(f"{item}"), random.Random(f"{arm}/{item}")
    refusals, correct, latency, cost = TRUTH.get(arm, (0.5, 0.5, 4000.0, 9.0))
    return {
        "refusals": int(own.random() < refusals),
        "correct": int((luck.random() if own.random() < 0.7 else own.random()) < correct),
        "latency": latency * (0.8 + 0.4 * own.random()),
        "cost": cost * (1 + 0.1 * own.gauss(0, 1)),
    }


def play(study, most=10**6, fails=lambda trial: False):
    """Ask and tell until the end or for `most` trials."""
    for told in range(most):
        trials = study.ask_many(1, worker=f"w{told % 2}")
        if not trials:
            return told
        if fails(trials[0]):
            study.fail(trials[0], "timeout")
        else:
            study.tell(trials[0], measure(trials[0].arm, trials[0].item))
    return most
