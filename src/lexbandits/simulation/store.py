"""A folder of finished blocks: a manifest and, for each cell, files written whole or not at all."""

import hashlib
import io
import json
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

import lexbandits
from lexbandits.simulation.replicate import Runs

Description = Mapping[str, Any]

FORMAT = 1
MANIFEST = "manifest.json"
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


def block_size(horizon: int) -> int:
    """Replications per block: a few seconds of work at most, and a function of the cell alone, so that
    neither workers nor the number of replications move a bound."""
    return min(64, max(1, 10**8 // max(1, horizon)))


class Store:
    """The folder of one sweep: its seed, the descriptions of its cells, and their blocks."""

    def __init__(self, folder: Path, seed: int, cells: dict[str, Any]) -> None:
        self.folder, self.seed, self.cells = folder, seed, cells

    @classmethod
    def opened(cls, folder: str | Path) -> Self:
        """An existing folder."""
        path = Path(folder)
        manifest = _manifest(path)
        if manifest is None:
            raise ValueError(f"{path} holds no sweep: it has no {MANIFEST}")
        return cls(path, manifest["seed"], manifest["cells"])

    @classmethod
    def prepared(cls, folder: str | Path, seed: int, cells: Mapping[str, Description]) -> Self:
        """A new or existing folder for these cells; an error names how another sweep's differs."""
        path = Path(folder)
        described = json.loads(json.dumps(cells))
        manifest = _manifest(path)
        if manifest is None:
            if path.exists() and any(path.iterdir()):
                raise ValueError(f"{path} is not empty and holds no sweep: it has no {MANIFEST}")
            known = {}
        else:
            known = manifest["cells"]
            here = {"format": FORMAT, "version": lexbandits.__version__, "seed": seed}
            _check_same(path, manifest, here)
            for name in described.keys() & known.keys():
                _check_same(path, known[name], described[name], f"cell {name!r}: ")
        store = cls(path, seed, {**known, **described})
        if store.cells != known or manifest is None:
            path.mkdir(parents=True, exist_ok=True)
            text = {
                "format": FORMAT,
                "version": lexbandits.__version__,
                "seed": seed,
                "cells": store.cells,
            }
            _write_whole(path / MANIFEST, json.dumps(text, indent=1).encode())
        return store

    def read(self, name: str) -> dict[int, Runs]:
        """The sound blocks of a cell by their first replication; a bad file is named in a warning."""
        blocks = {}
        for path in sorted(self._home(name).glob("*.npz")):
            try:
                blocks[int(path.stem)] = self._read_block(name, path)
            except UNREADABLE as error:
                warnings.warn(f"{path} is no block of this sweep ({error}): computed again", stacklevel=3)
        return blocks

    def write(self, name: str, block: Runs) -> None:
        """Put a block on disk, whole or not at all."""
        home = self._home(name)
        home.mkdir(parents=True, exist_ok=True)
        memory = io.BytesIO()
        np.savez_compressed(memory, identity=self._identity(name), **block._asdict())
        _write_whole(home / f"{block.replication[0]:08d}.npz", memory.getvalue())

    def _read_block(self, name: str, path: Path) -> Runs:
        content = io.BytesIO(path.read_bytes())  # np.load leaves a file it cannot read open
        with np.load(content, allow_pickle=False) as file:
            if str(file["identity"]) != self._identity(name):
                raise ValueError("it belongs to another sweep or cell")
            block = Runs(*(file[field] for field in Runs._fields))
        first, size = int(path.stem), block_size(self.cells[name]["horizon"])
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
        text = (folder / MANIFEST).read_text()
    except FileNotFoundError:
        return None
    try:
        manifest: dict[str, Any] = json.loads(text)
        manifest["format"], manifest["version"], manifest["seed"], dict(manifest["cells"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{folder / MANIFEST} is not the manifest of a sweep") from None
    return manifest


def _check_same(folder: Path, there: Any, here: Any, where: str = "") -> None:
    """Compare what `here` says with what `there` says, down to the innermost key."""
    for key, value in here.items():
        other = there.get(key) if isinstance(there, dict) else None
        if isinstance(value, dict) and isinstance(other, dict):
            _check_same(
                folder, {**dict.fromkeys(value), **other}, {**dict.fromkeys(other), **value}, f"{where}{key}."
            )
        elif value != other:
            differs = f"{where}{key} is {_short(other)} there and {_short(value)} here"
            raise ValueError(f"{folder} holds another sweep: {differs}")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _write_whole(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
