"""What `noise` may be, which values it allows, and the interval that it means in their units."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits.evidence import kinds
from lexbandits.evidence.bounded import bounded_interval, bounded_lower, bounded_upper
from lexbandits.evidence.exact import check_exact
from lexbandits.evidence.gaussian import gaussian_radius
from lexbandits.evidence.interval import (
    arm_interval,
    best_lower_end,
    kind_at,
    least_distance,
    may_show,
    pair_interval,
    stored_difference,
    stored_value,
    told_difference,
    told_mean,
)
from lexbandits.evidence.kinds import (
    Dependence,
    Missing,
    NoiseKind,
    check_rewards,
    checked_kinds,
    kind_rows,
    spread_kinds,
)
from lexbandits.evidence.moments import push
from lexbandits.evidence.sub_gaussian import one_sided_level, sub_gaussian_radius
from lexbandits.policies.tolerance.anytime import shows_nothing
from support.bandit_problems import outputs
from support.kernels import arm_bounds

ALL = [
    "gaussian",
    "bernoulli",
    ["bounded", -10.0, 0.0],
    ["sub_gaussian", 2.0],
    ["sub_gaussian", 2.0, "dependent"],
    ["sub_gaussian", 2.0, "independent"],
    "finite_variance",
    "exact",
    ["bounded", -10.0, 0.0, "worst"],
    ["bernoulli", "worst"],
]


def only(noise):
    return spread_kinds(checked_kinds(noise, None, 1), 1)[0]


def pushed(values):
    state = (0.0, 0.0, 0.0, 0.0, 0.0)
    for value in values:
        state = push(*state, float(value))
    return state


# --- the setting


@pytest.mark.parametrize("kind", ALL)
def test_a_setting_survives_json_and_means_the_same(kind):
    given_as_tuple = tuple(kind) if isinstance(kind, list) else kind
    for noise, m in ((kind, 3), (given_as_tuple, 3), ([kind, given_as_tuple], 2), ((given_as_tuple,), 1)):
        setting = checked_kinds(noise, None, m)
        again = json.loads(json.dumps(setting))
        assert again == setting == checked_kinds(again, None, m)
        assert spread_kinds(setting, m) == (only(kind),) * m or np.isnan(only(kind).sd)
        rows = kind_rows(spread_kinds(setting, m))
        assert rows.shape == (m, 7)
        np.testing.assert_equal(tuple(kind_at(rows, m - 1)), tuple(only(kind)))


def test_every_kind_at_once_and_the_short_way_to_say_sub_gaussian():
    assert checked_kinds(ALL, None, 10) == ALL
    assert [kind.code for kind in spread_kinds(ALL, 10)] == [
        kinds.GAUSSIAN,
        kinds.BERNOULLI,
        kinds.BOUNDED,
        kinds.SUB_GAUSSIAN,
        kinds.SUB_GAUSSIAN,
        kinds.SUB_GAUSSIAN,
        kinds.FINITE_VARIANCE,
        kinds.EXACT,
        kinds.BOUNDED,
        kinds.BERNOULLI,
    ]
    assert checked_kinds(None, None, 2) == "gaussian"
    for noise in (None, "gaussian"):
        assert checked_kinds(noise, 0.5, 2) == ["sub_gaussian", 0.5, "independent"]
        each = [["sub_gaussian", 0.5, "independent"], ["sub_gaussian", 2.0, "independent"]]
        assert checked_kinds(noise, [0.5, 2], 2) == each
    assert checked_kinds(("bounded", np.float64(0), np.int64(1)), None, 2) == ["bounded", 0.0, 1.0]
    together, unsaid = only(("sub_gaussian", 3, "dependent")), only(("sub_gaussian", 3))
    apart = only(("sub_gaussian", 3, "independent"))
    assert (together.sd, together.pair_sd, apart.sd) == (3.0, 6.0, 3.0)
    assert (unsaid.sd, unsaid.pair_sd) == (3.0, 6.0)
    assert apart.pair_sd == pytest.approx(math.sqrt(18))


@pytest.mark.parametrize(
    ("noise", "noise_sd", "m", "error", "says"),
    [
        ("gausian", None, 1, ValueError, "unknown kind 'gausian'; did you mean 'gaussian'"),
        ("subgaussian", None, 1, ValueError, "did you mean 'sub_gaussian'"),
        ("", None, 1, ValueError, "unknown kind ''; it must be"),
        (["gaussian", "binary"], None, 2, ValueError, r"noise\[1\]: unknown kind 'binary'"),
        ("bounded", None, 1, ValueError, r'must be \("bounded", lo, hi\), got \'bounded\''),
        (("bounded", 0), None, 1, ValueError, r'must be \("bounded", lo, hi\)'),
        (("bounded", 1, 1), None, 1, ValueError, "below the upper one, got 1 and 1"),
        (("bounded", 0, math.inf), None, 1, ValueError, "noise.s upper bound must be finite, got inf"),
        (("bounded", -math.inf, 0), None, 1, ValueError, "noise's lower bound must be finite, got -inf"),
        (("bounded", math.nan, 0), None, 1, ValueError, "must be finite, got nan"),
        (("bounded", -1e308, 1e308), None, 1, ValueError, "lower bound must be at most 1e.100 in size"),
        (("bounded", 0, 1e-200), None, 1, ValueError, "noise: the bounds must be at least 1e-100 apart"),
        (("sub_gaussian", 1e200), None, 1, ValueError, "sd of noise must be at most 1e.100 in size"),
        (("bounded", "0", 1), None, 1, TypeError, "must be a number, got '0'"),
        (("sub_gaussian", 0), None, 1, ValueError, "sd of noise must be positive, got 0.0"),
        (("sub_gaussian", 1, "apart"), None, 1, ValueError, '"independent"'),
        (("gaussian", "worst"), None, 1, ValueError, r'values that have a worst: \("bernoulli", "worst"\)'),
        (("bounded", 0, "worst"), None, 1, ValueError, r'must be \("bounded", lo, hi\)'),
        (("bernoulli", 1, "worst"), None, 1, ValueError, "values that have a worst"),
        ("sub_gaussian", None, 1, ValueError, r'must be \("sub_gaussian", sd\)'),
        (("gaussian", 1.0), None, 1, ValueError, 'must be "gaussian" alone'),
        (["gaussian"], None, 2, ValueError, r"one per objective \(2\), got 1"),
        ([], None, 2, ValueError, r"one per objective \(2\), got 0"),
        (["gaussian", 3], None, 2, ValueError, 'must be "gaussian" alone'),
        ([["bounded", 0, 1], 3], None, 2, TypeError, r"noise\[1\] must be .* got 3"),
        (0.5, None, 1, TypeError, "noise must be .* got 0.5"),
        ("bernoulli", 0.5, 1, ValueError, "give noise or noise_sd, not both; got noise 'bernoulli'"),
        (None, [1.0], 2, ValueError, "noise_sd must be one number or 2, one per objective"),
        (None, -1.0, 2, ValueError, "noise_sd must be positive"),
    ],
)
def test_a_wrong_setting_is_named(noise, noise_sd, m, error, says):
    with pytest.raises(error, match=says):
        checked_kinds(noise, noise_sd, m)


# --- the values


def test_values_that_a_kind_rules_out_are_named():
    mixed = spread_kinds(checked_kinds(["bernoulli", ["bounded", -10, 0], "gaussian"], None, 3), 3)
    check_rewards(mixed, [4, 2], np.array([[0.0, -10.0, 1e300], [0.3, math.nan, math.nan]]))
    check_rewards(mixed, [], np.empty((0, 3)))
    for row, says in [
        ([1.5, -1, 0], r'arm 2 on objective 0 must be in \[0, 1\] for "bernoulli" noise, got 1.5'),
        ([1, 0.1, 0], r"arm 2 on objective 1 must be in the declared bounds \[-10.0, 0.0\], got 0.1"),
        ([1, -1, math.inf], "arm 2 on objective 2 must be finite.* got inf"),
        ([-math.inf, -1, 0], "arm 2 on objective 0 must be finite.* got -inf"),
    ]:
        with pytest.raises(ValueError, match=says):
            check_rewards(mixed, [4, 2], np.array([[1.0, -1.0, 0.0], row]))


def test_an_exact_arm_has_one_value():
    check_exact(1, 0, 0.3, 0.3)
    with pytest.raises(ValueError, match=r"arm 1 gave 0.4 on objective 0 after 0.3"):
        check_exact(1, 0, 0.3, 0.4)


def test_what_is_said_of_a_repeated_value():
    message = kinds.repetition_warning(2, 1, 0.5)
    assert all(word in message for word in ("arm 2", "objective 1", "0.5", "bernoulli", "bounded", "exact"))


# --- intervals in the units of the values

unit = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=40)


@pytest.mark.interpreted
@given(unit, st.sampled_from([(-10.0, 0.0), (3.0, 3.5), (0.0, 1.0)]))
def test_a_bounded_interval_is_that_of_the_unit_interval_stretched(values, bounds):
    low, high = bounds
    kind = only(("bounded", low, high))
    told = [low + v * (high - low) for v in values]
    state = pushed(stored_value(kind, v) for v in told)
    assert told_mean(kind, state[1]) == pytest.approx(sum(told) / len(told), abs=1e-9)
    expected = [low + z * (high - low) for z in bounded_interval(*pushed(values), 2.0)]
    assert arm_interval(kind, *state, 2.0) == pytest.approx(expected, abs=1e-2 * (high - low))
    ends = bounded_lower(*state, 2.0), bounded_upper(*state, 2.0)
    assert arm_bounds(kind, *state, 2.0) == pytest.approx([low + z * (high - low) for z in ends], abs=1e-12)


@pytest.mark.interpreted
@given(st.data(), st.sampled_from([(-10.0, 0.0), (0.0, 1.0), (0.1, 0.7)]))
def test_a_pair_of_bounded_values_stays_in_bounds_and_mirrors(data, bounds):
    low, high = bounds
    kind = only(("bounded", low, high))
    value = st.floats(low, high)
    pairs = data.draw(st.lists(st.tuples(value, value), min_size=1, max_size=30))
    stored = [stored_difference(kind, a, b) for a, b in pairs]
    assert all(0 <= z <= 1 for z in stored)
    state, turned = pushed(stored), pushed(stored_difference(kind, b, a) for a, b in pairs)
    assert told_difference(kind, state[1]) == pytest.approx(
        sum(a - b for a, b in pairs) / len(pairs), abs=1e-12 * 10
    )
    dl, du = pair_interval(kind, *state, 1.0)
    assert low - high <= dl <= told_difference(kind, state[1]) <= du <= high - low
    assert pair_interval(kind, *turned, 1.0) == pytest.approx((-du, -dl), abs=5e-3 * (high - low))


@pytest.mark.interpreted
def test_other_kinds_mean_their_own_radius():
    state = (400.0, 2.0, 90.0, 0.0, 60.0)
    for noise in ("gaussian", "finite_variance"):
        radius = gaussian_radius(400.0, 90.0, 5.0)
        assert arm_interval(only(noise), *state, 5.0) == (2.0 - radius, 2.0 + radius)
        assert pair_interval(only(noise), *state, 5.0) == (2.0 - radius, 2.0 + radius)
        one = gaussian_radius(400.0, 90.0, one_sided_level(5.0))
        assert arm_bounds(only(noise), *state, 5.0) == (2.0 - one, 2.0 + one)
    scales = {(): 2.0, ("dependent",): 2.0, ("independent",): math.sqrt(2)}
    for noise, apart in ((("sub_gaussian", 3.0, *word), scale) for word, scale in scales.items()):
        radius = sub_gaussian_radius(400.0, 3.0, 5.0)
        assert arm_interval(only(noise), *state, 5.0) == (2.0 - radius, 2.0 + radius)
        low, high = pair_interval(only(noise), *state, 5.0)
        assert (high - low) / 2 == pytest.approx(apart * radius)
    assert arm_interval(only("exact"), 1.0, 2.0, 0.0, 0.0, 0.0, 5.0) == (2.0, 2.0)
    assert pair_interval(only("exact"), 1.0, 2.0, 0.0, 0.0, 0.0, 5.0) == (2.0, 2.0)


@pytest.mark.interpreted
@pytest.mark.parametrize("noise", ALL)
def test_before_any_value_nothing_is_known(noise):
    kind = only(noise)
    nothing = (0.0, 0.0, 0.0, 0.0, 0.0)
    bounds = (kind.low, kind.high)
    assert arm_interval(kind, *nothing, 3.0) == bounds
    assert arm_bounds(kind, *nothing, 3.0) == bounds
    width = kind.high - kind.low
    assert pair_interval(kind, *nothing, 3.0) == (-width, width)


@pytest.mark.parametrize("noise", ["gaussian", "bernoulli", ("bounded", -1, 3), "finite_variance"])
def test_who_does_not_look_misses_nothing(noise):
    """Over thousands of random pairs, an interval never shows more than was kept."""
    kind, rng = only(noise), np.random.default_rng(5)
    skipped = 0
    for _ in range(3000):
        n = int(rng.choice([5, 30, 100, 400, 1000]))
        p, q = rng.beta(0.5, 0.5, 2)
        q = p if rng.random() < 0.6 else q
        if noise == "gaussian" or rng.random() < 0.5:
            a, b = (rng.beta(30 * r + 0.1, 30 * (1 - r) + 0.1, n) for r in (p, q))
        else:
            a, b = (rng.random(n) < p) * 1.0, (rng.random(n) < q) * 1.0
        d = stored_difference(kind, a, b)
        c = d - d.mean()
        state = (float(n), d.mean(), (c**2).sum(), (c**3).sum(), (c**4).sum())
        level, tolerance = rng.uniform(3, 10), float(rng.choice([0.0, 0.01, 0.1]))
        reach = tolerance + float(rng.choice([0.01, 0.1, 0.3, 1.0]))
        seen = (-math.inf, math.inf) if rng.random() < 0.5 else (rng.uniform(-0.5, 0), rng.uniform(0, 0.5))
        ends = pair_interval(kind, *state, level)
        turned = (
            state[0],
            1 - state[1] if kind.code >= kinds.BOUNDED else -state[1],
            state[2],
            -state[3],
            state[4],
        )
        p, q = least_distance(kind, state[0], state[2], level)
        sides = (state, seen[0], ends[0]), (turned, -seen[1], -ends[1])
        looks = [may_show(kind, moments[1], p, q, tolerance, reach, best) for moments, best, _ in sides]
        known = *state[:3], level, tolerance, reach, seen[0], -seen[1]
        assert shows_nothing(kind, *known) == (not any(looks))
        for moments, best, end in sides:
            kept = best
            if may_show(kind, moments[1], p, q, tolerance, reach, best):
                kept = best_lower_end(kind, *moments, level, tolerance, reach, best)
            else:
                skipped += 1
            assert kept == best or kept == pytest.approx(end, rel=1e-12, abs=1e-12)
            end = max(end, best)
            assert (kept > tolerance, kept >= -reach) == (end > tolerance, end >= -reach)
    assert skipped > 300


RUN = """
import numpy as np
from lexbandits.evidence.interval import *
from lexbandits.evidence.kinds import checked_kinds, spread_kinds
from lexbandits.evidence.moments import push
rng = np.random.default_rng(1)
noise = ["gaussian", "bernoulli", ("bounded", -10, 3), ("sub_gaussian", 0.3), "finite_variance", "exact"]
for kind in spread_kinds(checked_kinds(noise, None, 6), 6):
    for n in (2, 30, 400):
        for values in ((rng.random(n) < 0.1) * 1.0, rng.beta(2, 5, n)):
            state = (0.0, 0.0, 0.0, 0.0, 0.0)
            for value in values.tolist():
                state = push(*state, stored_value(kind, value))
            for level in (0.7, 6.4, 40.0):
                for ends in (arm_interval, pair_interval):
                    print([float(end).hex() for end in ends(kind, *state, level)])
                print(best_lower_end(kind, *state, level, 0.01, 0.1, -np.inf).hex())
                print(best_bound(kind, *state, level, 0.1, 0, -np.inf).hex())
"""


def test_compiled_and_interpreted_intervals_are_the_same_to_the_bit():
    compiled, interpreted = outputs(RUN)
    assert compiled == interpreted != ""


@pytest.mark.parametrize("kind", NoiseKind)
def test_kernels_read_off_the_code_what_the_traits_say(kind):
    code = kinds.CODES[kind]
    assert kinds.Kind(code).noise is kind
    assert kind.traits.bounded == (code >= kinds.BOUNDED)
    assert kind.traits.unbounded == (code < kinds.EXACT)
    assert kind.traits.exact == (code == kinds.EXACT)


def test_a_kind_may_be_given_as_the_enum_and_is_kept_as_its_word():
    for kind in NoiseKind:
        numbers = {NoiseKind.BOUNDED: (0, 1), NoiseKind.SUB_GAUSSIAN: (0.5, Dependence.INDEPENDENT)}.get(
            kind, ()
        )
        spoken, word = (kind, *numbers), (str(kind), *map(_plain, numbers))
        asked = [lb.Objective("x", margin=0.1, noise=each if numbers else each[0]) for each in (spoken, word)]
        assert repr(asked[0]) == repr(asked[1])
        assert json.dumps(asked[0].as_json()) == json.dumps(asked[1].as_json())
        assert asked[0].kind is kind
        kept = [checked_kinds(each if numbers else each[0], None, 1) for each in (spoken, word)]
        assert repr(kept[0]) == repr(kept[1])
        assert spread_kinds(kept[0], 1)[0].code == getattr(kinds, kind.name)


def test_the_worst_may_be_given_as_the_enum():
    asked = lb.Objective("x", margin=0.1, noise="bernoulli", if_missing=Missing.WORST)
    assert repr(asked) == repr(lb.Objective("x", margin=0.1, noise="bernoulli", if_missing="worst"))
    assert repr(checked_kinds((NoiseKind.BERNOULLI, Missing.WORST), None, 1)) == "['bernoulli', 'worst']"


def _plain(part):
    return str(part) if isinstance(part, str) else part
