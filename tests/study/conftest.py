"""Storages to test on: memory, SQLite, PostgreSQL and the service."""

import subprocess
from pathlib import Path

import pytest

from lexbandits.study.storage.contract import open_storage
from lexbandits.study.storage.memory import MemoryStorage
from support.services import Clocked, fast


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    """The address of an empty database."""
    return _sqlite(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: who does needs no --storage."""
    monkeypatch.delenv("LEXBANDITS_STORAGE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a disk here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def remount(disk):
    """The disk changes: its size, or whether it may be written."""
    return lambda how: subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


def _sqlite(folder: Path) -> str:
    """Safe against kill -9, not against a power cut: much faster."""
    return f"sqlite:///{folder}/study.db?synchronous=OFF"


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """A service for studies that are tested over http as they are here."""
    service = Clocked(fast(tmp_path_factory.mktemp("service")))
    yield service
    assert "Traceback" not in service.stop()[1]


@pytest.fixture(params=["memory", "sqlite", "postgres", "http"])
def storage(request, tmp_path, monkeypatch):
    """An empty storage."""
    if request.param == "http":
        service = request.getfixturevalue("running")
        service.clear()
        monkeypatch.setattr("lexbandits.study.storage.http.VISITOR_WAITS", 600.0)
        yield open_storage(service.link)
        return
    if request.param == "memory":
        yield MemoryStorage()
        return
    place = _sqlite(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres")
    opened = open_storage(place)
    yield opened
    opened.close()
