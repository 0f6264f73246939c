"""A study as everybody is shown it, computed once."""
