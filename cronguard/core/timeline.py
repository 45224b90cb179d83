"""A job's slots within a window: which were done, failed, skipped or missed, merged where they stand too close.

Runs say what happened, the schedule says what should have. A slot counts as missed when its start is overdue and no
run and no skip of it is known; not one before the schedule was known, in a pause, or before the oldest run that was
read. Bounded: at most so many slots are walked, the latest of them, and at most CELLS places are drawn.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from itertools import islice
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.axis import Axis
from cronguard.core.durations import format_duration
from cronguard.core.instants import iso_minutes
from cronguard.core.model import JobRow, RunRow, Slot
from cronguard.core.overdue import expected_since, is_paused
from cronguard.core.runkey import key_for
from cronguard.core.standing import schedule_of

KINDS = ("done", "running", "skipped", "missed", "failed")  # the later, the more it matters
CELLS = 180
_FAILED = ("failed", "timeout", "aborted", "lost")
_TOLD_APART = 5  # texts of so many marks stand in the tooltip of one place


class Mark(NamedTuple):
    """`kind`: one of KINDS; `until_utc` only for what is running; `text` for the tooltip."""

    kind: str
    at_utc: datetime
    until_utc: Optional[datetime]
    text: str


class Cell(NamedTuple):
    """What is drawn at one place, from `start` to `end`, per cent: counts by kind, and what the tooltip says."""

    start: float
    end: float
    counts: Dict[str, int]
    texts: Tuple[str, ...]


class Timeline(NamedTuple):
    """`unknown_before_utc`: earlier than that nobody looked for missed slots, although the schedule was known."""

    marks: Tuple[Mark, ...]
    unknown_before_utc: Optional[datetime]


def timeline_of(
    row: JobRow, runs: Sequence[RunRow], axis: Axis, zone: tzinfo, read_from_utc: datetime, most_slots: int
) -> Timeline:
    """The job's marks, oldest first. `runs`: its own since `read_from_utc`; `axis` ends with the present."""
    marks = [_mark_of(group, axis, zone) for group in _by_slot(runs)]
    missed, unknown_before_utc = _missed(row, runs, axis, read_from_utc, most_slots)
    said = "missed: no run, no skip"
    marks += [Mark("missed", slot.at_utc, None, f"{iso_minutes(slot.local)}\n{said}") for slot in missed]
    return Timeline(tuple(sorted(marks, key=lambda mark: mark.at_utc)), unknown_before_utc)


def cells_of(marks: Iterable[Mark], axis: Axis) -> List[Cell]:
    """Marks, oldest first, at no more than CELLS places; one alone in its place keeps its exact position."""
    places: Dict[int, List[Mark]] = {}
    for mark in marks:
        places.setdefault(min(int(axis.place(mark.at_utc) * CELLS / 100), CELLS - 1), []).append(mark)
    return [_cell(number, found, axis) for number, found in places.items()]


def _cell(number: int, marks: List[Mark], axis: Axis) -> Cell:
    width = 100 / CELLS
    counts = {kind: sum(mark.kind == kind for mark in marks) for kind in KINDS}
    start = min(axis.place(marks[0].at_utc), 100 - width) if len(marks) == 1 else number * width
    ends = [axis.place(mark.until_utc) for mark in marks if mark.until_utc]
    ordered = sorted(marks, key=lambda mark: -KINDS.index(mark.kind))
    more = len(ordered) - _TOLD_APART
    texts = [mark.text for mark in ordered[: _TOLD_APART if more > 0 else None]]
    if more > 0:
        texts = [summary(counts), *texts, f"and {more} more"]
    return Cell(start, max([start + width, *ends]), counts, tuple(texts))


def summary(counts: Dict[str, int]) -> str:
    """`80 done, 1 failed`."""
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def _by_slot(runs: Sequence[RunRow]) -> List[List[RunRow]]:
    """Runs of one slot together, oldest first; one without a slot stands alone."""
    groups: Dict[object, List[RunRow]] = {}
    for run in sorted(runs, key=lambda run: run.started_at_utc):
        groups.setdefault(run.slot_at_utc or run.run_id, []).append(run)
    return list(groups.values())


def _mark_of(runs: List[RunRow], axis: Axis, zone: tzinfo) -> Mark:
    kind, run = _verdict(runs)
    at_utc = run.slot_at_utc if run.slot_at_utc and run.slot_at_utc >= axis.since_utc else run.started_at_utc
    tries = sum(run.claim_no is not None for run in runs)
    head = iso_minutes((run.slot_at_utc or run.started_at_utc).astimezone(zone).replace(microsecond=0))
    text = [head, _what(kind, run), f"{tries} runs" if tries > 1 else "", run.message if kind == "failed" else ""]
    until_utc = axis.until_utc if kind == "running" else None
    return Mark(kind, at_utc, until_utc, "\n".join(line for line in text if line))


def _verdict(runs: List[RunRow]) -> Tuple[str, RunRow]:
    """What became of one slot, and the run that decides it: a success counts, then what is still going on."""
    for kind, statuses in (("done", ("success",)), ("running", ("running",)), ("failed", _FAILED)):
        decisive = [run for run in runs if run.status in statuses]
        if decisive:
            return kind, decisive[-1]
    # Skipped, for another run had done it before the window began.
    return ("done" if any(run.reason == "already_done" for run in runs) else "skipped"), runs[-1]


def _what(kind: str, run: RunRow) -> str:
    took = f" after {format_duration(run.duration_s)}" if run.duration_s is not None else ""
    place = f" on {run.host}" if run.host else ""
    if kind == "skipped":
        return f"skipped: {run.reason or 'no reason known'}{place}"
    if kind == "failed":
        code = f", exit {run.exit_code}" if run.exit_code is not None else ""
        reason = f" ({run.reason})" if run.reason else ""
        return f"{run.status}{reason}{took}{code}{place}"
    if run.errors:
        return f"{kind}{took}{place}, with {run.errors} errors"
    return f"{kind}{took}{place}"


def _missed(
    row: JobRow, runs: Sequence[RunRow], axis: Axis, read_from_utc: datetime, most_slots: int
) -> Tuple[List[Slot], Optional[datetime]]:
    schedule = schedule_of((row.facts.schedule, row.facts.zone))
    if schedule is None:
        return [], None
    overdue = axis.until_utc - timedelta(seconds=row.facts.alerts.late_s)
    last = min(overdue, row.paused_since_utc) if row.paused_since_utc and is_paused(row, axis.until_utc) else overdue
    known_from = max(expected_since(row) + timedelta.resolution, axis.since_utc)
    first = max(known_from, read_from_utc, row.pruned_before_utc or read_from_utc)
    if first > last:
        return [], None
    slots = list(islice(schedule.between(first, last, -1), most_slots + 1))
    if len(slots) > most_slots:
        first = slots.pop().at_utc
    seen = {run.slot_at_utc for run in runs}
    done = {run.run_key for run in runs if run.status == "success"} | {row.last_success_key}
    missed = [slot for slot in slots if slot.at_utc not in seen and _key(row, slot) not in done]
    return missed, first if first > known_from else None


def _key(row: JobRow, slot: Slot) -> str:
    """The key under which that slot would be done: an hourly job may be one that is due once a day."""
    return "" if row.facts.key == "none" else key_for(row.facts.key, slot, slot.at_utc, row.facts.zone)
