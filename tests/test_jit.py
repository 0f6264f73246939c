"""Two tiers over one source: a change between any two calls shows nowhere; what is compiled is kept."""

import os
import subprocess
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest

import lexbandits as lb
from lexbandits import _compiled, _jit
from lexbandits._jit import INTERPRETED, Entry, entry, fused, kernel
from lexbandits.cli import warm
from lexbandits.environments.noise import DRAWS
from lexbandits.policies.tolerance import lexelim_tol, places
from lexbandits.policies.tolerance.finite import finite_policy
from lexbandits.policies.tolerance.passes import begin, fill, observe_place, replay
from lexbandits.policies.tolerance.stopping import plug_in
from lexbandits.simulation.trajectory import plain_loop

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

KINDS = {
    "gaussian": {"noise": "gaussian", "tolerance": 0.4},
    "bounded": {"noise": ("bounded", -8, 8), "tolerance": 0.8},
    "worst": {"noise": ("bounded", -8, 8, "worst"), "tolerance": 2.5},
    "sub-gaussian": {"noise": ("sub_gaussian", 1.0), "tolerance": 0.6, "preregistered": False},
    "exact": {
        "noise": [("sub_gaussian", 1.0, "independent"), "exact"],
        "tolerance": [0.5, 0.0],
        "resolution": 0.4,
    },
    "finite variance": {"noise": "finite_variance", "tolerance": 0.6, "stop_when": "all"},
    "target": {"noise": "gaussian", "tolerance": 0.4, "resolution": 0.4, "at_least": [0.2, None]},
}


def life(settings, seed):
    """A policy told out of order, in bulk, amended in the middle of a pass; all that it shows on the way."""
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0.5], [1.0, 0.0], [1.1, 1.0], [1.0, -1.0]])
    policy, shown = lb.LexElimTol(4, 2, delta=0.2, max_arms=4, **settings), []
    exact = (
        np.array([kind == "exact" for kind in np.broadcast_to(np.array(settings["noise"], object), 2)])
        if isinstance(settings["noise"], list)
        else np.zeros(2, bool)
    )

    def result(arm):
        values = means[arm] + np.where(exact, 0.0, rng.normal(size=2).clip(-3, 3))
        return [None if rng.random() < 0.05 and not exact[i] else v for i, v in enumerate(values.tolist())]

    for step in range(60):
        places = policy.ask_places(5)
        for number in rng.permutation(5).tolist():
            policy.tell(places[number][0], result(places[number][0]), item=places[number][1])
        if step == 20:
            policy.tell(*(policy.ask(), result(policy.ask())))
            policy = policy.amended(order=[1, 0])
        if step == 40:
            policy = policy.amended(tolerance=[1.0, 0.1], offered=[0, 1, 3])
        if step % 10 == 0:
            arms = policy.ask_many(9)
            policy.tell_many(arms, [[np.nan if v is None else v for v in result(arm)] for arm in arms])
            shown += [policy.intervals, policy.differences, policy.target_bounds]
        shown.append((policy.finished, policy.recommendation, policy.candidates, policy.ask_places(3)))
    return policy, shown


@pytest.mark.parametrize("name", KINDS)
def test_a_change_of_tier_between_any_two_calls_shows_nowhere(name, monkeypatch):
    compiled = life(KINDS[name], 3)
    call, coin = Entry.__call__, np.random.default_rng(5)
    tiers = [0, 0]

    def either(self, *arguments):
        tier = int(coin.integers(2))
        tiers[tier] += 1
        return self.function(*arguments) if tier else call(self, *arguments)

    monkeypatch.setattr(Entry, "__call__", either)
    for module in (places, finite_policy):
        monkeypatch.setattr(module, "portion", lambda left: int(coin.integers(1, left + 1)))
    for found in (life(KINDS[name], 3), life(KINDS[name], 3)):
        assert found[0] == compiled[0]
        np.testing.assert_equal(found[1], compiled[1])
    assert min(tiers) > 50


PROBE = """
import sys, time, numpy as np, lexbandits as lb
from lexbandits import _jit
from lexbandits.policies.tolerance.passes import observe_place
_jit.SOON, _jit.PATIENCE = 0.0, {patience}
policy, rng = lb.LexElimTol(4, 2, delta=0.05, tolerance=1e-3), np.random.default_rng(0)
observe, until = _jit.direct(observe_place), time.perf_counter() + {seconds}
while time.perf_counter() < until and observe.code is None:
    policy.tell(policy.ask(), rng.normal(size=2).tolist())
print("numba" in sys.modules, observe.code is not None)
"""


def probe(cache, patience, seconds):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("LEXBANDITS_JIT", None)
    code = PROBE.format(patience=patience, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_what_is_warmed_up_is_all_that_a_live_policy_calls():
    life(KINDS["target"], 3)
    called = {each for each in vars(lexelim_tol).values() if hasattr(each, "kernel_entry")}
    called |= {each for each in vars(places).values() if hasattr(each, "kernel_entry")}
    assert {begin, fill, replay, observe_place, plug_in} <= called
    for each in called:
        each.kernel_entry.code = None
    warm.live()
    assert [each.__name__ for each in called if each.kernel_entry.code is None] == []


WARMED = """
import sys, random, lexbandits as lb
from lexbandits import _jit
from lexbandits.cli import warm
_jit.MODE = "1"
if sys.argv[1:]:
    [step() for step in warm.STUDIES.values()]
else:
    warm.compile_for([*warm.STUDIES, *lb.policies.BY_NAME])
from numba.core.dispatcher import Dispatcher
compile, new = Dispatcher.compile, []
def noted(self, signature):
    known = len(self.overloads)
    found = compile(self, signature)
    new.extend([self.py_func.__name__] * (len(self.overloads) - known))
    return found
Dispatcher.compile = noted

def measured(arm):
    return {"q": random.random() < 0.8, "t": random.gauss(1, 1), "s": ord(arm)}

def go_on(study, n):
    for trial in study.ask_many(n):
        study.tell(trial, measured(trial.arm))

random.seed(1)
objectives = [lb.Objective("q", noise="bernoulli", at_least=0.05, slack=0.05),
    lb.Objective("t", "minimize", margin=0.4, noise="gaussian"),
    lb.Objective("s", "minimize", noise="exact")]
for items in (None, list(range(60))):
    study = lb.create_study("s", arms=["a", "b", "c"], objectives=objectives, max_arms=5, items=items, seed=1)
    go_on(study, 20)
    study.forecast(runs=5), study.explain(), study.report("r.html"), study.results()
    failed, wrong = study.ask_many(2)
    study.fail(failed, "no"), study.tell(wrong, measured(wrong.arm))
    study.add_arm("d"), go_on(study, 10), study.amend("t", margin=0.6), go_on(study, 10)
    study.withdraw("d", "no"), study.reorder(["t", "q", "s"]), go_on(study, 30)
    study.forecast(runs=5), study.verify(), study.answer
    print(*new), new.clear()
question = {"arms": ["a", "b"], "objectives": objectives[:2]}
lb.forecast(question, [[0.5, 1], [0.9, (1, 2)]], sd={"t": 1}, runs=5, most=500)
print(*new), new.clear()
instance = lb.Instance([[0.0, 1.0], [1.0, 0.5], [1.0, 2.0]], noise_sd=0.3)
for policy in lb.policies.BY_NAME.values():
    made = warm._example(policy)
    lb.sweep([lb.simulation.Cell(made.name, made, instance, 300)], replications=3, n_jobs=2)
print(len(new))
"""


def after(*words):
    done = subprocess.run([sys.executable, "-c", WARMED, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_once_everything_is_warm_nothing_is_compiled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert after() == ["", "", "", "0"]
    *studies, swept = after("studies alone")
    assert studies == ["", "", ""]
    assert int(swept) > 0


def test_what_is_on_disk_is_taken_and_what_is_not_waits(tmp_path):
    assert probe(tmp_path, 3600, 0.5) == (["False", "False"], ""), "nothing there: interpreted, without numba"
    life(KINDS["gaussian"], 3)  # now it is there
    assert probe(_compiled.folder(), 3600, 3600.0) == (["True", "True"], "")


@pytest.mark.slow
def test_a_study_that_goes_on_is_compiled_beside_it(tmp_path):
    assert probe(tmp_path, 0.1, 3600.0) == (["True", "True"], "")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder for the compiled code of one test."""
    monkeypatch.setattr(_compiled, "folder", lambda: str(tmp_path))
    return tmp_path


def test_a_long_replay_takes_what_is_on_disk_at_once(kept, monkeypatch):
    monkeypatch.setattr(_jit, "MODE", None)
    monkeypatch.setattr(_jit, "_spent", [0.0])
    counted = entry(kernel(lambda rows: rows + 1.25))
    assert _jit.portion(_jit.LONG - 1) == _jit.LONG - 1
    assert counted(1) == 2.25
    assert counted.code is None, "a short one is not worth it"
    assert _jit.portion(10 * _jit.ROWS) == _jit.ROWS
    assert counted(1) == 2.25
    assert counted.code is None, "nothing is on disk"
    counted.compile((1,))
    again = entry(kernel(lambda rows: rows + 1.25))
    assert again(1) == 2.25
    assert again.code is not None


def test_what_is_called_for_long_is_compiled(monkeypatch):
    monkeypatch.setattr(_jit, "MODE", None)
    monkeypatch.setattr(_jit, "_spent", [_jit.PATIENCE])
    monkeypatch.setattr(_compiled, "folder", lambda: "")
    good, odd = entry(kernel(lambda x: x + 1.75)), entry(kernel(lambda x: {x}.pop().real))
    assert [good(1), odd(1)] == [2.75, 1]
    assert good.code is not good.function
    bad = entry(kernel(lambda x: open))
    assert bad(1) is open
    assert bad.code is bad.function, "what numba does not know stays as it is"
    with pytest.raises(Exception, match="open"):
        entry(kernel(lambda x: open), bulk=True)(1)


@pytest.mark.parametrize("draw", DRAWS)
def test_the_loop_around_a_policy_and_its_noise_is_kept(draw):
    loop = plain_loop(lb.LexElimIn.rules, draw)
    assert {draw, lb.LexElimIn.rules.observe} <= set(_compiled._held(loop.function))
    assert _compiled.folder_of(loop.function)


def test_the_name_on_disk_follows_all_that_a_kernel_is_made_of():
    def made(text, **space):
        exec(text, space)
        return kernel(space["f"])

    name = _compiled.folder_of
    one = "def f(x):\n    return g(x) + C"
    g, other = made("def f(x): return x"), made("def f(x): return x + 1")
    names = [
        name(made(one, g=g, C=1.0)),
        name(made(one, g=g, C=2.0)),
        name(made(one, g=other, C=1.0)),
        name(made(one.replace("+", "-"), g=g, C=1.0)),
        name(made(one, g=g, C=np.ones(2))),
    ]
    assert len(set(names)) == 5
    assert name(made("\n\n" + one, g=g, C=1.0)) == names[0], "where it stands does not matter"
    told = one.replace("\n", '\n    """What it does."""\n')
    assert name(made(told, g=g, C=1.0)) == names[0], "nor does a docstring"
    quoted = [name(made(f"def f(x):\n    return x == {word!r}")) for word in ("a", "b")]
    assert quoted[0] != quoted[1], "another text does"
    assert name(made(one, g=g, C=object())) == "", "not kept"


def test_a_kernel_is_compiled_once_whatever_constants_it_is_called_with(kept):

    @kernel
    def chosen(values, which, negated):
        return -values[which] if negated else values[which]

    @kernel
    def both(values):
        return chosen(values, 0, True) + chosen(values, 1, negated=False)

    assert entry(both, bulk=True)(np.array([1.0, 5.0])) == 4.0
    assert len(_compiled._dispatcher(chosen).overloads) == 1


def doubling():
    """A loop, made anew as by another process."""

    def double(x):
        return x + x

    return fused(double)


def test_two_processes_that_compile_at_once_keep_one_code(kept, monkeypatch):
    """Both have looked when neither has written yet."""
    one, other = doubling(), doubling()
    load = _compiled.KernelCache.load_overload

    def looked(self, *of):
        found = load(self, *of)
        if self is _compiled._dispatcher(one.function)._cache:
            assert other(3) == 6
        return found

    monkeypatch.setattr(_compiled.KernelCache, "load_overload", looked)
    assert one(2) == 4
    assert one.code is not other.code
    assert len([*kept.glob("double-*/*")]) == 1


DAMAGES = [lambda kept: b"", lambda kept: kept[:-9], lambda kept: kept.replace(b"doubling", b"Doubling")]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_on_disk_is_as_if_it_were_not_there(damage, kept):
    assert doubling()(2) == 4
    (path,) = kept.glob("double-*/*")
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    assert doubling()(2) == 4
    assert path.read_bytes() != damaged, "it is kept anew"


def test_a_folder_in_which_nothing_can_be_written_is_read(tmp_path, monkeypatch):
    folder = tmp_path / "kernels"
    monkeypatch.setattr(_compiled, "folder", lambda: str(folder))
    folder.write_text("no folder")
    assert doubling()(2) == 4
    folder.unlink()
    assert doubling()(2) == 4
    folder.chmod(0o555)
    monkeypatch.setattr(_compiled, "announced", [])
    assert doubling()(2) == 4
    assert not _compiled.announced, "it was found"


TOGETHER = """
import sys, threading
from lexbandits.evidence.mixture import log_add, log_tail, mixture_ceiling
from lexbandits._jit import Entry
from lexbandits.policies.tolerance.state import pair_of

calls = [(pair_of, (0, 1, 3)), (log_tail, (0.5,)), (log_add, (0.1, 0.2)), (mixture_ceiling, (1.0, 2.0, 3.0))]
calls += calls
ready, failed = threading.Barrier(len(calls)), []

def compile_one(function, arguments, now):
    ready.wait()
    try:
        entry = Entry(function, True, False)
        entry(*arguments) if now else entry.compile(arguments)
    except BaseException as error:
        failed.append(repr(error))

sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=compile_one, args=(*call, i % 2)) for i, call in enumerate(calls)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit("\\n".join(failed) or 0)
"""


@pytest.mark.parametrize("turn", range(4))
def test_threads_that_compile_first_import_the_compiler_one_at_a_time(turn):
    done = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_who_will_not_have_it_begun_does_not_wait(monkeypatch):
    monkeypatch.setattr(_jit, "MODE", None)
    monkeypatch.setattr(_compiled, "folder", lambda: "")
    mine = entry(kernel(lambda x: x + 1.5), bulk=True)
    with _jit.refusing_to_wait(begin=False), pytest.raises(_jit.Compiling):
        mine(2)
    assert mine.code is None
    assert mine(2) == 3.5
    assert mine.code is not None
    with _jit.refusing_to_wait(begin=False):
        assert mine(3) == 4.5, "it is there"


@pytest.mark.parametrize("home", ["lexbandits.policies.base", "mine"])
def test_a_type_that_another_process_does_not_have_is_no_error_there(home, kept, monkeypatch):
    """A policy's own state, handed to a kernel of the package."""

    def made():
        def told(state):
            return state.values[0]

        told.__module__ = home
        return kernel(told)

    gone = types.ModuleType("gone_tomorrow")
    exec("from typing import NamedTuple, Any\nclass State(NamedTuple):\n    values: Any", vars(gone))
    monkeypatch.setitem(sys.modules, "gone_tomorrow", gone)
    assert entry(made(), bulk=True)(gone.State(np.array([3.0]))) == 3.0
    assert len([*kept.glob("told-*/*")]) == 1
    monkeypatch.delitem(sys.modules, "gone_tomorrow")
    assert entry(made(), bulk=True)(Kept(np.array([4.0]))) == 4.0
    assert entry(made(), bulk=True)(Kept(np.array([5.0]))) == 5.0
    assert len([*kept.glob("told-*/*")]) == 2


class Kept(NamedTuple):
    values: np.ndarray


def test_named_tuples_of_one_name_are_told_apart(kept):
    def first(state):
        return entry(kernel(lambda state: state.a), bulk=True)(state)

    one, other = (NamedTuple("State", [(name, float) for name in names]) for names in ("ab", "ba"))
    assert [first(one(1.0, 2.0)), first(other(1.0, 2.0))] == [1.0, 2.0]
