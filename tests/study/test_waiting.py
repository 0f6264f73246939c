"""Which results wait behind which open trials, against the definition."""

import pytest
from lives import in_memory, script_of
from worlds import create, measure

from lexbandits.study.ledger import TOLD


def waits_for(fold, number):
    """The open trials that a pass lacks, or may lack, whose place comes first: by pass, then by arm."""
    place, arm, policy = fold.ledger.place, fold.ledger.arm, fold.policy
    lacking = [(number, arm) for arm, number in policy.lacking]
    ranks = {other: (place[other], arm[other]) for other in fold.ledger.open}
    awaited = [other for other, rank in ranks.items() if rank[0] > policy.folded or rank in lacking]
    return [other for other in awaited if ranks[other] < (place[number], arm[number])]


@pytest.mark.parametrize("seed", range(60))
def test_who_waits_for_whom(seed):
    study = in_memory().play([a for a in script_of(seed, 200) if a[0] not in ("end", "budget", "pause")])
    fold = study._journal.fold()
    ledger = fold.ledger
    told = [
        n for n in range(len(ledger)) if ledger.state[n] == TOLD and ledger.place[n] >= fold.policy.folded
    ]
    assert ledger.told_from(fold.policy.folded) == told
    expected = {number: waits_for(fold, number) for number in told}
    assert fold.waiting(told) == [bool(others) for others in expected.values()]
    behind = sorted({other for others in expected.values() for other in others})
    assert fold.holding_back(told) == behind
    folded = [n for n in range(len(ledger)) if ledger.place[n] < fold.policy.folded]
    assert not any(fold.waiting(folded))
    assert fold.holding_back(folded) == []
    if ledger.open:
        assert study.status.waiting == sum(map(bool, expected.values()))
        assert [int(each.split("-")[0]) for each in study.status.waiting_for] == behind


def test_a_result_waits_for_its_own_pass_too():
    study = create()
    first, second, third = study.ask_many(3)
    assert first.item == second.item == third.item
    assert study.tell(second, measure(second.arm)) == "waiting"
    assert study.tell_many([(third, measure(third.arm)), (first, measure(first.arm))]) == ["counted"] * 2
    fourth, fifth = study.ask_many(2)
    assert study.tell_many([(fifth, measure(fifth.arm))]) == ["waiting"]
    assert study.status.waiting_for == (fourth.id,)
