"""Two mock models on six questions, twice each: the .eval logs of inspect_ai beside this file."""

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate

QUIZ = Task(
    name="quiz",
    dataset=[Sample(id=f"q{i}", input=f"What is {i} + {i}?", target=str(2 * i)) for i in range(6)],
    solver=generate(),
    scorer=[match(), includes()],
)


def model(name, wrong=(), fails=()):
    def answered(messages, *_):
        i = int(messages[-1].text.split()[2])
        if i in fails:
            raise RuntimeError("the line went dead")
        text = "no idea" if i in wrong else f"It is {2 * i}."
        output = ModelOutput.from_content(f"mockllm/{name}", text)
        output.usage = ModelUsage(input_tokens=20, output_tokens=len(text), total_tokens=20 + len(text))
        return output

    return get_model(f"mockllm/{name}", custom_outputs=answered)


LOGS = [
    eval(QUIZ, model=arm, epochs=2, fail_on_error=False, log_dir=".", display="none", log_level="critical")[0]
    for arm in (model("large", wrong=(5,)), model("small", wrong=(1, 3), fails=(4,)))
]
