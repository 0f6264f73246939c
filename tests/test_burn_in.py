"""cap="auto": a burn-in says where values are cut, stays on record, and does not count."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import lexbandits as lb
from support import command
from support.journals import replay_of

SECONDS = lb.Objective("seconds", "minimize", unit="s", margin=0.5, cap="auto")
RUNS = {"seconds": {"a": [0.3, 0.41], "b": [0.79]}}


@pytest.mark.parametrize(
    ("values", "cap"), [([0.41, 0.79], 3.2), ([1000], 4000), ([0.0101], 0.041), ([2.5, None], 10)]
)
def test_the_cap_is_four_times_the_largest_in_two_digits_upwards(values, cap):
    fixed = replace(SECONDS, margin=0.01).capped_by({"a": values[:1], "b": values[1:]})
    assert fixed.cap == cap
    assert fixed.noise == ("bounded", 0.0, cap)
    assert fixed.checked(5e3) == 5e3  # what lies above is cut, not refused
    assert not fixed.awaits_cap


def test_a_burn_in_that_sets_no_cap_is_refused():
    for values in ([], [0.0], [None]):
        with pytest.raises(lb.StudyError, match="needs a burn-in with a value above 0"):
            SECONDS.capped_by({"a": values})


@pytest.mark.parametrize(
    ("words", "runs", "cap"),
    [
        ({"margin": 0.1}, {"a": [0.3, 0.41], "b": [8]}, 32),
        ({"margin": 0.5}, {"a": [0.01], "b": [0.02]}, 2),  # or all arms would tie
        ({"margin": "10%"}, {"a": [0, None], "b": [0.5]}, 2),
        ({"at_most": 2}, {"a": [0.3, 0.41], "b": [8]}, 32),
        ({"at_most": 2}, {"a": [0.3], "b": [0.41]}, 8),  # or every arm would meet the limit
    ],
)
def test_every_arm_the_margin_and_the_limit_raise_the_cap(words, runs, cap):
    assert lb.Objective("seconds", "minimize", cap="auto", **words).capped_by(runs).cap == cap


@pytest.mark.parametrize(
    ("direction", "words"),
    [("minimize", {"at_most": 2, "cap": 2}), ("maximize", {"at_least": 2, "floor": 2, "cap": 9})],
)
def test_a_cut_that_every_mean_meets_the_limit_by_is_refused(direction, words):
    with pytest.raises(lb.StudyError, match=r"any mean of values .* meets"):
        lb.Objective("seconds", direction, **words)


def made(burn_in, objective=SECONDS, **words):
    return lb.create_study("timed", arms=["a", "b"], objectives=[objective], seed=1, burn_in=burn_in, **words)


def test_a_study_keeps_its_burn_in_on_record_and_counts_none_of_it(tmp_path):
    study = made(RUNS, storage=tmp_path / "s.db")
    assert study.spec["burn_in"] == RUNS
    assert study.spec["objectives"][0]["cap"] == 3.2
    assert study.status.results == 0
    (created,) = study.events()
    assert created.payload["spec"]["burn_in"] == RUNS
    again = lb.open_study("timed", tmp_path / "s.db")
    assert again.spec == study.spec
    assert again.verify().ok
    assert made(RUNS, storage=tmp_path / "s.db", load_if_exists=True).spec == study.spec
    assert "up to 3.2 s" in study.report(tmp_path / "report.md").read_text()
    study.run(lambda arm: {"seconds": 0.1 if arm == "a" else 3.0})
    told = command.invoked("study", "status", "timed", "--storage", tmp_path / "s.db").stdout
    assert "seconds (the mean of values up to 3.2 s): worse by 2.90 s" in told


@pytest.mark.parametrize(
    ("burn_in", "objective", "said"),
    [
        (None, SECONDS, 'cap="auto" needs burn_in='),
        ({"seconds": {"a": [0.3]}}, SECONDS, "needs values of every arm, 'b' has none"),
        ({"speed": {}}, SECONDS, "burn_in has no 'speed'"),
        ({"seconds": {"c": [1.0]}}, SECONDS, "burn_in of 'seconds' has no 'c'"),
        (RUNS, SECONDS.capped_by({"a": [5]}), "its burn-in gives cap=3.2, got 20"),
        ({"seconds": {"a": ["x"], "b": [1]}}, SECONDS, "a value must be a number"),
    ],
)
def test_what_is_wrong_with_a_burn_in_is_reported(burn_in, objective, said):
    with pytest.raises(lb.StudyError, match=said):
        made(burn_in, objective)


def table(rng, n=60):
    values = np.concatenate([rng.lognormal(0, 0.5, n), rng.lognormal(1, 0.5, n)])
    return {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2, "seconds": values.tolist()}


@pytest.mark.parametrize("item", ["item", None])
def test_judge_leaves_out_a_handful_of_items_whatever_they_are_called(item):
    frame = table(np.random.default_rng(0))
    found = lb.judge(frame, [SECONDS], item=item)
    assert found.items == 55
    assert found.certified
    assert found.arm == "a"
    drawn = "10 rows of 5 drawn items" if item else "10 drawn rows"
    assert f"Burn-in: {drawn} set the cap and do not count." in str(found)
    largest = found.objectives[0].cap / 4
    assert min(frame["seconds"]) < largest < 1.3 * max(frame["seconds"])
    renamed = {**frame, "item": [f"other {1000 - name}" for name in frame["item"]]}
    back = {name: column[::-1] for name, column in renamed.items()}
    again = lb.judge(back, [SECONDS], item=item)
    assert again.objectives == found.objectives
    assert again.means["a"]["seconds"]["mean"] == pytest.approx(found.means["a"]["seconds"]["mean"])


def test_a_burn_in_that_would_take_all_values_is_refused():
    seconds = [*[None] * 34, *range(1, 7)]
    frame = {"arm": ["a", "b"] * 20, "item": [k // 2 for k in range(40)], "seconds": seconds}
    with pytest.raises(lb.StudyError, match="leaves too few: measure more"):
        lb.judge(frame, [SECONDS], missing="drop")


def test_an_item_without_values_sets_no_cap():
    """As runs of hyperfine have, of which one command failed each time."""
    left = set()
    for slow in range(2, 12):  # other items are drawn
        seconds = [None, None, *[1, slow] * 3]
        frame = {"arm": ["a", "b"] * 4, "item": [1, 1, 2, 2, 3, 3, 4, 4], "seconds": seconds}
        found = lb.judge(frame, [SECONDS], missing="drop")
        assert found.objectives[0].cap == 4 * slow
        left.add(found.items)
    assert left == {2, 3}  # the item without values left out as well, if it was drawn first


def test_judge_takes_whole_clusters():
    frame = table(np.random.default_rng(1))
    frame["user"] = [item // 4 for item in frame["item"]]
    found = lb.judge(frame, [SECONDS], cluster="user", max_cluster=4)
    assert (found.items, found.clusters) == (48, 12)  # a quarter of 15


@pytest.mark.parametrize("how", [{"scope": "items"}, {"sequential": True}])
def test_judge_refuses_where_nothing_may_be_left_out(how):
    with pytest.raises(lb.StudyError, match="leaves items out"):
        lb.judge(table(np.random.default_rng(0)), [SECONDS], **how)


def test_a_table_that_is_too_small_for_it():
    with pytest.raises(lb.StudyError, match="leaves too few"):
        lb.judge(table(np.random.default_rng(0), 2), [SECONDS])


@pytest.mark.parametrize(("n", "left"), [(3, 2), (8, 6), (19, 15), (20, 15), (60, 55)])
def test_a_burn_in_takes_a_quarter_of_few_items(n, left):
    assert lb.judge(table(np.random.default_rng(0), n), [SECONDS]).items == left


def timed_by(tool, path, n, slower=8):
    """A file as the tool writes it: two programs, one so many times slower, n runs each."""
    rng = np.random.default_rng(7)
    times = {
        name: (0.02 * by * rng.lognormal(0, 0.1, n)).tolist() for name, by in {"a": 1, "b": slower}.items()
    }
    if tool == "hyperfine":
        results = [{"command": name, "times": t, "exit_codes": [0] * n} for name, t in times.items()]
        path.write_text(json.dumps({"results": results}))
        return path
    known = {"params": None, "group": None}
    tests = [{**known, "name": name, "stats": {"data": found}} for name, found in times.items()]
    path.write_text(json.dumps({"benchmarks": tests, "machine_info": {}, "commit_info": {"id": "1"}}))
    return path


@pytest.mark.parametrize("tool", ["hyperfine", "pytest_benchmark"])
def test_times_of_benchmarks_have_a_burn_in_unless_a_kind_is_said(tool, tmp_path):
    file = timed_by(tool, tmp_path / "times.json", 30)
    done = command.invoked("judge", file, "seconds min 0.02 s")
    assert done.exit_code == 0
    assert done.stdout.startswith("a wins: certified")
    assert "the mean of values up to" in done.stdout
    assert "Burn-in: 10 drawn rows set the cap and do not count." in done.stdout
    for said in ("gaussian", "symmetric", "bounded 0 2", "cap=2"):
        assert "Burn-in" not in command.invoked("judge", file, f"seconds min 0.02 s {said}").stdout
    for how in (["--scope", "items"], ["--sequential"]):  # where nothing may be left out
        assert "Burn-in" not in command.invoked("judge", file, "seconds min 0.02 s", *how).stdout
    columns = {**lb.read.table(file)}  # a plain table does not know that these are times
    assert lb.judge(columns, [lb.Objective("seconds", "minimize", margin=0.02)], item=None).items == 30


TIMED = """
[study]
name = "naps"
storage = "{storage}"
budget = {budget}

[[objectives]]
name = "seconds"
direction = "minimize"
margin = 5
unit = "s"

[[arms]]
name = "0"

[[arms]]
name = "0.01"
"""


def test_run_takes_a_burn_in_of_what_it_measures_once(tmp_path):
    file, where = tmp_path / "study.toml", tmp_path / "naps.db"
    file.write_text(TIMED.format(storage=where, budget=2))
    line = "import sys, time; open('ran', 'a').write('.'); time.sleep(float(sys.argv[1]))"
    line = line.replace("ran", str(tmp_path / "ran"))
    words = [
        "run",
        str(file),
        "--measure",
        "seconds",
        "--",
        sys.executable,
        "-c",
        line.replace("{", "{{"),
        "{arm}",
    ]
    first = command.invoked(*words)
    assert "burn-in: 3 runs of each arm set the cap of seconds" in first.stderr
    assert len((tmp_path / "ran").read_text()) == 6 + 2
    study = lb.open_study("naps", where)
    burnt = study.spec["burn_in"]["seconds"]
    assert {arm: len(values) for arm, values in burnt.items()} == {"0": 3, "0.01": 3}
    assert study.status.results == 2
    again = command.invoked(*words)
    assert "burn-in" not in again.stderr
    assert len((tmp_path / "ran").read_text()) == 6 + 2
    assert lb.open_study("naps", where).spec == study.spec


def test_run_runs_nothing_for_a_question_that_is_refused(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(TIMED.format(storage=tmp_path / "naps.db", budget=0))
    done = command.invoked("run", str(file), "--measure", "seconds", "--", "touch", str(tmp_path / "{arm}"))
    assert done.exit_code == 2
    assert "budget" in done.stderr
    assert not (tmp_path / "0").exists()


def test_run_says_why_an_arm_has_no_burn_in_and_reads_durations_first(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(TIMED.format(storage=tmp_path / "naps.db", budget=2))
    fails = "import sys; sys.exit('no disk' if '{arm}' == '0.01' else 0)"
    words = ["run", str(file), "--measure", "seconds"]
    done = command.invoked(*words, "--", sys.executable, "-c", fails)
    assert done.exit_code == 2
    assert "every run of '0.01' in the burn-in failed, the last: exit code 1: no disk" in done.stderr
    done = command.invoked(*words, "--time-limit", "40", "--", "touch", str(tmp_path / "{arm}"))
    assert done.exit_code == 2
    assert "--time-limit must be a duration such as" in done.stderr
    assert not (tmp_path / "0").exists()


def test_two_runs_that_begin_together_share_one_burn_in(tmp_path):
    """Each has begun its own when the other has: one of the two is on record, and both go on by it."""
    file, where = tmp_path / "study.toml", tmp_path / "naps.db"
    file.write_text(TIMED.format(storage=where, budget=4))
    together = "echo >> ran; until [ $(wc -l < ran) -ge 2 ]; do sleep 0.01; done"
    words = [
        "-m",
        "lexbandits",
        "run",
        str(file),
        "--measure",
        "seconds",
        "--",
        "sh",
        "-c",
        f"{together} # {{arm}}",
    ]
    both = [
        subprocess.Popen([sys.executable, *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [run.communicate()[1] for run in both]
    assert [run.returncode for run in both] == [1, 1], told  # the budget is too small
    assert all("burn-in: 3 runs" in said for said in told)
    assert (tmp_path / "ran").read_text().count("\n") == 6 + 6 + 4
    assert lb.open_study("naps", where).status.results == 4


def test_a_burn_in_with_zeros_lets_nobody_expect_steady_values():
    """Of most visitors revenue is 0: bets that expect times would lose nearly all at the first purchase."""
    asked = lb.Objective("revenue", margin=1, cap="auto")
    for values, steady in (([3.0, 4.0], True), ([0.0, 4.0], False)):
        study = lb.create_study(
            "s", arms=["a", "b"], objectives=[asked], seed=0, burn_in={"revenue": {"a": values, "b": [2.0]}}
        )
        assert (replay_of(study).projection.settings["noise"][0][-1] == "steady") == steady
    plain = lb.create_study(
        "s", arms=["a", "b"], objectives=[lb.Objective("revenue", margin=1, cap=9)], seed=0
    )
    assert replay_of(plain).projection.settings["noise"] == [["bounded", 0.0, 9.0]]
