"""A wire between a client and a server that can be cut at a word."""

import re
import socket
import threading
from contextlib import suppress


class Proxy:
    """Passes everything on, until it is armed: then the next message of a client that holds `word` is cut.

    `how`: "before" it reaches the server; "after" it did, at once; "answered", when the server has answered,
    whose answer is lost; "silent", the answer is lost and the wire stays, as behind a dead firewall.
    """

    def __init__(self, port):
        self.target = port
        self.word = self.how = None
        self.cuts = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def of(self, address):
        """The address by way of this wire."""
        return re.sub(rf":{self.target}\b", f":{self.port}", address)

    def arm(self, word, how, always=False):
        self.word, self.how, self.always = word, how, always

    def close(self):
        self._listening.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            cut = []  # how, once it is
            threading.Thread(target=self._back, args=(server, client, cut), daemon=True).start()
            try:
                while data := client.recv(1 << 16):
                    if self.word is not None and self.word in data:
                        self.word, how = self.word if self.always else None, self.how
                        self.cuts += 1
                        if how == "before":
                            return
                        cut.append(how)
                    server.sendall(data)
                    if cut == ["after"]:
                        return
            except OSError:
                return
            finally:
                _shut(client)
                _shut(server)

    def _back(self, server, client, cut):
        try:
            while data := server.recv(1 << 16):
                if not cut:
                    client.sendall(data)
                elif cut == ["answered"]:
                    return
        except OSError:
            return
        finally:
            _shut(client)
            _shut(server)


def _shut(end):
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
