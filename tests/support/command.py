"""The command `lexbandits`, in this process or in one of its own, and other code in a process of its own."""

import json
import os
import subprocess
import sys
import textwrap

from typer.testing import CliRunner

from lexbandits.cli.main import app
from support import TESTS

LIMIT = 240  # seconds: only says that it never ends


def invoked(*words, storage=None, app=app, **options):
    """What a command did, in this process."""
    environment = {} if storage is None else {"LEXBANDITS_STORAGE": str(storage)}
    return CliRunner().invoke(app, [str(word) for word in words], env=environment, **options)


def run(*words, code=0, **options):
    """The same; it ended with this exit code."""
    done = invoked(*words, **options)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def said(*words, code=0):
    """The one JSON document that it prints."""
    return json.loads(run(*words, "--json", code=code).stdout)


def process(*words, storage=None, **options):
    """`python -m lexbandits …`, in a process of its own."""
    environment = dict(os.environ) if storage is None else {**os.environ, "LEXBANDITS_STORAGE": str(storage)}
    command = [sys.executable, "-m", "lexbandits", *map(str, words)]
    options = {"env": environment, "capture_output": True, "text": True, "timeout": LIMIT, **options}
    return subprocess.run(command, **options)


def python(code, *words):
    """The command of a process that runs this code, with `os`, `sys`, `time`, `lb` and `questions`."""
    prelude = f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
    prelude += "import os, time, lexbandits as lb\nfrom support.questions import *\n"
    return [sys.executable, "-c", prelude + textwrap.dedent(code), *map(str, words)]
