"""What Windows has and has not, as far as Linux can play it: `msvcrt.locking`, and names that are missing.

Locks there belong to an open file, as the kernel's "open file description" locks do here.
"""

import fcntl
import os
import struct
import types

SET_LOCK = 37  # F_OFD_SETLK
LACKING = {
    "os": [
        "fork",
        "forkpty",
        "register_at_fork",
        "killpg",
        "getpgid",
        "setsid",
        "pread",
        "pwrite",
        "getuid",
        "geteuid",
        "wait4",
        "wait3",
        "waitid",
        "posix_spawn",
        "posix_spawnp",
        "mkfifo",
        "getloadavg",
        "sysconf",
        "uname",
        "O_CLOEXEC",
        "WNOHANG",
        "sched_getaffinity",
    ],
    "signal": ["SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "pthread_sigmask"],
    "socket": ["AF_UNIX"],
}
MISSING = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix", "syslog", "readline")


def _locking(file, mode, size):
    kind = fcntl.F_UNLCK if mode == msvcrt.LK_UNLCK else fcntl.F_WRLCK
    where = os.lseek(file, 0, os.SEEK_CUR)
    try:
        fcntl.fcntl(file, SET_LOCK, struct.pack("hhxxxxqqixxxx", kind, os.SEEK_SET, where, size, 0))
    except BlockingIOError as error:
        raise PermissionError(error.errno, "Permission denied") from None


msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_UNLCK, msvcrt.LK_LOCK, msvcrt.LK_NBLCK, msvcrt.locking = 0, 1, 2, _locking
