"""`judge`: the verdict of a table that is there already."""

import math
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lexbandits.checks import one_of, probability
from lexbandits.evidence import once
from lexbandits.extras import need
from lexbandits.judging.anytime import AnytimeClaims
from lexbandits.judging.claims import BEATS, BELOW, HOLDS, MEETS, SEEN, UNSURE, Claims
from lexbandits.judging.needed import items_needed
from lexbandits.judging.scheme import (
    BEATEN,
    OPEN,
    Claim,
    Step,
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
from lexbandits.judging.table import Table, table_of
from lexbandits.printable import plain
from lexbandits.study.errors import StudyError, study_errors
from lexbandits.study.measure.progress import WATCHER, watched
from lexbandits.study.objective import Objective
from lexbandits.study.spec import arm_index

if TYPE_CHECKING:
    import pandas as pd

FEW_CLUSTERS = 10
MOST_COMPARISONS = 200_000  # ordered pairs of arms × objectives: about a minute with 200 items
INFEASIBLE, NOT_CLEARLY = (
    "infeasible",
    "not_clearly_feasible",
)  # flags of a limit that no arm is shown to meet
MANY_COMPARISONS, TIMED = 3_000, 60  # of which some of each objective are timed, for an estimate
OF_SAMPLE, OF_CLAIM = 3.3, 0.4  # samples and claims that one takes, as tables of 60 and 90 arms did
SECONDS_EACH, SECONDS_EACH_ITEM = 3e-4, 2e-7  # of a comparison


@dataclass(frozen=True)
class Verdict:
    """Which arm, and how sure. While `certified` is False `arm` is a best guess.

    Two statements, each at 1 − delta: every arm of `acceptable` is so, whichever is chosen; and all that
    `fates`, `candidates` and `tiers` say is so.

    Attributes:
        arm: the answer, or the best guess.
        certified: whether the answer is certain at 1 − delta.
        delta: the probability of a wrong answer.
        acceptable: the arms that may be chosen.
        candidates: the arms that are not proven worse.
        fates: arm -> where it ends: a code, the objective, the rival, the bound; of a limit, whether it is
            violated ("violates_limit") or may yet be met ("not_clearly_within").
        tiers: the arms in groups, those that left last first.
        certificate: what the answer rests on, a row per rival and objective.
        flags, details: what a reader must know besides, and flag -> its fields.
        means: arm -> objective -> mean, standard error, results.
        objectives: what was asked.
        items, clusters: how many items were judged, and how many groups of them, if any.
        unsettled: the first objective that the second statement leaves open, if any.
        decision: with a baseline, whether to switch.
        missing_items: how many new items (clusters, or rows per arm), judged alone, would give a certificate
            in 8 of 10 cases; None if no number is known to.
        missing_range: where that number may lie.
        missing_reason: what no number of items helps against: "edge", "beyond" or a flag.
        looks, about, missing, baseline, named: as asked.

    >>> import lexbandits as lb
    >>> verdict = lb.judge({"arm": ["a", "b"], "item": [1, 1], "size": [3, 4]},
    ...                    [lb.Objective("size", "minimize", noise="exact")], about="items")
    >>> verdict.arm, verdict.fates["b"]["code"]
    ('a', 'out')
    """

    arm: str
    certified: bool
    delta: float
    acceptable: tuple[str, ...]
    candidates: tuple[str, ...]
    fates: dict[str, dict[str, Any]]
    tiers: tuple[tuple[str, ...], ...]
    certificate: tuple[dict[str, Any], ...]
    flags: tuple[str, ...]
    details: dict[str, dict[str, Any]]
    means: dict[str, dict[str, dict[str, Any]]]  # arm -> objective -> mean, standard error, results
    objectives: tuple[Objective, ...] = field(repr=False)
    items: int
    clusters: int | None = None
    unsettled: str | None = None  # the first objective that is not settled, by statement 2
    decision: str | None = None
    missing_items: int | None = None
    missing_range: tuple[int | None, int | None] | None = None
    missing_reason: str | None = None
    looks: str = "once"
    about: str = "population"
    missing: str = "error"
    baseline: str | None = None
    named: str | None = None
    _claims: Claims | None = field(default=None, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        words = asdict(replace(self, objectives=(), _claims=None))
        del words["_claims"]
        return {**words, "objectives": [objective.as_json() for objective in self.objectives]}

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
        """How much better `arm` is than `rival` on `objective`, in its unit: as seen, and where it lies.

        The ends belong to statement 2; None where nothing is known, as of every percentage.
        """
        claims = self._claims
        if claims is None:
            return {}
        names = [asked.name for asked in self.objectives]
        if objective not in names:
            raise StudyError(f"no objective {objective!r}; there are {', '.join(map(repr, names))}")
        i, a, b = names.index(objective), *(arm_index(claims.table.arms, name) for name in (arm, rival))
        side, sample = claims.side(i, self.delta), claims.sample(SEEN, i, a, b)
        ends = claims.bound(i, a, b, side), -claims.bound(i, b, a, side)
        return {"mean": sample.mean, "low": plain(ends[0]), "high": plain(ends[1]), "results": sample.n}

    def follow_up(self, name: str = "follow-up") -> dict[str, Any]:
        """Return a live study `name` of the candidates on new items: words for `create_study`, or TOML.

        A baseline stays the baseline, and what missing="worst" says becomes `if_missing` of every objective
        that has a worst. There is no study of clusters.
        """
        if self.clusters is not None:
            raise StudyError(
                "a study takes items one by one and knows no clusters: judge new clusters in a table of "
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
                known = best(seen.values()) if known == "best" else self.means[known][objective.name]["mean"]
            at_worst = self.missing == "worst" and objective.is_bounded
            if_missing = "worst" if at_worst else objective.if_missing
            objectives.append(replace(objective, reference=known, if_missing=if_missing).as_json())
        words = {"name": name, "arms": arms, "objectives": objectives, "delta": self.delta or 0.05}
        return words if self.baseline is None else {**words, "baseline": self.baseline}

    def __str__(self) -> str:
        from lexbandits.insight.verdict import in_text

        return in_text(self)

    def as_markdown(self) -> str:
        """For a pull request."""
        from lexbandits.insight.verdict import in_markdown

        return in_markdown(self)

    def report(self, path: str | Path, *, format: str | None = None) -> Path:
        """Write one file, `path`, HTML or Markdown: `format` follows from the name unless given."""
        from lexbandits.insight.verdict import write

        return write(self, Path(path), format)

    def _repr_html_(self) -> str:
        from lexbandits.insight.notebook import of_verdict

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
    looks: str = "once",
    about: str = "population",
    missing: str = "error",
    baseline: str | None = None,
    named: str | None = None,
) -> Verdict:
    """Which arm of a finished table is the best choice, and is that certain? docs/judge.md.

    Args:
        table: a frame, a dict of columns or a file, with one row per arm and item (and repeat).
        objectives: the measures, columns of the table, in order of priority.
        arm: the column with the arms' names.
        item: the column that pairs rows; None: nothing does.
        repeat: the column that tells repeats of one arm on one item apart.
        cluster: the column with groups of items that depend on each other, such as a user's.
        max_cluster: the most items that a cluster can have.
        delta: the probability of a wrong answer.
        looks: "once" if how many items there are was decided without looking at values, "any" if not.
        about: "population": items to come, of which these are a sample; "items": these alone.
        missing: "error", "worst" (counts as the worst it could have been) or "drop" (its item), of objectives
            without `if_missing`.
        baseline: the current arm: the question is whether to switch.
        named: an arm chosen before looking: the question is about it.
    """
    asked = tuple(Objective.from_json(objective) for objective in objectives)
    if not asked or len({objective.name for objective in asked}) < len(asked):
        raise StudyError("judge needs objectives, each with a name of its own")
    probability("delta", delta)
    one_of("looks", looks, ("once", "any"))
    one_of("about", about, ("population", "items"))
    for objective in asked:
        if about == "population":
            objective.check_settled()
        if about == "population" or objective.noise == "exact":
            objective.check_agreed()
    one_of("missing", missing, ("error", "worst", "drop"))
    if baseline is not None and named is not None:
        raise StudyError("baseline= or named=, not both: whether to switch, or about one arm")
    cells = table_of(
        table,
        asked,
        arm=arm,
        item=item,
        repeat=repeat,
        cluster=cluster,
        max_cluster=max_cluster,
        missing=missing,
    )
    for name in (baseline, named):
        if name is not None:
            arm_index(cells.arms, name)
    words: dict[str, Any] = {"missing": missing, "baseline": baseline, "named": named}
    if looks == "any":
        if about == "items" or cluster is not None or baseline is not None or named is not None:
            raise StudyError('looks="any" has neither about="items" nor cluster=, baseline= or named=')
        if any(objective.quantile is not None for objective in asked):
            raise StudyError('looks="any" takes no quantile=')
    if about == "items":
        if cells.dropped:
            raise StudyError(
                'about="items" needs all values: say missing="worst", or if_failed= of an objective'
            )
    elif len(cells.arms) > 1 and cells.n_units < 2:
        raise StudyError("one item proves nothing of those to come")
    _check_work(cells)
    claims = AnytimeClaims(cells) if looks == "any" else Claims(cells, as_list=about == "items")
    _tell_work(claims, delta)
    return _judged(claims, delta, {**words, "looks": looks})


def _check_work(table: Table) -> None:
    """Refuse a table of so many arms that judging it would take many minutes, with what it would take."""
    K, m, n = len(table.arms), len(table.objectives), len(table.seen)
    comparisons = K * (K - 1) * m
    if comparisons > MOST_COMPARISONS:
        most = math.isqrt(MOST_COMPARISONS // m)
        minutes = comparisons * (SECONDS_EACH + SECONDS_EACH_ITEM * n) / 60
        raise StudyError(
            f"{K:,} arms on {m} objective{'s' if m > 1 else ''} are {comparisons:,} comparisons, which would "
            f"take about {max(1, round(minutes)):,} minutes; at most {MOST_COMPARISONS:,} are judged: keep "
            f"{most:,} arms, chosen without looking at these values"
        )


def _tell_work(claims: Claims, delta: float) -> None:
    """Tell the watcher, if there is one, what a table of many arms will take: some pairs are timed."""
    watcher, K, m = WATCHER.get(), claims.n_arms, claims.n_objectives
    total = K * (K - 1) * m
    if watcher is None or total < MANY_COMPARISONS:
        return
    luck = random.Random(0)
    asked = [(i, *luck.sample(range(K), 2)) for i in range(m) for _ in range(TIMED)]
    _ = claims.copied  # which is found out once
    clock = [time.perf_counter()]
    for i, a, b in asked:
        claims.sample(HOLDS, i, a, b)
    clock.append(time.perf_counter())
    for i, a, b in asked:
        claims.says(HOLDS, i, a, b, claims.side(i, delta))
    clock.append(time.perf_counter())
    each = OF_SAMPLE * (clock[1] - clock[0]) + OF_CLAIM * (clock[2] - clock[1])
    watcher.expect(total, each / len(asked) * total)


def _judged(claims: Claims, delta: float, words: dict[str, Any]) -> Verdict:
    names, everybody = claims.table.arms, range(claims.n_arms)
    base, asked = (None if words[key] is None else names.index(words[key]) for key in ("baseline", "named"))
    leads, near = claims.seem()
    guess, kept, likely = plug_in(claims, leads, near, first=base or 0)
    alpha = level_of(claims, delta, baseline=base is not None, named=asked is not None)
    tried = everybody if asked is None else [asked]
    proofs = {x: proof_of(claims, x, alpha) for x in watched("proving", tried)}
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
        decision = "keep" if keeps else "switch" if switches else "keep for now"
        answer = answer if decision == "switch" else base
    certified = answer in good
    steps = proof_of(claims, answer, alpha, likely, in_full=True).steps
    least = {step[:4]: step for step in sorted(steps, key=lambda step: -step.level)}  # of equal claims
    steps = tuple(step for step in dict.fromkeys(steps) if step == least[step[:4]])
    if decision == "switch":
        steps += switches[answer]
    gone, stage = survey(claims, delta, everybody)
    details = _details(claims, doubts.get(answer, {}), delta) | _copies(claims, answer, steps)
    details |= _unmet(claims, missed.get(answer, frozenset()), gone, delta)
    verdict = Verdict(
        arm=names[answer],
        certified=certified,
        delta=0.0 if claims.as_list else delta,
        acceptable=tuple(names[x] for x in good),
        candidates=tuple(names[x] for x in everybody if x not in gone),
        fates=_fates(claims, answer, steps, gone, delta),
        tiers=tuple(tuple(names[x] for x in tier) for tier in tiers_of(claims, delta)),
        decision=decision,
        certificate=tuple(_row(claims, answer, step) for step in steps),
        flags=tuple(details),
        details=details,
        means=_means(claims),
        objectives=claims.table.objectives,
        items=len(claims.table.seen),
        clusters=None if claims.table.clusters is None else claims.table.n_units,
        about="items" if claims.as_list else "population",
        unsettled=None if stage == claims.n_objectives else claims.table.objectives[stage].name,
        _claims=claims,
        **words,
    )
    if certified or claims.as_list or verdict.looks == "any":
        return verdict
    is_complete = proofs[answer].is_complete
    needed = items_needed(claims, leads, near, alpha, base=base, named=asked, is_complete=is_complete)
    return replace(verdict, missing_items=needed.items, missing_range=needed.ends, missing_reason=needed.why)


# --- what it rests on


def _claim(x: int, step: Step) -> Claim:
    """The claim of a step in the proof of x."""
    if step.verdict in (MEETS, BELOW):
        return step.verdict, step.objective, step.rival, None
    fact, better = BEATS if step.verdict == BEATEN else step.verdict, x if step.by < 0 else step.by
    return fact, step.objective, better, step.rival


def _doubts(claims: Claims, x: int, steps: Iterable[Step]) -> dict[str, set[int]]:
    """Flags of what was claimed, and the objectives that they are about."""
    found: dict[str, set[int]] = {}
    for step in steps:
        if step.verdict != OPEN:
            for flag in claims.doubts(*_claim(x, step), step.level):
                found.setdefault(flag, set()).add(step.objective)
    return found


def _details(claims: Claims, doubts: dict[str, set[int]], delta: float) -> dict[str, dict[str, Any]]:
    """Flag -> its fields."""
    table = claims.table
    named = [objective.name for objective in table.objectives]
    found: dict[str, dict[str, Any]] = {
        flag: {"objectives": [named[i] for i in sorted(columns)]} for flag, columns in doubts.items()
    }
    if table.dropped:
        found["dropped missing"] = {"cells": table.dropped}
    if table.clusters is not None and table.n_units < FEW_CLUSTERS:
        found["few clusters"] = {"clusters": table.n_units}
    side = min((claims.side(i, delta) for i in range(claims.n_objectives)), default=delta)
    far = {
        objective.name: needed
        for objective in table.objectives
        if objective.quantile is not None
        and (needed := once.fewest_for_quantile(objective.quantile, side)) > table.n_units
    }
    if far and not claims.as_list:
        found["few for a quantile"] = {"objectives": list(far), "needed": max(far.values())}
    odd = [
        o.name
        for o, kind in zip(table.objectives, table.kinds, strict=True)
        if kind == "bounded" and o.noise == "bernoulli" and table.repeats[1] == 1
    ]
    if odd:
        found["not 0 or 1"] = {"objectives": odd}
    return found


def _unmet(
    claims: Claims, missed: Iterable[int], gone: dict[int, tuple[int, int]], delta: float
) -> dict[str, dict[str, Any]]:
    """Flags of the limits that a certified answer is not shown to meet: nobody does, or nobody clearly."""
    found: dict[str, dict[str, Any]] = {}
    for i in sorted(missed):
        there = [a for a in range(claims.n_arms) if gone.get(a, (i, 0))[0] >= i]
        flag = INFEASIBLE if all(violates(claims, i, a, delta) for a in there) else NOT_CLEARLY
        found.setdefault(flag, {"objectives": []})["objectives"].append(claims.table.objectives[i].name)
    return found


def _copies(claims: Claims, x: int, steps: Iterable[Step]) -> dict[str, dict[str, Any]]:
    """What is open as the values of an objective seem to be copies."""
    unclear = [(step.objective, {x, step.rival}) for step in steps if step.verdict == OPEN]
    found = {(i, a) for i, arms in unclear for a in arms if claims.copied[i, a]}
    if not found:
        return {}
    columns, arms = (sorted({pair[side] for pair in found}) for side in (0, 1))
    named = [claims.table.objectives[i].name for i in columns]
    return {"copied values": {"objectives": named, "arms": [claims.table.arms[a] for a in arms]}}


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
        "limit": objective.sign * (-1 if fact == BELOW else 1) * claims.limit(fact, i) + 0.0,
        "level": step.level if claims.noisy[i] else 0.0,
        "verdict": step.verdict,
        "by": names[step.by] if step.by >= 0 else None,
    }


def _fates(
    claims: Claims, answer: int, steps: tuple[Step, ...], gone: dict[int, tuple[int, int]], delta: float
) -> dict[str, dict[str, Any]]:
    """Where each arm stands: its code, the objective and the rival that decide, and what is known of it."""
    names, objectives = claims.table.arms, claims.table.objectives
    found = {}
    for y, name in enumerate(names):
        own = [step for step in steps if step.rival == y and (y != answer or step.verdict == OPEN)]
        still_open = next((step for step in own if step.verdict == OPEN), None)
        decides = next((step for step in own if step.verdict in (BEATS, BEATEN)), None)
        if y in gone:
            code, i, rival = "out", *gone[y]
        elif still_open is not None:
            code, i, rival = "open", still_open.objective, answer if y != answer else -1
        elif y == answer:
            code, i, rival = "answer", -1, -1
        elif decides is not None:
            code, i, rival = "behind", decides.objective, decides.by if decides.by >= 0 else answer
        else:
            beaten = (
                i
                for i in range(claims.n_objectives)
                if claims.lead(BEATS, i, answer, y) > 0 and beats(claims, i, answer, y, delta)
            )
            i = next(beaten, -1)
            code, rival = "as good" if i < 0 else "behind", answer
        fate: dict[str, Any] = {"code": code, "objective": objectives[i].name if i >= 0 else None}
        fate["rival"] = names[rival] if rival >= 0 else None
        if code in ("out", "behind") and claims.is_limit[i]:
            fate["limit"] = "violates_limit" if violates(claims, i, y, delta) else "not_clearly_within"
        if i >= 0 and rival >= 0:  # rival − arm, as far as is known at statement 2's level
            side, sign = claims.side(i, delta), objectives[i].sign
            ends = [sign * claims.bound(i, rival, y, side)]
            ends += [-sign * claims.bound(i, y, rival, side)] if code == "open" else []
            fate |= {"difference": sign * claims.sample(SEEN, i, rival, y).mean + 0.0}
            fate |= dict(zip(("low", "high")[::sign], [*ends, math.nan], strict=False))
        found[name] = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in fate.items()
        }
    return found


def _means(claims: Claims) -> dict[str, dict[str, dict[str, Any]]]:
    """arm -> objective -> mean, standard error, results."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for a, name in enumerate(claims.table.arms):
        for i, objective in enumerate(claims.table.objectives):
            values = claims.table.seen[:, a, i]
            values = values[~np.isnan(values)]
            se = claims.sample(SEEN, i, a, None).se
            words = {"mean": objective.sign * float(values.mean()) + 0.0, "se": se, "results": values.size}
            found.setdefault(name, {})[objective.name] = words
    return found
