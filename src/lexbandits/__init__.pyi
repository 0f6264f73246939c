"""The public names and where they live, read by type checkers and by `__init__.py`."""

from lexbandits import theory as theory
from lexbandits.jit import kernel as kernel
from lexbandits.policies import *  # noqa: F403
from lexbandits.policies import BY_NAME as BY_NAME
from lexbandits.policies.base import Arms as Arms
from lexbandits.policies.base import Elimination as Elimination
from lexbandits.policies.base import Rules as Rules
from lexbandits.policies.base import untried as untried
from lexbandits.simulation.results import Results as Results
from lexbandits.simulation.sweep import Cell as Cell
from lexbandits.simulation.sweep import sweep as sweep
from lexbandits.simulation.trajectory import Trajectory as Trajectory
from lexbandits.simulation.trajectory import simulate as simulate
from lexbandits.theory.lower_bound import CharacteristicTime as CharacteristicTime
from lexbandits.theory.lower_bound import characteristic_time as characteristic_time
from lexbandits.theory.lower_bound import sample_lower_bound as sample_lower_bound
from lexbandits.world.examples import paper_instance as paper_instance
from lexbandits.world.examples import random_instance as random_instance
from lexbandits.world.instance import Instance as Instance

__version__: str
