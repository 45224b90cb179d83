"""The report's drawings: a time line of slots and a chart of durations, above one axis of time.

Across, everything is in per cent and nothing is scaled, so that letters keep their size on a phone. Kinds differ in
height and outline as well as in colour: for eyes that see colours otherwise, and for printers that have none.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import List, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.axis import Axis
from cronguard.core.durations import format_duration
from cronguard.core.instants import utc_text
from cronguard.core.markup import Content, Markup, element, lines
from cronguard.core.model import RunRow
from cronguard.core.timeline import CELLS, KINDS, Cell, Mark, cells_of, summary

_LANE = 26  # height of the time line, px
_CHART = 62
_TITLE = 16  # of that, for the name of the median line
_LABELS = 15
_HEIGHTS = {"done": 16, "running": 16, "skipped": 7, "missed": 22, "failed": 26}
_LEAST_SHARE = 0.35  # of a place's height for the worst of several, so that one failure in a hundred is seen


class Frame(NamedTuple):
    """What all drawings of one job share."""

    axis: Axis
    zone: tzinfo
    job: str


def timeline_svg(frame: Frame, marks: Sequence[Mark], paused_since_utc: Optional[datetime]) -> Markup:
    """The time line, with its axis below; a pause and the days are marked on which the clocks change."""
    changes = frame.axis.clock_changes(frame.zone)
    bands = [_rect(each.start, each.end, 0, _LANE, "band", lines(each.text)) for each in changes]
    bands += [
        element("text", each.label, x=_per_cent(min(each.start, 88)), y=str(_LANE + 11), class_="change")
        for each in changes
    ]
    if paused_since_utc is not None:
        text = f"paused since {utc_text(paused_since_utc)}"
        bands.append(_rect(frame.axis.place(paused_since_utc), 100, 0, _LANE, "pause band", lines(text)))
    cells = [part for cell in cells_of(marks, frame.axis) for part in _cell(cell)]
    counts = {kind: sum(mark.kind == kind for mark in marks) for kind in KINDS}
    label = f"slots of {frame.job}: {summary(counts) or 'none'}"
    axis = _axis(frame, _LANE, labelled=True, taken=[each.start for each in changes])
    return _drawing(_LANE + _LABELS, label, [*bands, *axis, _baseline(_LANE), *cells])


def durations_svg(frame: Frame, runs: Sequence[RunRow], usual_s: Optional[float]) -> Markup:
    """A bar a run, or the longest of several that would stand in one place; and a line at what is usual."""
    timed = [run for run in runs if run.duration_s is not None and run.status != "skipped"]
    top_s = max([run.duration_s or 0.0 for run in timed] + [usual_s or 0.0]) or 1.0
    parts = [*_axis(frame, _CHART, labelled=False), _baseline(_CHART)]
    parts += [_duration_bar(place, group, top_s) for place, group in _placed(timed, frame.axis)]
    if usual_s is not None:
        parts += _median(usual_s, top_s)
    longest = format_duration(max((run.duration_s or 0.0 for run in timed), default=0.0))
    return _drawing(_CHART + 1, f"durations of {frame.job}: {len(timed)} runs, the longest {longest}", parts)


def legend_svg(kind: str) -> Markup:
    """One bar, as the time line draws it."""
    height = _HEIGHTS[kind]
    bar = element("rect", x="1", y=f"{_LANE - height + 1}", width="7", height=f"{height - 2}", rx="1", class_=kind)
    return element("svg", bar, width="9", height=str(_LANE), aria_hidden="true")


def _cell(cell: Cell) -> List[Markup]:
    """One bar; where several kinds meet, the worst on top of the rest."""
    present = [kind for kind in KINDS if cell.counts[kind]]
    tooltip = lines(*[line for text in cell.texts for line in text.split("\n")])
    worst, height = present[-1], _HEIGHTS[present[-1]]
    if len(present) == 1:
        return [_rect(cell.start, cell.end, _LANE - height, height, worst, tooltip)]
    share = max(cell.counts[worst] / sum(cell.counts.values()), _LEAST_SHARE)
    upper = height * share
    rest = present[-2]
    return [
        _rect(cell.start, cell.end, _LANE - height + upper, height - upper, rest, tooltip),
        _rect(cell.start, cell.end, _LANE - height, upper, worst, tooltip),
    ]


def _placed(runs: Sequence[RunRow], axis: Axis) -> List[Tuple[float, List[RunRow]]]:
    groups: List[Tuple[int, float, List[RunRow]]] = []
    for run in sorted(runs, key=lambda run: run.started_at_utc):
        place = min(axis.place(run.started_at_utc), 100 - 100 / CELLS)
        number = int(place * CELLS / 100)
        if groups and groups[-1][0] == number:
            groups[-1][2].append(run)
        else:
            groups.append((number, place, [run]))
    return [(place, group) for _, place, group in groups]


def _duration_bar(place: float, runs: List[RunRow], top_s: float) -> Markup:
    took = sorted((run.duration_s or 0.0, run.status) for run in runs)
    longest_s, status = took[-1]
    height = max(1.5, longest_s / top_s * (_CHART - _TITLE))
    when = f"{runs[0].started_at_utc:%Y-%m-%d %H:%M} UTC"
    text = f"took {format_duration(longest_s)}, {status}"
    if len(runs) > 1:
        text = f"{len(runs)} runs, from {format_duration(took[0][0])} to {format_duration(longest_s)}"
    kind = "took" if status == "success" else "failed"
    return _rect(place, place + 100 / CELLS, _CHART - height, height, kind, lines(when, text))


def _median(usual_s: float, top_s: float) -> List[Markup]:
    y = f"{_CHART - usual_s / top_s * (_CHART - _TITLE):.1f}"
    text = f"median {format_duration(usual_s)}"
    return [
        element("line", element("title", text), x1="0", x2="100%", y1=y, y2=y, class_="median"),
        element("text", text, x="0", y="10", class_="label"),
    ]


def _axis(frame: Frame, height: int, labelled: bool, taken: Sequence[float] = ()) -> List[Markup]:
    parts = []
    for tick in frame.axis.ticks(frame.zone):
        x = _per_cent(tick.at)
        parts.append(element("line", x1=x, x2=x, y1="0", y2=str(height), class_="grid"))
        # A label at the very end would be cut; one beside that of a changing day gives way, on a phone or everywhere.
        if labelled and tick.at < 92 and not any(start - 13 < tick.at < start + 8 for start in taken):
            crowded = any(start < tick.at < start + 20 for start in taken)
            kind = "label crowded" if crowded else "label"
            parts.append(element("text", tick.label, x=x, y=str(height + 11), class_=kind))
    return parts


def _baseline(y: int) -> Markup:
    return element("line", x1="0", x2="100%", y1=str(y), y2=str(y), class_="base")


def _drawing(height: int, label: str, parts: Sequence[Markup]) -> Markup:
    return element("svg", *parts, width="100%", height=str(height), role="img", aria_label=label)


def _rect(start: float, end: float, y: float, height: float, kind: str, tooltip: Content) -> Markup:
    width = _per_cent(max(end - start, 0.0) * (1.0 if kind.endswith(("band", "running")) else 0.86))
    title = element("title", tooltip)
    return element(
        "rect", title, x=_per_cent(start), y=f"{y:.1f}", width=width, height=f"{height:.1f}", rx="1", class_=kind
    )


def _per_cent(value: float) -> str:
    return f"{value:.2f}%"
