"""A study as docs/studies.md describes it, as plainly as can be: what every storage must do, call by call.

Which places to measure next, and whether there is an answer, it asks a policy that it tells what it holds.
"""

import copy
import math
from dataclasses import dataclass, field
from itertools import count

import lexbandits as lb
from lexbandits.study.spec import Spec, in_drawn_order
from lexbandits.study.trial import moment


@dataclass
class Place:
    """A trial: an arm in a pass, handed to somebody until a time."""

    number: int
    arm: int
    number_of_pass: int
    until: float
    lease: float
    worker: str | None
    asked: float
    state: str = "open"
    values: dict = field(default_factory=dict)
    first_told: dict | None = None  # before it was corrected
    part: dict = field(default_factory=dict)  # told before the rest
    interrupted: bool = False

    @property
    def rank(self):
        return self.number_of_pass, self.arm


class Model:
    """The calls of a study, on lists. `now` is the time."""

    def __init__(self, words, now):
        self.now = now
        self.spec = Spec.from_json({"name": "model", **words})
        self.margins = {objective.name: {} for objective in self.spec.objectives}  # what was amended
        self.arms = [arm["name"] for arm in self.spec.arms]
        self.withdrawn = set()
        self.failures = dict.fromkeys(self.arms, 0)  # in a row
        self.budget = self.spec.budget
        self.paused = self.ended = False
        self.answered = None  # the arm on record
        self.trials = []
        self.requests = {}  # key -> numbers
        self.visitors = {}  # key -> arm, and trial if it is measured
        self.history = []  # places as they were resolved, and changes of the rules
        self.imported = []  # items
        self._policy, self._told = None, 0

    # --- the policy, told what is on record

    @property
    def policy(self):
        if self._policy is None:
            self._policy, self._told = lb.LexElimTol(**self.spec.policy_settings()), 0
        for entry in self.history[self._told :]:
            if isinstance(entry, Place):
                self._policy.tell(entry.arm, self._reward(entry), item=entry.number_of_pass)
            else:
                self._policy = self._policy.amended(**entry)
        self._told = len(self.history)
        return self._policy

    def _reward(self, place):
        values = {o.name: place.values.get(o.name) for o in self.spec.objectives}
        if place.state == "failed":
            values = {o.name: o.if_failed for o in self.spec.objectives}
        if place.state in ("expired", "late"):
            values = {o.name: o.if_expired for o in self.spec.objectives}
        return self._signed({**values, **place.part})

    def _signed(self, values):
        return [None if values[o.name] is None else o.sign * values[o.name] for o in self.spec.objectives]

    # --- what it says of itself

    def of(self, *states):
        return [trial for trial in self.trials if trial.state in states]

    @property
    def handed_out(self):
        return len(self.trials) - len(self.of("released", "imported"))

    @property
    def finished(self):
        return self.ended or self.policy.finished

    @property
    def state(self):
        if self.finished:
            return "finished"
        if self.paused:
            return "paused"
        if self.budget is not None and self.handed_out >= self.budget:
            return "budget_spent"
        if self.spec.items is not None and not self._has_item(self._next_places(1)[0]):
            return "items_spent"
        return "measuring"

    @property
    def offered(self):
        return [index for index, arm in enumerate(self.arms) if arm not in self.withdrawn]

    @property
    def highest(self):
        return max((trial.number_of_pass for trial in self.trials), default=-1)

    @property
    def answer(self):
        return self.answered if self.ended else self.arms[self.policy.recommendation]

    def awaited(self):
        """Open trials whose values can still count."""
        policy = self.policy
        return [
            trial
            for trial in self.of("open")
            if trial.number_of_pass > policy.folded or (trial.arm, trial.number_of_pass) in policy.lacking
        ]

    def waits(self, trial):
        return any(other.rank < trial.rank for other in self.awaited())

    def status(self):
        told = self.of("told")
        told_ahead = [trial for trial in told if trial.number_of_pass >= self.policy.folded]
        waiting = [trial for trial in told_ahead if self.waits(trial)]
        last = max((trial.rank for trial in told_ahead), default=(-1, -1))
        measured = [trial for trial in self.of("imported") if _has_value(trial.values)]
        return {
            "state": self.state,
            "candidates": tuple(self.arms[index] for index in self.policy.candidates),
            "results": len(told) + len(measured),
            "open": len(self.of("open")),
            "waiting": len(waiting),
            "waiting_for": tuple(trial.number for trial in self.awaited() if trial.rank < last),
            "overdue": len([trial for trial in self.of("open") if trial.until <= self.now]),
            "late": len(self.of("late")),
            "failed": len(self.of("failed")),
            "interrupted": len([trial for trial in self.of("failed") if trial.interrupted]),
            "released": len(self.of("released")),
            "expired": len(self.of("expired")),
            "handed_out": self.handed_out,
            "budget": self.budget,
        }

    def table(self):
        """(state, values) of every trial."""
        return [(trial.state, trial.values) for trial in self.trials]

    def means(self):
        """What was measured: (arm, objective) -> mean, of those that have one."""
        found = {
            (arm, objective.name): objective.sign * self.policy.means[index, column] + 0.0
            for index, arm in enumerate(self.arms)
            for column, objective in enumerate(self.spec.objectives)
        }
        return {key: mean for key, mean in found.items() if not math.isnan(mean)}

    # --- asking

    def ask(self, **how):
        trials = self.ask_many(1, **how)
        if not trials:
            why = {"paused": lb.StudyPaused, "measuring": lb.StudyWaiting}.get(self.state, lb.StudyFinished)
            raise why("")
        return trials[0]

    def ask_many(self, n, lease=None, worker=None, request=None):
        if n == 0:
            return []
        if request in self.requests:
            return self.requests[request]
        self._note_time()
        if self.state != "measuring":
            return []
        most = n if self.budget is None else min(n, self.budget - self.handed_out)
        new = []
        last = self.policy.folded if self._is_held_back() else math.inf
        places = [place for place in self._next_places(most) if self._has_item(place) and place[1] <= last]
        for arm, number in places:
            length = self.spec.lease if lease is None else lease
            new.append(Place(len(self.trials), arm, number, self.now + length, length, worker, self.now))
            self.trials.append(new[-1])
        if request is not None and new:
            self.requests[request] = [trial.number for trial in new]
        return [self._handed(trial) for trial in new]

    def assign(self, key, **how):
        arm, trial = self.visitors.get(key, (None, None))
        shown = set(self.policy.candidates) - set(self.policy.stopped)
        if arm is not None and self.arms.index(arm) in shown:
            if trial is not None and trial.state == "open" and self.now < trial.until:
                return trial.number
            if self.state != "finished" and (trial is None or trial.state != "released"):
                return None, arm, None, None
        if (arm is None or (trial is not None and trial.state == "released")) and (
            handed := self.ask_many(1, **how)
        ):
            trial = self.trials[-1]
            self.visitors[key] = self.arms[trial.arm], trial
            return handed[0]
        if self.state != "finished":
            self.visitors[key] = self.answer, None
        return None, self.answer, None, None

    def forget(self, key=None):
        gone = [each for each in self.visitors if key in (None, each)]
        for each in gone:
            del self.visitors[each]
        return len(gone)

    def _next_places(self, n):
        policy = self.policy
        flying = [(trial.arm, trial.number_of_pass) for trial in self.of("open")]
        return policy.ask_places(n, [place for place in flying if place[1] >= policy.folded])

    def _is_held_back(self):
        if self.policy.passes_buffered <= max(64, 4 * len(self.of("open"))):
            return False
        folded, lacking = self.policy.folded, self.policy.lacking
        awaited = [
            trial
            for trial in self.of("open")
            if trial.number_of_pass > folded or (trial.arm, trial.number_of_pass) in lacking
        ]
        first = min(awaited, key=lambda trial: trial.rank, default=None)
        return first is None or self.now - first.asked >= 5

    @property
    def may_decide(self):
        """Whether what waits would be enough without the trials under way: a process notices sooner or later
        that it need not ask."""
        without = copy.deepcopy(self.policy)
        if without.passes_buffered < 4:
            return False
        for trial in sorted(self.of("open"), key=lambda trial: trial.rank):
            if not without.finished and trial.number_of_pass >= self.policy.folded:
                values = {o.name: o.if_expired for o in self.spec.objectives} | trial.part
                without.tell(trial.arm, self._signed(values), item=trial.number_of_pass)
        return without.finished

    def _has_item(self, place):
        return self.spec.items is None or place[1] < len(self.spec.items)

    def _handed(self, trial):
        return trial.number, self.arms[trial.arm], self._item(trial.number_of_pass), moment(trial.until)

    def _item(self, number):
        if number < len(self.imported):
            return self.imported[number]
        if self.spec.items is None:  # a number that is no imported item
            taken = max((item + 1 for item in self.imported if not isinstance(item, str)), default=0)
            return number + max(0, taken - len(self.imported))
        rest = in_drawn_order(set(self.spec.items) - set(self.imported), self.spec.seed)
        return rest[number - len(self.imported)]

    # --- telling

    def tell(self, number, values, partial=False):
        return (partial and self._take_part(number, values)) or self.tell_many([(number, values)])[0]

    def tell_many(self, results):
        return self._all_or_none(lambda: self._take_all(results))

    def tell_ask(self, results, n=1, **how):
        return self._all_or_none(lambda: (self._take_all(results), self.ask_many(n, **how)))

    def _all_or_none(self, work):
        kept = {"spec": self.spec, "_policy": None}  # the policy can be told again
        before = copy.deepcopy({key: value for key, value in self.__dict__.items() if key not in kept})
        try:
            return work()
        except lb.StudyError:
            self.__dict__.update(before, **kept)
            raise

    def _take_all(self, results):
        results = list(results)
        if not results:
            return []
        checked = [(self._known(number), self._checked(values)) for number, values in results]
        outcomes = [self._take(trial, values) for trial, values in checked]
        outcomes = [
            outcome or self._worth(trial) for outcome, (trial, _) in zip(outcomes, checked, strict=True)
        ]
        self._settle()
        return outcomes

    def _take_part(self, number, values):
        """What became of it; None if it is no part."""
        trial, given = self._known(number), {n: v for n, v in self._checked(values).items() if v is not None}
        if trial.state != "open" or trial.until <= self.now:
            return None
        if not given:
            raise lb.StudyError
        whole = self._with_part(trial, self._checked(values))
        if None not in whole.values():
            return None
        self._check_exact(trial, whole)
        if given.items() <= trial.part.items():
            return "repeated"
        trial.part |= given
        trial.values = whole
        return "after the end" if self.ended else "part"

    def _with_part(self, trial, values):
        for name, known in trial.part.items():
            if values[name] not in (None, known):
                raise lb.ConflictError
        return {**values, **trial.part}

    def record(self, number, values, partial=False):
        if partial and (outcome := self._take_part(number, values)):
            return outcome
        return self._take(self._known(number), self._checked(values)) or "recorded"

    def _known(self, number):
        if not 0 <= number < len(self.trials) or self.trials[number].state == "imported":
            raise lb.UnknownTrialError
        return self.trials[number]

    def _checked(self, values):
        bounds = {objective.name: objective.bounds for objective in self.spec.objectives}
        for name, value in values.items():
            if name not in bounds:
                raise lb.ValueOutOfRange
            low, high = bounds[name]
            if value is not None and not low <= value <= high:
                raise lb.ValueOutOfRange
        return {name: values.get(name) for name in bounds}

    def _take(self, trial, values):
        """What became of it; None for a first result in time."""
        if trial.state in ("open", "expired"):
            values = self._with_part(trial, values)
        if trial.state == "open" and trial.until <= self.now:
            self._resolve(trial, "expired")
        if trial.state == "expired":
            trial.state, trial.values = "late", values
            return "late"
        if trial.state == "released":
            raise lb.ConflictError
        if trial.state != "open":
            if values in (trial.values or self._checked({}), trial.first_told):
                return "repeated"
            raise lb.ConflictError
        self._check_exact(trial, values)
        trial.values, trial.part = values, {}
        self._resolve(trial, "told" if _has_value(values) else "failed")
        return "after the end" if self.ended else None

    def _check_exact(self, trial, values):
        for objective in self.spec.objectives:
            others = [o for o in self.of("told", "imported") if o.arm == trial.arm and o is not trial]
            others += [o for o in self.trials if o.part and o.arm == trial.arm and o is not trial]
            known = {o.values.get(objective.name) for o in others} - {None}
            given = values[objective.name]
            if objective.noise == "exact" and given is not None and known - {given}:
                raise lb.ConflictError

    def _worth(self, trial):
        return "waiting" if self.waits(trial) else "counted"

    def _resolve(self, trial, state):
        trial.state = state
        if state == "released":
            return
        arm = self.arms[trial.arm]
        if self.failures[arm] < self.spec.max_failures:  # else it is given up, at the latest by the next ask
            if state == "failed" and not trial.part and self._is_a_reason(trial):
                self.failures[arm] += 1
            if state == "told" or (state == "failed" and trial.part and not trial.interrupted):
                self.failures[arm] = 0
        self.history.append(trial)

    def _is_a_reason(self, trial):
        """To give its arm up: not if failures have a value, it was broken off, or the rules were others."""
        noisy = [objective for objective in self.spec.objectives if objective.noise != "exact"]
        valued = noisy and all(objective.if_failed is not None for objective in noisy)
        under_rules = trial.number_of_pass >= self._rules_from
        return not (valued or trial.interrupted or self.ended) and under_rules

    @property
    def _rules_from(self):
        return max((entry["from_pass"] for entry in self.history if isinstance(entry, dict)), default=0)

    def fail(self, number, reason="", interrupted=False):
        trial = self._known(number)
        if trial.state == "failed":
            return "repeated"
        if trial.state in ("expired", "late"):
            return "late"
        if trial.state != "open":
            raise lb.ConflictError
        if trial.until <= self.now:
            self._resolve(trial, "expired")
            outcome = "late"
        else:
            trial.interrupted = interrupted
            self._resolve(trial, "failed")
            outcome = "after the end" if self.ended else self._worth(trial)
        self._settle()
        return outcome

    def release(self, number):
        trial = self._known(number)
        if trial.state in ("told", "failed", "late"):
            raise lb.ConflictError
        if trial.state == "open":
            if trial.part and trial.until > self.now:
                raise lb.ConflictError
            self._resolve(trial, "expired" if trial.until <= self.now else "released")
            if trial.state == "expired":
                self._settle()

    def expire(self, number):
        trial = self._known(number)
        if trial.state in ("expired", "late"):
            return "repeated"
        if trial.state != "open" or trial.until > self.now:
            raise lb.ConflictError
        self._resolve(trial, "expired")
        self._settle()
        return "expired"

    def heartbeat(self, worker):
        for trial in self.of("open"):
            if trial.worker == worker and trial.until > self.now:
                trial.until = self.now + trial.lease

    def correct(self, number, values, reason):
        trial, values = self._known(number), self._checked(values)
        if trial.state != "told":
            raise lb.ConflictError
        if self.ended or trial.number_of_pass < self.policy.folded:
            return "noted"
        if not _has_value(values):
            raise lb.ConflictError
        self._check_exact(trial, values)
        trial.first_told = trial.first_told or trial.values
        trial.values = values
        self._policy = None
        self._settle()
        return "corrected"

    # --- what follows from the record

    def _settle(self):
        if self.ended:
            return
        if not self.policy.finished:
            for arm in list(self.arms):
                self._give_up(arm)
        if self.policy.finished:
            self.ended, self.answered = True, self.answer

    def _give_up(self, arm):
        if self.failures[arm] < self.spec.max_failures or arm in self.withdrawn or self.paused:
            return
        others = {index for index in self.offered if self.arms[index] != arm}
        measured = {t.arm for t in self.of("told", "imported") if _has_value(t.values)}
        if others & measured:
            self.withdrawn.add(arm)
            self._new_rules(offered=self.offered)
        else:
            self.paused = True

    def _note_time(self):
        for trial in self.of("open"):
            if trial.until <= self.now:
                self._resolve(trial, "expired")
        self._settle()

    def look(self):
        """Who looks finds what has run out, and an end that `record` left unnoticed, and records it."""
        overdue = any(trial.until <= self.now for trial in self.of("open"))
        if not self.ended and (self.policy.finished or overdue):
            self._note_time()

    # --- changes

    def _new_rules(self, **rules):
        self.history.append({**rules, "from_pass": self.highest + 1})
        self.ended = False

    def withdraw(self, arm, reason):
        self._arm(arm)
        if arm in self.withdrawn or len(self.offered) == 1:
            raise lb.ConflictError
        self.withdrawn.add(arm)
        self._new_rules(offered=self.offered)
        self._settle()

    def restore(self, arm):
        self._arm(arm)
        if arm not in self.withdrawn:
            raise lb.ConflictError
        self.withdrawn.remove(arm)
        self.failures[arm] = 0
        self._new_rules(offered=self.offered)
        self._settle()

    def add_arm(self, arm):
        if arm in self.arms:
            raise lb.ConflictError
        if len(self.arms) == self.spec.max_arms:
            raise lb.StudyError
        self.arms.append(arm)
        self.failures[arm] = 0
        self._new_rules(offered=self.offered)
        self._settle()

    def _arm(self, arm):
        if arm not in self.arms:
            raise lb.UnknownArmError

    def amend(self, objective, margin):
        if objective not in self.spec.names:
            raise lb.StudyError
        self.margins[objective] = margin
        ties = [(self.margins[o.name] or o.margin_in_unit) / 2 for o in self.spec.objectives]
        exact = [o.noise == "exact" for o in self.spec.objectives]
        tolerances = [2 * tie if known else tie for tie, known in zip(ties, exact, strict=True)]
        resolutions = [0.0 if known else tie for tie, known in zip(ties, exact, strict=True)]
        self._new_rules(tolerance=tolerances, resolution=resolutions)
        self._settle()

    def reorder(self, objectives):
        if sorted(objectives) != sorted(self.spec.names):
            raise lb.StudyError
        self._new_rules(order=[self.spec.names.index(name) for name in objectives])
        self._settle()

    def pause(self, reason=""):
        self.paused = True
        self._settle()

    def resume(self):
        if self.paused:
            self.paused = False
            self.failures = dict.fromkeys(self.failures, 0)
        self._settle()

    def set_budget(self, budget):
        self.budget = budget
        self._settle()

    def end(self, reason):
        if self.ended:
            raise lb.StudyFinished
        self._note_time()
        if not self.ended:
            self.ended, self.answered = True, self.answer

    def reopen(self, why):
        if not self.ended:
            raise lb.ConflictError
        self.ended = False
        self._settle()

    def note(self, text):
        self._settle()

    def import_results(self, frame, fair):
        """Rows with items, each arm of a pass in question once; what has no row is missing."""
        if any(trial.state != "imported" for trial in self.trials):
            raise lb.ConflictError
        rows = {(row["arm"], row["item"]): row for row in frame.to_dict("records")}
        numbers = count(self.highest + 1)
        for item in in_drawn_order({item for _, item in rows}, self.spec.seed):
            number = next(numbers)
            self.imported.append(item)
            for index in self.offered:
                row = rows.get((self.arms[index], item), {})
                values = {name: row.get(name) for name in self.spec.names}
                place = Place(len(self.trials), index, number, 0, 0, None, 0, "imported", values)
                self.trials.append(place)
                self.history.append(place)
        self._settle()
        return len(frame)


def _has_value(values):
    return any(value is not None for value in values.values())
