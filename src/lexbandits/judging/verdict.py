"""`judge`: the verdict of a finished table."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexbandits._extras import need
from lexbandits._printable import plain
from lexbandits._validation import BEST, flag, one_of, probability
from lexbandits.evidence import fixed_sample
from lexbandits.evidence.kinds import Missing, NoiseKind
from lexbandits.judging.claims import BEATS, BELOW, HOLDS, MEETS, SEEN, UNSURE, VIOLATES, Claims
from lexbandits.judging.gate import (
    Gate,
    GateOutcome,
    GateRule,
    decide,
    gate_of,
    ways_to_regress,
    ways_to_ship,
)
from lexbandits.judging.sample_size import items_for_gate, items_needed
from lexbandits.judging.scheme import (
    BEATEN,
    OPEN,
    Claim,
    Step,
    Thirds,
    beats,
    is_better,
    level_of,
    plug_in,
    proof_of,
    rank,
    survey,
    tiers_of,
    unmet,
    violates,
)
from lexbandits.judging.sequential import AnytimeClaims
from lexbandits.judging.table import Statistic, Table, table_of
from lexbandits.judging.table_means import of_arm, of_difference
from lexbandits.outcomes import ArmOutcome, BaselineDecision, ClaimVerdict, DecidedBy, Decision, Flag, Scope
from lexbandits.study.errors import StudyError, study_errors
from lexbandits.study.measure.progress import WATCHER, watched
from lexbandits.study.objective import Objective
from lexbandits.study.spec import arm_index

if TYPE_CHECKING:
    import pandas as pd

FEW_CLUSTERS = 10
MOST_COMPARISONS = 1_000_000  # ordered pairs of arms × objectives: 5 to 70 s with 200 items
MOST_ONE_BY_ONE = 200_000  # of which each is computed by itself: about a minute
MANY_COMPARISONS, TIMED = 3_000, 3  # of which those of a few arms are timed, for an estimate
SECONDS_TWO_ARMS = 1.5e-4  # to prove, rank and forecast: 0.1 to 1.7e-4 K² on tables of 120 to 577 arms
SECONDS_EACH, SECONDS_ONE_BY_ONE = 7e-5, 3e-4  # of a comparison, at most


@dataclass(frozen=True)
class Verdict:
    """Which arm, and whether it is certified. While `certified` is False `arm` is a best guess.

    Two statements, each at 1 − delta: every arm of `acceptable` is so, whichever is chosen; and all that
    `outcomes`, `candidates` and `tiers` say is so.

    Attributes:
        arm: the answer, or the best guess.
        certified: whether the answer is certified at confidence 1 − delta.
        delta: the probability of a wrong answer.
        acceptable: the arms that may be chosen.
        candidates: the arms that are not shown to be worse.
        outcomes: arm -> its `Decision`: what became of it, and the objective, the rival and the bound that
            decide.
        tiers: the arms in groups, those that left last first.
        certificate: what the answer rests on, a row per rival and objective.
        flags, details: what a reader must know besides, and flag -> its fields.
        notices: what was decided about the table while it was read, a code and its fields each.
        means: arm -> objective -> mean, standard error, results, `low` and `high`: an ordinary 95 % interval,
            a picture and not the guarantee.
        objectives: what was asked.
        items, clusters: how many items were judged, and how many groups of them, if any.
        unsettled: the first objective that the outcomes leave open, if any.
        decision: with a baseline, whether to switch.
        missing_items: how many new items (clusters, or rows per arm), judged alone, would give a certificate
            in 8 of 10 cases; None if no number is known to.
        missing_range: where that number may lie.
        missing_reason: what no number of items helps against: "edge", "beyond" or a flag.
        sequential, scope, missing, baseline, candidate: as asked.
        gate: with a baseline and a candidate, whether the candidate may ship; `arm` is then the candidate if
            it may, else the baseline, and `certified` says that it may.

    >>> import lexbandits as lb
    >>> verdict = lb.judge({"arm": ["a", "b"], "item": [1, 1], "size": [3, 4]},
    ...                    [lb.Objective("size", "minimize", noise="exact")], scope="items")
    >>> verdict.arm, verdict.outcomes["b"].outcome
    ('a', 'excluded')
    """

    arm: str
    certified: bool
    delta: float
    acceptable: tuple[str, ...]
    candidates: tuple[str, ...]
    outcomes: dict[str, Decision]
    tiers: tuple[tuple[str, ...], ...]
    certificate: tuple[dict[str, Any], ...]
    flags: tuple[Flag, ...]
    details: dict[Flag, dict[str, Any]]
    means: dict[str, dict[str, dict[str, Any]]]  # arm -> objective -> …
    objectives: tuple[Objective, ...] = field(repr=False)
    items: int
    clusters: int | None = None
    unsettled: str | None = None  # the first objective that is not settled, by statement 2
    decision: BaselineDecision | None = None
    missing_items: int | None = None
    missing_range: tuple[int | None, int | None] | None = None
    missing_reason: str | None = None
    notices: tuple[dict[str, Any], ...] = ()
    sequential: bool = False
    scope: Scope = Scope.POPULATION
    missing: str = "error"
    baseline: str | None = None
    candidate: str | None = None
    gate: Gate | None = None
    _claims: Claims | None = field(default=None, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        fields = asdict(replace(self, objectives=(), _claims=None))
        del fields["_claims"]
        return {**fields, "objectives": [objective.as_json() for objective in self.objectives]}

    def to_frame(self) -> "pd.DataFrame":
        """The certificate as a table."""
        frame: pd.DataFrame = need("pandas", "to_frame()").DataFrame(list(self.certificate))
        return frame

    @property
    def unit(self) -> str:
        """What the table has more of, the more it says: items, clusters or rows per arm."""
        if self.clusters is not None:
            return "clusters"
        return "items" if self._claims is None or self._claims.table.is_paired else "rows per arm"

    @property
    def settled(self) -> bool:
        """Whether everything is, by statement 2."""
        return self.unsettled is None

    def difference(self, objective: str, arm: str, rival: str) -> dict[str, Any]:
        """Return how much better `arm` is than `rival` on `objective`, in its unit: mean, low, high, results.

        The ends are those of an ordinary 95 % interval, a picture and not the guarantee; None without one.
        """
        if self._claims is None:
            return {}
        i, a, b = _places(self, self._claims, objective, arm, rival)
        found = of_difference(self._claims.table, i, a, b, as_list=self._claims.as_list)
        return {**found._asdict(), "low": plain(found.low), "high": plain(found.high)}

    def follow_up(self, name: str = "follow-up") -> dict[str, Any]:
        """Return a live study `name` of the candidates on new items: words for `create_study`, or TOML.

        A baseline stays the baseline, and what missing="worst" says becomes `if_missing` of every objective
        that has a worst. There is no study of clusters.
        """
        if self.clusters is not None:
            raise StudyError(
                "a study takes items one by one and knows no clusters. Judge new clusters in a table of "
                "their own, or make each cluster one item, whose value is its mean"
            )
        chosen = {*self.candidates, self.arm, *([self.baseline] if self.baseline else [])}
        arms = [arm for arm in self.means if arm in chosen]
        if len(arms) < 2:
            raise StudyError(f"only {self.arm!r} is left, so that a study would find out nothing")
        objectives = []
        for objective in self.objectives:
            if objective.quantile is not None:
                raise StudyError(
                    f"{objective}: a study takes no quantile, but a limit: {objective.as_a_share}"
                )
            known: Any = objective.reference
            if objective.is_relative:  # of a number, from now on
                seen = {arm: self.means[arm][objective.name]["mean"] for arm in arms}
                best = max if objective.sign > 0 else min
                known = (
                    best(seen.values()) if objective.is_of_best else self.means[known][objective.name]["mean"]
                )
            at_worst = self.missing == Missing.WORST and objective.is_bounded
            if_missing = Missing.WORST if at_worst else objective.if_missing
            objectives.append(replace(objective, reference=known, if_missing=if_missing).as_json())
        fields = {"name": name, "arms": arms, "objectives": objectives, "delta": self.delta or 0.05}
        return fields if self.baseline is None else {**fields, "baseline": self.baseline}

    def __str__(self) -> str:
        from lexbandits.report.verdict_report import in_text

        return in_text(self)

    def as_markdown(self) -> str:
        """For a pull request."""
        from lexbandits.report.verdict_report import in_markdown

        return in_markdown(self)

    def report(self, path: str | Path, *, format: str | None = None) -> Path:
        """Write one file, `path`, HTML or Markdown: `format` follows from the name unless given."""
        from lexbandits.report.verdict_report import write

        return write(self, Path(path), format)

    def _repr_html_(self) -> str:
        from lexbandits.report.notebook import of_verdict

        return of_verdict(self)


@study_errors()
def judge(
    table: Any,
    objectives: Iterable[Objective | Mapping[str, Any]],
    *,
    arm: str = "arm",
    item: str | None = "item",
    repeat: str | None = None,
    cluster: str | None = None,
    max_cluster: int | None = None,
    delta: float = 0.05,
    sequential: bool = False,
    scope: str = "population",
    missing: str = "error",
    baseline: str | None = None,
    candidate: str | None = None,
    gate: str = "not_worse",
) -> Verdict:
    """Which arm of a finished table is the best choice, and is that certified? docs/judge.md.

    Args:
        table: a frame, a dict of columns or a file, with one row per arm and item (and repeat).
        objectives: the measures, columns of the table, in order of priority.
        arm: the column with the arms' names.
        item: the column that pairs rows; None: nothing does.
        repeat: the column that tells repeats of one arm on one item apart.
        cluster: the column with groups of items that depend on each other, such as a user's.
        max_cluster: the most items that a cluster can have.
        delta: the probability of a wrong answer.
        sequential: False if the number of items was fixed before anyone saw results; True if you may judge
            again as the table grows.
        scope: "population": items to come, of which these are a sample; "items": these alone.
        missing: "error", "worst" (counts as the worst it could have been) or "drop" (its item), of objectives
            without `if_missing`.
        baseline: the current arm: the question is whether to switch.
        candidate: an arm chosen before looking: the question is whether it is acceptable. With a baseline:
            whether it may take the baseline's place. Other arms are then ignored.
        gate: what a candidate must be shown to be to ship. "not_worse": than the baseline by more than the
            margin, on any objective before one on which it is better. Or better by more than the tie
            ("switch").
    """
    asked = tuple(Objective.from_json(objective) for objective in objectives)
    if not asked or len({objective.name for objective in asked}) < len(asked):
        raise StudyError("judge needs objectives, each with a name of its own")
    probability("delta", delta)
    flag("sequential", sequential)
    one_of("scope", scope, [*Scope])
    for objective in asked:
        if scope == Scope.POPULATION:
            objective.check_settled()
        if objective.is_exact:  # other kinds may follow from the column, which is read below
            objective.check_agreed()
    one_of("missing", missing, [*Missing])
    one_of("gate", gate, tuple(GateRule))
    is_gate = baseline is not None and candidate is not None
    _check_gate(asked, baseline, candidate, gate)
    waiting = [objective for objective in asked if objective.awaits_cap]
    if waiting and (sequential or scope == Scope.ITEMS):
        raise StudyError(
            f'{waiting[0]}: cap="auto" leaves items out, so it goes neither with scope="items" nor with '
            "sequential=True: say cap= as a number"
        )
    cells = table_of(
        table,
        asked,
        arm=arm,
        item=item,
        repeat=repeat,
        cluster=cluster,
        max_cluster=max_cluster,
        missing=missing,
        sequential=sequential,
        as_list=scope == "items",
        only=[baseline, candidate] if baseline is not None and candidate is not None else None,
    )
    for objective in cells.objectives:
        if scope == Scope.POPULATION or objective.is_exact:
            objective.check_agreed()
    for name in (baseline, candidate):
        if name is not None:
            arm_index(cells.arms, name)
    options: dict[str, Any] = {"missing": missing, "baseline": baseline, "candidate": candidate}
    if sequential:
        if scope == Scope.ITEMS or cluster is not None or (baseline is None) != (candidate is None):
            raise StudyError(
                'sequential=True has neither scope="items" nor cluster=, and takes baseline= and candidate= '
                "together or not at all"
            )
        unpaired = [o for o in cells.objectives if not (o.kind.traits.about_one_arm or cells.is_paired)]
        if unpaired:
            raise StudyError(
                f'{unpaired[0]}: rows that nothing pairs give "symmetric" noise no evidence at many looks: '
                'say item=, or noise="gaussian" or ("bounded", low, high)'
            )
        if any(objective.quantile is not None for objective in asked):
            raise StudyError("sequential=True takes no quantile=")
    if scope == Scope.ITEMS:
        if cells.dropped:
            raise StudyError(
                'scope="items" needs all values: say missing="worst", or if_failed= of an objective'
            )
    elif len(cells.arms) > 1 and cells.n_units < 2:
        raise StudyError("one item proves nothing of those to come")
    _check_work(cells, sequential=sequential)
    claims = AnytimeClaims(cells) if sequential else Claims(cells, as_list=scope == Scope.ITEMS)
    _tell_work(claims)
    options["sequential"] = sequential
    return _gated(claims, delta, options, GateRule(gate)) if is_gate else _judged(claims, delta, options)


def _check_gate(
    objectives: Iterable[Objective], baseline: str | None, candidate: str | None, gate: str
) -> None:
    """Refuse a gate that cannot be asked."""
    if baseline is None or candidate is None:
        if gate != GateRule.NOT_WORSE:
            raise StudyError(f"gate={gate!r} needs baseline= and candidate=: the arm in use, and the new one")
        return
    if baseline == candidate:
        raise StudyError(f"baseline= and candidate= must be two arms, got {baseline!r} for both")
    for objective in objectives:
        if objective.is_relative and objective.reference not in (BEST, baseline, candidate):
            raise StudyError(
                f"{objective}: a gate looks at {baseline!r} and {candidate!r} alone, but the margin is a "
                f"share of {objective.reference!r}: say reference={baseline!r}, or a number"
            )


def _check_work(table: Table, *, sequential: bool) -> None:
    """Refuse a table of so many arms that judging it would take many minutes, with what it would take."""
    K, m = len(table.arms), len(table.objectives)
    comparisons = K * (K - 1) * m
    one_by_one = sequential or table.clusters is not None or Statistic.SYMMETRIC in table.kinds
    limit, each = (MOST_ONE_BY_ONE, SECONDS_ONE_BY_ONE) if one_by_one else (MOST_COMPARISONS, SECONDS_EACH)
    if comparisons > limit:
        most = (1 + math.isqrt(1 + 4 * (limit // m))) // 2
        raise StudyError(
            f"{K:,} arms on {m} objective{'s' if m > 1 else ''} are {comparisons:,} comparisons, which may "
            f"take {max(1, round(comparisons * each / 60)):,} minutes or more; at most {limit:,} are judged: "
            f"keep {most:,} arms, chosen without looking at these values"
        )


def _tell_work(claims: Claims) -> None:
    """Tell the watcher, if there is one, what a table of many arms may take: some are timed."""
    watcher, K, m = WATCHER.get(), claims.n_arms, claims.n_objectives
    total = K * (K - 1) * m
    if watcher is None or total < MANY_COMPARISONS:
        return
    began, everybody = time.perf_counter(), np.arange(K)
    for a in range(min(K, TIMED)):
        for i in range(m):
            claims.moments(HOLDS, i, np.full(K, a), everybody)
    comparing = (time.perf_counter() - began) * K / min(K, TIMED)
    watcher.expect(total, comparing + SECONDS_TWO_ARMS * K * K)


def _judged(claims: Claims, delta: float, options: dict[str, Any]) -> Verdict:
    names, everybody = claims.table.arms, range(claims.n_arms)
    base, asked = (
        None if options[key] is None else names.index(options[key]) for key in ("baseline", "candidate")
    )
    leads, near = claims.seem()
    guess, kept, likely = plug_in(claims, leads, near, first=base or 0)
    alpha = level_of(claims, delta, baseline=base is not None, candidate=asked is not None)
    tried = everybody if asked is None else [asked]
    thirds = Thirds(claims)
    proofs = {x: proof_of(claims, x, alpha, thirds=thirds) for x in watched("proving", tried)}
    doubts = {x: _doubts(claims, x, proof.steps) for x, proof in proofs.items()}
    good = [x for x, proof in proofs.items() if proof.is_complete and not doubts[x].keys() & UNSURE]
    if claims.as_list and not claims.table.missing:
        good = [x for x in kept if x in tried]
    missed = {x: unmet(claims, x, alpha) for x in good}
    best = [x for x in good if not missed[x]] or good  # who is shown to meet all limits goes first
    switches = {}
    if base is not None:
        for w in best:
            better = is_better(claims, w, base, alpha)
            if better and not _doubts(claims, w, better).keys() & UNSURE:
                switches[w] = better
    fit = list(switches) if base is not None and base not in best else best
    answer = guess if guess in fit or not fit else max(fit, key=lambda x: rank(leads, x, fit))
    decision = None
    if asked is not None:
        answer = asked
    elif base is not None:
        keeps = base in best or (base in good and not switches)
        decision = BaselineDecision.KEEP_FOR_NOW
        if keeps or switches:
            decision = BaselineDecision.KEEP if keeps else BaselineDecision.SWITCH
        answer = answer if decision is BaselineDecision.SWITCH else base
    certified = answer in good
    steps = proof_of(claims, answer, alpha, likely, in_full=True, thirds=thirds).steps
    least = {step[:4]: step for step in sorted(steps, key=lambda step: -step.level)}  # of equal claims
    steps = tuple(step for step in dict.fromkeys(steps) if step == least[step[:4]])
    if decision is BaselineDecision.SWITCH:
        steps += switches[answer]
    gone, stage = survey(claims, delta, everybody)
    details = _details(claims, doubts.get(answer, {}), delta) | _copies(claims, answer, steps)
    details |= _unmet(claims, missed.get(answer, frozenset()), gone, delta)
    verdict = Verdict(
        arm=names[answer],
        certified=certified,
        acceptable=tuple(names[x] for x in good),
        outcomes=_outcomes(claims, answer, steps, gone, delta, good if certified else ()),
        decision=decision,
        certificate=tuple(_row(claims, answer, step) for step in steps),
        flags=tuple(details),
        details=details,
        **_seen(claims, gone, stage, delta),
        **options,
    )
    if certified or claims.as_list or verdict.sequential:
        return verdict
    is_complete = proofs[answer].is_complete
    needed = items_needed(claims, leads, near, alpha, base=base, candidate=asked, is_complete=is_complete)
    return replace(verdict, missing_items=needed.items, missing_range=needed.ends, missing_reason=needed.why)


def _seen(claims: Claims, gone: Mapping[int, Any], stage: int, delta: float) -> dict[str, Any]:
    """What every verdict has, whatever was asked: the table, and where its arms stand."""
    table = claims.table
    return {
        "delta": 0.0 if claims.as_list else delta,
        "candidates": tuple(name for x, name in enumerate(table.arms) if x not in gone),
        "tiers": tuple(tuple(table.arms[x] for x in tier) for tier in tiers_of(claims, delta)),
        "means": _means(claims),
        "notices": table.notices,
        "objectives": table.objectives,
        "items": len(table.seen),
        "clusters": None if table.clusters is None else table.n_units,
        "scope": Scope.ITEMS if claims.as_list else Scope.POPULATION,
        "unsettled": None if stage == claims.n_objectives else table.objectives[stage].name,
        "_claims": claims,
    }


def _gated(claims: Claims, delta: float, options: dict[str, Any], rule: GateRule) -> Verdict:
    """The verdict of a gate: two arms, and whether one may take the other's place."""
    names = claims.table.arms
    c, w = (names.index(options[key]) for key in ("baseline", "candidate"))
    decided = decide(claims, w, c, delta, rule, lambda steps: not _doubts(claims, w, steps).keys() & UNSURE)
    gate, steps = gate_of(claims, w, c, delta, rule, decided), decided.steps
    ships, regresses = (gate.outcome is outcome for outcome in (GateOutcome.SHIP, GateOutcome.REGRESSION))
    answer = w if ships else c
    details = _details(claims, _doubts(claims, w, steps), delta) | _copies(claims, w, steps)
    gone, stage = survey(claims, delta, range(2))
    verdict = Verdict(
        arm=names[answer],
        certified=ships,
        acceptable=(names[w],) if ships else (),
        outcomes=_outcomes_of_gate(claims, gate, delta),
        certificate=tuple(_row(claims, w, step) for step in steps),
        flags=tuple(details),
        details=details,
        gate=gate,
        **_seen(claims, gone, stage, delta),
        **options,
    )
    if ships or regresses or claims.as_list or verdict.sequential:
        return verdict
    routes = ways_to_ship(claims, w, c, delta, rule) + ways_to_regress(claims, w, c, delta)
    needed = items_for_gate(claims, routes)
    return replace(verdict, missing_items=needed.items, missing_range=needed.ends, missing_reason=needed.why)


# --- what it rests on


def _claim(x: int, step: Step) -> Claim:
    """The claim of a step in the proof of x."""
    if step.verdict in (MEETS, BELOW, VIOLATES):
        return step.verdict, step.objective, step.rival, None
    fact, better = BEATS if step.verdict == BEATEN else step.verdict, x if step.by < 0 else step.by
    return fact, step.objective, better, step.rival


def _doubts(claims: Claims, x: int, steps: Iterable[Step]) -> dict[Flag, set[int]]:
    """Flags of what was claimed, and the objectives that they are about."""
    found: dict[Flag, set[int]] = {}
    for step in steps:
        if step.verdict != OPEN:
            for flag in claims.doubts(*_claim(x, step), step.level):
                found.setdefault(flag, set()).add(step.objective)
    return found


def _details(claims: Claims, doubts: dict[Flag, set[int]], delta: float) -> dict[Flag, dict[str, Any]]:
    """Flag -> its fields."""
    table = claims.table
    named = [objective.name for objective in table.objectives]
    found: dict[Flag, dict[str, Any]] = {
        flag: {"objectives": [named[i] for i in sorted(columns)]} for flag, columns in doubts.items()
    }
    if table.dropped:
        found[Flag.DROPPED_MISSING] = {"cells": table.dropped}
    if table.clusters is not None and table.n_units < FEW_CLUSTERS:
        found[Flag.FEW_CLUSTERS] = {"clusters": table.n_units}
    side = min((claims.side(i, delta) for i in range(claims.n_objectives)), default=delta)
    far = {
        objective.name: needed
        for objective in table.objectives
        if objective.quantile is not None
        and (needed := fixed_sample.fewest_for_quantile(objective.quantile, side)) > table.n_units
    }
    if far and not claims.as_list:
        found[Flag.FEW_FOR_QUANTILE] = {"objectives": list(far), "needed": max(far.values())}
    odd = [
        o.name
        for o, kind in zip(table.objectives, table.kinds, strict=True)
        if kind is Statistic.BOUNDED and o.kind is NoiseKind.BERNOULLI and table.repeats[1] == 1
    ]
    if odd:
        found[Flag.NOT_BINARY] = {"objectives": odd}
    return found


def _unmet(
    claims: Claims, missed: Iterable[int], gone: dict[int, tuple[int, int]], delta: float
) -> dict[Flag, dict[str, Any]]:
    """Flags of the limits that a certified answer is not shown to meet: nobody does, or nobody clearly."""
    found: dict[Flag, dict[str, Any]] = {}
    for i in sorted(missed):
        there = [a for a in range(claims.n_arms) if gone.get(a, (i, 0))[0] >= i]
        flag = (
            Flag.INFEASIBLE
            if all(violates(claims, i, a, delta) for a in there)
            else Flag.NOT_CLEARLY_FEASIBLE
        )
        found.setdefault(flag, {"objectives": []})["objectives"].append(claims.table.objectives[i].name)
    return found


def _copies(claims: Claims, x: int, steps: Iterable[Step]) -> dict[Flag, dict[str, Any]]:
    """What is open as the values of an objective seem to be copies."""
    unclear = [(step.objective, {x, step.rival}) for step in steps if step.verdict == OPEN]
    found = {(i, a) for i, arms in unclear for a in arms if claims.copied[i, a]}
    if not found:
        return {}
    columns, arms = (sorted({pair[side] for pair in found}) for side in (0, 1))
    named = [claims.table.objectives[i].name for i in columns]
    return {Flag.COPIED_VALUES: {"objectives": named, "arms": [claims.table.arms[a] for a in arms]}}


def _row(claims: Claims, x: int, step: Step) -> dict[str, Any]:
    """One comparison, in the objective's unit."""
    names, objective = claims.table.arms, claims.table.objectives[step.objective]
    fact, i, a, b = _claim(x, step) if step.verdict != OPEN else (HOLDS, step.objective, x, step.rival)
    if a == b:  # its limit, which is open
        fact, b = MEETS, None
    sample = claims.sample(SEEN, i, a, b)
    return {
        "arm": names[a] if b is not None else None,
        "rival": names[step.rival],
        "objective": objective.name,
        "difference": objective.sign * sample.mean + 0.0,
        "se": sample.se,
        "results": sample.n,
        "limit": objective.sign * (-1 if fact in (BELOW, VIOLATES) else 1) * claims.limit(fact, i) + 0.0,
        "level": step.level if claims.noisy[i] else 0.0,
        "verdict": str(step.verdict),
        "by": names[step.by] if step.by >= 0 else None,
    }


def _outcomes(
    claims: Claims,
    answer: int,
    steps: tuple[Step, ...],
    gone: dict[int, tuple[int, int]],
    delta: float,
    certified: Sequence[int],
) -> dict[str, Decision]:
    """Return what became of each arm; `certified`: the arms that are, if the answer is."""
    found = {}
    for y, name in enumerate(claims.table.arms):
        own = [step for step in steps if step.rival == y and (y != answer or step.verdict == OPEN)]
        still_open = next((step for step in own if step.verdict == OPEN), None)
        decides = next((step for step in own if step.verdict in (BEATS, BEATEN)), None)
        outcome, i, rival, by = ArmOutcome.UNDECIDED, -1, -1, None
        if y == answer and certified:  # by statement 1, whatever statement 2 says
            outcome = ArmOutcome.WINNER
        elif y in gone:
            (i, rival), by = gone[y], DecidedBy.ELIMINATION
        elif still_open is not None:
            i, rival = still_open.objective, answer if y != answer else -1
        elif y == answer:
            pass
        elif decides is not None:
            i, by = decides.objective, DecidedBy.PROOF
            rival = decides.by if decides.by >= 0 else answer
        else:
            beaten = (
                i
                for i in range(claims.n_objectives)
                if claims.lead(BEATS, i, answer, y) > 0 and beats(claims, i, answer, y, delta)
            )
            i, rival = next(beaten, -1), answer
            by = None if i < 0 else DecidedBy.PROOF
            outcome = ArmOutcome.TIED if y in certified else ArmOutcome.UNDECIDED
        limit = None
        if by is not None:
            outcome = ArmOutcome.EXCLUDED
            if claims.is_limit[i]:
                limit = ClaimVerdict.NOT_CLEARLY_WITHIN
                if violates(claims, i, y, delta):
                    outcome, limit = ArmOutcome.OUTSIDE_LIMIT, ClaimVerdict.VIOLATES_LIMIT
        known = _known(claims, i, y, rival, delta, is_open=by is None) if i >= 0 and rival >= 0 else {}
        found[name] = Decision(
            outcome,
            objective=claims.table.objectives[i].name if i >= 0 else None,
            rival=claims.table.arms[rival] if rival >= 0 else None,
            by=by,
            limit=limit,
            **known,
        )
    return found


def _known(claims: Claims, i: int, y: int, rival: int, delta: float, *, is_open: bool) -> dict[str, Any]:
    """Return rival − arm as seen, its ordinary interval, and how much worse the arm is, by statement 2."""
    objective, known = claims.table.objectives[i], _seen_apart(claims, i, rival, y)
    if not is_open and not claims.is_limit[i]:
        least = -math.inf if objective.is_relative else claims.bound(i, rival, y, claims.side(i, delta))
        known["bound"] = plain(least if objective.is_relative else max(least, objective.tie_in_unit))
    return known


def _seen_apart(claims: Claims, i: int, a: int, b: int) -> dict[str, Any]:
    """Return a − b as measured, and its ordinary interval."""
    found = of_difference(claims.table, i, a, b, as_list=claims.as_list)
    found = found.times(claims.table.objectives[i].sign)
    return {"difference": plain(found.mean + 0.0), "low": plain(found.low), "high": plain(found.high)}


def _places(verdict: Verdict, claims: Claims, objective: str, arm: str, rival: str) -> tuple[int, int, int]:
    names = [asked.name for asked in verdict.objectives]
    if objective not in names:
        raise StudyError(f"no objective {objective!r}; there are {', '.join(map(repr, names))}")
    a, b = (arm_index(claims.table.arms, name) for name in (arm, rival))
    return names.index(objective), a, b


def is_tied(verdict: Verdict, objective: str, arm: str, rival: str) -> bool:
    """Return whether two arms are shown to be within the margin of each other, by statement 2."""
    if verdict._claims is None:
        return False
    i, a, b = _places(verdict, verdict._claims, objective, arm, rival)
    side = verdict._claims.side(i, verdict.delta)
    return all(verdict._claims.says(HOLDS, i, *pair, side) for pair in ((a, b), (b, a)))


def proven_lead(verdict: Verdict, objective: str, arm: str, rival: str) -> float | None:
    """Return how much better an arm is at least, by statement 2; None if nothing is shown."""
    if verdict._claims is None:
        return None
    i, a, b = _places(verdict, verdict._claims, objective, arm, rival)
    found = verdict._claims.bound(i, a, b, verdict._claims.side(i, verdict.delta))
    return found if math.isfinite(found) else None


def _outcomes_of_gate(claims: Claims, gate: Gate, delta: float) -> dict[str, Decision]:
    """Return what became of the two arms: the one to use now is the answer, the gate decides on the other."""
    names, objectives = claims.table.arms, claims.table.objectives
    ships, is_open = gate.outcome is GateOutcome.SHIP, gate.outcome is GateOutcome.NOT_SHOWN
    answer, other = (gate.candidate, gate.baseline) if ships else (gate.baseline, gate.candidate)
    outcome, by, limit = ArmOutcome.UNDECIDED, None, None
    known: dict[str, Any] = {}
    if gate.objective is not None:
        i = [objective.name for objective in objectives].index(gate.objective)
        a, b = names.index(answer), names.index(other)
        if not is_open:
            outcome, by = ArmOutcome.EXCLUDED, DecidedBy.PROOF if ships else DecidedBy.ELIMINATION
        if claims.is_limit[i] and not is_open:
            outcome, limit = ArmOutcome.OUTSIDE_LIMIT, ClaimVerdict.VIOLATES_LIMIT
        elif not claims.is_limit[i]:
            known = _seen_apart(claims, i, a, b)
            known |= {"bound": gate.bound} if gate.outcome is GateOutcome.REGRESSION else {}
    winner = ArmOutcome.WINNER if ships else ArmOutcome.UNDECIDED
    decided = Decision(outcome, objective=gate.objective, rival=answer, by=by, limit=limit, **known)
    found = {answer: Decision(winner), other: decided}
    return {name: found[name] for name in names}


def _means(claims: Claims) -> dict[str, dict[str, dict[str, Any]]]:
    """arm -> objective -> mean, standard error, ordinary interval, results."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for a, name in enumerate(claims.table.arms):
        for i, objective in enumerate(claims.table.objectives):
            shown = of_arm(claims.table, i, a, as_list=claims.as_list)
            se = claims.sample(SEEN, i, a, None).se
            ends = {"low": plain(shown.low), "high": plain(shown.high)}
            fields = {"mean": shown.mean + 0.0, "se": se, **ends, "results": shown.results}
            found.setdefault(name, {})[objective.name] = fields
    return found
