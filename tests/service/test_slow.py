"""Who sends or takes slowly is sent away after the service's own limits; a clock is moved, nobody waits."""

import select

import pytest

from lexbandits.service.problems import FORGOTTEN, FREE_TRIES
from lexbandits.service.security import SECONDS_FOR_A_BODY
from lexbandits.service.start import LEAST_PART, SECONDS_FOR_A_HEAD, SECONDS_FOR_A_PART
from support.moved import Moved
from support.patience import until
from support.services import fast

REST = 75  # seconds for which a connection may rest


@pytest.fixture
def service(tmp_path):
    with Moved(fast(tmp_path)) as service:
        yield service


def closed(connections):
    """Those of them on which something is to be read: an answer, or the end."""
    return set(select.select(list(connections), [], [], 0)[0])


def status(connection):
    """The status of the next answer, all of which is taken."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(1)
    take(connection, int(found.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
    return int(found.split()[1])


def take(connection, size):
    """So many bytes."""
    found = b""
    while len(found) < size:
        found += (part := connection.recv(min(4096, size - len(found))))
        assert part, "the connection was closed"
    return found


def whole(connection):
    """All that comes until the end."""
    found = b""
    try:
        while part := connection.recv(1 << 16):
            found += part
    except ConnectionError:
        pass
    return found


def test_the_limits_are_half_a_minute():
    assert SECONDS_FOR_A_HEAD == SECONDS_FOR_A_BODY == SECONDS_FOR_A_PART == 30


def test_who_sends_too_slowly_is_sent_away(service):
    """Nothing; a head that never ends, as the first request, the second, and right behind one; a body."""
    get, post = service.head("GET", "/healthz"), service.head("POST", "/api/studies", "Content-Length: 100")
    stranger = service.head("POST", "/api/studies", f"Content-Length: {10**6}", token="lb_wrong")
    begun = {
        "nothing": service.connect(),
        "a head": service.connect(get[:-2]),
        "a second head": service.connect(get),
        "a head right behind": service.connect(get + get[:-2]),
        "a body": service.connect(post),
        "a body that nobody reads": service.connect(stranger),
    }
    assert status(begun["a second head"]) == status(begun["a head right behind"]) == 200
    assert status(begun["a body that nobody reads"]) == 401
    begun["a second head"].sendall(get[:-2].encode())
    until(lambda: service.unread() == 0)
    service.move(29)
    for name in ("a head", "a second head", "a head right behind", "a body", "a body that nobody reads"):
        begun[name].sendall(b"x")  # one byte now and then must not help
    until(lambda: service.unread() == 0)
    assert service.there()[0] == 6
    assert not closed(begun.values())
    resting = service.connect(get)
    assert status(resting) == 200
    service.move(2)
    unread = begun.pop("a body that nobody reads")
    assert status(begun["a body"]) == 408
    assert [whole(connection) for connection in begun.values()] == [b""] * 5
    assert not closed([unread]), "of which a part came two seconds ago"
    service.move(30)
    assert whole(unread) == b""
    until(lambda: service.there() == (1, 0))
    resting.sendall(get.encode())
    assert status(resting) == 200, "who only rests may stay"
    service.move(REST - 1)
    assert not closed([resting])
    service.move(2)
    assert whole(resting) == b""


def test_who_takes_nothing_of_an_answer_is_sent_away(service):
    """A slow line stays as long as it takes something; who takes a byte now and then does not."""
    get = service.head("GET", "/openapi.json", "Connection: close")
    stuck, drip, slow = (service.connect(get) for _ in range(3))
    until(lambda: len(closed([stuck, drip, slow])) == 3)
    service.do(lambda: None)
    came, left = b"", service.left(slow)
    assert left > 2 * LEAST_PART
    for _ in range(2):
        service.move(20)
        drip.recv(1)
        while service.left(slow) > left - LEAST_PART:
            came += take(slow, 1024)
        left = service.left(slow)
        service.move(9)
    until(lambda: service.there()[0] == 1)
    came += whole(slow)
    head, _, body = came.partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head


def test_who_leaves_a_small_answer_lying_is_sent_away_too(service):
    """It waits in the service's memory, and its connection rests."""
    get = service.head("GET", "/api/studies")
    for _ in range(5):
        service.connect(get * 20)
    until(lambda: service.unread() == 0)
    until(lambda: service.there() == (5, 0))
    service.move(REST + 1)
    service.move(SECONDS_FOR_A_PART + 1)
    until(lambda: service.there() == (0, 0))


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/studies"), ("POST", "/api/studies/x/trials")])
def test_who_guesses_tokens_waits_for_every_answer(service, method, path):
    """Whichever endpoint is asked; after a minute it begins anew."""
    guess = service.head(method, path, "Content-Length: 0", token="lb_guess")
    connection = service.connect()

    def refused():
        connection.sendall(guess.encode())
        until(lambda: service.unread() == 0)
        service.do(lambda: None)

    for _ in range(FREE_TRIES):
        refused()
        assert status(connection) == 401
    refused()
    until(lambda: service.there() == (1, 1))
    service.move(0.1)
    assert not closed([connection])
    service.move(0.2)
    assert status(connection) == 401
    service.move(FORGOTTEN + 1)
    refused()
    assert status(connection) == 401
