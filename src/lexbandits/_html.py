"""Elements of HTML and SVG, escaped by default, and round numbers for an axis."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from markupsafe import Markup, escape

Part: TypeAlias = "str | bool | Iterable[Part] | None"

VOID = ("col", "br", "input", "meta")
DRAWN = ("line", "circle", "rect", "path")  # without children
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # not shown
READ = {"title", "aria_label"}  # by people; what other attributes hold, scripts take as it is
STEPS = (1, 2, 2.5, 5)  # of an axis; of five ticks or more the next step keeps two


def tag(name: str, /, *children: Part, **attributes: Any) -> Markup:
    """An element. `kind` is its class, an underscore in a name a hyphen; None and False are left out.

    >>> str(tag("td", "a < b", tag("b", "!"), kind="num", data_arm='"x"', hidden=None))
    '<td class="num" data-arm="&#34;x&#34;">a &lt; b<b>!</b></td>'
    """
    given = {k: v for k, v in attributes.items() if v is not None and v is not False and v != ""}
    given |= {k: _harmless(given[k]) for k in given.keys() & READ}
    names = {k: "class" if k == "kind" else k.rstrip("_").replace("_", "-") for k in given}
    shown = "".join(f' {names[k]}="{escape("" if v is True else v)}"' for k, v in given.items())
    if name in VOID or name in DRAWN:
        return Markup(f"<{name}{shown}{'/' if name in DRAWN else ''}>")
    return Markup(f"<{name}{shown}>{join(children)}</{name}>")


def join(parts: Part) -> Markup:
    r"""Parts in a row; what is not markup is escaped, nothing stands for None and False.

    >>> print(join(["a\u202eb", None, "<"]))
    a\u202eb&lt;
    """
    return Markup("").join(_flat(parts))


def _flat(part: Part) -> Iterator[str]:
    if isinstance(part, str):
        yield _harmless(part)
    elif part is not None and not isinstance(part, bool):
        for each in part:
            yield from _flat(each)


def _harmless(text: str) -> str:
    """The text, in which nothing turns around or hides what stands beside it."""
    return text if isinstance(text, Markup) else OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def round_step(low: float, high: float, most: int) -> tuple[float, int]:
    """A round step with at most so many multiples between two ends, and its decimal places.

    >>> round_step(0.0, 9.0, 4)
    (2.5, 1)
    """
    power = math.floor(math.log10((high - low) / most))
    for k in range(3 * len(STEPS)):
        factor, power_of = STEPS[k % len(STEPS)], power + k // len(STEPS)
        step = factor * 10.0**power_of
        if math.floor(high / step) - math.ceil(low / step) + 1 <= most:
            break
    return step, max(0, -power_of + (factor == 2.5))
