"""One study's journal as a process sees it: read what is new, fold, decide, append, all under the lock."""

import gc
import hashlib
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from lexbandits.study.core import ask_tell, assignment, lifecycle
from lexbandits.study.core.events import Event, EventKind, without_order
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.queries import Answer, Status, answer_of, status_of
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.verification import Verification, up_to, verify
from lexbandits.study.errors import StorageError, StudyWaiting, StudyWarning, UnknownStudyError
from lexbandits.study.objective import Objective
from lexbandits.study.spec import Spec
from lexbandits.study.states import StudyState
from lexbandits.study.storage import forks
from lexbandits.study.storage.contract import (
    Assigned,
    Entries,
    Lease,
    LostConnectionError,
    Request,
    Storage,
    StudyRow,
    Transaction,
)
from lexbandits.study.trial import Trial

T = TypeVar("T")
FIRST_LOOK, LONGEST_PAUSE = 0.005, 0.25  # seconds between two looks at what other processes have committed
CACHE_EVERY = 5_000  # events, and a tenth of all: read one by one, it is worth putting the projection aside


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector of cycles would look through all that numba has, and a journal makes no cycles."""
    was_on = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_on:
            gc.enable()


class CurrentQuestion(NamedTuple):
    """The question as it stands after `seq` events: arms, withdrawn ones too; objectives by priority."""

    seq: int
    arms: Sequence[dict[str, Any]]
    objectives: Sequence[Objective]


class UnitOfWork:
    """One transaction: what it appends is folded at once, and written when the work is done."""

    def __init__(self, replay: Replay, transaction: Transaction, now: float, nonce: str = "") -> None:
        self.replay, self.projection, self.now = replay, replay.projection, now
        self._nonce = nonce.encode()
        self.events: list[Event] = []
        self.leases: list[Lease] = []
        self.gone: list[int] = []
        self.new_requests: list[Request] = []
        self._assigned: dict[str, Assigned] = {}
        self._transaction = transaction
        self._extended: dict[int, float] | None = None

    def append(
        self,
        kind: EventKind,
        payload: dict[str, Any],
        trial: int | None = None,
        arm: str | None = None,
        by: str | None = None,
    ) -> None:
        """The next event."""
        event = Event(self.projection.seq + 1, kind.value, trial, arm, payload, self.now, by)
        self.events.append(event)
        self.projection.record(event)

    def resolve(self, kind: EventKind, number: int, payload: dict[str, Any]) -> None:
        """An event that ends an open trial, with its lease."""
        by = self.projection.worker_of(number) if kind != EventKind.EXPIRED else None
        self.append(kind, payload, number, self.projection.arm_of(number), by)
        self.gone.append(number)

    def request(self, key: str) -> Request | None:
        """What an earlier ask with this key was given."""
        mine = (request for request in self.new_requests if request.key == key)
        return next(mine, None) or self._transaction.request(key)

    def visitor(self, key: str) -> str:
        """Return what stands for a visitor's key: a digest that is another in every study."""
        return hashlib.blake2b(key.encode(), digest_size=16, key=self._nonce).hexdigest()

    def assigned(self, visitor: str) -> Assigned | None:
        """Return what a visitor was given."""
        return self._assigned.get(visitor) or self._transaction.assigned(visitor)

    def assign(self, visitor: str, arm: str, trial: int | None) -> None:
        """Remember what a visitor is given, in the same commit as the trial."""
        self._assigned[visitor] = Assigned(visitor, arm, trial, self.now)

    def forget(self, visitor: str | None) -> int:
        """Delete what a visitor was given, or all of them were. Return how many there were."""
        gone = list(self._assigned) if visitor is None else [visitor] * (visitor in self._assigned)
        new = [each for each in gone if self._transaction.assigned(each) is None]
        for each in gone:
            del self._assigned[each]
        return len(new) + self._transaction.forget(visitor)

    def digest(self) -> str:
        """Return the digest of all events so far, those of this turn too."""
        return self._transaction.digest(self.events)

    def in_time(self, number: int) -> bool:
        """Whether an open trial may still be told: by the storage's clock, heartbeats included."""
        if self.now < self.projection.open[number]:
            return True
        self.projection.open[number] = until = self.until(number)
        return self.now < until

    def until(self, number: int) -> float:
        """When an open trial runs out, heartbeats included."""
        if self._extended is None:
            self._extended = self._transaction.leases()
        return self._extended.get(number, self.projection.open[number])

    def write(self) -> None:
        """Hand everything to the storage."""
        if self.events or self.new_requests or self._assigned:
            assigned = list(self._assigned.values())
            self._transaction.write(Entries(self.events, self.leases, self.gone, self.new_requests, assigned))


class Journal:
    """The fold of one study, kept between calls and advanced by what is new."""

    def __init__(
        self, storage: Storage, row: StudyRow, read_only: bool = False, reads: Storage | None = None
    ) -> None:
        """`reads`: what to read from, if not the storage: one that no transaction holds up."""
        self.storage, self.row, self.read_only = storage, row, read_only
        self._reads = storage if reads is None else reads
        self.lock = threading.RLock()  # of the threads that share this fold
        self._replay: Replay | None = None
        self._warned: set[int] = set()  # objectives whose values look as if their noise were another
        self._sent: tuple[Event, Any] | None = None  # the last event and the result of a commit that was sent
        self.best: str | None = None  # the best arm as last seen, to show while the storage does not answer
        forks.know_journal(self)

    @property
    def last(self) -> Replay | None:
        """The fold as it was left, for counting alone."""
        return self._replay

    def check_writable(self) -> None:
        """Refuse to change what was opened to be read."""
        if self.read_only:
            raise StorageError(f"study {self.row.name!r} was opened to be read only")

    # --- what a study asks of its journal, here or behind a service

    def do(self, change: Callable[..., T], *given: Any) -> T:
        """One call of a function that takes a turn: of asking, changes or imports."""
        return self.transact(change, *given)

    def exchange(
        self,
        results: Sequence[ask_tell.Told],
        n: int,
        lease: float | None,
        worker: str | None,
        request: str | None,
        wait: float,
    ) -> ask_tell.Exchanged:
        """Take results and hand out up to n trials; for at most `wait` seconds until there is one.

        Nothing is locked meanwhile: the thread that tells what is awaited may use the same journal.
        """
        commits, until, pause = self.storage.commits, time.monotonic() + wait, FIRST_LOOK
        known, how = commits.count, (n, lease, worker, request)
        outcomes, trials, reason = self.transact(ask_tell.exchange, results, *how)
        while isinstance(reason, StudyWaiting) and (left := until - time.monotonic()) > 0:
            commits.wait(known, min(pause, left))
            known, pause = commits.count, min(1.5 * pause, LONGEST_PAUSE)
            if self.has_work():
                _, trials, reason = self.transact(ask_tell.exchange, (), *how)
        return outcomes, trials, reason

    def assign(self, key: str, lease: float | None, worker: str | None) -> Trial:
        """Give a visitor an arm."""
        known = self._replay
        try:
            return self.transact(assignment.assign, key, lease, worker)
        except StorageError:
            if known is not None:
                with self.lock:
                    self.best = assignment.best_arm(known)
            raise

    def has_work(self) -> bool:
        """Whether somebody who waits should ask again. Looks without the lock of the storage."""
        with self.lock:
            replay = self.replay()
            now, leases = self._reads.clock(self.row.id)
            return (
                replay.state != StudyState.MEASURING
                or any(leases.get(number, until) <= now for number, until in replay.projection.open.items())
                or bool(replay.next_places(1, now))
            )

    def extend(self, worker: str) -> None:
        """A worker is alive."""
        self.check_writable()
        self.storage.extend(self.row.id, worker)

    def events(self, since: int = 0) -> Iterator[Event]:
        """What was recorded after event `since`."""
        return self.storage.read(self.row.id, since + 1)

    def in_force(self) -> CurrentQuestion:
        """The question as it stands."""
        projection = self.replay().projection
        return CurrentQuestion(
            projection.seq,
            projection.arms,
            [projection.spec.objectives[column] for column in projection.order],
        )

    def asked(self) -> Spec:
        """The question as it was asked."""
        return self.replay().projection.asked_spec

    def shown(self) -> Spec:
        """The same as it may be shown: nobody reads the coming items of a list before its end."""
        projection = self.replay().projection
        return projection.asked_spec if projection.shows_order else projection.asked_spec.without_order()

    def events_shown(self, since: int = 0) -> Iterator[Event]:
        """The journal after event `since`, as it may be shown."""
        events = self.events(since)
        return events if self.replay().projection.shows_order else map(without_order, events)

    def exported(self) -> Iterator[str]:
        """Iterate over the lines of a journal to hand on: with its digests, unless an order is hidden."""
        projection, last = self.replay().projection, self.storage.last_seal(self.row.id)
        if not last.seq or (projection.spec.is_list and not projection.shows_order):
            yield from (f"{json.dumps(event._asdict())}\n" for event in self.events_shown())
            return
        seals, sealed = self.storage.seals(self.row.id), {"sealed": f"{last.seq}:{last.digest}"}
        seal = next(seals, last)
        for event in up_to(last.seq, self.events()):
            while seal.seq < event.seq:
                seal = next(seals, last)
            digest = {"digest": seal.digest} if seal.seq == event.seq < last.seq else {}
            yield f"{json.dumps(event._asdict() | digest | sealed)}\n"
            sealed = {}

    def verify(self, digest: str | None = None, replay: Replay | None = None) -> Verification:
        """Replay the journal from nothing into `replay`, and compare it with its seals, ends and cache."""
        return verify(self.storage, self.row, Replay() if replay is None else replay, digest)

    def status(self) -> Status:
        """Where the study stands."""
        with self.lock:
            return status_of(self.settled(), *self._reads.clock(self.row.id))

    def answer(self) -> Answer:
        """Its answer, or best guess."""
        with self.lock:
            return answer_of(self.settled())

    def proof(self) -> lifecycle.ProofKind:
        """How the answer is proven."""
        return lifecycle.proof_of(self.replay().projection)

    def settled(self) -> Replay:
        """The fold, under the lock; an answer and a trial that ran out are recorded if nobody has."""
        replay = self.replay()
        if replay.projection.end is None and not self.read_only and self.is_unsettled(replay):
            self.transact(lifecycle.settle)
            replay = self.replay()
        return replay

    def is_unsettled(self, replay: Replay) -> bool:
        """Whether an answer or an end of a trial is due that nobody has recorded."""
        if replay.policy.finished:
            return True
        if not replay.projection.open:
            return False
        now, leases = self._reads.clock(self.row.id)
        return any(leases.get(number, until) <= now for number, until in replay.projection.open.items())

    # --- how

    def transact(self, work: Callable[..., T], *given: Any) -> T:
        """Do the work in one transaction; once more if the server went away before it was recorded."""
        if self.read_only:
            self.check_writable()
        with self.lock:
            self._sent = None
            try:
                result = self._once(work, given)
            except LostConnectionError:
                result = self._again(work, given)
            replay = self._replay
            if replay is not None and len(replay.repeating) > len(self._warned):
                self._warn(replay)
            return result

    def _warn(self, replay: Replay) -> None:
        for column in replay.repeating.keys() - self._warned:
            self._warned.add(column)
            arm = replay.projection.arm_names[replay.repeating[column]]
            objective = replay.projection.spec.names[column]
            text = (
                f"arm {arm!r} gave a value of {objective!r} more than once, which Gaussian noise never does: "
                "its intervals may be wrong. Noise cannot be changed after looking: "
                'say "bernoulli", ("bounded", low, high) or "exact" in a new study'
            )
            warning = StudyWarning("repeats", self.row.name, text, arm=arm, objective=objective)
            warnings.warn(warning, stacklevel=4)

    def _again(self, work: Callable[..., T], given: tuple[Any, ...]) -> T:
        """After a lost connection. The answer to a COMMIT may have been lost alone: then the work is done."""
        sent, self._sent, self._replay = self._sent, None, None

        def unless_recorded(unit: UnitOfWork) -> T:
            """The time of an event is this process's alone, which had the lock then."""
            if sent is not None:
                there = next(self.storage.read(self.row.id, sent[0].seq, 1), None)
                if there is not None and there.as_row() == sent[0].as_row():
                    result: T = sent[1]
                    return result
            return work(unit, *given)

        try:
            return self._once(unless_recorded, ())
        except StorageError as error:
            if sent is None:
                raise
            raise StorageError(
                f"{self.storage.shown}: the connection was lost while a change of study {self.row.name!r} "
                f"was recorded, and whether it was cannot be seen ({error}): look at the study before you "
                "repeat it"
            ) from error

    def _once(self, work: Callable[..., T], given: tuple[Any, ...]) -> T:
        unit = None
        replay = self._replay or self.replay()  # most of it, before others have to wait

        def alone(transaction: Transaction) -> T:
            nonlocal replay, unit
            now, news = transaction.news(replay.projection.seq, replay.projection.at)
            if news is None:
                replay = self._replay = self._rebuild(self.storage.read(self.row.id, 1))
            elif news:
                replay.apply(news)
            unit = UnitOfWork(replay, transaction, now, self.row.nonce)
            result = work(unit, *given)
            unit.write()
            if unit.events:
                self._sent = unit.events[-1], result
            return result

        try:
            return self.storage.transact(self.row.id, alone)
        except BaseException:
            if unit is None or unit.events:
                self._replay = None  # it has folded what was not committed
            raise

    def replay(self) -> Replay:
        """The fold of all that is recorded now, read without the lock."""
        with self.lock:
            try:
                return self._read()
            except LostConnectionError:
                return self._read()

    def _read(self) -> Replay:
        replay, self._replay = self._replay, None  # until it knows all: Ctrl-C would leave it in between
        if replay is None or not self._catch_up(replay, self._reads.read(self.row.id, replay.projection.seq)):
            replay = self._loaded()
        self._replay = replay
        return replay

    def _catch_up(self, replay: Replay, news: Iterable[Event]) -> bool:
        """Fold what is new. False if the journal is not the one that was folded: a backup was restored."""
        stream = iter(news)
        last = next(stream, None)
        if last is None or (last.seq, last.at) != (replay.projection.seq, replay.projection.at):
            return False
        replay.apply(stream)
        return True

    def _rebuild(self, events: Iterable[Event]) -> Replay:
        replay = Replay()
        replay.apply(events)
        if replay.projection.seq == 0:
            raise UnknownStudyError(f"study {self.row.name!r} was deleted from {self.storage.shown}")
        return replay

    @_without_collector()
    def _loaded(self) -> Replay:
        projection = Projection.from_bytes(self._reads.cached(self.row.id))
        replay = None if projection is None else Replay(projection)
        start = 0 if projection is None else projection.seq
        if replay is None or not self._catch_up(replay, self._reads.read(self.row.id, start)):
            start, replay = 0, self._rebuild(self._reads.read(self.row.id, 1))
        if (
            replay.projection.seq - start >= max(CACHE_EVERY, replay.projection.seq / 10)
            and not self.read_only
        ):
            self.storage.put_cache(self.row.id, replay.projection.seq, replay.projection.to_bytes())
        if any(stop.is_end for stop in replay.projection.stops):
            _ = replay.policy
            for disagreement in replay.disagreements:
                text = f"{disagreement}; lexbandits {replay.projection.version} made it"
                warnings.warn(StudyWarning("disagreement", self.row.name, text), stacklevel=4)
        return replay


class FrozenJournal(Journal):
    """A study as it stood, with the fold of that time; to be read."""

    def __init__(self, storage: Storage, row: StudyRow, replay: Replay) -> None:
        super().__init__(storage, row, read_only=True)
        self._replay = self._frozen = replay

    def _read(self) -> Replay:
        return self._frozen
