"""Calls of `create_study` as an editor sees them. `make check` fails if a type checker misses a mistake."""

import lexbandits as lb

SIZE = lb.Objective("size", "minimize", noise="exact")


def right() -> lb.Study:
    return lb.create_study(
        "typed",
        arms=["a", "b"],
        objectives=[SIZE],
        delta=0.1,
        max_arms=4,
        items=["i", "j"],
        scope="items",
        repeats=2,
        seed=3,
        if_infeasible="stop",
        budget=100,
        lease="1m",
        max_failures=2,
        baseline="b",
        preregistered=False,
    )


def served() -> lb.Study:
    bought = lb.Objective("bought", margin=0.01, noise="bernoulli")
    return lb.create_study(
        "typed", arms=["a", "b"], objectives=[bought], seed=0, serve=True, shares={"a": 0.1, "b": (0.1, 0.9)}
    )


def objects() -> lb.Study:
    return lb.create_study("typed", arms={"a": 4, "b": [3]}, objectives=[SIZE], seed=0)


def tables() -> lb.Study:
    return lb.create_study("typed", arms=["a", {"name": "b", "level": 3}], objectives=[SIZE], seed=0)


def misspelt() -> lb.Study:
    return lb.create_study("typed", arms=["a"], objectives=[SIZE], seed=0, detla=0.1)  # type: ignore[call-arg]


def mistyped() -> lb.Study:
    return lb.create_study("typed", arms=["a"], objectives=[SIZE], seed=0, delta="10%")  # type: ignore[arg-type]


def unheard_of() -> lb.Study:
    return lb.create_study("typed", arms=["a"], objectives=[SIZE], seed=0, preregistered="kept")  # type: ignore[arg-type]
