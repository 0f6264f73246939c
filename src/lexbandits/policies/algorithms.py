"""The policies. A new algorithm is one new file and one line here, which makes it `lexbandits.<Name>`."""

from lexbandits.policies.exponential_gap import ExponentialGapElimination as ExponentialGapElimination
from lexbandits.policies.imed import IMED as IMED
from lexbandits.policies.kl_ucb import KLUCB as KLUCB
from lexbandits.policies.lexdmed import LexDMED as LexDMED
from lexbandits.policies.lexelim_in import LexElimIn as LexElimIn
from lexbandits.policies.lexelim_out import LexElimOut as LexElimOut
from lexbandits.policies.lexelim_phase import LexElimPhase as LexElimPhase
from lexbandits.policies.lexelim_pool import LexElimPool as LexElimPool
from lexbandits.policies.leximed import LexIMED as LexIMED
from lexbandits.policies.moss import MOSSAnytime as MOSSAnytime
from lexbandits.policies.mtlo import MTLO as MTLO
from lexbandits.policies.pf_lex import PFLex as PFLex
from lexbandits.policies.policy import Policy as Policy
from lexbandits.policies.round_robin import RoundRobin as RoundRobin
from lexbandits.policies.thompson import ThompsonSampling as ThompsonSampling
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol as LexElimTol
from lexbandits.policies.ucb1 import UCB1 as UCB1
from lexbandits.policies.ucb_alpha import UCBAlpha as UCBAlpha
