"""What a study will cost, why an arm left, what is known so far: in words, figures and a report."""
