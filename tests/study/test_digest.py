"""The same journals give the same answers: a digest of what studies of every kind say, written down.

`python tests/study/test_digest.py` writes it anew, when an answer is meant to change.
"""

import hashlib
import json
from pathlib import Path

import pytest

import lexbandits as lb
from support.lives import in_memory, script_of
from support.worlds import go_on

pytestmark = pytest.mark.filterwarnings("ignore:.*more than once")
JOURNALS = Path(__file__).parent / "journals"
WRITTEN = JOURNALS / "answers.json"
CORRECT = lb.Objective("correct", margin=0.2, noise="bernoulli")
LATENCY = lb.Objective("latency", "minimize", unit="ms", margin=4, noise=("bounded", 0, 100))
QUESTIONS = {
    "plain": {},
    "open": {"rules": "open", "delta": 0.1},
    "limit": {"objectives": [lb.Objective("latency", "minimize", at_most=19, noise=("bounded", 0, 100),
                                          slack=4), CORRECT]},
    "unmet": {"objectives": [lb.Objective("correct", at_least=0.89, noise="bernoulli", slack=0.1),
                             LATENCY],
              "if_infeasible": "stop"},
    "gaussian": {"objectives": [lb.Objective("latency", "minimize", margin=6), CORRECT]},
    "items": {"items": [f"item {number}" for number in range(300)], "about": "population", "seed": 0},
    "agreed": {"objectives": [lb.Objective("correct", margin=0.4, noise="bernoulli", if_failed=0),
                              lb.Objective("latency", "minimize", margin=8, noise=("bounded", 0, 100),
                                           if_missing="worst")]},
    "fragile": {"max_failures": 2, "budget": 900},
}  # fmt: skip
LIVES = [(question, seed) for question in QUESTIONS for seed in range(6)]


def live(question, seed):
    """A drawn life; every second one goes on until it ends."""
    player = in_memory(**QUESTIONS[question])
    study = player.play(script_of(f"{question} {seed}", 30 + 20 * seed))
    if seed % 2:
        for rescue in (study.resume, lambda: study.set_budget(None), lambda: study.reopen("go on")):
            try:
                rescue()
            except lb.StudyError:
                continue
        for _ in range(4000):  # seconds: what is under way runs out
            player.tick()
        try:
            go_on(study, 1500)
        except lb.StudyPaused:
            return study
    return study


def said(study):
    """What it says, without sentences, nonces and times."""
    answer, status = study.answer.as_json(), study.status.as_json()
    for key in ("about", "items", "results", "full", "certain", "record"):  # what lists have brought
        del answer[key]
    answer["certificate"] = [{k: v for k, v in r.items() if k != "certain"} for r in answer["certificate"]]
    del status["at_most"]
    status["waiting_for"] = [identity.partition("-")[0] for identity in status["waiting_for"]]
    trials = study.trials().drop(columns=["id", "asked", "resolved"])
    facts = [
        {key: value for key, value in answer.items() if key not in ("reason", "details")},
        {key: value for key, value in status.items() if key not in ("reason", "name")},
        study.results().to_dict("list"),
        trials.to_dict("list"),
        [event.kind for event in study.events()],
        list(study.verify().problems),
    ]
    digest = hashlib.sha256(json.dumps(rounded(facts)).encode()).hexdigest()[:16]
    return f"{status['state']}, {'certified' if answer['certified'] else 'a guess'}: {digest}"


def rounded(words):
    if isinstance(words, dict):
        return {key: rounded(value) for key, value in words.items()}
    if isinstance(words, (list, tuple)):
        return [rounded(value) for value in words]
    return f"{words:.6g}" if isinstance(words, float) else words


@pytest.mark.parametrize(("question", "seed"), LIVES)
def test_a_life_says_what_it_said(question, seed):
    assert said(live(question, seed)) == json.loads(WRITTEN.read_text())[f"{question} {seed}"]


def test_every_state_is_among_them():
    states = {words.partition(":")[0] for words in json.loads(WRITTEN.read_text()).values()}
    assert states == {
        "measuring, a guess",
        "paused, a guess",
        "budget spent, a guess",
        "items spent, a guess",
        "finished, a guess",
        "finished, certified",
    }


if __name__ == "__main__":
    digests = {f"{question} {seed}": said(live(question, seed)) for question, seed in LIVES}
    WRITTEN.write_text(json.dumps(digests, indent=1) + "\n")
