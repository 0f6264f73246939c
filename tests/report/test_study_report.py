"""A report stands alone, and a stranger can check the answer from it."""

import html
import re
from html.parser import HTMLParser

import pytest

import lexbandits as lb
from lexbandits.report.study_report import toml
from lexbandits.study.core import replay
from lexbandits.study.spec import Spec, fields_from_toml
from support import stage
from support.journals import journal_of

VOID = {"meta", "line", "circle", "rect", "path", "col", "br", "hr", "link", "img"}


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open[-1:] == [tag], f"</{tag}> closes nothing"
        self.open.pop()

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(path):
    page = Balanced()
    page.feed(path.read_text("utf-8"))
    assert page.open == []
    return page


@pytest.fixture(scope="module", params=["ended", "under_way"])
def written(request, tmp_path_factory):
    study = request.getfixturevalue(request.param)
    folder = tmp_path_factory.mktemp("report")
    return study, study.report(folder / "r.html"), study.report(folder / "r.md")


def test_the_page_stands_alone(written):
    _, page, _ = written
    parsed = read(page)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in parsed.tags}
    assert not re.search(r"https?://|url\(|@import|javascript:", page.read_text("utf-8"))
    assert all(not key.startswith("on") for _, attributes in parsed.tags for key in attributes)
    assert page.stat().st_size < 100_000


def test_both_forms_say_the_same(written):
    study, page, markdown = written
    text = " ".join("".join(read(page).text).split())  # no-break spaces too
    plain = " ".join(re.sub(r"\\(.)", r"\1", markdown.read_text("utf-8")).split())
    found, check = study.explain(), study.verify()
    for story in found.arms:
        assert " ".join(story.sentence.split()) in plain
        assert " ".join(story.sentence.removeprefix(story.arm).split()) in text
    for part in (check.sha256, f"lexbandits {lb.__version__}", f'study.verify("{check.sha256}")', "noise ="):
        assert part in text
        assert part in plain
    assert "nan" not in re.findall(r"\w+", text)
    assert "None" not in text


def test_the_state_is_said_and_never_dressed_up(written):
    study, page, _ = written
    text = " ".join("".join(read(page).text).split())
    assert ("Certified at 95 % confidence" in text) is study.answer.certified
    assert ("No certificate" in text) is not study.answer.certified
    assert ("Forecast" in text) is (study.status.state != "finished")


def test_the_specification_makes_the_same_study(written, tmp_path):
    study, _, markdown = written
    block = re.search(r"```toml\n(.*?)```", markdown.read_text("utf-8"), re.DOTALL)[1]
    path = tmp_path / "again.toml"
    path.write_text(block)
    assert Spec.from_json(fields_from_toml(path)).as_json() == study.spec


def test_arms_with_further_keys_and_odd_names_survive_toml(tmp_path):
    arms = [{"name": 'say "hi" \\ é', "model": "x", "odd key": 3}, {"name": "b", "hot": True}]
    spec = Spec.from_json(
        {"name": "t", "arms": arms, "objectives": [{"name": "x", "margin": 2}], "items": ["p", 2]}
    )
    path = tmp_path / "t.toml"
    path.write_text(toml(spec.as_json()), "utf-8")
    assert Spec.from_json(fields_from_toml(path)) == spec


def test_names_cannot_break_out_of_the_page(tmp_path):
    bad = '<script>alert("x")</script>'
    study = lb.create_study(
        f"s {bad}",
        arms=[bad, "a|b *c* $d"],
        objectives=[
            lb.Objective(bad, margin=0.02, unit="<b>", noise="gaussian"),
            lb.Objective("b", margin=0.02, noise="gaussian"),
        ],
        seed=0,
    )
    for number in range(40):
        trial = study.ask()
        study.tell(trial, {bad: number * 0.37 % 1, "b": number * 0.61 % 1})
    page = read(study.report(tmp_path / "r.html"))
    assert not {"script", "b<"} & {tag for tag, _ in page.tags}
    assert bad in "".join(page.text)
    markdown = study.report(tmp_path / "r.md").read_text("utf-8")
    outside = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    assert "<script>" not in outside
    assert "a\\|b \\*c\\* $d" in outside


def test_any_state_can_be_reported(tmp_path):
    new = stage.create("new")
    read(new.report(tmp_path / "new.html"))
    lone = lb.create_study(
        "lone", arms=["a"], objectives=[lb.Objective("x", margin=2, noise="gaussian")], seed=0
    )
    read(lone.report(tmp_path / "lone.html"))
    changed = stage.create("changed", max_arms=6, max_failures=3)
    stage.play(changed, 120, fails=lambda trial: trial.arm == "small")
    changed.add_arm("another")
    changed.withdraw("tiny", "gone")
    stage.play(changed, 100)
    changed.end("enough")
    text = "".join(read(changed.report(tmp_path / "changed.html")).text)
    assert "could not be measured" in text
    assert "was withdrawn: gone" in text
    assert "No certificate" in text


def test_a_command_verifies_what_a_command_can_reach(ended, tmp_path):
    kept = stage.create("kept", tmp_path / "my studies.db")
    stage.play(kept, 4)
    command = f"lexbandits study verify kept --storage '{tmp_path / 'my studies.db'}'"
    for form in ("html", "md"):
        text = html.unescape(kept.report(tmp_path / f"kept.{form}").read_text("utf-8"))
        assert command in text
        assert "memory" not in text
        text = ended.report(tmp_path / f"ended.{form}").read_text("utf-8")
        assert "lexbandits study verify" not in text
        assert "in the memory of the program that made it" in text


def test_a_report_reads_and_replays_the_journal_once(monkeypatch, tmp_path):
    study = stage.create("once", tmp_path / "once.db")
    stage.play(study, 120)
    study.end("enough")
    assert study.answer.arm
    made, read = [], []
    storage = type(journal_of(study).storage)
    make, events = replay.make_policy, storage.read
    monkeypatch.setattr(replay, "make_policy", lambda *how: made.append(how) or make(*how))

    def counted(self, study, since, most=None):
        if since == 1 and most is None:
            read.append(since)
        return events(self, study, since, most)

    monkeypatch.setattr(storage, "read", counted)
    text = study.report(tmp_path / "once.html").read_text("utf-8")
    assert "Who left when" in text
    assert "the replay confirms the record" in text
    assert (len(made), len(read)) == (1, 1)


def test_the_format_follows_from_the_name(ended, tmp_path):
    assert ended.report(tmp_path / "a.md").read_text("utf-8").startswith("# ended")
    assert ended.report(tmp_path / "a.txt", format="md").read_text("utf-8").startswith("# ended")
    with pytest.raises(ValueError, match='format must be "html" or "md", got \'pdf\''):
        ended.report(tmp_path / "a.pdf", format="pdf")
