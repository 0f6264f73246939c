"""The same journals give the same answers: a digest of what studies of every kind say, written down.

`python tests/study/test_digest.py` writes it anew, when an answer is meant to change.
"""

import hashlib
import json
from pathlib import Path

import pytest

from support.lives import LIVES, live

pytestmark = pytest.mark.filterwarnings("ignore:.*more than once")
JOURNALS = Path(__file__).parent / "journals"
WRITTEN = JOURNALS / "answers.json"


def said(study):
    """What it says, without sentences, nonces and times."""
    answer, status = study.answer.as_json(), study.status.as_json()
    for key in ("scope", "items", "results", "full", "exact", "digest"):  # what lists have brought
        del answer[key]
    answer["certificate"] = [{k: v for k, v in r.items() if k != "exact"} for r in answer["certificate"]]
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
def test_a_life_says_what_happened(question, seed):
    assert said(live(question, seed)) == json.loads(WRITTEN.read_text())[f"{question} {seed}"]


def test_every_state_is_among_them():
    states = {words.partition(":")[0] for words in json.loads(WRITTEN.read_text()).values()}
    assert states == {
        "measuring, a guess",
        "paused, a guess",
        "budget_spent, a guess",
        "items_spent, a guess",
        "finished, a guess",
        "finished, certified",
    }


if __name__ == "__main__":
    digests = {f"{question} {seed}": said(live(question, seed)) for question, seed in LIVES}
    WRITTEN.write_text(json.dumps(digests, indent=1) + "\n")
