"""What `simulate` and `sweep` take and give, read by type checkers and by `__init__.py`."""

from lexbandits.simulation.oracle_settings import with_oracle_settings as with_oracle_settings
from lexbandits.simulation.results import Results as Results
from lexbandits.simulation.sweep import Cell as Cell
from lexbandits.simulation.trajectory import Trajectory as Trajectory
