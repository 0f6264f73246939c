"""One name per thing, in package, documents, experiments, benchmarks and what tests share (`make check`).

1. A string that is compared in two files is a code, and codes are enums: defined once, misspelt never.
2. A word that was replaced by the field's stays replaced: as an identifier or a part of one, as the name of a
   file, as a setting or as a code in quotes.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

# Literals that two files may compare, and why.
ALLOWED = {
    "__main__": "Python's own name of the module that was started",
    "http": "a scheme of addresses, and ASGI's name of a kind of scope",
    "http.disconnect": "ASGI's name of a message",
    "https": "a scheme of addresses",
}

# How a word is looked for.
PART = "part"  # a part of any identifier, in snake_case or CamelCase; a word with no other meaning in code
NAME = "name"  # an identifier as a whole: as a part of one, and in prose, it means what it always does
CLASS = "class"  # the name of a class
PARAMETER = "parameter"  # of a function, or what an argument is called
FILE = "file"  # the name of a file or folder, without its ending; `*` stands for anything
QUOTED = "quoted"  # a code in quotes or backticks
PHRASE = "phrase"  # anywhere in the text

WORDS = {
    # where an assumption is contradicted
    "strain": (PART, "diagnostic"),
    "strains": (PART, "diagnostics"),
    "strained": (PART, "assumption_warning"),
    # sentences and fields
    "said": (FILE, "messages"),
    "*_said": (FILE, "messages"),  # and of functions: `_in_parts`
    "happened": (PART, "activity"),
    # the service
    "rooms": (PART, "registry, OpenStudy"),
    "Room": (CLASS, "OpenStudy"),
    "thoughts": (PART, "analyses, JobQueue"),
    "thinking": (PART, "analysis"),
    "Turn": (CLASS, "UnitOfWork"),
    # evidence
    "stretches": (FILE, "projection"),
    "once": (FILE, "fixed_sample"),
    "boundary": (FILE, "betting"),
    "faces": (FILE, "tradeoff_cone"),
    "facts": (FILE, "anytime"),
    "account": (PART, "alpha budget"),
    'rules="declared"': (PHRASE, "preregistered=True"),
    'rules="open"': (PHRASE, "preregistered=False"),
    # policies
    "told": (FILE, "validation"),
    "scrutiny": (PART, "validation"),
    "waiting": (FILE, "buffer"),
    "list_*": (FILE, "finite/"),
    "Listed": (CLASS, "a finite population"),
    "desk": (PART, "scratch arrays"),
    "manner": (PART, "options"),
    "drafts": (PART, "what the array holds"),
    "lows": (PART, "what the array holds"),
    "who": (NAME, "what the mask holds"),
    "certain": (NAME, "exact"),
    "for certain": (PHRASE, "certified, or exact"),
    "large_sample": (NAME, "asymptotic"),
    "is_in": (NAME, "shown_to_meet"),
    "is_under": (NAME, "shown_to_miss"),
    "looks_in": (NAME, "seems_to_meet"),
    "some_closest": (NAME, "is_closest_somewhere"),
    "convict": (PART, "reject"),
    "convicted": (PART, "rejected"),
    "Thresholds": (CLASS, "ToleranceSettings"),
    # compiling
    "apart": (NAME, "kernel(inline=…), or what the distance is"),
    "written_in": (NAME, "kernel(inline=…)"),
    "rehearsal": (PART, "warm-up"),
    # the core of a study
    "ledger": (PART, "projection"),
    "Fold": (CLASS, "replay"),
    # what became of an arm
    "Way": (CLASS, "Decision"),
    "Exit": (CLASS, "ArmOutcome"),
    "fate": (PART, "outcome"),
    "fates": (PART, "outcomes"),
    "standing": (PART, "outcome"),
    # English: fused relatives and sentence plans of another language
    "unless said": (PHRASE, "by default"),
    "of ours": (PHRASE, "internal, or whose it is"),
    "that is there": (PHRASE, "existing"),
    "for who ": (PHRASE, "what the caller is"),
    "come again and again": (PHRASE, "is repeated"),
    "came again and again": (PHRASE, "is repeated"),
    "No chance is involved": (PHRASE, "no sampling error is involved"),
    "not told apart": (PHRASE, "undecided"),
    "not ruled out": (PHRASE, "undecided"),
    "of 10 parts": (PHRASE, "% of the evidence"),
    "gives up at most": (PHRASE, "is at most … below the best"),
    "the best choice at": (PHRASE, "wins: certified at"),
    # views
    "picture": (PART, "StudyView, VerdictView"),
    "View": (CLASS, "StudyView, VerdictView"),
    "Judged": (CLASS, "VerdictView"),
    "Shown": (CLASS, "what it is of a view"),
    "rung": (PART, "objective row"),
    "pill": (PART, "badge"),
    "ladder": (PART, "arms table"),
    # simulation and experiments
    "world": (FILE, "environments"),
    "needed": (FILE, "sample_size"),
    "informed": (FILE, "oracle_settings"),
    "habits": (FILE, "common_practice"),
    "ignorance": (FILE, "misspecification"),
    "tape": (FILE, "common_random_numbers"),
    # forecasting
    "beliefs": (PART, "posterior"),
    "Guess": (CLASS, "prior"),
    "World": (CLASS, "scenario"),
    # settings
    "looks": (PARAMETER, "sequential"),
    "about": (PARAMETER, "scope"),
    "named": (PARAMETER, "candidate"),
    "settle": (PARAMETER, "stop_when"),
    "more=True": (PHRASE, "partial=True"),
    "go on": (QUOTED, "continue"),
    # codes
    "large-sample": (QUOTED, "asymptotic"),
    "arm given up": (QUOTED, "arm_excluded"),
    "closest to the target": (QUOTED, "infeasible"),
    "missing results decide": (QUOTED, "undetermined_missing"),
    "imported unfairly": (QUOTED, "biased_import"),
    "certain at the study's confidence": (PHRASE, "certified at 95 % confidence"),
    "certain with probability at least": (PHRASE, "certified at 95 % confidence"),
    "proven worse": (PHRASE, "shown to be worse (95 %)"),
}

PLANTED = {"words.py"}  # it names replaced words to look for them


class Found(NamedTuple):
    """Something to be said otherwise, and where it stands."""

    word: str
    where: str
    why: str


# --- literals


def compared(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Strings of two or more characters that something is compared with, and their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.MatchValue):
            yield from _texts(node.value)
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(operator, ast.Eq | ast.NotEq):
                yield from _texts(left)
                yield from _texts(right)
            if isinstance(operator, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
                for each in right.elts:
                    yield from _texts(each)


def _texts(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 1:
        yield node.value, node.lineno


def literals(sources: Iterable[tuple[str, str]]) -> Iterator[Found]:
    """Literals that two or more of the (name, text) compare."""
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for name, text in sources:
        for literal, line in compared(ast.parse(text)):
            places[literal].setdefault(name, line)
    for literal, lines in sorted(places.items()):
        if len(lines) > 1 and literal not in ALLOWED:
            where = ", ".join(f"{name}:{line}" for name, line in lines.items())
            yield Found(literal, where, "is compared in several files: make it a member of an enum")


# --- words

OF = {
    how: {word: instead for word, (mode, instead) in WORDS.items() if mode == how}
    for how in (PART, NAME, CLASS, PARAMETER, FILE, QUOTED, PHRASE)
}
FILES = {word: re.compile(re.escape(word).replace(r"\*", r"\w+")) for word in OF[FILE]}
TEXTS = {
    **{word: re.compile(rf"""(["'`]){re.escape(word)}\1""") for word in OF[QUOTED]},
    **{word: re.compile(re.escape(word)) for word in OF[PHRASE]},
}


def parts(identifier: str) -> list[str]:
    """Return the words of an identifier: `OpenStudy`, `open_study` and `open-study` have the same two."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]


def of_python(name: str, text: str) -> Iterator[Found]:
    """Replaced words among the identifiers of a program."""
    for node in ast.walk(ast.parse(text)):
        where = f"{name}:{getattr(node, 'lineno', 1)}"
        for field in ("id", "name", "attr", "arg", "asname"):
            identifier = getattr(node, field, None)
            if isinstance(identifier, str):
                yield from _in_parts(identifier, where)
                yield from _as(NAME, identifier, where)
        if isinstance(node, ast.ClassDef):
            yield from _as(CLASS, node.name, where)
        if isinstance(node, ast.Assign | ast.AnnAssign):  # the name of a type, too
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                yield from _as(CLASS, getattr(target, "id", ""), where)
        if _is_dict_of_words(node):
            yield Found("words", where, "say fields, options or payload: it is a dict")
        if isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield from _as(PARAMETER, node.arg, where)


def _is_dict_of_words(node: ast.AST) -> bool:
    """`**words`, `words["key"]`, `words: dict[…]`."""
    if isinstance(node, ast.keyword):
        return node.arg is None and getattr(node.value, "id", "") == "words"
    if isinstance(node, ast.Subscript):
        return getattr(node.value, "id", "") == "words" and isinstance(getattr(node.slice, "value", None), str)
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        name = node.arg if isinstance(node, ast.arg) else getattr(node.target, "id", "")
        return name == "words" and ast.unparse(node.annotation).startswith(("dict[", "Mapping["))
    return False


def _in_parts(identifier: str, where: str) -> Iterator[Found]:
    for part in parts(identifier):
        if part in OF[PART]:
            yield Found(part, f"{where} ({identifier})", f"say {OF[PART][part]}")
    if identifier.endswith("_said"):
        yield Found("*_said", f"{where} ({identifier})", "say message")


def _as(how: str, identifier: str, where: str) -> Iterator[Found]:
    if identifier in OF[how]:
        yield Found(identifier, where, f"say {OF[how][identifier]}")


def of_page(name: str, text: str) -> Iterator[Found]:
    """Replaced words among the identifiers of scripts, styles and templates."""
    for number, line in enumerate(text.splitlines(), 1):
        for identifier in re.findall(r"[A-Za-z_][\w-]*", line):
            yield from _in_parts(identifier, f"{name}:{number}")


def of_document(name: str, text: str) -> Iterator[Found]:
    """Replaced words in what a document sets as code; what a command prints is prose."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence = "" if fence else line
        is_printed = fence == "```text" or (fence == "```console" and not line.startswith("$"))
        for code in [] if is_printed else [line] if fence else re.findall(r"`([^`]+)`", line):
            for identifier in re.findall(r"[A-Za-z_][\w-]*", code):
                yield from _in_parts(identifier, f"{name}:{number}")


def of_text(name: str, text: str) -> Iterator[Found]:
    """Replaced codes and phrases, wherever they stand."""
    for word, pattern in TEXTS.items():
        for match in pattern.finditer(text):
            where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            yield Found(word, where, f"say {WORDS[word][1]}")


def of_path(name: str) -> Iterator[Found]:
    """Replaced words as the names of folders and files."""
    for part in Path(name).parts:
        stem = part.partition(".")[0]
        for word, pattern in FILES.items():
            if pattern.fullmatch(stem):
                yield Found(word, name, f"say {WORDS[word][1]}")


READERS = {
    ".py": of_python, ".pyi": of_python, ".md": of_document,
    ".js": of_page, ".css": of_page, ".html": of_page, ".jinja": of_page,
}  # fmt: skip


def words(name: str, text: str) -> Iterator[Found]:
    """All replaced words of a file."""
    yield from of_path(name)
    reader = READERS.get(Path(name).suffix)
    if reader is not None:
        yield from reader(name, text)
        yield from of_text(name, text)


def everything() -> list[Found]:
    """What there is to say otherwise in the repository."""
    package = {
        str(path.relative_to(ROOT / "src/lexbandits")): path.read_text("utf-8")
        for path in sorted((ROOT / "src/lexbandits").rglob("*"))
        if path.suffix in READERS
    }
    texts = ("docs", "examples", "experiments", "benchmarks", "tests")
    code = ("examples", "experiments", "benchmarks", "tests/support", ".ci")
    beside = [
        *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),  # it names old settings
        *(path for place in texts for path in (ROOT / place).rglob("*.md")),
        *(path for place in code for path in (ROOT / place).rglob("*.py") if path.name not in PLANTED),
    ]
    documents = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(beside)}
    programs = [(name, text) for name, text in package.items() if name.endswith(".py")]
    return [
        *literals(programs),
        *(found for name, text in {**package, **documents}.items() for found in words(name, text)),
    ]


def main() -> int:
    """Say what is left, and fail if there is any."""
    found = everything()
    for each in found:
        print(f"{each.where}: {each.word!r} {each.why}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
