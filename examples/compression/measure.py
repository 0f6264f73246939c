"""Compress a sample of text with one codec at one level: how small, how fast?

python measure.py CODEC LEVEL ITEM. The sample of an item is made of the source files of Python's own library
on this machine, so that all codecs are measured on the same text.
"""

import bz2
import json
import lzma
import random
import sys
import sysconfig
import time
import zlib
from pathlib import Path

CODECS = {
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "lzma": lambda data, level: lzma.compress(data, preset=level),
}


def sample(item: str, size: int = 150_000) -> bytes:
    """Files drawn by the item, one after the other, until there is enough."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(library.glob("*.py"))
    random.Random(item).shuffle(files)
    text = b""
    while len(text) < size:
        text += files.pop().read_bytes()
    return text[:size]


def main() -> None:
    """Print the values as JSON, the last line that `lexbandits run` reads."""
    codec, level, item = sys.argv[1:]
    data = sample(item)
    start = time.process_time()
    packed = CODECS[codec](data, int(level))
    seconds = time.process_time() - start
    print(json.dumps({"ratio": 100 * len(packed) / len(data), "speed": len(data) / 1e6 / seconds}))


if __name__ == "__main__":
    main()
