"""A proxy that fails as networks do: it cuts a connection inside an answer, or swallows the answer."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards to a port of this machine. `spoil` says what happens to the next bytes of the server.

    "cut": after so many more bytes of answers the connection they belong to ends. "swallow": from there on
    nothing comes, though the connection stays open. Either happens once; what comes later goes through.
    """

    def __init__(self, port):
        self.target = port
        self.answered = 0  # bytes of all answers so far
        self.spoiled = 0  # how often
        self._plan = None  # (how, bytes left)
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def instead(self, address):
        """The address by way of this proxy."""
        return address.replace(f":{self.target}/", f":{self.port}/")

    def spoil(self, how, after):
        """Let `after` more bytes of answers through, then "cut" or "swallow"; None: nothing any more."""
        with self._lock:
            self._plan = None if how is None else [how, after]

    def cut_all(self):
        """End every connection now; how many there were."""
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            _end(connection)
        return len(connections) // 2

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
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()  # the server is away
                continue
            with self._lock:
                self._open |= {client, server}
            for work in (self._forward_calls, self._forward_answers):
                threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _forward_calls(self, client, server):
        try:
            while data := client.recv(65536):
                server.sendall(data)
        except OSError:
            pass
        finally:
            _end(server)

    def _forward_answers(self, client, server):
        silent = False
        try:
            while data := server.recv(65536):
                with self._lock:
                    self.answered += len(data)
                    how, passed = self._verdict(len(data))
                if not silent:
                    client.sendall(data[:passed])
                if how == "cut":
                    break
                silent = silent or how == "swallow"
        except OSError:
            pass
        finally:
            with self._lock:
                self._open -= {client, server}
            for connection in (client, server):
                _end(connection)
                connection.close()

    def _verdict(self, size):
        if self._plan is None:
            return None, size
        how, left = self._plan
        if size < left:
            self._plan[1] -= size
            return None, size
        self._plan = None
        self.spoiled += 1
        return how, left


def _end(connection):
    """Both ways, and whoever waits for it in another thread is woken."""
    with suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)
