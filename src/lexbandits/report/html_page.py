"""One file of HTML: its frame and its sections; words of TOML."""

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from markupsafe import Markup, escape

from lexbandits._code import Code
from lexbandits._printable import printable
from lexbandits.study.number_format import toml_key
from lexbandits.views.svg import Part, kept_together, tag


class Format(Code):
    """What a report is written as."""

    HTML = "html"
    MARKDOWN = "md"


OF_SUFFIX = {".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN}


def format_of(path: Path, format: str | None) -> Format:
    """As given, or by the name of the file; HTML unless it is Markdown's."""
    try:
        return Format(format) if format else OF_SUFFIX.get(path.suffix.lower(), Format.HTML)
    except ValueError:
        raise ValueError(f'format must be "html" or "md", got {format!r}') from None


def style() -> str:
    """The style sheet that page and report share."""
    return (files("lexbandits") / "views" / "style.css").read_text("utf-8")


def page_of(title: str, body: Markup, units: Iterable[str]) -> str:
    """The whole file, which needs no other."""
    template = Template((files("lexbandits") / "report" / "report.html").read_text("utf-8"))
    return template.substitute(title=escape(title), style=style(), body=kept_together(body, units))


def section(title: str, *content: Part, full: bool = False) -> Markup:
    """A part of it."""
    return tag("section", tag("h2", title), tag("div", content), kind="full" if full else None)


def toml_word(found: Any) -> str:
    """A value as TOML has it."""
    if isinstance(found, (list, tuple)):
        return f"[{', '.join(map(toml_word, found))}]"
    if isinstance(found, dict):
        return f"{{{', '.join(f'{toml_key(key)} = {toml_word(word)}' for key, word in found.items())}}}"
    return printable(json.dumps(found, ensure_ascii=False))  # JSON's text, numbers and booleans are TOML's
