"""Damaged SQLite files: a clear error, or the same answer; never a raw error, never silently another one."""

import os
import random
import stat

import numpy as np
import pytest

import lexbandits as lb
from lexbandits import curves
from support.command import invoked
from support.questions import create, go_on


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bytes of a file with a study that has its answer, and the answer."""
    path = tmp_path_factory.mktemp("written") / "study.db"
    study = create(f"sqlite:///{path}?synchronous=OFF")
    go_on(study)
    answer, events = study.answer.as_json(), len(list(study.events()))
    study.close()
    return path.read_bytes(), answer, events


def damaged(content, luck):
    """Bytes turned, zeroed, cut or taken from elsewhere; more often in the pages that matter."""
    new = bytearray(content)
    for _ in range(luck.choice([1, 1, 2, 5])):
        at = luck.randrange(len(new)) if luck.random() < 0.7 else luck.randrange(min(4096, len(new)))
        size = luck.choice([1, 1, 4, 64, 2048])
        match luck.randrange(5):
            case 0:
                new[at] ^= 1 << luck.randrange(8)
            case 1:
                new[at : at + size] = bytes(len(new[at : at + size]))
            case 2:
                new[at : at + size] = luck.randbytes(len(new[at : at + size]))
            case 3:
                start = luck.randrange(len(content))
                part = content[start : start + size]
                new[at : at + len(part)] = part
            case _:
                del new[len(new) - luck.choice([1, 100, 2048, 5000]) :]
    return bytes(new)


def outcome(path, answer, events):
    """ "refused", "noticed" by `verify`, or "same"; else what is wrong."""
    try:
        study = lb.open_study("models", path)
        found = study.answer.as_json()
        told = len(list(study.events()))
        held = study.verify()
        study.close()
    except lb.StudyError as error:
        return "refused" if "\n" not in str(error) else f"two lines: {error}"
    if not held:
        return "noticed"
    return "same" if (found, told) == (answer, events) else f"silent: {found}"


def count(written, tmp_path, times):
    content, answer, events = written
    luck, seen = random.Random(41), []
    for n in range(times):
        path = tmp_path / f"{n}.db"
        path.write_bytes(damaged(content, luck))
        seen.append(outcome(path, answer, events))
        for file in tmp_path.glob(f"{n}.db*"):
            file.unlink()
    assert set(seen) <= {"refused", "noticed", "same"}, [each for each in seen if len(each) > 8]
    return seen


@pytest.mark.filterwarnings("ignore")
def test_a_few_damaged_files(written, tmp_path):
    assert "refused" in count(written, tmp_path, 40)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_refused_noticed_or_give_the_same(written, tmp_path):
    seen = count(written, tmp_path, 320)
    assert {"refused", "noticed"} <= set(seen)


def test_a_new_file_is_its_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        study = create(tmp_path / "study.db")
        study.ask()
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("study.db*")}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(
        [f"study.db{end}" for end in ("", "-wal", "-shm", ".lock", ".queue")], 0o600
    )


def test_a_disk_that_is_full_leaves_the_old_export(tmp_path, monkeypatch):
    study, question = create(), [lb.Objective("x", margin=0.1, noise="bernoulli")]
    go_on(study, 4)
    verdict = lb.judge(
        {"arm": ["a", "b"] * 9, "item": [n // 2 for n in range(18)], "x": [1, 0] * 9}, question
    )
    panel = curves.Panel([curves.Curve("a", np.array([1.0, 2.0]), np.array([1.0, 2.0]))], "x")
    writers = {
        "trials.csv": study.export,
        "events.jsonl": study.export,
        "report.html": study.report,
        "verdict.html": verdict.report,
        "figure.svg": curves.Figure((panel,), "x").save,
    }
    for name, write in writers.items():
        path = tmp_path / name
        path.write_text("old")
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
            with pytest.raises(OSError, match="no space"):
                write(path)
        assert path.read_text() == "old"
        assert write(path).read_text() != "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(writers)
    os.symlink("trials.csv", tmp_path / "link.csv")
    study.export(tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()


@pytest.mark.parametrize("words", [["--html", "old"], ["--follow-up", "old.toml"]])
def test_a_disk_that_is_full_leaves_what_judge_wrote_before(tmp_path, monkeypatch, words):
    rows = (f"{arm},{item},{int(item % (2 + (arm == 'b')) == 0)}\n" for arm in "ab" for item in range(30))
    (tmp_path / "t.csv").write_text("arm,item,x\n" + "".join(rows))
    old = tmp_path / words[1]
    old.write_text("old")
    asked = ("judge", tmp_path / "t.csv", "x max 0.01 bernoulli", words[0], old)
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
        full = invoked(*asked)
    assert (full.exit_code, "no space" in full.stderr) == (2, True), full.output
    assert old.read_text() == "old"
    assert invoked(*asked).exit_code == 1
    assert old.read_text() != "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["t.csv", words[1]])


@pytest.mark.parametrize("key", ["arm", "item", "repeat"])
def test_keys_of_arms_do_not_shadow_what_run_fills_in(key, tmp_path):
    with pytest.raises(lb.StudyError, match=f"'{key}' cannot be a key of an arm"):
        create(arms=["a", {"name": "b", key: "c"}])
    study = create(tmp_path / "s.db", max_arms=4)
    with pytest.raises(lb.StudyError, match=f"'{key}' cannot be a key of an arm"):
        study.add_arm({"name": "d", key: "c"})
    added = invoked("study", "add-arm", "models", "d", f"{key}=c", "--storage", tmp_path / "s.db")
    assert (added.exit_code, f"'{key}' cannot be a key of an arm" in added.stderr) == (2, True), added.output
    file = tmp_path / "s.toml"
    file.write_text(
        f'[study]\nname = "s"\n[[objectives]]\nname = "x"\nmargin = 0.1\nnoise = "bernoulli"\n'
        f'[[arms]]\nname = "a"\n[[arms]]\nname = "b"\n{key} = "c"\n'
    )
    made = invoked("study", "create", file, "--storage", tmp_path / "t.db")
    assert (made.exit_code, f"'{key}' cannot be a key of an arm" in made.stderr) == (2, True), made.output
