"""What a sweep found: tables, regret curves, identification rounds and error rates."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._extras import need
from lexbandits._jit import entry
from lexbandits._validation import one_of, probability
from lexbandits.curves import Figure
from lexbandits.environments.instance import Distribution, Instance
from lexbandits.policies.base import LEFT_AT, Elimination
from lexbandits.simulation.promise import kept, lex_optimal
from lexbandits.simulation.regret_curves import charges, rebuild
from lexbandits.simulation.replicate import Runs
from lexbandits.simulation.store import Store, block_size

if TYPE_CHECKING:
    import pandas as pd


class CellInfo(NamedTuple):
    """A cell without its policy object: what is needed to read its runs."""

    policy: str
    settings: dict[str, Any]
    instance: Instance
    horizon: int
    stream: str  # "per pull", or "sums" where the noise of many pulls was drawn as one number
    recording: Counts | None  # (C,) rounds at which pulls were kept; None: eliminations tell them all
    code: dict[str, str | None]  # digests of a policy and a sampler from outside the package: `code_of`


class Results:
    """The replications of every cell; cells are asked for by name.

    Args:
        seed: of the sweep.
        cells: what each cell was.
        runs: the raw arrays of each, one row per replication.

    >>> import lexbandits as lb
    >>> instance = lb.Instance([[0.9], [0.1]], noise_sd=0.1)
    >>> policy = lb.LexElimPool(2, 1, delta=0.05, tradeoff=0, noise_sd=0.1)
    >>> results = lb.sweep([lb.simulation.Cell("easy", policy, instance, horizon=1000)], replications=20)
    >>> int(results.frame()["correct"].sum()), results.error_rates()["wrong"].tolist()
    (20, [0])
    """

    def __init__(self, seed: int, cells: Mapping[str, CellInfo], runs: Mapping[str, Runs]) -> None:
        self.seed = seed
        self.cells = dict(cells)
        self.runs = dict(runs)

    def frame(self) -> "pd.DataFrame":
        """One row per cell and replication.

        `stopped`: the policy had its answer. `rounds`: pulls made, at most the horizon. `correct`: the
        answer is what the policy promises. That is the lex-optimal arm, and for LexElimTol an arm acceptable
        under its tolerances. Where target_size k is above 1 it is exactly k best arms of its objective.
        `lex_optimal`: the recommendation is the lex-optimal arm, promised or not.
        """
        frame: pd.DataFrame = need("pandas", "a table").DataFrame(self._columns())
        return frame

    def _columns(self) -> dict[str, Any]:
        return {
            "cell": [name for name, runs in self.runs.items() for _ in runs.rounds],
            "replication": self._column(lambda cell, runs: runs.replication, np.int64),
            "stopped": self._column(lambda cell, runs: runs.stopped, np.bool_),
            "rounds": self._column(lambda cell, runs: runs.rounds, np.int64),
            "recommendation": self._column(lambda cell, runs: runs.recommendation, np.int64),
            "correct": self._column(_correct, np.bool_),
            "lex_optimal": self._column(lambda cell, runs: lex_optimal(cell.instance, runs), np.bool_),
        }

    def regret(self, cell: str, checkpoints: ArrayLike, kind: str = "general") -> Vector:
        """(replications, `checkpoints`, m) R^i of a `cell` after that many rounds, "general" or "priority".

        After the end the recommendation is played on. Exact for round-robin policies, and for the others at
        rounds of two digits (1 … 99, 100, 110, …) and at the end; in between their curve is a straight line.
        `kind` is as for `Trajectory.regret`.
        """
        chosen, runs = self._cell(cell)
        rounds = np.atleast_1d(np.asarray(checkpoints))
        if rounds.ndim != 1 or rounds.dtype.kind not in "iu":
            raise TypeError(f"checkpoints must be a list of integers, got {checkpoints!r}")
        if rounds.size and not (rounds.min() >= 0 and rounds.max() <= chosen.horizon):
            raise ValueError(f"checkpoints must be in 0..{chosen.horizon}, the horizon, got {checkpoints!r}")
        rounds = rounds.astype(np.int64)
        rates = charges(chosen.instance, kind)
        curves = np.zeros((runs.rounds.size, rounds.size, rates.shape[1]))
        if chosen.recording is None:
            order = np.argsort(rounds, kind="stable")
            within = np.minimum(rounds[order], runs.rounds[:, None])
            for r in range(runs.rounds.size):
                entry(rebuild, bulk=True)(runs.left[r, :, LEFT_AT], within[r], rates, curves[r])
            curves[:, order] = curves.copy()
        else:
            for r in range(runs.rounds.size):
                known = np.searchsorted(chosen.recording, runs.rounds[r])
                knots = np.concatenate(([0], chosen.recording[:known], runs.rounds[r : r + 1]))
                pulls = np.vstack((np.zeros_like(runs.pulls[r]), runs.pulls_at[r, :known], runs.pulls[r]))
                for i, values in enumerate((pulls @ rates).T):
                    curves[r, :, i] = np.interp(rounds, knots, values)
        beyond = np.maximum(rounds - runs.rounds[:, None], 0)
        return curves + beyond[:, :, None] * rates[runs.recommendation][:, None, :]

    def regret_table(self, checkpoints: ArrayLike | None = None, form: str = "frame") -> Any:
        """Regret of every cell after `checkpoints` rounds, its horizon if None.

        `form` "frame": one row per cell, round and objective; "markdown" or "latex": a table for a page or a
        paper, objectives side by side, standard errors rounded up.
        """
        from lexbandits.simulation import output

        one_of("form", form, ("frame", "markdown", "latex"))
        rows = output.regret_rows(self, checkpoints)
        if form == "frame":
            return need("pandas", "a table").DataFrame(rows)
        lines = output.regret_lines(rows)
        return output.as_markdown(lines) if form == "markdown" else output.as_latex(lines)

    def regret_figure(
        self, *, quantile: float | None = None, bounds: Mapping[str, Sequence[float]] | None = None
    ) -> Figure:
        """Curves of mean regret with bands of two standard errors, a panel per objective, a line per cell.

        `quantile` adds that quantile of the runs as a thin line; `bounds` has constants c per objective by
        name and adds c·log t. A notebook shows the figure; `.save("regret.svg")` writes it.
        """
        from lexbandits.simulation.output import regret_figure

        return regret_figure(self, quantile=quantile, bounds=bounds)

    def identification_rounds(self, cell: str, kind: str = "prefix") -> Vector:
        """(replications, m) of a `cell`, by `kind`, nan where not reached: the first round after which every
        candidate is in O_*(i) ("prefix", T^i), or no worse than the lex-optimal arm on i ("objective", T̃^i).

        A candidate that leaves without an elimination, as in a policy that only stops, leaves at the end.
        """
        chosen, runs = self._cell(cell)
        instance = chosen.instance
        prefix = one_of("kind", kind, ("prefix", "objective")) == "prefix"
        wanted = instance.optimal_set if prefix else instance.objective_optimal_set
        left_at = runs.left[:, :, LEFT_AT]
        gone = np.where(left_at > 0, left_at, runs.rounds[:, None]).astype(np.float64)
        gone[runs.active] = np.nan
        reached = np.zeros((runs.rounds.size, instance.n_objectives))
        for i in range(instance.n_objectives):
            others = np.setdiff1d(np.arange(instance.n_arms), wanted(i))
            if others.size:
                reached[:, i] = gone[:, others].max(axis=1)
        return reached

    def error_rates(self, confidence: float = 0.95) -> "pd.DataFrame":
        """One row per cell: how often it stopped with a wrong answer, out of all replications.

        `low` and `high` are the exact (Clopper-Pearson) bounds at `confidence`. Runs that did not
        stop gave no answer: they are counted in `unstopped`, never as right or wrong.
        """
        frame: pd.DataFrame = need("pandas", "a table").DataFrame(self._error_rates(confidence))
        return frame

    def _error_rates(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        confidence = probability("confidence", confidence)
        rows = []
        for name, runs in self.runs.items():
            n = int(runs.rounds.size)
            wrong = int(np.sum(runs.stopped & ~_correct(self.cells[name], runs)))
            low, high = clopper_pearson(wrong, n, confidence)
            rows.append(
                {
                    "cell": name,
                    "replications": n,
                    "unstopped": int(np.sum(~runs.stopped)),
                    "wrong": wrong,
                    "rate": wrong / n if n else float("nan"),
                    "low": low,
                    "high": high,
                }
            )
        return rows

    def eliminations(self, cell: str, replication: int) -> tuple[Elimination, ...]:
        """Who left when in a `replication` of a `cell`, on which objective, by whom; by round, then arm."""
        _, runs = self._cell(cell)
        rows = np.flatnonzero(runs.replication == replication)
        if rows.size == 0:
            raise ValueError(f"cell {cell!r} has no replication {replication!r}")
        left = runs.left[rows[0]]
        out = [Elimination(arm, *map(int, left[arm])) for arm in np.flatnonzero(left[:, LEFT_AT]).tolist()]
        return tuple(sorted(out, key=lambda e: (e.round, e.arm)))

    @property
    def streams(self) -> dict[str, str]:
        """For each cell "per pull", or "sums" where the noise of many pulls was drawn as one number."""
        return {name: cell.stream for name, cell in self.cells.items()}

    def save(self, folder: str | Path) -> None:
        """Write everything to a new or matching folder, as `sweep(out=folder)` does."""
        told = {name: description(cell) for name, cell in self.cells.items()}
        with Store.prepared(folder, self.seed, told) as store:
            for name, runs in self.runs.items():
                blocks = runs.replication // block_size(self.cells[name].horizon)
                for block in np.unique(blocks):
                    store.write(name, runs.rows(blocks == block))

    @classmethod
    def load(cls, folder: str | Path) -> "Results":
        """Read a folder written by `save` or by `sweep(out=folder)`: the replications finished so far."""
        store = Store.opened(folder)
        read = {name: list(store.read(name).values()) for name in store.cells}
        runs = {name: Runs.joined(blocks) for name, blocks in read.items() if blocks}
        return cls(store.seed, {name: _from_description(store.cells[name]) for name in runs}, runs)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {runs.rounds.size}" for name, runs in self.runs.items())
        return f"Results({sizes})"

    def _column(self, of: Callable[[CellInfo, Runs], NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
        parts = [of(self.cells[name], runs) for name, runs in self.runs.items()]
        return np.concatenate([np.empty(0, dtype), *parts])

    def _cell(self, name: str) -> tuple[CellInfo, Runs]:
        if name not in self.cells:
            raise ValueError(f"no cell {name!r}; there are {', '.join(map(repr, self.cells))}")
        return self.cells[name], self.runs[name]


def description(cell: CellInfo) -> dict[str, Any]:
    """JSON: what must be equal for two sweeps to give the same numbers for a cell."""
    settings = cell.instance.settings
    if callable(settings["noise"]):
        settings["noise"] = _sampler_name(settings["noise"])
    recording = None if cell.recording is None else cell.recording.tolist()
    return {**cell._asdict(), "instance": settings, "recording": recording}


def _from_description(told: Mapping[str, Any]) -> CellInfo:
    instance = dict(told["instance"])
    if instance["noise"] not in set(Distribution):
        instance["noise"] = _StoredSampler(instance["noise"])
    recording = None if told["recording"] is None else np.array(told["recording"], np.int64)
    return CellInfo(**{**told, "instance": Instance(**instance), "recording": recording})


def _sampler_name(sampler: Any) -> str:
    if isinstance(sampler, _StoredSampler):
        return sampler.name
    kind = sampler if hasattr(sampler, "__qualname__") else type(sampler)
    return f"sampler {kind.__module__}.{kind.__qualname__}"


class _StoredSampler(NamedTuple):
    """Stands for a user's sampler in results read from disk, which keep its name only."""

    name: str

    def __call__(self, rng: np.random.Generator, arm: int) -> Vector:
        raise ValueError(f"{self.name} is not stored with results; give the instance again to simulate it")


def _correct(cell: CellInfo, runs: Runs) -> NDArray[np.bool_]:
    return kept(cell.policy, cell.settings, cell.instance, runs)


# --- what replications say of a mean and of a probability, and how well


def mean_and_error(values: NDArray[Any]) -> tuple[Any, Any]:
    """Mean over the first axis and its standard error; nan where there is too little.

    >>> mean_and_error(np.array([1.0, 2.0, 3.0]))[0]
    np.float64(2.0)
    """
    n = len(values)
    nothing = np.full(values.shape[1:], math.nan)[()]
    mean = np.mean(values, axis=0) if n else nothing
    return mean, np.std(values, axis=0, ddof=1) / math.sqrt(n) if n > 1 else nothing


def clopper_pearson(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability that was met `count` times in n."""
    from scipy.stats import beta

    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, count, n - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return low, high
