"""What happened to a study, the latest first; what happens often is one line of its kind."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lexbandits.study.core.events import Event, EventKind
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, LATE, RELEASED
from lexbandits.study.number_format import count, many
from lexbandits.study.trial import moment
from lexbandits.views.drawing import Figure
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import Part, join, tag
from lexbandits.views.trial_counts import tally_of

OFTEN: dict[str, int] = {  # kind -> state
    EventKind.FAILED: FAILED,
    EventKind.EXPIRED: EXPIRED,
    EventKind.TOLD_LATE: LATE,
    EventKind.RELEASED: RELEASED,
}
FEW = 3  # of a kind are told one by one
MOST_LINES = 10


class Line(NamedTuple):
    """One of the list."""

    at: float
    key: str
    text: Part


def latest(view: StudyView, events: Iterable[Event], turns: Sequence[Line] = ()) -> Figure:
    """The last lines: `events` are the last ones of every kind, `turns` what happened without an event."""
    lines, often = list[Line](), dict[str, list[Event]]()
    for event in events:
        if event.kind in OFTEN:
            often.setdefault(event.kind, []).append(event)
        else:
            lines.append(Line(event.at, f"{event.seq}", message_of(view, event)))
    for kind, found in often.items():
        counts = tally_of(view.estimates.replay).by_arm[:, OFTEN[kind]].tolist()
        by_arm = dict(zip(view.estimates.arms, counts, strict=True))
        if sum(counts) > FEW:
            lines.append(Line(found[0].at, kind, _many(view, found[0], by_arm)))
        else:
            lines += [Line(event.at, f"{event.seq}", message_of(view, event)) for event in found]
    lines = sorted([*lines, *turns], key=lambda line: -line.at)  # of one moment, what follows comes first
    rows = [
        tag("li", clock_time(line.at), tag("span", line.text), data_key=line.key)
        for line in lines[:MOST_LINES]
    ]
    return Figure("Latest", "", tag("ul", rows, kind="tl"))


def _many(view: StudyView, last: Event, by_arm: dict[str, int]) -> Part:
    """All of a kind in one line, which has the time of the last."""
    arms = [arm for arm in sorted(by_arm, key=lambda arm: -by_arm[arm]) if by_arm[arm]]
    named = ", ".join(f"{arm} {count(by_arm[arm])}" for arm in arms[:4])
    of = f" ({named}{' and others' if arms[4:] else ''})"
    trials = many(sum(by_arm.values()), "result" if last.kind == EventKind.TOLD_LATE else "trial")
    if last.kind == EventKind.TOLD_LATE:
        return f"{trials} came late in all{of}: kept, not counted"
    if last.kind == EventKind.RELEASED:
        return f"{trials} were given back in all{of}"
    if last.kind == EventKind.EXPIRED:
        return f"{trials} ran out in all{of}{_instead(view, 'if_expired')}"
    return [f"{trials} failed in all{of}{_instead(view, 'if_failed')}; the last", _quoted(last)]


def _instead(view: StudyView, what: str) -> str:
    """What stands for a value that did not come."""
    declared = [getattr(objective, what) is not None for objective in view.estimates.objectives]
    if all(declared):
        return ": what was declared counts"
    return ": missing, but for what was declared" if any(declared) else ": missing"


def clock_time(at: float) -> Part:
    """A time that the reader's clock will show."""
    return tag("time", datetime=f"{moment(at).isoformat(timespec='milliseconds')}", data_time="clock")


def _quoted(event: Event, key: str = "reason") -> Part:
    text = event.payload.get(key)
    return f": “{text}”" if text else None


def message_of(view: StudyView, event: Event) -> Part:
    """An event as a sentence."""
    payload, arm = event.payload, tag("b", event.arm or "an arm")
    by = f" ({event.by})" if event.by else ""
    match event.kind:
        case EventKind.CREATED:
            return "the study was created"
        case EventKind.FAILED:
            return [arm, " failed", _quoted(event), by]
        case EventKind.EXPIRED:
            return ["a trial of ", arm, f" ran out{_instead(view, 'if_expired')}", by]
        case EventKind.RELEASED:
            return ["a trial of ", arm, " was given back", by]
        case EventKind.TOLD_LATE:
            return ["a result of ", arm, " came late: kept, not counted", by]
        case EventKind.CORRECTED:
            return ["a result of ", arm, " was corrected", _quoted(event)]
        case EventKind.ARM_ADDED:
            return [arm, " was added"]
        case EventKind.ARM_WITHDRAWN:
            back = payload.get("returned")
            return [arm, " was withdrawn", _quoted(event), f"; back in: {', '.join(back)}" if back else None]
        case EventKind.ARM_RESTORED:
            return [arm, " is back in"]
        case EventKind.AMENDED:
            new = [f"{key} {payload[key]}" for key in ("margin", "tie") if payload.get(key) is not None]
            return [tag("b", payload["objective"]), f" was changed: {', '.join(new)}"]
        case EventKind.REORDERED:
            return f"new order: {' › '.join(payload['objectives'])}"
        case EventKind.BUDGET:
            most = payload["budget"]
            return "no budget any more" if most is None else f"budget set to {many(most, 'trial')}"
        case EventKind.FINISHED:
            if payload["certified"]:
                return [tag("b", payload["arm"]), " is certified as the answer"]
            return ["finished: ", tag("b", payload["arm"]), ", without a certificate"]
        case EventKind.ENDED:
            return f"ended by hand: “{payload['reason'].removeprefix('ended by hand: ')}”"
        case EventKind.RETRIED:
            return f"{many(payload['places'], 'place')} of the list asked again"
        case EventKind.NOTE:
            return ["note", _quoted(event, "text")]
        case kind:
            phrases: dict[str, str] = {
                EventKind.RESUMED: "measuring again",
                EventKind.IMPORTED: "results were imported",
            }
            return join([phrases.get(kind, kind), _quoted(event), _quoted(event, "why")])
