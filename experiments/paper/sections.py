"""The paper's experiments, run again: the list of sections, what they measure and what they say."""

import platform
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import version
from typing import Any

import pandas as pd

from experiments.paper import acceleration, experiment, regret, samples, sensitivity, theorems
from experiments.paper.section import Section
from experiments.paper.tables import Tables
from lexbandits import __version__, sweep
from lexbandits.simulation import Cell

SECTIONS: dict[str, Section] = {
    section.NAME: section for section in (acceleration, regret, samples, theorems, sensitivity)
}
SEED = 0
REPLICATIONS, QUICK_REPLICATIONS = 100, 5


def chosen_sections(names: Iterable[str] = SECTIONS) -> list[Section]:
    """The sections of these names in the report's order, each once."""
    given = list(names)
    for name in given:
        if name not in SECTIONS:
            raise ValueError(f"section must be one of {', '.join(SECTIONS)}, got {name!r}")
    return [section for name, section in SECTIONS.items() if name in given]


def section_of(claim: str) -> Section:
    """The section that judges a claim; a ValueError that says the nearest name if none does."""
    homes = {each.name: section for section in SECTIONS.values() for each in section.CLAIMS}
    if claim not in homes:
        near = get_close_matches(claim, homes, n=1, cutoff=0.0)
        raise ValueError(f"unknown claim {claim!r}; did you mean {near[0]!r}? known: {', '.join(homes)}")
    return homes[claim]


def cells(sections: Iterable[Section]) -> list[Cell]:
    """The cells of some sections, each once; long ones first, so that no worker waits at the end."""
    entries = {entry.name: entry for section in sections for _, entry in section.entries()}
    ordered = sorted(entries.values(), key=lambda e: -e.noise_sd * e.case.instance.n_arms)
    return [entry.cell() for entry in ordered]


def measure(
    sections: Iterable[Section] = tuple(SECTIONS.values()), *, replications: int = REPLICATIONS, **how: Any
) -> dict[str, pd.DataFrame]:
    """Everything the figures plot and the verdicts use; `how` goes to `sweep`."""
    if replications < 2:
        raise ValueError(f"standard errors need at least 2 replications, got {replications}")
    asked = list(sections)
    results = sweep(cells(asked), replications=replications, seed=SEED, **how)
    found = experiment.answers(results)
    return {
        name: pd.DataFrame(rows) for section in asked for name, rows in section.tables(results, found).items()
    }


def verdicts(tables: Tables, sections: Iterable[Section], command: str) -> pd.DataFrame:
    """One row per claim of the sections; `command` gets the claim appended as --claim."""
    rows = [
        {
            "claim": claim.name,
            "section": section.NAME,
            "source": claim.source,
            "statement": claim.statement,
            **claim.judge(tables)._asdict(),
            "command": f"{command} --claim {claim.name}",
        }
        for section in sections
        for claim in section.CLAIMS
    ]
    return pd.DataFrame(rows).rename(columns={"outcome": "verdict"})


def settings(replications: int) -> pd.DataFrame:
    """Every choice a reader needs to get the same numbers, those the paper leaves open included."""
    alphas = ", ".join(f"{alpha:g}" for alpha in sensitivity.ALPHAS)
    horizons = ", ".join(f"{horizon:,}" for horizon in experiment.UCB_HORIZONS.values())
    rows = {
        "replications": f"{replications} of every cell (the paper: 10)",
        "seed": f"{SEED}; replication r draws from SFC64(SeedSequence({SEED}, spawn_key=(r,)))",
        "noise": "Gaussian, variance 0.1, objectives independent (the paper's)",
        "δ": f"{experiment.DELTA} everywhere (the paper names it for Figure 3 only)",
        "λ": f"{experiment.TRADEOFF:g}, the least λ of the paper's instance (not named in the paper)",
        "α of UCB-α": f"{experiment.ALPHA:g} (not named; {alphas} occur in public code)",
        "ε of PF-LEX": "(KT)^(−1/3), the rule of the same authors' other papers; the official variant",
        "EGE": "stops at |O_*(1)| arms; σ = 1/2 as published under 'as printed', else the width's σ",
        "EGE/3900": "the same with every batch divided by 3900, as public code does; no guarantee",
        "EGE's draws": "sums of batches drawn at once: the same law, another stream",
        "UCB-α stops": "when its |O_*(1)| best arms are apart from the rest",
        "LexElim-Tol": 'tolerance 0, resolution the least non-zero gap of each objective; stop_when="all"',
        "horizon for regret": f"{regret.ROUNDS:,} pulls",
        "horizon for stopping": f"{experiment.STOPPING_HORIZON:,} pulls; UCB-α {horizons} for the three "
        f"widths; EGE {experiment.EGE_HORIZON:.0e}. A run that reaches it gave no answer",
        "after stopping": "the recommended arm is played on",
        "Figure 1": "arms chosen to do what the text says; the paper prints no coordinates",
        "lexbandits": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "scipy", "pandas", "matplotlib")},
    }
    return pd.DataFrame(rows.items(), columns=["setting", "value"])
