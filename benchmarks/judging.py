"""Whether judge's forecast is right: of new tables with as many items as an undecided one asks for, how many
are certified? Meant are 8 in 10.

python benchmarks/judging.py [WORLD …] [--items N …] [--tables R] [--most N] [--seed S]

Each table of N items that is not certified names a number of new items; as many are drawn, and judged alone.
Forecasts above --most are counted, not drawn.
"""

import argparse

import numpy as np

import lexbandits as lb


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


def told(*words):
    return [lb.Objective(name, direction, **more) for name, direction, more in words]


def plain(*tolerances):
    return told(*((f"o{i}", "maximize", {"tolerance": t}) for i, t in enumerate(tolerances)))


WORLDS = {
    "market": (
        normal(
            [[0.71, -0.4, -0.1], [0.84, -0.9, -0.4], [0.85, -2.1, -1.9], [0.86, -2.6, -2.4]], [0.36, 0.5, 0.4]
        ),
        plain(0.03, 0.2, 0.1),
    ),
    "tie, then faster": (normal([[0.0, 0.0], [0.0, 0.45]], [1.0, 1.0]), plain(0.15, 0.15)),
    "two contenders of six": (
        normal([[0.0, 0.0], [0.05, -0.6], [-0.8, 1.0], [-0.9, 0.5], [-1.0, 1.0], [-1.2, 0.0]], [1.0, 1.0]),
        plain(0.2, 0.2),
    ),
    "0/1 and seconds": (
        models,
        told(
            ("right", "maximize", {"tolerance": 0.04, "noise": "bernoulli"}),
            ("seconds", "minimize", {"tolerance": 0.15, "noise": ("bounded", 0, 4)}),
        ),
    ),
}


def judged(draw, objectives, rng, n):
    values = draw(rng, n)
    arms = [f"arm {a}" for a in range(values.shape[1])]
    table = {"arm": np.tile(arms, n), "item": np.repeat(np.arange(n), len(arms))}
    table |= {o.name: values[:, :, i].ravel() for i, o in enumerate(objectives)}
    return lb.judge(table, objectives)


def measure(world, n, tables, most, seed):
    """One line."""
    draw, objectives = WORLDS[world]
    asked, certified, done, nothing, beyond = [], 0, 0, 0, 0
    for number in range(tables):
        rng = np.random.default_rng([seed, number, n])
        verdict = judged(draw, objectives, rng, n)
        if verdict.certified:
            done += 1
        elif verdict.missing_items is None:
            nothing += 1
        elif verdict.missing_items > most:
            beyond += 1
        else:
            asked.append(verdict.missing_items)
            certified += judged(draw, objectives, rng, verdict.missing_items).certified
    drawn = max(1, len(asked))
    share = certified / drawn
    error = np.sqrt(share * (1 - share) / drawn)
    ends = np.quantile(asked or [0], (0.1, 0.5, 0.9)).astype(int)
    print(f"| {world} | {n} | {done} | {nothing} | {beyond} | {ends[1]:,} ({ends[0]:,} to {ends[2]:,}) | "
          f"{certified} of {len(asked)}: {100 * share:.0f} % ± {100 * error:.0f} |", flush=True)  # fmt: skip
    return certified, len(asked)


def main():
    """The table, and all worlds together."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=", ".join(WORLDS))
    parser.add_argument("--items", type=int, nargs="+", default=[60, 150])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--most", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| world | items | certified | no forecast | beyond | new items (10 to 90 %) | then certified |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    counts = [
        measure(world, n, given.tables, given.most, given.seed)
        for world in given.worlds or WORLDS
        for n in given.items
    ]
    certified, asked = np.sum(counts, axis=0)
    share = certified / max(1, asked)
    error = np.sqrt(share * (1 - share) / max(1, asked))
    print(f"\nin all {certified} of {asked}: {100 * share:.1f} % ± {100 * error:.1f}")


if __name__ == "__main__":
    main()
