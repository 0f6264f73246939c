"""Serving visitors: the same key gets the same trial, then the same arm, whatever happens in between."""

import os
import random
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits.study.core import replay as replay_module
from lexbandits.study.core.assignment import divide
from lexbandits.study.core.replay import Replay
from lexbandits.study.errors import StudyWarning
from lexbandits.study.storage import http as http_module
from lexbandits.study.storage.memory import MemoryStorage
from lexbandits.study.storage.sqlite import SqliteStorage
from support.journals import replay_of, storage_of
from support.nursery import started
from support.questions import create, go_on, kinds, measure, tried, work

GOOD = {"correct": 1, "latency": 10}


def seen(trial):
    return trial.number, trial.arm, trial.reason


def test_a_key_gets_the_same_trial_then_the_same_arm(clock, storage):
    study = create(storage, lease="1h")
    ann, bob = study.assign("ann"), study.assign("bob")
    assert (seen(ann), seen(bob)) == ((0, "small", "trial"), (1, "large", "trial"))
    assert study.assign("ann") == ann
    assert study.assign("ann").reason == "trial"
    study.tell(ann, GOOD)
    assert seen(study.assign("ann")) == (None, "small", "sticky")
    study.tell(bob, {"correct": 1}, partial=True)
    assert study.assign("bob") == bob, "more of it may follow"
    clock.move(3601)
    assert seen(study.assign("bob")) == (None, "large", "sticky")
    again = lb.open_study("models", storage)
    assert [seen(again.assign(key)) for key in ("ann", "bob")] == [
        (None, "small", "sticky"),
        (None, "large", "sticky"),
    ]
    with pytest.raises(lb.UnknownTrialError):
        study.tell(study.assign("bob"), GOOD)


def test_nobody_is_refused(storage):
    """Paused, budget spent, waiting, finished: there is always an arm to show."""
    study = create(storage, budget=3)
    study.pause("lunch")
    idle = study.assign("idle")
    assert (idle.number, idle.id, idle.until, idle.reason) == (None, None, None, "leader")
    study.resume()
    assert seen(study.assign("idle")) == (None, idle.arm, "sticky"), (
        "whoever saw an arm is not measured later"
    )
    for trial in map(study.assign, "abc"):
        assert study.tell(trial, measure(trial.arm, trial.item)) == "counted"
    assert seen(study.assign("d")) == (None, study.answer.arm, "leader")
    study.set_budget(None)
    go_on(study)
    assert study.answer.arm == "large"
    winners = [seen(study.assign(key)) for key in ("new", "idle", "d")]
    assert winners == [(None, "large", "winner")] * 3
    assert study.forget("new") == 0, "what everybody is given need not be kept"


def test_an_arm_that_left_is_shown_to_nobody(storage):
    study = create(storage, lease="1h")
    trials = {key: study.assign(key) for key in ("ann", "bob", "cid", "dan", "eve", "fay")}
    small = next(key for key, trial in trials.items() if trial.arm == "small")
    study.withdraw("small", "it crashes")
    moved = study.assign(small)
    assert moved.reason == "leader"
    assert moved.arm in ("large", "cot")
    assert seen(study.assign(small)) == (None, moved.arm, "sticky")
    study.restore("small")
    assert seen(study.assign(small)) == (None, moved.arm, "sticky"), "and it is not measured on another arm"
    assert study.status.open == 6, "the trial is left as it is: it runs out"


def test_an_arm_that_breaks_a_limit_is_no_longer_assigned_at_once(storage):
    objectives = [
        lb.Objective("errors", "minimize", at_most=0.1, slack=0.1, noise="bernoulli"),
        lb.Objective("sales", margin=0.01, noise="bernoulli"),
    ]
    study = create(
        storage, name="limits", arms=["good", "broken", "other"], objectives=objectives, lease="1h"
    )
    had = []
    for number in range(2000):
        if had and study.assign(had[0]).arm != "broken":
            break
        trial = study.assign(f"visitor {number}")
        if trial.arm == "broken":
            had.append(f"visitor {number}")
        study.tell(trial, {"errors": int(trial.arm == "broken"), "sales": number // 3 % 2})
    assert 0 < len(had) < 100
    assert study.status.state == "measuring"
    assert "broken" in study.status.candidates, "no other arm needs to be shown to be better on the limit"
    arms = Counter(study.assign(f"later {number}").arm for number in range(60))
    assert set(arms) == {"good", "other"}
    assert {study.assign(key).arm for key in had} <= {"good", "other"}


def test_a_released_trial_was_never_shown(storage):
    study = create(storage)
    study.release(study.assign("ann"))
    again = study.assign("ann")
    assert (again.reason, again.number) == ("trial", 1)


def test_forgotten_visitors_are_new_ones(storage):
    study = create(storage)
    for key in ("ann", "bob", "cid"):
        study.assign(key)
    assert (study.forget("ann"), study.forget("ann"), study.forget("nobody")) == (1, 0, 0)
    assert study.assign("ann").number == 3
    assert study.assign("bob").number == 1
    assert study.forget() == 3
    assert study.assign("bob").number == 4
    assert study.verify().ok


@pytest.mark.parametrize("key", ["", "x" * 1001, None, 7, b"ann", "\ud800"])
def test_what_is_no_key(storage, key):
    study = create(storage)
    with pytest.raises(lb.StudyError, match="key must be"):
        study.assign(key)
    assert kinds(study) == ["created"]
    if key is not None:
        with pytest.raises(lb.StudyError, match="key must be"):
            study.forget(key)


def test_any_text_is_a_key(storage):
    study = create(storage)
    keys = ["\0", "ann", "Ann", " ann", "ü", "👩‍🔬", "x" * 1000, "a\nb", "../..", "'; DROP TABLE"]
    assert [study.assign(key).number for key in keys] == list(range(len(keys)))
    assert [study.assign(key).number for key in keys] == list(range(len(keys)))


def test_no_key_is_stored(tmp_path):
    """Neither in the journal nor beside it; and nobody is the same in two studies."""
    path = tmp_path / "s.db"
    for name in ("one", "two"):
        create(path, name=name).assign("ann.visitor@example.org")
    raw = sqlite3.connect(path)
    rows = raw.execute("SELECT study, visitor, arm, trial FROM lexbandits_assigned ORDER BY study").fetchall()
    assert [(study, arm, trial) for study, _, arm, trial in rows] == [(1, "small", 0), (2, "small", 0)]
    assert len({visitor for _, visitor, _, _ in rows}) == 2
    assert all(len(visitor) == 32 for _, visitor, _, _ in rows)
    raw.close()
    assert b"ann.visitor" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    lb.delete_study("one", path)
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM lexbandits_assigned").fetchone() == (1,)


# --- a share of the visitors


@pytest.fixture
def same_visitors(monkeypatch):
    """Keys have the same digests in every run."""
    monkeypatch.setattr("secrets.token_hex", lambda size: "5eed")


def share_of(study, keys):
    """The share of the keys that take part; the others are asked twice for."""
    taken = {key: study.assign(key) for key in keys}
    assert all((trial.id is None) == (trial.reason == "outside") for trial in taken.values())
    return {key for key, trial in taken.items() if trial.id}, taken


def test_a_share_of_the_visitors_takes_part_and_the_others_see_the_baseline(storage, same_visitors):
    """Who does is decided by the key, so that nobody is in on one visit and out on the next."""
    study = create(storage, baseline="large", traffic=0.3)
    inside, taken = share_of(study, [f"v{number}" for number in range(400)])
    assert 90 < len(inside) < 150
    assert {trial.arm for key, trial in taken.items() if key not in inside} == {"large"}
    assert study.status.handed_out == len(inside)
    out = next(key for key in taken if key not in inside)
    assert seen(study.assign(out)) == (None, "large", "sticky")
    study.forget()
    again = [f"v{number}" for number in range(0, 400, 20)]
    assert share_of(study, again)[0] == inside & set(again)
    study.end("enough was seen")
    assert study.assign(out).reason == study.assign("v1").reason == "winner"


def test_without_a_baseline_the_others_see_the_best_arm_so_far(storage):
    study = create(storage, traffic=1e-9)
    go_on(study, 90)
    assert seen(study.assign("ann")) == (None, study.answer.arm, "outside")


def test_a_baseline_that_is_out_is_shown_to_nobody(storage):
    study = create(storage, baseline="small", traffic=1e-9)
    assert study.assign("ann").arm == "small"
    study.withdraw("small", "broken")
    assert study.assign("bob").arm != "small"
    assert seen(study.assign("ann"))[1:] == (study.answer.arm, "leader")


def test_the_share_grows_while_the_study_warms_up(clock, same_visitors):
    """Who takes part early takes part later; who stood outside is not measured after having seen an arm."""
    study = create("memory", baseline="small", traffic=0.8, warmup="2d")
    early, taken = share_of(study, map(str, range(300)))
    assert early == set()
    clock.move(86_400)
    half, _ = share_of(study, map(str, range(300, 600)))
    assert 90 < len(half) < 150
    clock.move(86_400)
    whole, _ = share_of(study, map(str, range(600, 900)))
    assert 205 < len(whole) < 275
    assert all(study.assign(key).reason == "sticky" for key in taken)
    study.forget()
    assert share_of(study, half)[0] == half


@pytest.mark.parametrize(
    "words", [{"traffic": 0}, {"traffic": 1.01}, {"traffic": "half"}, {"warmup": "soon"}, {"warmup": -1}]
)
def test_what_is_no_share_is_refused(words):
    with pytest.raises((lb.StudyError, TypeError), match=r"traffic|warmup"):
        create("memory", **words)


# --- floors and ceilings


def can_be_had(taking, asked, shares, arms):
    """Whether the others can see what brings every arm between its floor and its ceiling."""
    seen = [(taking * asked.get(arm, 0), *shares.get(arm, (0, 1))) for arm in arms]
    least = sum(max(low - part, 0) for part, low, _ in seen)
    most = sum(max(high - part, 0) for part, _, high in seen)
    return all(part <= high + 1e-9 for part, _, high in seen) and least - 1e-9 <= 1 - taking <= most + 1e-9


@given(st.data())
def test_as_many_as_can_take_part_and_every_share_is_kept(data):
    """Beside a search through all shares that may take part, by counting what is left for the others."""
    arms = ["a", "b", "c", "d"][: data.draw(st.integers(1, 4))]
    part = st.integers(0, 4)
    places = [data.draw(part) for _ in arms]
    asked = {arm: n / sum(places) for arm, n in zip(arms, places, strict=True) if n}
    shares = {}
    for arm in data.draw(st.sets(st.sampled_from(arms))):
        low, high = sorted((data.draw(st.integers(0, 9)), data.draw(st.integers(1, 10))))
        shares[arm] = low / 10, high / 10
    most = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    assume(can_be_had(0.0, asked, shares, arms))
    taking, others = divide(most, asked, shares, arms)
    assert taking + sum(others.values()) == pytest.approx(1)
    for arm in arms:
        low, high = shares.get(arm, (0, 1))
        assert low - 1e-9 <= taking * asked.get(arm, 0) + others.get(arm, 0) <= high + 1e-9
    steps = [most * k / 2000 for k in range(2001)]
    best = max(step for step in steps if can_be_had(step, asked, shares, arms))
    assert best - 1e-9 <= taking <= best + most / 2000 + 1e-9


@pytest.mark.parametrize(
    ("words", "rates", "least", "most"),
    [
        ({"shares": {"large": 0.6}}, (0.5, 0.5, 0.5), {"large": 0.6}, {"large": 0.6}),
        ({"shares": {"large": 0.5}, "baseline": "small"}, (0.6, 0.5, 0.3), {"large": 0.5}, {}),
        ({"shares": {"small": [0, 0.1]}, "baseline": "cot"}, (0.5, 0.5, 0.5), {}, {"small": 0.1}),
        ({"shares": {"small": (0.1, 0.2), "cot": (0, 0.15)}}, (0.5, 0.5, 0.5), {"small": 0.1}, {"cot": 0.15}),
        ({"shares": {"large": 0.7, "cot": (0, 0.1)}, "serve": True}, (0.4, 0.5, 0.5), {"large": 0.7},
         {"cot": 0.1}),
        ({"shares": {"large": 0.3}, "traffic": 0.2, "baseline": "cot"}, (0.5, 0.5, 0.5), {"large": 0.3}, {}),
    ],
)  # fmt: skip
def test_the_visitors_are_counted(words, rates, least, most, same_visitors):
    """Whichever arms are still asked, and whoever leads; an arm that is out is shown to nobody."""
    bought = lb.Objective("bought", margin=0.1, noise="bernoulli")
    words = {"objectives": [bought], "arms": ["small", "large", "cot"], "seed": 0, **words}
    study, luck = lb.create_study("shares", "memory", **words), random.Random(1)
    assert lb.create_study(**study.spec | {"name": "again"}).spec["shares"] == study.spec["shares"]
    chance = dict(zip(words["arms"], rates, strict=True))
    seen, told = Counter(), 0
    for number in range(1500):
        trial = study.assign(f"visitor {number}")
        if trial.reason == "winner":
            break
        seen[trial.arm] += 1
        if trial.id is not None:
            told += study.tell(trial, {"bought": int(luck.random() < chance[trial.arm])}) == "counted"
    total, slack = seen.total(), 3 * (0.25 / seen.total()) ** 0.5
    assert all(seen[arm] / total >= part - slack for arm, part in least.items()), seen
    assert all(seen[arm] / total <= part + slack for arm, part in most.items()), seen
    assert told > 50
    assert study.verify().ok


def test_a_floor_ends_with_its_arm(same_visitors):
    study = create(baseline="small", shares={"cot": 0.9})
    assert Counter(study.assign(f"v{number}").arm for number in range(200))["cot"] > 150
    study.withdraw("cot", "broken")
    later = [study.assign(f"w{number}") for number in range(50)]
    assert "cot" not in {trial.arm for trial in later if trial.id is None}, "passes begun go on"


def test_shares_hold_while_nothing_is_measured(same_visitors):
    study = create(shares={"cot": 0.25, "large": (0.25, 0.5), "small": (0, 0.5)})
    study.pause("lunch")
    taken = [study.assign(f"v{number}") for number in range(400)]
    seen = Counter(trial.arm for trial in taken)
    assert {trial.reason for trial in taken} == {"leader"}
    assert 70 < seen["cot"] < 130
    assert 70 < seen["large"] < 130
    assert 160 < seen["small"] < 240


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"shares": {"huge": 0.5}}, "shares must be of the arms 'small', 'large', 'cot', got 'huge'"),
        ({"shares": {}}, "shares must be a table"),
        ({"shares": {"cot": "half"}}, "the share of 'cot' must be a floor or"),
        ({"shares": {"cot": True}}, "must be a number"),
        ({"shares": {"cot": (0.5, 0.4)}}, "floor <= ceiling"),
        ({"shares": {"cot": (0, 0)}}, "a ceiling above 0"),
        ({"shares": {"cot": 0.6, "large": 0.5}}, r"add up to 1\.1 of the visitors: at most 1"),
        ({"shares": {"cot": 0.6, "large": 0.4}}, "add up to 1 of the visitors, which leaves none"),
        ({"shares": dict.fromkeys(("small", "large", "cot"), (0, 0.3))}, r"add up to 0\.9 of the visitors"),
        ({"shares": {"cot": 0.5}, "items": ["a"]}, "shares are of visitors"),
        ({"shares": {"cot": (0, 0.6)}, "baseline": "cot", "traffic": 0.5}, r"with traffic=0\.5 0\.666667 of"),
        ({"shares": {"cot": (0, 0.6)}, "baseline": "cot", "warmup": "1d"}, "warmup begins with 1 of the"),
    ],
)  # fmt: skip
def test_shares_that_cannot_be_had_are_refused(words, said):
    with pytest.raises((lb.StudyError, TypeError), match=said):
        create("memory", **words)


# --- at once, killed, away


def test_many_assign_one_key_at_once(address):
    create(address)
    studies = [lb.open_study("models", address) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for number in range(10):
            trials = list(pool.map(lambda study, key=f"v{number}": study.assign(key), studies))
            assert {trial.number for trial in trials} == {number}
            assert len(set(trials)) == 1
    assert kinds(studies[0]) == ["created"] + 10 * ["asked"]


SERVER = """
import lexbandits as lb
study = lb.open_study("models", sys.argv[1])
for number in range(10**6):
    trial = study.assign(f"v{number}")
    print(number, trial.number, trial.arm, flush=True)
"""


def test_a_server_is_killed(tmp_path):
    """Whatever it had said stays so, and nothing was given twice: row and event are one commit."""
    path = tmp_path / "s.db"
    study = create(path)
    said = {}
    for killed_after in (1, 7, 40):
        process = started(["-c", SERVER, str(path)], dict(os.environ))
        for line in process.stdout:
            key, number, arm = line.split()
            assert said.setdefault(key, (number, arm)) == (number, arm)
            if len(said) > killed_after and int(key) + 1 == len(said):
                break
        process.kill()
        process.communicate()
    asked = kinds(study).count("asked")
    rows = sqlite3.connect(path).execute("SELECT trial FROM lexbandits_assigned ORDER BY trial").fetchall()
    assert [trial for (trial,) in rows] == list(range(asked)), "no trial without a visitor, and one each"
    for key, (number, arm) in said.items():
        trial = study.assign(f"v{key}")
        assert (str(trial.number), trial.arm) == (number, arm)


def test_a_commit_that_fails_gives_nothing(tmp_path, monkeypatch):
    """Neither the row nor the event: the visitor is shown an arm, and is new the next time."""
    study = create(tmp_path / "s.db")
    study.assign("ann")
    commit = SqliteStorage._commit

    def broken(self):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(SqliteStorage, "_commit", broken)
    with pytest.warns(StudyWarning, match="assigned from memory: .*disk I/O error"):
        shown = study.assign("bob")
    assert seen(shown) == (None, "small", "stale")
    with pytest.warns(StudyWarning):
        assert seen(study.assign("ann")) == (None, "small", "stale")
    monkeypatch.setattr(SqliteStorage, "_commit", commit)
    assert seen(study.assign("ann")) == (0, "small", "trial")
    assert seen(study.assign("bob")) == (1, "large", "trial")
    assert study.verify().ok


def test_the_best_arm_is_shown_while_the_storage_is_away(tmp_path):
    path = tmp_path / "s.db"
    study = create(path)
    go_on(study, 90)
    best = study.answer.arm
    assert best != "small", "or it could not be told from the first arm"
    path.rename(tmp_path / "away.db")
    for _ in range(2):
        with pytest.warns(StudyWarning, match="is gone"):
            assert seen(study.assign("ann")) == (None, best, "stale")
    (tmp_path / "away.db").rename(path)
    assert study.assign("ann").reason == "trial"
    lb.delete_study("models", path)
    with pytest.raises(lb.UnknownStudyError):
        study.assign("bob")


def test_the_best_arm_is_shown_while_the_service_is_away(running, monkeypatch):
    running.clear()
    monkeypatch.setattr(http_module, "VISITOR_WAITS", 600.0)
    study = create(running.link)
    for number in range(60):
        trial = study.assign(f"v{number}")
        study.tell(trial, {"correct": int(trial.arm != "small"), "latency": 5 if trial.arm == "cot" else 9})
    assert study.answer.arm == "cot"
    address = storage_of(study).shown
    storage_of(study).shown = "http://127.0.0.1:9"  # where nobody listens
    monkeypatch.setattr(http_module, "VISITOR_WAITS", 0.2)
    with pytest.warns(StudyWarning, match="does not answer"):
        assert seen(study.assign("new")) == (None, "cot", "stale")
    monkeypatch.setattr(http_module, "VISITOR_WAITS", 600.0)
    storage_of(study).shown = address
    assert study.assign("v0").reason in ("sticky", "winner")


def test_a_wrong_token_is_no_outage(running):
    running.clear()
    create(running.link)
    study = lb.open_study("models", running.link)
    storage_of(study)._headers["Authorization"] = "Bearer lb_wrong"
    with pytest.raises(lb.AuthError):
        study.assign("ann")


# --- many open trials


def test_places_looked_up_ahead_are_those_looked_up_one_by_one(monkeypatch):
    """However results come back, are released, or the rules change, with hundreds of open trials."""
    import random

    def life(many_open):
        monkeypatch.setattr(replay_module, "MANY_OPEN", many_open)
        luck, storage = random.Random(3), MemoryStorage()
        study = lb.create_study(
            "s",
            storage,
            arms=list("abcde"),
            max_arms=7,
            seed=1,
            lease="1h",
            objectives=[lb.Objective("x", margin=0.05, noise="bernoulli", if_expired=0)],
        )
        given, open_trials = [], []
        for step in range(3000):
            kind = luck.random()
            if kind < 0.62:
                trials = (
                    [study.assign(f"v{step}")] if kind < 0.5 else study.ask_many(luck.randrange(1, 9), wait=0)
                )
                given += [(trial.arm, trial.item) for trial in trials]
                open_trials += [trial for trial in trials if trial.id]
            elif open_trials and kind < 0.97:
                trial = open_trials.pop(luck.randrange(len(open_trials)))
                study.tell(trial, {"x": int(luck.random() < 0.2 + 0.05 * "abcdefg".index(trial.arm))})
            elif open_trials:
                study.release(open_trials.pop())
            if step in (700, 1900):
                study.add_arm("f" if step == 700 else "g")
            if step == 1200:
                study.withdraw("b", "so")
        assert len(open_trials) > 200
        return given

    assert life(64) == life(10**9)


def test_a_hundred_visitors_cost_as_much_among_ten_thousand_open_trials(monkeypatch):
    """Counted, not timed: the open trials are gone through once for hundreds of asks."""
    looks = []
    pending = Replay.pending
    monkeypatch.setattr(Replay, "pending", lambda self: looks.append(1) or pending(self))
    study = lb.create_study(
        "s",
        arms=list("abcd"),
        seed=0,
        lease="7d",
        objectives=[lb.Objective("x", margin=0.01, noise="bernoulli")],
    )
    study.ask_many(10_000)
    looks.clear()
    for number in range(100):
        study.assign(f"v{number}")
    assert len(looks) == 1


def test_leases_that_run_out_are_noticed_in_any_order(clock, tmp_path):
    study = lb.create_study(
        "s",
        f"sqlite:///{tmp_path}/s.db?synchronous=OFF",
        arms=list("ab"),
        seed=0,
        lease="1h",
        objectives=[lb.Objective("x", margin=0.01, noise="bernoulli")],
    )
    study.assign("long", lease="10h")
    study.assign("short", lease="10m")
    study.assign("alive", lease="10m", worker="w")
    clock.move(500)
    study.heartbeat("w")
    clock.move(200)
    study.assign("now", lease="2h")
    assert replay_of(study).projection.open.keys() == {0, 2, 3}
    clock.move(601)
    study.assign("later")
    assert replay_of(study).projection.open.keys() == {0, 3, 4}
    clock.move(36_000)
    study.assign("last")
    assert replay_of(study).projection.open.keys() == {5}


def test_a_study_that_waits_shows_its_leader(storage):
    from support.questions import easy

    study = easy(storage)
    study.ask(lease="1h", worker="gpu-3")
    _, stop = work(study)
    assert isinstance(stop, lb.StudyWaiting)
    shown = study.assign("ann")
    assert (shown.number, shown.reason) == (None, "leader")
    assert tried(shown.arm) == {"x": 1}
    assert seen(study.assign("ann")) == (None, shown.arm, "sticky")


def test_a_study_that_serves_nobody_writes_nothing_more(tmp_path):
    """Its statements are those of before: nothing is looked up about visitors."""
    statements = []
    study = create(f"sqlite:///{tmp_path}/s.db?synchronous=OFF")
    storage_of(study)._connected().set_trace_callback(statements.append)
    study.tell(study.ask(), GOOD)
    assert len(statements) > 4
    assert not [statement for statement in statements if "assigned" in statement]
