"""A study behind the service: `storage="http://host"`, with the token in LEXBANDITS_TOKEN."""

import hashlib
import json
import math
import os
import re
import secrets
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, urldefrag, urlencode, urlsplit

import pandas as pd

from lexbandits.study import errors
from lexbandits.study.errors import (
    AuthError,
    StorageError,
    StudyError,
    StudyFinished,
    StudyPaused,
    StudyWaiting,
)
from lexbandits.study.objective import Objective
from lexbandits.study.record.answers import Answer, Status
from lexbandits.study.record.asking import Told
from lexbandits.study.record.events import Event
from lexbandits.study.record.fold import Fold, PlacePolicy
from lexbandits.study.record.verification import Verification, replay
from lexbandits.study.spec import Spec, seconds
from lexbandits.study.study import Study, _count, check_words, open_study
from lexbandits.study.trial import TRIAL_COLUMNS, Trial

PATIENCE = 60.0  # seconds to try again while the service is away or its storage is busy
SILENCE = 20.0  # seconds without an answer, after which it is asked again: the answer may have been lost
AT_ONCE = 1000  # results or trials of one request
AGAIN = (502, 503, 504)
PLAIN = re.compile(r"[\x21-\x7e]*")


class Service:
    """The API of a service: problems become the errors they were, what is safe to repeat is repeated."""

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
            raise AuthError("the token in LEXBANDITS_TOKEN has characters that no token has")
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token:
            self._headers["Authorization"] = f"Bearer {self._token}"
        self._client: Any = None
        self._pid = 0

    def _http(self) -> Any:
        if self._pid != os.getpid():  # connections are not shared with a parent
            try:
                import httpx2
            except ModuleNotFoundError as error:
                raise StorageError("httpx2 is needed: pip install 'lexbandits[client]'") from error
            self._client = httpx2.Client()
            self._timeouts = {
                again: {"timeout": httpx2.Timeout(silence, connect=10.0).as_dict()}
                for again, silence in ((True, SILENCE), (False, PATIENCE))
            }
            self._pid = os.getpid()
            weakref.finalize(self, _close, self._client, self._pid)
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
        **query: Any,
    ) -> Any:
        """One call; None where there is no content. `again`: with its key, it may be repeated."""
        client = self._http()
        import httpx2

        headers = self._headers if key is None else {**self._headers, "Idempotency-Key": key}
        content = None if body is None else json.dumps(body, allow_nan=False)
        url = f"{self.shown}/api/studies{path}{f'?{urlencode(query)}' if query else ''}"
        until, pause, timeouts = time.monotonic() + PATIENCE, 0.05, self._timeouts[again]
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
            else:
                if answer.is_success:
                    return self._words(answer)
                problem, final = self._problem(answer), answer.status_code not in AGAIN
            if final or not again or time.monotonic() + pause > until:
                raise problem
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _words(self, answer: Any) -> Any:
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise self._stranger(answer) from None

    def _stranger(self, answer: Any) -> StorageError:
        return StorageError(f"{self.shown} is no lexbandits service: it answers {answer.status_code}")

    def _problem(self, answer: Any) -> StudyError:
        try:
            words = answer.json()
            detail, kind = str(words["detail"]), str(words.get("kind", ""))
        except (ValueError, KeyError, TypeError, AttributeError):
            return self._stranger(answer)
        found = getattr(errors, kind, None)
        if isinstance(found, type) and issubclass(found, StudyError):
            if found is AuthError:
                detail += f" ({self.shown}; the token comes from LEXBANDITS_TOKEN)"
            return _with_until(found(detail), words)
        return StorageError(detail) if answer.status_code >= 500 else StudyError(detail)

    # --- studies by name

    def create(self, spec: Spec, *, load_if_exists: bool) -> "RemoteStudy":
        """A new study, or the one that is there if it asks the same."""
        from lexbandits.study.study import checked_same

        try:
            self.call("POST", "", spec.as_json(), key=_new_key())
        except errors.StudyExistsError:
            if not load_if_exists:
                raise
        study = RemoteStudy(self, spec.name)
        checked_same(study, spec.as_json(), self.shown)
        return study

    def study(self, name: str, read_only: bool = False) -> "RemoteStudy":
        """The study of this name."""
        return RemoteStudy(self, name, read_only)

    def delete(self, name: str) -> None:
        """The study of this name, for good."""
        self.call("DELETE", f"/{quote(name, safe='')}", again=False)

    def names(self) -> list[str]:
        """All studies."""
        found: list[str] = []
        after: str | None = ""
        while after is not None:
            page = self.call("GET", "", after=after)
            found += [study["name"] for study in page["studies"]]
            after = page["next"]
        return found


class _Elsewhere:
    """In the place of a journal, which is where the service is."""

    def __getattr__(self, name: str) -> Any:
        raise StudyError("this is not possible over http: open the study in the storage of the service")


class RemoteStudy(Study):
    """A study that a service keeps: all that workers need, and the changes that its token allows."""

    def __init__(self, service: Service, name: str, read_only: bool = False) -> None:
        self._service, self._name, self._read_only = service, name, read_only
        self._path = f"/{quote(name, safe='')}"
        self._journal: Any = _Elsewhere()
        self._question = Spec.from_json(self._get("/spec"))

    def __reduce__(self) -> tuple[Any, ...]:
        return open_study, (self._name, self._service.address, self._read_only)

    def __repr__(self) -> str:
        return f"<Study {self._name!r} in {self._service.shown}>"

    @property
    def storage(self) -> str:
        """The address of the service, without a token."""
        return self._service.shown

    def close(self) -> None:
        """Give back the connections; a later call opens others."""
        self._service.close()

    def _get(self, path: str = "", **query: Any) -> Any:
        return self._service.call("GET", self._path + path, **query)

    def _do(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        if self._read_only:
            raise StorageError(f"study {self._name!r} was opened to be read only")
        return self._service.call(method, self._path + path, body, **{"key": _new_key(), **how})

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def spec(self) -> dict[str, Any]:
        """The question as asked, in words."""
        return self._question.as_json()

    @property
    def seq(self) -> int:
        """How many events there are."""
        return int(self._get()["seq"])

    @property
    def arms(self) -> dict[str, dict[str, Any]]:
        """All arms by name, with the further keys they were given."""
        return {arm["name"]: {"name": arm["name"], **arm["words"]} for arm in self._get()["arms"]}

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """In order of priority, with the tolerances in force."""
        asked = {objective.name: objective for objective in self._question.objectives}
        return tuple(
            replace(asked[row["name"]], tolerance=row["tolerance"], resolution=row["resolution"])
            for row in self._get()["objectives"]
        )

    # --- asking and telling

    def _told_and_asked(
        self, results: Sequence[Told], n: int, lease: Any, worker: str | None, request: str | None
    ) -> tuple[list[str], list[Trial], StudyError | None]:
        n = _count("n", n)
        if worker is not None:
            check_words(worker=worker)
        if len(results) > AT_ONCE or n > AT_ONCE:
            return self._in_portions(results, n, lease, worker, request)
        words = {"worker": worker, "lease": None if lease is None else seconds("lease", lease)}
        key = _new_key() if request is None else _key(request)  # a repeat gets the same trials
        try:
            if results:
                told = [{"trial": _id(t), "values": self._question.checked(values)} for t, values in results]
                answer = self._do("POST", "/results", {"results": told, "ask": n, **words}, key=key)
            else:
                answer = self._do("POST", "/trials", {"n": n, **words}, key=key) if n else {"trials": []}
        except (StudyPaused, StudyWaiting) as nothing:
            return [], [], nothing
        trials = [_trial(each) for each in answer["trials"]]
        kind = {"paused": StudyPaused, "measuring": StudyWaiting}.get(answer.get("state"), StudyFinished)
        reason = None if trials else _with_until(kind(answer.get("reason") or "nothing to measure"), answer)
        return answer.get("outcomes", []), trials, reason

    def _in_portions(
        self, results: Sequence[Told], n: int, lease: Any, worker: str | None, request: str | None
    ) -> tuple[list[str], list[Trial], StudyError | None]:
        """As many at once as the service takes: all or none of each portion."""
        outcomes: list[str] = []
        for start in range(0, len(results), AT_ONCE):
            outcomes += self._told_and_asked(results[start : start + AT_ONCE], 0, lease, worker, None)[0]
        trials: list[Trial] = []
        reason: StudyError | None = None
        while len(trials) < n and reason is None:
            key = None if request is None else f"{request}/{len(trials)}"
            size = min(AT_ONCE, n - len(trials))
            _, new, reason = self._told_and_asked([], size, lease, worker, key)
            trials += new
            if len(new) < size:
                break
        return outcomes, trials, None if trials else reason

    def tell(self, trial: Trial | str, values: Mapping[str, Any]) -> str:
        """Report a trial's values by objective."""
        body = {"values": self._question.checked(values)}
        return str(self._do("PUT", f"/trials/{_id(trial)}/result", body)["outcome"])

    def tell_many(self, results: Any) -> list[str]:
        """Report many results at once: all or none of each thousand."""
        return self.tell_ask(results, 0)[0]

    record = tell

    def fail(self, trial: Trial | str, reason: str = "", *, interrupted: bool = False) -> str:
        """Report that a trial could not be measured, or was begun and broken off."""
        words = str(reason).encode("utf-8", "backslashreplace").decode()[:2000]  # it may name such a file
        body = {"failed": words, "interrupted": interrupted}
        return str(self._do("PUT", f"/trials/{_id(trial)}/result", body)["outcome"])

    def release(self, trial: Trial | str) -> None:
        """Give a trial back unmeasured."""
        self._do("DELETE", f"/trials/{_id(trial)}/lease")

    def expire(self, trial: Trial | str) -> str:
        """Declare an overdue trial's place missing now."""
        return str(self._do("POST", f"/trials/{_id(trial)}/expiry")["outcome"])

    def heartbeat(self, worker: str) -> None:
        """Say that a worker is alive."""
        check_words(worker=worker)
        self._do("POST", f"/workers/{quote(worker, safe='')}/heartbeat")

    def correct(self, trial: Trial | str, values: Mapping[str, Any], reason: str) -> str:
        """Replace what was told."""
        body = {"values": self._question.checked(values), "reason": reason}
        return str(self._do("PUT", f"/trials/{_id(trial)}/correction", body)["outcome"])

    # --- what is known

    @property
    def status(self) -> Status:
        """Where the study stands."""
        words = self._get()
        words |= {"objective": words["settling"], "candidates": tuple(words["answer"]["candidates"])}
        words["waiting_for"] = tuple(words["waiting_for"])
        return Status(**{field.name: words[field.name] for field in fields(Status)})

    @property
    def answer(self) -> Answer:
        """The answer; a best guess while `certified` is False."""
        return Answer.from_json(self._get()["answer"])

    def results(self) -> pd.DataFrame:
        """One row per arm and objective."""
        unknown = {"mean": math.nan, "low": -math.inf, "high": math.inf}
        rows = self._get("/results")["results"]
        for row in rows:
            row |= {key: unknown[key] for key in unknown if row[key] is None}
        return pd.DataFrame(rows)

    def trials(self) -> pd.DataFrame:
        """One row per trial."""
        names, rows = self._question.names, []
        since: int | None = 0
        while since is not None:
            page = self._get("/trials", since=since, limit=1000)
            rows += [{**row, **row["values"]} for row in page["trials"]]
            since = page["next"]
        frame = pd.DataFrame(rows, columns=[*TRIAL_COLUMNS, *names])
        for column in ("asked", "resolved"):
            frame[column] = pd.to_datetime(frame[column], utc=True)
        return frame.astype(dict.fromkeys(names, float))

    def events(self, since: int = 0) -> Iterator[Event]:
        """The journal after event `since`."""
        following: int | None = since
        while following is not None:
            page = self._get("/events", since=following, limit=1000)
            for row in page["events"]:
                yield Event(**{key: row["seconds" if key == "at" else key] for key in Event._fields})
            following = page["next"]

    @property
    def policy(self) -> PlacePolicy:
        """The policy behind it, replayed here from the journal."""
        fold = Fold()
        fold.apply(self.events())
        return fold.policy

    def verify(self) -> Verification:
        """Replay the journal here and compare it with what was recorded there."""
        return replay(self.events())

    # --- changes

    def add_arm(self, arm: str | Mapping[str, Any]) -> None:
        """Another arm."""
        self._do("POST", "/arms", {"name": arm} if isinstance(arm, str) else dict(arm))

    def withdraw(self, name: str, reason: str) -> None:
        """Take an arm out of the question."""
        self._do("POST", f"/arms/{quote(name, safe='')}/withdrawal", {"reason": reason})

    def restore(self, name: str) -> None:
        """Bring a withdrawn arm back."""
        self._do("DELETE", f"/arms/{quote(name, safe='')}/withdrawal")

    def amend(self, objective: str, *, tolerance: Any = None, resolution: Any = None) -> None:
        """Another tolerance or resolution."""
        body = {"tolerance": tolerance, "resolution": resolution}
        self._do("PUT", f"/objectives/{quote(objective, safe='')}", body)

    def reorder(self, objectives: Sequence[str]) -> None:
        """Another order of priority."""
        self._do("PUT", "/order", {"objectives": list(objectives)})

    def pause(self, reason: str = "") -> None:
        """Hand out nothing until `resume`."""
        self._do("POST", "/state", {"state": "paused", "reason": reason})

    def resume(self) -> None:
        """Go on after a pause."""
        self._do("POST", "/state", {"state": "resumed"})

    def set_budget(self, budget: int | None) -> None:
        """Another number of trials to hand out in all."""
        self._do("PUT", "/budget", {"budget": budget})

    def end(self, reason: str) -> None:
        """End by hand, without a certificate."""
        self._do("POST", "/state", {"state": "finished", "reason": reason})

    def reopen(self, why: str) -> None:
        """Go on after an end."""
        self._do("POST", "/state", {"state": "reopened", "reason": why})

    def note(self, text: str) -> None:
        """A remark for the record."""
        self._do("POST", "/notes", {"text": text})


def _close(client: Any, pid: int) -> None:
    if pid == os.getpid():
        client.close()


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


def _with_until(error: StudyError, words: Mapping[str, Any]) -> StudyError:
    """The error, which says until when if it is `StudyWaiting`."""
    until = words.get("until") or words.get("waiting_until")
    if isinstance(error, StudyWaiting) and until:
        error.until = datetime.fromisoformat(until)
    return error


def _trial(words: dict[str, Any]) -> Trial:
    return Trial(**{**words, "until": datetime.fromisoformat(words["until"])})
