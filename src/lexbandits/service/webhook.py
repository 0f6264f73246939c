"""The webhook tells one receiver, signed and at least once, what finishes or pauses and what warns.

What is to be told follows from the journal, and what was told is noted beside it: whoever starts after a
service was killed finds what that one owed. Asks and results never wait for it.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import random
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import anyio.to_thread
import httpx2

from lexbandits._printable import plain, printable
from lexbandits.outcomes import ClaimVerdict, Flag
from lexbandits.service.logs import say
from lexbandits.service.registry import StudyRegistry
from lexbandits.study.core.diagnostics import diagnostics_of
from lexbandits.study.core.events import Event, EventKind
from lexbandits.study.core.replay import Replay
from lexbandits.study.errors import StudyError, UnknownStudyError
from lexbandits.study.states import Severity, StudyState
from lexbandits.study.storage.contract import StudyRow
from lexbandits.study.trial import moment
from lexbandits.views.activity import message_of
from lexbandits.views.diagnostic_text import in_words
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import join

TOLD: dict[str, str] = {  # kind of event -> of notice
    EventKind.FINISHED: "finished",
    EventKind.ENDED: "finished",
    EventKind.PAUSED: "paused",
}
NOT_TOLD = [kind for kind in EventKind if kind not in TOLD]
OF_AN_ANSWER = ("arm", "certified", "decision", "candidates", "flags", "results")
GUARDRAIL = "guardrail"  # the kind of a notice about an arm and a limit
SHORTEST_SECRET = 16  # bytes
SECONDS_TO_ANSWER = 10.0  # for the receiver, in all
PAUSE, LONGEST_PAUSE = 1.0, 600.0  # seconds between two tries, doubled each time
SECONDS_OF_TRIES = 24 * 3600.0  # then a notice is given up
LOOK_EVERY = 5.0  # seconds between two looks at what has gone on in the storage
SHARE_OF_LOOKS = 50  # a look that took a second comes again after so many
GROWN = 1.1  # a journal that is so much longer is looked at for diagnostics though it goes on
MOST_EVENTS = 1000  # of a study that are dealt with at once


class Receiver:
    """Where notices go, and the secret that signs them, which nothing shows."""

    def __init__(self, url: str, secret: str) -> None:
        parts = urlsplit(url)
        try:
            fits = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
            fits = fits and parts.port != 0 and bool(httpx2.URL(url))
        except (ValueError, httpx2.InvalidURL):  # a port beyond all ports
            fits = False
        if not fits:
            raise StudyError("a webhook is an address such as https://example.org/hook, without a password")
        self.url, self.shown = url, parts.hostname
        self._key = secret.encode()
        if secret.startswith("whsec_"):
            try:
                self._key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
            except binascii.Error:
                raise StudyError("after whsec_ the secret of the webhook is in base64") from None
        if len(self._key) < SHORTEST_SECRET:
            raise StudyError(f"the secret of the webhook has at least {SHORTEST_SECRET} bytes")

    def headers(self, identity: str, body: bytes) -> dict[str, str]:
        """Those of Standard Webhooks: the signature is of id, time and body."""
        at = str(int(time.time()))
        digest = hmac.digest(self._key, f"{identity}.{at}.".encode() + body, hashlib.sha256)
        return {
            "webhook-id": identity,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
            "content-type": "application/json",
            "user-agent": "lexbandits",
        }


class Notice(NamedTuple):
    """One thing to tell; `what` it is noted by when that is done, "" for an event."""

    what: str
    seq: int
    body: dict[str, Any]


@dataclass
class PendingNotices:
    """A study of which something may have to be told, not before `at`."""

    row: StudyRow
    at: float = 0.0
    tries: int = 0
    since: float = 0.0  # the first try that failed


class Webhook:
    """Tells the receiver, beside everything else; of a study one thing after another."""

    def __init__(self, registry: StudyRegistry, receiver: Receiver, page: str) -> None:
        """`page` is the address of the page, for links."""
        self._registry, self._receiver, self._page = registry, receiver, page
        self._owed: dict[int, PendingNotices] = {}
        self._last: dict[int, int] | None = None  # event of each study that has gone on, at the last look
        self._look_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        registry.notes.start_delivering()

    def committed(self, row: StudyRow, kinds: Iterable[str]) -> None:
        """Events of these kinds are safe now; from any thread."""
        if self._loop is not None and not TOLD.keys().isdisjoint(kinds):
            with suppress(RuntimeError):  # the service has ended
                self._loop.call_soon_threadsafe(self._owe, row)

    def _owe(self, row: StudyRow) -> None:
        self._owed.setdefault(row.id, PendingNotices(row))
        self._bell.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        self._loop = asyncio.get_running_loop()
        async with httpx2.AsyncClient(timeout=None) as client:
            while True:
                if time.monotonic() >= self._look_at:
                    await self._look()
                for owed in [each for each in self._owed.values() if each.at <= time.monotonic()]:
                    await self._tell_all(client, owed)
                self._bell.clear()
                due = min([self._look_at, *(owed.at for owed in self._owed.values())])
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._bell.wait(), max(0.0, due - time.monotonic()))

    async def _look(self) -> None:
        """Which studies have gone on: by other processes too, or before this one was started."""
        begin, first = time.monotonic(), self._last is None
        try:
            found = await anyio.to_thread.run_sync(self._registry.notes.undelivered)
            for row, last, done in found:
                if self._last is None or last >= GROWN * done or last == self._last.get(row.id):
                    self._owe(row)
            self._last = {row.id: last for row, last, _ in found}
        except Exception as error:
            _say_unread(error)
        now = time.monotonic()
        taken = 0.0 if first else now - begin  # the first one connects, and takes longer than any other
        self._look_at = now + max(LOOK_EVERY, SHARE_OF_LOOKS * taken)

    async def _tell_all(self, client: httpx2.AsyncClient, owed: PendingNotices) -> None:
        row, notes = owed.row, self._registry.notes
        del self._owed[row.id]  # what is committed from now on is owed anew
        try:
            notices, seq = await anyio.to_thread.run_sync(self._notices, row)
            for notice in notices:
                if not await self._tell(client, owed, notice):
                    self._put_off(owed)
                    return
                await anyio.to_thread.run_sync(notes.note_delivered, row.id, notice.what, notice.seq)
                owed.tries = 0
            await anyio.to_thread.run_sync(notes.note_delivered, row.id, "", seq)
        except UnknownStudyError:
            pass  # it was deleted
        except Exception as error:
            _say_unread(error, row.name)
            self._put_off(owed)

    def _put_off(self, owed: PendingNotices) -> None:
        """Try again later, each time twice as late; not all at the same time."""
        now = time.monotonic()
        owed.since = owed.since if owed.tries else now
        owed.at = now + min(PAUSE * 2**owed.tries, LONGEST_PAUSE) * random.uniform(0.8, 1.0)
        owed.tries += 1
        self._owed[owed.row.id] = owed

    async def _tell(self, client: httpx2.AsyncClient, owed: PendingNotices, notice: Notice) -> bool:
        """Whether it is dealt with: taken, or given up."""
        why, study = await self._post(client, notice), owed.row.name
        told = {"kind": notice.body["kind"], "id": notice.body["id"], "receiver": self._receiver.shown}
        if why is None:
            if owed.tries:
                say(logging.INFO, "webhook_works", "the webhook works again", study, None, **told)
            return True
        told["why"] = why
        if owed.tries and time.monotonic() - owed.since > SECONDS_OF_TRIES:
            say(logging.ERROR, "webhook_given_up", f"the webhook is given up: {why}", study, None, **told)
            return True
        say(logging.WARNING, "webhook_fails", f"the webhook is tried again: {why}", study, None, **told)
        return False

    async def _post(self, client: httpx2.AsyncClient, notice: Notice) -> str | None:
        """Why the receiver did not take it; its time is limited as a whole, and what it says is not read."""
        body = json.dumps(plain(notice.body), allow_nan=False).encode()
        headers = self._receiver.headers(notice.body["id"], body)
        try:
            async with (
                asyncio.timeout(SECONDS_TO_ANSWER),
                client.stream("POST", self._receiver.url, content=body, headers=headers) as answer,
            ):
                return None if answer.is_success else f"the receiver answers {answer.status_code}"
        except TimeoutError:
            return f"the receiver does not answer within {SECONDS_TO_ANSWER:g} s"
        except (httpx2.HTTPError, OSError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                return "the receiver's certificate is not trusted"
            return f"the receiver cannot be reached: {type(error).__name__}"

    # --- what is to be told

    def _notices(self, row: StudyRow) -> tuple[list[Notice], int]:
        """What a study's journal says that was not told yet, in its order, and up to which event."""
        opened, done = self._registry.open(row), self._registry.notes.delivered(row.id)
        with opened.reading() as study:
            view = StudyView.of(study)
            replay = view.estimates.replay
            seq = replay.projection.seq
            new = opened.reads.latest(row.id, done.get("", 0) + 1, MOST_EVENTS, NOT_TOLD)
            notices = [self._of_event(row, view, event) for event in reversed(new) if event.seq <= seq]
            notices += [notice for notice in self._of_state(row, view, replay) if notice.what not in done]
        return notices, seq

    def _of_event(self, row: StudyRow, view: StudyView, event: Event) -> Notice:
        payload = event.payload
        fields = {key: payload[key] for key in OF_AN_ANSWER if key in payload}
        fields = {"code": event.kind, **fields, "why": payload["reason"]}
        sentence = join(message_of(view, event)).striptags()
        return self._notice(row, "", TOLD[event.kind], event.seq, event.at, fields, sentence)

    def _of_state(self, row: StudyRow, view: StudyView, replay: Replay) -> Iterator[Notice]:
        """What no event says: diagnostics that warn, arms beyond a limit, a budget or list that is spent."""
        projection = replay.projection
        for diagnostic in diagnostics_of(replay):
            if diagnostic.severity == Severity.WARNING:
                what = f"{Flag.ASSUMPTION_WARNING} {diagnostic.code} {diagnostic.objective or ''}".rstrip()
                sentence = in_words(view.estimates, diagnostic).sentence
                yield self._notice(
                    row,
                    what,
                    Flag.ASSUMPTION_WARNING,
                    projection.seq,
                    projection.at,
                    diagnostic.as_json(),
                    sentence,
                )
        yield from self._of_limits(row, view)
        if view.state in (StudyState.BUDGET_SPENT, StudyState.ITEMS_SPENT):
            most = projection.budget if view.state == StudyState.BUDGET_SPENT else projection.n_items
            fields = {"code": view.state, "arm": view.answer.arm, "certified": False, "most": most}
            what = f"{view.state} {most}"
            yield self._notice(row, what, "paused", projection.seq, projection.at, fields, view.headline)

    def _of_limits(self, row: StudyRow, view: StudyView) -> Iterator[Notice]:
        """Arms that are shown to break a limit, or are out as another is better on it: given to nobody."""
        estimates, projection = view.estimates, view.estimates.replay.projection
        stopped = estimates.policy.stopped
        limits = [(i, each.name) for i, each in enumerate(estimates.objectives) if each.limit is not None]
        for arm, (column, objective) in product(projection.offered, limits):
            left, name = estimates.eliminations.get(arm), estimates.arms[arm]
            is_broken, is_out = estimates.violates(arm, column), left is not None or arm in stopped
            if not is_broken and not (left is not None and left.objective == column):
                continue
            code = ClaimVerdict.VIOLATES_LIMIT if is_broken else ClaimVerdict.NOT_CLEARLY_WITHIN
            fields = {"code": code, "arm": name, "objective": objective, "assigned": not is_out}
            how = "to break" if is_broken else "not to be clearly within"
            sentence = f"{name} is shown {how} the limit on {objective}"
            sentence += ", and is given to nobody any more" if is_out else ""
            what = f"{GUARDRAIL} {is_out} {json.dumps([objective, name])}"
            yield self._notice(row, what, GUARDRAIL, projection.seq, projection.at, fields, sentence)

    def _notice(
        self, row: StudyRow, what: str, kind: str, seq: int, at: float, fields: dict[str, Any], sentence: str
    ) -> Notice:
        """Its id is the same however often it is told, and by whom."""
        whole = f"{row.nonce} {row.created!r} {what or seq}"
        body = {
            "id": f"msg_{hashlib.sha256(whole.encode()).hexdigest()[:32]}",
            "kind": kind,
            "study": row.name,
            "seq": seq,
            "time": moment(at).isoformat(timespec="milliseconds"),
            "page": f"{self._page}#/study/{quote(row.name, safe='')}",
            "fields": fields,
            "sentence": harmless(f"{row.name}: {sentence}"),
        }
        return Notice(what, seq, body)


def harmless(sentence: str) -> str:
    """A sentence in which a chat finds no command, link or mention, whatever people have named things."""
    plain_text = " ".join(printable(sentence).split())
    unlinked = plain_text.translate({ord("<"): "‹", ord(">"): "›"})
    unmentioned = re.sub(r"@(?=\w)", "@\u2060", unlinked)
    return f"\u2060{unmentioned}" if unmentioned[:1] in ("/", "!") else unmentioned


def _say_unread(error: Exception, study: str | None = None) -> None:
    defect = None if isinstance(error, StudyError) else error
    text = f"the webhook cannot see or note what is new: {error}"
    say(logging.WARNING, "webhook_unread", text, study, defect)
