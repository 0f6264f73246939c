"""`python -m experiments regret`: run an experiment by its name."""

import argparse
from pathlib import Path

from experiments import regret

parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
names = parser.add_subparsers(dest="name", required=True)
told = names.add_parser("regret", help="Regret of every policy, docs/regret.md.")
told.add_argument("--runs", type=int, default=5000, help="Runs of the fast policies; slow ones have fewer.")
told.add_argument("--out", type=Path, default=Path("results/regret"), help="Started again, it goes on there.")
told.add_argument("--page", type=Path, help="A page whose tables, between marks, are made anew.")
told.add_argument("--jobs", type=int, default=-1, help="Threads; -1 for one per core.")
told.add_argument("--only", nargs="*", choices=list(regret.SECTIONS), help="Some of the sections.")
arguments = parser.parse_args()
regret.main(arguments.runs, arguments.out, arguments.page, arguments.jobs, arguments.only)
