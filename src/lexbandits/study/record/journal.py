"""One study's journal as a process sees it: read what is new, fold, decide, append, all under the lock."""

import gc
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from lexbandits.study.errors import StorageError, StudyWaiting, StudyWarning, UnknownStudyError
from lexbandits.study.objective import Objective
from lexbandits.study.record import asking, rules
from lexbandits.study.record.answers import Answer, Status, answer_of, status_of
from lexbandits.study.record.events import Event, without_order
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.ledger import Ledger
from lexbandits.study.record.verification import Verification, verify
from lexbandits.study.spec import Spec
from lexbandits.study.storage import forks
from lexbandits.study.storage.contract import (
    Entries,
    Lease,
    LostConnectionError,
    Request,
    Storage,
    StudyRow,
    Transaction,
)

T = TypeVar("T")
FIRST_LOOK, LONGEST_PAUSE = 0.005, 0.25  # seconds between two looks at what other processes have committed
CACHE_EVERY = 5_000  # events, and a tenth of all: read one by one, it is worth putting the ledger aside


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector of cycles would look through all that numba has, and a journal makes no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class InForce(NamedTuple):
    """The question as it stands after `seq` events: arms, withdrawn ones too; objectives by priority."""

    seq: int
    arms: Sequence[dict[str, Any]]
    objectives: Sequence[Objective]


class Turn:
    """One transaction: what it appends is folded at once, and written when the work is done."""

    def __init__(self, fold: Fold, transaction: Transaction, now: float) -> None:
        self.fold, self.ledger, self.now = fold, fold.ledger, now
        self.events: list[Event] = []
        self.leases: list[Lease] = []
        self.gone: list[int] = []
        self.new_requests: list[Request] = []
        self._transaction = transaction
        self._extended: dict[int, float] | None = None

    def append(
        self,
        kind: str,
        payload: dict[str, Any],
        trial: int | None = None,
        arm: str | None = None,
        by: str | None = None,
    ) -> None:
        """The next event."""
        event = Event(self.ledger.seq + 1, kind, trial, arm, payload, self.now, by)
        self.events.append(event)
        self.ledger.apply((event,))

    def resolve(self, kind: str, number: int, payload: dict[str, Any]) -> None:
        """An event that ends an open trial, with its lease."""
        by = self.ledger.worker_of(number) if kind != "expired" else None
        self.append(kind, payload, number, self.ledger.arm_of(number), by)
        self.gone.append(number)

    def request(self, key: str) -> Request | None:
        """What an earlier ask with this key was given."""
        mine = (request for request in self.new_requests if request.key == key)
        return next(mine, None) or self._transaction.request(key)

    def digest(self) -> str:
        """Return the digest of all events so far, those of this turn too."""
        return self._transaction.digest(self.events)

    def in_time(self, number: int) -> bool:
        """Whether an open trial may still be told: by the storage's clock, heartbeats included."""
        if self.now < self.ledger.open[number]:
            return True
        self.ledger.open[number] = until = self.until(number)
        return self.now < until

    def until(self, number: int) -> float:
        """When an open trial runs out, heartbeats included."""
        if self._extended is None:
            self._extended = self._transaction.leases()
        return self._extended.get(number, self.ledger.open[number])

    def write(self) -> None:
        """Hand everything to the storage."""
        if self.events or self.new_requests:
            self._transaction.write(Entries(self.events, self.leases, self.gone, self.new_requests))


class Journal:
    """The fold of one study, kept between calls and advanced by what is new."""

    def __init__(self, storage: Storage, row: StudyRow, read_only: bool = False) -> None:
        self.storage, self.row, self.read_only = storage, row, read_only
        self.lock = threading.RLock()  # of the threads that share this fold
        self._fold: Fold | None = None
        self._warned: set[int] = set()  # objectives whose values look as if their noise were another
        self._sent: tuple[Event, Any] | None = None  # the last event and the result of a commit that was sent
        forks.know_journal(self)

    @property
    def last(self) -> Fold | None:
        """The fold as it was left, for who only counts."""
        return self._fold

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
        results: Sequence[asking.Told],
        n: int,
        lease: float | None,
        worker: str | None,
        request: str | None,
        wait: float,
    ) -> asking.Exchanged:
        """Take results and hand out up to n trials; for at most `wait` seconds until there is one.

        Nothing is locked meanwhile: the thread that tells what is awaited may use the same journal.
        """
        commits, until, pause = self.storage.commits, time.monotonic() + wait, FIRST_LOOK
        known, how = commits.count, (n, lease, worker, request)
        outcomes, trials, reason = self.transact(asking.exchange, results, *how)
        while isinstance(reason, StudyWaiting) and (left := until - time.monotonic()) > 0:
            commits.wait(known, min(pause, left))
            known, pause = commits.count, min(1.5 * pause, LONGEST_PAUSE)
            if self.has_work():
                _, trials, reason = self.transact(asking.exchange, (), *how)
        return outcomes, trials, reason

    def has_work(self) -> bool:
        """Whether somebody who waits should ask again. Looks without the lock of the storage."""
        with self.lock:
            fold = self.fold()
            now, leases = self.storage.clock(self.row.id)
            return (
                fold.state != "measuring"
                or any(leases.get(number, until) <= now for number, until in fold.ledger.open.items())
                or bool(fold.next_places(1, now))
            )

    def extend(self, worker: str) -> None:
        """A worker is alive."""
        self.check_writable()
        self.storage.extend(self.row.id, worker)

    def events(self, since: int = 0) -> Iterator[Event]:
        """What was recorded after event `since`."""
        return self.storage.read(self.row.id, since + 1)

    def in_force(self) -> InForce:
        """The question as it stands."""
        ledger = self.fold().ledger
        return InForce(ledger.seq, ledger.arms, [ledger.spec.objectives[column] for column in ledger.order])

    def asked(self) -> Spec:
        """The question as it was asked."""
        return self.fold().ledger.asked_spec

    def shown(self) -> Spec:
        """The same as it may be shown: nobody reads the coming items of a list before its end."""
        ledger = self.fold().ledger
        return ledger.asked_spec if ledger.shows_order else ledger.asked_spec.without_order()

    def events_shown(self, since: int = 0) -> Iterator[Event]:
        """The journal after event `since`, as it may be shown."""
        events = self.events(since)
        return events if self.fold().ledger.shows_order else map(without_order, events)

    def verify(self, record: str | None = None, fold: Fold | None = None) -> Verification:
        """Replay the journal from nothing into `fold`, and compare it with its seals, ends and cache."""
        return verify(self.storage, self.row, Fold() if fold is None else fold, record)

    def status(self) -> Status:
        """Where the study stands."""
        with self.lock:
            return status_of(self.settled(), *self.storage.clock(self.row.id))

    def answer(self) -> Answer:
        """Its answer, or best guess."""
        with self.lock:
            return answer_of(self.settled())

    def proof(self) -> str:
        """How the answer is proven."""
        return rules.proof_of(self.fold().ledger)

    def settled(self) -> Fold:
        """The fold, for who holds the lock; an answer and a trial that ran out are recorded if nobody has."""
        fold = self.fold()
        if fold.ledger.end is None and not self.read_only and self.is_unsettled(fold):
            self.transact(rules.settle)
            fold = self.fold()
        return fold

    def is_unsettled(self, fold: Fold) -> bool:
        """Whether an answer or an end of a trial is due that nobody has recorded."""
        if fold.policy.finished:
            return True
        if not fold.ledger.open:
            return False
        now, leases = self.storage.clock(self.row.id)
        return any(leases.get(number, until) <= now for number, until in fold.ledger.open.items())

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
            fold = self._fold
            if fold is not None and len(fold.repeating) > len(self._warned):
                self._warn(fold)
            return result

    def _warn(self, fold: Fold) -> None:
        for column in fold.repeating.keys() - self._warned:
            self._warned.add(column)
            arm = fold.ledger.arm_names[fold.repeating[column]]
            objective = fold.ledger.spec.names[column]
            words = (
                f"arm {arm!r} gave a value of {objective!r} more than once, which Gaussian noise never does: "
                "its intervals may be wrong, and noise cannot be changed after looking; "
                'say "bernoulli", ("bounded", low, high) or "exact" in a new study'
            )
            warning = StudyWarning("repeats", self.row.name, words, arm=arm, objective=objective)
            warnings.warn(warning, stacklevel=4)

    def _again(self, work: Callable[..., T], given: tuple[Any, ...]) -> T:
        """After a lost connection. The answer to a COMMIT may have been lost alone: then the work is done."""
        sent, self._sent, self._fold = self._sent, None, None

        def unless_recorded(turn: Turn) -> T:
            """The time of an event is one of ours alone, as we had the lock then."""
            if sent is not None:
                there = next(self.storage.read(self.row.id, sent[0].seq, 1), None)
                if there is not None and there.as_row() == sent[0].as_row():
                    result: T = sent[1]
                    return result
            return work(turn, *given)

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
        turn = None
        fold = self._fold = self._fold or self._loaded()  # most of it, before others have to wait

        def alone(transaction: Transaction) -> T:
            nonlocal fold, turn
            now, news = transaction.news(fold.ledger.seq, fold.ledger.at)
            if news is None:
                fold = self._fold = self._replay(self.storage.read(self.row.id, 1))
            elif news:
                fold.apply(news)
            turn = Turn(fold, transaction, now)
            result = work(turn, *given)
            turn.write()
            if turn.events:
                self._sent = turn.events[-1], result
            return result

        try:
            return self.storage.transact(self.row.id, alone)
        except BaseException:
            if turn is None or turn.events:
                self._fold = None  # it has folded what was not committed
            raise

    def fold(self) -> Fold:
        """The fold of all that is recorded now, read without the lock."""
        with self.lock:
            try:
                return self._read()
            except LostConnectionError:
                return self._read()

    def _read(self) -> Fold:
        fold, self._fold = self._fold, None  # until it knows all: Ctrl-C would leave it in between
        if fold is None or not self._catch_up(fold, self.storage.read(self.row.id, fold.ledger.seq)):
            fold = self._loaded()
        self._fold = fold
        return fold

    def _catch_up(self, fold: Fold, news: Iterable[Event]) -> bool:
        """Fold what is new. False if the journal is not the one that was folded: a backup was restored."""
        stream = iter(news)
        last = next(stream, None)
        if last is None or (last.seq, last.at) != (fold.ledger.seq, fold.ledger.at):
            return False
        fold.apply(stream)
        return True

    def _replay(self, events: Iterable[Event]) -> Fold:
        fold = Fold()
        fold.apply(events)
        if fold.ledger.seq == 0:
            raise UnknownStudyError(f"study {self.row.name!r} was deleted from {self.storage.shown}")
        return fold

    @_without_collector()
    def _loaded(self) -> Fold:
        cached = self.storage.cached(self.row.id)
        ledger = None if cached is None else Ledger.from_bytes(cached)
        fold = None if ledger is None else Fold(ledger)
        start = 0 if ledger is None else ledger.seq
        if fold is None or not self._catch_up(fold, self.storage.read(self.row.id, start)):
            start, fold = 0, self._replay(self.storage.read(self.row.id, 1))
        if fold.ledger.seq - start >= max(CACHE_EVERY, fold.ledger.seq / 10) and not self.read_only:
            self.storage.put_cache(self.row.id, fold.ledger.seq, fold.ledger.to_bytes())
        if any(stop.kind == "finished" for stop in fold.ledger.stops):
            _ = fold.policy
            for disagreement in fold.disagreements:
                words = f"{disagreement}; lexbandits {fold.ledger.version} made it"
                warnings.warn(StudyWarning("disagreement", self.row.name, words), stacklevel=4)
        return fold
