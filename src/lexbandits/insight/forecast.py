"""What a study will cost, before it starts and while it runs: the same policy played on, many times."""

import copy
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import positive, real, whole
from lexbandits.insight.beliefs import (
    Beliefs,
    Guess,
    Measured,
    MissingGuess,
    coins_of,
    kinds_of,
    offered_arms,
)
from lexbandits.insight.futures import go_on
from lexbandits.insight.words import about, listed, percent, span
from lexbandits.policies.lexelim_tol import LexElimTol
from lexbandits.study.fold import Fold
from lexbandits.study.ledger import EXPIRED, FAILED, IMPORTED, LATE, TOLD
from lexbandits.study.spec import Spec, words_from_toml
from lexbandits.study.study import Study
from lexbandits.world.noise import stream

MOST = 200_000  # results after which a future is given up: it says "more than"
RELAXED_RUNS = 40  # futures per row of what to relax, compared with the same futures as they are
WORLDS = 20  # drawn from guessed ranges


class Range(NamedTuple):
    """The 10, 50 and 90 % quantiles of what the futures gave."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Relaxation:
    """What doubling one setting would save, in results on average over the same futures; less than 0: cost.

    `error` is the standard error of `saves`. A wider tolerance can cost more: an arm that was clearly
    worse than what matters may come to lie where it is neither clearly worse nor clearly as good.
    """

    setting: str  # "tolerance", "resolution" or "delta"
    objective: str | None
    now: float
    then: float
    results: Range  # still needed then
    saves: float
    error: float

    @property
    def sentence(self) -> str:
        """In words."""
        of = f" of {self.objective}" if self.objective else ""
        return f"{self.setting}{of} {self.now:g} → {self.then:g} {self.effect}"

    @property
    def effect(self) -> str:
        """What it does, in words."""
        if abs(self.saves) <= max(2 * self.error, 0.5):
            return "makes no difference that shows"
        return (
            f"saves about {about(self.saves)} results"
            if self.saves > 0
            else f"costs about {about(-self.saves)} more"
        )


@dataclass(frozen=True)
class Forecast:
    """What `runs` futures of a study say; results are those still needed.

    `winners`: the share of futures that each arm wins. `within`: the share that ends before the budget
    or the items are spent; None without either. `more_than`: the share given up after `most` results.
    `median_case` and `worst_case`, if the means were guessed as ranges: of the worlds in these ranges
    the results needed (at the median) in the middle one and in the worst one. `ends`: every future's.
    """

    results: Range
    by_objective: dict[str, Range]
    by_arm: dict[str, Range]
    winners: dict[str, float]
    relax: tuple[Relaxation, ...]
    measured: int
    runs: int
    most: int
    more_than: float = 0.0
    within: float | None = None
    cost: Range | None = None
    seconds: Range | None = None
    median_case: float | None = None
    worst_case: float | None = None
    ends: tuple[int, ...] = field(default=(), repr=False)

    @property
    def sentence(self) -> str:
        """The forecast in one sentence."""
        if self.results.high == 0:
            return "No more results are needed."
        low, median, high = self.results
        end = f"more than {about(high)}" if high >= self.most else about(high)
        more = "more results" if self.measured else "results"
        text = f"About {about(median)} {more} should end the study ({about(low)} to {end} in 8 of 10 futures)"
        best = max(self.winners, key=self.winners.__getitem__)
        return f"{text}; {best} wins {percent(self.winners[best])} of them."

    @property
    def lines(self) -> list[str]:
        """All of it in sentences."""
        lines = [self.sentence]
        if self.cost is not None:
            low, median, high = self.cost
            lines.append(f"They cost about {median:,.4g} ({low:,.4g} to {high:,.4g}).")
        if self.seconds is not None:
            low, median, high = self.seconds
            lines.append(f"They take about {span(median)} ({span(low)} to {span(high)}).")
        if self.within is not None:
            lines.append(
                f"{percent(self.within)} of the futures end before the budget or the items are spent."
            )
        if self.worst_case is not None and self.median_case is not None:
            middle, worst = about(self.median_case), about(self.worst_case)
            lines.append(f"In the middle of the ranges guessed it takes {middle}, in the worst case {worst}.")
        parts = [f"{name} {about(r.median)}" for name, r in self.by_objective.items() if r.high > 0]
        if parts:
            lines.append(f"Results while each objective is being settled: {listed(parts)}.")
        return lines + [f"Doubling the {row.sentence}." for row in self.relax]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers, without every single future."""
        words = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "ends"}
        rows = [{**row.__dict__, "results": list(row.results)} for row in self.relax]
        for key in ("by_objective", "by_arm"):
            words[key] = {name: list(found) for name, found in words[key].items()}
        for key in ("results", "cost", "seconds"):
            words[key] = None if words[key] is None else list(words[key])
        return {**words, "relax": rows, "sentence": self.sentence}


# --- the public functions


def forecast(
    what: LexElimTol | Mapping[str, Any] | Study | str | Path,
    guess: Any = None,
    *,
    sd: Any = None,
    shared: Any = 0.0,
    runs: int = 200,
    price: Any = None,
    seconds: float | None = None,
    seed: int = 0,
    most: int = MOST,
) -> Forecast:
    """What a study will need, by playing `runs` futures of it.

    what: the words of `create_study` as a table (with arms and objectives), a TOML file, a study, or a
    `LexElimTol`, whose arms and objectives go by number and of which more is better.
    guess: means as they would be measured, {arm: {objective: 0.8}}, or a table with a row per arm;
    instead of a number a range (low, high). Not needed for what has been measured at least 5 times.
    sd: standard deviation of one value, per objective; not needed for "bernoulli", "sub_gaussian" and
    "exact". shared: the correlation of two arms' values on the same item, one number or per objective.
    price: of one result, a number or {arm: number}. seconds: per result, with all workers; a study that
    has measured knows its own.
    """
    if isinstance(what, Study):
        return of_study(what, guess, sd=sd, shared=shared, runs=runs, price=price, seconds=seconds, seed=seed)
    if isinstance(what, LexElimTol):
        question = _Question.of_policy(what)
    else:
        words = dict(words_from_toml(what) if isinstance(what, (str, Path)) else what)
        words.pop("storage", None)
        question = _Question.of_spec(Spec.from_json({"name": "forecast", **words}))
    return question.forecast(guess, sd, shared, runs, price, seconds, seed, most)


def of_study(
    study: Study,
    guess: Any = None,
    *,
    sd: Any = None,
    shared: Any = 0.0,
    runs: int = 200,
    price: Any = None,
    seconds: float | None = None,
    seed: int = 0,
    most: int = MOST,
) -> Forecast:
    """`forecast` of a study from where it stands."""
    question = _Question.of_fold(study._settled())
    return question.forecast(guess, sd, shared, runs, price, seconds, seed, most)


# --- what is asked, and what is known


@dataclass(frozen=True)
class _Change:
    """One setting doubled."""

    setting: str
    objective: str | None
    now: float
    then: float
    policy: LexElimTol


@dataclass(frozen=True)
class _Question:
    """A policy with the names and directions in which people speak of its arms and objectives."""

    policy: LexElimTol
    arms: list[str]
    objectives: list[str]
    signs: Vector
    measured: Measured
    changes: list[_Change]
    missing: Vector | None = None
    room: float = math.inf  # results until the budget or the items are spent
    pace: float | None = None  # seconds per result, measured
    waiting: int = 0  # results told that wait for their pass

    @classmethod
    def of_policy(cls, policy: LexElimTol) -> "_Question":
        m = policy.n_objectives
        names = [str(i) for i in range(m)]
        measured = Measured(policy, {}, coins_of(policy))
        changes = _changes(policy, [(names[i], i) for i in range(m)])
        return cls(policy, [str(a) for a in range(policy.max_arms)], names, np.ones(m), measured, changes)

    @classmethod
    def of_spec(cls, spec: Spec) -> "_Question":
        policy = LexElimTol(**spec.policy_settings())
        measured = Measured(policy, {}, _coins(spec))
        arms = [arm["name"] for arm in spec.arms]
        changes = _spec_changes(policy, spec)
        room = math.inf if spec.budget is None else float(spec.budget)
        if spec.items is not None:
            room = min(room, float(len(spec.items) * len(arms)))
        return cls(policy, arms, list(spec.names), spec.signs, measured, changes, room=room)

    @classmethod
    def of_fold(cls, fold: Fold) -> "_Question":
        ledger, spec = fold.ledger, fold.ledger.spec
        policy: Any = copy.copy(fold.policy)
        states, arms, values = ledger.column("state"), ledger.column("arm"), ledger.column("values")
        counted = (states == TOLD) | (states == IMPORTED)
        signed = spec.signed(values)
        known = {}
        for arm in range(len(ledger.arm_names)):
            for i in range(len(spec.names)):
                column = signed[counted & (arms == arm), i]
                known[arm, i] = column[~np.isnan(column)]
        coins = tuple(
            bool(
                coin and all(np.isin(np.abs(known[a, i]), (0.0, 1.0)).all() for a in range(len(ledger.arms)))
            )
            for i, coin in enumerate(_coins(spec))
        )
        lost = (states == FAILED) | (states == EXPIRED) | (states == LATE)
        missing = _missing(spec, policy, arms, values, counted, lost)
        resolved = ledger.column("resolved")[counted & (states != IMPORTED)][-1000:]
        pace = float(np.ptp(resolved)) / (resolved.size - 1) if resolved.size >= 20 else None
        room = (
            math.inf if ledger.budget is None else float(ledger.budget - ledger.handed_out + len(ledger.open))
        )
        if math.isfinite(ledger.passes):
            room = min(room, (ledger.passes - policy.folded) * len(policy.candidates))
        return cls(
            policy,
            list(ledger.arm_names),
            list(spec.names),
            spec.signs,
            Measured(policy, known, coins),
            _spec_changes(policy, spec),
            missing,
            room,
            pace or None,
            len(policy._waiting),
        )

    # --- the forecast

    def forecast(
        self,
        guess: Any,
        sd: Any,
        shared: Any,
        runs: int,
        price: Any,
        seconds: float | None,
        seed: int,
        most: int,
    ) -> Forecast:
        runs, seed = whole("runs", runs, least=1), whole("seed", seed, least=0)
        most = whole("most", most, least=1)
        prices = None if price is None else self._prices(price)
        pace = self.pace if seconds is None else positive("seconds", seconds)
        beliefs = self._beliefs(guess, sd, shared)
        futures = _play(self.policy, beliefs, runs, seed, most)
        needed = np.maximum(futures.ends - self.waiting, 0)
        relax = tuple(self._relaxed(change, beliefs, futures, seed, most) for change in self.changes)
        middle = worst = None
        if beliefs.guess is not None and not np.array_equal(
            beliefs.guess.low, beliefs.guess.high, equal_nan=True
        ):
            middle, worst = _cases(self.policy, beliefs, runs, seed, most)
        offered = offered_arms(self.policy)
        return Forecast(
            results=_range(needed),
            by_objective={
                self.objectives[i]: _range(futures.spent[:, i]) for i in self.policy.state.order.tolist()
            },
            by_arm={self.arms[a]: _range(futures.pulls[:, a]) for a in offered},
            winners={self.arms[a]: float(np.mean(futures.winners == a)) for a in offered},
            relax=relax,
            measured=self.policy.rounds,
            runs=runs,
            most=most,
            more_than=float(np.mean(futures.ends >= most)),
            within=None if math.isinf(self.room) else float(np.mean(needed <= self.room)),
            cost=None if prices is None else _range(futures.pulls @ prices),
            seconds=None if pace is None else _range(needed * pace),
            median_case=middle,
            worst_case=worst,
            ends=tuple(np.sort(needed).tolist()),
        )

    def _relaxed(
        self, change: _Change, beliefs: Beliefs, futures: "_Futures", seed: int, most: int
    ) -> Relaxation:
        runs = min(RELAXED_RUNS, futures.ends.size)
        then = _play(change.policy, beliefs, runs, seed, most).ends
        less = futures.ends[:runs] - then
        error = float(np.std(less)) / math.sqrt(runs)
        words = change.setting, change.objective, change.now, change.then
        return Relaxation(*words, _range(then), float(np.mean(less)), error)

    def _prices(self, price: Any) -> Vector:
        if isinstance(price, Mapping):
            unknown = [arm for arm in price if arm not in self.arms]
            if unknown:
                raise ValueError(
                    f"price: no arm {unknown[0]!r}; there are {listed(list(map(repr, self.arms)))}"
                )
            lacking = [arm for arm in self.arms if arm not in price]
            if lacking:
                raise ValueError(f"price lacks arm {lacking[0]!r}")
            given = [positive(f"the price of {arm!r}", price[arm]) for arm in self.arms]
        else:
            given = [positive("price", price)] * len(self.arms)
        return np.array([*given, *[0.0] * (self.policy.max_arms - len(given))])

    def _beliefs(self, guess: Any, sd: Any, shared: Any) -> Beliefs:
        asked = None if guess is None else self._guess(guess, sd, shared)
        try:
            return Beliefs(self.measured, asked, self.missing)
        except MissingGuess as lack:
            arm, objective = self.arms[lack.arm], self.objectives[lack.objective]
            if lack.what == "sd":
                way = f"sd={{{objective!r}: …}}"
                raise ValueError(
                    f"a forecast needs the standard deviation of one value on {objective!r}: say {way}"
                ) from None
            way = f"guess={{{arm!r}: {{{objective!r}: …}}, …}}"
            raise ValueError(
                f"arm {arm!r} has too few results on {objective!r} to forecast from: say {way}"
            ) from None

    # --- guesses

    def _guess(self, guess: Any, sd: Any, shared: Any) -> Guess:
        K, m = self.policy.max_arms, self.policy.n_objectives
        low, high = np.full((K, m), math.nan), np.full((K, m), math.nan)
        rows = guess.items() if isinstance(guess, Mapping) else zip(self.arms, guess, strict=False)
        if not isinstance(guess, Mapping) and len(guess) != len(self.arms):
            raise ValueError(
                f"guess must have a row per arm ({', '.join(map(repr, self.arms))}), got {len(guess)}"
            )
        for arm, row in rows:
            a = self._index("guess", self.arms, arm, "arm")
            cells = row.items() if isinstance(row, Mapping) else zip(self.objectives, row, strict=True)
            for objective, cell in cells:
                i = self._index(f"guess of {arm!r}", self.objectives, objective, "objective")
                ends = sorted(
                    self.signs[i] * end for end in _ends(f"the guess of {arm!r}, {objective!r}", cell)
                )
                kind = kinds_of(self.policy)[i]
                if not kind.low <= ends[0] <= ends[1] <= kind.high:
                    bounds = sorted((self.signs[i] * kind.low + 0.0, self.signs[i] * kind.high + 0.0))
                    where = f"[{bounds[0]:g}, {bounds[1]:g}]"
                    raise ValueError(
                        f"the guess of {arm!r} on {objective!r} must be in {where}, got {cell!r}"
                    )
                low[a, i], high[a, i] = ends
        deviations = self._per_objective("sd", sd, math.nan)
        correlations = self._per_objective("shared", shared, 0.0)
        if not ((correlations >= 0) & (correlations < 1)).all():
            raise ValueError(f"shared must be at least 0 and below 1, got {shared!r}")
        return Guess(low, high, deviations, correlations, self.measured.coins)

    def _per_objective(self, name: str, given: Any, default: float) -> Vector:
        m = len(self.objectives)
        found = np.full(m, default)
        if isinstance(given, Mapping):
            for objective, number in given.items():
                i = self._index(name, self.objectives, objective, "objective")
                found[i] = real(f"{name} of {objective!r}", number)
        elif isinstance(given, (Sequence, np.ndarray)):
            if len(given) != m:
                raise ValueError(f"{name} must be one number or one per objective ({m}), got {given!r}")
            found[:] = [math.nan if v is None else real(name, v) for v in given]
        elif given is not None:
            found[:] = real(name, given)
        return found

    @staticmethod
    def _index(what: str, names: list[str], name: Any, kind: str) -> int:
        if str(name) not in names:
            raise ValueError(f"{what}: no {kind} {name!r}; there are {', '.join(map(repr, names))}")
        return names.index(str(name))


def _ends(what: str, cell: Any) -> tuple[float, float]:
    if isinstance(cell, (Sequence, np.ndarray)) and not isinstance(cell, str):
        if len(cell) != 2:
            raise ValueError(f"{what} must be a number or a range (low, high), got {cell!r}")
        return real(what, cell[0]), real(what, cell[1])
    return real(what, cell), real(what, cell)


def _coins(spec: Spec) -> tuple[bool, ...]:
    return tuple(objective.noise == "bernoulli" for objective in spec.objectives)


def _missing(spec: Spec, policy: LexElimTol, arms: Counts, values: Vector, counted: Any, lost: Any) -> Vector:
    """(K, m) how often an arm's value was missing, where no value stands for it."""
    K, m = policy.max_arms, policy.n_objectives
    missing = np.zeros((K, m))
    for arm in np.unique(arms).tolist():
        mine = arms == arm
        told, gone = int((mine & counted).sum()), int((mine & lost).sum())
        for i, objective in enumerate(spec.objectives):
            instead = objective.if_failed is not None or objective.if_expired is not None
            absent = int(np.isnan(values[mine & counted, i]).sum()) + (0 if instead else gone)
            if told + gone:
                missing[arm, i] = min(absent / (told + gone), 0.99)
    return missing


# --- settings that may be doubled


def _changes(policy: LexElimTol, objectives: list[tuple[str, int]]) -> list[_Change]:
    """Doubled tolerances and resolutions of a policy without words; a resolution not given follows."""
    m, settings = policy.n_objectives, policy.settings
    tolerances = np.broadcast_to(np.asarray(settings["tolerance"], float), (m,)).copy()
    given = settings["resolution"]
    resolutions = tolerances if given is None else np.broadcast_to(np.asarray(given, float), (m,)).copy()
    rows = []
    for name, i in objectives:
        twice = np.where(np.arange(m) == i, 2.0, 1.0)
        if tolerances[i] > 0:
            both = {
                "tolerance": tolerances * twice,
                "resolution": resolutions * (twice if given is None else 1),
            }
            rows.append(_change(policy, "tolerance", name, tolerances[i], both))
        if resolutions[i] > 0:
            both = {"tolerance": tolerances, "resolution": resolutions * twice}
            rows.append(_change(policy, "resolution", name, resolutions[i], both))
    return rows + _doubled_delta(policy)


def _spec_changes(policy: LexElimTol, spec: Spec) -> list[_Change]:
    """What `Study.amend` with twice the tolerance or resolution would make of the policy."""
    if policy.finished:
        return []
    rows = []
    for objective in spec.objectives:
        found = {"tolerance": objective.tolerance_in_unit, "resolution": objective.resolution_in_unit}
        for setting, now in found.items():
            if now > 0 and (setting == "resolution" or objective.target is None):
                then = spec.changed(objective.name, **{setting: 2 * now})
                both = {"tolerance": then.tolerances, "resolution": then.resolutions}
                rows.append(_change(policy, setting, objective.name, now, both))
    return rows + _doubled_delta(policy)


def _change(policy: LexElimTol, setting: str, name: str, now: float, both: dict[str, Any]) -> _Change:
    return _Change(setting, name, float(now), 2 * float(now), policy.amended(**both))


def _doubled_delta(policy: LexElimTol) -> list[_Change]:
    """Only before anything is measured: delta may not be changed after looking."""
    delta = policy.settings["delta"]
    if policy.rounds or 2 * delta >= 1:
        return []
    return [_Change("delta", None, delta, 2 * delta, LexElimTol(**{**policy.settings, "delta": 2 * delta}))]


# --- playing


class _Futures(NamedTuple):
    ends: Counts  # (runs,) results
    spent: Counts  # (runs, m) by objective being settled
    pulls: Counts  # (runs, K)
    winners: Counts  # (runs,)


def _play(policy: LexElimTol, beliefs: Beliefs, runs: int, seed: int, most: int) -> _Futures:
    """Futures 0 .. runs − 1, each a function of (seed, its number) alone."""
    K, m = policy.max_arms, policy.n_objectives
    found = _Futures(
        np.zeros(runs, np.int64),
        np.zeros((runs, m), np.int64),
        np.zeros((runs, K), np.int64),
        np.zeros(runs, np.int64),
    )

    def one(run: int) -> None:
        rng = stream(seed, run)
        world = beliefs.world(rng)
        future = copy.copy(policy)
        found.ends[run] = go_on(future.state, world, rng, most, found.spent[run], found.pulls[run])
        found.winners[run] = future.recommendation

    one(0)  # compiled once, before the threads
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(one, range(1, runs)))
    return found


def _cases(policy: LexElimTol, beliefs: Beliefs, runs: int, seed: int, most: int) -> tuple[float, float]:
    """Median results in the middle and in the worst of some worlds from the guessed ranges."""
    each = max(5, runs // WORLDS)
    medians = []
    for number in range(WORLDS):
        where = stream(seed, 10**6 + number).random(beliefs.known.shape)
        fixed = beliefs.narrowed(where)
        medians.append(float(np.median(_play(policy, fixed, each, seed, most).ends)))
    return float(np.median(medians)), max(medians)


def _range(values: Vector | Counts) -> Range:
    return Range(*np.quantile(values, (0.1, 0.5, 0.9)).tolist())
