"""Who asks while a result of somebody else must come first waits for it; only in vain is it told so."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import lexbandits as lb
from lexbandits.study.core.replay import MISSING_AFTER, MOST_AHEAD
from lexbandits.study.storage.contract import Commits
from lexbandits.study.storage.memory import MemoryStorage
from support.questions import easy, tried, work

LONG = "10m"  # nobody waits so long: it says that a test has failed


class Clock:
    """The time of a storage in memory: it moves when told to."""

    def __init__(self, now=1e9):
        self.now = now
        self.storage = MemoryStorage()
        self.storage.time = lambda: self.now


@pytest.fixture
def begun(monkeypatch):
    """Set when somebody begins to wait."""
    begins, wait = threading.Event(), Commits.wait

    def noted(self, known, seconds):
        begins.set()
        wait(self, known, seconds)

    monkeypatch.setattr(Commits, "wait", noted)
    return begins


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def here(request, tmp_path):
    """Addresses of the same empty storage for two who share nothing else, if it has one."""
    if request.param == "memory":
        return [MemoryStorage()] * 2
    if request.param == "sqlite":
        return [f"sqlite:///{tmp_path}/study.db?synchronous=OFF"] * 2
    return [request.getfixturevalue("postgres")] * 2


def held_back(storage, **changes):
    """A study in which nothing is handed out before a trial comes back: that trial."""
    study = easy(storage, **changes)
    lost = study.ask(lease="1h", worker="gpu-3")
    assert isinstance(work(study)[1], lb.StudyWaiting)
    return study, lost


def test_the_awaited_result_wakes_who_waits(here, begun):
    study, lost = held_back(here[0])
    other = lb.open_study("easy", here[1])
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(other.ask, wait=LONG)
        assert begun.wait(600)
        study.tell(lost, tried(lost.arm))
        with pytest.raises(lb.StudyFinished):
            asked.result(600)
    assert study.answer.certified


def test_a_place_that_is_given_back_goes_to_who_waits(here, begun):
    study, lost = held_back(here[0])
    other = lb.open_study("easy", here[1])
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(other.ask_many, 3, wait=LONG)
        assert begun.wait(600)
        study.release(lost)
        (trial,) = asked.result(600)
    assert (trial.arm, trial.item) == (lost.arm, lost.item)
    assert trial.id != lost.id


def test_threads_may_share_the_study_that_one_of_them_waits_for(begun):
    study, lost = held_back("memory")
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(study.tell_ask, [], 1, wait=LONG)
        assert begun.wait(600)
        assert study.status.waiting, "nothing is locked meanwhile"
        study.release(lost)
        assert asked.result(600)[1][0].item == lost.item


@pytest.mark.parametrize("change", ["pause", "end", "delete"])
def test_whatever_ends_the_waiting_is_reported(change, here, begun):
    study, _ = held_back(here[0])
    other = lb.open_study("easy", here[1])
    expected = {"pause": lb.StudyPaused, "end": lb.StudyFinished, "delete": lb.UnknownStudyError}[change]
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(other.ask, wait=LONG)
        assert begun.wait(600)
        if change == "delete":
            lb.delete_study("easy", here[0])
        else:
            getattr(study, change)("enough")
        with pytest.raises(expected):
            asked.result(600)


def test_a_lease_that_runs_out_ends_the_waiting():
    """By the storage's clock, which moves with every look at it."""
    clock = Clock()
    study, _ = held_back(clock.storage)

    def later():
        clock.now += 600
        return clock.now

    clock.storage.time = later
    with pytest.raises(lb.StudyFinished):
        study.ask(wait=LONG)
    assert study.status.expired == 1


def test_in_vain(storage):
    """On every storage: what did not come is named, with its time."""
    study, lost = held_back(storage)
    for wait in (0, "0s", "20ms", 0.02):
        with pytest.raises(lb.StudyWaiting, match=r"results wait for the trial of gpu-3 \(a\)") as nothing:
            study.ask(wait=wait)
        assert nothing.value.until == lost.until
        assert study.ask_many(2, wait=wait) == []
        assert study.tell_ask([], 2, wait=wait) == ([], [])
    assert study.status.open == 1, "nobody was given anything"
    with pytest.raises(lb.StudyError, match="wait must be"):
        study.ask(wait="soon")
    with pytest.raises(ValueError, match="wait must be"):
        study.ask(wait=-1)


def test_who_holds_the_awaited_trial_itself_does_not_idle_for_long(monkeypatch):
    """Nobody else will tell it: by a clock that only waiting moves, it is told so after two seconds."""
    study, _ = held_back(MemoryStorage())
    moved = SimpleNamespace(seconds=0.0, monotonic=lambda: moved.seconds)

    def wait(self, known, seconds):
        moved.seconds += seconds

    monkeypatch.setattr(Commits, "wait", wait)
    monkeypatch.setattr("lexbandits.study.core.journal.time", moved)
    with pytest.raises(lb.StudyWaiting):
        study.ask()
    assert moved.seconds == pytest.approx(2)
    with pytest.raises(lb.StudyWaiting):
        study.ask(wait="30s")
    assert moved.seconds == pytest.approx(32)


def test_results_are_told_before_it_waits(begun):
    """And told once."""
    clock = Clock()
    study, lost = held_back(clock.storage)
    study.release(lost)
    again, late = study.ask(worker="gpu-3"), study.ask_many(1, wait=0)
    assert late == []
    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(study.tell_ask, [(again, tried(again.arm))], 1, wait=LONG)
        outcomes, trials = told.result(600)
    assert outcomes == ["counted"]
    assert trials == []
    assert study.status.state == "finished"


# --- who is missing

SAME = {"arms": ["a", "b"], "objectives": [lb.Objective("x", margin=0.002, noise="bernoulli")], "seed": 0}


def told_until_held(study, most=1000):
    """How many results are told before nothing is handed out."""
    for told in range(most):
        try:
            trial = study.ask(wait=0)
        except lb.StudyWaiting:
            return told
        study.tell(trial, {"x": (told + 1) // 2 % 2})
    return most


def test_what_was_handed_out_a_moment_ago_is_not_missed():
    """Quick workers get far ahead of one whom the machine lets pause, and none of them is sent away."""
    clock = Clock()
    study = lb.create_study("quick", clock.storage, **{"seed": 0, **SAME})
    first = study.ask()
    clock.now += MISSING_AFTER * 0.99
    assert told_until_held(study) == 1000
    clock.now += MISSING_AFTER * 0.02
    assert told_until_held(study) == 0, "now it is"
    study.tell(first, {"x": 0})
    assert told_until_held(study, 10) == 10
    assert study.verify().ok


def test_who_is_missing_may_be_64_passes_behind():
    clock = Clock()
    study = lb.create_study("slow", clock.storage, **{"seed": 0, **SAME})
    study.ask()
    clock.now += MISSING_AFTER
    assert told_until_held(study) == 1 + 2 * MOST_AHEAD + 1


def test_a_clock_that_was_set_back_does_not_lift_the_limit():
    clock = Clock()
    study = lb.create_study("back", clock.storage, **{"seed": 0, **SAME})
    study.ask()
    clock.now -= 86_400
    assert told_until_held(study) == 1 + 2 * MOST_AHEAD + 1


def test_an_arm_of_a_list_waits_for_its_own_trials_alone():
    clock = Clock()
    study = lb.create_study(
        "list", clock.storage, **{"seed": 0, **SAME}, items=list(range(400)), scope="items"
    )
    lost = study.ask()
    clock.now += MISSING_AFTER
    young = study.ask()
    assert young.arm != lost.arm
    told = {"a": 0, "b": 0}
    for _ in range(300):
        try:
            trial = study.ask(wait=0)
        except lb.StudyWaiting:
            break
        told[trial.arm] += 1
        study.tell(trial, {"x": told[trial.arm] % 2})
    assert told[lost.arm] == MOST_AHEAD + 1, "ahead of the one that is missing"
    assert told[young.arm] > told[lost.arm], "which is not missed yet"


def test_eight_threads_of_quick_workers_never_see_it():
    """One of them pauses for a moment with a trial in its hands; the others do as much as they like."""
    study = lb.create_study("eight", Clock().storage, **{"seed": 0, **SAME})
    done, go_on = threading.Barrier(8), threading.Event()

    def measure(number):
        if number == 0:
            trial = study.ask()
            done.wait(600)
            go_on.wait(600)
            return study.tell(trial, {"x": 1})
        done.wait(600)
        for _ in range(60):
            trial = study.ask(wait=0)
            study.tell(trial, {"x": trial.item % 2})  # the arms are alike: what waits decides nothing
        return "done"

    with ThreadPoolExecutor(8) as threads:
        working = [threads.submit(measure, number) for number in range(8)]
        for each in working[1:]:
            assert each.result(600) == "done"
        go_on.set()
        assert working[0].result(600) == "counted"
    assert study.status.results == 1 + 7 * 60
