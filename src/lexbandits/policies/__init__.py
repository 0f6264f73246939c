"""The policies, by name. A new algorithm is one new file and one line here."""

from lexbandits.policies.base import Elimination, Policy, Rules
from lexbandits.policies.lexelim_in import LexElimIn
from lexbandits.policies.lexelim_out import LexElimOut

BY_NAME: dict[str, type[Policy]] = {
    policy.__name__: policy
    for policy in (
        LexElimOut,
        LexElimIn,
    )
}

__all__ = ["BY_NAME", "Elimination", "Policy", "Rules", *BY_NAME]
