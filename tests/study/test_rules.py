"""Rules that are kept need fewer results; a change after the first one has its price, for good."""

from types import SimpleNamespace

import pytest

import lexbandits as lb
from lexbandits.study.spec import Spec, fields_from_toml
from support.command import invoked
from support.lives import LIVES, live
from support.questions import create, go_on, measure


def has_account(study):
    return study.policy.state.log_evidence.size > 0


def test_preregistration_is_on_record_and_the_default():
    for settings, preregistered in (({}, True), ({"preregistered": False}, False)):
        study = create(**settings)
        payload = next(iter(study.events())).payload
        assert payload["spec"]["preregistered"] is preregistered
        assert has_account(study) == preregistered
        assert Spec.from_json(payload["spec"]).as_json() == payload["spec"]


def test_toml_says_them_and_other_words_are_refused(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        '[study]\nname = "s"\npreregistered = false\n'
        '[[arms]]\nname = "a"\n[[objectives]]\nname = "x"\nmargin = 2\n'
    )
    assert Spec.from_json(fields_from_toml(file)).preregistered is False
    with pytest.raises(lb.StudyError, match="preregistered must be True or False, got 'closed'"):
        create(preregistered="closed")


CHANGES = {
    "amend": lambda study: study.amend("correct", margin=0.4),
    "reorder": lambda study: study.reorder(["latency", "correct"]),
    "withdraw": lambda study: study.withdraw("small", "old"),
    "add": lambda study: study.add_arm("new"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_free_before_the_first_trial_and_closes_the_account_after_it(change):
    """Who was asked may have seen a value before it is told."""
    study = create(max_arms=4)
    change(study)
    assert has_account(study)
    go_on(study)
    assert has_account(study)
    assert study.answer.certified
    assert study.verify().ok
    looked = create(max_arms=4, name="looked")
    trial = looked.ask()
    change(looked)
    assert not has_account(looked)
    looked.tell(trial, measure(trial.arm))
    go_on(looked)
    assert not has_account(looked)
    assert looked.answer.certified
    assert looked.verify().ok


def test_who_changes_nothing_needs_fewer_results_and_who_does_the_most():
    def results(**said):
        study = create(**said)
        go_on(study)
        return study

    kept, free = results(), results(preregistered=False, name="free")
    assert kept.answer.arm == free.answer.arm == "large"
    changed = create(name="changed")
    go_on(changed, 3)
    changed.amend("correct", margin=0.2)
    go_on(changed)
    assert kept.status.results < free.status.results <= changed.status.results


def test_a_certificate_says_who_beats_a_rival_and_how_much_evidence_there_is():
    study = create()
    go_on(study, 30)
    rows = [row for row in study.policy.certificate if row.verdict == "open"]
    assert rows
    assert all(0.0 <= row.parts < 1.0 and row.by == -1 for row in rows)
    go_on(study)
    assert all(row["parts"] == 1.0 for row in study.answer.certificate)
    later = create(name="open", preregistered=False)
    go_on(later, 30)
    assert all(0.0 <= row.parts <= 1.0 for row in later.policy.certificate)


# --- what a change costs is said before it is made


@pytest.mark.parametrize(("question", "seed"), LIVES[::2])
@pytest.mark.filterwarnings("ignore:.*more than once")
def test_the_proof_is_what_the_policy_has_an_account_for(question, seed):
    study = live(question, seed)
    assert (study.proof == "preregistered") == has_account(study)
    assert (study.proof == "anytime") == (question == "open")


def test_a_change_costs_something_while_the_proof_stands_and_a_trial_was_handed_out():
    study = create()
    assert study.cost_of_change() == "", "nobody has looked"
    study.release(study.ask())
    assert "0 results so far stay." in study.cost_of_change()
    go_on(study, 1)
    assert study.cost_of_change("Withdrawing an arm") == (
        "Withdrawing an arm closes the proof under the rules as created: in all it then takes "
        "up to about twice the results. 1 result so far stays."
    )
    study.amend("latency", margin=6)
    assert (study.proof, study.cost_of_change()) == ("closed", "")
    opened = create(preregistered=False)
    go_on(opened, 1)
    assert (opened.proof, opened.cost_of_change()) == ("anytime", "")


CHANGING = {
    "Changing a margin": ("amend", "latency", "--margin", 6),
    "Changing a tie": ("amend", "latency", "--tie", 3),
    "Changing the order": ("reorder", "latency", "correct"),
    "Withdrawing an arm": ("withdraw", "small", "old"),
    "Bringing an arm back": ("restore", "cot"),
    "Adding an arm": ("add-arm", "tiny"),
}


@pytest.mark.parametrize("change", CHANGING)
def test_the_command_says_it_and_asks(change, tmp_path, monkeypatch):
    word, *said = map(str, CHANGING[change])
    study = create(f"{tmp_path}/s.db", max_arms=4)
    study.withdraw("cot", "before anybody looked")
    go_on(study, 3)
    before, line = study.seq, ["study", word, "models", *said, "--storage", f"{tmp_path}/s.db"]
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("lexbandits.cli.study.sys", terminal)
    refused = invoked(*line, input="n\n")
    assert f"{change} closes the proof" in refused.output
    assert "3 results so far stay. Go on?" in refused.output
    assert (refused.exit_code, study.seq) == (1, before)
    assert "Go on?" not in invoked(*line, "--yes").output
    assert (study.seq > before, study.proof) == (True, "closed")


def test_without_a_terminal_nothing_is_asked(tmp_path):
    study = create(f"{tmp_path}/s.db")
    go_on(study, 3)
    line = ["study", "amend", "models", "latency", "--margin", "6", "--storage", f"{tmp_path}/s.db"]
    done = invoked(*line)
    assert (done.exit_code, study.proof) == (0, "closed")
    assert "Go on?" not in done.output
