"""The public names and where they live, read by type checkers and by `__init__.py`."""

from lexbandits import read as read
from lexbandits import theory as theory
from lexbandits.forecasting.forecast import Forecast as Forecast
from lexbandits.forecasting.forecast import forecast as forecast
from lexbandits.insight import plot as plot
from lexbandits.jit import kernel as kernel
from lexbandits.judging.verdict import Verdict as Verdict
from lexbandits.judging.verdict import judge as judge
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
from lexbandits.study.errors import AuthError as AuthError
from lexbandits.study.errors import ConflictError as ConflictError
from lexbandits.study.errors import SpecMismatchError as SpecMismatchError
from lexbandits.study.errors import StorageBusyError as StorageBusyError
from lexbandits.study.errors import StorageError as StorageError
from lexbandits.study.errors import StorageVersionError as StorageVersionError
from lexbandits.study.errors import StudyError as StudyError
from lexbandits.study.errors import StudyExistsError as StudyExistsError
from lexbandits.study.errors import StudyFinished as StudyFinished
from lexbandits.study.errors import StudyPaused as StudyPaused
from lexbandits.study.errors import StudyWaiting as StudyWaiting
from lexbandits.study.errors import UnknownArmError as UnknownArmError
from lexbandits.study.errors import UnknownStudyError as UnknownStudyError
from lexbandits.study.errors import UnknownTrialError as UnknownTrialError
from lexbandits.study.errors import ValueOutOfRange as ValueOutOfRange
from lexbandits.study.measure.optuna import from_optuna as from_optuna
from lexbandits.study.objective import Objective as Objective
from lexbandits.study.study import Study as Study
from lexbandits.study.study import create_study as create_study
from lexbandits.study.study import delete_study as delete_study
from lexbandits.study.study import list_studies as list_studies
from lexbandits.study.study import open_study as open_study
from lexbandits.study.study import study_from_toml as study_from_toml
from lexbandits.study.trial import Trial as Trial
from lexbandits.theory.lower_bound import CharacteristicTime as CharacteristicTime
from lexbandits.theory.lower_bound import characteristic_time as characteristic_time
from lexbandits.theory.lower_bound import sample_lower_bound as sample_lower_bound
from lexbandits.theory.regret import RegretConstants as RegretConstants
from lexbandits.theory.regret import regret_constants as regret_constants
from lexbandits.theory.tolerance import ToleranceTime as ToleranceTime
from lexbandits.theory.tolerance import tolerance_time as tolerance_time
from lexbandits.world.examples import paper_instance as paper_instance
from lexbandits.world.examples import random_instance as random_instance
from lexbandits.world.instance import Instance as Instance

__version__: str
