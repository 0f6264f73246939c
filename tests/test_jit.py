"""Two tiers over one source: a change between any two calls shows nowhere; what is compiled is kept."""

import os
import subprocess
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest

import lexbandits as lb
from lexbandits import jit
from lexbandits.commands import warm
from lexbandits.jit import INTERPRETED, Entry, entry, fused, kernel
from lexbandits.policies.tol import lexelim_tol, places
from lexbandits.policies.tol.judgement import begin, fill, observe, replay
from lexbandits.policies.tol.proof import plug_in
from lexbandits.simulation.trajectory import plain_loop
from lexbandits.world.noise import DRAWS

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

KINDS = {
    "gaussian": {"noise": "gaussian", "tolerance": 0.4},
    "bounded": {"noise": ("bounded", -8, 8), "tolerance": 0.8},
    "worst": {"noise": ("bounded", -8, 8, "worst"), "tolerance": 2.5},
    "sub-gaussian": {"noise": ("sub_gaussian", 1.0), "tolerance": 0.6, "rules": "open"},
    "exact": {
        "noise": [("sub_gaussian", 1.0, "independent"), "exact"],
        "tolerance": [0.5, 0.0],
        "resolution": 0.4,
    },
    "finite variance": {"noise": "finite_variance", "tolerance": 0.6, "settle": "all"},
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
    monkeypatch.setattr(Entry, "portion", lambda self, left: int(coin.integers(1, left + 1)))
    for found in (life(KINDS[name], 3), life(KINDS[name], 3)):
        assert found[0] == compiled[0]
        np.testing.assert_equal(found[1], compiled[1])
    assert min(tiers) > 50


PROBE = """
import sys, time, numpy as np, lexbandits as lb
from lexbandits import jit
from lexbandits.commands import warm
from lexbandits.jit import direct
jit.SOON, jit.PATIENCE = 0.0, {patience}
policy, rng = lb.LexElimTol(4, 2, delta=0.05, tolerance=1e-3), np.random.default_rng(0)
observe, until = direct(policy.rules.observe), time.perf_counter() + {seconds}
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


def test_what_is_rehearsed_is_all_that_a_live_policy_calls():
    life(KINDS["target"], 3)
    called = {each for each in vars(lexelim_tol).values() if hasattr(each, "kernel_entry")}
    called |= {each for each in vars(places).values() if hasattr(each, "kernel_entry")}
    assert {begin, fill, replay, observe, plug_in} <= called
    for each in called:
        each.kernel_entry.code = None
    warm.live()
    assert [each.__name__ for each in called if each.kernel_entry.code is None] == []


WARMED = """
import sys, random, lexbandits as lb
from lexbandits import jit
from lexbandits.commands import warm
jit.MODE = "1"
for name in sys.argv[1:]:
    warm.REHEARSALS[name]()
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
    study = lb.create_study("s", arms=["a", "b", "c"], objectives=objectives, max_arms=5, items=items)
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
for policy in lb.BY_NAME.values():
    made = warm._example(policy)
    lb.sweep([lb.Cell(made.name, made, instance, 300)], replications=3, n_jobs=2)
print(len(new))
"""


def after(rehearsed, folder):
    words = [sys.executable, "-c", WARMED, *rehearsed]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_once_everything_is_warm_nothing_is_compiled(tmp_path):
    assert after(["everything"], tmp_path) == ["", "", "", "0"]


@pytest.mark.slow
def test_each_rehearsal_is_of_all_that_is_called_with_it(tmp_path):
    *found, swept = after(["forecast"], tmp_path)
    assert found[0] == found[2] == ""
    assert {"take", "ask", "go_on_list"} <= set(found[1].split())
    assert int(swept) > 0
    assert after(["forecast", "list_forecast"], tmp_path)[:3] == ["", "", ""]


def test_what_is_on_disk_is_taken_and_what_is_not_waits(tmp_path):
    assert probe(tmp_path, 60, 0.5) == (["False", "False"], ""), "nothing there: interpreted, without numba"
    life(KINDS["gaussian"], 3)  # now it is there
    assert probe(jit.folder(), 60, 60.0) == (["True", "True"], "")


@pytest.mark.slow
def test_a_study_that_goes_on_is_compiled_beside_it(tmp_path):
    assert probe(tmp_path, 0.1, 600.0) == (["True", "True"], "")


def test_a_long_history_compiles_first_if_that_is_quicker(monkeypatch):
    monkeypatch.setattr(jit, "MODE", None)
    monkeypatch.setattr(jit, "_spent", [0.0])

    @kernel
    def slow(rows):
        for _ in range(20_000):
            rows += 0
        return rows

    waited = entry(slow)
    assert waited.portion(400) == 400, "a few"
    assert waited.portion(10**6) == jit.PORTION
    waited(1)
    assert waited.code is None
    assert waited.portion(10**9) == 10**9
    assert waited(1) == 1
    assert waited.code is not None


@pytest.mark.parametrize("draw", DRAWS)
def test_the_loop_around_a_policy_and_its_noise_is_kept(draw):
    loop = plain_loop(lb.LexElimIn.rules, draw)
    assert {draw, lb.LexElimIn.rules.observe} <= set(jit._reached(loop.function))
    assert jit._kept_name(loop.function)


def test_the_name_on_disk_follows_all_that_a_kernel_is_made_of():
    def made(text, **space):
        exec(text, space)
        return kernel(space["f"])

    one = "def f(x):\n    return g(x) + C"
    g, other = made("def f(x): return x"), made("def f(x): return x + 1")
    names = [
        jit._kept_name(made(one, g=g, C=1.0)),
        jit._kept_name(made(one, g=g, C=2.0)),
        jit._kept_name(made(one, g=other, C=1.0)),
        jit._kept_name(made(one.replace("+", "-"), g=g, C=1.0)),
        jit._kept_name(made(one, g=g, C=np.ones(2))),
    ]
    assert len(set(names)) == 5
    assert jit._kept_name(made("\n\n" + one, g=g, C=1.0)) == names[0], "where it stands does not matter"
    assert jit._kept_name(made(one, g=g, C=object())) == "", "not kept"


def test_a_kernel_is_compiled_once_whatever_constants_it_is_called_with(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "folder", lambda: str(tmp_path))

    @kernel
    def chosen(values, which, negated):
        return -values[which] if negated else values[which]

    @kernel
    def both(values):
        return chosen(values, 0, True) + chosen(values, 1, negated=False)

    assert entry(both, bulk=True)(np.array([1.0, 5.0])) == 4.0
    assert len(jit._dispatcher(chosen).overloads) == 1


def test_two_processes_that_compile_at_once_do_not_take_each_others_code(tmp_path, monkeypatch):
    """Each has looked when the other has not written yet; then they write in turns."""
    monkeypatch.setattr(jit, "folder", lambda: str(tmp_path))

    def double(x):
        return x + x

    one, other = (fused(double) for _ in range(2))
    assert [one(2), other(3)] == [4, 6]
    files = [jit._dispatcher(each.function)._cache._cache_file for each in (one, other)]
    assert len(list(tmp_path.glob("*.nbc"))) == 1, "the second was found"
    assert files[0]._load_index() == files[1]._load_index()


TOGETHER = """
import sys, threading
from lexbandits.evidence.mixture import log_add, log_tail, mixture_ceiling
from lexbandits.jit import Entry
from lexbandits.policies.tol.state import pair_of

calls = [(pair_of, (0, 1, 3)), (log_tail, (0.5,)), (log_add, (0.1, 0.2)), (mixture_ceiling, (1.0, 2.0, 3.0))]
calls += calls
ready, failed = threading.Barrier(len(calls)), []

def compile_one(function, arguments, now):
    ready.wait()
    try:
        entry = Entry(function, True, False, "")
        entry._compile_now(arguments) if now else entry.compile(arguments)
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
    monkeypatch.setattr(jit, "MODE", None)
    monkeypatch.setattr(jit, "folder", lambda: "")
    mine = entry(kernel(lambda x: x + 1.5), bulk=True)
    with jit.refusing_to_wait(begin=False), pytest.raises(jit.Compiling, match=r"compiling, about \d+ s"):
        mine(2)
    assert mine.code is None
    assert mine(2) == 3.5
    assert mine.code is not None
    with jit.refusing_to_wait(begin=False):
        assert mine(3) == 4.5, "it is there"


@pytest.mark.parametrize("home", ["lexbandits.policies.base", "mine"])
def test_a_type_that_another_process_does_not_have_is_no_error_there(home, tmp_path, monkeypatch):
    """A policy's own state, handed to a kernel of the package, whose list of kept code everybody reads."""
    monkeypatch.setattr(jit, "folder", lambda: str(tmp_path))

    def made():
        def told(state):
            return state.values[0]

        told.__module__ = home
        return kernel(told)

    gone = types.ModuleType("gone_tomorrow")
    exec("from typing import NamedTuple, Any\nclass State(NamedTuple):\n    values: Any", vars(gone))
    monkeypatch.setitem(sys.modules, "gone_tomorrow", gone)
    assert entry(made(), bulk=True)(gone.State(np.array([3.0]))) == 3.0
    assert any(tmp_path.glob("told*.nbi")) == (home == "mine"), "for the package's kernels it is not kept"
    monkeypatch.delitem(sys.modules, "gone_tomorrow")
    assert entry(made(), bulk=True)(Kept(np.array([4.0]))) == 4.0
    assert entry(made(), bulk=True)(Kept(np.array([5.0]))) == 5.0


class Kept(NamedTuple):
    values: np.ndarray
