"""What the paper and the pages in docs/ report: `python -m experiments NAME`. Not in the wheel."""
