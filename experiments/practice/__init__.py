"""Studies as people have them: LexElim-Tol beside what is done today; what a change of the rules costs."""
