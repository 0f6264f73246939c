"""Why each arm left or stays, what the answer may give up, and what learning cost: one sentence each."""

from dataclasses import asdict, dataclass
from typing import Any

from lexbandits.picture.claims import Claim
from lexbandits.picture.learning import LearningCost
from lexbandits.picture.picture import Picture
from lexbandits.picture.shown import Story
from lexbandits.picture.strains import Assumption
from lexbandits.study.study import Study


@dataclass(frozen=True)
class Explanation:
    """Everything that can be said of a study in sentences; printable."""

    study: str
    sentence: str
    arms: tuple[Story, ...]
    claims: tuple[Claim, ...]
    costs: tuple[LearningCost, ...]
    strains: tuple[Assumption, ...]

    def __getitem__(self, arm: str) -> Story:
        """The story of one arm."""
        for story in self.arms:
            if story.arm == arm:
                return story
        raise KeyError(arm)

    def __str__(self) -> str:
        strained = [s for s in self.strains if s.level in ("strained", "slight")]
        blocks = [
            ("", [self.sentence]),
            ("Arms", [story.sentence for story in self.arms]),
            ("What the answer may give up", [claim.sentence for claim in self.claims]),
            ("What learning cost", [cost.sentence for cost in self.costs]),
            ("Strained", [f"{s.sentence} ({s.level})" for s in strained]),
        ]
        return "\n\n".join("\n".join([title, *lines] if title else lines) for title, lines in blocks if lines)

    def _repr_html_(self) -> str:
        from lexbandits.insight.notebook import of_explanation

        return of_explanation(self)

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return asdict(self)


def explain(study: Study, arm: str | None = None) -> Explanation | Story:
    """The explanation of a study, or the story of one of its arms."""
    picture = Picture.of(study)
    if arm is not None:
        return picture.story(arm)
    return Explanation(
        picture.name, picture.headline, picture.stories, picture.claims, picture.costs, picture.strains
    )
