"""A table that was looked at as it grew: judged as results of a study, whose evidence holds at all times."""

from dataclasses import replace
from typing import Any

import numpy as np

from lexbandits.judging.table import Table
from lexbandits.judging.verdict import Verdict
from lexbandits.study.objective import CUTS, Objective
from lexbandits.study.storage.memory import MemoryStorage
from lexbandits.study.study import create_study


def judge_at_any_time(table: Table, means: dict[str, Any], delta: float, missing: str) -> Verdict:
    """The answer of a study into which the table was imported."""
    objectives = [_asked(o, kind, missing) for o, kind in zip(table.objectives, table.kinds, strict=True)]
    study = create_study(
        "judged", MemoryStorage(), arms=list(table.arms), objectives=objectives, delta=delta, seed=0
    )  # a seed of its own each time would flip verdicts
    rows: dict[str, list[Any]] = {name: [] for name in ("arm", *(o.name for o in objectives))}
    if table.is_paired:
        rows["item"] = list(table.items) * len(table.arms)
    for a, arm in enumerate(table.arms):
        seen = table.seen[:, a]
        there = np.full(len(seen), True) if table.is_paired else ~np.isnan(seen).all(axis=1)
        rows["arm"] += [arm] * int(there.sum())
        for i, o in enumerate(table.objectives):
            rows[o.name] += (o.sign * seen[there, i] + 0.0).tolist()
    study.import_results(rows, fair=True)
    answer = study.answer
    details, unmet = dict(answer.details), "closest to the target"
    if unmet in details:  # a study says by how much; a verdict names the objectives
        details[unmet] = {"objectives": [missed["objective"] for missed in details[unmet]["objectives"]]}
    return Verdict(
        arm=answer.arm,
        certified=answer.certified,
        delta=delta,
        acceptable=(answer.arm,) if answer.certified else (),
        candidates=answer.candidates,
        fates={arm: _fate(arm, answer, table.objectives) for arm in table.arms},
        tiers=(answer.candidates, tuple(arm for arm in table.arms if arm not in answer.candidates)),
        certificate=answer.certificate,
        flags=answer.flags,
        details=details,
        means=means,
        objectives=table.objectives,
        items=len(table.seen),
        unsettled=study.status.objective,
        looks="any",
        missing=missing,
    )


def _asked(objective: Objective, kind: str, missing: str) -> Objective:
    """As a study takes it: means of 0/1 values are bounded ones."""
    if objective.noise == "bernoulli" and kind == "bounded":
        objective = replace(objective, noise=("bounded", 0.0, 1.0))
    worst = missing == "worst" and objective.is_bounded
    done: dict[str, Any] = dict.fromkeys(("if_failed", "if_expired", *CUTS))  # with the values, when read
    done["if_missing"] = "worst" if worst else None
    return replace(objective, **done)


def _fate(arm: str, answer: Any, objectives: tuple[Objective, ...]) -> dict[str, Any]:
    """By the rows of the certificate."""
    if arm == answer.arm:
        return {"code": "answer", "objective": None, "rival": None}
    for row in answer.certificate:
        if row["rival"] == arm and row["verdict"] in ("beats", "beaten", "misses the target"):
            by = None if row["verdict"] == "misses the target" else row["by"] or answer.arm
            found = {"code": "behind", "objective": row["objective"], "rival": by}
            ends = {end: row[end] if row["by"] is None else None for end in ("low", "high")}
            return {**found, "difference": row["difference"], **ends}
    code = "as good" if answer.certified else "open" if arm in answer.candidates else "out"
    return {"code": code, "objective": None, "rival": answer.arm if code == "as good" else None}
