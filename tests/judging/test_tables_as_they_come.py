"""Tables as spreadsheets and people write them: read, or refused where two readings give other numbers."""

import random

import numpy as np
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.cli.judge import objective_of
from lexbandits.study.table_files import TableNotice, numbers_in
from support.command import invoked

SCORE = lb.Objective("score", margin=0.2, noise=("bounded", 0, 3))
RIGHT = lb.Objective("right", margin=0.2, noise="bernoulli")


def rows_of(n=40, seed=1):
    luck = random.Random(seed)
    return [
        (arm, k, round(luck.uniform(0, 1) + (arm == "b"), 4), luck.random() < 0.7)
        for k in range(n)
        for arm in "ab"
    ]


ROWS = rows_of()
PLAIN = {"arm": [r[0] for r in ROWS], "item": [r[1] for r in ROWS], "score": [r[2] for r in ROWS]}
PLAIN["right"] = [r[3] for r in ROWS]


def text_of(mark, decimal=".", yes="1", no="0", head=("arm", "item", "score", "right"), quote=""):
    lines = [mark.join(head)]
    for arm, item, score, right in ROWS:
        cells = [arm, str(item), str(score).replace(".", decimal), yes if right else no]
        lines.append(mark.join(f"{quote}{cell}{quote}" for cell in cells))
    return "\r\n".join(lines) + "\r\n"


AS_WRITTEN = {
    "commas.csv": text_of(",").encode(),
    "semicolons.csv": text_of(";", ",").encode(),
    "semicolons and points.csv": text_of(";").encode(),
    "bom.csv": text_of(";", ",").encode("utf-8-sig"),
    "unicode text.csv": text_of("\t", ",").encode("utf-16"),
    "tabs.tsv": text_of("\t", ",").encode(),
    "tabs.csv": text_of("\t").encode(),
    "quoted.csv": text_of(",", ",", quote='"').encode(),
    "wahr.csv": text_of(";", ",", "WAHR", "FALSCH").encode(),
    "yes.csv": text_of(",", ".", "yes", "No").encode(),
    "oui.csv": text_of(";", ",", "oui", "non").encode(),
    "sì.csv": text_of(";", ",", "sì", "non").encode("cp1252"),
    "sep.csv": ("sep=;\r\n" + text_of(";", ",")).encode(),
    "passed.csv": text_of(",", ".", "pass", "FAIL").encode(),
    "commas.tsv": text_of(",").encode(),
    "empty rows.csv": (text_of(";", ",") + ";;;\r\n;;;\r\n").encode(),
    "spaces.csv": text_of("; ", ",").encode(),
    "empty lines.csv": b"\r\n\r\n" + text_of(";", ",").encode(),
}


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_the_same_table_however_it_was_written(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(AS_WRITTEN[name])
    found, plain = lb.judge(path, [SCORE, RIGHT]), lb.judge(PLAIN, [SCORE, RIGHT])
    assert found == plain
    assert (found.arm, found.certified) == ("b", True)


def test_a_workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path, book = tmp_path / "a.xlsx", openpyxl.Workbook()
    sheet = book.active
    sheet.append(["arm", "item", "score", "right", None])
    for row in ROWS:
        sheet.append(row)
    book.create_sheet("notes")
    book.save(path)
    assert lb.judge(path, [SCORE, RIGHT]) == lb.judge(PLAIN, [SCORE, RIGHT])
    book["notes"].append(["a second table"])
    book.save(path)
    with pytest.raises(lb.StudyError, match=r"2 sheets with cells \(Sheet, notes\)"):
        lb.judge(path, [SCORE])
    for content in (b"PK", b"", path.read_bytes()[:2000]):
        path.write_bytes(content)
        with pytest.raises(lb.StudyError, match=r"no \.xlsx that can be read"):
            lb.judge(path, [SCORE])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "arm,x;item,score\na,1;2,3\nb,1;2,4\n",
            r"can be cut at commas \(3 columns\) or semicolons \(2 columns\)",
        ),
        ("arm;item;score\na;1;1,234\nb;1;2,345\n", "'1,234', which may be 1234 or 1.234"),
        ("arm;item;score\na;1;1.234\nb;1;2.345\n", "'1.234', which may be 1234 or 1.234"),
        ('arm,item,score\na,1,"1,234"\nb,1,2\n', "'1,234', which may be 1234 or 1.234"),
        ("arm;item;score;x\na;1;1.234;0,5\nb;1;2.345;0,5\n", "'1.234', which may be 1234 or 1.234"),
        ("arm;item;score\na;1;0.5\nb;1;0,5\n", "'0,5' and '0.5': write all of its decimals with a point"),
        ("arm;item;score\na;1;0,5\nb;1;1.234\n", "'1.234', which may be 1234 or 1.234"),
        ("arm,item,score\na,1,0,5\nb,1,0,7\n", "row 1: 4 cells where the head has 3, cut at commas"),
        ("arm;item;score;x;y\na;1;1,234;0,5;0.5\nb;1;2,345;0,5;0.5\n", "'1,234', which may be 1234 or 1.234"),
        ("arm;item;score\na;1;95 %\nb;1;95 %\n", "must be a number"),
        ("arm;item;score\na;1;1.234,5\nb;1;1.234,5\n", "must be a number"),
    ],
)
def test_where_two_readings_differ_nothing_is_guessed(tmp_path, text, sentence):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(lb.StudyError, match=sentence):
        lb.judge(path, [SCORE])


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1.234", "2.345"], [1.234, 2.345]),
        (["0,5", "1,234", "12"], [0.5, 1.234, 12.0]),
        ([",5", "-1,5e3"], [0.5, -1500.0]),
        (["0.5", "1.234"], [0.5, 1.234]),
        (["WAHR", "falsch", "Ja", "#NV", "n/a"], [1.0, 0.0, 1.0, None, None]),
        ([0.5, "0,5", None], [0.5, 0.5, None]),
        (["a,b", "1"], ["a,b", 1.0]),
    ],
)
def test_numbers_of_a_column(cells, numbers):
    assert numbers_in("x", cells) == numbers


def test_unicode_text_is_a_spreadsheet_s(tmp_path):
    path, text = tmp_path / "a.csv", "arm\titem\tscore\na\t1\t1.234\nb\t1\t2.345\n"
    path.write_text(text, encoding="utf-16")
    with pytest.raises(lb.StudyError, match=r"which may be 1234 or 1\.234"):
        lb.judge(path, [SCORE], scope="items")
    path.write_text(text)
    assert lb.judge(path, [SCORE], scope="items").means["b"]["score"]["mean"] == 2.345


def test_another_column_says_what_a_comma_is(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("arm;item;score;x\n" + "".join(f"{a};{k};1,23{k};0,5\n" for k in range(9) for a in "ab"))
    assert lb.judge(path, [SCORE], scope="items").means["a"]["score"]["mean"] == pytest.approx(1.234)


def test_the_rows_of_two_arms_know_the_whole_file(tmp_path):
    """What a third arm's row says about commas counts, though the gate asks about two."""
    path = tmp_path / "a.csv"
    rows = [f"{arm};{k};1.234" for k in range(9) for arm in "ab"] + ["c;1;0,5"]
    path.write_text("\n".join(["arm;item;score", *rows]) + "\n")
    with pytest.raises(lb.StudyError, match=r"which may be 1234 or 1\.234"):
        lb.judge(path, [SCORE], baseline="a", candidate="b", scope="items")


# --- rows


def test_duplicate_rows_are_dropped_and_named():
    doubled = {name: column + column[6:9] for name, column in PLAIN.items()}
    found, plain = lb.judge(doubled, [SCORE]), lb.judge(PLAIN, [SCORE])
    assert found.means == plain.means
    assert found.certificate == plain.certificate
    [notice] = found.notices
    assert notice == {"code": "duplicates_dropped", "rows": 3, "item": 3, "arm": "a"}
    assert "3 duplicate rows dropped, the first of item 3 and a." in str(found)
    assert "3 duplicate rows dropped" in found.as_markdown()
    frame = pd.DataFrame(doubled).astype({"right": object})
    frame.loc[0, "right"] = None
    frame = pd.concat([frame, frame.iloc[:1]])  # a gap is equal to a gap
    assert lb.judge(frame, [SCORE]).notices[0]["rows"] == 4


def test_rows_that_differ_in_any_column_are_no_duplicates():
    told = {name: column + column[6:9] for name, column in PLAIN.items()}
    told["when"] = list(range(len(told["arm"])))
    with pytest.raises(lb.StudyError, match=r"item 3 has 2 rows of 'a': say repeat="):
        lb.judge(told, [SCORE])
    some = {name: column + column[6:9] * 2 for name, column in PLAIN.items()}
    some["score"][-1] = 0.123  # dropping one of three would leave two
    with pytest.raises(lb.StudyError, match=r"has 2 rows of 'a': say repeat="):
        lb.judge(some, [SCORE])


def test_without_items_equal_rows_are_rows():
    told = {"arm": ["a", "b"] * 60, "right": [1, 0] * 60}
    found = lb.judge(told, [RIGHT], item=None)
    assert (found.notices, found.items, found.certified) == ((), 60, True)


def test_an_ab_table_with_users_is_unpaired():
    told = {"variant": PLAIN["arm"], "user": list(range(80)), "score": PLAIN["score"]}
    found = lb.judge(told, [SCORE])
    assert found.unit == "rows per arm"
    assert [notice["code"] for notice in found.notices] == [
        TableNotice.ITEMS_UNPAIRED,
        TableNotice.COLUMNS_CHOSEN,
    ]
    assert found.notices[1] == {"code": "columns_chosen", "arm": "variant", "item": "user"}
    assert "No user has results of two arms: arms are compared as independent groups." in str(found)
    assert "Columns: variant is the arm and user is the item." in str(found)
    plain = lb.judge(told, [SCORE], arm="variant", item=None)
    assert (found.certificate, found.means) == (plain.certificate, plain.means)


def test_an_ab_table_with_visits_counts_users():
    """Four visits of a user are one user, whose mean counts."""
    luck = np.random.default_rng(3)
    users = {f"u{k}": int(luck.integers(65)) / 64 for k in range(40)}
    rows = [
        ("ab"[k % 2], user, visit, mean) for k, (user, mean) in enumerate(users.items()) for visit in "wxyz"
    ]
    told = dict(zip(("arm", "user", "repeat", "score"), map(list, zip(*rows, strict=True)), strict=True))
    found = lb.judge(told, [SCORE], item="user")
    assert found.items == 20
    once = {name: column[::4] for name, column in told.items()}
    assert found.certificate == lb.judge(once, [SCORE], item="user").certificate
    del told["repeat"]
    told["visit"] = [row[2] for row in rows]
    with pytest.raises(lb.StudyError, match="4 rows of 'a': say repeat="):
        lb.judge(told, [SCORE], item="user")


# --- columns


def test_columns_by_their_usual_names():
    told = {"Model": PLAIN["arm"], "ID": PLAIN["item"], "score": PLAIN["score"]}
    found = lb.judge(told, [SCORE])
    assert found.notices == ({"code": "columns_chosen", "arm": "Model", "item": "ID"},)
    named = lb.judge(told, [SCORE], arm="Model", item="ID")
    assert named.notices == ()
    assert named.certificate == found.certificate
    twice = {name: column * 2 for name, column in told.items()} | {"epoch": [1] * 80 + [2] * 80}
    found = lb.judge(twice, [SCORE])
    assert found.notices == ({"code": "columns_chosen", "arm": "Model", "item": "ID", "repeat": "epoch"},)
    assert found.means["a"]["score"]["mean"] == named.means["a"]["score"]["mean"]
    assert lb.judge({**told, "epoch": [1] * 80}, [SCORE]).notices == lb.judge(told, [SCORE]).notices


def test_a_column_by_its_own_name_in_capitals_goes_before_an_alias():
    told = {"model": ["m"] * 80, "ARM": PLAIN["arm"], "id": [1] * 80, "Item": PLAIN["item"]}
    found = lb.judge({**told, "score": PLAIN["score"]}, [SCORE])
    assert found.notices == ({"code": "columns_chosen", "arm": "ARM", "item": "Item"},)
    assert found.means == lb.judge(PLAIN, [SCORE]).means


def test_of_columns_that_may_be_it_one_that_never_varies_is_none():
    told = {"model": ["m"] * 80, "prompt": PLAIN["arm"], "id": PLAIN["item"], "score": PLAIN["score"]}
    told["question"] = [f"what is {k}?" for k in PLAIN["item"]]
    found = lb.judge(told, [SCORE])
    assert found.notices == ({"code": "columns_chosen", "arm": "prompt", "item": "id"},)
    assert found.means == lb.judge(PLAIN, [SCORE]).means


def test_two_columns_that_may_be_it_are_an_error():
    told = {"model": PLAIN["arm"], "prompt": ["c", "d"] * 40, "id": PLAIN["item"], "score": PLAIN["score"]}
    told["model"] = ["a"] * 40 + ["b"] * 40
    with pytest.raises(
        lb.StudyError, match=r"'model' or 'prompt' may be it: say which, such as arm=\"model\""
    ):
        lb.judge(told, [SCORE])
    with pytest.raises(lb.StudyError, match=r"no column 'item'.*item=None"):
        lb.judge({"arm": PLAIN["arm"], "score": PLAIN["score"]}, [SCORE])
    with pytest.raises(lb.StudyError, match=r"no column 'arm', which names the arms; there are .* Say arm="):
        lb.judge({"item": PLAIN["arm"], "score": PLAIN["score"]}, [SCORE])
    with pytest.raises(lb.StudyError, match=r"no column 'modle'.*did you mean 'model'"):
        lb.judge(told, [SCORE], arm="modle")


def test_folds_are_remarked():
    told = {**PLAIN, "fold": [k % 5 for k in PLAIN["item"]]}
    found = lb.judge(told, [SCORE], cluster="fold", max_cluster=8)
    assert found.notices == ({"code": "folds", "column": "fold"},)
    assert "folds share training data" in str(found)


# --- words


@pytest.mark.parametrize(
    ("word", "meant"), [("max", "maximize"), ("higher", "maximize"), ("lower", "minimize")]
)
def test_directions_as_people_write_them(word, meant):
    assert lb.Objective("x", word, margin=1, noise="gaussian") == lb.Objective(
        "x", meant, margin=1, noise="gaussian"
    )
    assert objective_of(f"x {word} 1 gaussian").direction == meant
    assert (
        lb.Objective.from_json({"name": "x", "direction": word, "margin": 1}).as_json()["direction"] == meant
    )
    with pytest.raises(lb.StudyError, match=r'must be "maximize" \(max, higher\)'):
        lb.Objective("x", "up", margin=1, noise="gaussian")


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("x max 1 bernouli", "bernoulli"),
        ("x max 1 ms gausian", "gaussian"),
        ("x max 1 bounde bounded 0 1", "bounded"),
        ("x max 1 binary", "bernoulli"),
        ("x max 1 sub-gaussian 2", "sub_gaussian"),
    ],
)
def test_a_misspelt_kind_is_never_a_unit(question, meant):
    with pytest.raises(lb.StudyError, match=f"did you mean '{meant}'"):
        objective_of(question)
    with pytest.raises(lb.StudyError, match="did you mean 'bernoulli'"):
        lb.Objective("x", margin=1, noise="bernouli")


def test_a_spreadsheet_on_the_command_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(
        text_of(";", ",", "WAHR", "FALSCH", ("model", "id", "score", "right")).encode("utf-8-sig")
    )
    done = invoked("judge", path, "score higher 0.2 bounded 0 3", "right max 0.2 bernoulli")
    assert done.exit_code == 0, done.output
    assert "Columns: model is the arm and id is the item." in done.stdout


def test_counts_that_are_all_0_or_1_so_far_say_what_to_write():
    table = {"arm": ["a", "b"] * 10, "item": [*range(10)] * 2, "errors": [0, 1] * 10}
    table["item"].sort()
    with pytest.raises(lb.StudyError, match=r'taken as no or yes.* say noise=\("bounded", 0, 10\), with the'):
        lb.judge(table, [lb.Objective("errors", "minimize", margin=1)])
    lb.judge(table, [lb.Objective("errors", "minimize", margin=1, noise=("bounded", 0, 10))])
    with pytest.raises(lb.StudyError, match=r"two points$"):
        lb.judge(table, [lb.Objective("errors", "minimize", margin=1, noise="bernoulli")])
