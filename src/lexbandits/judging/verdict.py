"""`judge`: the verdict of a table that is there already."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lexbandits.arrays import Vector
from lexbandits.checks import one_of, probability
from lexbandits.judging.claims import BEATS, HOLDS, MEETS, MISSES, SEEN, UNSURE, Claims
from lexbandits.judging.scheme import (
    BEATEN,
    OPEN,
    Proof,
    Step,
    is_better,
    level_of,
    plug_in,
    proof_of,
    rank,
    shares,
    survey,
    tiers_of,
)
from lexbandits.judging.table import Table, table_of
from lexbandits.study.errors import StudyError, study_errors
from lexbandits.study.objective import Objective
from lexbandits.study.spec import arm_index

if TYPE_CHECKING:
    import pandas as pd

FUTURES = 50  # draws of the means, for how many items it may take
FEW_CLUSTERS = 10


@dataclass(frozen=True)
class Verdict:
    """Which arm, and how sure. While `certified` is False `arm` is a best guess.

    Two statements, each at 1 − delta: every arm of `acceptable` is so, whichever is chosen; and all that
    `fates`, `candidates` and `tiers` say is so. `certificate` has what the answer rests on, a row per rival
    and objective. `missing_items` is how many new items, judged alone, would give a certificate in 8 of 10
    cases, if the estimates are right, and `missing_range` where that may lie; None: they forbid it. `flags`
    name what a reader must know besides, `details` has their fields.
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
    settled: bool = False  # whether everything is, by statement 2
    decision: str | None = None
    missing_items: int | None = None
    missing_range: tuple[int | None, int | None] | None = None
    looks: str = "once"
    about: str = "population"
    missing: str = "error"
    baseline: str | None = None
    named: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        words = asdict(replace(self, objectives=()))
        return {**words, "objectives": [objective.as_json() for objective in self.objectives]}

    def to_frame(self) -> "pd.DataFrame":
        """The certificate as a table."""
        import pandas as pd

        return pd.DataFrame(list(self.certificate))

    def __str__(self) -> str:
        from lexbandits.judging.words import in_text

        return in_text(self)

    def as_markdown(self) -> str:
        """For a pull request."""
        from lexbandits.judging.words import in_markdown

        return in_markdown(self)


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
    """Which arm of a finished table is the best choice, and is that certain?

    `table` is a frame, a dict of columns or a file: one row per arm and item (and repeat), the objectives
    are columns. `arm`, `item`, `repeat` and `cluster` name columns; item=None: nothing pairs the rows.
    looks="once" assumes that the number of items was decided without looking at values, "any" does not.
    about="items" asks about these items alone. `missing` is "error", "worst" or "drop". With a `baseline`,
    the current arm, the question is whether to switch; with `named` it is about this arm, chosen before
    looking. docs/judge.md.
    """
    asked = tuple(Objective.from_json(objective) for objective in objectives)
    for objective in asked:
        objective.check_settled()
    if not asked or len({objective.name for objective in asked}) < len(asked):
        raise StudyError("judge needs objectives, each with a name of its own")
    probability("delta", delta)
    one_of("looks", looks, ("once", "any"))
    one_of("about", about, ("population", "items"))
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
        from lexbandits.judging.anytime import judge_at_any_time

        if about == "items" or cluster is not None or baseline is not None or named is not None:
            raise StudyError('looks="any" has neither about="items" nor cluster=, baseline= or named=')
        return judge_at_any_time(cells, _means(Claims(cells)), delta, missing)
    if about == "items":
        if cells.missing and missing == "drop":
            raise StudyError(
                'about="items" needs all values: say missing="worst", or if_failed= of an objective'
            )
    elif len(cells.arms) > 1 and cells.n_units < 2:
        raise StudyError("one item proves nothing of those to come")
    return _judged(Claims(cells, as_list=about == "items"), delta, words)


def _judged(claims: Claims, delta: float, words: dict[str, Any]) -> Verdict:
    names, everybody = claims.table.arms, range(claims.n_arms)
    base, asked = (None if words[key] is None else names.index(words[key]) for key in ("baseline", "named"))
    leads, near = claims.seem()
    guess, kept, likely = plug_in(claims, leads, near, first=base or 0)
    alpha = level_of(claims, delta, baseline=base is not None, named=asked is not None)
    tried = everybody if asked is None else [asked]
    proofs = {x: proof_of(claims, x, alpha, likely) for x in tried}
    doubts = {x: _doubts(claims, x, proof.steps) for x, proof in proofs.items()}
    good = [x for x, proof in proofs.items() if proof.is_complete and not doubts[x].keys() & UNSURE]
    if claims.as_list and not claims.table.missing:
        good = [x for x in kept if x in tried]
    switches = {}
    if base is not None:
        for w in good:
            better = is_better(claims, w, base, alpha, proofs[w].given_up)
            if better and not _doubts(claims, w, better).keys() & UNSURE:
                switches[w] = better
    fit = list(switches) if base is not None and base not in good else good
    answer = guess if guess in fit or not fit else max(fit, key=lambda x: rank(leads, x, fit))
    decision = None
    if asked is not None:
        answer = asked
    elif base is not None:
        decision = "keep" if base in good else "switch" if switches else "keep for now"
        answer = answer if decision == "switch" else base
    certified = answer in good
    steps = proof_of(claims, answer, alpha, likely, in_full=True).steps
    least = {step[:4]: step for step in sorted(steps, key=lambda step: -step.level)}  # of equal claims
    steps = tuple(step for step in dict.fromkeys(steps) if step is least[step[:4]])
    if decision == "switch":
        steps += switches[answer]
    gone, stage = survey(claims, delta, everybody)
    details = _details(claims, doubts.get(answer, {}), proofs[answer], words["missing"])
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
        settled=stage == claims.n_objectives,
        **words,
    )
    if certified or claims.as_list:
        return verdict
    typical, *possible = (_items_needed(claims, leads, near, noise, alpha) for noise in _noise(claims.table))
    if math.isinf(typical):
        return verdict
    ends = np.quantile([typical, *possible], (0.1, 0.9), method="nearest")
    low, high = (None if math.isinf(end) else math.ceil(end) for end in ends)
    return replace(verdict, missing_items=math.ceil(typical), missing_range=(low, high))


# --- what it rests on


def _claim(x: int, step: Step) -> tuple[str, int, int, int | None]:
    """The claim of a step in the proof of x."""
    if step.verdict in (MEETS, MISSES):
        return step.verdict, step.objective, step.rival, None
    return (
        BEATS if step.verdict == BEATEN else step.verdict,
        step.objective,
        x if step.by < 0 else step.by,
        step.rival,
    )


def _doubts(claims: Claims, x: int, steps: Iterable[Step]) -> dict[str, set[int]]:
    """Flags of what was claimed, and the objectives that they are about."""
    found: dict[str, set[int]] = {}
    for step in steps:
        if step.verdict != OPEN:
            for flag in claims.doubts(*_claim(x, step), step.level):
                found.setdefault(flag, set()).add(step.objective)
    return found


def _details(
    claims: Claims, doubts: dict[str, set[int]], proof: Proof, missing: str
) -> dict[str, dict[str, Any]]:
    """Flag -> its fields."""
    table = claims.table
    named = [objective.name for objective in table.objectives]
    found: dict[str, dict[str, Any]] = {
        flag: {"objectives": [named[i] for i in sorted(columns)]} for flag, columns in doubts.items()
    }
    if table.missing and missing == "drop":
        found["dropped missing"] = {"cells": table.missing}
    if proof.given_up and proof.is_complete:
        found["closest to the target"] = {"objectives": [named[i] for i in sorted(proof.given_up)]}
    if table.clusters is not None and table.n_units < FEW_CLUSTERS:
        found["few clusters"] = {"clusters": table.n_units}
    odd = [
        o.name
        for o, kind in zip(table.objectives, table.kinds, strict=True)
        if kind == "bounded" and o.noise == "bernoulli" and table.repeats[1] == 1
    ]
    if odd:
        found["not 0 or 1"] = {"objectives": odd}
    return found


def _row(claims: Claims, x: int, step: Step) -> dict[str, Any]:
    """One comparison, in the objective's unit."""
    names, objective = claims.table.arms, claims.table.objectives[step.objective]
    fact, i, a, b = _claim(x, step) if step.verdict != OPEN else (HOLDS, step.objective, x, step.rival)
    if a == b:  # its target, which is open
        fact, b = MEETS, None
    sample = claims.sample(SEEN, i, a, b)
    return {
        "arm": names[a] if b is not None else None,
        "rival": names[step.rival],
        "objective": objective.name,
        "difference": objective.sign * sample.mean + 0.0,
        "se": sample.se,
        "results": sample.n,
        "limit": objective.sign * (-1 if fact == MISSES else 1) * claims.limit(fact, i) + 0.0,
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
        decides = next((step for step in own if step.verdict in (BEATS, BEATEN, MISSES)), None)
        if y in gone:
            code, i, rival = "out", *gone[y]
        elif still_open is not None:
            code, i, rival = "open", still_open.objective, answer if y != answer else -1
        elif y == answer:
            code, i, rival = "answer", -1, -1
        elif decides is not None:
            rival = decides.by if decides.by >= 0 else answer if decides.verdict == BEATS else -1
            code, i = "behind", decides.objective
        else:
            sides = [(i, claims.side(i, delta)) for i, target in enumerate(claims.targets) if target is None]
            beaten = (
                i
                for i, side in sides
                if claims.lead(BEATS, i, answer, y) > 0 and claims.says(BEATS, i, answer, y, side)
            )
            i = next(beaten, -1)
            code, rival = "as good" if i < 0 else "behind", answer
        fate: dict[str, Any] = {"code": code, "objective": objectives[i].name if i >= 0 else None}
        fate["rival"] = names[rival] if rival >= 0 else None
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


# --- how many items it may take


def _noise(table: Table) -> Vector:
    """(1 + FUTURES, m, K) by how much the means may be off; the first time not at all."""
    filled = table.seen - np.nanmean(table.seen, axis=0)
    filled[np.isnan(filled)] = 0.0
    units = filled.transpose(0, 2, 1).reshape(len(filled), -1)
    if table.clusters is not None:
        summed = np.zeros((table.n_units, units.shape[1]))
        np.add.at(summed, table.clusters, units)
        units = summed
    drawn = np.random.default_rng(0).standard_normal((FUTURES, len(units))) @ units / len(filled)
    return np.concatenate([np.zeros((1, units.shape[1])), drawn]).reshape(FUTURES + 1, *filled.shape[:0:-1])


def _items_needed(claims: Claims, leads: Vector, near: Vector, noise: Vector, alpha: float) -> float:
    """How many items (or clusters) give the likely answer its certificate in 8 of 10 cases."""
    x, _, given_up = plug_in(claims, leads + noise[:, :, None] - noise[:, None, :], near + noise)
    limits = [i for i, target in enumerate(claims.targets) if target is not None and i not in given_up]
    needed = [_enough(claims, noise, (MEETS, i, x, None), alpha) for i in limits]
    for y in range(claims.n_arms):
        for i in range(claims.n_objectives):
            if y != x and i not in limits:
                ways = shares(claims, x, y, i, limits)
                needed.append(min(_enough(claims, noise, claim, share * alpha) for claim, share in ways))
    return max(needed, default=0.0)


def _enough(claims: Claims, noise: Vector, claim: tuple[str, int, int, int | None], alpha: float) -> float:
    fact, i, a, b = claim
    sample, limit = claims.sample(*claim), claims.limit(fact, i)
    if not claims.noisy[i]:
        return 0.0 if claims.says(*claim, alpha) else math.inf
    lead = (
        sample.mean
        - limit
        + (-1 if fact == MISSES else 1) * noise[i, a]
        - (0.0 if b is None else noise[i, b])
    )
    if lead <= 0:
        return math.inf
    plain = float((special.ndtri(0.8) - special.ndtri(alpha)) * sample.sd / lead) ** 2
    if claims.table.kinds[i] != "bounded":
        return plain
    return 1.25 * plain + (limit - sample.low) * math.log(1 / alpha) / float(lead)
