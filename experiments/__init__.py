"""Experiments beyond the paper's own: `python -m experiments NAME` makes the tables of a page in docs/."""
