"""LexElim-Tol beside its specification: settings and values of any place, and what it means to agree."""

import pickle

import numpy as np
import pytest
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits.evidence.interval import pair_interval, stored_difference
from lexbandits.evidence.kinds import spread_kinds
from lexbandits.policies.tolerance.preregistered import arm_evidence, evidence_for
from support import tol_oracle
from support.kernels import arm_bounds

APART = ["sub_gaussian", 0.3, "independent"]
KINDS = [
    "gaussian",
    ["sub_gaussian", 0.3],
    APART,
    ["bounded", -1.0, 3.0],
    ["bounded", -1.0, 3.0, "worst"],
    ["bounded", -1.0, 3.0, "steady"],
    "bernoulli",
    ["bernoulli", "worst"],
    "exact",
    "finite_variance",
    "symmetric",
]


def bounded_ends(kind, values, level, pair):
    """The library's interval: tested elsewhere."""
    own = spread_kinds(["bounded", *kind[1:]], 1)[0]
    if pair:
        return pair_interval(
            own, *tol_oracle.moments([stored_difference(own, d, 0.0) for d in values]), level
        )
    scaled = [(v - own.low) / (own.high - own.low) for v in values]
    return arm_bounds(own, *tol_oracle.moments(scaled), level)


def plain(kind):
    if kind == ["bernoulli", "worst"]:
        return ("bounded", 0.0, 1.0, "worst")
    if kind == "bernoulli":
        return ("bernoulli", 0.0, 1.0)
    if kind[-1] == "steady":
        return ("steady", *kind[1:-1])
    return (kind,) if isinstance(kind, str) else tuple(kind)


@st.composite
def worlds(draw, kinds=KINDS, targets=(None, 0.3, 0.4, 0.9, 5.0), arms=(1, 5)):
    """Settings of a policy, and the values of any place, ties and missing ones included."""
    K, m = draw(st.integers(*arms)), draw(st.integers(1, 3))
    noise = draw(st.lists(st.sampled_from(kinds), min_size=m, max_size=m))
    target = st.lists(st.sampled_from(targets), min_size=m, max_size=m)
    at_least = draw(st.none() | target)
    if at_least is not None:  # one arm alone is nothing that symmetric differences speak of
        at_least = [None if kind == "symmetric" else t for kind, t in zip(noise, at_least, strict=True)]
    chosen = {
        "delta": draw(st.sampled_from([0.05, 0.5, 0.95])),
        "tolerance": draw(st.lists(st.sampled_from([0.0, 0.1, 0.125, 0.5]), min_size=m, max_size=m)),
        "resolution": draw(st.lists(st.sampled_from([0.1, 0.125, 0.5, 1.5]), min_size=m, max_size=m)),
        "noise": noise,
        "at_least": at_least,
        "if_infeasible": draw(st.sampled_from(["continue", "stop"])),
        "stop_when": draw(st.sampled_from(["answer", "all"])),
        "preregistered": draw(st.sampled_from([True, True, False])),
        "order": draw(st.none() | st.permutations(range(m))),
        "offered": draw(st.none() | st.sets(st.integers(0, K - 1), min_size=1).map(sorted)),
        "baseline": draw(st.none() | st.integers(0, K - 1)),
    }
    level = draw(st.lists(st.lists(st.integers(0, 4), min_size=m, max_size=m), min_size=K, max_size=K))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    smooth = rng.standard_normal((7 * K, m)) * draw(st.sampled_from([0.05, 0.2, 0.5]))
    coarse = draw(st.booleans())
    lost = draw(st.sets(st.integers(0, 12), max_size=4))

    def value_at(arm, number):
        values = []
        for i, kind in enumerate(noise):
            shift = float(smooth[(5 * number + 3 * arm) % len(smooth), i])
            value = 0.25 * level[arm][i] + (round(4 * shift) / 4 if coarse else shift)
            if kind == "exact":
                value = sum([0.1] * level[arm][i])  # 0.30000000000000004
            elif "bernoulli" in kind:
                value = float(0.25 + 0.15 * level[arm][i] + shift > 0.5)
            elif plain(kind)[0] in ("bounded", "steady"):
                value = min(3.0, max(-1.0, value))
            values.append(None if (7 * number + 5 * arm + 3 * i) % 13 in lost else value)
        return values

    return (K, m), chosen, value_at


def oracle_rules(shape, settings):
    return tol_oracle.Rules(
        *shape,
        settings["delta"],
        settings["tolerance"],
        settings["resolution"],
        [plain(kind) for kind in settings["noise"]],
        settings["at_least"],
        settings["order"],
        settings["offered"],
        settings["if_infeasible"] == "stop",
        settings["stop_when"] == "answer",
        bounded_ends,
        settings["preregistered"],
        settings.get("baseline"),
        settings.get("reference"),
        settings.get("leader_repeats", 1),
    )


def expected(shape, chosen, filled):
    return tol_oracle.Run(oracle_rules(shape, chosen), filled)


def agree(policy, run):
    now = run.now()
    assert policy.folded == now.passes * policy.leader_repeats
    assert policy.finished == run.over
    assert policy.contradiction == run.contradiction
    assert set(policy.candidates) == run.active
    assert policy.wanted == (() if run.over else tuple(now.members()))
    assert {e.arm: (e.round, e.objective, e.rival) for e in policy.eliminations} == run.left
    order = run.rules.order
    below = {i: tuple(run.all_below(i)) for i in order if run.is_limit(i)}
    assert dict(policy.infeasible) == {i: arms for i, arms in below.items() if arms}
    assert policy.flags == run.flags(policy.recommendation)
    assert policy.objective == (order[run.position] if run.position < run.rules.m else run.rules.m)
    assert policy.recommendation == (run.candidate if run.over else run.plug_in())
    for (i, a, b), seen in run.lcb.items():
        rel = 1e-8 if run.rules.kinds[i][0] == "symmetric" else 1e-12  # its ends are found by halves
        assert policy.state.lcb[i, a, b] == pytest.approx(max(seen), rel=rel, abs=rel)
    assert (policy.state.log_evidence.size > 0) == run.preregistered
    for (claim, i, a, *b), seen in run.claims.items():  # all of it, also what is too little to be kept
        if not b:
            kept = policy.state.arm_log_evidence[["meets", "misses"].index(claim), i, a]
            assert kept <= max(seen) or kept == pytest.approx(max(seen), rel=1e-9, abs=1e-9)
            found = arm_evidence(policy.state, ["meets", "misses"].index(claim), i, a)
            specified = run.arm_evidence(claim, i, a)
            assert found == pytest.approx(specified, rel=1e-9, abs=1e-9)
            continue
        (b,) = b
        kept = policy.state.log_evidence[["not worse", "beats"].index(claim), i, a, b]
        assert kept <= max(seen) or kept == pytest.approx(max(seen), rel=1e-9, abs=1e-9)
        found = evidence_for(policy.state, ["not worse", "beats"].index(claim), i, a, b)
        specified = run.evidence(claim, i, a, b)
        assert found == pytest.approx(specified, rel=1e-9, abs=1e-9) or (found == -np.inf and specified <= 0)


def agree_on_the_certificate(policy, run):
    rows = [] if policy.contradiction else policy.certificate
    for y in {row.rival for row in rows}:
        own = [row for row in rows if row.rival == y]
        said = run.said(policy.recommendation, y, {row.objective: row.high for row in own})
        assert [(row.objective, row.verdict, row.by) for row in own] == said


def drive(policy, value_at, most):
    """Ask and tell, one after the other; the places filled."""
    filled = {}
    while len(filled) < most and not policy.finished:
        arm, number = policy.ask_place()
        assert arm == policy.ask()
        filled[arm, number] = value_at(arm, number)
        policy.tell(arm, filled[arm, number])
    return filled


def check_driven(world, most):
    """Asked and told, told all at once, and kept in a pickle: one policy, which is its specification."""
    shape, chosen, value_at = world
    policy = lb.LexElimTol(*shape, **chosen)
    filled = drive(policy, value_at, most)
    run = expected(shape, chosen, filled)
    agree(policy, run)
    again = policy.fresh()
    again.tell_many([a for a, _ in filled], list(filled.values()), [k for _, k in filled])
    assert again == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    return policy, run


def drawn_changes(data, K, m, new, old):
    """Changes of the rules; a target and its resolution stay."""
    fine = (new["resolution"] * m)[:m]
    for i, target in enumerate(old["at_least"] or ()):
        fine[i] = fine[i] if target is None else old["resolution"][i]
    changes = {
        "tolerance": (new["tolerance"] * m)[:m],
        "resolution": fine,
        "order": data.draw(st.permutations(range(m))),
        "offered": data.draw(st.sets(st.integers(0, K - 1), min_size=1).map(sorted)),
    }
    return {name: changes[name] for name in data.draw(st.sets(st.sampled_from(sorted(changes))))}
