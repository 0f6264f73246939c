"""One file of HTML: its frame and its sections; words of TOML."""

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from markupsafe import Markup, escape

from lexbandits.picture.svg import Part, kept_together, tag
from lexbandits.printable import printable

FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}


def kind_of(path: Path, format: str | None) -> str:
    """ "html" or "md": as given, or by the name of the file."""
    kind = format or FORMATS.get(path.suffix.lower(), "html")
    if kind not in ("html", "md"):
        raise ValueError(f'format must be "html" or "md", got {format!r}')
    return kind


def style() -> str:
    """The style sheet that page and report share."""
    return (files("lexbandits") / "picture" / "style.css").read_text("utf-8")


def page_of(title: str, body: Markup, units: Iterable[str]) -> str:
    """The whole file, which needs no other."""
    template = Template((files("lexbandits") / "insight" / "report.html").read_text("utf-8"))
    return template.substitute(title=escape(title), style=style(), body=kept_together(body, units))


def section(title: str, *content: Part, full: bool = False) -> Markup:
    """A part of it."""
    return tag("section", tag("h2", title), tag("div", content), kind="full" if full else None)


def toml_word(found: Any) -> str:
    """A value as TOML has it."""
    if isinstance(found, (list, tuple)):
        return f"[{', '.join(map(toml_word, found))}]"
    return printable(json.dumps(found, ensure_ascii=False))  # JSON's text, numbers and booleans are TOML's
