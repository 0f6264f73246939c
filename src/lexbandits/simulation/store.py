"""A folder of finished blocks: a manifest and, for each cell, files written whole or not at all."""

import hashlib
import io
import json
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

import lexbandits
from lexbandits._files import beside
from lexbandits._validation import difference
from lexbandits.simulation.code import UNKNOWN
from lexbandits.simulation.replicate import Runs

FORMAT = 2
MANIFEST, LOCK = "manifest.json", "sweep.lock"
DESCRIBED = {"policy", "settings", "instance", "horizon", "stream", "recording", "code"}
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


def block_size(horizon: int) -> int:
    """Replications per block: a few seconds of work at most, and a function of the cell alone, so that
    neither workers nor the number of replications move a bound."""
    return min(64, max(1, 10**8 // max(1, horizon)))


class Store(NamedTuple):
    """The folder of one sweep: its seed, the descriptions of its cells, and their blocks."""

    folder: Path
    seed: int
    cells: dict[str, Any]

    @classmethod
    def opened(cls, folder: str | Path) -> Self:
        """An existing folder."""
        path = Path(folder)
        manifest = _manifest(path)
        if manifest is None:
            raise ValueError(f"{path} holds no sweep: it has no {MANIFEST}")
        _check_same(path, {"format": manifest["format"]}, {"format": FORMAT})
        return cls(path, manifest["seed"], manifest["cells"])

    @classmethod
    @contextmanager
    def prepared(cls, folder: str | Path, seed: int, cells: Mapping[str, Any]) -> Iterator[Self]:
        """A new or old folder for these cells, held alone; an error names how another sweep's differs."""
        path = Path(folder)
        if _manifest(path) is None and path.exists() and any(entry.name != LOCK for entry in path.iterdir()):
            raise ValueError(f"{path} is not empty and holds no sweep: it has no {MANIFEST}")
        path.mkdir(parents=True, exist_ok=True)
        with _alone(path):
            here: dict[str, Any] = {"format": FORMAT, "version": lexbandits.__version__, "seed": seed}
            there = _manifest(path) or here
            known, told = there.pop("cells", {}), json.loads(json.dumps(cells))
            _check_same(path, there, here)
            for name in told.keys() & known.keys():
                _check_same(path, known[name], told[name], f"cell {name!r}: ")
                for part, code in told[name]["code"].items():
                    if code == UNKNOWN:
                        raise ValueError(
                            f"{path} holds cell {name!r}, but its {part} {UNKNOWN} with what made those "
                            "runs: give another folder"
                        )
            store = cls(path, seed, {**known, **told})
            with beside(path / MANIFEST) as new:
                new.write_text(json.dumps({**here, "cells": store.cells}, indent=1), "utf-8")
            yield store

    def read(self, name: str) -> dict[int, Runs]:
        """The sound blocks of a cell by their first replication; a bad file is named in a warning."""
        blocks = {}
        for path in sorted(self._home(name).glob("[0-9]*.npz")):
            if path.is_dir():
                raise ValueError(f"{path} is a folder where a file of results belongs: move it away")
            try:
                blocks[int(path.stem)] = self._read_block(name, path)
            except UNREADABLE as error:
                warnings.warn(f"{path} is no block of this sweep ({error}): computed again", stacklevel=3)
        return blocks

    def write(self, name: str, block: Runs) -> None:
        """Put a block on disk, whole or not at all."""
        home = self._home(name)
        home.mkdir(parents=True, exist_ok=True)
        with beside(home / f"{block.replication[0]:08d}.npz") as new:
            np.savez_compressed(new, identity=self._identity(name), **block._asdict())

    def _read_block(self, name: str, path: Path) -> Runs:
        content = io.BytesIO(path.read_bytes())  # np.load leaves a file it cannot read open
        with np.load(content, allow_pickle=False) as file:
            if str(file["identity"]) != self._identity(name):
                raise ValueError("it belongs to another sweep or cell")
            block = Runs(*(file[field] for field in Runs._fields))
        told = self.cells[name]
        first, size = int(path.stem), block_size(told["horizon"])
        expected = np.arange(first, first + len(block.rounds))
        if first % size or not 0 < expected.size <= size or not np.array_equal(block.replication, expected):
            raise ValueError("its replications are not those of its name")
        return block

    def _identity(self, name: str) -> str:
        told = [FORMAT, lexbandits.__version__, self.seed, name, self.cells[name]]
        return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()

    def _home(self, name: str) -> Path:
        # the digest tells apart names that differ only in what a file name cannot hold
        digest = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
        return self.folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:40]}-{digest}"


def _manifest(folder: Path) -> dict[str, Any] | None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; results go into a folder")
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        seed, cells = manifest["seed"], manifest["cells"]
        complete = all(cell.keys() == DESCRIBED for cell in cells.values())
        if not isinstance(seed, int) or not (complete or manifest["format"] != FORMAT):
            raise TypeError
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{folder / MANIFEST} is not the manifest of a sweep") from None
    return dict(manifest)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder: the system lets go of it however this process ends."""
    with (folder / LOCK).open("w") as file:
        with suppress(ImportError):  # elsewhere than on Unix nobody is kept out
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"another sweep is running in {folder}") from None
        yield


def _check_same(folder: Path, there: Any, here: Any, where: str = "") -> None:
    if differs := difference(there, here):
        raise ValueError(f"{folder} holds another sweep: {where}{differs}")
