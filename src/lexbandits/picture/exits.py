"""Where each arm's way ends: a code, the objective that decides, and against whom."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lexbandits.picture.view import View

# LEFT: the rule has eliminated it. BEHIND: a proven answer or a third arm was seen to beat it, but what comes
# before was not settled: it is a candidate still. VIOLATES_LIMIT, NOT_CLEARLY_WITHIN: either, by a limit,
# beyond which it is, or not shown to be inside it by the slack. BY_THE_MEANS: nothing
# certain decides between it and a proven answer, but today's means do. TIES: it was seen on every objective
# to be as good as a proven answer. NOT_TOLD_APART: neither, or what was measured refutes every arm. OPEN: it
# may win yet, or is not ruled out by a study that ended without a proof. FAILED: it could not be measured.
ANSWER, LEFT, BEHIND, VIOLATES_LIMIT, NOT_CLEARLY_WITHIN = (
    "ANSWER", "LEFT", "BEHIND", "VIOLATES_LIMIT", "NOT_CLEARLY_WITHIN",
)  # fmt: skip
BY_THE_MEANS, TIES, NOT_TOLD_APART, OPEN, WITHDRAWN, FAILED = (
    "BY_THE_MEANS", "TIES", "NOT_TOLD_APART", "OPEN", "WITHDRAWN", "FAILED",
)  # fmt: skip
BY_LIMIT = (VIOLATES_LIMIT, NOT_CLEARLY_WITHIN)
GONE = (WITHDRAWN, FAILED)


class Way(NamedTuple):
    """One arm's; the objective at `position` decides, against `rival`, or a limit (−1)."""

    code: str
    position: int
    rival: int = -1


def way_of(view: "View", arm: int) -> Way:
    """How an arm stands to the answer."""
    last, name, ledger = len(view.columns) - 1, view.arms[arm], view.fold.ledger
    if name in ledger.withdrawn:
        return Way(FAILED if name in ledger.given_up else WITHDRAWN, last)
    if arm == view.leader:
        return Way(ANSWER, last)
    if arm in view.eliminations:
        left = view.eliminations[arm]
        return Way(_code(view, arm, left.objective, LEFT), view.position_left(arm), left.rival)
    if arm in view.behind:
        code = _code(view, arm, view.behind[arm], BEHIND)
        return Way(code, view.position_left(arm), view.thirds.get(arm, view.leader))
    if not view.is_proven:
        return Way(NOT_TOLD_APART if view.policy.contradiction else OPEN, last, view.leader)
    if _is_tied(view, arm):
        return Way(TIES, last, view.leader)
    if view.dropped is not None and arm in view.dropped:
        return Way(BY_THE_MEANS, *view.dropped[arm])
    return Way(NOT_TOLD_APART, last, view.leader)


def _code(view: "View", arm: int, column: int, beaten: str) -> str:
    """What an arm is that is beaten on an objective: on a limit by what was seen of it alone."""
    if not view.is_target(column):
        return beaten
    return VIOLATES_LIMIT if view.violates(arm, column) else NOT_CLEARLY_WITHIN


def _is_tied(view: "View", arm: int) -> bool:
    """Whether it was seen, objective by objective, that an arm is as good as the answer."""
    verdicts = [row.verdict for row in view.seen if row.rival == arm]
    return bool(verdicts) and all(verdict in ("close", "meets the target") for verdict in verdicts)
