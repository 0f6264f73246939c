"""Write llms.txt: every page of the documents with its title and first sentence, for language models."""

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTIONS = {
    "Decide from a table": ["judge", "gate", "in-your-words", "cross-validation", "testing"],
    "Measure live": [
        "live",
        "timing",
        "getting-started",
        "studies",
        "noise",
        "planning",
        "report",
        "practice",
        "service",
        "serving",
    ],
}


def entry(page: Path) -> str:
    """Return the line of one page."""
    text = page.read_text("utf-8")
    title = text.partition("\n")[0].lstrip("# ")
    prose = re.sub(r"(?s)```.*?```|^[#>|!\[].*?$", "", text.partition("\n")[2], flags=re.MULTILINE).strip()
    words = " ".join(prose.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.?]) ", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words))[0]
    short = textwrap.shorten(sentence, 200, placeholder=" …")
    return f"- [{title}]({page.relative_to(ROOT).as_posix()}): {short}"


def llms() -> str:
    """Return the whole file."""
    about = re.search(r"\*\*(.+?)\*\*(.+?)\n\n", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert about is not None
    lines = ["# lexbandits", "", f"> {' '.join((about[1] + about[2]).split())}", ""]
    lines += ["Coding agents start with [docs/agents.md](docs/agents.md).", ""]
    pages = {page.stem: page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem != "index"}
    for title, names in SECTIONS.items():
        lines += [f"## {title}", "", *(entry(pages.pop(name)) for name in names if name in pages), ""]
    lines += ["## Research and reference", "", *map(entry, pages.values()), ""]
    lines += [entry(ROOT / name) for name in ("PAPER.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md")]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "llms.txt").write_text(llms(), "utf-8")
