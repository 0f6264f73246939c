"""`create_study`: a signature that says every setting, and arms that are objects."""

import inspect
import pickle
import re
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields

import pytest

import lexbandits as lb
from lexbandits.service.bodies import StudyBody
from lexbandits.study.measure.optuna import _can_be_written
from lexbandits.study.measure.programs import Program
from lexbandits.study.measure.run import Run
from lexbandits.study.spec import RESERVED_KEYS, Spec, checked_arm, duration
from support import typed
from support.journals import journal_of
from support.typed import SIZE

TEXTS = {"long": "uvwxyz", "short": "xyz", "middle": "wxyz"}


def size(text, item=None):
    return {"size": len(text)}


def create(storage="memory", arms=TEXTS, **settings):
    return lb.create_study("texts", storage, arms=arms, objectives=[SIZE], **{"seed": 0, **settings})


def reopened(storage, **how):
    return lb.open_study("texts", storage, **how)


# --- the signature


PARAMETERS = inspect.signature(lb.create_study).parameters


def test_the_signature_has_every_setting_of_a_question_with_its_default():
    asked = {field.name: field for field in fields(Spec)}
    assert set(PARAMETERS) - set(asked) == {"storage", "load_if_exists"}
    assert set(asked) - set(PARAMETERS) == {"objects"}, "that is said by arms"
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in PARAMETERS.values())
    drawn = {"scope", "max_arms"}  # which follow from items and arms
    for name, field in asked.items():
        if name not in ("name", "arms", "objectives", "objects"):
            assert PARAMETERS[name].default == (None if name in drawn else field.default), name


def test_the_docstring_names_the_defaults_that_an_editor_does_not_evaluate():
    lines = dict(re.findall(r"^    (\w+): ((?:.|\n     )+)", inspect.getdoc(lb.create_study), re.MULTILINE))
    for name, parameter in PARAMETERS.items():
        if parameter.default not in (parameter.empty, None, False):
            said = duration(parameter.default) if name == "lease" else str(parameter.default)
            assert re.search(rf"(?<![\w.]){re.escape(said)}(?![\w.])", lines[name]), (name, said)


def test_a_service_takes_the_same_settings_with_the_same_defaults():
    assert set(StudyBody.model_fields) == {field.name for field in fields(Spec)}
    for name, parameter in PARAMETERS.items():
        if name in StudyBody.model_fields and parameter.default is not parameter.empty:
            default = StudyBody.model_fields[name].default
            assert default == (duration(parameter.default) if name == "lease" else parameter.default), name


def test_every_setting_arrives():
    spec = typed.right().spec
    asked = {
        **{"delta": 0.1, "max_arms": 4, "items": ["i", "j"], "scope": "items", "repeats": 2, "budget": 100},
        **{
            "if_infeasible": "stop",
            "lease": "1m",
            "max_failures": 2,
            "baseline": "b",
            "preregistered": False,
        },
    }
    assert {key: spec[key] for key in asked} == asked
    assert typed.served().spec["serve"] is True
    assert typed.served().spec["shares"] == {"a": [0.1, 1.0], "b": [0.1, 0.9]}
    assert "serve" not in spec
    source = {"file": "q.txt", "sha256": "0"}
    drawn = journal_of(create(items=["i"], source=source, seed=7)).asked()
    assert (drawn.seed, drawn.source) == (7, source)


def test_a_question_makes_the_same_study_again():
    spec = create(delta=0.1, seed=1).spec
    assert spec["seed"] == 1
    assert lb.create_study(**spec).spec == spec


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (typed.misspelt, TypeError, r"no argument 'detla'; did you mean 'delta'\? It has arms"),
        (typed.mistyped, TypeError, "delta must be a number, got '10%'"),
        (typed.unheard_of, lb.StudyError, "preregistered must be"),
    ],
)
def test_what_is_wrong_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_a_misspelt_setting_of_a_table_is_named_too():
    with pytest.raises(lb.StudyError, match=r"a study has no 'bugdet'; did you mean 'budget'\? It has"):
        lb.forecast({"arms": ["a"], "objectives": [SIZE], "bugdet": 3})
    with pytest.raises(lb.StudyError, match="an objective has no 'zzz'; it has"):
        lb.create_study("x", arms=["a"], objectives=[{"name": "size", "zzz": 1}], seed=0)


# --- arms that are objects


def test_objects_are_handed_out_wherever_a_study_is_kept_and_never_stored(storage):
    study = create(storage, max_arms=4)
    trial = study.ask()
    assert (trial.arm, trial.object) == ("long", "uvwxyz")
    assert study.arms["long"] == {"name": "long"}
    study.tell(trial, size(trial.object))
    study.add_arm("shortest", object="a")
    assert study.run(size, progress=False).arm == "shortest"
    assert study.assign("ann").object == "a"
    assert "xyz" not in str([event.payload for event in study.events()])

    bare = reopened(storage)
    assert bare.spec == study.spec
    with pytest.raises(lb.StudyError, match=r"open_study\('texts', storage, arms={'long': …, 'short': …, "):
        bare.run(size, progress=False)
    with pytest.raises(lb.StudyError, match="no object of arm 'shortest' is in this process: give one"):
        _ = bare.assign("ann").object
    given = {**TEXTS, "shortest": "b"}
    assert reopened(storage, arms=given).assign("ann").object == "b"
    assert reopened(storage, arms=given).run(size, progress=False).arm == "shortest"


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ({"long": 1, "short": 2}, "there is no object for 'middle'$"),
        ({**TEXTS, "huge": 1}, "the study has no arm 'huge'$"),
        ({"long": 1, "huge": 1}, "no object for 'short', 'middle'; the study has no arm 'huge'$"),
    ],
)
def test_objects_of_other_arms_are_refused(tmp_path, arms, said):
    create(tmp_path / "s.db")
    with pytest.raises(lb.SpecMismatchError, match=said):
        reopened(tmp_path / "s.db", arms=arms)
    with pytest.raises(lb.SpecMismatchError, match="asks another question: arms"):
        create(tmp_path / "s.db", arms, load_if_exists=True)


def test_names_are_no_objects():
    study = create(arms=list(TEXTS), max_arms=4)
    assert study.run(lambda arm: {"size": len(TEXTS[arm])}, progress=False).arm == "short"
    with pytest.raises(lb.StudyError, match="no object of arm 'short'"):
        _ = study.assign("ann").object
    with pytest.raises(lb.StudyError, match="arm 'x' has an object and the others have none"):
        study.add_arm("x", object=1)
    with pytest.raises(TypeError, match="arms must be a dict of names and objects, got"):
        lb.open_study("texts", "nowhere.db", arms=list(TEXTS))


def test_tables_in_a_list_stay_arms_and_in_a_dict_they_are_objects():
    table = {"name": "gzip", "level": 9}
    assert create(arms=[table]).arms == {"gzip": table}
    study = create(arms={"gz": table, "none": None})
    assert study.arms == {"gz": {"name": "gz"}, "none": {"name": "none"}}
    first, second = study.ask_many(2)
    assert first.object is table
    assert second.object is None


def test_a_name_that_cannot_be_one_is_refused():
    with pytest.raises(TypeError, match="an arm is a name or a table with a name, got 1"):
        create(arms={1: "a"})


def test_whoever_loads_a_study_gives_objects_again(tmp_path):
    create(tmp_path / "s.db", list(TEXTS))
    later = create(tmp_path / "s.db", load_if_exists=True)
    assert later.run(size, progress=False).arm == "short"
    other = create(tmp_path / "t.db")
    assert other.ask().object == "uvwxyz"
    with pytest.raises(lb.StudyError, match="created with objects as arms, and they are not in this process"):
        create(tmp_path / "t.db", list(TEXTS), load_if_exists=True).run(size)


def test_a_further_arm_needs_its_object_and_one_that_is_refused_leaves_none():
    study = create(max_arms=4)
    with pytest.raises(lb.StudyError, match=r"`measure` is handed objects: say add_arm\('x', object=…\)"):
        study.add_arm("x")
    with pytest.raises(lb.ConflictError, match="there is an arm 'long'"):
        study.add_arm("long", object="")
    study.add_arm({"name": "x", "level": 1}, object=None)
    with pytest.raises(lb.StudyError, match="at most 4 arms"):
        study.add_arm("y", object="?")
    assert study._objects == {**TEXTS, "x": None}


def test_an_arm_added_elsewhere_stops_a_run_and_its_trial_is_given_back(tmp_path):
    study = create(tmp_path / "s.db", max_arms=4)
    reopened(tmp_path / "s.db").add_arm("x")
    with pytest.raises(lb.StudyError, match="no object of arm 'x' is in this process"):
        study.run(size, progress=False)
    assert (study.status.failed, study.status.open) == (0, 0)
    assert reopened(tmp_path / "s.db", arms={**TEXTS, "x": ""}).run(size, progress=False).arm == "x"


def test_measure_may_take_the_item_and_how_often():
    asked = []

    def measure(text, *, item, repeat):
        asked.append((text, item, repeat))
        return {"size": len(text)}

    create(items=["i"], repeats=2).run(measure, progress=False)
    assert {text for text, _, _ in asked} <= set(TEXTS.values())
    assert {(item, repeat) for _, item, repeat in asked} <= {("i", 1), ("i", 2)}


def test_a_program_takes_names(tmp_path):
    create(tmp_path / "s.db", {"2": object(), "1": object()})
    study = reopened(tmp_path / "s.db")
    program = Program(["echo", "size={arm}"], lambda: study.arms)
    assert study.run(program, progress=False).arm == "1"


# --- processes


class Counted:
    """Knows how often it was copied."""

    def __init__(self, text):
        self.text = text

    def __setstate__(self, state):
        self.__dict__, self.copies = state, state.get("copies", 0) + 1
        self.used = 0


def used(counted):
    counted.used += 1
    return {"size": len(counted.text), "used": counted.used}


@pytest.mark.parametrize("own", [False, True])
def test_processes_get_copies_and_keep_them(own):
    used_objective = lb.Objective("used", margin=10, tie=5, noise=("bounded", 0, 1000))
    study = lb.create_study(
        "copies",
        arms={name: Counted(text) for name, text in TEXTS.items()},
        objectives=[used_objective],
        budget=12,
        seed=0,
    )
    if own:
        with ProcessPoolExecutor(1) as pool:
            study.run(only_used, executor=pool, progress=False)
    else:
        study.run(only_used, executor="processes", progress=False)
    most = study.trials()["used"].max()
    assert most == 1 if own else most == 4, "one copy per worker, not per trial, where the pool is ours"
    assert all(one.__dict__.keys() == {"text"} for one in study._objects.values())


def only_used(counted):
    return {"used": used(counted)["used"]}


@pytest.mark.parametrize("own", [False, True])
def test_what_cannot_be_copied_is_named_before_anything_is_asked(own):
    study = create(arms={"text": "xyz", "lock": threading.Lock()})
    with ProcessPoolExecutor(1) as pool:
        executor = pool if own else "processes"
        with pytest.raises(lb.StudyError, match="the object of arm 'lock' cannot be sent to another process"):
            study.run(size, executor=executor, progress=False)
        with pytest.raises(lb.StudyError, match="measure cannot be sent to another process"):
            study.run(lambda text: size(text), executor=executor, progress=False)
    assert study.status.handed_out == 0
    assert study.run(lambda it: {"size": 1 + (it == "xyz")}, 2, progress=False).arm == "lock"


@pytest.mark.parametrize("own", [False, True])
def test_an_arm_added_while_processes_measure_is_sent_to_them_too(own):
    study = create(max_arms=5)
    with ProcessPoolExecutor(1) as pool:
        run = Run(study, size, 1, pool if own else "processes", None, False)
        study.add_arm("shortest", object="")
        assert run.go().arm == "shortest"
        study = create(max_arms=4)
        run = Run(study, size, 1, pool if own else "processes", None, False)
        study.add_arm("lock", object=threading.Lock())
        with pytest.raises(lb.StudyError, match="the object of arm 'lock' cannot be sent"):
            run.go()
    assert (study.status.failed, study.status.open) == (0, 0)


def test_a_study_and_its_trials_are_copied_with_their_objects(tmp_path):
    study = create(tmp_path / "s.db")
    trial = pickle.loads(pickle.dumps(study.ask()))
    assert (trial.arm, trial.object) == ("long", "uvwxyz")
    study.tell(trial, size(trial.object))
    assert pickle.loads(pickle.dumps(study)).run(size, progress=False).arm == "short"


@pytest.mark.parametrize("key", RESERVED_KEYS)
def test_what_optuna_calls_a_reserved_key_is_no_key_of_an_arm(key):
    """A parameter of that name stays with `OptunaMeasure`: an arm could not have it."""
    assert not _can_be_written(key, 1)
    with pytest.raises((lb.StudyError, TypeError)):
        checked_arm({"name": "a", **{key: 1}})
