"""What everybody sees, written down: sweeps, studies, verdicts, the page, the API, the commands.

Code that is moved about leaves these files as they are; what changes them does so on purpose. `make fence`
writes them anew, and `git diff tests/fence` shows what changed. Nothing in them depends on the machine:
clocks stand still or are moved, numbers are rounded, and versions, digests and nonces are left out.
"""

import asyncio
import hashlib
import inspect
import json
import re
import tempfile
import warnings
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from enum import EnumType
from operator import attrgetter
from pathlib import Path

import httpx2
import numpy as np
import pytest
import typer

import lexbandits as lb
from lexbandits.cli.main import app
from lexbandits.report.verdict_report import in_text
from lexbandits.service.app import make_app
from lexbandits.service.auth import Tokens
from lexbandits.service.fragments import fragments_of
from lexbandits.service.registry import OpenStudy, StudyRegistry
from lexbandits.study.storage.memory import MemoryStorage
from support import stage
from support.cells import EXAMPLES
from support.journals import journal_of, storage_of
from support.public_names import research_names

pytestmark = pytest.mark.filterwarnings("ignore:.*more than once", "ignore:.*may be wrong")
FENCE = Path(__file__).parent / "fence"
ROOT = FENCE.parent.parent


def plain(text):
    """Without what every run and every release has its own of."""
    text = re.sub(r"\b[0-9a-f]{16,64}\b", "DIGEST", text)
    text = re.sub(r"\b(\d+)-[0-9a-f]{8}\b", r"\1-NONCE", text)
    text = re.sub(r"\b(lexbandits|Python|numpy) \d+\.\d[\w.+]*", r"\1 VERSION", text)
    return text.rstrip() + "\n"


def as_json(words):
    """A line for every part, and for every part of one."""
    lines = []
    for name, part in rounded(words).items():
        inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        lines += [(f"{name}.{key}", value) for key, value in inner] or [(name, part)]
    return plain("\n".join(f"{name} = {json.dumps(part, ensure_ascii=False)}" for name, part in lines))


def rounded(words):
    if is_dataclass(words):
        words = asdict(words)
    if isinstance(words, dict):
        return {str(key): rounded(value) for key, value in words.items()}
    if isinstance(words, (list, tuple)):
        return [rounded(value) for value in words]
    return float(f"{words:.6g}") if isinstance(words, float) else words


BLOCKS = "body main section header h\\d p ul ol li dl div details form button table thead tbody tr"
IN_LINE = rf"\n(?!</?(?:{BLOCKS.replace(' ', '|')})\b)(?=<)"


def as_lines(html, drawn=False):
    """A line for each block; the style is not what is fenced in, and what is not `drawn` is a digest."""
    text = plain(re.sub("<style>.*?</style>", "", html, flags=re.DOTALL).replace("><", ">\n<"))
    if drawn:
        return text
    text = re.sub("<svg.*?</svg>", lambda svg: f"<svg {digest(svg[0])}/>", text, flags=re.DOTALL)
    return re.sub(IN_LINE, "", text).replace(">\n</", "></")


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --- simulations


def swept():
    """Each policy on a small instance: all that a block on disk holds."""
    world = lb.Instance([[0.9, 0.2], [0.9, 0.6], [0.5, 0.9], [0.1, 0.4]], noise_sd=[0.2, 0.1])
    cells = [
        lb.simulation.Cell(name, lb.policies.BY_NAME[name](4, 2, **EXAMPLES[name]), world, 400)
        for name in sorted(EXAMPLES)
    ]
    runs = lb.sweep(cells, replications=12, seed=1).runs
    return as_json(
        {
            name: {
                "mean pulls": float(found.rounds.mean()),
                "answers": np.bincount(found.recommendation, minlength=4).tolist(),
                "bits": hashlib.sha256(b"".join(column.tobytes() for column in found)).hexdigest()[:12],
            }
            for name, found in runs.items()
        }
    )


# --- studies

NUMBER, COST = lb.Objective("size", "minimize", margin=0, noise="exact"), {"small": 3, "large": 9}
ITEMS = [f"item {number}" for number in range(40)]


class Moved(MemoryStorage):
    """A storage whose clock is moved: a second for every trial, by `fails` of `stage.play`."""

    def __init__(self):
        super().__init__()
        self.now = 1.7e9
        self.time = lambda: self.now

    def latest(self, study, first, most, without=()):
        """As the service's storages have it."""
        events = reversed(self._journal(study).events)
        return [event for event in events if event.seq >= first and event.kind not in without][:most]

    def later(self, seconds=1.0):
        self.now += seconds
        return False


def create(**changes):
    return stage.create(storage=Moved(), **changes)


def play(study, most=10**6):
    stage.play(study, most, lambda trial: storage_of(study).later() or trial.number % 50 == 7)


def begun():
    return create()


def finished():
    study = create()
    play(study)
    return study


def measuring():
    study = create(budget=4000)
    play(study, 150)
    study.ask(worker="gone", lease=60, wait=0)
    storage_of(study).later(120)
    study.ask_many(2, worker="w2", lease="1h")
    return study


def changed():
    """Rules and arms that were changed after a look."""
    study = create(max_arms=5)
    play(study, 60)
    study.amend("correct", margin=0.4)
    study.reorder(["refusals", "latency", "correct", "cost"])
    study.add_arm("new")
    study.withdraw("large", "too dear")
    study.note("the rules changed")
    play(study, 200)
    study.pause("over lunch")
    return study


def spent():
    study = create(budget=90)
    play(study)
    return study


def ended():
    study = create()
    play(study, 40)
    study.end("out of time")
    return study


def listed():
    """A question about a list, answered for good."""
    objectives = [lb.Objective("correct", margin=0.04, noise="bernoulli"), NUMBER]
    study = lb.create_study(
        "listed", Moved(), arms=list(COST), objectives=objectives, items=ITEMS, baseline="large", seed=0
    )
    with suppress(lb.StudyFinished):
        while True:
            trial = study.ask(wait=0)
            right = int(trial.item[5:]) % 10 != 3
            study.tell(trial, {"correct": int(right), "size": COST[trial.arm]})
    return study


STUDIES = {made.__name__: made for made in (begun, measuring, changed, spent, ended, finished, listed)}
REPORTED = ("finished", "changed", "listed")
DRAWN = "measuring"  # the page whose every tag is on a line; of the others drawings are digests
_made = {}


def study_of(name):
    if name not in _made:
        _made[name] = STUDIES[name]()
    return _made[name]


def told(name):
    """What programs read of a study."""
    study = study_of(name)
    return as_json(
        {
            "answer": study.answer.as_json(),
            "status": study.status.as_json(),
            "spec": study.spec,
            "results": study.results().to_dict("list"),
            "events": " ".join(event.kind for event in list(study.events())[-12:]),
            "explain": study.explain().as_json(),
            "verify": list(study.verify().problems),
        }
    )


def page(name):
    """What a browser is sent of a study, but for what takes long."""
    study = study_of(name)
    storage = storage_of(study)
    _, content = fragments_of(OpenStudy(journal_of(study).row, storage, storage))
    drawn = [f"<!-- {key} -->\n{as_lines(part, name == DRAWN)}" for key, part in content["fragments"].items()]
    summary = [f"<!-- summary\n{as_json(content['summary'])}-->\n"] if name == DRAWN else []
    return "\n".join(drawn + summary)


def report(name, ending, tmp_path):
    written = study_of(name).report(tmp_path / f"r.{ending}").read_text("utf-8")
    return as_lines(written) if ending == "html" else plain(written)


# --- verdicts

TABLE = ROOT / "examples" / "digits" / "results.csv"
VERDICTS = {
    "certified": ([lb.Objective("correct", margin=0.04, noise="bernoulli"),
                   lb.Objective("latency", "minimize", margin=200, unit="µs", cap=2000)], {}),
    "keep": ([lb.Objective("correct", margin=0.002, noise="bernoulli"),
              lb.Objective("latency", "minimize", margin="10%", unit="µs", cap=2000)],
             {"baseline": "neighbours"}),
    "list": ([lb.Objective("latency", "minimize", at_most=420, slack=20, unit="µs", cap=2000),
              lb.Objective("correct", margin=0, noise="bernoulli")], {"scope": "items"}),
    "regression": ([lb.Objective("correct", margin=0.02, noise="bernoulli")],
                   {"baseline": "vectors", "candidate": "linear"}),
}  # fmt: skip


def verdict(name, form, tmp_path):
    if ("verdict", name) not in _made:
        objectives, how = VERDICTS[name]
        _made["verdict", name] = lb.judge(TABLE, objectives, arm="model", item="image", **how)
    found = _made["verdict", name]
    if form == "txt":
        return as_json(found.as_json())
    if form == "html":
        return as_lines(found.report(tmp_path / "v.html").read_text("utf-8"))
    return plain(in_text(found, 100) if form == "terminal.txt" else found.as_markdown())


# --- the service and the commands


def api(tmp_path):
    registry = StudyRegistry(tmp_path / "none.db")
    service = make_app(registry, Tokens(registry.reads, "secret", registry.notes))

    async def asked():
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(service), base_url="http://localhost"
        ) as client:
            return (await client.get("/openapi.json")).raise_for_status().json()

    words = asyncio.run(asked())
    registry.close()
    for part in words["paths"].values():
        for operation in part.values():  # refusals look alike
            answers = operation["responses"].items()
            operation["responses"] = {
                code: body if code < "4" else body["description"] for code, body in answers
            }
    parts = {"info": {**words.pop("info"), "version": "VERSION"}, **words.pop("paths")}
    return as_json(parts | words["components"].pop("schemas") | words)


def helped():
    """Every command with its options; how they are laid out is typer's business."""
    lines = []

    def walk(command, path):
        hidden = " (hidden)" if command.hidden else ""
        lines.append(f"{' '.join(path)}{hidden}: {' '.join((command.help or '').split())}")
        for option in (each for each in command.params if "completion" not in each.name):  # typer's own
            names = "/".join([*option.opts, *option.secondary_opts])
            required = ", required" if option.required else ""
            several = ", several" if option.multiple or option.nargs != 1 else ""
            default = (
                "" if option.default in (None, False) or callable(option.default) else f" = {option.default}"
            )
            text = " ".join((getattr(option, "help", None) or "").split())
            lines.append(f"  {names}{required}{several}{default}: {text}")
        for name, inner in sorted(getattr(command, "commands", {}).items()):
            walk(inner, [*path, name])

    walk(typer.main.get_command(app), ["lexbandits"])
    return plain("\n".join(lines))


# --- Python


def public():
    """Every public name with its parameters and their defaults; of a class its own methods too."""

    def called(thing):
        if isinstance(thing, EnumType):
            return ", ".join(f"{member.name}={member.value!r}" for member in thing)
        parameters = inspect.signature(thing).parameters.values()
        return ", ".join(str(each.replace(annotation=each.empty)) for each in parameters)

    lines = []
    for name in sorted([*lb.__all__, *research_names()]):
        thing = attrgetter(name)(lb)
        if not callable(thing):
            lines.append(f"{name}: {'VERSION' if name == '__version__' else type(thing).__name__}")
            continue
        if inspect.isclass(thing) and issubclass(thing, Exception):
            lines.append(f"{name}: {thing.__base__.__name__}")
            continue
        with suppress(ValueError, TypeError):
            lines.append(f"{name}({called(thing)})")
        for inner in sorted(key for key in vars(thing) if inspect.isclass(thing) and key[0] != "_"):
            member = inspect.getattr_static(thing, inner)
            shown = getattr(thing, inner) if callable(getattr(thing, inner)) else None
            if shown is not None and "lexbandits" in (getattr(shown, "__module__", "") or ""):
                lines.append(f"  {name}.{inner}({called(shown)})")
            elif isinstance(member, property):
                lines.append(f"  {name}.{inner}")
    return plain(re.sub(r" at 0x[0-9a-f]+", "", "\n".join(lines)))


# --- the files

FILES = {
    "sweep.txt": lambda _: swept(),
    "openapi.txt": api,
    "help.txt": lambda _: helped(),
    "public.txt": lambda _: public(),
    **{f"study-{name}.txt": lambda _, name=name: told(name) for name in STUDIES},
    **{f"page-{name}.html": lambda _, name=name: page(name) for name in STUDIES},
    **{f"explain-{name}.txt": lambda _, name=name: plain(str(study_of(name).explain())) for name in REPORTED},
    **{f"report-{name}.md": lambda folder, name=name: report(name, "md", folder) for name in REPORTED},
    **{
        f"report-{name}.html": lambda folder, name=name: report(name, "html", folder) for name in REPORTED[:1]
    },
    **{
        f"verdict-{name}.{form}": lambda folder, name=name, form=form: verdict(name, form, folder)
        for name in VERDICTS
        for form in ("txt", "terminal.txt", "md", "html")
    },
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_seen_is_what_is_written_down(name, tmp_path):
    assert FILES[name](tmp_path) == (FENCE / name).read_text("utf-8"), "meant to change? make fence"


def test_nothing_else_is_written_down():
    assert sorted(file.name for file in FENCE.iterdir()) == sorted(FILES)


if __name__ == "__main__":
    FENCE.mkdir(exist_ok=True)
    for old in FENCE.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        for name, made in FILES.items():
            (FENCE / name).write_text(made(Path(folder)), "utf-8")
