"""One study on several storages at once, all by the same clock, call by call beside the model."""

import itertools
import math
from typing import Any, NamedTuple

import lexbandits as lb
from lexbandits.study.storage.memory import MemoryStorage
from lexbandits.study.trial import Trial
from support.model import Model

START = 1_000_000_000.0
_names = itertools.count()


class Clock:
    """The time of every storage: it moves when told to."""

    def __init__(self, *sql):
        self._sql, self._real = sql, [kind.now for kind in sql]
        self.set(START)

    def set(self, now):
        self.now = now
        for kind in self._sql:
            kind.now = f"CAST({now!r} AS double precision)"

    def restore(self):
        for kind, now in zip(self._sql, self._real, strict=True):
            kind.now = now


class Home(NamedTuple):
    """Where a study can be kept."""

    kind: str
    storage: Any
    address: Any  # for those that opens it anew
    behind: Any  # the storage of a service


class Kept:
    """The study in one storage. Two handles take turns, as two processes would."""

    def __init__(self, home, name, fields):
        self.home, self.kind, self.name = home, home.kind, name
        self.handles = [
            lb.create_study(name, home.storage, **{"seed": 0, **fields}),
            lb.open_study(name, home.storage),
        ]
        self.trials = {}  # number -> as handed out

    def call(self, hand, name, *arguments, **fields):
        """What a call gives, without what differs between storages; or the type of its error."""
        study = self.handles[hand]
        if name in ("ask", "ask_many", "tell_ask"):
            fields["wait"] = 0  # for others, who are this one
        try:
            return self.plain(getattr(study, name)(*map(self._given, arguments), **fields))
        except lb.StudyError as error:
            return type(error).__name__

    def _given(self, argument):
        if isinstance(argument, Ref):
            return self.trials.get(argument, f"{int(argument)}-00000000")
        if isinstance(argument, list) and argument and isinstance(argument[0], tuple):
            return [(self._given(ref), values) for ref, values in argument]
        return argument

    def plain(self, given):
        if isinstance(given, Trial):
            if given.number in self.trials:  # asked for again: its time may have been extended
                assert self.trials[given.number][:4] == given[:4]
                return given.number
            if given.number is not None:
                self.trials[given.number] = given
            return given.number, given.arm, given.item, given.until
        if isinstance(given, (list, tuple)):
            return type(given)(map(self.plain, given))
        return given

    def replace(self, study):
        """Go on with another handle."""
        self.close()
        self.handles = [study, study]

    def end(self):
        lb.delete_study(self.name, self.home.behind)
        self.handles[0].close()

    def close(self):
        if self.kind == "http":
            for study in self.handles:
                study.close()

    def status(self, hand):
        fields = self.handles[hand].status.as_json()
        fields["candidates"] = tuple(fields["candidates"])
        fields["waiting_for"] = tuple(int(name.partition("-")[0]) for name in fields["waiting_for"])
        return {key: fields[key] for key in fields if key != "name"}

    def table(self, frame, names):
        """(state, values) of every trial."""
        columns = [[None if math.isnan(v) else v for v in frame[name]] for name in names]
        return list(zip(frame.state, zip(*columns, strict=True), strict=True))

    def means(self, study):
        rows = study.results()
        pairs = zip(rows.arm, rows.objective, rows["mean"], strict=True)
        return {(arm, objective): mean for arm, objective, mean in pairs if not math.isnan(mean)}

    def journal(self):
        """All events, without what is drawn by chance, and without digests of it."""
        drawn = ("nonce", "digest")
        return [
            event._replace(payload={key: value for key, value in event.payload.items() if key not in drawn})
            for event in self.handles[0].events()
        ]


class Ref(int):
    """A trial by its number, whatever its id is in each storage."""


class Lockstep:
    """Copies of a study in each storage and the model; what one call gives, all give."""

    def __init__(self, clock, homes, fields, pilot=None):
        self.clock = clock
        clock.set(START)
        name = f"study {next(_names)}"
        self.copies = [Kept(home, name, fields) for home in (_in_memory(clock), *homes)]
        self.model = Model(fields, clock.now)
        self.hand = 0
        if pilot is not None:
            for copy in self.copies:  # a service takes no tables: whoever keeps its storage imports
                lb.open_study(name, copy.home.behind).import_results(pilot, fair=True)
            self.model.import_results(pilot, fair=True)

    def wait(self, seconds):
        self.clock.set(self.clock.now + seconds)
        self.model.now = self.clock.now

    def do(self, name, *arguments, **fields):
        """Call it everywhere; but nobody asks where one process may and another may not be given a trial."""
        if name in ("ask", "ask_many", "tell_ask", "assign") and self.model.may_decide:
            return
        try:
            expected = getattr(self.model, name)(*arguments, **fields)
        except lb.StudyError as error:
            expected = type(error).__name__
        for copy in self.copies:
            given = copy.call(self.hand, name, *arguments, **fields)
            assert given == expected, f"{copy.kind}: {name}{arguments}{fields}"

    def look(self, copies=None):
        """The same status everywhere, and that of the model."""
        self.model.look()
        expected = self.model.status()
        first = None
        for copy in copies or self.copies:
            found = copy.status(self.hand)
            first = first or found
            assert {key: found[key] for key in expected} == expected, f"{copy.kind}: status"
            assert found == first, f"{copy.kind}: status"

    def finish(self):
        """Everything, by handles that were not there before: journals, tables, answers, `verify`."""
        self.look()
        answer, journal = self.copies[0].handles[0].answer, self.copies[0].journal()
        assert answer.arm == self.model.answer
        table = [
            (state, tuple(values.get(name) for name in self.model.spec.names))
            for state, values in self.model.table()
        ]
        for copy in self.copies:
            fresh = lb.open_study(copy.name, copy.home.address)
            assert copy.journal() == journal, f"{copy.kind}: journal"
            for study in (*copy.handles, fresh):
                assert copy.means(study) == self.model.means(), f"{copy.kind}: results"
            assert fresh.answer == answer, f"{copy.kind}: answer"
            frame = fresh.trials()
            assert copy.table(frame, self.model.spec.names) == table, f"{copy.kind}: trials"
            assert fresh.verify().problems == (), f"{copy.kind}: verify"
            assert all(frame.id[number] == trial.id for number, trial in copy.trials.items()), copy.kind
            copy.replace(fresh)
        self.look()
        for copy in self.copies:
            copy.end()


def _in_memory(clock):
    storage = MemoryStorage()
    storage.time = lambda: clock.now
    return Home("memory", storage, storage, storage)
