"""Who may do what: bearer tokens with a role each. Only their hashes are kept."""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lexbandits.study.errors import AuthError, ConflictError, StorageError, StudyError
from lexbandits.study.objective import checked_name
from lexbandits.study.storage.contract import open_storage
from lexbandits.study.storage.sql import SqlStorage, TokenRow

ROLES = ("read", "write", "admin")  # look; measure; make, change and delete studies
MOST_TOKENS = 1000  # since every request compares with all of them
USED_EVERY = 60.0  # seconds between two notes that a token is in use


def open_lasting(address: str | Path) -> SqlStorage:
    """The storage of a service: a file or a database, which can hold its tokens too."""
    storage = open_storage(address)
    if not isinstance(storage, SqlStorage):
        raise StorageError("a service needs a storage that lasts: a path, sqlite:///… or postgresql://…")
    return storage


class UnknownTokenError(AuthError):
    """No token, or one that is not known or was revoked."""


class WeakTokenError(AuthError):
    """The token's role is too low."""


def new_secret() -> str:
    """A token nobody can guess."""
    return f"lb_{secrets.token_urlsafe(32)}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _valid(rows: list[TokenRow]) -> list[TokenRow]:
    return [row for row in rows if row.revoked is None]


class Tokens:
    """The tokens of a storage, and the one that was made for this start, if any."""

    def __init__(
        self, storage: SqlStorage, start: str | None = None, notes: SqlStorage | None = None
    ) -> None:
        """`notes`: where to note, beside the work, when a token was used; nowhere without it."""
        self.storage, self._notes = storage, notes
        self._start = None if start is None else _digest(start)
        self._noted: dict[int, float] = {}

    def create(self, name: str, role: str) -> str:
        """A new token: the only time that anybody sees it."""
        checked_name("a token", name)
        if role not in ROLES:
            raise StudyError(f"a role is one of {', '.join(ROLES)}, got {role!r}")

        def check(there: list[TokenRow]) -> None:
            valid = _valid(there)
            if any(row.name == name for row in valid):
                raise ConflictError(f"there is a token {name!r}: revoke it first, or choose another name")
            if len(valid) >= MOST_TOKENS:
                raise ConflictError(f"there are {MOST_TOKENS} tokens: revoke one first")

        secret = new_secret()
        self.storage.add_token(name, role, _digest(secret), check)
        return secret

    def valid(self) -> list[TokenRow]:
        """Those that have not been revoked."""
        return _valid(self.storage.tokens())

    def revoke(self, name: str) -> None:
        """From the next request on it is unknown, with all others of this name."""
        if not self.storage.revoke_tokens(name):
            raise StudyError(f"no token {name!r}, or it was revoked before")

    def check(self, header: str | None, needed: str) -> str:
        """The role that an Authorization header gives, if it is high enough."""
        (role,) = self.roles_of([header])
        return check_role(role, needed, header)

    def roles_of(self, headers: Sequence[str | None]) -> list[str | None]:
        """The roles of several at once, all by what is on record now; None for unknown ones."""
        valid = self.valid()
        known = {header: self._role(header, valid) for header in set(headers)}
        return [known[header] for header in headers]

    def _role(self, header: str | None, valid: Sequence[TokenRow]) -> str | None:
        scheme, _, secret = (header or "").strip().partition(" ")
        digest = _digest(secret.strip())
        found: TokenRow | None = None
        for row in valid:
            if hmac.compare_digest(row.sha256, digest):
                found = row
        started = self._start is not None and hmac.compare_digest(self._start, digest)
        if scheme.lower() != "bearer" or (found is None and not started):
            return None
        if found is None:
            return "admin"
        self._note(found)
        return found.role

    def _note(self, row: TokenRow) -> None:
        now = time.monotonic()
        if self._notes is not None and now - self._noted.get(row.id, -USED_EVERY) >= USED_EVERY:
            self._noted[row.id] = now
            threading.Thread(target=self._mark, args=(self._notes, row.id), daemon=True).start()

    def _mark(self, notes: SqlStorage, token: int) -> None:
        """In a thread and by a connection of its own: others may be writing for a minute."""
        with suppress(StorageError):  # good to know, not worth a refusal
            notes.use_token(token)


def check_role(role: str | None, needed: str, header: str | None) -> str:
    """Refuse who is not known by this Authorization header, and a role that is too low."""
    if role is None:
        unknown = "this token is unknown, or was revoked; " if header else ""
        raise UnknownTokenError(f"{unknown}a token is needed: Authorization: Bearer lb_…")
    if ROLES.index(role) < ROLES.index(needed):
        raise WeakTokenError(f"this needs a token with the role {needed}, yours has {role}")
    return role
