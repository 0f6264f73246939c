"""What a disk holds after a power cut: a process is watched while it writes, any moment can be rebuilt."""

import os
import shutil
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECTOR = 512  # bytes that a disk writes as one
LOST = ("-shm", ".lock", ".queue")  # never read after a restart


def compiled(folder):
    """The library to preload."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: install gcc to cut the power")
    library = Path(folder) / "power_cut.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", library, HERE / "power_cut.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


def watching(library, file, log):
    """The environment in which a process is watched."""
    watched = {"LD_PRELOAD": str(library), "POWER_CUT_FILE": str(file), "POWER_CUT_LOG": str(log)}
    return {**os.environ, **watched}


def operations(log):
    """(kind, path, offset, data) in order; the last may have been cut off with the process."""
    content, at, found = Path(log).read_bytes(), 0, []
    while at + 32 <= len(content):
        kind, path, offset, length = struct.unpack_from("<4q", content, at)
        end = at + 32 + path + length
        if end > len(content):
            break
        name = content[at + 32 : at + 32 + path].decode()
        found.append((chr(kind), name, offset, content[at + 32 + path : end]))
        at = end
    return found


class Disk:
    """Files as they are on the disk, and what has not been synced yet.

    A file's own sync makes its contents safe, that of its folder its being there or not.
    """

    def __init__(self):
        self.contents = {}  # path -> what is safe of a file that exists
        self.pending = {}  # path -> writes since its last sync
        self.unsafe_names = {}  # path -> what is there if the change of its name is lost; None: no file

    def apply(self, kind, path, offset, data):
        if kind in "wt":
            if path not in self.contents:
                self.unsafe_names.setdefault(path, None)
                self.contents[path], self.pending[path] = b"", []
            self.pending[path].append((kind, offset, data))
        elif kind == "s":
            if path in self.contents:
                self.contents[path] = self._after(path, lambda write: [write])
                self.pending[path] = []
        elif kind == "d":
            self.unsafe_names.clear()
        elif kind == "u":
            if path in self.contents:
                gone = self._after(path, lambda write: [write])
                if self.unsafe_names.get(path, b"") is not None:
                    self.unsafe_names[path] = gone
                del self.contents[path], self.pending[path]
        else:
            raise AssertionError(f"SQLite renames nothing in a study: {path}")

    def _after(self, path, survivors):
        content = bytearray(self.contents[path])
        for write in self.pending[path]:
            for kind, offset, data in survivors(write):
                end = offset + len(data)
                if kind == "t":
                    content = content[:offset] + bytes(max(0, offset - len(content)))
                else:
                    content += bytes(max(0, end - len(content)))
                    content[offset:end] = data
        return bytes(content)

    def after_cut(self, how, luck):
        """path -> contents: what was not synced is "dropped", "kept", or "torn" sector by sector."""

        def survivors(write):
            if how != "torn":
                return [write] if how == "kept" else []
            kind, offset, data = write
            if kind == "t":
                return [write] if luck.random() < 0.5 else []
            ends = sorted({0, *range(-offset % SECTOR, len(data), SECTOR), len(data)})
            parts = [(kind, offset + a, data[a:b]) for a, b in pairwise(ends)]
            return [part for part in parts if luck.random() < 0.5]

        found = {path: self._after(path, survivors) for path in self.contents}
        for path, before in self.unsafe_names.items():
            if how == "dropped" or (how == "torn" and luck.random() < 0.5):
                found.pop(path, None)
                if before is not None:
                    found[path] = before
        return found


def rebuild(disk, how, luck, folder):
    """Write what survives a cut into another folder."""
    folder.mkdir()
    for path, content in disk.after_cut(how, luck).items():
        if not path.endswith(LOST):
            (folder / Path(path).name).write_bytes(content)
