"""Who takes what the webhook sends: a real server in a thread, as patient or broken as a test wants."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = "of the receiver and nobody else"


def verified(headers, body):
    """What was sent, if the signature is that of who has the secret, and the time is now."""
    signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    digest = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
    assert abs(time.time() - int(headers["webhook-timestamp"])) < 300
    assert hmac.compare_digest(headers["webhook-signature"], f"v1,{digest}")
    return json.loads(body)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self):
        receiver, body = self.server.receiver, self.rfile.read(int(self.headers["content-length"]))
        receiver.tries.append((dict(self.headers), body))
        answer = receiver.answer(len(receiver.tries))
        if answer is None:
            receiver.release.wait(600)
        elif isinstance(answer, bytes):
            for byte in answer:
                if receiver.release.wait(0.2):
                    return
                self.wfile.write(bytes([byte]))
        else:
            if 200 <= answer < 300:
                receiver.taken.append(verified(self.headers, body))
            self.send_response(answer)
            self.send_header("Location", f"{receiver.url}/elsewhere")
            self.end_headers()

    def log_message(self, *_):
        pass


class Receiver:
    """`answer(n)` to the nth request: a status, bytes to be said one by one, or None for silence."""

    def __init__(self, answer=lambda _: 204, certificate=None, is_up=True):
        """`certificate`: the files of one and of its key, of a receiver that speaks TLS.

        One that is not up has its port, where nobody is answered before `start`.
        """
        self.answer, self.scheme = answer, "https" if certificate else "http"
        self.tries, self.taken = [], []  # (headers, body) of all; what was verified and taken
        self.release = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.receiver, self.server.daemon_threads = self, True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.server_bind()
        self.is_up = False
        if is_up:
            self.start()

    def start(self):
        self.is_up = True
        self.server.server_activate()
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self):
        return self.server.server_address[1]

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"

    def close(self):
        self.release.set()
        if self.is_up:
            self.server.shutdown()
        self.server.server_close()
