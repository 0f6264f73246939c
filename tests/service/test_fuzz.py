"""The service keeps to its own description, whatever is sent: schemathesis, every check, links followed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def schemathesis():
    own = HERE.parents[1] / ".venv-fuzz" / "bin" / "schemathesis"
    found = str(own) if own.exists() else os.environ.get("SCHEMATHESIS") or shutil.which("schemathesis")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no schemathesis here: make .venv-fuzz/.ready")
        pytest.skip("no schemathesis here: make .venv-fuzz/.ready")
    return found


def cases(schemathesis, service, folder, *options):
    """How many cases it tried; all of them passed."""
    done = subprocess.run(
        [
            *(
                schemathesis,
                f"--config-file={HERE / 'schemathesis.toml'}",
                "run",
                f"{service.address}/openapi.json",
            ),
            *("--header", f"Authorization: Bearer {service.token}", "--checks=all", "--seed=1"),
            *("--continue-on-failure", "--no-shrink", "--request-timeout=60", *options),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return int(re.search(r"(\d+) generated", done.stdout)[1])


@pytest.mark.slow
def test_a_long_try(schemathesis, service, tmp_path):
    assert cases(schemathesis, service, tmp_path, "--max-examples=40") >= 2000
