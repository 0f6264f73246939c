"""The best trials of an Optuna study, measured again: which of them is the best, and is that certified?"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lexbandits.study.errors import StudyError
from lexbandits.study.objective import Objective
from lexbandits.study.spec import RESERVED_KEYS
from lexbandits.study.study import Study, create_study

if TYPE_CHECKING:
    import optuna


def from_optuna(
    study: "optuna.Study",
    objective: Callable[..., Any],
    objectives: Iterable[Objective | Mapping[str, Any]],
    top: int = 8,
    *,
    name: str | None = None,
    storage: Any = "memory",
    **settings: Any,
) -> "tuple[Study, OptunaMeasure]":
    """A live study of the best trials' parameters, and what measures them: study.run(measure).

    The values on record chose these trials, so they flatter them: none is taken over. Ties go to the better
    trial. Items are seeds, the same for all arms.

    Args:
        study: Optuna's.
        objective: Optuna's, `objective(trial)` or `objective(trial, seed)`: values by name, or in the order
            of `objectives`; who takes no seed has `trial.number`.
        objectives: what counts, in order of priority.
        top: how many of the best trials.
        name: of the new study; by default Optuna's.
        storage: where it is kept.
        **settings: those of `create_study`.
    """
    best = _best(study, top)
    arms = {f"trial {trial.number}": dict(trial.params) for trial in best}
    asked = [one if isinstance(one, Objective) else Objective.from_json(dict(one)) for one in objectives]
    words = [
        {"name": arm, **{key: value for key, value in found.items() if _can_be_written(key, value)}}
        for arm, found in arms.items()
    ]
    made = create_study(name or study.study_name, storage, arms=words, objectives=asked, **settings)
    return made, OptunaMeasure(objective, arms, tuple(one.name for one in asked))


def _best(study: "optuna.Study", top: int) -> list[Any]:
    """Trials that ended, the best first; of several objectives the Pareto front, by the first one first."""
    if top < 2:
        raise StudyError(f"top must be at least 2: there is nothing to choose from, got {top!r}")
    signs = [-1.0 if direction.name == "MAXIMIZE" else 1.0 for direction in study.directions]
    ended = (
        [trial for trial in study.trials if trial.state.name == "COMPLETE"]
        if len(signs) == 1
        else study.best_trials
    )
    ended.sort(
        key=lambda trial: ([s * value for s, value in zip(signs, trial.values, strict=True)], trial.number)
    )
    distinct = {repr(sorted(trial.params.items())): trial for trial in reversed(ended)}
    best = [trial for trial in ended if distinct[repr(sorted(trial.params.items()))] is trial][:top]
    if len(best) < 2:
        raise StudyError(
            f"study {study.study_name!r} has {len(best)} trials with a value: there is nothing to choose"
        )
    return best


def _can_be_written(key: str, value: Any) -> bool:
    """Further keys of an arm are texts and numbers; the parameters themselves are in `OptunaMeasure`."""
    return key not in RESERVED_KEYS and isinstance(value, (str, int, float))


@dataclass(frozen=True)
class OptunaMeasure:
    """Measures an arm on a seed by Optuna's objective."""

    objective: Callable[..., Any]
    params: dict[str, dict[str, Any]]
    names: tuple[str, ...]

    def __call__(self, arm: str, item: Any) -> Mapping[str, Any]:
        """Values by name of the objective."""
        from optuna.trial import FixedTrial

        trial = FixedTrial(self.params[arm], number=item if isinstance(item, int) else 0)
        more = [item] if len(inspect.signature(self.objective).parameters) > 1 else []
        told = self.objective(trial, *more)
        if isinstance(told, Mapping):
            return told
        values = told if isinstance(told, Sequence) else [told]
        if len(values) != len(self.names):
            raise StudyError(f"the objective gave {len(values)} values for {', '.join(self.names)}")
        return dict(zip(self.names, values, strict=True))
