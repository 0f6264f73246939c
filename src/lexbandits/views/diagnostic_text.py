"""The assumptions that a study rests on, and what its diagnostics observed, as sentences."""

from dataclasses import dataclass, field
from typing import Any

from lexbandits.evidence.kinds import NoiseKind
from lexbandits.study.core.diagnostics import Diagnostic, DiagnosticCode, Finding, diagnostics_of
from lexbandits.study.core.events import EventKind
from lexbandits.study.number_format import count, listed, many, value
from lexbandits.study.objective import Objective, written
from lexbandits.study.states import Severity
from lexbandits.views.estimates import Estimates
from lexbandits.views.history import kinds_of


@dataclass(frozen=True)
class Assumption:
    """An assumption and what was observed of it; `code` and `fields` say the same to programs."""

    assumption: str
    observed: str
    severity: Severity
    p: float | None = None  # of the test behind it, if there is one
    code: DiagnosticCode | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """Return both in one line."""
        return f"{self.assumption}: {self.observed}"


def assumptions_of(estimates: Estimates) -> tuple[Assumption, ...]:
    """All of them, in the order in which a reader asks."""
    found = [in_words(estimates, diagnostic) for diagnostic in diagnostics_of(estimates.replay)]
    before_noise = sum(assumption.code != DiagnosticCode.NOISE for assumption in found)
    return (*found[:before_noise], _items(estimates), *found[before_noise:], _rules(estimates))


def in_words(estimates: Estimates, diagnostic: Diagnostic) -> Assumption:
    """One of those that codes are found of."""
    sentences = {
        DiagnosticCode.LOSSES: _losses,
        DiagnosticCode.RETURNED: _returned,
        DiagnosticCode.RETRIED: _retried,
        DiagnosticCode.CORRECTED: _corrected,
        DiagnosticCode.GAPS: _gaps,
        DiagnosticCode.DRIFT: _drift,
        DiagnosticCode.NOISE: _noise,
    }
    return Assumption(
        *sentences[diagnostic.code](estimates, diagnostic),
        diagnostic.severity,
        diagnostic.p,
        diagnostic.code,
        diagnostic.fields,
    )


Sentences = tuple[str, str]  # the assumption, what was observed


# --- what was lost


def _per_arm(counts: dict[str, int]) -> str:
    return ", ".join(f"{arm} {n}" for arm, n in counts.items())


def _counted(fields: dict[str, Any], phrases: dict[str, tuple[str, str]]) -> str:
    """Such as "3 failed (large 3); 1 came late …"."""
    parts = []
    for kind, (of_one, of_many) in phrases.items():
        total = sum(fields.get(kind, {}).values())
        if total:
            parts.append(f"{total} {of_one if total == 1 else of_many} ({_per_arm(fields[kind])})")
    return "; ".join(parts)


def _differ(diagnostic: Diagnostic, so: str) -> str:
    p, fields = f"(p = {diagnostic.p:.2g})", diagnostic.fields
    if fields["worst"] is not None:
        return f" Arms differ {p}, most of all {fields['worst']}: {so}."
    is_many = diagnostic.severity == Severity.WARNING
    rest = f", but these are many, of {fields['of']}: {so}" if is_many else ""
    return f" Arms do not differ more than by chance {p}{rest}."


def _losses(estimates: Estimates, diagnostic: Diagnostic) -> Sentences:
    assumption = "Results are lost for reasons that have nothing to do with their values"
    if diagnostic.severity == Severity.OK:
        return assumption, "No trial failed, ran past its lease or came late."
    phrases = {
        "failed": ("failed", "failed"),
        "expired": ("ran past its lease", "ran past their lease"),
        "late": ("came late and is not counted", "came late and are not counted"),
        "imported": ("row was imported without a value", "rows were imported without a value"),
    }
    text = f"{_counted(diagnostic.fields, phrases)}."
    if estimates.spec.is_list:
        return assumption, f"{text} On a list that is not needed: what is missing counts at its worst."
    if diagnostic.fields["instead"]:
        text += f" On {listed(diagnostic.fields['instead'])} a value stands for them."
    return assumption, text + _differ(diagnostic, "what is lost may not be like what is kept")


def _returned(estimates: Estimates, diagnostic: Diagnostic) -> Sentences:
    assumption = "Trials are given back or broken off for reasons that have nothing to do with their values"
    if diagnostic.severity == Severity.OK:
        return assumption, "No trial was given back or broken off."
    phrases = {
        "released": ("was given back and asked again", "were given back and asked again"),
        "interrupted": ("was begun and broken off", "were begun and broken off"),
    }
    text = f"{_counted(diagnostic.fields, phrases)}."
    return assumption, text + _differ(diagnostic, "what was given back may have been looked at")


def _retried(estimates: Estimates, diagnostic: Diagnostic) -> Sentences:
    assumption = "What failed is measured again for reasons that have nothing to do with its value"
    if diagnostic.severity == Severity.OK:
        return assumption, "Nothing was measured again."
    text = f"{_told_again(diagnostic, 'place', 'asked')}."
    return assumption, text + _differ(diagnostic, "what was measured again may have been looked at")


def _corrected(estimates: Estimates, diagnostic: Diagnostic) -> Sentences:
    text = f"{_told_again(diagnostic, 'result', 'told')}."
    text += _differ(diagnostic, "what was corrected had been looked at")
    return "Results are corrected for reasons that have nothing to do with whom that helps", text


def _told_again(diagnostic: Diagnostic, what: str, how: str) -> str:
    lost = diagnostic.fields["lost"]
    were = f"{many(lost, what)} {'was' if lost == 1 else 'were'} {how} again"
    return f"{were} ({_per_arm(diagnostic.fields['again'])})"


def _gaps(estimates: Estimates, diagnostic: Diagnostic) -> Sentences:
    """Objectives that results left out."""
    missing = diagnostic.fields["missing"]
    lost = sum(missing.values())
    lack = f"{many(lost, 'result')} {'lacks' if lost == 1 else 'lack'} it ({_per_arm(missing)})."
    assumption = f"{diagnostic.objective} is missing for reasons unrelated to its value"
    return assumption, lack + _differ(diagnostic, "what is missing may not be like what is there")


def _drift(estimates: Estimates, diagnostic: Diagnostic) -> Sentences:
    fields = diagnostic.fields
    assumption = f"A value of {diagnostic.objective} does not depend on when it is asked"
    if fields["finding"] == Finding.IN_STEP:
        return assumption, "All arms were measured in step, so whatever changed has changed for all."
    compared = f"{fields['later']} values measured later, against {fields['in_step']} in step"
    if diagnostic.severity != Severity.WARNING:
        return assumption, f"Relative to the others they look the same ({compared}; p = {diagnostic.p:.2g})."
    so = 'say scope="population" in the next study, which does not assume it'
    return assumption, f"{fields['worst']} was another then ({compared}; p = {diagnostic.p:.1g}): {so}."


# --- items and rules


def _items(estimates: Estimates) -> Assumption:
    projection = estimates.replay.projection
    assumption = "Each pass measures its arms on something newly drawn"
    if estimates.spec.is_list:
        return _list_order(estimates)
    passes = estimates.policy.passes_folded
    text = f"{count(passes)} pass{'' if passes == 1 else 'es'}"
    if projection.drawn is None:
        text += "; the study hands out no items, so nobody checks."
    else:
        there = many(projection.n_items or 0, "item")
        text += f" over {there}, order drawn from seed {estimates.spec.seed}, none twice."
    return Assumption(assumption, text, Severity.OK)


def _list_order(estimates: Estimates) -> Assumption:
    spec, ended = estimates.spec, estimates.replay.projection.end is not None
    seed = f"from seed {spec.seed}, " if ended else ""
    shown = "" if ended else "; it is not shown before the end"
    places = many(estimates.replay.projection.n_items or 0, "place")
    text = f"{places}, each measured once per arm at most{shown}."
    if spec.repeats > 1:
        text = f"{many(len(spec.ids), 'item')}, {spec.repeats} times each. {text}"
    return Assumption(f"One order of the items, drawn {seed}when the study was made", text, Severity.OK)


def _rules(estimates: Estimates) -> Assumption:
    assumption = "Rules fixed before looking, or changed in ways that keep the confidence"
    phrases = {
        EventKind.AMENDED: "a margin or a tie was changed",
        EventKind.REORDERED: "the order of objectives was changed",
        EventKind.ARM_ADDED: "an arm was added",
        EventKind.ARM_WITHDRAWN: "an arm was withdrawn",
        EventKind.ARM_RESTORED: "an arm was brought back",
        EventKind.CORRECTED: "a result was corrected",
        EventKind.IMPORTED: "results were imported",
        EventKind.REOPENED: "the study was reopened",
    }
    kinds = kinds_of(estimates.replay, estimates.events)
    changes = [
        f"{what}{'' if kinds[kind] == 1 else f' {kinds[kind]} times'}"
        for kind, what in phrases.items()
        if kinds[kind]
    ]
    if not changes:
        return Assumption(assumption, "Nothing was changed, imported or corrected.", Severity.OK)
    text = f"{listed(changes).capitalize()}."
    if estimates.replay.projection.unfair:
        text += " What was imported had been collected by looking at its values: there is no certificate."
        return Assumption(assumption, text, Severity.WARNING)
    changed = [kind for kind in (EventKind.CORRECTED, EventKind.IMPORTED) if kinds[kind]]
    return Assumption(assumption, text, Severity.NOTICE if changed else Severity.OK)


# --- noise


def _noise(estimates: Estimates, diagnostic: Diagnostic) -> Sentences:
    objective = estimates.objectives[estimates.spec.column(diagnostic.objective)]
    text = _found(objective, diagnostic)
    if diagnostic.severity == Severity.NOT_NEEDED and diagnostic.fields["finding"] != Finding.NEVER_MEASURED:
        text += " It has decided nothing."
    return f"{objective.name} {_declared(objective)}", text


def _declared(objective: Objective) -> str:
    match objective.kind:
        case NoiseKind.BERNOULLI:
            return "is a share of ones, or lies in [0, 1]"
        case NoiseKind.EXACT:
            return "is exact"
        case NoiseKind.GAUSSIAN:
            return "is Gaussian, each difference of two arms with one variance"
        case NoiseKind.SYMMETRIC:
            return "has differences of two arms that are symmetric about their mean, given earlier results"
        case NoiseKind.FINITE_VARIANCE:
            return "has a variance, and there are enough results for the normal approximation"
        case NoiseKind.BOUNDED:
            low, high = (written(float(end), objective.unit_of_mean) for end in objective.bounds)
            return f"lies in [{low}, {high}]"
        case NoiseKind.SUB_GAUSSIAN:
            return f"has sub-Gaussian noise of scale {written(objective.scale, objective.unit_of_mean)}"


def _found(objective: Objective, diagnostic: Diagnostic) -> str:
    fields, p = diagnostic.fields, diagnostic.p
    match fields["finding"]:
        case Finding.NEVER_MEASURED:
            return "Never measured."
        case Finding.ONE_VALUE_EACH:
            return "Every arm kept its one value."
        case Finding.INSIDE | Finding.ON_BOUND as finding:
            lowest = value(objective, fields["lowest"])
            highest = value(objective, fields["highest"], unit=True)
            text = f"Lowest {lowest}, highest {highest}; nothing outside is ever counted."
            if finding == Finding.INSIDE:
                return text
            at_end = fields["values"]
            lie, cut = ("lies", "it was") if at_end == 1 else ("lie", "they were")
            bound = f"{many(at_end, 'value')} {lie} exactly on a bound: right for a timeout"
            return f"{text} {bound}, wrong if {cut} cut off."
        case Finding.REPEATS:
            return "An arm gave one value more than once, which Gaussian noise never does."
        case Finding.ONLY_BINARY:
            return 'All values are 0 or 1, and differences of shares are skewed: say "bernoulli" next time.'
        case Finding.ASYMMETRIC:
            text = f"The differences from {fields['worst']} are skewed (p = {p:.1g})"
            if diagnostic.severity == Severity.WARNING:
                return f"{text}, and results are few for that: say bounds, or a cap, in the next study."
            return f"{text}, but the results are many enough that it hardly matters."
        case Finding.TOO_FEW:
            return "Too few results to tell."
        case Finding.SPREAD_CHANGED:
            return f"The spread changed while it was measured (p = {p:.1g})."
        case Finding.CONSISTENT:
            return f"The values look it (p = {p:.2g})."
        case Finding.INCONSISTENT:
            text = f"The values do not look it (p = {p:.1g})"
            if diagnostic.fields["shape"] < 1:
                return f"{text}, but their skew and tails are small."
            return f"{text}: skewed or heavy-tailed. Say bounds, if there are any, in the next study."
        case Finding.SPREAD:
            return f"The largest standard deviation found is {fields['sd']:.3g}."
        case _:
            text = "The answer is approximate wherever it rests on it"
            if fields["share"] >= 0.25:
                return f"{text}, and one value carries {fields['share']:.0%} of an arm's variance."
            return f"{text}."
