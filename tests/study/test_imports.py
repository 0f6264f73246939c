"""Results from elsewhere: in which order they are paired, what failed ones count as, what is refused."""

import time

import numpy as np
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.study.core.diagnostics import diagnostics_of
from lexbandits.study.core.projection import Projection
from lexbandits.study.storage.memory import MemoryStorage
from support.command import run
from support.journals import replay_of
from support.questions import create, kinds, measure

SCORE = lb.Objective("score", margin=1, noise=("bounded", 0, 10))
SAFE = lb.Objective("score", margin=1, noise=("bounded", 0, 10), if_failed=0, if_expired=2)


def paired(study):
    """Which rows share a pass: {pass: {arm: value}}."""
    frame = study.trials()
    return {item: dict(zip(rows.arm, rows.score, strict=True)) for item, rows in frame.groupby("item")}


def table(rows=40, **columns):
    arms = np.repeat(["a", "b"], rows)
    return pd.DataFrame({"arm": arms, "score": np.tile(np.linspace(1, 9, rows), 2), **columns})


def scores(name="scores", storage="memory", objective=SCORE, **words):
    return lb.create_study(name, storage, arms=["a", "b"], objectives=[objective], **{"seed": 0, **words})


def test_rows_without_items_are_not_paired_in_the_order_of_the_file():
    """Sorted by value the differences would all be 0: no noise at all."""
    study = scores()
    assert study.import_results(table(), fair=True) == 80
    pairs = paired(study).values()
    assert sorted(pair["a"] for pair in pairs) == sorted(pair["b"] for pair in pairs)
    together = np.corrcoef([pair["a"] for pair in pairs], [pair["b"] for pair in pairs])[0, 1]
    order = np.corrcoef(np.arange(40), [pair["a"] for pair in pairs])[0, 1]
    assert max(abs(together), abs(order)) < 0.8, "1 in order; by chance 5 standard errors"


def test_the_order_follows_from_the_seed_and_what_the_rows_hold():
    def order(seed, frame):
        """Which ranks share a pass."""
        study = scores(seed=seed)
        study.import_results(frame, fair=True)
        ranks = {score: rank for rank, score in enumerate(sorted(set(frame.score)))}
        return sorted(
            (ranks[pair["a"]], ranks[pair["b"]]) for pair in paired(study).values() if len(pair) > 1
        )

    assert (
        order(1, table()) == order(1, table()[::-1]) == order(1, table().sample(frac=1)) != order(2, table())
    )
    assert order(1, table()) != order(1, table(41))
    other = table().assign(score=np.tile(np.linspace(1, 8, 40), 2))
    assert order(1, table()) != order(1, other), "one draw for all tables would pair the same ranks in each"
    changed = table()
    changed.loc[79, "score"] = 8.99
    assert order(1, table())[:5] != order(1, changed)[:5], "a value of one arm moves the other's, too"


def test_each_import_draws_anew():
    study = scores(seed=1)
    for _ in range(2):
        study.import_results(table(), fair=True, again=True)
    both = paired(study)
    assert [both[k] for k in range(40)] != [both[k + 40] for k in range(40)], "each import draws anew"
    assert study.verify().ok


@pytest.mark.parametrize(
    "items", [range(40, 80), range(1, 41), [0.5, *range(100, 139)], [f"f{i}" for i in range(40)]]
)
def test_nothing_is_measured_on_an_imported_item_again(items, tmp_path):
    """An item is good as a seed: the same one gives the same value, which must not count twice."""
    study = scores(storage=tmp_path / "study.db", delta=0.01)
    study.import_results(table(item=[*items, *items]), fair=True)
    trials = study.ask_many(80)
    assert not {trial.item for trial in trials} & set(items)
    assert [trial.item for trial in trials[::2]] == list(range(trials[0].item, trials[0].item + 40))
    projection = replay_of(study).projection
    cached = type(projection).from_bytes(projection.to_bytes())
    assert [cached.item(place) for place in range(80)] == [projection.item(place) for place in range(80)]
    again = lb.open_study("scores", tmp_path / "study.db")
    assert again.trials().equals(study.trials())


# --- trials of another study


def troubled(objective=SAFE, storage="memory"):
    """A study in every state: told, failed, expired, late, released, open."""
    study = scores("before", storage, objective)
    for trial in study.ask_many(4):
        study.tell(trial, {"score": 5 + (trial.arm == "b")})
    failed, released = study.ask_many(2)
    study.fail(failed, "out of memory")
    study.release(released)
    _, late = study.ask_many(2, lease="1ms")
    time.sleep(0.01)
    assert study.tell(late, {"score": 9}) == "late"
    study.ask()
    return study


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_trials_count_as_what_they_counted_as(kind, tmp_path):
    study = troubled()
    states = set(study.trials().state)
    assert states >= {"told", "failed", "expired", "late", "released", "open"}, states
    given = study.trials() if kind == "frame" else study.export(tmp_path / f"trials.{kind}")
    other = scores("after", tmp_path / "s.db" if kind == "csv" else "memory", SAFE)
    if kind == "csv":
        words = ("study", "import", "after", str(given), "--fair", "--storage", str(tmp_path / "s.db"))
        assert "results" in run(*words).stdout
    else:
        other.import_results(given, fair=True)
    worth = {"told": lambda row: row.score, "failed": lambda row: 0, "expired": lambda row: 2}
    worth["late"] = worth["expired"]
    rows = study.trials().query("state in @worth")
    taken = other.trials().dropna(subset="score").set_index(["arm", "item"]).score
    assert len(taken) == len(rows)
    for row in rows.itertuples():
        assert taken[row.arm, row.item] == worth[row.state](row)


def test_failures_without_a_value_are_missing():
    study = troubled(SCORE)
    frame = study.trials()
    other = scores("after")
    assert other.import_results(frame, fair=True) == (frame.state == "told").sum()
    late = frame.query("state == 'late'").iloc[0]
    taken = other.trials().set_index(["arm", "item"]).score
    assert pd.isna(taken.get((late.arm, late["item"])))


def test_what_was_told_of_an_open_trial_counts():
    """Else who leaves open what is not welcome is rid of it."""
    study = create(arms=["a", "b"])
    one, other = study.ask_many(2)
    study.tell(one, {"latency": 3.0}, partial=True)
    again = create(name="again", arms=["a", "b"])
    assert again.import_results(study.trials(), fair=True) == 1
    frame = again.trials().set_index("arm")
    assert frame.latency[one.arm] == 3.0
    assert pd.isna(frame.correct[one.arm])
    assert pd.isna(frame.latency[other.arm])


def test_rows_without_a_value_are_lost_results():
    """More of one arm than of another: these are not lost by chance, wherever it happened."""
    study, equal = scores(), scores("equal")
    frame = table(60)
    lost = (frame.arm == "a") & (frame.index % 5 == 0)  # a tenth of all, which alone would say nothing
    study.import_results(frame.assign(score=frame.score.where(~lost)), fair=True)
    equal.import_results(frame.assign(score=frame.score.where(frame.index % 40 > 0)), fair=True)
    for which, level in ((study, "warning"), (equal, "notice")):
        diagnostic = next(s for s in diagnostics_of(replay_of(which)) if s.code == "losses")
        assert diagnostic.severity == level
        assert sum(diagnostic.fields["imported"].values()) == diagnostic.fields["lost"]
        assert diagnostic.fields["of"] == 120, "rows of arms that lost none count too"
        assert "imported without a value" in str(which.explain())
        projection = replay_of(which).projection
        assert Projection.from_bytes(projection.to_bytes()).lost_before == projection.lost_before


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA, ""])
def test_trials_beside_rows_that_have_no_state_count_as_they_did(nothing):
    trials = table(3, item=[0, 1, 2] * 2, state=["late", "late", "released", "told", nothing, nothing])
    study = scores(objective=SAFE)
    assert study.import_results(trials, fair=True) == 5
    taken = study.trials().dropna(subset="score").set_index(["arm", "item"]).score
    assert taken["a"].to_dict() == {0: 2.0, 1: 2.0}
    assert taken["b"].to_dict() == {0: 1.0, 1: 5.0, 2: 9.0}


def test_a_state_that_is_no_trials_says_nothing():
    study = scores(objective=SAFE)
    assert study.import_results(table(2, state=["old", "old", "new", "new"]), fair=True) == 4
    assert sorted(study.trials().score) == [1.0, 1.0, 9.0, 9.0]


def test_a_table_may_have_no_rows():
    assert scores().import_results({"arm": [], "score": []}, fair=True) == 0


# --- refused


@pytest.mark.parametrize("items", [None, ["p", "q"]])
def test_two_values_of_what_is_exact_are_refused(items):
    objectives = [SCORE, lb.Objective("price", "minimize", noise="exact")]
    study = lb.create_study("x", MemoryStorage(), arms=["a", "b"], objectives=objectives, items=items, seed=0)
    frame = {"arm": ["a", "a"], "item": ["p", "q"], "score": [1, 2], "price": [3, 4]}
    with pytest.raises(lb.ConflictError, match="'price' is exact, but arm 'a' has two different values"):
        study.import_results(frame, fair=True)
    assert kinds(study) == ["created"]


def test_two_columns_of_one_name_are_refused():
    """Else one of them would count, and nobody knew which."""
    frame = pd.DataFrame({"arm": ["a", "b"], 1: [1.0, 2.0], "1": [3.0, 4.0]})
    with pytest.raises(lb.StudyError, match="there are 2 columns '1'"):
        scores(objective=lb.Objective("1", margin=2, noise="gaussian")).import_results(frame, fair=True)


def test_the_same_rows_count_once():
    study = scores()
    frame = table()
    study.import_results(frame, fair=True)
    with pytest.raises(lb.ConflictError, match=r"imported before.*again=True \(--again\)"):
        study.import_results(frame.sample(frac=1, random_state=1), fair=True)
    study.import_results(frame.assign(score=frame.score + 0.1), fair=True)
    study.import_results(frame, fair=True, again=True)
    assert study.status.results == 240
    assert kinds(study).count("imported") == 3


def test_the_same_rows_count_once_for_whoever_opens_the_study_later(tmp_path):

    study = scores(storage=tmp_path / "s.db")
    study.import_results(table(), fair=True)
    with pytest.raises(lb.ConflictError, match="imported before"):
        lb.open_study("scores", tmp_path / "s.db").import_results(table(), fair=True)
    projection = replay_of(study).projection
    assert Projection.from_bytes(projection.to_bytes()).imports == projection.imports != []


def test_a_column_that_nobody_reads_is_refused():
    frame = table().assign(latency=1.0).rename(columns={"latency": "latncy"})
    study = create(arms=["a", "b"])
    with pytest.raises(lb.StudyError, match="no column is an objective"):
        study.import_results(frame, fair=True)
    frame["correct"] = 1
    with pytest.raises(lb.StudyError, match=r"'latncy' is no objective: did you mean 'latency'\?"):
        study.import_results(frame, fair=True, ignore=["score"])
    with pytest.raises(lb.StudyError, match=r"'score' is no objective.*ignore=\['score'\] \(--ignore\)"):
        study.import_results(frame, fair=True)
    assert kinds(study) == ["created"]
    assert study.import_results(frame, fair=True, ignore=["latncy", "score"]) == 80
    assert create(arms=["a", "b"]).import_results(frame, fair=True, ignore={"latncy", "score"}) == 80


def test_the_command_line_says_both(tmp_path):
    scores(storage=tmp_path / "s.db")
    table().assign(who="me", why="so").to_csv(tmp_path / "rows.csv")  # with pandas' index: a nameless column
    words = ("study", "import", "scores", str(tmp_path / "rows.csv"), "--fair")
    words += ("--storage", str(tmp_path / "s.db"))
    assert "--ignore" in run(*words, code=2).stderr
    words += ("--ignore", "who", "--ignore", "why")
    assert "80 results" in run(*words).stdout
    assert "--again" in run(*words, code=4).stderr
    assert "80 results" in run(*words, "--again").stdout


# --- names that a spreadsheet would compute

NAMES = ["=1+1", "'=1+1", "+a", "-a", "@a", "''-a", "'plain", "plain"]


def test_no_name_is_a_formula_in_a_spreadsheet_and_all_are_read_back(tmp_path):
    value = lb.Objective("=SUM(A1)", margin=1, noise=("bounded", -10, 10))
    words = {"arms": NAMES, "objectives": [value], "items": ["=x", "\ty", "-5", "5", "'=x"]}
    study = lb.create_study("names", **{"seed": 0, **words})
    for number, trial in enumerate(study.ask_many(len(NAMES) * 5, worker="@me")):
        study.tell(trial, {value.name: -number / 10})
    path = study.export(tmp_path / "trials.csv")
    cells = [cell for line in path.read_text().splitlines() for cell in line.split(",")]
    computed = [cell for cell in cells if cell.strip('"')[:1] in "=+@\t" and cell]
    assert computed == []
    assert all(float(cell) <= 0 for cell in cells if cell[:1] == "-"), "numbers stay numbers"
    other = lb.create_study("names", **{"seed": 0, **words})
    assert other.import_results(path, fair=True) == len(NAMES) * 5
    mine, theirs = (s.trials().set_index(["arm", "item"])[value.name].sort_index() for s in (study, other))
    assert mine.equals(theirs)


def test_a_file_may_say_nothing_but_values(tmp_path):
    rows = [{"arm": arm, "item": f"q{i}", **measure(arm, i)} for i in range(3) for arm in ("small", "large")]
    pd.DataFrame(rows).to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    assert create().import_results(tmp_path / "rows.jsonl", fair=True) == 6
    with pytest.raises(lb.StudyError, match=r"reads \.csv, .*, \.xlsx; got 'rows\.ods'"):
        create().import_results(str(tmp_path / "rows.ods"), fair=True)


# --- what a file may look like

CELLS = [
    ("ONE,item,score", [], "a column 'arm' of arms"),
    ("arm,score\na,1\nb,2,3", [], "rows.csv, row 2: 3 cells where the head has 2"),
    ("arm,score\na,1\nb", [], "rows.csv, row 2: 1 cells where the head has 2"),
    ("arm,score,score\na,1,2", [], "two columns 'score'"),
    ("arm,score\na,fast", [], "a value must be a number, got 'fast'"),
    ("arm,score\na,1_0", [], "a value must be a number, got '1_0'"),
    ("arm,item,score\na,,1", [], "an item must be text or a number"),
    ('arm,score\na,"1\nb,2', [], "row 1: 2 cells|a value must be a number"),
    ("\ufeffarm,score\r\na,1.5\r\n\r\nb, 2 \r\n", [1.5, 2.0], None),
    ("arm,score\na,TRUE\nb,false", [1.0, 0.0], None),
    ("arm,score\na,<NA>\nb,1e0", [None, 1.0], None),
    (",arm,score\n0,a,1\n1,b,2", [1.0, 2.0], None),
]


@pytest.mark.parametrize(("text", "values", "refusal"), CELLS, ids=range(len(CELLS)))
def test_cells_of_a_csv(text, values, refusal, tmp_path):
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    study = scores()
    if refusal:
        with pytest.raises(lb.StudyError, match=refusal):
            study.import_results(tmp_path / "rows.csv", fair=True)
        assert kinds(study) == ["created"]
        return
    study.import_results(tmp_path / "rows.csv", fair=True)
    told = study.trials().sort_values("arm").score
    assert [None if np.isnan(value) else value for value in told] == values


@pytest.mark.parametrize(
    ("written", "items"), [("7", [7]), ("0.5", [0.5]), ("1_0", ["1_0"]), ("x", ["x"]), ("'-1", [-1])]
)
def test_items_of_a_csv_are_numbers_if_all_are(written, items, tmp_path):
    (tmp_path / "rows.csv").write_text(f"arm,item,score\na,{written},1\nb,{written},2\n")
    study = scores()
    study.import_results(tmp_path / "rows.csv", fair=True)
    assert sorted(set(study.trials()["item"])) == items


def test_rows_of_jsonl_need_not_all_say_the_same(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"arm": "a"}\n\n{"arm": "b", "score": 3}\n')
    study = scores()
    assert study.import_results(tmp_path / "rows.jsonl", fair=True) == 1
    for wrong, why in (("[1]", r"row 1.*got \[1\]"), ("{", "line 1")):
        (tmp_path / "rows.jsonl").write_text(wrong)
        with pytest.raises(lb.StudyError, match=why):
            scores().import_results(tmp_path / "rows.jsonl", fair=True)


@pytest.mark.parametrize(("kind", "name"), [(".csv", "load"), (".parquet", "load"), (".csv", "in_time")])
def test_what_was_told_in_time_of_a_late_trial_counts_after_an_export_too(tmp_path, kind, name):
    """Its rest came late, and does not."""
    objectives = [
        lb.Objective(name, margin=0.02, noise=("bounded", 0, 1)),
        lb.Objective("converted", margin=0.02, noise="bernoulli", if_expired=0),
    ]
    storage = MemoryStorage()
    study = lb.create_study("x", storage, arms=["a", "b"], objectives=objectives, lease="10m", seed=0)
    for load in (0.9, 0.8, 0.7):
        for trial in study.ask_many(2):
            study.tell(trial, {name: load}, partial=True)
    first, _ = study.ask_many(2)  # of which nothing comes in time
    start = storage.time()
    storage.time = lambda: start + 3600
    trials = study.trials()
    for identity in trials["id"][:5]:  # and of one nothing more
        assert study.tell(identity, {"converted": 1}) == "late"
    assert study.tell(first, {name: 0.1, "converted": 1}) == "late"
    assert study.trials()[name].tolist()[:7] == [0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.1]
    path = study.export(tmp_path / f"trials{kind}")
    again = lb.create_study("x", MemoryStorage(), arms=["a", "b"], objectives=objectives, seed=0)
    again.import_results(path, fair=True)

    def counted(of):
        columns = ["arm", "objective", "results", "mean"]
        return of.results()[columns].to_dict("records")

    for here, there in zip(counted(again), counted(study), strict=True):
        assert here == {**there, "mean": pytest.approx(there["mean"])}
    assert counted(study)[0] == {"arm": "a", "objective": name, "results": 3, "mean": pytest.approx(0.8)}
    assert counted(study)[1] == {"arm": "a", "objective": "converted", "results": 4, "mean": 0.0}
    column = "in_time" if name == "load" else "in_time_"
    for odd in ("x", "[" * 100_000):
        with pytest.raises(
            lb.StudyError, match=f"^{column} is a list of objectives in JSON, or empty"
        ) as said:
            again.import_results(study.trials().assign(**{column: odd}), fair=True)
        assert f"got {odd[:50]!r}" in str(said.value)


def test_one_word_that_is_no_state_does_not_hide_the_others():
    """Else late values would count as told."""
    study = create(objectives=[lb.Objective("score", margin=0.2, noise="bernoulli", if_expired=0)])
    rows = {"arm": ["small", "large"], "item": [1, 1], "score": [1, 1]}
    with pytest.raises(lb.StudyError, match="'sunny' is no state of a trial"):
        study.import_results({**rows, "state": ["late", "sunny"]}, fair=True)
    assert study.status.results == 0


# --- what would let somebody choose by looking is refused, and nothing changes


def refused(study, match, frame):
    before = kinds(study)
    with pytest.raises(lb.ConflictError, match=match):
        study.import_results(frame, fair=True)
    assert kinds(study) == before


def one_row(arm="a", score=1.0, **columns):
    return {"arm": [arm], "score": [score], **{name: [value] for name, value in columns.items()}}


def test_what_was_asked_and_given_back_has_been_seen():
    study = scores()
    study.release(study.ask())
    refused(study, "before the first ask", one_row())


def test_a_list_that_has_ended_takes_no_more():
    study = scores(items=["q1", "q2"])
    study.end("enough")
    refused(study, "has ended: reopen it", one_row(item="q1"))
    study.reopen("not enough")
    assert study.import_results(one_row(item="q1")) == 1


def test_an_item_is_imported_once_and_not_after_rows_that_have_none():
    study = scores()
    study.import_results(one_row(item=7), fair=True)
    refused(study, "item 7 was imported before", one_row("b", item=7))
    study = scores("others")
    study.import_results(one_row(), fair=True)
    refused(study, "rows without items were imported before", one_row("b", item=7))


def test_an_arm_that_was_withdrawn_takes_no_rows():
    study = scores()
    study.withdraw("a", "too dear")
    refused(study, "'a' was withdrawn: restore it first", one_row())
    study.restore("a")
    assert study.import_results(one_row(), fair=True) == 1


def test_a_pass_has_a_place_for_every_arm_whoever_has_rows():
    """Else an arm would be measured again where only others were imported, and paired as one likes."""
    study = scores()
    study.import_results(one_row("b", item=3), fair=True)
    assert list(study.events())[-1].payload["arms"] == ["a", "b"]


def test_a_row_is_lost_if_it_has_no_value_at_all():
    study = create()
    study.import_results({"arm": ["small", "large"], "correct": [1, None], "latency": [None, 5]}, fair=True)
    assert "lost" not in list(study.events())[-1].payload
    study.import_results({"arm": ["small", "large"], "correct": [1, None], "latency": [2, None]}, fair=True)
    assert list(study.events())[-1].payload["lost"] == {"small": [0, 1], "large": [1, 1]}
