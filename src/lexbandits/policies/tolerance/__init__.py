"""LexElim-Tol. A pass is asked, filled (passes), folded (folding) into a state (state), and evaluated.

Anytime evidence (anytime) holds under any rules and decides which arms survive (survivors). Pre-registered
tests (preregistered) hold while the rules are kept. Both can prove an answer before everything is settled
(stopping). Around that: lexelim_tol (the policy), places (results that come early or late, changes of the
rules), buffer (results of later passes), validation (values refused), intervals. finite/ is about a finite
population of items, sampled without replacement.
"""
