"""Tables of odd values and odd bounds: judged as what they are, or refused in a sentence; never certified."""

import datetime
import decimal
import fractions
import math
import random

import numpy as np
import pytest

import lexbandits as lb

ODD_VALUES = [
    {"a": 1},
    [1],
    datetime.datetime(2026, 1, 1),
    datetime.timedelta(1),
    np.datetime64("2026-01-01"),
    1 + 2j,
    np.complex128(1),
    10**400,
    -(10**400),
    b"1",
    "one",
    "1_000",
    len,
    math.inf,
    -math.inf,
    1e101,
    np.array([1.0, 2.0]),
]
FINE = [
    True,
    np.bool_(True),
    np.float32(1),
    np.int64(1),
    decimal.Decimal(1),
    fractions.Fraction(1),
    "1",
    " 1 ",
]


def table(values, arms=None, items=None):
    n = len(values)
    return {
        "arm": arms or ["a", "b"] * (n // 2),
        "item": items or [row // 2 for row in range(n)],
        "x": values,
    }


def asked(noise="gaussian", **words):
    return [lb.Objective("x", **{"margin": 0.2, "noise": noise, **words})]


@pytest.mark.parametrize("odd", ODD_VALUES, ids=lambda value: repr(value)[:24])
def test_a_value_that_is_no_number_is_refused_with_its_row(odd):
    values = [random.Random(row).random() for row in range(20)]
    values[6] = odd
    with pytest.raises(lb.StudyError, match=r"^row 7[:,].*objective 'x' must be"):
        lb.judge(table(values), asked())


@pytest.mark.parametrize("fine", FINE, ids=repr)
def test_whatever_is_a_number_counts_as_it(fine):
    values = [random.Random(row).random() for row in range(20)]
    plain, odd = values.copy(), values.copy()
    plain[6], odd[6] = 1.0, fine
    assert lb.judge(table(odd), asked()) == lb.judge(table(plain), asked())


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([1, True], "the arm is 1 in row 1 and True in row 2, which Python takes for the same"),
        ([False, 0.0], "the arm is False in row 1 and 0.0 in row 2"),
        (["a", {"b": 1}], "row 2: the arm must be text or a number"),
        (["a", b"b"], "row 2: the arm must be text or a number"),
        ([("a", 1), ("b", 1)], "row 1: the arm must be text or a number"),
        (["a", 2j], "row 2: the arm must be text or a number"),
        ([1, "1"], "names of arms"),
    ],
)
def test_names_that_are_none_are_refused(names, sentence):
    with pytest.raises(lb.StudyError, match=sentence):
        lb.judge(table([0.1, 0.2] * 10, arms=names * 10), asked())


@pytest.mark.parametrize(
    "noise",
    [
        ("bounded", -1e308, 1e308),
        ("bounded", 0, 1e155),
        ("bounded", -1e101, 1),
        ("bounded", 0, 1e-200),
        ("sub_gaussian", 1e200),
        ("sub_gaussian", 1e-200),
    ],
)
def test_bounds_that_floating_point_cannot_square_are_refused_everywhere(noise):
    with pytest.raises(lb.StudyError, match=r"1e[+-]100"):
        asked(noise)
    with pytest.raises(ValueError, match=r"1e[+-]100"):
        lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, noise=[noise])


@pytest.mark.parametrize("word", ["margin", "tie", "at_least", "cap", "if_failed"])
def test_no_number_of_a_question_is_larger_than_a_value_may_be(word):
    with pytest.raises(lb.StudyError, match=r"1e\+100"):
        asked(**{word: 1e155})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-99, 1e-50, 1.0, 1e50, 1e99])
def test_a_verdict_does_not_depend_on_the_unit(size):
    """At any size that is taken: equal arms stay equal, different ones differ."""
    luck = np.random.default_rng(3)
    values = luck.uniform(0, 1, 600)
    values[1::2] /= 4
    for noise, scaled in (("gaussian", "gaussian"), (("bounded", 0, 1), ("bounded", 0, size))):
        plain = lb.judge(table(values), asked(noise))
        large = lb.judge(table(values * size), asked(scaled, margin=0.2 * size))
        assert (plain.arm, plain.certified) == (large.arm, large.certified) == ("a", True)


def test_values_too_small_to_square_are_refused():
    values = np.random.default_rng(0).normal(size=40) * 1e-150
    with pytest.raises(lb.StudyError, match="say them in a smaller unit"):
        lb.judge(table(values), asked(margin=1e-160, tie=0))


@pytest.mark.filterwarnings("error")
def test_tables_of_odd_values_are_judged_or_refused():
    """Whatever is drawn: a verdict or a `StudyError`; a table of two equal arms is never decided for one."""
    luck, verdicts, refused = random.Random(7), 0, 0
    pool = [
        0,
        1,
        -1,
        0.5,
        1e-300,
        1e99,
        -1e99,
        1e100,
        1e-99,
        math.nan,
        None,
        "",
        "nan",
        True,
        *ODD_VALUES,
        *FINE,
    ]
    noises = [
        "gaussian",
        "bernoulli",
        ("bounded", -1, 1),
        ("bounded", -1e100, 1e100),
        "finite_variance",
        "exact",
    ]
    for _ in range(300):
        some = luck.sample(pool, luck.randint(1, 3))
        column = [luck.choice(some) for _ in range(luck.choice([2, 6, 20]))]
        values = [value for value in column for _ in "ab"]  # the same for both arms
        missing = luck.choice(["error", "drop", "worst"])
        try:
            verdict = lb.judge(table(values), asked(luck.choice(noises), margin=0.1, tie=0), missing=missing)
        except lb.StudyError:
            refused += 1
        else:
            verdicts += 1
            assert "elimination" not in {found.by for found in verdict.outcomes.values()}, (values, verdict)
    assert min(verdicts, refused) > 20


@pytest.mark.parametrize(
    ("noise", "values"),
    [
        ("finite_variance", lambda rng, size: rng.exponential(size=size)),
        ("gaussian", lambda rng, size: np.round(rng.exponential(size=size))),
    ],
    ids=["approximate", "repeated"],
)
@pytest.mark.parametrize("rule", [{"margin": 0.4}, {"at_least": 8.0, "slack": 0.5}], ids=["margin", "limit"])
def test_nothing_is_said_of_arms_where_a_flag_takes_the_certificate_away(noise, values, rule):
    """Which arms are out is a claim at the same confidence, so it needs what a certificate needs."""
    rng, rows = np.random.default_rng(0), {"arm": [], "item": [], "x": []}
    for arm, mean in (("a", 10.0), ("b", 5.0), ("c", 1.0)):
        rows["arm"] += [arm] * 40
        rows["item"] += [*range(40)]
        rows["x"] += (mean + values(rng, 40)).tolist()
    verdict = lb.judge(rows, [lb.Objective("x", noise=noise, **rule)], arm="arm", item="item")
    assert not verdict.certified
    assert {became.outcome for became in verdict.outcomes.values()} == {"undecided"}
