"""A folder of results survives a kill, refuses what is not its own, and knows when code has changed."""

import importlib
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.simulation import workers
from lexbandits.simulation.code import UNKNOWN, code_of
from lexbandits.simulation.store import Store, block_size
from support.cells import PAPER, cells, lexelim_out, same
from support.consoles import heeding
from support.patience import until

LONG = """
import sys, lexbandits as lb
policy = lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1))
cells = [lb.simulation.Cell(name, policy, lb.paper_instance(10), 10**8) for name in ("a", "b")]
lb.sweep(cells, replications=4000, seed=1, n_jobs=int(sys.argv[2]), out=sys.argv[1])
"""


def long_cells():
    policy = lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1))
    return [lb.simulation.Cell(name, policy, PAPER, 10**8) for name in ("a", "b")]


def interrupted(folder, how, n_jobs="1"):
    """Start a long sweep in another process and stop it when a few blocks are there."""
    command = heeding([sys.executable, "-c", LONG, str(folder), n_jobs])
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            until(lambda: len(list(folder.glob("*/*.npz"))) >= 12, process)
            process.send_signal(how)
            _, errors = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode != 0
    return errors.decode()


def test_a_killed_sweep_goes_on(tmp_path):
    interrupted(tmp_path, signal.SIGKILL)
    done = len(list(tmp_path.glob("*/*.npz")))
    assert 12 <= done < 4000
    partial = lb.simulation.Results.load(tmp_path)
    whole = lb.sweep(long_cells(), replications=done + 5, seed=1)
    assert same(
        lb.sweep(long_cells(), replications=done + 2, seed=1, out=tmp_path),
        lb.sweep(long_cells(), replications=done + 2, seed=1),
    )
    assert same(lb.sweep(long_cells(), replications=done + 5, seed=1, out=tmp_path, n_jobs=2), whole)
    known = partial.runs["a"].replication
    assert np.array_equal(partial.runs["a"].rounds, whole.runs["a"].rounds[known])


def test_ctrl_c_leaves_a_usable_folder(tmp_path):
    errors = interrupted(tmp_path, signal.SIGINT, n_jobs="2")
    assert "KeyboardInterrupt" in errors
    assert same(
        lb.sweep(long_cells(), replications=20, seed=1, out=tmp_path),
        lb.sweep(long_cells(), replications=20, seed=1),
    )


def test_more_replications_and_cells_reuse_blocks(tmp_path, monkeypatch):
    first = lb.sweep(cells()[:1], replications=70, seed=4, out=tmp_path)
    assert block_size(10**6) == 64
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("in-*/*.npz")}
    assert len(files) == 2
    more = lb.sweep(cells()[:2], replications=100, seed=4, out=tmp_path)
    assert same(more, lb.sweep(cells()[:2], replications=100, seed=4))
    unchanged = [path for path, stamp in files.items() if path.stat().st_mtime_ns == stamp]
    assert [path.name for path in unchanged] == ["00000000.npz"]

    def no_work(*args, **kwargs):
        raise AssertionError("nothing is left to do")

    monkeypatch.setattr(workers, "replicate", no_work)
    assert same(lb.sweep(cells()[:1], replications=70, seed=4, out=tmp_path), first)
    assert len(lb.simulation.Results.load(tmp_path).frame()) == 200


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "foreign", "renamed"])
def test_a_bad_block_is_named_and_computed_again(tmp_path, damage):
    whole = lb.sweep(cells()[1:2], replications=150, seed=4, out=tmp_path / "a")
    (block,) = (tmp_path / "a").glob("out-*/00000064.npz")
    content = block.read_bytes()
    if damage == "truncated":
        block.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        block.write_bytes(b"")
    elif damage == "flipped":
        middle = len(content) // 2
        block.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    elif damage == "foreign":
        lb.sweep(cells()[1:2], replications=150, seed=5, out=tmp_path / "b")
        (foreign,) = (tmp_path / "b").glob("out-*/00000064.npz")
        block.write_bytes(foreign.read_bytes())
    else:
        block.write_bytes(block.with_name("00000000.npz").read_bytes())
    with pytest.warns(UserWarning, match=r"out-.*00000064\.npz.*computed again"):
        again = lb.sweep(cells()[1:2], replications=150, seed=4, out=tmp_path / "a")
    assert same(again, whole)
    assert same(lb.sweep(cells()[1:2], replications=150, seed=4, out=tmp_path / "a"), whole)


def test_a_folder_in_the_place_of_a_block_is_reported(tmp_path):
    lb.sweep(cells()[:1], replications=1, out=tmp_path)
    (block,) = tmp_path.glob("in-*/*.npz")
    block.unlink()
    block.mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        lb.sweep(cells()[:1], replications=1, out=tmp_path)


def test_another_sweeps_folder_is_refused(tmp_path):
    lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    with pytest.raises(ValueError, match="seed is 4 there and 5 here"):
        lb.sweep(cells()[:1], replications=1, seed=5, out=tmp_path)
    with pytest.raises(ValueError, match=r"cell 'in': horizon is 1000000 there and 10 here"):
        lb.sweep(cells(10)[:1], replications=1, seed=4, out=tmp_path)
    other = lb.simulation.Cell("in", lb.LexElimIn(10, 3, delta=0.2, tradeoff=2, noise_sd=0.1), PAPER, 10**6)
    with pytest.raises(ValueError, match=r"settings\.delta is 0\.1 there and 0\.2 here"):
        lb.sweep([other], replications=1, seed=4, out=tmp_path)
    with pytest.raises(ValueError, match="policy is "):
        lb.sweep(
            [lb.simulation.Cell("in", lexelim_out(), PAPER, 10**6)], replications=1, seed=4, out=tmp_path
        )
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "version": "0.0.1"}))
    with pytest.raises(ValueError, match=r"version is '0\.0\.1' there"):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="not the manifest"):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ValueError, match="not empty"):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    with pytest.raises(ValueError, match="holds no sweep"):
        lb.simulation.Results.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path / "file")


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"[]", b"3", b'{"format": 2, "version": "", "seed": 0, "cells": []}']
)
def test_a_manifest_that_is_none(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(ValueError, match="not the manifest"):
        lb.sweep(cells()[:1], replications=1, out=tmp_path)
    with pytest.raises(ValueError, match="not the manifest"):
        lb.simulation.Results.load(tmp_path)


def test_a_folder_of_an_older_format_is_named(tmp_path):
    old = {"format": 1, "version": "0.1.0", "seed": 0, "cells": {"in": {"policy": "LexElimIn"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(old))
    for use in (lb.simulation.Results.load, lambda folder: lb.sweep(cells()[:1], replications=1, out=folder)):
        with pytest.raises(ValueError, match="format is 1 there"):
            use(tmp_path)


def test_two_sweeps_in_one_folder(tmp_path):
    with (
        Store.prepared(tmp_path, 0, {}),
        pytest.raises(ValueError, match="another sweep is running"),
    ):
        lb.sweep(cells()[:1], replications=1, out=tmp_path)
    lb.sweep(cells()[:1], replications=1, out=tmp_path)


def test_save_and_load(reference, tmp_path):
    reference.save(tmp_path / "kept")
    kept = lb.simulation.Results.load(tmp_path / "kept")
    assert same(kept, reference)
    assert kept.frame().equals(reference.frame())
    assert np.array_equal(kept.regret("ucb", [7, 2999]), reference.regret("ucb", [7, 2999]))
    assert kept.streams == reference.streams
    assert kept.cells["in"].instance == PAPER
    assert same(lb.sweep(cells(), replications=150, seed=4, out=tmp_path / "kept"), reference)


def test_a_folder_without_blocks_is_an_empty_table(reference, tmp_path):
    lb.sweep(cells()[:1], replications=1, out=tmp_path)
    for block in tmp_path.glob("*/*.npz"):
        block.unlink()
    frame = lb.simulation.Results.load(tmp_path).frame()
    assert frame.empty
    assert list(frame.columns) == list(reference.frame().columns)


# --- code that changed


def sampled(noise, policy=None):
    instance = lb.Instance([[0.5, 0.5], [1.0, 1.0]], noise=noise)
    return [lb.simulation.Cell("a", policy or lb.UCB1(2, 2), instance, 50)]


def test_a_changed_sampler_is_another_sweep(tmp_path):
    lb.sweep(sampled(lambda rng, arm: [arm + 1.0, 0.0]), replications=2, out=tmp_path)
    lb.sweep(sampled(lambda rng, arm: [arm + 1.0, 0.0]), replications=3, out=tmp_path)
    with pytest.raises(ValueError, match=r"cell 'a': code\.noise is"):
        lb.sweep(sampled(lambda rng, arm: [arm + 2.0, 0.0]), replications=2, out=tmp_path)
    assert lb.simulation.Results.load(tmp_path).runs["a"].replication.size == 3


def test_an_edited_policy_is_another_sweep(tmp_path):
    def edition(best):
        class Mine(lb.UCB1):
            def best_guess(self):
                return best

        return Mine(2, 2)

    noise = "gaussian"
    lb.sweep(sampled(noise, edition(0)), replications=2, out=tmp_path)
    lb.sweep(sampled(noise, edition(0)), replications=2, out=tmp_path)
    with pytest.raises(ValueError, match=r"cell 'a': code\.policy is"):
        lb.sweep(sampled(noise, edition(1)), replications=2, out=tmp_path)


def test_what_cannot_be_compared_is_not_reused(tmp_path):
    hidden = np.random.default_rng(0)
    noise = lambda rng, arm: [hidden.normal(), 0.0]  # noqa: E731
    lb.sweep(sampled(noise), replications=1, out=tmp_path)
    with pytest.raises(ValueError, match="give another folder"):
        lb.sweep(sampled(noise), replications=1, out=tmp_path)


class Loaded:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, rng, arm):
        return [self.weight, 0.0]


def written(text, **names):
    """A function `f` from source, as in a file of one's own."""
    space = {"__name__": "somewhere", **names}
    exec(text, space)
    return space["f"]


def test_code_is_known_by_what_it_does():
    """Names, positions and documentation of variables aside, what a function uses tells it from another."""
    text = "def g(x):\n    return x + {}\ndef f(rng, arm, *, k={}):\n    return [g(k), LEVEL]"
    one = code_of(written(text.format(1, 2), LEVEL=3.0))
    assert one == code_of(written("\n\n" + text.format(1, 2), LEVEL=3.0))
    others = [written(text.format(7, 2), LEVEL=3.0), written(text.format(1, 7), LEVEL=3.0)]
    others.append(written(text.format(1, 2), LEVEL=7.0))
    assert len({one, *map(code_of, others)}) == 4
    assert code_of(Loaded(1.0)) == code_of(Loaded(1.0)) != code_of(Loaded(2.0))
    assert code_of(Loaded(iter([1]))) == UNKNOWN
    assert code_of("gaussian") is None
    assert code_of(lb.LexElimIn) is None


def in_module(name, text, folder, monkeypatch):
    """A module of one's own."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return importlib.import_module(name)


FOLLOWED = {
    "import inside": "def f(rng, arm):\n    import helper_\n    return [helper_.level(), 0.0]",
    "import as": "def f(rng, arm):\n    import helper_ as other\n    return [other.level(), 0.0]",
    "from import": "def f(rng, arm):\n    from helper_ import level\n    return [level(), 0.0]",
    "from import as": "def f(rng, arm):\n    from helper_ import level as x\n    return [x(), 0.0]",
    "a module from a module": "def f(*_):\n    from outer_ import helper_ as h\n    return [h.level(), 0]",
    "import outside": "import helper_\ndef f(rng, arm):\n    return [helper_.level(), 0.0]",
    "import of an import": "import outer_\ndef f(rng, arm):\n    return [outer_.helper_.level(), 0.0]",
    "getattr": "import helper_\nNAME = 'level'\ndef f(*_):\n    return [getattr(helper_, NAME)(), 0]",
    "passed on": "import helper_\ndef g(m):\n    return m.level()\ndef f(*_):\n    return [g(helper_), 0]",
    "held": "import helper_\nMODULES = {'a': helper_}\ndef f(*_):\n    return [MODULES['a'].level(), 0]",
    "relative": "__package__ = 'own_'\ndef f(*_):\n    from .helper_ import level\n    return [level(), 0]",
    "in a lambda": "import helper_\ndef f(rng, arm):\n    return (lambda: [helper_.level(), 0.0])()",
}
ORDINARY = {
    "numpy": "import numpy as np, math\ndef f(rng, arm):\n    return np.array([math.sin(arm), np.pi])",
    "getattr": "def f(rng, arm):\n    return [getattr(rng, 'normal')(), 0.0]",
    "a method": "class A:\n    def open(self): return 1.0\na = A()\ndef f(*_):\n    return [a.open(), 0.0]",
    "a name": "def load(x): return x\ndef f(rng, arm, environ=1.0):\n    return [load(environ), 0.0]",
    "a path": "import os.path\ndef f(rng, arm):\n    return [len(os.path.join('a', 'b')), os.cpu_count()]",
    "passed": "import numpy as np\ndef f(rng, arm):\n    return (lambda m: [m.pi, 0.0])(np)",
}


@pytest.mark.parametrize("outer", ["import helper_", "from helper_ import level"])
@pytest.mark.parametrize("way", FOLLOWED)
def test_code_in_modules_of_ones_own_is_followed(way, outer, tmp_path, monkeypatch):
    found = []
    for number in (1, 1, 2):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        in_module("helper_", f"def level():\n    return {number}.0", folder, monkeypatch)
        in_module("outer_", outer, folder, monkeypatch)
        in_module("own_", f"__path__ = [{str(folder)!r}]", folder, monkeypatch)
        monkeypatch.delitem(sys.modules, "own_.helper_", raising=False)
        found.append(code_of(written(FOLLOWED[way])))
    assert found[0] == found[1] != found[2]
    assert found[0] != UNKNOWN


@pytest.mark.parametrize("way", ORDINARY)
def test_ordinary_code_can_be_compared(way):
    assert code_of(written(ORDINARY[way])) == code_of(written(ORDINARY[way]))
    assert code_of(written(ORDINARY[way])) != UNKNOWN


def test_an_import_that_nobody_finds_cannot_be_compared():
    assert code_of(written("def f(rng, arm):\n    import nowhere_\n    return nowhere_.level()")) == UNKNOWN
