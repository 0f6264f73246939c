"""What people and programs give, fit to be shown: no escape reaches a terminal, and JSON can say it."""

import math
import re
import unicodedata
from typing import Any

MENTION = re.compile(r"(?<![\w.])@(?=\w)")  # not in recall@10, nor in an address


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text with what a terminal would obey, or not show, written out; with `lines`, their ends stay.

    >>> print(printable("red: \x1b[31m, two\nlines"))
    red: \u001b[31m, two\nlines
    """
    if text.isprintable():
        return text
    return "".join(
        char if _is_harmless(char) or (lines and char == "\n") else _written(char) for char in text
    )


def unmarked(text: str) -> str:
    r"""The text, printable, in which Markdown sees nothing special, and GitHub nobody to notify.

    >>> print(unmarked("a|b_c @team, recall@10"))
    a\|b\_c @&#8288;team, recall@10
    """
    text = printable(text)
    for sign in "\\`*_[]<>|#":
        text = text.replace(sign, f"\\{sign}")
    return MENTION.sub("@&#8288;", text)  # a joiner without width, in letters that every terminal has


def _is_harmless(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _written(char: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return short.get(char) or (f"\\u{ord(char):04x}" if ord(char) < 2**16 else f"\\U{ord(char):08x}")


def plain(words: Any) -> Any:
    """As JSON can say it: nan and infinity are null, − 0 is 0.

    >>> plain({"mean": math.nan, "ends": (-0.0, math.inf)})
    {'mean': None, 'ends': [0.0, None]}
    """
    if isinstance(words, float):
        return float(words) + 0.0 if math.isfinite(words) else None
    if isinstance(words, dict):
        return {key: plain(word) for key, word in words.items()}
    return [plain(word) for word in words] if isinstance(words, (list, tuple)) else words
