"""A study about a list of items: it always ends, late results count, holes count at their worst."""

import io
import json
import time

import numpy as np
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.replay import Replay
from lexbandits.study.items import items_of_file
from support.journals import journal_of, replay_of, storage_of
from support.lives import in_memory
from support.questions import create, kinds
from support.questions import measure as measure_all

ITEMS = [f"q{i}" for i in range(60)]
ALIKE = {
    "arms": ["small", "large"],
    "objectives": [lb.Objective("correct", margin=0.2, noise="bernoulli")],
}


def measure(arm, item, names=("correct", "latency")):
    return {name: value for name, value in measure_all(arm, item).items() if name in names}


def go_on(study, results=10**6):
    """Ask and tell what the study asks about."""
    names = [objective.name for objective in study.objectives]
    for count in range(results):
        try:
            trial = study.ask()
        except lb.StudyFinished:
            return count
        study.tell(trial, measure(trial.arm, trial.item, names))
    return results


def truth(arms=("small", "large", "cot"), items=ITEMS):
    """What measuring everything once would say: mean by arm and objective."""
    rows = {arm: pd.DataFrame([measure(arm, item) for item in items]).mean() for arm in arms}
    return pd.DataFrame(rows).T


# --- what it is about


def test_it_ends_certified_about_these_items(storage):
    study = create(storage, items=ITEMS)
    assert study.status.at_most == 180
    results = go_on(study)
    answer, status = study.answer, study.status
    assert (answer.arm, answer.certified, answer.scope) == ("large", True, "items")
    assert (answer.items, answer.results, answer.full) == (60, results, 180)
    assert results < 180
    assert (status.state, status.at_most) == ("finished", 0)
    assert f"on these 60 items after {results} of 180 results" in answer.reason
    assert study.verify().ok
    again = lb.open_study(study.name, storage)
    assert again.answer == answer
    assert again.policy == study.policy
    means = truth()
    assert means.correct["large"] >= means.correct.max() - 0.2


def test_no_chance_is_involved_when_all_is_measured():
    objective = lb.Objective("correct", margin=0, noise="bernoulli")
    study = create(arms=["small", "large"], objectives=[objective], items=ITEMS[:9])
    go_on(study)
    means = truth(["small", "large"], ITEMS[:9]).correct
    assert study.answer.arm == means.idxmax()
    assert study.answer.exact
    assert study.answer.reason.endswith("no sampling error is involved")
    assert "no sampling error is involved" in study.explain().sentence


def test_words_that_are_refused():
    cases = [
        ({"scope": "items"}, "needs items"),
        ({"items": [1], "scope": "all"}, 'scope must be "items"'),
        ({"items": [1], "scope": "population", "repeats": 2}, "repeats goes with"),
        ({"repeats": 2}, "repeats goes with"),
        ({"items": [{"prompt": "x"}]}, "needs an id"),
        ({"items": [{"id": 1}, 1]}, "twice"),
        ({"items": [1, "1"], "repeats": 2}, "twice"),
        ({"items": [{"id": 1, "x": object()}]}, "JSON"),
        ({"items": [1], "objectives": [lb.Objective("x", margin=2, noise=("sub_gaussian", 1))]}, "list"),
        ({"objectives": [lb.Objective("x", margin=0, noise="gaussian")]}, "must be positive"),
    ]
    for words, sentence in cases:
        with pytest.raises(lb.StudyError, match=sentence):
            create(**words)


def test_who_says_nothing_gets_the_study_that_is_there():
    study = create(items=ITEMS, scope="population", seed=3)
    same = lb.create_study("models", storage_of(study), load_if_exists=True, arms=list(study.arms),
                           objectives=study.objectives, items=ITEMS, seed=None)  # fmt: skip
    assert same.spec["scope"] == "population"


# --- the order


def test_the_order_is_drawn_anew_recorded_and_not_shown(tmp_path):
    first, second = (create(tmp_path / f"{name}.db", items=ITEMS, seed=None) for name in "ab")
    orders = [[t.item for t in s.ask_many(500) if t.arm == "small"] for s in (first, second)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(ITEMS)
    seed = next(iter(journal_of(first).events())).payload["spec"]["seed"]
    assert next(iter(first.events())).payload["spec"]["seed"] is None
    given = create(items=ITEMS, seed=seed)
    assert [t.item for t in given.ask_many(500) if t.arm == "small"] == orders[0], "recorded and replayed"
    assert str(seed) not in json.dumps(first.spec)
    first.report(tmp_path / "r.html")
    first.report(tmp_path / "r.md")
    first.export(tmp_path / "e.jsonl")
    for path in ("r.html", "r.md", "e.jsonl"):
        assert str(seed) not in (tmp_path / path).read_text(), path
    first.end("enough")
    assert first.spec["seed"] == seed
    first.report(tmp_path / "r.md")
    assert str(seed) in (tmp_path / "r.md").read_text(), "after the end it can be checked"


def test_imported_items_do_not_show_where_the_order_has_them():
    study = create(items=ITEMS)
    frame = pd.DataFrame([{"arm": "small", "item": item, **measure("small", item)} for item in ITEMS])
    study.import_results(frame)
    (event,) = [e for e in study.events() if e.kind == "imported"]
    assert event.payload["items"] == ITEMS
    assert "passes" not in event.payload
    assert list(study.trials().item) == ITEMS


def test_a_hundred_thousand_items_do_not_slow_an_ask():
    few, many = (create(items=range(n), objectives=ALIKE["objectives"]) for n in (100, 100_000))
    for study in (few, many):
        go_on(study, 5)

    def seconds(study):
        start = time.process_time()
        go_on(study, 40)
        return time.process_time() - start

    assert min(seconds(many) for _ in range(3)) < 5 * min(seconds(few) for _ in range(3)) + 0.05


# --- items


def test_items_with_keys_reach_measure_and_repeats_are_told_apart():
    seen = []

    def asked(arm, item, repeat):
        seen.append((arm, item["id"], item["prompt"], repeat))
        return {"correct": int(arm == "large")}

    items = [{"id": i, "prompt": f"what is {i}?"} for i in range(5)]
    study = create(**ALIKE, items=items, repeats=3)
    assert study.status.at_most == 30
    trial = study.ask()
    assert trial.repeat in (1, 2, 3)
    assert len(trial) == 5, "as before"
    assert trial.as_json()["repeat"] == trial.repeat
    study.release(trial)
    study.run(asked, progress=False)
    assert study.answer.arm == "large"
    assert len(set(seen)) == len(seen)
    assert all(prompt == f"what is {item}?" for _, item, prompt, _ in seen)
    assert set(study.trials().item) <= {f"{i}#{r}" for i in range(5) for r in (1, 2, 3)}


def test_items_from_files(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "a", "prompt": "x"}\n\n{"id": "b", "prompt": "y"}\n')
    (tmp_path / "n.csv").write_text("path,size\nx.png,3\ny.png,4\n")
    (tmp_path / "t.txt").write_text("one\n\ntwo words\n")
    (tmp_path / "d").mkdir()
    for name in ("d/2.png", "d/1.png"):
        (tmp_path / name).write_text("x")
    read = {name: items_of_file(name, tmp_path)["items"] for name in ("q.jsonl", "n.csv", "t.txt", "d/*.png")}
    assert read["q.jsonl"] == [{"id": "a", "prompt": "x"}, {"id": "b", "prompt": "y"}]
    assert read["n.csv"] == [{"id": 1, "path": "x.png", "size": "3"}, {"id": 2, "path": "y.png", "size": "4"}]
    assert read["t.txt"] == ["one", "two words"]
    assert read["d/*.png"] == [str(tmp_path / "d/1.png"), str(tmp_path / "d/2.png")]
    for name, sentence in (
        ("none.txt", "cannot be read"),
        ("q.xml", "are read from"),
        ("d/*.jpg", "no items"),
    ):
        with pytest.raises(lb.StudyError, match=sentence):
            items_of_file(name, tmp_path)
    toml = tmp_path / "study.toml"
    toml.write_text('[study]\nname = "x"\nitems = "q.jsonl"\narms = ["a", "b"]\n'
                    '[[objectives]]\nname = "c"\nmargin = 0.2\nnoise = "bernoulli"\n')  # fmt: skip
    study = lb.study_from_toml(toml, tmp_path / "s.db")
    assert study.spec["source"]["file"] == "q.jsonl"
    assert len(study.spec["source"]["sha256"]) == 64
    assert lb.study_from_toml(toml, tmp_path / "s.db").name == "x", "the same file opens it again"
    (tmp_path / "q.jsonl").write_text('{"id": "a", "prompt": "z"}\n{"id": "b", "prompt": "y"}\n')
    with pytest.raises(lb.SpecMismatchError, match="items"):
        lb.study_from_toml(toml, tmp_path / "s.db")


# --- what is lost, late, repeated, corrected


def test_a_late_result_fills_its_hole():
    player = in_memory(items=ITEMS, seed=1)
    study = player.study
    late = study.ask_many(3, lease=0.5)
    player.tick()
    go_on(study, 30)
    assert study.status.expired == 3
    assert study.tell(late[0], measure(late[0].arm, late[0].item)) == "counted"
    assert study.tell(late[0], measure(late[0].arm, late[0].item)) == "repeated"
    status = study.status
    assert (status.expired, status.late, status.results) == (2, 0, 31)
    projection = replay_of(study).projection
    assert Replay(Projection.from_bytes(projection.to_bytes())).policy == study.policy
    go_on(study)
    assert study.answer.certified
    assert study.tell(late[1], measure(late[1].arm, late[1].item)) == "after the end"
    assert study.answer.results == study.status.results - 1, "the answer stays what it was"
    assert study.verify().ok


def test_a_late_gaussian_value_is_recorded_only():
    latency = lb.Objective("latency", "minimize", margin=4, noise="gaussian")
    player = in_memory(
        items=ITEMS, seed=1, objectives=[lb.Objective("correct", margin=0.2, noise="bernoulli"), latency]
    )
    study = player.study
    (trial,) = study.ask_many(1, lease=0.5)
    player.tick()
    go_on(study, 6)
    assert study.tell(trial, measure(trial.arm, trial.item)) == "counted", "its other value is bounded"
    counts = study.policy.counts[list(study.arms).index(trial.arm)]
    assert counts[0] == counts[1] + 1
    trial = study.ask()
    study.tell(trial, {**measure(trial.arm, trial.item), "latency": None})
    before = study.policy.counts
    study.correct(trial, measure(trial.arm, trial.item), "it came after all")
    assert (study.policy.counts == before).all(), "nor does a correction choose which of them count"
    assert study.verify().ok
    alone = in_memory(items=ITEMS, seed=1, objectives=[latency])
    (trial,) = alone.study.ask_many(1, lease=0.5)
    alone.tick()
    go_on(alone.study, 6)
    assert alone.study.tell(trial, {"latency": 3.0}) == "late"


def test_holes_decide_and_a_retry_goes_on():
    study = create(**ALIKE, items=ITEMS[:8], max_failures=100)

    def lossy(arm, item):
        if arm == "large":
            raise ValueError("refused")
        return {"correct": 1}

    study.run(lossy, progress=False)
    answer, status = study.answer, study.status
    assert (status.state, status.at_most, answer.certified) == ("items_spent", 0, False)
    assert answer.flags == ("undetermined_missing",)
    assert answer.details["undetermined_missing"]["missing"] == 8
    assert "8 results are missing, and could change the answer" in answer.reason
    assert "lexbandits study retry models" in study.explain().sentence
    assert study.retry() == 8
    trial = study.ask()
    study.release(trial)
    assert len(study.ask_many(20)) == study.status.open == 8
    assert study.retry() == 0
    for number in range(17, 17 + 8):
        row = study.trials().iloc[number]
        study.tell(row.id, {"correct": 0})
    assert study.answer.certified
    assert study.answer.arm == "small"
    assert "assumption_warning" in study.answer.flags
    assert kinds(study).count("retried") == 1
    assert study.verify().ok


def test_of_two_values_of_a_place_the_first_counts():
    player = in_memory(**ALIKE, items=ITEMS[:20], seed=2)
    study = player.study
    (late,) = study.ask_many(1, lease=0.5)
    player.tick()
    study.ask_many(1)
    study.retry()
    (again,) = [t for t in study.ask_many(5) if (t.arm, t.item) == (late.arm, late.item)]
    assert study.tell(late, {"correct": 1}) == "counted"
    assert study.tell(again, {"correct": 0}) == "late"
    arm = list(study.arms).index(late.arm)
    assert study.policy.means[arm, 0] == 1.0
    assert study.verify().ok
    with pytest.raises(lb.StudyError, match="only places of a list"):
        create().retry()


def test_corrections_count_whenever_they_come():
    study = create(items=ITEMS, seed=4)
    first = study.ask()
    study.tell(first, {"correct": 0, "latency": 9.0})
    go_on(study, 20)
    assert study.correct(first, {"correct": 1, "latency": 9.0}, "typo") == "corrected"
    twin = create(items=ITEMS, seed=4)
    twin.tell(twin.ask(), {"correct": 1, "latency": 9.0})
    go_on(twin, 20)
    assert study.policy.means.tolist() == twin.policy.means.tolist()
    go_on(study)
    assert study.correct(first, {"correct": 0, "latency": 9.0}, "again") == "noted"
    assert study.verify().ok


# --- imports and changes


def test_imports_fill_places_at_any_time():
    study = create(items=ITEMS)
    go_on(study, 9)
    frame = pd.DataFrame([{"arm": "cot", "item": item, **measure("cot", item)} for item in ITEMS])
    taken = set(study.trials().loc[study.trials().arm == "cot", "item"])
    with pytest.raises(lb.ConflictError, match="has a result"):
        study.import_results(frame)
    assert study.import_results(frame[~frame.item.isin(taken)]) == 60 - len(taken)
    with pytest.raises(lb.StudyError, match="no item 'x'"):
        study.import_results(frame.head(1).assign(item="x"))
    go_on(study)
    assert study.answer.certified
    assert (study.trials().arm[study.trials().state == "told"] == "cot").sum() == len(taken), (
        "not asked again"
    )
    assert study.verify().ok


def test_rules_and_arms_change_and_everything_counts(storage):
    study = create(storage, items=ITEMS, max_arms=5)
    go_on(study, 40)
    study.amend("correct", margin=0.1)
    study.reorder(["latency", "correct"])
    study.withdraw("small", "too old")
    study.restore("small")
    assert study.status.late == 0
    assert study.status.results == 40
    study.add_arm("tuned")
    study.add_arm("blind", blind=True)
    policy = study.policy
    highest = replay_of(study).projection.highest
    assert policy.population.since.tolist() == [0, 0, 0, highest + 1, 0]
    go_on(study)
    assert study.answer.certified
    assert study.answer.full == 300
    assert study.verify().ok
    with pytest.raises(lb.StudyError, match="blind is for lists"):
        create(max_arms=4).add_arm("new", blind=True)


def test_nobody_runs_ahead_of_a_dead_worker(clock):
    study = create(**ALIKE, items=range(2000))
    dead = study.ask(lease=3600)
    clock.move(60)  # it is not only slow
    trials = study.ask_many(1, wait=0)
    asked = 0
    while trials and asked < 1500:
        asked += 1
        for trial in trials:
            study.tell(trial, {"correct": asked % 2})
        trials = study.ask_many(1, wait=0)
    of_dead = (study.trials().arm == dead.arm).sum()
    assert of_dead < 100, "its results wait, all of them"
    assert study.status.waiting_for == (dead.id,)


# --- what each arm gave on each item


def test_the_table_of_items():
    from lexbandits.views.study_view import StudyView

    study = create(items=ITEMS)
    go_on(study)
    table = StudyView.of(study).by_item
    measured = set(study.trials().item)
    assert table.items == [item for item in ITEMS if item in measured], "in the order given"
    rows = pd.read_csv(io.StringIO(table.csv()))
    for _, row in rows.iterrows():
        for arm in study.arms:
            value = row[f"{arm}: correct"]
            assert pd.isna(value) or value == measure(arm, row["item"])["correct"]
    assert len(pd.read_csv(io.StringIO(table.csv(differ=True)))) == table.differ.sum()
    assert "only where they differ" in table.table()


# --- a value must not depend on when it is asked


def loaded(seed, slower):
    """Latencies of four arms on a machine whose load comes and goes."""
    rng, items, told = np.random.default_rng(seed), 400, 0
    arms = [f"a{k}" for k in range(4)]
    right = {arm: rng.random(items) < rate for arm, rate in zip(arms, rng.uniform(0.7, 0.9, 4), strict=True)}
    base, factors = rng.gamma(4, 0.05, items), rng.uniform(0.8, 1.6, 4)
    seconds = {arm: base * f * rng.lognormal(0, 0.2, items) for arm, f in zip(arms, factors, strict=True)}
    study = lb.create_study("load", arms=arms, items=range(items), seed=seed, objectives=[
        lb.Objective("correct", margin=0.06, noise="bernoulli"),
        lb.Objective("latency", "minimize", margin=0.04, noise=("bounded", 0, 4))])  # fmt: skip
    while trials := study.ask_many(4):
        for trial in trials:
            load, told = 1 + slower * (np.sin(told / 150) > 0), told + 1
            latency = min(4.0, seconds[trial.arm][trial.item] * load)
            study.tell(trial, {"correct": int(right[trial.arm][trial.item]), "latency": latency})
    return study


def test_values_that_changed_while_an_arm_caught_up_are_noticed():
    honest, drifting = loaded(15, 0.0), loaded(15, 1.0)
    assert "assumption_warning" not in honest.answer.flags
    (diagnostic,) = drifting.answer.details["assumption_warning"]["diagnostics"]
    assert (diagnostic["code"], diagnostic["objective"]) == ("drift", "latency")
    assert diagnostic["later"] >= 20
    assert 'scope="population"' in drifting.answer.reason


def test_corrections_that_favour_an_arm_flag_the_answer():
    """Misread values that are corrected only where that helps: the record shows it."""
    study = lb.create_study(
        "corrected", arms=["a", "b"], objectives=[lb.Objective("x", margin=0.002, noise="bernoulli")],
        items=list(range(60)), seed=1,
    )  # fmt: skip
    trials = study.ask_many(40)
    for trial in trials:
        study.tell(trial, {"x": (trial.item + (trial.arm == "b")) % 2})
    assert all(said.code != "corrected" for said in study.explain().diagnostics)
    for trial in trials:
        if trial.arm == "b" and trial.item % 2 == 1:
            study.correct(trial, {"x": 1}, "misread")  # until that is enough
    (said,) = [said for said in study.explain().diagnostics if said.code == "corrected"]
    assert said.severity == "warning"
    assert "results were told again (" in said.observed
