"""A study is a function of its journal: any interleaving replays to the same state, on every storage."""

import secrets
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.replay import Replay
from lexbandits.study.storage.contract import Entries, open_storage
from lexbandits.study.storage.memory import MemoryStorage
from support.journals import journal_of, replay_of, storage_of
from support.lives import ON_A_LIST, Player, in_memory, script_of
from support.questions import create, measure, question

# from a seed, since lists that Hypothesis draws repeat few actions; a failure still shrinks to few
LIST = {"items": [f"q{i}" for i in range(25)], "seed": 1}
SEEDS, LENGTHS = st.integers(0, 10**6), st.integers(1, 120)
SCRIPTS = st.one_of(
    st.tuples(st.just({}), st.builds(script_of, SEEDS, LENGTHS)),
    st.tuples(st.just(LIST), st.builds(script_of, SEEDS, LENGTHS, st.just(ON_A_LIST))),
)
GENTLE = settings(suppress_health_check=list(HealthCheck), max_examples=60)
SLOWLY = settings(GENTLE, max_examples=25)


def same(study, other):
    mine, theirs = replay_of(study), replay_of(other)
    assert mine.projection == theirs.projection
    assert mine.policy == theirs.policy
    assert study.answer == other.answer
    assert study.status == other.status
    assert study.trials().equals(other.trials())


@GENTLE
@given(script=SCRIPTS)
@example(script=(LIST, script_of(286, 64, ON_A_LIST)))  # an imported row fills what had expired
def test_replay_is_recovery(script):
    """The fold kept between calls, the fold of the journal and the fold of the cache are the same."""
    words, actions = script
    study = in_memory(**words).play(actions)
    again = lb.open_study("models", storage_of(study))
    same(study, again)
    projection = replay_of(study).projection
    cached = Projection.from_bytes(projection.to_bytes())
    assert cached == projection
    assert Replay(cached).policy == study.policy
    assert study.verify().problems == ()


@SLOWLY
@given(script=SCRIPTS)
def test_a_journal_means_the_same_in_every_storage(script, databases):
    words, actions = script
    study = in_memory(**words).play(actions)
    events = list(journal_of(study).events())
    for storage in databases:
        name = secrets.token_hex(8)
        row, _ = storage.create(name, "", events[0].payload)
        if events[1:]:
            storage.transact(row.id, lambda transaction: transaction.write(Entries(events[1:])))
        moved = lb.open_study(name, storage, read_only=True)  # its clock has gone on: a look would settle
        replay = replay_of(moved)
        mine, theirs = replay_of(study).projection, replay.projection
        theirs.at, theirs.created = mine.at, mine.created  # the first event keeps its own time
        assert replay.projection == replay_of(study).projection
        assert replay.policy == study.policy
        assert moved.answer == study.answer
        assert moved.trials().equals(study.trials())


@SLOWLY
@given(script=SCRIPTS)
def test_every_storage_lives_the_same_life(script, databases):
    """The same calls give the same events, but for nonces and times."""
    lives = []
    for storage in [MemoryStorage(), *databases]:
        study = create(storage, name=secrets.token_hex(8), max_arms=4, **script[0])
        Player(study, lambda: time.sleep(0.003)).play(script[1])
        lives.append([(e.kind, e.trial, e.arm, plain(e.payload), e.by) for e in study.events(since=1)])
        same(study, lb.open_study(study.name, storage))
    assert lives[0] == lives[1] == lives[2]


def plain(payload):
    """A payload without nonces and times, however deep."""
    if isinstance(payload, list):
        return [plain(each) for each in payload]
    if not isinstance(payload, dict):
        return payload
    varying = ("nonce", "until", "at", "first", "digest")
    return {key: plain(value) for key, value in payload.items() if key not in varying}


@pytest.fixture(scope="session")
def databases(tmp_path_factory, server):
    folder = tmp_path_factory.mktemp("sqlite")
    opened = [
        open_storage(f"sqlite:///{folder}/s.db?synchronous=OFF"),
        open_storage(server.database("replay")),
    ]
    yield opened
    for storage in opened:
        storage.close()


@GENTLE
@given(luck=st.randoms(use_true_random=False))
def test_the_order_of_telling_does_not_matter(luck):
    """Whatever comes when, the places decide: the same results in any order leave the same policy."""
    policies = []
    for shuffled in (False, True):
        study = create()
        trials = study.ask_many(45)
        if shuffled:
            luck.shuffle(trials)
        for trial in trials:
            study.tell(trial, measure(trial.arm, trial.item))
        policies.append(study.policy)
        assert study.status.waiting == 0
    assert policies[0] == policies[1]


def test_a_spec_reads_back_equal():
    study = create(max_arms=7, items=["a", 1, 2.5], budget=9, lease="90s", **{})
    spec = replay_of(study).projection.asked_spec
    assert type(spec).from_json(spec.as_json()) == spec
    assert question()["arms"] == list(study.arms)
