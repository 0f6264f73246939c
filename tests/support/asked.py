"""What the tests of the service ask for."""

from support.patience import until

QUESTION = {
    "name": "models",
    "seed": 0,
    "arms": ["small", {"name": "large", "tokens": 200}, "cot"],
    "objectives": [
        {"name": "correct", "margin": 0.2, "noise": "bernoulli"},
        {
            "name": "latency",
            "direction": "minimize",
            "unit": "ms",
            "margin": 4,
            "noise": ["bounded", 0, 100],
        },
    ],
}
MODELS = "/api/studies/models"


def make(client, **changes):
    answer = client.post("/api/studies", json={**QUESTION, **changes})
    assert answer.status_code == 201, answer.text
    return answer


def ask(client, n=1, study=MODELS, **words):
    answer = client.post(f"{study}/trials", json={"n": n, **words})
    assert answer.status_code == 201, answer.text
    return answer.json()["trials"]


def get_when_made(client, path, **params):
    """Return the answer; ask again as long as the service says that it is still being made."""
    answers = []

    def is_made():
        answers.append(client.get(path, params=params))
        return answers[-1].status_code != 503

    until(is_made)
    return answers[-1]


def refused(answer, status, *words):
    """The answer is a problem of this status that says so."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    for word in words:
        assert word in problem["detail"], problem
    return problem
