"""The policies, by name. A new algorithm is one new file and one line here."""

from lexbandits.policies.base import Elimination, Rules
from lexbandits.policies.exponential_gap import ExponentialGapElimination
from lexbandits.policies.lexelim_in import LexElimIn
from lexbandits.policies.lexelim_out import LexElimOut
from lexbandits.policies.lexelim_phase import LexElimPhase
from lexbandits.policies.lexelim_pool import LexElimPool
from lexbandits.policies.lexelim_tol import LexElimTol
from lexbandits.policies.moss import MOSSAnytime
from lexbandits.policies.pf_lex import PFLex
from lexbandits.policies.policy import Policy
from lexbandits.policies.round_robin import RoundRobin
from lexbandits.policies.thompson import ThompsonSampling
from lexbandits.policies.ucb1 import UCB1
from lexbandits.policies.ucb_alpha import UCBAlpha

BY_NAME: dict[str, type[Policy]] = {
    policy.__name__: policy
    for policy in (
        LexElimOut,
        LexElimIn,
        LexElimPool,
        LexElimPhase,
        LexElimTol,
        ExponentialGapElimination,
        UCBAlpha,
        PFLex,
        UCB1,
        MOSSAnytime,
        ThompsonSampling,
        RoundRobin,
    )
}

__all__ = ["BY_NAME", "Elimination", "Policy", "Rules", *BY_NAME]
