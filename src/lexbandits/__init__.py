"""Which option is best when several noisy measures matter in strict order of priority?

Names are loaded on first use, so that `import lexbandits` costs nothing it does not need.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lexbandits import theory as theory
    from lexbandits.instance import Instance as Instance
    from lexbandits.instance import paper_instance as paper_instance
    from lexbandits.instance import random_instance as random_instance
    from lexbandits.jit import kernel as kernel
    from lexbandits.lower_bound import CharacteristicTime as CharacteristicTime
    from lexbandits.lower_bound import characteristic_time as characteristic_time
    from lexbandits.lower_bound import sample_lower_bound as sample_lower_bound
    from lexbandits.policies import BY_NAME as BY_NAME
    from lexbandits.policies import Elimination as Elimination
    from lexbandits.policies import Policy as Policy
    from lexbandits.policies import Rules as Rules
    from lexbandits.policies.base import Arms as Arms
    from lexbandits.policies.base import untried as untried
    from lexbandits.policies.exponential_gap import ExponentialGapElimination as ExponentialGapElimination
    from lexbandits.policies.lexelim_cone import LexElimCone as LexElimCone
    from lexbandits.policies.lexelim_in import LexElimIn as LexElimIn
    from lexbandits.policies.lexelim_out import LexElimOut as LexElimOut
    from lexbandits.policies.lexelim_phase import LexElimPhase as LexElimPhase
    from lexbandits.policies.lexelim_pool import LexElimPool as LexElimPool
    from lexbandits.policies.lexelim_tol import LexElimTol as LexElimTol
    from lexbandits.policies.moss import MOSSAnytime as MOSSAnytime
    from lexbandits.policies.pf_lex import PFLex as PFLex
    from lexbandits.policies.round_robin import RoundRobin as RoundRobin
    from lexbandits.policies.thompson import ThompsonSampling as ThompsonSampling
    from lexbandits.policies.ucb1 import UCB1 as UCB1
    from lexbandits.policies.ucb_alpha import UCBAlpha as UCBAlpha
    from lexbandits.results import Results as Results
    from lexbandits.simulate import Trajectory as Trajectory
    from lexbandits.simulate import simulate as simulate
    from lexbandits.sweep import Cell as Cell
    from lexbandits.sweep import sweep as sweep

__version__ = "0.1.0"

_HOMES = {
    "instance": ("Instance", "paper_instance", "random_instance"),
    "jit": ("kernel",),
    "policies": (
        "BY_NAME", "Elimination", "Policy", "Rules",
        "LexElimOut", "LexElimIn", "LexElimCone", "LexElimPool", "LexElimPhase", "LexElimTol",
        "ExponentialGapElimination", "UCBAlpha", "PFLex",
        "UCB1", "MOSSAnytime", "ThompsonSampling", "RoundRobin",
    ),
    "policies.base": ("Arms", "untried"),
    "simulate": ("Trajectory", "simulate"),
    "results": ("Results",),
    "sweep": ("Cell", "sweep"),
    "lower_bound": ("CharacteristicTime", "characteristic_time", "sample_lower_bound"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", "theory", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name == "theory":
        return import_module("lexbandits.theory")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lexbandits' has no attribute {name!r}")
    value = getattr(import_module(f"lexbandits.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    # The import system binds a submodule as an attribute when it is first imported; here `simulate`
    # and `sweep` are the functions, whoever imported their modules first.
    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
