"""Which assumptions a study rests on, and what happened that strains them, in words."""

from dataclasses import dataclass, field
from typing import Any

from lexbandits.picture.history import kinds_of
from lexbandits.picture.view import View
from lexbandits.study.objective import Objective, written
from lexbandits.study.record.strains import Strain, strains_of
from lexbandits.study.words import count, listed, many, value


@dataclass(frozen=True)
class Assumption:
    """An assumption and what happened: `level` is "none", "slight", "strained" or "not needed".

    `code`, `fields`: the same for programs.
    """

    assumption: str
    happened: str
    level: str
    p: float | None = None  # of the test behind it, if there is one
    code: str = ""
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """In words."""
        return f"{self.assumption}: {self.happened}"


def assumptions_of(view: View) -> tuple[Assumption, ...]:
    """All of them, in the order in which a reader asks."""
    found = [in_words(view, strain) for strain in strains_of(view.fold)]
    before_noise = sum(assumption.code != "noise" for assumption in found)
    return (*found[:before_noise], _items(view), *found[before_noise:], _rules(view))


def in_words(view: View, strain: Strain) -> Assumption:
    """One of those that codes are found of."""
    said = {
        "losses": _losses,
        "returned": _returned,
        "retried": _retried,
        "corrected": _corrected,
        "gaps": _gaps,
        "drift": _drift,
        "noise": _noise,
    }
    return Assumption(*said[strain.code](view, strain), strain.level, strain.p, strain.code, strain.fields)


Said = tuple[str, str]  # the assumption, what happened


# --- what was lost


def _per_arm(counts: dict[str, int]) -> str:
    return ", ".join(f"{arm} {n}" for arm, n in counts.items())


def _counted(fields: dict[str, Any], words: dict[str, tuple[str, str]]) -> str:
    """Such as "3 failed (large 3); 1 came late …"."""
    parts = []
    for kind, (of_one, of_many) in words.items():
        total = sum(fields.get(kind, {}).values())
        if total:
            parts.append(f"{total} {of_one if total == 1 else of_many} ({_per_arm(fields[kind])})")
    return "; ".join(parts)


def _differ(strain: Strain, so: str) -> str:
    p = f"(p = {strain.p:.2g})"
    if strain.fields["worst"] is None:
        rest = f", but these are many, of {strain.fields['of']}: {so}" if strain.level == "strained" else ""
        return f" Arms do not differ more than by chance {p}{rest}."
    return f" Arms differ {p}, most of all {strain.fields['worst']}: {so}."


def _losses(view: View, strain: Strain) -> Said:
    assumption = "Results are lost for reasons that have nothing to do with their values"
    if strain.level == "none":
        return assumption, "No trial failed, ran past its lease or came late."
    words = {
        "failed": ("failed", "failed"),
        "expired": ("ran past its lease", "ran past their lease"),
        "late": ("came late and is not counted", "came late and are not counted"),
        "imported": ("row was imported without a value", "rows were imported without a value"),
    }
    text = f"{_counted(strain.fields, words)}."
    if view.spec.is_list and strain.level != "none":
        return assumption, f"{text} On a list that is not needed: what is missing counts at its worst."
    if strain.fields["instead"]:
        text += f" On {listed(strain.fields['instead'])} a value stands for them."
    return assumption, text + _differ(strain, "what is lost may not be like what is kept")


def _returned(view: View, strain: Strain) -> Said:
    assumption = "Trials are given back or broken off for reasons that have nothing to do with their values"
    if strain.level == "none":
        return assumption, "No trial was."
    words = {
        "released": ("was given back and asked again", "were given back and asked again"),
        "interrupted": ("was begun and broken off", "were begun and broken off"),
    }
    text = f"{_counted(strain.fields, words)}."
    return assumption, text + _differ(strain, "what was given back may have been looked at")


def _retried(view: View, strain: Strain) -> Said:
    assumption = "What failed is measured again for reasons that have nothing to do with its value"
    if strain.level == "none":
        return assumption, "Nothing was."
    text = f"{many(strain.fields['lost'], 'place')} were asked again ({_per_arm(strain.fields['again'])})."
    return assumption, text + _differ(strain, "what was measured again may have been looked at")


def _corrected(view: View, strain: Strain) -> Said:
    text = f"{many(strain.fields['lost'], 'result')} were told anew ({_per_arm(strain.fields['again'])})."
    text += _differ(strain, "what was corrected had been looked at")
    return "Results are corrected for reasons that have nothing to do with whom that helps", text


def _drift(view: View, strain: Strain) -> Said:
    assumption = f"A value of {strain.objective} does not depend on when it is asked"
    finding = strain.fields["finding"]
    if finding == "in step":
        return assumption, "All arms were measured in step, so whatever changed has changed for all."
    compared = f"{strain.fields['later']} values measured later, against {strain.fields['in step']} in step"
    if strain.level != "strained":
        return assumption, f"Relative to the others they look the same ({compared}; p = {strain.p:.2g})."
    so = 'say about="population" in the next study, which does not assume it'
    return assumption, f"{strain.fields['worst']} was another then ({compared}; p = {strain.p:.1g}): {so}."


def _gaps(view: View, strain: Strain) -> Said:
    """Objectives that results left out."""
    missing = strain.fields["missing"]
    lost = sum(missing.values())
    lack = f"{many(lost, 'result')} {'lacks' if lost == 1 else 'lack'} it ({_per_arm(missing)})."
    assumption = f"{strain.objective} is missing for reasons unrelated to its value"
    return assumption, lack + _differ(strain, "what is missing may not be like what is there")


# --- items and rules


def _items(view: View) -> Assumption:
    ledger, assumption = view.fold.ledger, "Each pass measures its arms on something drawn anew"
    passes = view.policy.folded
    if view.spec.is_list:
        return _list_order(view)
    if ledger.drawn is None:
        text = f"{_passes(passes)}; the study hands out no items, so nobody checks."
        return Assumption(assumption, text, "none")
    there = ledger.n_items or 0
    drawn = f"order drawn from seed {view.spec.seed}, none twice"
    text = f"{_passes(passes)} over {many(there, 'item')}, {drawn}."
    return Assumption(assumption, text, "none")


def _list_order(view: View) -> Assumption:
    spec, ended = view.spec, view.fold.ledger.end is not None
    seed = f"from seed {spec.seed}, " if ended else ""
    shown = "" if ended else "; it is not shown before the end"
    text = f"{many(view.fold.ledger.n_items or 0, 'place')}, each measured once per arm at most{shown}."
    if spec.repeats > 1:
        text = f"{many(len(spec.ids), 'item')}, {spec.repeats} times each. {text}"
    return Assumption(f"One order of the items, drawn {seed}when the study was made", text, "none")


def _passes(number: int) -> str:
    return f"{count(number)} pass{'' if number == 1 else 'es'}"


def _rules(view: View) -> Assumption:
    assumption = "Rules fixed before looking, or changed in ways that keep the confidence"
    words = {
        "amended": "a margin or a tie was changed",
        "reordered": "the order of objectives was changed",
        "arm_added": "an arm was added",
        "arm_withdrawn": "an arm was withdrawn",
        "arm_restored": "an arm was brought back",
        "corrected": "a result was corrected",
        "imported": "results were imported",
        "reopened": "the study was reopened",
    }
    kinds = kinds_of(view.fold, view.events)
    happened = [
        f"{what}{'' if kinds[kind] == 1 else f' {kinds[kind]} times'}"
        for kind, what in words.items()
        if kinds[kind]
    ]
    if not happened:
        return Assumption(assumption, "Nothing was changed, imported or corrected.", "none")
    text = f"{listed(happened).capitalize()}."
    if view.fold.ledger.unfair:
        text += " What was imported had been collected by looking at its values: there is no certificate."
        return Assumption(assumption, text, "strained")
    changed = [kind for kind in ("corrected", "imported") if kinds[kind]]
    return Assumption(assumption, text, "slight" if changed else "none")


# --- noise


def _noise(view: View, strain: Strain) -> Said:
    objective = view.objectives[view.spec.column(strain.objective)]
    text = _found(objective, strain)
    if strain.level == "not needed" and strain.fields["finding"] != "never measured":
        text += " It has decided nothing."
    return f"{objective.name} {_declared(objective)}", text


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
        low, high = (written(float(end), objective.unit_of_mean) for end in noise[1:])
        return f"lies in [{low}, {high}]"
    return f"has sub-Gaussian noise of scale {written(float(noise[1]), objective.unit_of_mean)}"


def _found(objective: Objective, strain: Strain) -> str:
    fields, p = strain.fields, strain.p
    match fields["finding"]:
        case "never measured":
            return "Never measured."
        case "one value each":
            return "Every arm kept its one value."
        case "inside" | "on a bound" as finding:
            lowest, highest = (
                value(objective, fields["lowest"]),
                value(objective, fields["highest"], unit=True),
            )
            text = f"Lowest {lowest}, highest {highest}; nothing outside is ever counted."
            if finding == "inside":
                return text
            at_end = fields["values"]
            lie, cut = ("lies", "it was") if at_end == 1 else ("lie", "they were")
            bound = f"{many(at_end, 'value')} {lie} exactly on a bound: right for a timeout"
            return f"{text} {bound}, wrong if {cut} cut off."
        case "repeats":
            return "An arm gave one value more than once, which Gaussian noise never does."
        case "too few":
            return "Too few results to tell."
        case "spread changed":
            return f"The spread changed while it was measured (p = {p:.1g})."
        case "looks it":
            return f"The values look it (p = {p:.2g})."
        case "does not look it":
            text = f"The values do not look it (p = {p:.1g})"
            if strain.fields["shape"] < 1:
                return f"{text}, but their skew and tails are small."
            return f"{text}: skewed or heavy-tailed. Say bounds, if there are any, in the next study."
        case "spread":
            return f"The largest standard deviation found is {fields['sd']:.3g}."
        case _:
            text = "The answer is approximate wherever it rests on it"
            if fields["share"] >= 0.25:
                return f"{text}, and one value carries {fields['share']:.0%} of an arm's variance."
            return f"{text}."
