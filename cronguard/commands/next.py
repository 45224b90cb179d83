"""`next`: the coming slots of a schedule, so that a person can see what the clock change does to it."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Dict, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.instants import local_text, utc_text
from cronguard.core.model import ScheduleText, Slot
from cronguard.core.schedule import Schedule, parse_schedule
from cronguard.errors import UsageError

MOST = 10_000


class NextSlots(NamedTuple):
    """Coming slots of one schedule; `job` is None for a schedule given on the command line."""

    job: Optional[str]
    schedule: ScheduleText
    zone: str
    slots: Tuple[Slot, ...]


def next_slots(
    schedule: ScheduleText, zone: str, from_utc: datetime, count: int, job: Optional[str] = None
) -> NextSlots:
    """The first `count` slots at or after an instant; fewer if the schedule ends. UsageError for a silly count."""
    if not 1 <= count <= MOST:
        raise UsageError(f"--count: bad number: {count}: not from 1 to {MOST}")
    return NextSlots(job, schedule, zone, coming(parse_schedule(schedule, zone), from_utc, count))


def coming(schedule: Schedule, from_utc: datetime, count: int) -> Tuple[Slot, ...]:
    """The first `count` slots at or after an instant."""
    return tuple(islice(schedule.slots_from(from_utc), count))


def as_json(slots: Sequence[Slot]) -> Dict[str, object]:
    """The JSON of `next`, version 1: keys are only ever added."""
    return {"version": 1, "slots": [_slot_as_json(slot) for slot in slots]}


def _slot_as_json(slot: Slot) -> Dict[str, Optional[str]]:
    return {
        "key": slot.label,
        "local": local_text(slot.local, slot.label.endswith("Z")),
        "utc": utc_text(slot.at_utc),
        "note": slot.note,
    }
