"""Which results wait behind which open trials, against the definition."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import lexbandits as lb
from lexbandits.study.core.trial_columns import TOLD
from support.command import said
from support.journals import replay_of
from support.lives import in_memory, script_of
from support.patience import until
from support.questions import create, easy, measure, tried, work


def waits_for(replay, number):
    """The open trials that a pass lacks, or may lack, whose place comes first: by pass, then by arm."""
    place, arm, policy = replay.projection.pass_of, replay.projection.arm, replay.policy
    lacking = [(number, arm) for arm, number in policy.lacking]
    ranks = {other: (place[other], arm[other]) for other in replay.projection.open}
    awaited = [other for other, rank in ranks.items() if rank[0] > policy.folded or rank in lacking]
    return [other for other in awaited if ranks[other] < (place[number], arm[number])]


@pytest.mark.parametrize(
    "seed", [*range(30), *(pytest.param(n, marks=pytest.mark.slow) for n in range(30, 60))]
)
def test_who_waits_for_whom(seed):
    study = in_memory().play([a for a in script_of(seed, 200) if a[0] not in ("end", "budget", "pause")])
    replay = replay_of(study)
    projection = replay.projection
    told = [
        n
        for n in range(len(projection))
        if projection.state[n] == TOLD and projection.pass_of[n] >= replay.policy.folded
    ]
    assert projection.told_from(replay.policy.folded) == told
    expected = {number: waits_for(replay, number) for number in told}
    assert replay.waiting(told) == [bool(others) for others in expected.values()]
    behind = sorted({other for others in expected.values() for other in others})
    assert replay.holding_back(told) == behind
    folded = [n for n in range(len(projection)) if projection.pass_of[n] < replay.policy.folded]
    assert not any(replay.waiting(folded))
    assert replay.holding_back(folded) == []
    if projection.open:
        assert study.status.waiting == sum(map(bool, expected.values()))
        assert [int(each.split("-")[0]) for each in study.status.waiting_for] == behind


def test_a_result_waits_for_its_own_pass_too():
    study = create()
    first, second, third = study.ask_many(3)
    assert first.item == second.item == third.item
    assert study.tell(second, measure(second.arm)) == "waiting"
    assert study.tell_many([(third, measure(third.arm)), (first, measure(first.arm))]) == ["counted"] * 2
    fourth, fifth = study.ask_many(2)
    assert study.tell_many([(fifth, measure(fifth.arm))]) == ["waiting"]
    assert study.status.waiting_for == (fourth.id,)


# --- asking does not run ahead of a dead worker


def test_once_what_waits_could_decide_nothing_more_is_handed_out(storage):
    needed, _ = work(easy(storage, name="alone"))
    study = easy(storage)
    lost = study.ask(lease="1h", worker="gpu-3")
    told, stop = work(study)
    assert isinstance(stop, lb.StudyWaiting)
    assert told <= 1.3 * needed + 8
    assert f"{told} results wait for the trial of gpu-3 (a)" in str(stop)
    assert stop.until == lost.until
    assert study.ask_many(3, wait=0) == []
    assert study.tell_ask([], 2, wait=0) == ([], [])
    assert study.assign("ann").number is None
    assert (study.status.state, study.answer.certified) == ("measuring", False)
    study.fail(lost, "it hung")
    with pytest.raises(lb.StudyFinished):
        study.ask()
    assert study.answer.certified
    assert study.answer.arm == "a"
    assert study.verify().ok


def test_what_is_under_way_does_not_wait():
    many = create(arms=["a", "b"], objectives=[lb.Objective("x", margin=0.002, noise="bernoulli")])
    assert len(many.ask_many(500)) == 500


def test_a_look_settles_what_has_run_out(clock, storage):
    """Nobody has to ask: the answer is there once the lease of a dead worker is over."""
    study = easy(storage)
    study.ask(lease="1h", worker="gpu-3")
    told, _ = work(study)
    clock.move(3601)
    assert study.status.state == "finished"
    assert study.answer.certified
    assert (study.status.expired, study.status.results) == (1, told)


def test_run_waits_for_a_dead_worker_and_then_ends(clock, tmp_path, monkeypatch):
    storage = f"sqlite:///{tmp_path}/s.db?synchronous=OFF"
    needed, _ = work(easy(storage, name="alone"))
    study = easy(storage)
    study.ask(lease="1h", worker="gpu-3")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(study.run, tried, workers=2)
        until(lambda: "gpu-3" in sys.stderr.getvalue(), run)
        clock.move(3601)
        assert run.result().certified
    (said,) = [line for line in sys.stderr.getvalue().splitlines() if "gpu-3" in line]
    assert said.startswith("easy: nothing to measure before "), "a log has no bar that could say it"
    assert study.status.expired == 1
    assert study.status.results <= 1.3 * needed + 12


def test_the_command_that_is_given_nothing_exits_with_6(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = easy("study.db")
    study.ask(lease="1h", worker="gpu-3")
    work(study)
    words = "study", "ask", "easy", "--storage", "study.db"
    assert said(*words, "--wait", "0", code=6)["error"] == "StudyWaiting"
    assert said(*words, "--wait", "10ms", code=6)["error"] == "StudyWaiting"
