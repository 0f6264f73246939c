"""A wire between a client and a server that fails as networks do: at a word, or inside an answer."""

import re
import socket
import threading
from contextlib import suppress
from pathlib import Path


class Proxy:
    """Forwards to a port of this machine, or to PostgreSQL's socket, until it is told to fail.

    `arm`: at the next message of a client that holds a word the wire is cut: "before" it reaches the server;
    "after" it did, at once; "answered", when the server has answered, whose answer is lost; "silent", the
    answer is lost and the wire stays, as behind a dead firewall. `spoil`: after so many bytes of answers the
    wire they are on is "cut", or falls "silent".
    """

    def __init__(self, target):
        self.target = target  # a port's number, or a socket's path
        self.answered = 0  # bytes of all answers so far
        self.cuts = 0  # how often it failed
        self._armed = None  # (word, how, always)
        self._spoil = None  # [how, bytes left]
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def of(self, address):
        """The address by way of this wire."""
        if isinstance(self.target, Path):
            return re.sub(r"@/(\w+)\?host=.*", rf"@127.0.0.1:{self.port}/\1", address)
        return re.sub(rf":{self.target}\b", f":{self.port}", address)

    def arm(self, word, how, always=False):
        with self._lock:
            self._armed = word, how, always

    def spoil(self, how, after):
        """Let `after` more bytes of answers through, then "cut" or "silent"; None: nothing any more."""
        with self._lock:
            self._spoil = None if how is None else [how, after]

    def cut_all(self):
        """End every connection now."""
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _end(connection)

    def close(self):
        _end(self._listener)
        self._listener.close()
        self.cut_all()

    def _listen(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = self._connected()
            except OSError:
                client.close()  # the server is away
                continue
            with self._lock:
                self._open |= {client, server}
            endings = []  # of what the server answers: "after", "answered" or "silent", once it is known
            for work in (self._forward_calls, self._forward_answers):
                threading.Thread(target=work, args=(client, server, endings), daemon=True).start()

    def _connected(self):
        if not isinstance(self.target, Path):
            return socket.create_connection(("127.0.0.1", self.target))
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self.target))
        return server

    def _forward_calls(self, client, server, endings):
        with suppress(OSError):
            while data := client.recv(1 << 16):
                how = self._cut_at(data)
                if how == "before":
                    break
                endings += [how] if how else []
                server.sendall(data)
                if how == "after":
                    break
        _end(client)
        _end(server)

    def _cut_at(self, data):
        with self._lock:
            if self._armed is None or self._armed[0] not in data:
                return None
            _, how, always = self._armed
            if not always:
                self._armed = None
            self.cuts += 1
            return how

    def _forward_answers(self, client, server, endings):
        with suppress(OSError):
            while data := server.recv(1 << 16):
                how, passed = self._spoilt(len(data))
                if not endings:
                    client.sendall(data[:passed])
                if how == "cut" or endings == ["answered"]:
                    break
                endings += [how] if how else []
        _end(client)
        _end(server)
        with self._lock:
            self._open -= {client, server}
        client.close()
        server.close()

    def _spoilt(self, size):
        """How the wire fails inside so many bytes, if it does, and how many of them are passed on."""
        with self._lock:
            self.answered += size
            if self._spoil is None or size < self._spoil[1]:
                if self._spoil is not None:
                    self._spoil[1] -= size
                return None, size
            how, left = self._spoil
            self._spoil = None
            self.cuts += 1
            return how, left


def _end(connection):
    """Both ways, and whoever waits for it in another thread is woken."""
    with suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)
