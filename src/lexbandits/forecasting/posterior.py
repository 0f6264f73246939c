"""The posterior: scenarios that may be true, drawn from what was measured and from a prior elsewhere.

Arms are compared with the leader by their differences in common passes, as the policy compares them,
so that luck common to a pass makes nobody uncertain. Priors are flat: they forget themselves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits.evidence.interval import told_difference
from lexbandits.evidence.kinds import Kind, NoiseKind, spread_kinds
from lexbandits.forecasting.scenarios import COIN, FIXED, NORMAL, TABLE, Scenario
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.policies.tolerance.state import pair_of

QUANTILES = 256
NARROW = 1e-6  # deviations below this share of the bounds are none
LEAST = 5  # results of an arm from which a forecast can be made


@dataclass(frozen=True)
class Prior:
    """A uniform prior, larger is better: each mean lies in [low, high]; nan where nothing is said."""

    low: Vector  # (K, m)
    high: Vector  # (K, m)
    sd: Vector  # (m,) of one value, nan where nothing is said
    shared: Vector  # (m,) correlation of two arms in a pass
    coins: tuple[bool, ...]  # objectives whose values are one of two ends


def kinds_of(policy: LexElimTol) -> tuple[Kind, ...]:
    """The noise of each objective."""
    return spread_kinds(policy.settings["noise"], policy.n_objectives)


@lru_cache(maxsize=4096)
def table_of(kind: Kind, mean: float, sd: float) -> Vector:
    """(q,) quantiles of a Beta distribution on the bounds of the kind, with this mean and deviation."""
    from scipy.stats import beta

    width = kind.high - kind.low
    centre = (mean - kind.low) / width
    spread = min((sd / width) ** 2, 0.999 * centre * (1 - centre))
    if spread <= NARROW**2:  # scipy gives nan for what is far narrower
        return np.full(QUANTILES, mean)
    strength = centre * (1 - centre) / spread - 1
    at = (np.arange(QUANTILES) + 0.5) / QUANTILES
    table = kind.low + width * beta.ppf(at, centre * strength, (1 - centre) * strength)
    return moved(table, kind, mean)


def quantiles_of(values: Vector) -> Vector:
    """(q,) quantiles of what was measured."""
    return np.quantile(values, (np.arange(QUANTILES) + 0.5) / QUANTILES)


def moved(table: Vector, kind: Kind, mean: float) -> Vector:
    """Values with another mean that stay in the bounds: all go the same share of their way to one end."""
    now = float(table.mean())
    if math.isinf(kind.high):
        return table + (mean - now)
    end = kind.high if mean > now else kind.low
    share = 0.0 if end == now else (mean - now) / (end - now)
    return np.clip(table + (end - table) * share, kind.low, kind.high)  # rounding may lead out of them


@dataclass(frozen=True)
class Measured:
    """What a policy has seen of its arms, and perhaps the values themselves: arm and objective -> values."""

    policy: LexElimTol
    values: dict[tuple[int, int], Vector]
    coins: tuple[bool, ...]

    @property
    def counts(self) -> Counts:
        """(K, m) values per arm and objective."""
        return self.policy.counts

    def variances(self) -> Vector:
        """(K, m) of single values, never 0 where another value is possible."""
        singles = self.policy.state.singles
        n = np.maximum(singles[:, :, 0], 1.0)
        for_one = singles[:, :, 2] / np.maximum(n - 1.0, 1.0)
        found = np.empty(for_one.shape)
        for i, kind in enumerate(kinds_of(self.policy)):
            if self.coins[i]:
                share = (singles[:, i, 1] * n[:, i] + 0.5) / (n[:, i] + 1.0)
                found[:, i] = share * (1.0 - share) * (kind.high - kind.low) ** 2
            elif kind.traits.bounded:
                found[:, i] = for_one[:, i] * (kind.high - kind.low) ** 2
            else:
                found[:, i] = for_one[:, i]
        return found

    def shared(self, variances: Vector) -> Vector:
        """(m,) the correlation of two arms in a pass: one for all pairs, weighted by common results."""
        policy, state = self.policy, self.policy.state
        K, m = policy.max_arms, policy.n_objectives
        found = np.zeros(m)
        for i, kind in enumerate(kinds_of(policy)):
            scale = (2.0 * (kind.high - kind.low)) ** 2 if kind.traits.bounded else 1.0
            common = expected = 0.0
            for a in range(K):
                for b in range(a + 1, K):
                    n, _, m2 = state.pairs[pair_of(a, b, K), i, :3].tolist()
                    if n >= LEAST:
                        both = variances[a, i] + variances[b, i]
                        common += n * (both - scale * m2 / (n - 1.0)) / 2.0
                        expected += n * math.sqrt(variances[a, i] * variances[b, i])
            found[i] = min(max(common / expected, 0.0), 0.98) if expected > 0 else 0.0
        return found

    def differences(self, i: int, leader: int) -> tuple[Vector, Vector]:
        """(K,) the mean difference of each arm to the leader and (K,) on how many results it rests."""
        policy, state, kind = self.policy, self.policy.state, kinds_of(self.policy)[i]
        K = policy.max_arms
        lead, common = np.zeros(K), np.zeros(K)
        means, counts = policy.means[:, i], policy.counts[:, i]
        for arm in range(K):
            if arm == leader:
                continue
            row = pair_of(min(arm, leader), max(arm, leader), K)
            n, mean = state.pairs[row, i, :2].tolist()
            if n >= LEAST:
                lead[arm] = told_difference(kind, mean) * (1 if arm < leader else -1)
                common[arm] = n
            else:
                lead[arm] = means[arm] - means[leader]
                common[arm] = min(counts[arm], counts[leader])
        return np.nan_to_num(lead), common


class Posterior:
    """Draws scenarios: by what was measured where there is enough of it, by the prior elsewhere."""

    def __init__(self, measured: Measured, prior: Prior | None = None, missing: Vector | None = None) -> None:
        self.measured, self.prior = measured, prior
        policy = measured.policy
        self._policy, self._kinds = policy, kinds_of(policy)
        K, m = policy.max_arms, policy.n_objectives
        self._missing = np.zeros((K, m)) if missing is None else missing
        self._variances = measured.variances()
        self._shared = measured.shared(self._variances)
        self.known = measured.counts >= LEAST
        self._exact = {i: policy.known_exactly(i) for i in range(m) if self._kinds[i].traits.exact}
        for i, values in self._exact.items():
            self.known[:, i] = [arm in values for arm in range(K)]
        self.at_bounds: list[int] = []  # objectives of unknown spread: values at the bounds, the worst case
        self._check(sorted(offered_arms(policy)))
        if prior is not None and not self.known.any():
            self._shared = prior.shared
        self._draws = np.array([self._how(i) for i in range(m)], np.int64)
        self._ends = np.array([[kind.low, kind.high] for kind in self._kinds])
        self._tables = self._measured_tables(K, m)

    def _check(self, offered: Sequence[int]) -> None:
        for i, kind in enumerate(self._kinds):
            lacking = [arm for arm in offered if not self.known[arm, i]]
            if not lacking:
                continue
            unsaid = [a for a in lacking if self.prior is None or math.isnan(self.prior.low[a, i])]
            if self.prior is None or unsaid:
                raise MissingPrior(unsaid[0], i, "mean")
            needs_sd = not self.prior.coins[i] and not (kind.traits.exact or kind.traits.scaled)
            if needs_sd and math.isnan(self.prior.sd[i]) and not self.known[offered, i].any():
                if not kind.traits.bounded:
                    raise MissingPrior(lacking[0], i, "sd")
                self.at_bounds.append(i)

    def _how(self, i: int) -> int:
        if self._kinds[i].traits.exact:
            return FIXED
        if self.measured.coins[i] or i in self.at_bounds:
            return COIN
        if self._kinds[i].traits.bounded or self._resampled(i):
            return TABLE
        return NORMAL

    def _resampled(self, i: int) -> bool:
        """Whether a kind without bounds is drawn from what was measured: only one that may have any shape."""
        return self.measured.policy.asymptotic and any(
            len(values) >= QUANTILES for (_, column), values in self.measured.values.items() if column == i
        )

    def _measured_tables(self, n_arms: int, m: int) -> Vector:
        if not (self._draws == TABLE).any():
            return np.zeros((n_arms, m, 1))
        tables = np.zeros((n_arms, m, QUANTILES))
        for (arm, i), values in self.measured.values.items():
            if self._draws[i] == TABLE and len(values) >= LEAST:
                tables[arm, i] = quantiles_of(values)
        return tables

    # --- one scenario

    def narrowed(self, where: Vector) -> "Posterior":
        """The same, with each mean of the prior at one point of its range, given as a share of it."""
        assert self.prior is not None
        at = self.prior.low + where * (self.prior.high - self.prior.low)
        return Posterior(self.measured, replace(self.prior, low=at, high=at), self._missing)

    def scenario(self, rng: np.random.Generator) -> Scenario:
        """Draw a scenario that may be true."""
        K, m = self.known.shape
        means, sds = np.zeros((K, m)), np.zeros((K, m))
        for i, kind in enumerate(self._kinds):
            sds[:, i] = self._drawn_sds(rng, i)
            means[:, i] = self._drawn_means(rng, i, sds[:, i])
            if self.prior is not None:
                self._fill_in(rng, i, means, sds)
            if kind.traits.bounded:
                room = 1e-9 * (kind.high - kind.low)
                means[:, i] = np.clip(means[:, i], kind.low + room, kind.high - room)
        tables = self._tables.copy()
        for i in np.flatnonzero(self._draws == TABLE).tolist():
            for arm in range(K):
                kind = self._kinds[i]
                if (arm, i) in self.measured.values and len(self.measured.values[arm, i]) >= LEAST:
                    tables[arm, i] = moved(tables[arm, i], kind, means[arm, i])
                elif sds[arm, i] > 0:
                    tables[arm, i] = table_of(kind, means[arm, i], sds[arm, i])
                else:
                    tables[arm, i] = means[arm, i]
        return Scenario(self._draws, means, sds, self._ends, tables, self._shared, self._missing)

    def _fill_in(self, rng: np.random.Generator, i: int, means: Vector, sds: Vector) -> None:
        assert self.prior is not None
        prior, kind = self.prior, self._kinds[i]
        known = self.known[:, i]
        unknown = ~known & ~np.isnan(prior.low[:, i])
        where = rng.random(unknown.sum())
        means[unknown, i] = prior.low[unknown, i] + where * (prior.high[unknown, i] - prior.low[unknown, i])
        typical = kind.sd if kind.traits.scaled else prior.sd[i]
        if math.isnan(typical) and known.any():
            typical = math.sqrt(float(np.mean(self._variances[known, i])))
        sds[~known, i] = 0.0 if math.isnan(typical) else typical

    def _drawn_sds(self, rng: np.random.Generator, i: int) -> Vector:
        n, variances = self.measured.counts[:, i], self._variances[:, i]
        if self._draws[i] != NORMAL:
            return np.asarray(np.sqrt(variances))
        free = np.maximum(n - 1.0, 1.0)
        return np.asarray(np.sqrt(variances * free / rng.chisquare(free)), np.float64)

    def _drawn_means(self, rng: np.random.Generator, i: int, sds: Vector) -> Vector:
        policy = self._policy
        counts, centre = self.measured.counts[:, i], np.nan_to_num(policy.means[:, i])
        n = np.maximum(counts, 1)
        if self._draws[i] == FIXED:
            return np.array([self._exact[i].get(arm, 0.0) for arm in range(n.size)])
        if not counts.any():
            return centre
        if policy.state.is_limit[i]:  # a target: each arm on its own
            if self._draws[i] != COIN:
                return centre + sds / np.sqrt(n) * rng.standard_normal(n.size)
            low, high = self._ends[i]
            ones = np.clip((centre - low) / (high - low), 0.0, 1.0) * counts
            return np.asarray(low + (high - low) * rng.beta(ones + 0.5, counts - ones + 0.5))
        leader = policy.recommendation
        lead, common = self.measured.differences(i, leader)
        share, of_leader = self._shared[i], sds[leader]
        # Cov(X_a − X_c, X_b − X_c) for a common correlation, over 1/max of the common results
        cov = share * np.outer(sds, sds) + (1.0 - share) * np.diag(sds**2)
        cov += of_leader**2 - share * of_leader * (sds[:, None] + sds[None, :])
        cov /= np.maximum(np.maximum(common[:, None], common[None, :]), 1.0)
        cov[leader, :] = cov[:, leader] = 0.0
        values, vectors = np.linalg.eigh(cov)
        noise = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(values.size))
        level = centre[leader] + of_leader / math.sqrt(n[leader]) * rng.standard_normal()
        return np.asarray(level + lead + noise, np.float64)


class MissingPrior(ValueError):  # noqa: N818
    """A mean or a deviation that nobody has measured, and of which the prior says nothing."""

    def __init__(self, arm: int, objective: int, what: str) -> None:
        super().__init__(f"a forecast needs a prior for the {what} of arm {arm} on objective {objective}")
        self.arm, self.objective, self.what = arm, objective, what


def offered_arms(policy: LexElimTol) -> tuple[int, ...]:
    """The arms in question."""
    offered: Any = policy.settings["offered"]
    return tuple(range(policy.n_arms) if offered is None else offered)


def coins_of(policy: LexElimTol) -> tuple[bool, ...]:
    """The objectives whose values are taken to be one of two ends, as far as the policy knows."""
    return tuple(kind.noise is NoiseKind.BERNOULLI for kind in kinds_of(policy))
