"""LexElim-Tol. A pass is asked and filled (judgement), folded (folding) into a state (state), and judged.

Facts hold under any rules (facts) and say who survives (survivors); claims hold under the rules as declared
(claims); both prove an answer before everything is settled (proof). Around that: lexelim_tol (the policy),
places (results that come early or late, changes of the rules), waiting, told (values refused), intervals.
"""
