"""Many runs of many cells, on threads or on a cluster; with a folder, they survive a kill."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from lexbandits.blocks import PER_PULL, Runs, recording_rounds, run
from lexbandits.instance import Instance
from lexbandits.policies.base import Policy
from lexbandits.policies.checks import whole
from lexbandits.results import CellResults, Results
from lexbandits.simulate import check_match

__all__ = ["Cell", "Results", "sweep"]


class Cell(NamedTuple):
    """One entry of a sweep: a policy against an instance, for at most `horizon` pulls."""

    name: str
    policy: Policy
    instance: Instance
    horizon: int


def sweep(
    cells: Iterable[Cell],
    *,
    replications: int,
    seed: int = 0,
    n_jobs: int = 1,
    backend: str | None = None,
    out: str | Path | None = None,
    progress: bool = False,
) -> Results:
    """Run every cell `replications` times. The numbers depend on (seed, replication) alone."""
    checked = _checked_cells(cells)
    replications = whole("replications", replications, least=1)
    seed = whole("seed", seed, least=0)
    return Results(
        seed,
        {cell.name: described_cell(cell, play_block(cell, seed, 0, replications)) for cell in checked},
    )


def play_block(cell: Cell, seed: int, first: int, count: int) -> Runs:
    """Replications first .. first + count − 1 of a cell."""
    checkpoints = recording_rounds(cell.policy, cell.horizon)
    return Runs.gathered(
        first,
        [
            run(
                cell.policy,
                cell.instance,
                horizon=cell.horizon,
                seed=seed,
                replication=replication,
                checkpoints=checkpoints,
            )
            for replication in range(first, first + count)
        ],
    )


def described_cell(cell: Cell, runs: Runs) -> CellResults:
    """The runs of a cell with what is needed to read them."""
    return CellResults(
        cell.policy.name,
        cell.policy.settings,
        cell.instance,
        cell.horizon,
        PER_PULL,
        None if cell.policy.round_robin else recording_rounds(cell.policy, cell.horizon),
        runs,
    )


def _checked_cells(cells: Iterable[Cell]) -> Sequence[Cell]:
    try:
        given = list(cells)
    except TypeError:
        raise TypeError(f"cells must be a list of Cell, got {cells!r}") from None
    if not given:
        raise ValueError("a sweep needs at least one cell")
    checked: dict[str, Cell] = {}
    for cell in given:
        if not isinstance(cell, tuple) or len(cell) != 4:
            raise TypeError(f"a cell is Cell(name, policy, instance, horizon), got {cell!r}")
        name, policy, instance, horizon = cell
        if not isinstance(name, str):
            raise TypeError(f"a cell's name must be a string, got {name!r}")
        if not isinstance(policy, Policy):
            raise TypeError(f"cell {name!r}: policy must be a Policy, got {policy!r}")
        if not isinstance(instance, Instance):
            raise TypeError(f"cell {name!r}: instance must be an Instance, got {instance!r}")
        check_match(policy, instance)
        if name in checked:
            raise ValueError(f"cell names must differ, got {name!r} twice")
        checked[name] = Cell(name, policy, instance, whole(f"horizon of cell {name!r}", horizon, least=0))
    return list(checked.values())
