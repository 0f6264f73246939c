"""What a forecast is asked about: a policy in people's names and directions, and its settings doubled."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._code import Code
from lexbandits._validation import positive, real
from lexbandits.evidence.kinds import NoiseKind
from lexbandits.forecasting.posterior import Measured, MissingPrior, Posterior, Prior, coins_of, kinds_of
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.policies.tolerance.state import NOT_WORSE_LEVEL, TOLERANCE
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, IMPORTED, LATE, TOLD
from lexbandits.study.errors import StudyError, study_errors
from lexbandits.study.number_format import listed, toml_key
from lexbandits.study.spec import Spec


class PriorNeeded(StudyError):  # noqa: N818
    """A mean or a deviation that nobody has measured or said; `for_command` names the option to say it."""

    def __init__(self, lack: str, argument: str, option: str) -> None:
        super().__init__(f"{lack}: say {argument}")
        self.for_command = f"{lack}: say {option}"


class WhyMore(Code):
    """Why a wider margin can cost results: it ends the pre-registered tests, or its tie grows with it."""

    TESTS_END = "tests_end"
    TIE_GROWS = "tie_grows"


@dataclass(frozen=True)
class Change:
    """One setting doubled; `why` it can cost results."""

    setting: str
    objective: str | None
    now: float
    then: float
    policy: LexElimTol
    why: WhyMore | None = None


@dataclass(frozen=True)
class Question:
    """A policy with the names and directions in which people speak of its arms and objectives."""

    policy: LexElimTol
    arms: list[str]
    objectives: list[str]
    signs: Vector
    measured: Measured
    changes: list[Change]
    missing: Vector | None = None
    room: float = math.inf  # results until the budget or the items are spent
    pace: float | None = None  # seconds per result, measured
    buffered: int = 0  # results told that wait for their pass

    @classmethod
    def of_policy(cls, policy: LexElimTol) -> "Question":
        """Arms and objectives by number."""
        m = policy.n_objectives
        names = [str(i) for i in range(m)]
        measured = Measured(policy, {}, coins_of(policy))
        changes = _changes(policy)
        return cls(policy, [str(a) for a in range(policy.max_arms)], names, np.ones(m), measured, changes)

    @classmethod
    def of_spec(cls, spec: Spec) -> "Question":
        """A study that has not begun."""
        policy = LexElimTol(**spec.policy_settings())
        measured = Measured(policy, {}, _coins(spec))
        arms = [arm["name"] for arm in spec.arms]
        changes = _spec_changes(policy, spec)
        room = math.inf if spec.budget is None else float(spec.budget)
        if spec.items is not None and not spec.is_list:  # a list has its answer when all is measured
            room = min(room, float(len(spec.items) * len(arms)))
        return cls(policy, arms, list(spec.names), spec.signs, measured, changes, room=room)

    @classmethod
    def of_fold(cls, replay: Replay) -> "Question":
        """A study from where it stands."""
        projection, spec = replay.projection, replay.projection.spec
        policy: Any = copy.copy(replay.policy)
        states, arms, values = (
            projection.column("state"),
            projection.column("arm"),
            projection.column("values"),
        )
        counted = (states == TOLD) | (states == IMPORTED)
        signed = spec.signed(values)
        known = {}
        for arm in range(len(projection.arm_names)):
            for i in range(len(spec.names)):
                column = signed[counted & (arms == arm), i]
                known[arm, i] = column[~np.isnan(column)]
        everybody = range(len(projection.arms))
        coins = tuple(
            coin and all(bool(np.isin(np.abs(known[a, i]), (0.0, 1.0)).all()) for a in everybody)
            for i, coin in enumerate(_coins(spec))
        )
        lost = (states == FAILED) | (states == EXPIRED) | (states == LATE)
        missing = _missing(spec, policy, arms, values, counted, lost)
        resolved = projection.column("resolved")[counted & (states != IMPORTED)][-1000:]
        pace = float(np.ptp(resolved)) / (resolved.size - 1) if resolved.size >= 20 else None
        room = (
            math.inf
            if projection.budget is None
            else float(projection.budget - projection.handed_out + len(projection.open))
        )
        if math.isfinite(projection.passes) and not spec.is_list:
            room = min(room, (projection.passes - policy.folded) * len(policy.candidates))
        return cls(
            policy,
            list(projection.arm_names),
            list(spec.names),
            spec.signs,
            Measured(policy, known, coins),
            _spec_changes(policy, spec),
            missing,
            room,
            pace or None,
            0 if spec.is_list else len(policy._buffer),  # of a list all that was told is in its table
        )

    @property
    def without_baseline(self) -> LexElimTol:
        """The policy as it is, with nobody who answers unless another is better."""
        policy: LexElimTol = copy.copy(self.policy)
        policy.state = policy.state._replace(options=policy.state.options._replace(baseline=-1))
        return policy

    def prices(self, price: Any) -> Vector:
        """(K,) the price of a result of each arm."""
        if isinstance(price, Mapping):
            unknown = [arm for arm in price if arm not in self.arms]
            if unknown:
                raise StudyError(
                    f"price: no arm {unknown[0]!r}; there are {listed(list(map(repr, self.arms)))}"
                )
            lacking = [arm for arm in self.arms if arm not in price]
            if lacking:
                raise StudyError(f"price lacks arm {lacking[0]!r}")
            given = [positive(f"the price of {arm!r}", price[arm]) for arm in self.arms]
        else:
            given = [positive("price", price)] * len(self.arms)
        return np.array([*given, *[0.0] * (self.policy.max_arms - len(given))])

    def posterior(self, prior: Any, sd: Any, shared: Any) -> Posterior:
        """Return the posterior: as measured, and by the prior where too little was."""
        with study_errors(TypeError):
            asked = None if prior is None else self._prior(prior, sd, shared)
        try:
            return Posterior(self.measured, asked, self.missing)
        except MissingPrior as lack:
            arm, objective = self.arms[lack.arm], self.objectives[lack.objective]
            if lack.what == "sd":
                why = f"a forecast needs the standard deviation of one value on {objective!r}"
                raise PriorNeeded(why, f"sd={{{objective!r}: …}}", f"--sd {objective}=…") from None
            why = f"arm {arm!r} has too few results on {objective!r} to forecast from"
            table = f"[{toml_key(arm)}] {toml_key(objective)} = …"
            option = f"--prior FILE, a TOML file with a table per arm, {table}"
            raise PriorNeeded(why, f"prior={{{arm!r}: {{{objective!r}: …}}, …}}", option) from None

    # --- priors

    def _prior(self, prior: Any, sd: Any, shared: Any) -> Prior:
        K, m = self.policy.max_arms, self.policy.n_objectives
        low, high = np.full((K, m), math.nan), np.full((K, m), math.nan)
        if not isinstance(prior, (Mapping, Sequence, np.ndarray)) or isinstance(prior, str):
            raise StudyError(f"prior must be {{arm: {{objective: mean}}}} or a row per arm, got {prior!r}")
        rows = prior.items() if isinstance(prior, Mapping) else zip(self.arms, prior, strict=False)
        if not isinstance(prior, Mapping) and len(prior) != len(self.arms):
            raise StudyError(
                f"prior must have a row per arm ({', '.join(map(repr, self.arms))}), got {len(prior)}"
            )
        for arm, row in rows:
            a = self._index("prior", self.arms, arm, "arm")
            listed_up = isinstance(row, (Sequence, np.ndarray)) and not isinstance(row, str) and len(row) == m
            if not (isinstance(row, Mapping) or listed_up):
                raise StudyError(
                    f"the prior of {arm!r} must be {{objective: mean}} or {m} means, got {row!r}"
                )
            cells = row.items() if isinstance(row, Mapping) else zip(self.objectives, row, strict=True)
            for objective, cell in cells:
                i = self._index(f"prior of {arm!r}", self.objectives, objective, "objective")
                ends = sorted(
                    self.signs[i] * end for end in _ends(f"the prior of {arm!r}, {objective!r}", cell)
                )
                kind = kinds_of(self.policy)[i]
                if not kind.low <= ends[0] <= ends[1] <= kind.high:
                    bounds = sorted((self.signs[i] * kind.low + 0.0, self.signs[i] * kind.high + 0.0))
                    where = f"[{bounds[0]:g}, {bounds[1]:g}]"
                    raise StudyError(
                        f"the prior of {arm!r} on {objective!r} must be in {where}, got {cell!r}"
                    )
                low[a, i], high[a, i] = ends
        deviations = self._per_objective("sd", sd, math.nan)
        correlations = self._per_objective("shared", shared, 0.0)
        if not ((correlations >= 0) & (correlations < 1)).all():
            raise StudyError(f"shared must be at least 0 and below 1, got {shared!r}")
        return Prior(low, high, deviations, correlations, self.measured.coins)

    def _per_objective(self, name: str, given: Any, default: float) -> Vector:
        m = len(self.objectives)
        found = np.full(m, default)
        if isinstance(given, Mapping):
            for objective, number in given.items():
                i = self._index(name, self.objectives, objective, "objective")
                found[i] = real(f"{name} of {objective!r}", number)
        elif isinstance(given, (Sequence, np.ndarray)):
            if len(given) != m:
                raise StudyError(f"{name} must be one number or one per objective ({m}), got {given!r}")
            found[:] = [math.nan if v is None else real(name, v) for v in given]
        elif given is not None:
            found[:] = real(name, given)
        return found

    @staticmethod
    def _index(what: str, names: list[str], name: Any, kind: str) -> int:
        if str(name) not in names:
            raise StudyError(f"{what}: no {kind} {name!r}; there are {', '.join(map(repr, names))}")
        return names.index(str(name))


def _ends(what: str, cell: Any) -> tuple[float, float]:
    if isinstance(cell, (Sequence, np.ndarray)) and not isinstance(cell, str):
        if len(cell) != 2:
            raise StudyError(f"{what} must be a number or a range (low, high), got {cell!r}")
        return real(what, cell[0]), real(what, cell[1])
    return real(what, cell), real(what, cell)


def _coins(spec: Spec) -> tuple[bool, ...]:
    return tuple(objective.kind is NoiseKind.BERNOULLI for objective in spec.objectives)


def _missing(spec: Spec, policy: LexElimTol, arms: Counts, values: Vector, counted: Any, lost: Any) -> Vector:
    """(K, m) how often an arm's value was missing, where no value stands for it."""
    K, m = policy.max_arms, policy.n_objectives
    missing = np.zeros((K, m))
    for arm in np.unique(arms).tolist():
        mine = arms == arm
        told, gone = int((mine & counted).sum()), int((mine & lost).sum())
        for i, objective in enumerate(spec.objectives):
            instead = objective.if_failed is not None or objective.if_expired is not None
            absent = int(np.isnan(values[mine & counted, i]).sum()) + (0 if instead else gone)
            if told + gone:
                missing[arm, i] = min(absent / (told + gone), 0.99)
    return missing


# --- settings that may be doubled


def _changes(policy: LexElimTol) -> list[Change]:
    """Doubled tolerances and resolutions of a policy without words; a resolution not given follows."""
    m, settings = policy.n_objectives, policy.settings
    tolerances = np.broadcast_to(np.asarray(settings["tolerance"], float), (m,)).copy()
    given = settings["resolution"]
    resolutions = tolerances if given is None else np.broadcast_to(np.asarray(given, float), (m,)).copy()
    rows = []
    for i in range(m):
        if settings.get("reference") and settings["reference"][i] is not None:
            continue  # shares stay
        twice = np.where(np.arange(m) == i, 2.0, 1.0)
        if tolerances[i] > 0:
            fine = resolutions * twice if given is None else resolutions
            both = {"tolerance": tolerances * twice, "resolution": fine}
            rows.append(_change(policy, "tolerance", str(i), tolerances[i], both))
        if resolutions[i] > 0:
            both = {"tolerance": tolerances, "resolution": resolutions * twice}
            rows.append(_change(policy, "resolution", str(i), resolutions[i], both))
    return rows + _doubled_delta(policy)


def _spec_changes(policy: LexElimTol, spec: Spec) -> list[Change]:
    """What `Study.amend` with twice the margin would make of the policy; a tie left out follows."""
    if policy.finished:
        return []
    rows = []
    for objective in spec.objectives:
        now = objective.margin_in_unit
        if 0 < 2 * now < objective.most_apart and not objective.is_relative:
            then = spec.changed(objective.name, margin=2 * now)
            rows.append(_change(policy, "margin", objective.name, now, then.tolerance_settings))
    return rows + _doubled_delta(policy)


def _change(policy: LexElimTol, setting: str, name: str, now: float, both: dict[str, Any]) -> Change:
    then = policy.amended(**both)
    tie_grows = np.any(then.state.limits[:, TOLERANCE] > policy.state.limits[:, TOLERANCE])
    why = WhyMore.TIE_GROWS if tie_grows else None
    why = WhyMore.TESTS_END if _is_tested(policy) and not _is_tested(then) else why
    return Change(setting, name, float(now), 2 * float(now), then, why)


def _is_tested(policy: LexElimTol) -> bool:
    """Whether pre-registered tests can prove its answer."""
    state = policy.state
    return bool(state.log_evidence.size and np.isfinite(state.limits[:, NOT_WORSE_LEVEL]).any())


def _doubled_delta(policy: LexElimTol) -> list[Change]:
    """Only before anything is measured: delta may not be changed after looking."""
    delta = policy.settings["delta"]
    if policy.rounds or 2 * delta >= 1:
        return []
    return [Change("delta", None, delta, 2 * delta, LexElimTol(**{**policy.settings, "delta": 2 * delta}))]
