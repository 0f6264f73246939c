"""Writing files: a whole one, or none."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a path to write to; what was written takes the place of the file at the end, or not at all."""
    target = path.resolve()
    if target.exists() and not target.is_file():  # such as /dev/stdout
        yield target
        return
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield new
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
