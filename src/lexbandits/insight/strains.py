"""Which assumptions a study rests on, and what happened that strains them."""

import math
from dataclasses import dataclass

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.insight.view import View
from lexbandits.insight.words import amount, count, listed, many, value
from lexbandits.study.ledger import IMPORTED, RELEASED
from lexbandits.study.objective import Objective

DOUBT = 0.001  # p-value below which values are said to contradict what was declared
UNEQUAL = 0.01  # p-value below which arms are said to lose results unequally
TABLES = 9_999  # random tables for the test of that


@dataclass(frozen=True)
class Strain:
    """An assumption and what happened: `level` is "none", "slight", "strained" or "not needed"."""

    assumption: str
    happened: str
    level: str
    p: float | None = None  # of the test behind it, if there is one

    @property
    def sentence(self) -> str:
        """In words."""
        return f"{self.assumption}: {self.happened}"


def strains_of(view: View) -> tuple[Strain, ...]:
    """All assumptions, in the order in which a reader asks."""
    return (
        _losses(view),
        *_gaps(view),
        _items(view),
        *(_noise(view, column) for column in view.columns),
        _rules(view),
    )


# --- what was lost


def unequal(lost: list[int], handed_out: list[int]) -> float:
    """The p-value of "all arms lose results equally often": exact but for the number of random tables."""
    from scipy.stats import random_table

    kept = [all_ - gone for all_, gone in zip(handed_out, lost, strict=True)]
    if sum(lost) == 0 or sum(kept) == 0 or len(lost) < 2:
        return 1.0
    table = np.array([lost, kept], float)
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    expected[expected == 0] = 1.0

    def distance(tables: Vector) -> Vector:
        return np.asarray(((tables - expected) ** 2 / expected).sum(axis=(-2, -1)))

    drawn = random_table(table.sum(1), table.sum(0)).rvs(TABLES, random_state=np.random.default_rng(0))
    as_far = int((distance(drawn) >= distance(table) * (1 - 1e-9)).sum())
    return (1 + as_far) / (1 + TABLES)


def _losses(view: View) -> Strain:
    assumption = "Results are lost for reasons that have nothing to do with their values"
    lost = {arm: view.losses(arm) for arm in range(len(view.arms))}
    totals = {word: sum(row[word] for row in lost.values()) for word in ("failed", "expired", "late")}
    if not any(totals.values()):
        return Strain(assumption, "No trial failed, ran past its lease or came late.", "none")
    words = {
        "failed": ("failed", "failed"),
        "expired": ("ran past its lease", "ran past their lease"),
        "late": ("came late and is not counted", "came late and are not counted"),
    }
    parts = []
    for kind, (of_one, of_many) in words.items():
        by_arm = [f"{view.arms[arm]} {row[kind]}" for arm, row in lost.items() if row[kind]]
        if by_arm:
            what = of_one if totals[kind] == 1 else of_many
            parts.append(f"{totals[kind]} {what} ({', '.join(by_arm)})")
    arm_of, states = view.fold.ledger.column("arm"), view.states
    asked = ~np.isin(states, (RELEASED, IMPORTED))
    handed_out = [int((asked & (arm_of == arm)).sum()) for arm in lost]
    gone = [sum(row.values()) for row in lost.values()]
    p = unequal(gone, handed_out)
    instead = [o.name for o in view.objectives if o.if_failed is not None or o.if_expired is not None]
    text = f"{'; '.join(parts)}."
    if instead:
        text += f" On {listed(instead)} a value stands for them."
    if p >= UNEQUAL:
        return Strain(
            assumption, f"{text} Arms do not differ more than by chance (p = {p:.2g}).", "slight", p
        )
    worst = max(lost, key=lambda arm: gone[arm] / max(handed_out[arm], 1))
    text += f" Arms differ (p = {p:.2g}), most of all {view.arms[worst]}: "
    text += "what is lost may not be like what is kept."
    return Strain(assumption, text, "slight" if len(instead) == len(view.objectives) else "strained", p)


def _gaps(view: View) -> list[Strain]:
    """Objectives that results left out."""
    rows = []
    for column in view.columns:
        counts = [len(view.values(arm, column)) for arm in range(len(view.arms))]
        told = view.measured
        lost = [max(t - c, 0) for t, c in zip(told, counts, strict=True)]
        if not sum(lost) or view.objectives[column].noise == "exact":
            continue
        p = unequal(lost, told)
        by_arm = ", ".join(f"{view.arms[a]} {n}" for a, n in enumerate(lost) if n)
        lack = f"{many(sum(lost), 'result')} {'lacks' if sum(lost) == 1 else 'lack'} it"
        tail = "Arms differ" if p < UNEQUAL else "Arms do not differ more than by chance"
        rows.append(
            Strain(
                f"{view.objectives[column].name} is missing for reasons unrelated to its value",
                f"{lack} ({by_arm}). {tail} (p = {p:.2g}).",
                "strained" if p < UNEQUAL else "slight",
                p,
            )
        )
    return rows


# --- items and rules


def _items(view: View) -> Strain:
    ledger, assumption = view.fold.ledger, "Each pass measures its arms on something drawn anew"
    passes = view.policy.folded
    if ledger.drawn is None:
        return Strain(
            assumption, f"{_passes(passes)}; the study hands out no items, so nobody checks.", "none"
        )
    there = len(ledger.imported_items) + len(ledger.drawn)
    drawn = f"order drawn from seed {view.spec.seed}, none twice"
    text = f"{_passes(passes)} over {many(there, 'item')}, {drawn}."
    return Strain(assumption, text, "none")


def _passes(number: int) -> str:
    return f"{count(number)} pass{'' if number == 1 else 'es'}"


def _rules(view: View) -> Strain:
    assumption = "Rules fixed before looking, or changed in ways that keep the confidence"
    words = {
        "amended": "a tolerance or resolution was changed",
        "reordered": "the order of objectives was changed",
        "arm_added": "an arm was added",
        "arm_withdrawn": "an arm was withdrawn",
        "arm_restored": "an arm was brought back",
        "corrected": "a result was corrected",
        "imported": "results were imported",
        "reopened": "the study was reopened",
    }
    happened = [
        f"{what}{'' if view.kinds[kind] == 1 else f' {view.kinds[kind]} times'}"
        for kind, what in words.items()
        if view.kinds[kind]
    ]
    if not happened:
        return Strain(assumption, "Nothing was changed, imported or corrected.", "none")
    text = f"{listed(happened).capitalize()}."
    if view.fold.ledger.unfair:
        text += " What was imported had been collected by looking at its values: there is no certificate."
        return Strain(assumption, text, "strained")
    changed = [kind for kind in ("corrected", "imported") if view.kinds[kind]]
    return Strain(assumption, text, "slight" if changed else "none")


# --- noise


def _noise(view: View, column: int) -> Strain:
    objective = view.objectives[column]
    values = [v for arm in range(len(view.arms)) if (v := view.values(arm, column)).size]
    assumption = f"{objective.name} {_declared(objective)}"
    if not values:
        return Strain(assumption, "Never measured.", "not needed")
    word = objective.noise if isinstance(objective.noise, str) else objective.noise[0]
    checks = {
        "gaussian": _gaussian,
        "sub_gaussian": _sub_gaussian,
        "finite_variance": _finite_variance,
        "exact": lambda *_: ("Every arm kept its one value.", "none", None),
    }
    text, level, p = checks.get(word, _bounded)(view, column, values)
    position = view.columns.index(column)
    if view.stage(position) in ("later", "not needed"):
        return Strain(assumption, f"{text} It has decided nothing.", "not needed", p)
    return Strain(assumption, text, level, p)


def _declared(objective: Objective) -> str:
    noise = objective.noise
    if noise == "bernoulli":
        return "is a share of ones, or lies in [0, 1]"
    if noise == "exact":
        return "is exact"
    if noise == "gaussian":
        return "is Gaussian, each difference of two arms with one variance"
    if noise == "finite_variance":
        return "has a variance, and there are enough results for the normal approximation"
    if noise[0] == "bounded":
        return f"lies in [{amount(objective, float(noise[1]))}, {amount(objective, float(noise[2]))}]"
    return f"has sub-Gaussian noise of scale {amount(objective, float(noise[1]))}"


Found = tuple[str, str, float | None]


def _bounded(view: View, column: int, values: list[Vector]) -> Found:
    objective = view.objectives[column]
    low, high = objective.bounds
    everything = np.concatenate(values)
    lowest, highest = value(objective, everything.min()), value(objective, everything.max(), unit=True)
    text = f"Lowest {lowest}, highest {highest}; nothing outside is ever counted."
    at_end = int(((everything == low) | (everything == high)).sum())
    if objective.noise != "bernoulli" and 0 < at_end < everything.size:
        lie, cut = ("lies", "it was") if at_end == 1 else ("lie", "they were")
        text += f" {many(at_end, 'value')} {lie} exactly on a bound: right for a timeout, "
        text += f"wrong if {cut} cut off."
        return text, "slight", None
    return text, "none", None


def _gaussian(view: View, column: int, values: list[Vector]) -> Found:
    from scipy.stats import jarque_bera, kurtosis, levene, skew

    if column in view.policy.repeating:
        return "An arm gave one value more than once, which Gaussian noise never does.", "strained", 0.0
    long = [v for v in values if v.size >= 30 and np.ptp(v) > 0]
    if not long:
        return "Too few results to tell.", "none", None
    p = min(1.0, len(long) * min(float(jarque_bera(v).pvalue) for v in long))
    halves = [float(levene(v[: v.size // 2], v[v.size // 2 :]).pvalue) for v in long]
    p_drift = min(1.0, len(long) * min(halves))
    if p_drift < DOUBT:
        return f"The spread changed while it was measured (p = {p_drift:.1g}).", "strained", p_drift
    if p >= DOUBT:
        return f"The values look it (p = {p:.2g}).", "none", p
    shape = max(max(abs(float(skew(v))), float(kurtosis(v)) / 3) for v in long)
    text = f"The values do not look it (p = {p:.1g})"
    if shape < 1:
        return f"{text}, but their skew and tails are small.", "slight", p
    return f"{text}: skewed or heavy-tailed. Say bounds, if there are any, in the next study.", "strained", p


def _sub_gaussian(view: View, column: int, values: list[Vector]) -> Found:
    from scipy.stats import chi2

    declared = float(view.objectives[column].noise[1])
    found = max((v for v in values), key=lambda v: float(np.std(v)))
    free = max(found.size - 1, 1)
    p = min(1.0, len(values) * float(chi2.sf(found.size * np.var(found) / declared**2, free)))
    text = f"The largest standard deviation found is {np.std(found):.3g}."
    return text, "strained" if p < DOUBT else "none", p


def _finite_variance(view: View, column: int, values: list[Vector]) -> Found:
    shares = [float(((v - v.mean()) ** 2).max() / max(v.size * np.var(v), math.ulp(0.0))) for v in values]
    text = "The answer is approximate wherever it rests on it"
    if max(shares) >= 0.25:
        return f"{text}, and one value carries {max(shares):.0%} of an arm's variance.", "strained", None
    return f"{text}.", "slight", None
