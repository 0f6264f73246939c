"""The paper, run again: an experiment is a section with its entries, tables, figure and claims."""
