"""What a comparison shows and what became of an arm: the codes of certificates, views, JSON and page."""

from dataclasses import dataclass

from lexbandits._code import Code


class Scope(Code):
    """What an answer or a verdict is about.

    Attributes:
        ITEMS: these items alone.
        POPULATION: what the items are a random sample of.

    >>> import lexbandits as lb
    >>> lb.create_study("s", arms=["a", "b"], objectives=[lb.Objective("size", noise="exact")],
    ...                 items=[1, 2], scope=lb.Scope.POPULATION, seed=0).spec["scope"]
    'population'
    """

    ITEMS = "items"
    POPULATION = "population"


class ClaimVerdict(Code):
    """What is shown of two arms on an objective, or of one arm and a limit.

    Rows of a certificate say it of the answer and a rival: the answer is `better`, or not; the rival meets
    or violates a limit.

    Attributes:
        BETTER: better, by more than the tie.
        WORSE: worse, by more than the tie.
        CLEARLY_BETTER: better, by more than the margin.
        NOT_BEATEN: not worse by more than the tie.
        NOT_WORSE: not worse by more than the margin.
        NOT_BETTER: not better by more than the margin.
        TIED: within the margin of each other.
        BEATEN: a third arm is better than the rival.
        MEETS_LIMIT: the arm meets the limit.
        VIOLATES_LIMIT: the arm is beyond the limit.
        NOT_CLEARLY_WITHIN: the arm is not inside the limit by the slack; it may meet it.
        OPEN: nothing is shown yet.
        NOT_MEASURED: there is nothing to compare.
        NOT_COUNTED: an earlier objective has decided on the arm.

    >>> import lexbandits as lb
    >>> lb.ClaimVerdict.NOT_WORSE == "not_worse"
    True
    """

    BETTER = "better"
    WORSE = "worse"
    CLEARLY_BETTER = "clearly_better"
    NOT_BEATEN = "not_beaten"
    NOT_WORSE = "not_worse"
    NOT_BETTER = "not_better"
    TIED = "tied"
    BEATEN = "beaten"
    MEETS_LIMIT = "meets_limit"
    VIOLATES_LIMIT = "violates_limit"
    NOT_CLEARLY_WITHIN = "not_clearly_within"
    OPEN = "open"
    NOT_MEASURED = "not_measured"
    NOT_COUNTED = "not_counted"


class ObjectiveStage(Code):
    """How far the comparison on one objective has come.

    Attributes:
        SETTLED: decided for every arm that reached it.
        ENOUGH: not decided for every arm, but the answer needs no more.
        SETTLING: being decided now.
        LATER: comes after the one being decided.
        NOT_NEEDED: one arm was left before it.
        NOT_SETTLED: being decided when the study ended without a proof.
        NOT_REACHED: not reached by a study that ended without a proof.

    >>> import lexbandits as lb
    >>> lb.ObjectiveStage("not_needed").name
    'NOT_NEEDED'
    """

    SETTLED = "settled"
    ENOUGH = "enough"
    SETTLING = "settling"
    LATER = "later"
    NOT_NEEDED = "not_needed"
    NOT_SETTLED = "not_settled"
    NOT_REACHED = "not_reached"


class ArmOutcome(Code):
    """What became of an arm, in a study or in a verdict.

    Attributes:
        WINNER: the certified answer.
        TIED: shown to be as good a choice as the answer.
        EXCLUDED: shown to be worse than another arm; on a limit, and not inside it by the slack.
        OUTSIDE_LIMIT: shown to violate a limit, and to be worse there than another arm.
        UNDECIDED: none of these is shown; so is a best guess without a certificate.
        WITHDRAWN: withdrawn by hand.
        FAILED: withdrawn because it could not be measured.

    >>> import lexbandits as lb
    >>> verdict = lb.judge({"arm": ["a", "b"], "item": [1, 1], "size": [3, 4]},
    ...                    [lb.Objective("size", "minimize", noise="exact")], scope="items")
    >>> verdict.outcomes["b"].outcome == lb.ArmOutcome.EXCLUDED
    True
    """

    WINNER = "winner"
    TIED = "tied"
    EXCLUDED = "excluded"
    OUTSIDE_LIMIT = "outside_limit"
    UNDECIDED = "undecided"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"


class DecidedBy(Code):
    """What a decision on an arm rests on.

    Attributes:
        ELIMINATION: the rule by which arms are eliminated; all of these hold at once, at 1 − delta.
        PROOF: a claim of the answer's certificate, which holds at its own level.
        MEANS: today's means, which prove nothing.

    >>> import lexbandits as lb
    >>> list(lb.DecidedBy)
    ['elimination', 'proof', 'means']
    """

    ELIMINATION = "elimination"
    PROOF = "proof"
    MEANS = "means"


class Flag(Code):
    """What a reader of an answer or of a verdict must know besides.

    Attributes:
        ASYMPTOTIC: the noise is only known to have a variance; never certified.
        REPEATED_VALUES: one value, or one difference, returns too often for the noise; never certified.
        CONTRADICTION: what was measured refutes every arm; never certified.
        BIASED_IMPORT: results were imported that were collected by looking at them; never certified.
        SKEWED: the values are too skewed for so few; never certified.
        COPIED_VALUES: one measurement seems to be copied to many rows; never certified.
        CLUSTER_SIZE: nobody said how large a cluster can be; never certified.
        INFEASIBLE: every arm that got as far is shown to violate a limit.
        NOT_CLEARLY_FEASIBLE: no arm is inside a limit by the slack.
        UNDETERMINED_MISSING: results of a list are missing, and could change the answer.
        ARM_EXCLUDED: an arm could not be measured, and the answer is about the others.
        RULES_CHANGED: the rules were changed after the first result.
        ASSUMPTION_WARNING: a diagnostic contradicts what was assumed.
        DROPPED_MISSING: missing results were left out.
        FEW_CLUSTERS: there are fewer than ten clusters.
        FEW_FOR_QUANTILE: a quantile needs more items than there are.
        NOT_BINARY: a column declared as 0/1 has other values, and is judged as bounded.

    >>> import lexbandits as lb
    >>> lb.Flag("rules_changed").name
    'RULES_CHANGED'
    """

    ASYMPTOTIC = "asymptotic"
    REPEATED_VALUES = "repeated_values"
    CONTRADICTION = "contradiction"
    BIASED_IMPORT = "biased_import"
    SKEWED = "skewed"
    COPIED_VALUES = "copied_values"
    CLUSTER_SIZE = "cluster_size"
    INFEASIBLE = "infeasible"
    NOT_CLEARLY_FEASIBLE = "not_clearly_feasible"
    UNDETERMINED_MISSING = "undetermined_missing"
    ARM_EXCLUDED = "arm_excluded"
    RULES_CHANGED = "rules_changed"
    ASSUMPTION_WARNING = "assumption_warning"
    DROPPED_MISSING = "dropped_missing"
    FEW_CLUSTERS = "few_clusters"
    FEW_FOR_QUANTILE = "few_for_quantile"
    NOT_BINARY = "not_binary"


class BaselineDecision(Code):
    """What to do where an arm is in use already.

    Attributes:
        KEEP: it is shown to be as good a choice as any.
        SWITCH: another is, and is shown to be better.
        KEEP_FOR_NOW: neither is shown.

    >>> import lexbandits as lb
    >>> verdict = lb.judge({"arm": ["old", "new"], "item": [1, 1], "size": [3, 4]},
    ...                    [lb.Objective("size", "minimize", noise="exact")], scope="items", baseline="old")
    >>> verdict.decision == lb.BaselineDecision.KEEP
    True
    """

    KEEP = "keep"
    SWITCH = "switch"
    KEEP_FOR_NOW = "keep_for_now"


@dataclass(frozen=True)
class Decision:
    """What became of an arm, and what decided it.

    Attributes:
        outcome: what became of it.
        objective: the objective that decides, if one does.
        rival: the arm that decides it there; None on a limit that was not met.
        by: what the decision rests on.
        limit: on a limit, "violates_limit" or "not_clearly_within".
        bound: what was proven, in the objective's unit: how much worse the arm is at least, or beyond which
            value it lies.
        difference, low, high: of a verdict, the rival's mean minus the arm's, and an ordinary 95 % interval:
            a picture, not the guarantee.
        after: the number of results after which a study eliminated it.

    >>> import lexbandits as lb
    >>> lb.Decision(lb.ArmOutcome.UNDECIDED).is_candidate
    True
    """

    outcome: ArmOutcome
    objective: str | None = None
    rival: str | None = None
    by: DecidedBy | None = None
    limit: ClaimVerdict | None = None
    bound: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    after: int | None = None

    @property
    def is_candidate(self) -> bool:
        """Whether the arm is still in the competition."""
        return self.by != DecidedBy.ELIMINATION and not self.is_gone

    @property
    def is_gone(self) -> bool:
        """Whether the arm was taken out of the competition."""
        return self.outcome in (ArmOutcome.WITHDRAWN, ArmOutcome.FAILED)

    @property
    def is_open(self) -> bool:
        """Whether an objective is named that could still decide on the arm."""
        return self.by is None and self.objective is not None

    @property
    def is_out(self) -> bool:
        """Whether the arm is shown to be worse, or beyond a limit."""
        return self.outcome in (ArmOutcome.EXCLUDED, ArmOutcome.OUTSIDE_LIMIT)
