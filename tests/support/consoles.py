"""The ```console blocks of pages, run in a folder, and what they show; and other processes of tests."""

import doctest
import os
import re
import subprocess
import sys

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def in_console(page):
    """(command, what it prints) of the ```console blocks of a page."""
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.replace("\\\n> ", "").partition("\n")
            yield command, output


def unlike(page, folder):
    """(command, printed) where a ```console block shows something else, in a folder with the ```toml blocks
    whose first line is a comment with a file's name."""
    named = r"^```toml\n# (\S+)\n(.*?)^```"
    for name, content in re.findall(named, page.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        (folder / name).write_text(content)
    found = []
    for command, expected in in_console(page):
        done = shell(command, folder)
        printed = done.stdout or done.stderr
        if not doctest.OutputChecker().check_output(expected, printed, OPTIONS):
            found.append((command, printed, done.stderr))
    return found


def shell(command, folder, **environment):
    """The process of a command, where `lexbandits` and `python` are those of the tests."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, words in {"lexbandits": " -m lexbandits", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        (programs / name).chmod(0o755)
    known = {key: value for key, value in os.environ.items() if key != "LEXBANDITS_STORAGE"}
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**known, "PATH": f"{programs}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )


HEEDING = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN if str(int(number)) in sys.argv[1].split() else signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def heeding(command, ignored=()):
    """The command, heeding Ctrl-C and hang-ups but those ignored: who runs the tests may ignore them."""
    return [sys.executable, "-c", HEEDING, " ".join(str(int(number)) for number in ignored), *command]


HOLD = ("--lease", "1h")  # a machine that stands still for a minute would let two trials expire


def start_run(*words, ignored=(), program=("-m", "lexbandits")):
    """`lexbandits run study.toml …`, heeding all signals but those ignored, whatever we ignore."""
    command = [sys.executable, *program, "run", "study.toml", *HOLD, *map(str, words)]
    return subprocess.Popen(
        heeding(command, ignored), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def forked(work):
    """A child of this process that does this, ends with code 0 if it was true, and never goes on testing."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return child
