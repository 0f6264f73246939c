"""Processes whose imports are done: forked by one that has done them, and else as if started by hand.

Each is a process of its own, with its own pipes, environment and end.
"""

import atexit
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

PRELOADED = (
    "lexbandits.cli.main",
    "lexbandits.cli.serve",
    "lexbandits.study.storage.tables",
    "lexbandits.study.storage.sqlite",
    "lexbandits.study.storage.postgres",
    "anyio._backends._asyncio",
)
DECISIVE = ("PYTHON", "NUMBA", "LEXBANDITS_JIT", "HOME", "XDG", "LD_")  # what decides how a process starts


def started(argv, environment):
    """A process of `python argv…` that writes to two pipes; forked, where the environment allows it."""
    asked = _decisive(environment)
    if asked != _decisive(os.environ):
        return started_anew(argv, environment)
    if not _nurseries or _nurseries[0].environment != asked:
        _nurseries[:] = [_Nursery()]
    return Forked(_nurseries[0], argv, environment)


def started_anew(argv, environment):
    """The same, as people start it."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *argv], env=environment, **pipes)


def _decisive(environment):
    return {name: value for name, value in environment.items() if name.startswith(DECISIVE)}


class Forked:
    """What `subprocess.Popen` is to a process that it starts."""

    def __init__(self, nursery, argv, environment):
        self.args, self.returncode, ends = argv, None, [os.pipe() for _ in range(3)]
        self.stdout, self.stderr = (os.fdopen(read, encoding="utf-8") for read, _ in ends[:2])
        self._end = ends[2][0]
        self.pid = nursery.fork({"argv": argv, "environment": environment}, [write for _, write in ends])
        for _, write in ends:
            os.close(write)

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout)
            self.returncode = os.waitstatus_to_exitcode(int(os.read(self._end, 20)))
            os.close(self._end)
        return self.returncode

    def poll(self):
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=None):
        with ThreadPoolExecutor(2) as pool:
            out, err = (pool.submit(pipe.read) for pipe in (self.stdout, self.stderr))
            self.wait(timeout)
            said = out.result(), err.result()
        self.stdout.close()
        self.stderr.close()
        return said


class _Nursery:
    def __init__(self):
        self.environment = _decisive(os.environ)
        self._socket, there = socket.socketpair()
        with there:
            command = [sys.executable, __file__, str(there.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self.close)

    def close(self):
        self._socket.close()
        self._process.wait()

    def fork(self, fields, pipes):
        """The pid of a new process that writes to these pipes, and how it ended to the last."""
        request = json.dumps({**fields, "cwd": os.getcwd()}).encode()
        socket.send_fds(self._socket, [len(request).to_bytes(4) + request], pipes)
        return int(self._socket.recv(20))


_nurseries = []


# --- the process that forks


def _serve(asked):
    """Fork until nobody asks any more. Returns in the new processes alone, with their arguments."""
    for name in PRELOADED:
        importlib.import_module(name)
    from lexbandits.service.start import _warm_up

    _warm_up()  # as every service does in its first second
    woken, wakes = os.pipe()
    for end in (woken, wakes):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ends = {}  # pid -> where to say how it ended
    while True:
        ready, _, _ = select.select([asked, woken], [], [])
        if woken in ready:
            os.read(woken, 1 << 16)
            for pid in tuple(ends):
                if status := _status(pid):
                    os.write(ends[pid], str(status[0]).encode())
                    os.close(ends.pop(pid))
        if asked not in ready:
            continue
        part, pipes, *_ = socket.recv_fds(asked, 1 << 16, 3)
        if not part:
            raise SystemExit
        size = int.from_bytes(part[:4])
        while len(part) < 4 + size:
            part += asked.recv(1 << 16)
        pid = os.fork()
        if pid == 0:
            return _settled(json.loads(part[4:]), pipes, [asked.fileno(), woken, wakes, *ends.values()])
        asked.send(str(pid).encode())
        ends[pid] = pipes.pop()
        for end in pipes:
            os.close(end)


def _status(pid):
    """How a process ended, in a tuple; none while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return (status,) if ended else ()


def _settled(fields, pipes, others):
    """Be a process of one's own."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(pipes[0], 1)
    os.dup2(pipes[1], 2)
    for end in (*pipes, *others):
        os.close(end)
    os.chdir(fields["cwd"])
    os.environ.clear()
    os.environ.update(fields["environment"])
    random.seed()
    return fields["argv"]


if __name__ == "__main__":
    sys.path.pop(0)
    how, what, *arguments = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = ["-c" if how == "-c" else what, *arguments]
    if how == "-c":
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_module(what, run_name="__main__", alter_sys=True)
