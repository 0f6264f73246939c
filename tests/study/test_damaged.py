"""Damaged SQLite files: a clear error, or the same answer; never a raw error, never silently another one."""

import os
import random
import stat

import pytest

import lexbandits as lb
from support.worlds import create, go_on


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
    assert modes["study.db"] == modes["study.db-wal"] == 0o600


def test_a_disk_that_is_full_leaves_the_old_export(tmp_path, monkeypatch):
    study = create()
    go_on(study, 4)
    for name in ("trials.csv", "events.jsonl", "report.html"):
        path = tmp_path / name
        path.write_text("old")
        write = study.report if name.endswith("html") else study.export
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
            with pytest.raises(OSError, match="no space"):
                write(path)
        assert path.read_text() == "old"
        assert write(path).read_text() != "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["events.jsonl", "report.html", "trials.csv"]
    os.symlink("trials.csv", tmp_path / "link.csv")
    study.export(tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()


@pytest.mark.parametrize("key", ["arm", "item", "repeat"])
def test_keys_of_arms_do_not_shadow_what_run_fills_in(key):
    with pytest.raises(lb.StudyError, match=f"'{key}' cannot be a key of an arm"):
        create(arms=["a", {"name": "b", key: "c"}])
