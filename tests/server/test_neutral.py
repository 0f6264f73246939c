"""Hosts that only look like this one, and sentences that a chat would obey."""

import pytest

from lexbandits.server.guard import LOOPBACK, host_of
from lexbandits.server.webhook import harmless


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]", "[::1]:65535"])
def test_a_host_is_known_with_its_port(host):
    assert host_of(host) in LOOPBACK


@pytest.mark.parametrize(
    "host",
    ["[::1].evil.com", "[::1]evil", "localhost:1@evil", "localhost:80:80", "localhost:", "localhost:a",
     "[::1", "evil@localhost", "localhost/", "localhost\\", "local host", "", ":80", "localhost:123456",
     "[localhost]"],
)  # fmt: skip
def test_what_only_looks_like_one_is_none(host):
    assert host_of(host) not in LOOPBACK


def test_a_sentence_of_the_webhook_commands_nothing():
    said = harmless("/kick a: <!channel> @here <https://evil|click>\r\n\x1b[31m `x`\u202e")
    assert said[0] != "/"
    assert not {"<", ">", "\n", "\r", "\x1b", "\u202e"} & set(said)
    assert "@here" not in said
    assert harmless("models: 'a' is the answer") == "models: 'a' is the answer"
    assert not harmless("!deploy: x").startswith("!")
