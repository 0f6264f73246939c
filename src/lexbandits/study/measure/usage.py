"""Run a command; write on a pipe how many seconds it took, and the most bytes that one of its processes had.

A program of its own, as small as can be: Linux counts what a parent had at the start of its child as the
child's, so a `true` that a process of 300 MB starts is one of 300 MB.
"""

import os
import signal
import sys
import time


def main(pipe: int, line: list[str]) -> int:
    """The command's exit code; signals are for the command, and are waited out here."""
    os.set_inheritable(pipe, False)
    names = signal.SIGTERM, signal.SIGHUP, signal.SIGINT
    caught = [number for number in names if signal.getsignal(number) is not signal.SIG_IGN]
    for number in caught:
        signal.signal(number, signal.SIG_IGN)
    begin = time.perf_counter()
    try:
        child = os.posix_spawnp(line[0], line, os.environ, setsigdef=caught)
    except OSError as error:
        print(f"{line[0]}: {error.strerror}", file=sys.stderr)
        return 127
    _, status, used = os.wait4(child, 0)  # with all children that it waited for
    took = time.perf_counter() - begin
    os.write(pipe, f"{took!r} {used.ru_maxrss * (1 if sys.platform == 'darwin' else 1024)}".encode())
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
