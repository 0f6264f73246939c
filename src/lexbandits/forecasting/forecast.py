"""What a study will cost, before it starts and while it runs: the same policy played on, many times."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lexbandits import _jit
from lexbandits._arrays import Counts, Vector
from lexbandits._extras import MissingExtra
from lexbandits._validation import positive, suggesting, whole
from lexbandits.environments.noise import stream
from lexbandits.forecasting.posterior import Posterior, offered_arms
from lexbandits.forecasting.question import Change, Question, WhyMore
from lexbandits.forecasting.scenarios import ENOUGH, Futures, play
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.study.errors import study_errors
from lexbandits.study.number_format import about, listed, percent, span
from lexbandits.study.spec import Spec, fields_from_toml
from lexbandits.study.study import Study

MOST = 200_000  # results after which a future is given up: it says "more than"
SECONDS, MOST_INTERPRETED = 5.0, 10_000  # for all futures, and results of one, where nothing is compiled
MOST_WORK = (
    40_000_000  # results × arms × objectives of one future: seconds, compiled; of more not all are played
)
SECONDS_OF_LARGE = 20.0  # for all futures of such a study
LONGER = 1.2  # times the results, from which on it is said that a baseline takes them
RELAXED_RUNS = 40  # futures per row of what to relax, compared with the same futures as they are
SCENARIOS = 20  # drawn from ranges of the prior


COSTS = {
    WhyMore.TESTS_END: " (a change now ends the pre-registered tests)",
    WhyMore.TIE_GROWS: " (the tie grows with it, and excluding an arm takes more)",
    None: "",
}


class Range(NamedTuple):
    """The 10, 50 and 90 % quantiles of what the futures gave."""

    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Relaxation:
    """What doubling one setting would save of the results still needed (their median); less than 0: cost.

    `saves` is that share of them which it saves on average over the same futures, and `error` its standard
    error. A wider margin can cost more, and `why` says how. After the first result a change ends the
    pre-registered tests ("tests_end"). A tie that grows with its margin is harder to exceed ("tie_grows").
    """

    setting: str  # "margin" or "delta"; of a policy "tolerance" or "resolution"
    objective: str | None
    now: float
    then: float
    results: Range  # still needed then
    saves: float
    error: float
    why: WhyMore | None = None

    @property
    def sentence(self) -> str:
        """Say it in one sentence."""
        of = f" of {self.objective}" if self.objective else ""
        return f"{self.setting}{of} {self.now:g} → {self.then:g} {self.effect}"

    @property
    def shows(self) -> bool:
        """Whether it does anything that chance does not explain."""
        return abs(self.saves) > max(2 * self.error, 0.5)

    @property
    def effect(self) -> str:
        """What it does, in words."""
        if not self.shows:
            return "makes no difference that shows"
        if self.saves < 0:
            return f"costs about {about(-self.saves)} more{COSTS[self.why]}"
        return f"saves about {_results(self.saves)}"


@dataclass(frozen=True)
class Forecast:
    """What `runs` futures of a study say; results are those still needed.

    Attributes:
        results: (low, median, high) results, in 8 of 10 futures between low and high.
        by_objective: the same, while each objective is being settled.
        by_arm: the same, of each arm.
        on_worse: of the results, those of arms that are worse than may be given up.
        without_baseline: the median of results that the same futures need without a baseline; None if there
            is none.
        baseline: the arm in use, if there is one.
        winners: arm -> the share of futures that it wins.
        relax: what doubling each setting would save, in the same futures.
        measured: results that there are.
        runs, asked: futures played, and asked for. Fewer are played without a compiler, of a large study, or
            if the first are given up.
        most, more_than: results after which a future is given up, and the share of them that was.
        within: the share that ends before the budget or the items are spent; None without either.
        cost: of the results, if a price was given.
        seconds: until the end, if it is known how long a result takes.
        median_case, worst_case: results needed in the middle of the ranges given, and in the worst scenario.
        at_bounds: objectives of unknown spread, whose values are taken to lie at their bounds.
        ends: every future's results.

    >>> import lexbandits as lb
    >>> policy = lb.LexElimTol(2, 1, delta=0.05, tolerance=0.1, noise=("sub_gaussian", 0.2))
    >>> found = lb.forecast(policy, [[0.9], [0.4]], runs=20)
    >>> found.winners["0"], found.results.low > 0
    (1.0, True)
    """

    results: Range
    by_objective: dict[str, Range]
    by_arm: dict[str, Range]
    on_worse: Range
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
    without_baseline: float | None = None
    baseline: str | None = None
    at_bounds: tuple[str, ...] = ()
    asked: int = 0
    ends: tuple[int, ...] = field(default=(), repr=False)

    @property
    def sentence(self) -> str:
        """The forecast in one sentence."""
        if self.results.high == 0:
            return "No more results are needed."
        low, median, high = self.results
        end = f"more than {about(high)}" if high >= self.most else about(high)
        more = _results(median, "more " if self.measured else "")
        text = f"About {more} should end the study ({about(low)} to {end} in 8 of 10 futures)"
        best = max(self.winners, key=self.winners.__getitem__)
        return f"{text}; {best} wins {percent(self.winners[best])} of them."

    @property
    def lines(self) -> list[str]:
        """All of it in sentences."""
        if self.results.high == 0:
            return [self.sentence]
        lines = [self.sentence, *self.caution("sd={{{0!r}: …}}")]
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
            lines.append(f"In the middle of the ranges given it takes {middle}, in the worst case {worst}.")
        lines += self.notes
        parts = [f"{name} {about(r.median)}" for name, r in self.by_objective.items() if r.high > 0]
        if parts:
            lines.append(f"Results while each objective is being settled: {listed(parts)}.")
        return lines + [f"Doubling the {row.sentence}." for row in self.relax]

    @property
    def notes(self) -> list[str]:
        """How many results are of arms that nobody would want, and what a baseline costs."""
        notes, (low, median, high) = [], self.on_worse
        if high > 0:
            share = f"about {about(median)} ({about(low)} to {about(high)})"
            notes.append(f"Of these results, {share} come of arms worse than may be given up.")
        if self.without_baseline is not None and self.results.median > LONGER * self.without_baseline:
            notes.append(
                f"Without a baseline it would take about {about(self.without_baseline)}: to switch, an arm "
                f"must be better than {self.baseline} by more than the tie. A smaller tie= takes fewer."
            )
        return notes

    def caution(self, way: str) -> list[str]:
        """That a spread is not known and what says it: `way` with the objective's name put in."""
        why = MissingExtra("numba", "to play all") if not _jit.INSTALLED else "all would take too long"
        few = f"Only {self.runs} of {self.asked} futures were played: {why}."
        if self.more_than == 1.0 and self.runs >= ENOUGH:
            few = (
                f"The first {self.runs} futures all need more than {about(self.most)}: no others were played."
            )
        return [few] * (self.runs < self.asked) + [
            f"How far apart values of {name} lie is not known: they are taken to lie at the bounds, "
            f"which is the worst case. {way.format(name)} gives a closer forecast."
            for name in self.at_bounds
        ]

    def _repr_html_(self) -> str:
        from lexbandits.report.notebook import of_forecast

        return of_forecast(self)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers, without every single future."""
        fields = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "ends"}
        rows = [{**row.__dict__, "results": list(row.results)} for row in self.relax]
        for key in ("by_objective", "by_arm"):
            fields[key] = {name: list(found) for name, found in fields[key].items()}
        for key in ("results", "on_worse", "cost", "seconds"):
            fields[key] = None if fields[key] is None else list(fields[key])
        return {**fields, "relax": rows, "sentence": self.sentence}


@suggesting
def forecast(
    what: LexElimTol | Mapping[str, Any] | Study | str | Path,
    prior: Any = None,
    *,
    sd: Any = None,
    shared: Any = 0.0,
    runs: int = 200,
    price: Any = None,
    seconds: float | None = None,
    seed: int = 0,
    most: int = MOST,
) -> Forecast:
    """What a study will need, by playing futures of it.

    Args:
        what: the words of `create_study` as a table (with arms and objectives), a TOML file or a study. Or a
            `LexElimTol`, whose arms and objectives go by number; there more is better.
        prior: means as you expect to measure them, {arm: {objective: 0.8}}, or a table with a row per arm; a
            range (low, high) instead of a number. Not needed for what has been measured 5 times.
        sd: standard deviation of one value, per objective; not needed for "bernoulli", "sub_gaussian" and
            "exact", and where there are bounds they give the worst case.
        shared: the correlation of two arms' values on the same item, one number or per objective.
        runs: how many futures.
        price: of one result, a number or {arm: number}.
        seconds: per result, with all workers; a study that has measured knows its own.
        seed: of the futures.
        most: results after which a future is given up.
    """
    if isinstance(what, Study):
        with what._journal.lock:
            question = Question.of_fold(what._settled())
    elif isinstance(what, LexElimTol):
        question = Question.of_policy(what)
    else:
        fields = dict(fields_from_toml(what) if isinstance(what, (str, Path)) else what)
        fields.pop("storage", None)
        if isinstance(fields.get("arms"), Mapping):  # names and objects
            fields["arms"] = list(fields["arms"])
        question = Question.of_spec(Spec.from_json({"name": "forecast", **fields}))
    with study_errors(TypeError):
        runs, seed = whole("runs", runs, least=1), whole("seed", seed, least=0)
        most = whole("most", most, least=1)
        prices = None if price is None else question.prices(price)
        pace = question.pace if seconds is None else positive("seconds", seconds)
    posterior = question.posterior(prior, sd, shared)
    asked, limit = runs, math.inf
    each = question.policy.max_arms * question.policy.n_objectives
    if not _jit.INSTALLED:
        most, limit = min(most, MOST_INTERPRETED), SECONDS
    elif min(most, MOST) * each > MOST_WORK:
        most, limit = min(most, max(MOST_INTERPRETED, MOST_WORK // each)), SECONDS_OF_LARGE
    until = time.monotonic() + limit  # two thirds of the time for things as they are
    futures = play(
        question.policy, posterior, runs, seed, most, until - limit / 3 if limit < math.inf else until
    )
    runs = futures.ends.size
    needed = np.maximum(futures.ends - question.buffered, 0)
    middle_of_all = float(np.median(needed))
    relax = tuple(
        _relaxed(change, posterior, futures, seed, most, middle_of_all, until)
        for change in question.changes
        if time.monotonic() < until
    )
    middle = worst = None
    if (
        time.monotonic() < until
        and posterior.prior is not None
        and not np.array_equal(posterior.prior.low, posterior.prior.high, equal_nan=True)
    ):
        middle, worst = _cases(question.policy, posterior, runs, seed, most)
    baseline, alone = question.policy.settings.get("baseline"), None
    if baseline is not None and time.monotonic() < until:
        ends = play(question.without_baseline, posterior, min(RELAXED_RUNS, runs), seed, most, until).ends
        alone = float(np.median(np.maximum(ends - question.buffered, 0)))
    offered = offered_arms(question.policy)
    return Forecast(
        results=_range(needed),
        by_objective={
            question.objectives[i]: _range(futures.spent[:, i]) for i in question.policy.state.order.tolist()
        },
        by_arm={question.arms[a]: _range(futures.pulls[:, a]) for a in offered},
        on_worse=_range(futures.worse),
        winners={question.arms[a]: float(np.mean(futures.winners == a)) for a in offered},
        relax=relax,
        measured=question.policy.rounds,
        runs=runs,
        most=most,
        more_than=float(np.mean(futures.ends >= most)),
        within=None if math.isinf(question.room) else float(np.mean(needed <= question.room)),
        cost=None if prices is None else _range(futures.pulls @ prices),
        seconds=None if pace is None else _range(needed * pace),
        median_case=middle,
        worst_case=worst,
        without_baseline=alone,
        baseline=None if baseline is None else question.arms[baseline],
        at_bounds=tuple(question.objectives[i] for i in posterior.at_bounds),
        asked=asked,
        ends=tuple(np.sort(needed).tolist()),
    )


def _relaxed(
    change: Change, posterior: Posterior, futures: Futures, seed: int, most: int, needed: float, until: float
) -> Relaxation:
    then = play(change.policy, posterior, min(RELAXED_RUNS, futures.ends.size), seed, most, until).ends
    runs = then.size
    less = futures.ends[:runs] - then
    of = needed / max(float(np.mean(futures.ends[:runs])), 1.0)  # else a few long futures save more than all
    error = of * float(np.std(less)) / math.sqrt(runs)
    words = change.setting, change.objective, change.now, change.then
    return Relaxation(*words, _range(then), of * float(np.mean(less)), error, change.why)


def _cases(policy: LexElimTol, posterior: Posterior, runs: int, seed: int, most: int) -> tuple[float, float]:
    """Median results in the middle and in the worst of some scenarios from the ranges of the prior."""
    each = max(5, runs // SCENARIOS)
    medians = []
    for number in range(SCENARIOS):
        where = stream(seed, 10**6 + number).random(posterior.known.shape)
        fixed = posterior.narrowed(where)
        medians.append(float(np.median(play(policy, fixed, each, seed, most).ends)))
    return float(np.median(medians)), max(medians)


def _results(number: float, more: str = "") -> str:
    return f"{about(number)} {more}result{'' if round(number) == 1 else 's'}"


def _range(values: Vector | Counts) -> Range:
    return Range(*np.quantile(values, (0.1, 0.5, 0.9)).tolist())
