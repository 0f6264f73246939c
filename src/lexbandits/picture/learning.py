"""What learning cost: the paper's regret of a study's own measurements, in the user's units.

What was imported had been measured before, and an exact value costs nothing to know.
"""

import math
from dataclasses import dataclass

from lexbandits.picture.tally import tally_of
from lexbandits.picture.view import View
from lexbandits.study.record.trials import IMPORTED
from lexbandits.study.words import is_nothing, many, rough


@dataclass(frozen=True)
class LearningCost:
    """What the measurements gave up against measuring the answer alone, estimated; less than 0: gained.

    The paper's regret. `equal` is what an equal split of as many results would have given up.
    """

    objective: str
    so_far: float
    equal: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def learning_costs(view: View) -> tuple[LearningCost, ...]:
    """Per objective, by priority; nothing before the first results."""
    before = tally_of(view.fold).by_arm[:, IMPORTED].tolist()
    own = [told - known for told, known in zip(view.measured, before, strict=True)]
    measured = [a for a in range(len(view.arms)) if own[a] > 0]
    if not view.measured[view.leader]:
        return ()
    rows = []
    for column in view.columns:
        objective = view.objectives[column]
        if objective.noise == "exact":
            continue
        leads = {arm: _mean_lead(view, arm, column) for arm in measured}
        known = {arm: lead for arm, lead in leads.items() if not math.isnan(lead)}
        if len(known) < 2:
            continue
        total = sum(own[arm] for arm in known)
        so_far = sum(own[arm] * lead for arm, lead in known.items())
        equal = total / len(known) * sum(known.values())
        rows.append(
            LearningCost(objective.name, so_far, equal, _cost_sentence(view, column, so_far, equal, total))
        )
    return tuple(rows)


def _mean_lead(view: View, arm: int, column: int) -> float:
    """The answer's lead over an arm, by common results where there are any."""
    if arm == view.leader:
        return 0.0
    lead = view.lead(view.leader, arm, column)
    if lead.results:
        return lead.mean
    return view.objectives[column].sign * (view.mean(view.leader, column) - view.mean(arm, column))


def _cost_sentence(view: View, column: int, so_far: float, equal: float, results: int) -> str:
    objective = view.objectives[column]

    def said(total: float) -> str:
        if is_nothing(objective, total):
            return "gave up nothing"
        return f"{'gave up' if total > 0 else 'gained'} {rough(objective, abs(total))}"

    against = f"against measuring {view.answer.arm} alone"
    text = f"On {objective.name} the {many(results, 'result')} {said(so_far)} in all {against}"
    return f"{text}; an equal split of as many would have {_past_form(said(equal))}."


def _past_form(said: str) -> str:
    return said.replace("gave up", "given up")
