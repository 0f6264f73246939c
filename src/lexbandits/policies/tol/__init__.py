"""LexElim-Tol: facts, judgement, proof, places."""
