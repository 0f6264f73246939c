"""Two promises of `judge`, measured.

1. Its forecast: of new tables with as many items as an undecided one asks for, how many are settled? Meant
   are 8 in 10. Each table of N items that is not certified names a number of new items; as many are drawn and
   judged alone. A finite_variance objective is never certified: there, settled means that no claim is open.

   python benchmarks/judging.py [SCENARIO ...] [--items N ...] [--tables R] [--most N] [--seed S]

2. The flag "skewed": how often a claim by Student is made and not flagged although it is just not true (its
   size, in levels), and how often the flag takes a certificate away from normal values that are 3 deviations
   ahead.

   python benchmarks/judging.py --skewness [--tables R] [--seed S]
"""

import argparse

import numpy as np
from scipy import special

import lexbandits as lb
from lexbandits.evidence.fixed_sample import edge_of_student


def normal(means, sds, shared=0.5):
    """(n, K, m) normal values; arms share half of an item's luck."""
    means, sds = np.array(means), np.array(sds)

    def draw(rng, n):
        luck = np.sqrt(shared) * rng.standard_normal((n, 1, sds.size))
        return means + sds * (luck + np.sqrt(1 - shared) * rng.standard_normal((n, *means.shape)))

    return draw


def models(rng, n):
    """Three models: right or wrong, then seconds, at most 4."""
    luck, own = rng.random((n, 1)), rng.random((n, 3))
    right = np.where(rng.random((n, 3)) < 0.5, luck, own) < [0.9, 0.88, 0.6]
    seconds = np.minimum(
        4.0, [1.5, 1.0, 0.5] * np.exp(rng.normal(0, 0.3, (n, 1))) * rng.gamma(9, 1 / 9, (n, 3))
    )
    return np.stack([right, seconds], axis=2).astype(float)


def gate(rng, n):
    """An old and a new system: right or wrong, then costs; the new one is a little worse, and cheaper."""
    luck = rng.random((n, 1))
    right = np.where(rng.random((n, 2)) < 0.9, luck, rng.random((n, 2))) < [0.85, 0.82]
    return np.stack([right, np.minimum(5.0, rng.gamma(9, 1 / 9, (n, 2)) * [1.0, 0.7])], axis=2).astype(float)


def pages(rng, n):
    """Two pages and who bought."""
    return (rng.random((n, 2)) < [0.0283, 0.0387]).astype(float)[:, :, None]


def skewed(rng, n):
    """Two arms with waiting times, which have long tails."""
    return np.exp(rng.normal(0, 0.5, (n, 2)))[:, :, None] * np.array([1.0, 1.35])[:, None]


def told(*words):
    return [lb.Objective(name, direction, **{"noise": "gaussian", **more}) for name, direction, more in words]


def plain(*ties, **more):
    return told(*((f"o{i}", "maximize", {"margin": 2 * tie, **more}) for i, tie in enumerate(ties)))


MARKET = normal(
    [[0.71, -0.4, -0.1], [0.84, -0.9, -0.4], [0.85, -2.1, -1.9], [0.86, -2.6, -2.4]], [0.36, 0.5, 0.4]
)
SIX = normal([[0.0, 0.0], [0.05, -0.6], [-0.8, 1.0], [-0.9, 0.5], [-1.0, 1.0], [-1.2, 0.0]], [1.0, 1.0])
TWO = normal([[0.0, 0.0], [0.0, 0.45]], [1.0, 1.0])
RIGHT = told(
    ("right", "maximize", {"margin": 0.08, "noise": "bernoulli"}),
    ("seconds", "minimize", {"margin": 0.3, "noise": ("bounded", 0, 4)}),
)
GATE = told(
    ("right", "maximize", {"margin": 0.04, "noise": "bernoulli"}),
    ("cost", "minimize", {"margin": 0.1, "noise": ("bounded", 0, 5)}),
)
BOUGHT = plain(0.005, noise="bernoulli")
WAITS = told(("wait", "minimize", {"margin": 0.2}))

# how values are drawn, the objectives, and how `judge` is asked; `times`: rows of the arms, in --items
SCENARIOS = {
    "market": (MARKET, plain(0.03, 0.2, 0.1), {}),
    "tie, then faster": (TWO, plain(0.15, 0.15), {}),
    "two contenders of six": (SIX, plain(0.2, 0.2), {}),
    "0/1 and seconds": (models, RIGHT, {}),
    "gaussian, baseline": (TWO, plain(0.15, 0.15), {"baseline": "arm 0"}),
    "of six, baseline": (SIX, plain(0.2, 0.2), {"baseline": "arm 1"}),
    "of six, candidate": (SIX, plain(0.2, 0.2), {"candidate": "arm 0"}),
    "of six, candidate out": (SIX, plain(0.2, 0.2), {"candidate": "arm 2"}),
    "gate, baseline": (gate, GATE, {"baseline": "arm 0"}),
    "gate, candidate": (gate, GATE, {"candidate": "arm 1"}),
    "0/1, baseline": (models, RIGHT, {"baseline": "arm 1"}),
    "pages, A/B": (pages, BOUGHT, {"item": None, "baseline": "arm 0"}),
    "A/B, 3 to 1": (TWO, plain(0.15, 0.15), {"item": None, "times": (3, 1)}),
    "A/B, 1 to 4, baseline": (TWO, plain(0.15, 0.15), {"item": None, "times": (1, 4), "baseline": "arm 0"}),
    "clusters of 5": (TWO, plain(0.15, 0.15), {"cluster": 5}),
    "0/1 in clusters": (models, RIGHT, {"cluster": 4, "max_cluster": 4}),
    "sub_gaussian": (TWO, plain(0.15, 0.15, noise=("sub_gaussian", 1.0)), {}),
    "sub_gaussian, A/B": (TWO, plain(0.15, 0.15, noise=("sub_gaussian", 1.0)), {"item": None}),
    "finite_variance": (TWO, plain(0.15, 0.15, noise="finite_variance"), {}),
    "finite_variance, baseline": (TWO, plain(0.15, 0.15, noise="finite_variance"), {"baseline": "arm 0"}),
    "a limit": (
        models,
        [lb.Objective("right", at_least=0.79, slack=0.06, noise="bernoulli"), RIGHT[1]],
        {},
    ),
    "a limit, baseline": (
        models,
        [lb.Objective("right", at_least=0.79, slack=0.06, noise="bernoulli"), RIGHT[1]],
        {"baseline": "arm 0"},
    ),
    "percent": (
        models,
        [RIGHT[0], lb.Objective("seconds", "minimize", margin="30%", noise=("bounded", 0, 4))],
        {},
    ),
    "a quantile": (
        skewed,
        [lb.Objective("wait", "minimize", margin=0.2, quantile=0.75, noise="gaussian")],
        {},
    ),
    "long tails": (skewed, WAITS, {}),
    "long tails, baseline": (skewed, WAITS, {"baseline": "arm 1"}),
}


SIZES = {  # of tables, where few items say nothing
    "gate, baseline": (600, 2000),
    "gate, candidate": (600, 2000),
    "pages, A/B": (750, 3000),
    "tie, then faster": (20, 40),
    "two contenders of six": (30, 60),
    "gaussian, baseline": (30, 60),
    "of six, baseline": (30, 60),
    "of six, candidate": (20, 40),
    "A/B, 3 to 1": (20, 40),
    "clusters of 5": (8, 15),
    "long tails": (10, 20),
    "long tails, baseline": (25, 50),
    "a quantile": (40, 80),
}


def judged(draw, objectives, how, rng, n, first=True):
    """A verdict on a table of n items (clusters, or rows of each arm)."""
    how = {**how}
    times, size = how.pop("times", None), how.pop("cluster", 1)
    values = draw(rng, n * size * (max(times) if times and first else 1))
    rows, arms = values.shape[:2]
    if size > 1:  # those of a cluster resemble each other
        lucky = rng.integers(n * size, size=(n, 1)).repeat(size, axis=1).ravel()
        values = np.where((rng.random(rows) < 0.3)[:, None, None], draw(rng, n * size)[lucky], values)
        how["cluster"] = "cluster"
    table = {
        "arm": np.tile([f"arm {a}" for a in range(arms)], rows),
        "item": np.repeat(np.arange(rows), arms),
    }
    table["cluster"] = table["item"] // size
    table |= {o.name: values[:, :, i].ravel() for i, o in enumerate(objectives)}
    if times and first:
        keep = np.tile(np.arange(arms), rows)
        keep = table["item"] < n * np.array(times)[keep]
        table = {name: column[keep] for name, column in table.items()}
    return lb.judge(table, objectives, **how)


def is_settled(verdict, reason):
    if reason == "asymptotic":
        return all(row["verdict"] != "open" for row in verdict.certificate)
    return verdict.certified


def measure(scenario, n, tables, most, seed):
    """One line."""
    draw, objectives, how = SCENARIOS[scenario]
    asked, settled, done, nothing, beyond = [], 0, 0, 0, 0
    for number in range(tables):
        rng = np.random.default_rng([seed, number, n])
        verdict = judged(draw, objectives, how, rng, n)
        if verdict.certified:
            done += 1
        elif verdict.missing_items is None:
            nothing += 1
        elif verdict.missing_items > most:
            beyond += 1
        else:
            asked.append(verdict.missing_items)
            new = judged(draw, objectives, how, rng, verdict.missing_items, first=False)
            settled += is_settled(new, verdict.missing_reason)
    drawn = max(1, len(asked))
    share = settled / drawn
    error = np.sqrt(share * (1 - share) / drawn)
    ends = np.quantile(asked or [0], (0.1, 0.5, 0.9)).astype(int)
    print(f"| {scenario} | {n} | {done} | {nothing} | {beyond} | {ends[1]:,} ({ends[0]:,} to {ends[2]:,}) | "
          f"{settled} of {len(asked)}: {100 * share:.0f} % ± {100 * error:.0f} |", flush=True)  # fmt: skip
    return settled, len(asked)


def forecasts(given):
    """The table, and all scenarios together."""
    print("| scenario | items | certified | no number | beyond | new items (10 to 90 %) | then settled |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    counts = [
        measure(scenario, n, given.tables or 200, given.most, given.seed)
        for scenario in given.scenarios or SCENARIOS
        for n in given.items or SIZES.get(scenario, (60, 150))
    ]
    settled, asked = np.sum(counts, axis=0)
    share = settled / max(1, asked)
    error = np.sqrt(share * (1 - share) / max(1, asked))
    print(f"\nin all {settled} of {asked}: {100 * share:.1f} % ± {100 * error:.1f}")


# --- the flag "skewed"

NUMBERS = (8, 10, 15, 20, 30, 50, 100, 200)
LEVELS = (0.05, 0.01, 0.005, 0.0025)
RARE = 0.1  # of a normal value with losses: so rare that of 20 values one in eight has none


def two_points(p):
    return lambda rng, size: p - (rng.random(size) < p)


LAWS = {  # of mean 0
    "normal": lambda rng, size: rng.standard_normal(size),
    "-exp": lambda rng, size: 1 - rng.standard_exponential(size),
    "-lognormal(1)": lambda rng, size: np.exp(0.5) - np.exp(rng.standard_normal(size)),
    "-gamma(0.3)": lambda rng, size: 0.3 - rng.gamma(0.3, size=size),
    **{f"two points, {p}": two_points(p) for p in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9)},
    "normal, rare losses": lambda rng, size: (
        rng.standard_normal(size) + 6 * (RARE - (rng.random(size) < RARE))
    ),
}


def statistics(values):
    """Student's t of "more than 0" and the skewness of the last axis; −∞ where all values are equal."""
    n, mean = values.shape[-1], values.mean(axis=-1)
    off = values - mean[..., None]
    spread = (off**2).mean(axis=-1)
    some = spread > 1e-20
    spread = np.where(some, spread, 1.0)
    t = np.where(some, mean * np.sqrt((n - 1) / spread), -np.inf)
    return t, (off**3).mean(axis=-1) / spread**1.5


def drawn(law, n, number, seed):
    """t and skewness of so many samples of n."""
    rng, block = np.random.default_rng([seed, n]), max(1, 1_000_000 // n)
    sizes = [min(block, number - start) for start in range(0, number, block)]
    return [
        np.concatenate(found)
        for found in zip(*(statistics(law(rng, (size, n))) for size in sizes), strict=True)
    ]


def skewness(given):
    """Sizes, in levels, of claims that are not flagged; and what the flag takes from normal values."""
    number = given.tables or 200_000
    print(f"{number:,} samples each: how often a claim at α is made, and not flagged, in α (all claims)\n")
    print("| law | n | " + " | ".join(f"α = {alpha:g}" for alpha in LEVELS) + " |")
    print("| --- " * (len(LEVELS) + 2) + "|")
    for name, law in LAWS.items():
        for n in NUMBERS:
            t, skew = drawn(law, n, number, given.seed)
            cells = []
            for alpha in LEVELS:
                made, sound = t >= -special.stdtrit(n - 1, alpha), t >= edge_of_student(n, skew, alpha)
                cells.append(f"{sound.mean() / alpha:.2f} ({made.mean() / alpha:.1f})")
            print(f"| {name} | {n} | " + " | ".join(cells) + " |", flush=True)
    print("\n| normal arms, one ahead by 3 sd: certificates taken | " + " | ".join(map(str, NUMBERS)) + " |")
    print("| --- " * (len(NUMBERS) + 1) + "|")
    for arms in (2, 6):
        cells = []
        for n in NUMBERS:
            rng, alpha, some = np.random.default_rng([given.seed, n, arms]), 0.05 / (arms - 1), number // 20
            values = rng.standard_normal((some, arms, n)) + 3 * (np.arange(arms) == 0)[:, None]
            t, skew = statistics(values[:, :1] - values[:, 1:])
            made = (t >= -special.stdtrit(n - 1, alpha)).all(axis=1)
            sound = (t >= edge_of_student(n, skew, alpha)).all(axis=1)
            cells.append(f"{100 * (1 - sound.sum() / made.sum()):.1f} %")
        print(f"| K = {arms} | " + " | ".join(cells) + " |", flush=True)


def main():
    """One of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--items", type=int, nargs="+", help="60 and 150, or what a scenario has of its own")
    parser.add_argument("--tables", type=int, help="tables per scenario, or samples per law")
    parser.add_argument("--most", type=int, default=20_000, help="forecasts above it are counted, not drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skewness", action="store_true")
    given = parser.parse_args()
    skewness(given) if given.skewness else forecasts(given)


if __name__ == "__main__":
    main()
