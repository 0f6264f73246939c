"""How each arm stands to the answer, and which objective decides: by the rule, the proof or the means."""

from typing import NamedTuple

from lexbandits.picture.view import View

# LEFT: the rule has eliminated it. BEHIND: a proven answer or a third arm was seen to beat it, or it misses a
# limit, but what comes before was not settled: it is a candidate still. BY_THE_MEANS: nothing certain decides
# between them, but today's means do. TIES: not even those, but the mean on the last objective or the
# order of the arms. UNDECIDED: neither, as after a contradiction. GONE: withdrawn, or never measurable.
ANSWER, LEFT, BEHIND, BY_THE_MEANS, TIES, UNDECIDED, GONE = (
    "answer", "left", "behind", "by the means", "ties", "undecided", "gone",
)  # fmt: skip


class Fate(NamedTuple):
    """One arm's; the objective at `position` decides, against `rival`, or a limit (−1)."""

    kind: str
    position: int
    rival: int


def fate_of(view: View, arm: int) -> Fate:
    """How an arm stands to the answer."""
    last, standing = len(view.columns) - 1, view.standing(arm)
    if standing == "answer":
        return Fate(ANSWER, last, -1)
    if standing == "left":
        return Fate(LEFT, view.position_left(arm), view.eliminations[arm].rival)
    if standing != "candidate":
        return Fate(GONE, last, -1)
    if arm in view.behind:
        rival = view.thirds.get(arm, view.leader)
        return Fate(BEHIND, view.position_left(arm), -1 if view.is_target(view.behind[arm]) else rival)
    if view.policy.contradiction or view.dropped is None:
        return Fate(UNDECIDED, last, view.leader)
    if arm in view.dropped:
        return Fate(BY_THE_MEANS, *view.dropped[arm])
    return Fate(TIES, last, view.leader)


def is_tied(view: View, arm: int) -> bool:
    """Whether it was seen, objective by objective, that an arm is as good as the answer."""
    verdicts = [row.verdict for row in view.seen if row.rival == arm]
    return bool(verdicts) and all(verdict in ("close", "meets the target") for verdict in verdicts)
