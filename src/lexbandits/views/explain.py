"""Why each arm left or stays, what the answer may give up, and what learning cost: one sentence each."""

from dataclasses import asdict, dataclass
from typing import Any

from lexbandits.study.states import Severity
from lexbandits.study.study import Study
from lexbandits.views.diagnostic_text import Assumption
from lexbandits.views.learning_cost import LearningCost
from lexbandits.views.reasons import Claim
from lexbandits.views.study_view import StudyView
from lexbandits.views.view_parts import ArmExplanation


@dataclass(frozen=True)
class Explanation:
    """Everything that can be said of a study in sentences; printable."""

    study: str
    sentence: str
    arms: tuple[ArmExplanation, ...]
    claims: tuple[Claim, ...]
    cost: LearningCost | None
    diagnostics: tuple[Assumption, ...]

    def __getitem__(self, arm: str) -> ArmExplanation:
        """Return the explanation of one arm."""
        for found in self.arms:
            if found.arm == arm:
                return found
        raise KeyError(arm)

    @property
    def blocks(self) -> list[tuple[str, list[str | ArmExplanation]]]:
        """A title and lines each: the arms, what the answer may give up, what learning cost, diagnostics."""
        found = [s for s in self.diagnostics if s.severity in (Severity.WARNING, Severity.NOTICE)]
        blocks: list[tuple[str, list[str | ArmExplanation]]] = [
            ("Arms", [*self.arms]),
            ("What the answer may give up", [claim.sentence for claim in self.claims]),
            ("What learning cost", [self.cost.sentence] if self.cost else []),
            ("Diagnostics", [f"{s.sentence} ({s.severity.label})" for s in found]),
        ]
        return [(title, lines) for title, lines in blocks if lines]

    def __str__(self) -> str:
        blocks = ["\n".join([title, *map(str, lines)]) for title, lines in self.blocks]
        return "\n\n".join([self.sentence, *blocks])

    def _repr_html_(self) -> str:
        from lexbandits.report.notebook import of_explanation

        return of_explanation(self)

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return asdict(self)


def explain(study: Study, arm: str | None = None) -> Explanation | ArmExplanation:
    """Return the explanation of a study, or of one of its arms."""
    view = StudyView.of(study)
    if arm is not None:
        return view.explanation(arm)
    return Explanation(view.name, view.headline, view.explanations, view.claims, view.cost, view.diagnostics)
