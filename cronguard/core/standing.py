"""How a job stands: its state in one word and its next due slot, for status, report and metrics alike."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, Optional, Tuple

from cronguard.core.model import JobRow, ScheduleText, Slot
from cronguard.core.overdue import is_paused
from cronguard.core.schedule import Schedule, parse_schedule
from cronguard.errors import ScheduleError

STATES = ("running", "paused", "ok", "failed", "timeout", "aborted", "lost", "skipped", "never_ran")
_parsed = lru_cache(maxsize=4096)(parse_schedule)  # thousands of jobs share a few schedules
Due = Tuple[Optional[ScheduleText], str]  # schedule and zone


class JobStatus(NamedTuple):
    """`state`: one of STATES. `row` is None for a job that only the config file knows; `due`: what its slots follow."""

    job: str
    state: str
    row: Optional[JobRow]
    next_due: Optional[Slot]
    due: Due = (None, "")


def standing_of(name: str, row: Optional[JobRow], planned: Optional[Due], now_utc: datetime) -> JobStatus:
    """What is known of a job: its row if it has one, else the schedule that the config file plans."""
    if row is not None:
        due: Due = (row.facts.schedule, row.facts.zone)
        return JobStatus(name, _state_of(row, now_utc), row, next_due(due, now_utc), due)
    due = planned or (None, "")
    return JobStatus(name, "never_ran", None, next_due(due, now_utc), due)


def next_due(due: Due, now_utc: datetime) -> Optional[Slot]:
    """The next slot; None without a schedule, or if this host cannot tell it."""
    schedule = schedule_of(due)
    if schedule is None:
        return None
    return next((slot for slot in schedule.slots_from(now_utc) if slot.at_utc > now_utc), None)


def schedule_of(due: Due) -> Optional[Schedule]:
    """The schedule, None if there is none, or if a newer cronguard or a host with other zones has stored it."""
    text, zone = due
    if text is None:
        return None
    try:
        return _parsed(text, zone)
    except ScheduleError:
        return None


def _state_of(row: JobRow, now_utc: datetime) -> str:
    if row.running is not None:
        return "running"
    if is_paused(row, now_utc):
        return "paused"
    if row.last_run is None:
        return "skipped" if row.skips_in_row else "never_ran"
    return "ok" if row.last_run.status == "success" else row.last_run.status
