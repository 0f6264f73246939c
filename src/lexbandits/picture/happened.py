"""What happened to a study, the latest first; what happens often is one line of its kind."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lexbandits.picture.draw import Figure
from lexbandits.picture.picture import Picture
from lexbandits.picture.svg import Part, join, tag
from lexbandits.picture.tally import tally_of
from lexbandits.study.record.events import Event
from lexbandits.study.record.trials import EXPIRED, FAILED, LATE, RELEASED
from lexbandits.study.trial import moment
from lexbandits.study.words import count, many

OFTEN = {"failed": FAILED, "expired": EXPIRED, "told_late": LATE, "released": RELEASED}  # kind -> state
FEW = 3  # of a kind are told one by one
MOST_LINES = 10


class Line(NamedTuple):
    """One of the list."""

    at: float
    key: str
    words: Part


def latest(picture: Picture, events: Iterable[Event], turns: Sequence[Line] = ()) -> Figure:
    """The last lines: `events` are the last ones of every kind, `turns` what happened without an event."""
    lines, often = list[Line](), dict[str, list[Event]]()
    for event in events:
        if event.kind in OFTEN:
            often.setdefault(event.kind, []).append(event)
        else:
            lines.append(Line(event.at, f"{event.seq}", said(picture, event)))
    for kind, found in often.items():
        counts = tally_of(picture.view.fold).by_arm[:, OFTEN[kind]].tolist()
        by_arm = dict(zip(picture.view.arms, counts, strict=True))
        if sum(counts) > FEW:
            lines.append(Line(found[0].at, kind, _many(picture, found[0], by_arm)))
        else:
            lines += [Line(event.at, f"{event.seq}", said(picture, event)) for event in found]
    lines = sorted([*lines, *turns], key=lambda line: -line.at)  # of one moment, what follows comes first
    rows = [
        tag("li", clock_time(line.at), tag("span", line.words), data_key=line.key)
        for line in lines[:MOST_LINES]
    ]
    return Figure("Latest", "", tag("ul", rows, kind="tl"))


def _many(picture: Picture, last: Event, by_arm: dict[str, int]) -> Part:
    """All of a kind in one line, which has the time of the last."""
    arms = [arm for arm in sorted(by_arm, key=lambda arm: -by_arm[arm]) if by_arm[arm]]
    named = ", ".join(f"{arm} {count(by_arm[arm])}" for arm in arms[:4])
    of = f" ({named}{' and others' if arms[4:] else ''})"
    trials = many(sum(by_arm.values()), "result" if last.kind == "told_late" else "trial")
    if last.kind == "told_late":
        return f"{trials} came late in all{of}: kept, not counted"
    if last.kind == "released":
        return f"{trials} were given back in all{of}"
    if last.kind == "expired":
        return f"{trials} ran out in all{of}{_instead(picture, 'if_expired')}"
    return [f"{trials} failed in all{of}{_instead(picture, 'if_failed')}; the last", _quoted(last)]


def _instead(picture: Picture, what: str) -> str:
    """What stands for a value that did not come."""
    declared = [getattr(objective, what) is not None for objective in picture.view.objectives]
    if all(declared):
        return ": what was declared counts"
    return ": missing, but for what was declared" if any(declared) else ": missing"


def clock_time(at: float) -> Part:
    """A time that the reader's clock will show."""
    return tag("time", datetime=f"{moment(at).isoformat(timespec='milliseconds')}", data_time="clock")


def _quoted(event: Event, key: str = "reason") -> Part:
    text = event.payload.get(key)
    return f": “{text}”" if text else None


def said(picture: Picture, event: Event) -> Part:
    """An event as a sentence."""
    payload, arm = event.payload, tag("b", event.arm or "an arm")
    by = f" ({event.by})" if event.by else ""
    match event.kind:
        case "created":
            return "the study was created"
        case "failed":
            return [arm, " failed", _quoted(event), by]
        case "expired":
            return ["a trial of ", arm, f" ran out{_instead(picture, 'if_expired')}", by]
        case "released":
            return ["a trial of ", arm, " was given back", by]
        case "told_late":
            return ["a result of ", arm, " came late: kept, not counted", by]
        case "corrected":
            return ["a result of ", arm, " was corrected", _quoted(event)]
        case "arm_added":
            return [arm, " was added"]
        case "arm_withdrawn":
            back = payload.get("returned")
            return [arm, " was withdrawn", _quoted(event), f"; back in: {', '.join(back)}" if back else None]
        case "arm_restored":
            return [arm, " is back in"]
        case "amended":
            new = [f"{key} {payload[key]}" for key in ("margin", "tie") if payload.get(key) is not None]
            return [tag("b", payload["objective"]), f" was changed: {', '.join(new)}"]
        case "reordered":
            return f"new order: {' › '.join(payload['objectives'])}"
        case "budget":
            most = payload["budget"]
            return "no budget any more" if most is None else f"budget set to {many(most, 'trial')}"
        case "finished":
            if payload["certified"]:
                return [tag("b", payload["arm"]), " is certified as the answer"]
            return ["finished: ", tag("b", payload["arm"]), ", without a certificate"]
        case "ended":
            return f"ended by hand: “{payload['reason'].removeprefix('ended by hand: ')}”"
        case "retried":
            return f"{many(payload['places'], 'place')} of the list asked again"
        case "note":
            return ["note", _quoted(event, "text")]
        case kind:
            words = {"resumed": "measuring again", "imported": "results were imported"}
            return join([words.get(kind, kind), _quoted(event), _quoted(event, "why")])
