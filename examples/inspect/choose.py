"""Which model? Right answers first, then few tokens: inspect_ai measures, one pass of samples at a time.

python choose.py [MODEL …]; without models, three mocks. Every model is asked only the samples that it still
needs: a model that is out is asked nothing more.
"""

import random
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

import lexbandits as lb

QUIZ = Task(
    name="sums",
    dataset=[Sample(id=i, input=f"What is {i} + {i}?", target=str(2 * i)) for i in range(1, 1001)],
    solver=generate(),
    scorer=includes(),
)
MOST = 200  # tokens, beyond which nobody cares how many
MOCKS = {"mockllm/small": (0.6, 10), "mockllm/medium": (0.9, 15), "mockllm/large": (0.91, 60)}  # right, words


def mock(name: str):
    """A model that is right so often, and uses so many tokens."""
    right, words = MOCKS[name]

    def answered(messages, *_):
        i = int(messages[-1].text.split()[2])
        luck = random.Random(f"{name} {i}")
        text = f"It is {2 * i}." if luck.random() < right else "I do not know."
        used = int(words * luck.uniform(0.5, 1.5))
        usage = ModelUsage(input_tokens=8, output_tokens=used, total_tokens=8 + used)
        return ModelOutput.from_content(name, text).model_copy(update={"usage": usage})

    return get_model(name, custom_outputs=answered)


def measured(model: str, samples: list[int]) -> dict[int, dict[str, float]]:
    """One call of inspect_ai: values by sample; a sample that ended in an error has none."""
    told = eval(
        QUIZ,
        model=mock(model) if model in MOCKS else model,
        sample_id=samples,
        fail_on_error=False,
        display="none",
        log_level="critical",
    )
    rows = lb.read.inspect(told)
    values = zip(rows["includes"], rows["total_tokens"], strict=True)
    return {
        item: {} if correct is None else {"correct": correct, "tokens": min(tokens, MOST)}
        for item, (correct, tokens) in zip(rows["item"], values, strict=True)
    }


def main() -> None:
    """Ask for many trials, have each model answer its samples in one call, tell, until there is an answer."""
    study = lb.create_study(
        "sums",
        arms=sys.argv[1:] or list(MOCKS),
        objectives=[
            lb.Objective("correct", margin=0.2, noise="bernoulli", if_failed=0),
            lb.Objective("tokens", "minimize", margin=10, noise=("bounded", 0, MOST), if_failed=MOST),
        ],
        items=[sample.id for sample in QUIZ.dataset],
        seed=0,  # for this page: leave it out, so that the order is a new one
    )
    while trials := study.ask_many(150, lease="1h"):
        for arm in study.arms:
            mine = [trial for trial in trials if trial.arm == arm]
            told = measured(arm, [trial.item for trial in mine]) if mine else {}
            study.tell_many([(trial, told.get(trial.item, {})) for trial in mine])
    print(study.results().pivot(index="arm", columns="objective", values="mean").round(2))
    print(f"\n{study.answer.arm}: {study.answer.reason}")


if __name__ == "__main__":
    main()
