"""Studies behind the service: `storage="http://host"`, with the token in LEXBANDITS_TOKEN."""

import hashlib
import json
import os
import re
import secrets
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urldefrag, urlencode, urlsplit

from lexbandits._cached import cached_property
from lexbandits.study import errors
from lexbandits.study.core import ask_tell, assignment, changes, imports
from lexbandits.study.core.events import Event
from lexbandits.study.core.journal import CurrentQuestion, Journal
from lexbandits.study.core.queries import Answer, Status
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.verification import Verification
from lexbandits.study.errors import StorageError, StudyError, StudyWaiting
from lexbandits.study.objective import Objective
from lexbandits.study.spec import WAIT, Spec
from lexbandits.study.states import StateChange, StudyState
from lexbandits.study.storage import forks
from lexbandits.study.storage.contract import Storage, StudyRow
from lexbandits.study.trial import AssignReason, Trial

if TYPE_CHECKING:
    import ssl

PATIENCE = 60.0  # seconds to try again while the service is away or its storage is busy
SILENCE = 20.0  # seconds without an answer, after which it is asked again: the answer may have been lost
HELD = 10.0  # seconds that a request waits for results of others; it is asked again after that
VISITOR_WAITS = 2.0  # seconds until a visitor is shown an arm without the service
MOST_AT_ONCE = 1000  # results, trials or events of one request
TRY_AGAIN = (502, 503, 504)
Sent = tuple[str, str, Any]  # method, path, body
PLAIN = re.compile(r"[\x21-\x7e]*")


@cache
def _trusted(file: str | None, folder: str | None) -> "ssl.SSLContext":
    """Whom we trust, by SSL_CERT_FILE and SSL_CERT_DIR: read once, as it takes longer than a dozen calls."""
    import httpx2

    return httpx2.create_ssl_context()


class HttpStorage(Storage):
    """The API of a service: problems become the errors they were, what is safe to repeat is repeated."""

    is_remote = True

    def __init__(self, address: str) -> None:
        self.address = address
        plain, fragment = urldefrag(address)
        parts = urlsplit(plain)
        if "@" in parts.netloc or parts.query:
            raise StorageError(
                "the address of a service is http://host:port, without a name, a password or a query: "
                "the token comes from LEXBANDITS_TOKEN"
            )
        self.shown = plain.rstrip("/")
        given = fragment.removeprefix("token=") if fragment.startswith("token=") else ""
        self._token = (given or os.environ.get("LEXBANDITS_TOKEN", "")).strip()
        if not PLAIN.fullmatch(self._token):
            raise errors.AuthError("the token in LEXBANDITS_TOKEN has characters that no token has")
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token:
            self._headers["Authorization"] = f"Bearer {self._token}"
        self._client: Any = None
        self._pid = 0
        self._names: list[str] = []  # by the numbers that are their ids here
        self._numbers: dict[str, int] = {}
        self._specs: dict[int, Any] = {}  # found, and not taken yet

    def __reduce__(self) -> tuple[Any, ...]:
        return HttpStorage, (self.address,)

    def _http(self) -> Any:
        if self._pid != os.getpid():  # connections are not shared with a parent
            import httpx2

            self._client = httpx2.Client(
                verify=_trusted(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
            )
            self._timeouts = {
                again: {"timeout": httpx2.Timeout(silence, connect=10.0).as_dict()}
                for again, silence in ((True, SILENCE), (False, PATIENCE))
            }
            self._pid = os.getpid()
            weakref.finalize(self, forks.close_here, self._client, self._pid)
        return self._client

    def close(self) -> None:
        """Give back the connections."""
        if self._pid == os.getpid():
            self._client.close()
            self._pid = 0

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        again: bool = True,
        patience: float | None = None,
        as_text: bool = False,
        **query: Any,
    ) -> Any:
        """One call; None where there is no content. `again`: with its key, it may be repeated."""
        client = self._http()
        import httpx2

        headers = self._headers if key is None else {**self._headers, "Idempotency-Key": key}
        content = None if body is None else json.dumps(body, allow_nan=False)
        url = f"{self.shown}/api/studies{path}{f'?{urlencode(query)}' if query else ''}"
        patience, pause, timeouts = PATIENCE if patience is None else patience, 0.05, self._timeouts[again]
        until = time.monotonic() + patience
        if patience < SILENCE:
            timeouts = {"timeout": httpx2.Timeout(patience).as_dict()}
        while True:
            try:
                # made here: what a client would put together anew for each costs as much as sending it
                request = httpx2.Request(method, url, headers=headers, content=content, extensions=timeouts)
                answer = client.send(request)
            except (httpx2.TransportError, httpx2.InvalidURL) as error:
                problem: StudyError = StorageError(
                    f"{self.shown} does not answer: {type(error).__name__} {error}"
                )
                final = isinstance(error, (httpx2.UnsupportedProtocol, httpx2.InvalidURL))
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    trust = "SSL_CERT_FILE may name a file of authorities that are"
                    problem = StorageError(f"the certificate of {self.shown} is not trusted: {trust}")
                    final = True
            else:
                if answer.is_success:
                    return answer.text if as_text else self._content(answer)
                problem, final = self._problem(answer), answer.status_code not in TRY_AGAIN
            if final or not again or time.monotonic() + pause > until:
                raise problem
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _content(self, answer: Any) -> Any:
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise self._stranger(answer) from None

    def _stranger(self, answer: Any) -> StorageError:
        return StorageError(f"{self.shown} is no lexbandits service: it answers {answer.status_code}")

    def _problem(self, answer: Any) -> StudyError:
        try:
            payload = answer.json()
            detail, kind = str(payload["detail"]), str(payload.get("kind", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            return self._stranger(answer)
        found = getattr(errors, kind, None)
        if isinstance(found, type) and issubclass(found, StudyError):
            if found is errors.AuthError:
                detail += f" ({self.shown}; the token comes from LEXBANDITS_TOKEN)"
            return _with_until(found(detail), payload)
        return StorageError(detail) if answer.status_code >= 500 else StudyError(detail)

    # --- studies by name

    def create(self, name: str, nonce: str, payload: dict[str, Any]) -> tuple[StudyRow, bool]:
        try:
            self.call("POST", "", payload["spec"], key=_new_key())
        except errors.StudyExistsError:
            return self._row(name), False
        return self._row(name), True

    def find(self, name: str) -> StudyRow | None:
        row = self._row(name)
        try:
            self._specs[row.id] = self.spec(row.id)
        except errors.UnknownStudyError:
            return None
        return row

    def spec(self, study: int) -> Any:
        """The question as it was asked; whoever found the study has it already."""
        return self._specs.pop(study, None) or self.call("GET", f"{self.path(study)}/spec")

    def studies(self) -> list[StudyRow]:
        found: list[StudyRow] = []
        after: str | None = ""
        while after is not None:
            page = self.call("GET", "", after=after)
            found += [self._row(study["name"]) for study in page["studies"]]
            after = page["next"]
        return found

    def delete(self, study: int) -> None:
        self.call("DELETE", self.path(study), again=False)

    def _row(self, name: str) -> StudyRow:
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == len(self._names):
            self._names.append(name)
        return StudyRow(number, name, 0.0, "?")

    def path(self, study: int) -> str:
        """Where the API has a study."""
        return f"/{quote(self._names[study], safe='')}"

    # --- a journal to read; the service alone writes it

    def read(self, study: int, since: int, most: int | None = None) -> Iterator[Event]:
        following, left = max(since - 1, 0), most
        while following is not None and left != 0:
            size = MOST_AT_ONCE if left is None else min(left, MOST_AT_ONCE)
            page = self.call("GET", f"{self.path(study)}/events", since=following, limit=size)
            for row in page["events"]:
                yield Event(**{key: row["seconds" if key == "at" else key] for key in Event._fields})
            following, left = page["next"], None if left is None else left - len(page["events"])

    def extend(self, study: int, *workers: str) -> int:
        for worker in workers:
            self.call("POST", f"{self.path(study)}/workers/{quote(worker, safe='')}/heartbeat")
        return len(workers)

    def transact(self, study: int, work: Callable[[Any], Any]) -> NoReturn:
        raise NOT_HERE

    def seals(self, study: int) -> NoReturn:
        raise NOT_HERE

    def last_seal(self, study: int) -> NoReturn:
        raise NOT_HERE

    def clock(self, study: int) -> NoReturn:
        raise NOT_HERE


NOT_HERE = StudyError("this is not possible over http: open the study in the storage of the service")


class RemoteJournal(Journal):
    """A journal that a service keeps: it does the calls; what it has recorded is folded here on demand."""

    storage: HttpStorage

    def _summary(self) -> Any:
        return self.storage.call("GET", self.storage.path(self.row.id))

    def _send(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        self.check_writable()
        return self.storage.call(method, self.storage.path(self.row.id) + path, body, key=key or _new_key())

    @cached_property
    def _spec(self) -> Spec:
        return Spec.from_json(self.storage.spec(self.row.id))

    def asked(self) -> Spec:
        return self._spec

    def shown(self) -> Spec:
        return self._spec

    def events_shown(self, since: int = 0) -> Iterator[Event]:
        return self.events(since)

    def exported(self) -> Iterator[str]:
        yield self.storage.call(
            "GET", f"{self.storage.path(self.row.id)}/export", as_text=True, format="jsonl"
        )

    def verify(self, digest: str | None = None, replay: Replay | None = None) -> Verification:
        query = "" if digest is None else f"?{urlencode({'digest': digest})}"
        found = self.storage.call("GET", f"{self.storage.path(self.row.id)}/verification{query}")
        if replay is not None:
            replay.apply(self.events())
        return Verification(found["events"], found["trials"], tuple(found["problems"]), found["sha256"])

    def in_force(self) -> CurrentQuestion:
        payload, asked = self._summary(), {objective.name: objective for objective in self._spec.objectives}
        arms = [{"name": arm["name"], **arm["fields"]} for arm in payload["arms"]]
        return CurrentQuestion(
            int(payload["seq"]), arms, [_amended(asked[row["name"]], row) for row in payload["objectives"]]
        )

    def status(self) -> Status:
        payload = self._summary()
        payload |= {"objective": payload["settling"], "candidates": tuple(payload["answer"]["candidates"])}
        payload["waiting_for"] = tuple(payload["waiting_for"])
        known = {field.name: payload[field.name] for field in fields(Status)}
        return Status(**{**known, "state": StudyState(known["state"])})

    def answer(self) -> Answer:
        return Answer.from_json(self._summary()["answer"])

    def settled(self) -> Replay:
        return self.replay()

    # --- calls

    def do(self, change: Callable[..., Any], *given: Any) -> Any:
        """Send a call to the service, which does it in a transaction of its own."""
        if change is imports.take:
            return self._import(*given)
        if change not in REQUESTS:
            raise NOT_HERE
        method, path, body = REQUESTS[change](self._spec, *given)
        answer = self._send(method, path, body) or {}
        return next((answer[key] for key in ("outcome", "places", "visitors") if key in answer), None)

    def _import(self, frame: Any, arm: str, fair: bool | None, again: bool, ignore: Any) -> int:
        fair = True if fair is None and self._spec.is_list else fair
        if not isinstance(fair, bool):
            raise TypeError(f"fair must be True or False, got {fair!r}")
        columns, count = imports.columns_of(frame, arm, self._spec, ignore)
        self._send("POST", "/imports", {"columns": columns, "arm": arm, "fair": fair, "again": bool(again)})
        return count

    def exchange(
        self,
        results: Sequence[ask_tell.Told],
        n: int,
        lease: float | None,
        worker: str | None,
        request: str | None,
        wait: float,
    ) -> ask_tell.Exchanged:
        """Take results and hand out trials; the service waits, for a while with every request."""
        if max(len(results), n) > MOST_AT_ONCE:
            return self._in_portions(results, n, lease, worker, request, wait)
        key = _new_key() if request is None else _key(request)  # a repeat gets the same trials
        until, pause = time.monotonic() + wait, 0.05
        outcomes, trials, reason = self._exchange(results, n, lease, worker, key, wait)
        while isinstance(reason, StudyWaiting) and (left := until - time.monotonic()) > 0:
            time.sleep(min(pause, left))  # it may have been stopped, or have too many who wait
            pause, left = min(2 * pause, 1.0), max(until - time.monotonic(), 0.0)
            _, trials, reason = self._exchange([], n, lease, worker, key, left)
        return outcomes, trials, reason

    def _exchange(
        self,
        results: Sequence[ask_tell.Told],
        n: int,
        lease: float | None,
        worker: str | None,
        key: str,
        wait: float,
    ) -> ask_tell.Exchanged:
        payload: dict[str, Any] = {"worker": worker, "lease": lease}
        if n and wait != WAIT:  # which is what the service waits by itself
            payload["wait"] = min(wait, HELD)
        try:
            if results:
                told = [{"trial": _id(t), "values": self._spec.checked(values)} for t, values in results]
                answer = self._send("POST", "/results", {"results": told, "ask": n, **payload}, key)
            else:
                answer = self._send("POST", "/trials", {"n": n, **payload}, key) if n else {"trials": []}
        except (errors.StudyPaused, StudyWaiting) as nothing:
            return [], [], nothing
        trials = [_trial(each) for each in answer["trials"]]
        kind = {StudyState.PAUSED: errors.StudyPaused, StudyState.MEASURING: StudyWaiting}.get(
            answer.get("state"), errors.StudyFinished
        )
        reason = None if trials else _with_until(kind(answer.get("reason") or "nothing to measure"), answer)
        return answer.get("outcomes", []), trials, reason

    def assign(self, key: str, lease: float | None, worker: str | None) -> Trial:
        """Give a visitor an arm. However often it is sent, the key gets one trial."""
        self.check_writable()
        where, body = (
            f"{self.storage.path(self.row.id)}/assign",
            {"key": key, "lease": lease, "worker": worker},
        )
        payload = self.storage.call("POST", where, body, patience=VISITOR_WAITS)
        self.best = payload.pop("best")
        return _trial(payload)

    def _in_portions(
        self,
        results: Sequence[ask_tell.Told],
        n: int,
        lease: float | None,
        worker: str | None,
        request: str | None,
        wait: float,
    ) -> ask_tell.Exchanged:
        """As many at once as the service takes: all or none of each portion."""
        outcomes: list[str] = []
        for start in range(0, len(results), MOST_AT_ONCE):
            outcomes += self.exchange(results[start : start + MOST_AT_ONCE], 0, lease, worker, None, 0)[0]
        trials: list[Trial] = []
        reason: StudyError | None = None
        while len(trials) < n and reason is None:
            key = None if request is None else f"{request}/{len(trials)}"
            size = min(MOST_AT_ONCE, n - len(trials))
            _, new, reason = self.exchange([], size, lease, worker, key, 0 if trials else wait)
            trials += new
            if len(new) < size:
                break
        return outcomes, trials, None if trials else reason


def _amended(objective: Objective, row: Mapping[str, Any]) -> Objective:
    """With what is in force, where that is not as asked; percentages of a mean stay."""
    if objective.is_relative:
        return objective
    asked = {"margin": objective.margin_in_unit, "tie": objective.tie_in_unit}
    return replace(objective, **{key: row[key] for key in asked if row[key] != asked[key]})


# --- how each call is sent: method, path, body


def _tell(spec: Spec, trial: Trial | str, values: Any, partial: bool) -> Sent:
    told = {"values": spec.checked(values), **({"partial": True} if partial else {})}
    return "PUT", f"/trials/{_id(trial)}/result", told


def _fail(spec: Spec, trial: Trial | str, reason: str, interrupted: bool) -> Sent:
    words = reason.encode("utf-8", "backslashreplace").decode()[:2000]  # it may name such a file
    return "PUT", f"/trials/{_id(trial)}/result", {"failed": words, "interrupted": interrupted}


def _correct(spec: Spec, trial: Trial | str, values: Any, reason: str) -> Sent:
    return "PUT", f"/trials/{_id(trial)}/correction", {"values": spec.checked(values), "reason": reason}


def _add_arm(spec: Spec, arm: Any, blind: bool) -> Sent:
    return "POST", "/blind-arms" if blind else "/arms", {"name": arm} if isinstance(arm, str) else dict(arm)


def _sent(method: str, path: str, *names: str, **said: Any) -> Callable[..., Sent]:
    """A call whose first words are part of the path; the others have these names in the body."""
    size = path.count("{}")

    def send(spec: Spec, *given: Any) -> Sent:
        where = path.format(*(quote(word, safe="") for word in given[:size]))
        body = {**said, **dict(zip(names, given[size:], strict=True))}
        return method, where, body or None

    return send


REQUESTS: dict[Callable[..., Any], Callable[..., Sent]] = {
    ask_tell.take: _tell,
    ask_tell.record: _tell,
    ask_tell.fail: _fail,
    ask_tell.release: lambda spec, trial: ("DELETE", f"/trials/{_id(trial)}/lease", None),
    ask_tell.expire: lambda spec, trial: ("POST", f"/trials/{_id(trial)}/expiry", None),
    ask_tell.correct: _correct,
    assignment.forget: _sent("POST", "/forget", "key"),
    ask_tell.end: _sent("POST", "/state", "reason", state=StateChange.FINISHED),
    changes.add_arm: _add_arm,
    changes.withdraw: _sent("POST", "/arms/{}/withdrawal", "reason"),
    changes.restore: _sent("DELETE", "/arms/{}/withdrawal"),
    changes.amend: _sent("PUT", "/objectives/{}", "margin", "tie"),
    changes.reorder: lambda spec, names: ("PUT", "/order", {"objectives": list(names)}),
    changes.retry: _sent("POST", "/retry"),
    changes.pause: _sent("POST", "/state", "reason", state=StateChange.PAUSED),
    changes.resume: _sent("POST", "/state", state=StateChange.RESUMED),
    changes.reopen: _sent("POST", "/state", "reason", state=StateChange.REOPENED),
    changes.set_budget: _sent("PUT", "/budget", "budget"),
    changes.note: _sent("POST", "/notes", "text"),
}


def _new_key() -> str:
    """Of one call: however often it is sent, it is done once."""
    return secrets.token_urlsafe(16)


def _key(request: str) -> str:
    """A request as a header can carry it."""
    fits = PLAIN.fullmatch(request) and len(request) <= 200
    return request if fits else hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()


def _id(trial: Trial | str) -> str:
    identity = trial.id if isinstance(trial, Trial) else trial
    if identity is not None and not isinstance(identity, str):
        raise TypeError(f"a trial is what ask gave, or its id, got {trial!r}")
    if identity is None or not 1 <= len(identity) <= 40:
        raise errors.UnknownTrialError(f"no study hands out a trial {identity!r}")
    return quote(identity, safe="")


def _with_until(error: StudyError, payload: Mapping[str, Any]) -> StudyError:
    """The error, which says until when if it is `StudyWaiting`."""
    until = payload.get("until") or payload.get("waiting_until")
    if isinstance(error, StudyWaiting) and until:
        error.until = datetime.fromisoformat(until)
    return error


def _trial(payload: dict[str, Any]) -> Trial:
    repeat, reason, until = payload.pop("repeat", None), payload.pop("reason", None), payload["until"]
    trial = Trial(**{**payload, "until": until and datetime.fromisoformat(until)}).as_repeat(repeat)
    return trial if reason is None else trial.as_assigned(AssignReason(reason))
