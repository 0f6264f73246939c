"""LexElim-Tol: no trade-off, no set sizes and no noise scale, only the differences that do not matter.

Arms are measured in passes and compared by their differences in common passes, whatever the noise.
Objective by objective: whoever is beaten by more than the tolerance is out; an objective is settled
when all pairs left are close. docs/proofs.md proves it.
"""

import copy
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import direct
from lexbandits._validation import BEST, IfInfeasible, StopWhen, different, each_objective, whole
from lexbandits.evidence.betting import STAKES, first_wealth
from lexbandits.evidence.exact import check_exact
from lexbandits.evidence.finite_variance import one_value_dominates
from lexbandits.evidence.kinds import (
    IN_PART,
    Kind,
    NoiseKind,
    checked_kinds,
    kind_rows,
    spread_kinds,
)
from lexbandits.evidence.symmetric import DEPTH as SYMMETRIC_DEPTH
from lexbandits.outcomes import Flag
from lexbandits.policies.base import LEFT_AT, LEFT_ON, Rules, Steps, untried
from lexbandits.policies.policy import checked
from lexbandits.policies.tolerance.anytime import beats_at, meets, violates
from lexbandits.policies.tolerance.buffer import ResultBuffer
from lexbandits.policies.tolerance.intervals import fill_differences, fill_intervals, fill_target_bounds
from lexbandits.policies.tolerance.passes import (
    begin,
    choose,
    close_pass,
    finished,
    members,
    next_evaluated,
    observe,
    pass_arrays,
    take_pass,
)
from lexbandits.policies.tolerance.places import PlacePolicy
from lexbandits.policies.tolerance.preregistered import shown_to_meet
from lexbandits.policies.tolerance.relative import BETS, DEPTH, LOGS
from lexbandits.policies.tolerance.state import (
    ASKED,
    CANDIDATE,
    CONTRADICTION,
    FILLED,
    FIRST,
    HIGH,
    HIGHEST,
    LEADER,
    LEVEL,
    LOW,
    NEXT,
    OFFERED,
    OVER,
    PASS,
    POSITION,
    RESULTS,
    RIVAL,
    TARGET_LEVEL,
    Clock,
    Options,
    State,
)
from lexbandits.policies.tolerance.stopping import Seen, certificate, plug_in
from lexbandits.policies.tolerance.survivors import breaks_limit
from lexbandits.policies.tolerance.validation import EARLY, RewardValidator, one_value_returns

FIRST_EVALUATED = 5  # passes; with an exact objective the first pass is evaluated
MOST_BYTES = 1 << 30  # for all pairs
ANYTIME_SHARE = 0.05  # of delta, of anytime evidence; the rest is of pre-registered tests of the answer
NO_PAIR_TESTS, NO_ARM_TESTS = (2, 0, 0, 0), (2, 0, 0)
NO_SHARES = (2, 0, 0, 0, DEPTH)


def no_shares(kinds: Sequence[Kind], n_arms: int) -> Vector:
    """Contrasts of which nothing was measured."""
    shares = np.zeros((2, len(kinds), n_arms, n_arms, DEPTH))
    shares[..., BETS:LOGS] = first_wealth(kinds)[:, None, None]
    return shares


class LexElimTol(PlacePolicy):
    """For ties that are never exact: all it needs are the differences that do not matter.

    Arms that differ by at most the tolerance go on to the next objective together. An arm worse by more than
    tolerance + resolution does not; in between either may happen.

    With probability at least 1 − delta, for every objective i: of the arms that reached it, those within
    tolerance[i] of the best one go on, and none goes on that is worse by more than tolerance[i] +
    resolution[i]. With a target, arms that meet it go on, and those that do miss it by at most the
    resolution. What it needs: whatever happened in earlier passes, the difference of two arms in a pass has
    one and the same mean (and for "gaussian" one and the same normal law).

    A result belongs to a place, (arm, pass): use `ask_place` and `tell(…, item=pass)` to measure in
    parallel or on common items. The state depends on which places are filled, never on the order. A
    result told without an item fills the arm's earliest empty place, which is right when results are
    told in the order asked. `None` in a reward is a value not measured.

    Order, arms, tolerances and resolutions may be changed after looking, at the same delta: `amended`.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        tolerance: what does not matter, one or per objective.
        resolution: how finely it is resolved; by default the tolerance. Both zero is an error, except
            where noise is "exact".
        noise: a kind, one for all objectives or one each. "gaussian": variances unknown and of any ratio.
            "symmetric": differences of two arms are symmetric about their mean given the past. "bernoulli".
            ("bounded", lo, hi). ("sub_gaussian", sd), or ("sub_gaussian", sd, "independent") where the arms
            of a pass share nothing. "exact". "finite_variance", which is approximate. With "worst" last,
            ("bounded", lo, hi, "worst") or ("bernoulli", "worst"), a missing value counts as the worst it
            could have been for whatever is claimed. ("bounded", lo, hi, "steady"): values are expected in a
            small part of the bounds, as times below a cap are. That takes fewer results where it is true
            and more where it is not; what is claimed holds either way.
        noise_sd: short for ("sub_gaussian", sd, "independent").
        at_least: None or a number per objective: a target; all arms that meet it tie.
        if_infeasible: "continue" as on any other objective where nobody meets a target, or "stop".
        stop_when: "answer" stops once the answer is certified: no arm that deserves to reach an
            objective is better there by more than tolerance + resolution; "all" settles every arm.
        preregistered: True needs a third fewer results while the settings are kept; False is cheaper if you
            will change them.
        order: the objectives by priority.
        offered: the arms in question.
        max_arms: how many arms there may ever be.
        n_items: it is about a list of so many items in a drawn order: tolerance/finite/finite_policy.py.
        since: there, the position from which on arms that were added count, one per arm.
        baseline: the current arm: it answers if it survives on all objectives, whoever else does.
        reference: None, or per objective None, "best" or an arm: tolerance and resolution are then shares of
            the best mean, or of that arm's, which is measured in every pass. Values must not be negative;
            ("best", −1) or (arm, −1) is for those that were negated, as less is better.
        leader_repeats: r, how often each pass from the 21st on asks the arm that the proof is about. All
            others are asked once, and compared with the mean of its values. With "bernoulli", "bounded",
            "sub_gaussian" and "exact" noise. A place is then (arm, r·pass + j), its j-th in the pass: `item`
            is r·pass + j, and `from_pass` the first such number.

    >>> policy = LexElimTol(2, 1, delta=0.05, tolerance=0.1, noise=("bounded", 0, 1))
    >>> while not policy.finished:
    ...     arm = policy.ask()
    ...     policy.tell(arm, [0.2 + 0.6 * arm])
    >>> policy.recommendation, policy.certified
    (1, True)
    """

    rules = Rules(choose, observe, finished, steps=Steps(pass_arrays, members, take_pass, close_pass))
    accepts_missing = True
    round_robin = False

    def __new__(cls, *_: Any, n_items: int | None = None, **__: Any) -> Self:
        """With `n_items` a policy about a list, which judges by other evidence."""
        if cls is LexElimTol and n_items is not None:
            from lexbandits.policies.tolerance.finite.finite_policy import FiniteLexElimTol

            cls = FiniteLexElimTol  # type: ignore[assignment]
        return super().__new__(cls)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        tolerance: float | ArrayLike,
        resolution: float | ArrayLike | None = None,
        noise: Any = "gaussian",
        noise_sd: float | ArrayLike | None = None,
        at_least: float | Sequence[float | None] | None = None,
        if_infeasible: str = "continue",
        stop_when: str = "answer",
        preregistered: bool = True,
        order: Sequence[int] | None = None,
        offered: Sequence[int] | None = None,
        max_arms: int | None = None,
        n_items: int | None = None,
        since: Any = None,
        baseline: int | None = None,
        reference: Any = None,
        leader_repeats: int = 1,
    ) -> None:
        settings, self.max_arms = self._settings, max_arms or n_arms
        if baseline is None:  # nor do journals of studies without one
            del settings["baseline"]
        elif whole("baseline", baseline, least=0) >= self.max_arms:
            raise ValueError(f"baseline must be an arm, below {self.max_arms}, got {baseline}")
        if n_items is None:  # journals of policies that are not about a list do not know these
            if since is not None:
                raise ValueError("since is for a policy about a list: say n_items")
            del settings["n_items"], settings["since"]
        settings["noise"] = checked_kinds(noise, settings.pop("noise_sd"), n_objectives)
        if offered is not None:
            settings["offered"] = sorted(different("offered", offered, most=self.max_arms - 1))
        self._kinds = spread_kinds(settings["noise"], n_objectives)
        self.leader_repeats = leader_repeats
        if leader_repeats == 1:  # nor do most journals
            del settings["leader_repeats"]
        else:
            self._check_repeats()
        if reference is None:
            del settings["reference"]
        else:
            settings["reference"] = self._checked_reference(reference)
        self._buffer = ResultBuffer()
        self._validator = RewardValidator(self._kinds, self._signs_of_shares())
        self.state = self._first_state()
        self._begin()

    # __new__ would hide the parameters of the class
    __signature__ = inspect.Signature(list(inspect.signature(__init__).parameters.values())[1:])

    def _begin(self) -> None:
        direct(begin)(self.state)

    def _first_state(self) -> State:
        K, m = self.max_arms, self.n_objectives
        bounded, preregistered = any(kind.traits.bounded for kind in self._kinds), self._has_alpha_budget()
        symmetric = any(kind.noise is NoiseKind.SYMMETRIC for kind in self._kinds)
        n_pairs, depth = K * (K - 1) // 2, SYMMETRIC_DEPTH if symmetric else 5 if bounded else 3
        n_completed = n_pairs + K if any(kind.worst for kind in self._kinds) else 0
        limited = any(self._are_limits())
        bets = n_pairs + K * limited if (bounded or symmetric) and preregistered else 0
        kept = (
            n_pairs * depth + n_completed * 10 + 8 * STAKES.size * bets + (3 if preregistered else 1) * K * K
        )
        kept += 2 * DEPTH * K * K * ("reference" in self._settings)
        size = 8 * m * kept
        if size > MOST_BYTES:
            raise ValueError(
                f"{self.name} compares all pairs of arms: with {K} arms and {m} objectives that takes "
                f"{size / 2**30:.1f} GiB, and more than {MOST_BYTES / 2**30:.0f} GiB is refused"
                + ("; preregistered=False takes less" if bets else "")
            )
        staked = first_wealth(self._kinds)[:, None, None]
        state = self._nothing_told(
            pairs=np.zeros((n_pairs, m, depth)),
            completed=np.zeros((n_completed, m, 2, 5)),
            log_evidence=np.full((2, m, K, K) if preregistered else NO_PAIR_TESTS, -math.inf),
            arm_log_evidence=np.full((2, m, K) if preregistered and limited else NO_ARM_TESTS, -math.inf),
            wealth=np.stack([np.tile(staked, (bets, 1, 2, 2, 1)), np.zeros((bets, m, 2, 2, STAKES.size))]),
            shares=no_shares(self._kinds, K) if "reference" in self._settings else np.zeros(NO_SHARES),
        )
        state.clock[NEXT] = 1 if any(kind.traits.exact for kind in self._kinds) else FIRST_EVALUATED
        return state

    def _nothing_told(self, **evidence: Vector) -> State:
        """What does not depend on how values are counted, and `evidence`, which does."""
        K, m, settings = self.max_arms, self.n_objectives, self._settings
        clock = np.zeros(len(Clock), np.int64)
        clock[[HIGHEST, CANDIDATE, LEADER, RIVAL]] = -1
        proves = settings["stop_when"] == StopWhen.ANSWER
        stops = settings["if_infeasible"] == IfInfeasible.STOP
        offered = range(self.n_arms) if settings["offered"] is None else settings["offered"]
        masks = np.zeros((5, K), np.bool_)
        masks[OFFERED, list(offered)] = True
        gaussian = any(kind.traits.normal for kind in self._kinds)
        arms = untried(K, m)
        arms.active[:] = masks[OFFERED]
        return State(
            arms,
            clock,
            Options(proves, stops, int(settings.get("baseline", -1))),
            masks,
            values=np.zeros((K, m)),
            repeats=np.zeros((self.leader_repeats if self.leader_repeats > 1 else 0, m + 1)),
            singles=np.zeros((K, m, FIRST + (EARLY if gaussian else 0))),
            lcb=np.full((m, K, K), -math.inf),
            bounds=np.tile([-math.inf, math.inf], (m, K, 1)),
            is_limit=self._are_limits(),
            reached=np.zeros((m, K), np.bool_),
            order=np.array(range(m) if settings["order"] is None else settings["order"], np.int64),
            limits=self._limits(),
            kinds=kind_rows(self._kinds),
            **evidence,
        )

    def _has_alpha_budget(self) -> bool:
        """Return whether part of delta is set aside for pre-registered tests of the answer."""
        settings = self._settings
        return bool(settings["preregistered"] and settings["stop_when"] == StopWhen.ANSWER)

    def _are_limits(self) -> NDArray[np.bool_]:
        """(m,) which objectives have a target."""
        targets = self._settings["at_least"] or [None] * self.n_objectives
        return np.array([target is not None for target in targets])

    def _anytime_share(self) -> float:
        """Return the share of delta spent on anytime evidence, which holds under any rules."""
        return ANYTIME_SHARE if self._has_alpha_budget() else 1.0

    def _precision(self, settings: dict[str, Any]) -> tuple[Vector, Vector]:
        """(m,) tolerances and resolutions; with a target all that is better is better: no tolerance."""
        slack, fine = each_objective(settings["tolerance"], self.n_objectives), settings["resolution"]
        fine = slack if fine is None else each_objective(fine, self.n_objectives)
        return np.where(self._are_limits(), 0.0, slack), fine

    def _limits(self) -> Vector:
        settings, m = self._settings, self.n_objectives
        slack, fine = self._precision(settings)
        targets = settings["at_least"]
        target = np.array([math.nan if t is None else t for t in targets or [None] * m], np.float64)
        for i in range(m):
            if targets and targets[i] is not None and not self._kinds[i].traits.about_one_arm:
                raise ValueError(
                    f'objective {i}: "{self._kinds[i].noise}" noise is about differences of two arms and '
                    'says nothing about one arm and a target: say "gaussian", "bernoulli" or '
                    '("bounded", lo, hi)'
                )
            if fine[i] == 0 and not self._kinds[i].traits.exact and "n_items" not in settings:
                raise ValueError(
                    f"objective {i} needs a positive tolerance or a positive resolution to be settled, "
                    f"got tolerance {slack[i]:g} and resolution {settings['resolution']}"
                )
        # half of an objective's share of delta for its target, half for its pairs, should nobody meet it
        half = np.where(np.isnan(target), 0.0, math.log(2.0))
        pairs = max(1, self.max_arms * (self.max_arms - 1) // 2)
        level = math.log(m * pairs / (self._anytime_share() * settings["delta"])) + half
        anytime = self._anytime_share() * settings["delta"]
        target_level = np.full(m, math.log(2 * self.max_arms * m / anytime))
        given = [entry or (-1, 0) for entry in settings.get("reference") or [None] * m]
        shares = np.array([[-1 if of == BEST else of, sign] for of, sign in given], np.float64).T
        columns = (slack, slack + fine, target, target - fine, level, target_level)
        return np.stack([*columns, *self._claim_levels(), *shares], axis=1)

    def _check_repeats(self) -> None:
        """Refuse what is not proven of a mean of several values; of these what is missing is at its worst."""
        settings = self._settings
        if "n_items" in settings:
            raise ValueError("leader_repeats is for a population: the items of a list are each measured once")
        if settings["stop_when"] != StopWhen.ANSWER:
            raise ValueError('leader_repeats needs stop_when="answer": only its proof has a leader')
        for i, kind in enumerate(self._kinds):
            if not kind.traits.about_averages:
                raise ValueError(
                    f"objective {i}: leader_repeats compares the mean of several values with one, of which "
                    f'"{kind.noise}" noise says nothing: say "bernoulli", ("bounded", lo, hi) '
                    'or ("sub_gaussian", sd)'
                )
        if settings.get("reference") is not None and any(settings["reference"]):
            raise ValueError("leader_repeats does not go with shares of a mean: give tolerances as numbers")
        self._kinds = tuple(
            kind._replace(worst=max(kind.worst, IN_PART)) if kind.traits.bounded else kind
            for kind in self._kinds
        )

    def _checked_reference(self, reference: Any) -> list[list[Any] | None] | None:
        """Per objective None or [arm or "best", sign of its values]; said of one, of all."""
        settings, m = self._settings, self.n_objectives
        if "n_items" in settings:
            raise ValueError("reference is for a population: leave out n_items")
        alone = isinstance(reference, (str, int))
        given = [reference] * m if alone else list(reference)
        if len(given) != m:
            raise ValueError(f"reference must be one per objective ({m}), got {reference!r}")
        found: list[list[Any] | None] = []
        offered = range(self.n_arms) if settings["offered"] is None else settings["offered"]
        reach = np.add(*self._precision(settings))
        for i, entry in enumerate(given):
            if entry is None:
                found.append(None)
                continue
            of, sign = (entry, 1) if isinstance(entry, (str, int)) else entry
            if sign not in (1, -1) or (of != BEST and of not in offered):
                raise ValueError(f'reference[{i}] must be "best" or an arm that is offered, got {entry!r}')
            if settings["at_least"] is not None and settings["at_least"][i] is not None:
                raise ValueError(f"objective {i}: a share of a mean goes with no target")
            if not reach[i] < 1:
                raise ValueError(f"objective {i}: shares of a mean must be below all of it, got {reach[i]:g}")
            kind = self._kinds[i]
            if not kind.traits.about_one_arm:
                raise ValueError(
                    f'objective {i}: a share of a mean weighs two arms unequally, of which "{kind.noise}" '
                    'noise says nothing: say "gaussian" or ("bounded", lo, hi), or give tolerances as numbers'
                )
            if kind.traits.bounded and (kind.low if sign > 0 else -kind.high) < 0:
                raise ValueError(f"objective {i}: shares of a mean need values that are not negative")
            found.append([of, sign])
        return found

    def _signs_of_shares(self) -> tuple[int, ...]:
        """Per objective the sign that values must have, 0 for any."""
        given = self._settings.get("reference") or [None] * self.n_objectives
        return tuple(0 if entry is None else entry[1] for entry in given)

    def _claim_levels(self) -> tuple[Vector, ...]:
        """(m,) what "not worse", "beats" and "meets" take in pre-registered tests.

        By position in the order; exact objectives have none, as what is said of them is exact. With limits
        every arm may be unacceptable, and there is no claim of "not worse" on a limit.
        On the last objective "beats" is what a baseline asks for, and has the share that is left.
        """
        settings, m, limits = self._settings, self.n_objectives, self._are_limits()
        K = self.n_arms if settings["offered"] is None else len(settings["offered"])
        rivals = K if limits.any() else max(1, K - 1)
        own = (1.0 - ANYTIME_SHARE) * settings["delta"]
        not_worse, beats, meets = np.zeros(m), np.zeros(m), np.zeros(m)
        order = range(m) if settings["order"] is None else settings["order"]
        noisy = [i for i in order if not self._kinds[i].traits.exact]
        for position, i in enumerate(noisy):
            not_worse[i] = math.inf if limits[i] else math.log(rivals * 2**position / own)
            is_last = settings.get("baseline") is not None and i == noisy[-1] and not limits[i]
            beats[i] = math.log(rivals * 2 ** (position + (not is_last)) / own)
            meets[i] = math.log(rivals / own)
        return not_worse, beats, meets

    def _go_on(self) -> None:
        super()._go_on()
        self._warn_of_assumptions()

    def _warn_of_assumptions(self) -> None:
        if self._validator.aloud and self.finished and self.assumption_warnings:
            arm, i = self.assumption_warnings[0]
            warnings.warn(
                f"one value may carry a quarter of the variance of arm {arm} on objective {i}: the answer, "
                'which rests on "finite_variance", may be wrong more often than delta',
                UserWarning,
                stacklevel=4,
            )

    def amended(
        self,
        *,
        tolerance: float | ArrayLike | None = None,
        resolution: float | ArrayLike | None = None,
        order: Sequence[int] | None = None,
        offered: Sequence[int] | None = None,
        from_pass: int | None = None,
    ) -> Self:
        """The policy under a new `tolerance`, `resolution`, `order` or `offered` arms, by what was seen.

        This one stays as it is. The new rules choose members from pass `from_pass` on: above every pass
        asked; without it, above every pass told. Passes below it keep their members and count, as who
        changes the rules may have seen their values. With preregistered=True the answer is from then on
        proven by anytime evidence, which has a twentieth of delta. Before any pass is begun (start 0) the new
        rules count as preregistered.
        """
        given = {"tolerance": tolerance, "resolution": resolution, "order": order, "offered": offered}
        settings = {**self.settings, **{name: value for name, value in given.items() if value is not None}}
        self._check_shares_stay(settings)
        least, times = int(self.state.clock[HIGHEST]) + 1, self.leader_repeats
        start = least if from_pass is None else -(-whole("from_pass", from_pass, least=0) // times)
        if start < least:
            raise ValueError(f"from_pass must be at least {least * times}, got {from_pass}")
        nobody_looked = start == 0 and self.state.log_evidence.size > 0
        if nobody_looked:  # so these are the pre-registered rules
            unseen = type(self)(**settings)
            unseen._validator = copy.deepcopy(self._validator)
            return unseen
        idle = self.finished or start <= self.state.clock[PASS]  # it has begun no pass of its own
        begun = self._before if idle and self._before is not None else self
        until = start if begun is self else self._until
        new = begun._folding()._ruled_by(settings, max(start, int(self.state.clock[PASS])))
        for mine, its in zip(self._tallies(), new._tallies(), strict=True):
            its[...] = mine
        over = begun.finished or begun.passes_folded >= until
        if not (begun._before is None and over):
            new._before, new._until = copy.copy(begun), until
            new._validator = new._before._validator
        return new

    def _check_shares_stay(self, settings: dict[str, Any]) -> None:
        """Contrasts are kept of the shares as first given, and bounds hold at the lines of limits."""
        now, then = self._precision(self.settings), self._precision(settings)
        for i, sign in enumerate(self._signs_of_shares()):
            if sign and any(old[i] != new[i] for old, new in zip(now, then, strict=True)):
                raise ValueError(
                    f"objective {i}: shares of a mean stay: what is kept of the values is for these"
                )
        for i in np.flatnonzero(self._are_limits() & (now[1] != then[1])).tolist():
            raise ValueError(
                f"objective {i}: a target and its resolution stay, got resolution {then[1][i]:g} in place of "
                f"{now[1][i]:g}: name the others alone, or start a new study"
            )

    def _folding(self) -> Self:
        """The policy that folds the current pass."""
        return self if self._before is None else self._before._folding()

    def _ruled_by(self, settings: dict[str, Any], start: int) -> Self:
        new = type(self)(**settings)
        # the pre-registered tests are void: from now on anytime evidence alone proves
        new.state = new.state._replace(
            log_evidence=np.zeros(NO_PAIR_TESTS),
            arm_log_evidence=np.zeros(NO_ARM_TESTS),
            wealth=new.state.wealth[:, :0].copy(),
        )
        old, state = self.state, new.state
        new._copy_evidence(self)
        exact = [kind.traits.exact for kind in self._kinds]  # compared with the new limits, anew
        state.lcb[exact], state.bounds[exact] = -math.inf, (-math.inf, math.inf)
        for its, mine in zip(new._tallies(), self._tallies(), strict=True):
            its[...] = mine
        state.clock[PASS] = max(start, int(old.clock[PASS]))
        state.clock[[OVER, CONTRADICTION]] = 0
        state.arms.active[:] = state.masks[OFFERED]
        state.arms.left[:] = 0
        while state.clock[NEXT] <= state.clock[PASS]:
            state.clock[NEXT] = next_evaluated(state.clock[NEXT])
        direct(begin)(state)
        for arm in np.flatnonzero(state.arms.left[:, LEFT_AT]).tolist():
            _, objective, rival = old.arms.left[arm].tolist()
            still = objective == state.arms.left[arm, LEFT_ON] and (rival < 0 or state.masks[OFFERED, rival])
            if still and old.arms.left[arm, LEFT_AT] > 0:
                state.arms.left[arm, LEFT_AT] = old.arms.left[arm, LEFT_AT]
        new._validator = copy.deepcopy(self._validator)
        return new

    def _copy_evidence(self, other: PlacePolicy) -> None:
        mine, its = self.state, other.state
        mine.singles[:], mine.pairs[:], mine.completed[:] = its.singles, its.pairs, its.completed
        mine.shares[:] = its.shares
        mine.arms.sums[:], mine.arms.means[:] = its.arms.sums, its.arms.means
        mine.clock[RESULTS] = its.clock[RESULTS]
        self._copy_seen(other)

    def _copy_seen(self, other: PlacePolicy) -> None:
        mine, its = self.state, other.state
        np.maximum(mine.lcb, its.lcb, out=mine.lcb)
        np.maximum(mine.bounds[..., LOW], its.bounds[..., LOW], out=mine.bounds[..., LOW])
        np.minimum(mine.bounds[..., HIGH], its.bounds[..., HIGH], out=mine.bounds[..., HIGH])

    def _snapshot(self) -> Self:
        """A copy to be looked at, never told anything."""
        return copy.copy(self)

    def quiet(self) -> Self:
        """From now on `repeating` and `assumption_warnings` alone tell what its warnings would."""
        self._validator.aloud = False
        return self

    # --- what it knows

    @property
    def repeating(self) -> Mapping[int, int]:
        """The "gaussian" objectives on which an arm gave one value twice, each with the first such arm."""
        return self._validator.suspect

    @property
    def repeated(self) -> tuple[int, ...]:
        """The "gaussian" objectives on which one value of an arm came so often that they are not Gaussian.

        Of the first thousand values folded. Nothing is certified then.
        """
        early, counts = self.state.singles[:, :, FIRST:], self.counts
        return tuple(
            i
            for i, kind in enumerate(self._kinds)
            if kind.traits.normal
            and any(one_value_returns(early[arm, i, : counts[arm, i]]) for arm in range(self.max_arms))
        )

    @property
    def wanted(self) -> tuple[int, ...]:
        """The arms that the current pass asks."""
        if self._before is not None:
            return () if self.finished else self._before.wanted
        return tuple(np.flatnonzero(self.state.masks[ASKED]).tolist())

    @property
    def stopped(self) -> tuple[int, ...]:
        """The candidates seen to break a limit that comes before all other objectives.

        Nobody is asked of them while another may meet it; none, if the best so far is one of them.
        """
        state = self.state
        if not state.is_limit[state.order[0]]:
            return ()
        seen = state.bounds, state.limits, state.order, state.is_limit
        found = tuple(arm for arm in self.candidates if breaks_limit(*seen, arm))
        return () if not found or self.recommendation in found else found

    @property
    def objective(self) -> int:
        """The objective being settled; n_objectives when all are."""
        position = int(self.state.clock[POSITION])
        return self.n_objectives if position == self.n_objectives else int(self.state.order[position])

    @property
    def certified(self) -> bool:
        """Whether it is finished and its promise holds for the answer.

        Where nobody meets a target it holds as for any other objective, unless the rule was to stop there.
        """
        stopped = self.infeasible and self.state.options.stops
        return self.finished and not (self.contradiction or self.asymptotic or stopped or self.repeated)

    @property
    def exact(self) -> bool:
        """Whether it is finished and no chance is involved, as no objective has noise."""
        return self.finished and all(kind.traits.exact for kind in self._kinds)

    @property
    def asymptotic(self) -> bool:
        """Whether the promise is only approximate, as the noise is only known to have a variance."""
        return any(kind.traits.approximate for kind in self._kinds)

    @property
    def assumption_warnings(self) -> tuple[tuple[int, int], ...]:
        """(arm, objective) where one value may carry a quarter of a variance only known to be finite."""
        singles = self.state.singles
        return tuple(
            (arm, i)
            for i, kind in enumerate(self._kinds)
            for arm in range(self.max_arms)
            if kind.traits.approximate and one_value_dominates(*singles[arm, i, [0, 2, 4]].tolist())
        )

    @property
    def infeasible(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The limits below whose floor everybody is seen to be who got there, with these arms."""
        found = ((i, self._all_below(i)) for i in self.state.order.tolist() if self.state.is_limit[i])
        return tuple((i, arms) for i, arms in found if arms)

    @property
    def flags(self) -> dict[int, Flag]:
        """Per limit that the answer was not seen to meet why it answers all the same, as the closest.

        INFEASIBLE: everybody still in is seen to be below the floor; else NOT_CLEARLY_FEASIBLE.
        """
        state, x = self.state, self.recommendation
        limits = [i for i in state.order.tolist() if state.is_limit[i]]
        seen = state.bounds, state.limits, state.arm_log_evidence
        if all(
            shown_to_meet(*seen, i, x) for i in limits
        ):  # together at one arm's share of delta, or none of them
            return {}
        short = [i for i in limits if not meets(state.bounds, state.limits, i, x)]
        return {i: Flag.INFEASIBLE if self._all_below(i) else Flag.NOT_CLEARLY_FEASIBLE for i in short}

    def _all_below(self, i: int) -> tuple[int, ...]:
        """The arms that reach a limit, if all of them are seen to be below its floor."""
        state, order = self.state, self.state.order.tolist()
        if state.reached[i].any():
            return tuple(np.flatnonzero(state.reached[i]).tolist())
        if not self.finished or self.contradiction:
            return ()
        x, earlier = self.recommendation, order[: order.index(i)]
        still = []
        for y in np.flatnonzero(state.masks[OFFERED]).tolist():
            left = -1 if state.arms.active[y] else int(state.arms.left[y, LEFT_ON])
            if left not in earlier and (y == x or not any(beats_at(state, j, x, y) for j in earlier)):
                still.append(y)
                if left != i and not violates(state.bounds, state.limits, i, y):
                    return ()
        return tuple(still)

    @property
    def contradiction(self) -> bool:
        """Whether the data refuted every arm: the noise is not what was said, or it was bad luck."""
        return bool(self.state.clock[CONTRADICTION])

    @property
    def means(self) -> Vector:
        """(rows, m) average of the values folded; nan where there is none."""
        return np.where(self.state.singles[:, :, 0] > 0, self.state.arms.means, math.nan)

    @property
    def counts(self) -> Counts:
        """(rows, m) values folded."""
        counts: Counts = self.state.singles[:, :, 0].astype(np.int64)
        return counts

    @property
    def paired(self) -> Counts:
        """(rows, rows, m) passes in which both arms were measured."""
        K, m = self.max_arms, self.n_objectives
        full = np.zeros((K, K, m), np.int64)
        above = np.triu_indices(K, 1)
        full[above] = self.state.pairs[:, :, 0]
        return full + full.transpose(1, 0, 2)

    @property
    def intervals(self) -> Vector:
        """(rows, m, 2) where each mean lies, all of them at all times, with probability at least 1 − delta.

        For people who watch a run: it decides by differences.
        """
        singles = np.zeros((self.max_arms, self.n_objectives, 2))
        direct(fill_intervals)(self.state, self._level_of_arms(), singles)
        return singles

    def _level_of_arms(self) -> float:
        return math.log(self.max_arms * self.n_objectives / self._settings["delta"])

    @property
    def differences(self) -> Vector:
        """(rows, rows, m, 2) the best ends of the interval of each difference, row − column, seen so far.

        All of them hold at all times with probability at least 1 − delta.
        """
        K, m = self.max_arms, self.n_objectives
        pairs = np.zeros((K, K, m, 2))
        above = [(a, b, i) for a in range(K) for b in range(a + 1, K) for i in range(m)]
        a, b, i = np.array(above, np.int64).reshape(-1, 3).T
        pairs[a, b, i] = ends = self._differences(above)
        pairs[b, a, i] = -ends[:, ::-1]
        return pairs

    def difference(self, arm: int, other: int, objective: int) -> tuple[float, float]:
        """The row of `differences` of one pair on one objective, arm − other, at the cost of one."""
        if arm == other:
            return 0.0, 0.0
        low, high = self._differences([(arm, other, objective)])[0].tolist()
        return low, high

    def _differences(self, pairs: Sequence[tuple[int, int, int]]) -> Vector:
        """(n, 2) of each (arm, other, objective)."""
        ends = np.zeros((len(pairs), 2))
        levels = self.state.limits[:, LEVEL] + math.log(self._anytime_share())
        direct(fill_differences)(self.state, levels, np.array(pairs, np.int64).reshape(-1, 3), ends)
        return ends

    @property
    def target_bounds(self) -> Vector:
        """(rows, m, 2) where each mean lies on objectives with a target; infinite on others.

        Together with `differences` all of them hold at all times with probability at least 1 − delta. For
        people who watch: it decides by one-sided bounds, of which an arm can break only one.
        """
        bounds = np.zeros((self.max_arms, self.n_objectives, 2))
        levels = self.state.limits[:, TARGET_LEVEL] + math.log(self._anytime_share())
        direct(fill_target_bounds)(self.state, levels, bounds)
        return bounds

    @property
    def certificate(self) -> tuple[Seen, ...]:
        """Per rival of the recommendation, objective by objective until it is done, what was seen.

        "open" where something is missing; empty after a contradiction.
        """
        return self.seen(self.difference)

    def seen(self, difference: Callable[[int, int, int], tuple[float, float]]) -> tuple[Seen, ...]:
        """Return the certificate, with intervals that the caller keeps.

        Args:
            difference: (arm, rival, objective) -> the ends of the interval of their difference.
        """
        return () if self.contradiction else certificate(self.state, self.recommendation, difference)

    def best_guess(self) -> int:
        """Once finished the answer; before that what today's means would give."""
        if self.finished:
            return int(self.state.clock[CANDIDATE])
        return int(direct(plug_in)(self.state, np.empty((2, self.max_arms), np.bool_)))

    @property
    def recommendation(self) -> int:
        """The answer once finished; before that `best_guess`, which carries no certificate."""
        return self.best_guess()

    def known_exactly(self, i: int) -> dict[int, float]:
        """Arm -> its one value on the exact objective `i`, whether or not its pass is over."""
        state = self.state
        known = {} if self._before is None else self._before.known_exactly(i)
        known |= {arm: float(values[i]) for (arm, _), values in self._buffer if not math.isnan(values[i])}
        for arm in range(self.max_arms):
            if state.masks[ASKED, arm] and state.masks[FILLED, arm] and not math.isnan(state.values[arm, i]):
                known[arm] = float(state.values[arm, i])
            if arm == state.clock[LEADER]:
                told = state.repeats[state.repeats[:, -1] > 0.0, i]
                if (there := told[~np.isnan(told)]).size:
                    known[arm] = float(there[0])
            if state.singles[arm, i, 0] > 0:
                known[arm] = float(state.singles[arm, i, 1])
        return known

    def _check_exact(self, arms: list[int], rewards: Vector) -> None:
        """Refuse a second, different value of an arm on an exact objective."""
        for i, kind in enumerate(self._kinds):
            if not kind.traits.exact:
                continue
            known = self.known_exactly(i)
            for arm, value in zip(arms, rewards[:, i].tolist(), strict=True):
                if not math.isnan(value):
                    check_exact(arm, i, known.setdefault(arm, value), value)
