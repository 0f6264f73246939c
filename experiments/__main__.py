"""`python -m experiments regret`: run an experiment by its name."""

import argparse
from pathlib import Path

from experiments import margins, regret

parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
names = parser.add_subparsers(dest="name", required=True)
told = names.add_parser("regret", help="Regret of every policy, docs/regret.md.")
told.add_argument("--runs", type=int, default=5000, help="Runs of the fast policies; slow ones have fewer.")
told.add_argument("--out", type=Path, default=Path("results/regret"), help="Started again, it goes on there.")
told.add_argument("--page", type=Path, help="A page whose tables, between marks, are made anew.")
told.add_argument("--jobs", type=int, default=-1, help="Threads; -1 for one per core.")
told.add_argument("--only", nargs="*", choices=list(regret.SECTIONS), help="Some of the sections.")
told = names.add_parser("margins", help="What a smaller margin costs, docs/choosing-a-margin.md.")
told.add_argument("--runs", type=int, default=100, help="Studies per world and margin.")
told.add_argument("--seed", type=int, default=0, help="The same seed gives the same table.")
told.add_argument("--jobs", type=int, default=-1, help="Threads; -1 for one per core.")
given = parser.parse_args()
if given.name == "margins":
    margins.main(given.runs, given.seed, given.jobs)
else:
    regret.main(given.runs, given.out, given.page, given.jobs, given.only)
