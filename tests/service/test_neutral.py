"""Hosts that only look like this one, sentences that a chat would obey, tokens that are guessed."""

import pytest

from lexbandits.service.problems import FREE_TRIES, LONGEST_DELAY, MOST_ADDRESSES, Refused
from lexbandits.service.security import LOOPBACK, host_of
from lexbandits.service.webhook import harmless


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


def test_an_address_that_guesses_tokens_is_answered_slowly():
    refused = Refused()
    first = [refused.delay("a", 0.0) for _ in range(FREE_TRIES + 8)]
    assert set(first[:FREE_TRIES]) == {0.0}
    assert 0.0 < first[FREE_TRIES] < first[FREE_TRIES + 1] <= first[-1] == LONGEST_DELAY
    assert refused.delay("b", 0.0) == 0.0, "others do not wait"
    assert refused.delay("a", 61.0) == 0.0, "after a minute it begins anew"
    for other in range(2 * MOST_ADDRESSES):
        refused.delay(str(other), 62.0)
    assert len(refused._known) == MOST_ADDRESSES


def test_an_unknown_token_is_logged_with_its_address(serve):
    service = serve()
    with service.client() as client:
        assert client.get("/api/studies", headers={"Authorization": "Bearer lb_wrong"}).status_code == 401
    assert "an unknown token came from 127.0.0.1" in service.stop()[1]
