"""What every request passes: the Host it names, headers of every answer, who asks, and what may be sent."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexbandits.service.problems import problem

LARGEST_BODY = 4 << 20  # bytes
MOST_BRACKETS = 20  # lists and tables inside each other
SECONDS_FOR_A_BODY = 30.0  # to arrive
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SEGMENT = "".join(chr(code) for code in range(33, 127) if chr(code) not in "/%")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
RAW = [
    (name.lower().encode(), value.encode())
    for name, value in {**HEADERS, "Cache-Control": "no-store"}.items()
]
HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@/\\\[\]]+))(?::\d{1,5})?")
PLAIN = re.compile(r"[!-$&-~]+")  # nothing in it is quoted, or has to be


def host_of(header: str) -> str:
    """The name or number of a Host header, without its port; "" if it is neither."""
    found = HOST.fullmatch(header)
    return "" if found is None else (found[1] or found[2]).lower()


def is_number(host: str) -> bool:
    """Whether a host is an address rather than a name, which others could point at this machine."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class SecurityMiddleware:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], numbers: bool, stop: Callable[[], None]) -> None:
        self.app = app
        self.stop = stop  # to be called when the service begins to end: answers those who are made to wait
        self.hosts = {*LOOPBACK, *(host.lower() for host in hosts)}
        self.numbers = numbers  # whether any address will do, since the service listens beyond this machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [header for header in RAW if header[0] not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        host = host_of(
            next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        )
        if host not in self.hosts and not (self.numbers and is_number(host)):
            answer = problem(421, "this service does not answer to that Host: start it with --allow-host")
            await answer(scope, receive, dressed)
            return
        await self.app({**scope, "path": routed(scope)}, receive, dressed)


def routed(scope: Scope) -> str:
    """The path in which a slash inside a name is still told from one between names."""
    raw: str = scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    if PLAIN.fullmatch(raw):
        return raw
    return "/".join(quote(unquote(part), safe=SEGMENT) for part in raw.split("/")) or str(scope["path"])


def name_in_path(part: str) -> str:
    """A part of a path back to the name it stands for."""
    return unquote(part)


class StrictRequest(Request):
    """A request whose body is bounded in bytes, time and depth, and is JSON as the standard has it."""

    async def body(self) -> bytes:
        """All of it."""
        if not hasattr(self, "_body"):
            self._body = await whole_body(self.receive, self.headers.get("content-length", ""))
        return self._body

    async def json(self) -> Any:
        """Refuses NaN, infinities, a key given twice, and too many brackets inside each other."""
        return strict_json(await self.body())


async def whole_body(receive: Receive, declared: str) -> bytes:
    """A body, of a declared length if any, which must come in time."""
    chunks, size = [], 0
    if declared.isdecimal() and int(declared) > LARGEST_BODY:
        raise _too_large()
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HTTPException(400, "the connection was closed before the body had come")
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > LARGEST_BODY:
                    raise _too_large()
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        text = f"the body did not arrive within {SECONDS_FOR_A_BODY:g} s"
        raise HTTPException(408, text, {"Connection": "close"}) from None


def strict_json(text: bytes) -> Any:
    """JSON without NaN, infinities, a key given twice, and too many brackets inside each other."""
    try:
        content = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once_each)
        _not_too_deep(content)
    except RecursionError:
        raise json.JSONDecodeError("too many brackets inside each other", "", 0) from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # not UTF-8, or a number of thousands of digits
        raise json.JSONDecodeError(str(error)[:200], "", 0) from None
    return content


def _too_large() -> HTTPException:
    return HTTPException(413, f"a body may have {LARGEST_BODY} bytes")


def _no_constant(word: str) -> Any:
    raise json.JSONDecodeError(f"{word} is not JSON", "", 0)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise json.JSONDecodeError("a key is given twice", "", 0)
    return table


def _not_too_deep(content: Any) -> None:
    level = [content]
    for _ in range(MOST_BRACKETS):
        level = [
            part
            for each in level
            if isinstance(each, (dict, list))
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise json.JSONDecodeError("too many brackets inside each other", "", 0)
