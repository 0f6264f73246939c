"""An answer as text: who wins, what is flagged, and what became of every other arm. It needs no study."""

from collections.abc import Mapping, Sequence
from typing import Any

from lexbandits.outcomes import ArmOutcome, ClaimVerdict
from lexbandits.study.core.messages import flag_messages
from lexbandits.study.core.queries import Answer
from lexbandits.study.number_format import estimand, listed, many, value
from lexbandits.study.objective import Objective
from lexbandits.views.view_parts import LABELS


def headline_of(answer: Answer) -> str:
    """The answer in one sentence; flags and what is missing have lines of their own."""
    if not answer.certified:
        return f"No certificate: {answer.arm} is the best guess."
    said = flag_messages(answer)
    reason = answer.reason.removesuffix(f", but {'; '.join(said)}")
    return f"{answer.arm} wins: {reason}{', with flags' if said else ''}."


def lines_of(answer: Answer) -> list[str]:
    """What must be known besides, and a line for each other arm."""
    lines = flag_messages(answer) if answer.certified else [answer.reason]
    return [*lines, *arms_of(answer)]


def arms_of(answer: Answer, objectives: Sequence[Objective] = ()) -> list[str]:
    """A line for each other arm, or who could still win; with its `objectives` in their units."""
    lines, asked = [], {objective.name: objective for objective in objectives}
    rivals = dict.fromkeys(row["rival"] for row in answer.certificate)
    wide = max(map(len, rivals), default=0)
    for rival in rivals:
        rows = [row for row in answer.certificate if row["rival"] == rival]
        lines.append(f"{rival:<{wide}}  {_became(rows, answer.certified, asked.get(rows[-1]['objective']))}")
    if not answer.certified and not rivals and len(answer.candidates) > 1:
        lines.append(f"could still win: {listed(list(answer.candidates))}")
    return lines


def _became(rows: Sequence[Mapping[str, Any]], certified: bool, asked: Objective | None) -> str:
    """What a certificate says of one rival; the last row decides, on the objective that was `asked`."""
    row, verdicts = rows[-1], {row["verdict"] for row in rows}
    about = estimand(asked) if asked else ""
    on = f"on {row['objective']}{f' ({about})' if about else ''}"
    match row["verdict"]:
        case ClaimVerdict.BETTER if row["difference"] is not None:
            by = f"{abs(row['difference']):,.4g}"
            by = by if asked is None else value(asked, abs(row["difference"]), unit=True)
            over = many(row["results"], "common result")
            return f"{LABELS[ArmOutcome.EXCLUDED]} {on}: worse by {by} over {over}"
        case ClaimVerdict.BETTER | ClaimVerdict.CLEARLY_BETTER:
            return f"{LABELS[ArmOutcome.EXCLUDED]} {on}"
        case ClaimVerdict.BEATEN:
            return f"{LABELS[ArmOutcome.EXCLUDED]} {on}, by {row['by']}"
        case ClaimVerdict.VIOLATES_LIMIT:
            return f"{LABELS[ArmOutcome.OUTSIDE_LIMIT]} {on}"
        case ClaimVerdict.NOT_CLEARLY_WITHIN:
            return f"{LABELS[ArmOutcome.EXCLUDED]} {on}: not inside the limit by the slack"
    if certified and verdicts <= {ClaimVerdict.TIED, ClaimVerdict.MEETS_LIMIT}:
        return LABELS[ArmOutcome.TIED]
    undecided, shown = LABELS[ArmOutcome.UNDECIDED], "not better by more than the margin"
    if ClaimVerdict.OPEN in verdicts:
        return f"{undecided} {on}"
    if asked is None or row["difference"] is None or asked.limit is not None:
        return f"{undecided}: {shown}"
    by = value(asked, abs(row["difference"]), unit=True)
    side = "worse" if asked.sign * row["difference"] >= 0 else "better"
    return f"{undecided} {on}: {side} by {by} on average, and {shown}"


def text_of(answer: Answer) -> str:
    """The whole text."""
    return "\n".join([headline_of(answer), *(f"  {line}" for line in lines_of(answer))])
