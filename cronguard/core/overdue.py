"""Which slots a job owes: due, their allowance for a late start over, and neither done nor under way.

Expected is what came due after the present schedule was known and the job not paused (FR-82, FR-100), so that neither
a new job nor a changed schedule nor a pause makes old slots missed. Deadlines are a slot's instant plus the allowance,
in UTC (FR-104). Slots with one key are one unit. Pure: the present is an argument.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from cronguard.core.missing import units_of
from cronguard.core.model import JobRow, RunRow, Slot
from cronguard.core.runkey import key_for
from cronguard.core.schedule import Schedule

MOST_COUNTED = 1000  # missed slots beyond that are `more than`
MOST_UNITS = 2000  # of `slots = "each"`: the newest so many are looked at
_MANY_SUCCESSES = 5  # fewer do not say what is usual
_SLACK_S = 60.0  # a run may need it to be killed and recorded at its limit


class Overdue(NamedTuple):
    """`slots` of them from `first` to `latest`; `more`: counting stopped there, at least one more is missing."""

    first: Slot
    latest: Slot
    slots: int
    more: bool


def is_paused(row: JobRow, now_utc: datetime) -> bool:
    """A pause with an end is over then, whether or not anybody has noted it."""
    return row.paused_since_utc is not None and (row.paused_until_utc is None or row.paused_until_utc > now_utc)


def known_since(row: JobRow) -> datetime:
    """Since when the present schedule, zone and key are known: a slot of before had another key, if any."""
    return row.defined_utc or row.first_seen_utc


def expected_since(row: JobRow) -> datetime:
    """Slots after that instant are expected to be done."""
    since = max(row.since_utc or row.first_seen_utc, known_since(row))
    return max(since, row.paused_until_utc) if row.paused_since_utc and row.paused_until_utc else since


def overdue_latest(row: JobRow, schedule: Schedule, now_utc: datetime) -> Optional[Overdue]:
    """`slots = "latest"`: what is owed if the latest due slot has no success, of itself or of a later one."""
    late_by = now_utc - timedelta(seconds=row.facts.alerts.late_s)
    latest = schedule.latest_due(late_by)
    since = expected_since(row)
    if latest is None or latest.at_utc <= since or is_done(row, latest) or is_under_way(row, latest, now_utc):
        return None
    done_slot = row.last_success_slot_utc
    slots = schedule.due_between(max(since, done_slot) if done_slot else since, late_by)
    units = units_of(islice(slots, MOST_COUNTED + 1), _mode(row), row.facts.zone)
    owed = [slot for key, slot in units if key != row.last_success_key] or [latest]
    return _overdue(owed, latest)


def units_due(row: JobRow, schedule: Schedule, now_utc: datetime) -> Dict[str, Slot]:
    """`slots = "each"`: the keys that must have a success of their own, oldest first, each with its first slot.

    What has been pruned, or is older than the look-back, is not asked for."""
    floors = [expected_since(row), now_utc - timedelta(seconds=row.facts.look_back_s)]
    if row.pruned_before_utc is not None:
        floors.append(row.pruned_before_utc - timedelta.resolution)
    late_by = now_utc - timedelta(seconds=row.facts.alerts.late_s)
    after, until = max(floors) + timedelta.resolution, late_by + timedelta.resolution
    slots = reversed(list(islice(schedule.between(after, until, -1), MOST_UNITS)))
    return {unit.key: unit.slot for unit in units_of(slots, _mode(row), row.facts.zone)}


def overdue_each(row: JobRow, undone: Iterable[Tuple[str, Slot]], now_utc: datetime) -> Optional[Overdue]:
    """What is owed of those keys that have no success; the one that is under way is not."""
    busy = row.running.run_key if row.running and is_in_time(row, row.running, now_utc) else None
    owed = [slot for key, slot in undone if key != busy]
    return _overdue(owed, owed[-1]) if owed else None


def is_done(row: JobRow, slot: Slot) -> bool:
    """Whether the slot, its unit or a later one succeeded, or somebody ran the job by hand, without slot, after it."""
    if row.last_success_slot_utc is not None and row.last_success_slot_utc >= slot.at_utc:
        return True
    if row.last_success_key is not None and row.last_success_key == _unit(row, slot):
        return True
    last = row.last_run
    by_hand = last is not None and last.status == "success" and last.slot_at_utc is None
    return by_hand and last is not None and last.started_at_utc >= slot.at_utc


def is_under_way(row: JobRow, slot: Slot, now_utc: datetime) -> bool:
    """Whether a run for the slot, its unit or a later one is at work and has time left."""
    run = row.running
    if run is None or not is_in_time(row, run, now_utc):
        return False
    return (run.slot_at_utc or run.started_at_utc) >= slot.at_utc or run.run_key == _unit(row, slot)


def is_in_time(row: JobRow, run: RunRow, now_utc: datetime) -> bool:
    """Whether a run has not yet taken longer than it may."""
    allowed_s = longest_s(row) or _usual_limit_s(row)
    return allowed_s is None or (now_utc - run.started_at_utc).total_seconds() <= allowed_s


def longest_s(row: JobRow) -> Optional[float]:
    """How long a run may take by what somebody set: `allow_long`, or its limit; None: nobody set any."""
    limit_s = None if row.facts.limit_s is None else row.facts.limit_s + _SLACK_S
    limits = [limit for limit in (row.facts.alerts.long_s, limit_s) if limit is not None]
    return min(limits) if limits else None


def usual_s(row: JobRow, but_last: bool) -> Optional[float]:
    """The median duration of recent successes, without the very last of them if asked; None with fewer than five."""
    durations = [success.duration_s for success in row.successes[: -1 if but_last else None]]
    return median(durations) if len(durations) >= _MANY_SUCCESSES else None


def interval_s(row: JobRow) -> Optional[float]:
    """The median time between successes; None with fewer than two of them."""
    ends = [success.finished_at_utc for success in row.successes]
    return median([(later - earlier).total_seconds() for earlier, later in zip(ends, ends[1:])])


def median(values: List[float]) -> Optional[float]:
    """The upper of two middle values; None of none."""
    return sorted(values)[len(values) // 2] if values else None


def _usual_limit_s(row: JobRow) -> Optional[float]:
    usual = usual_s(row, but_last=False)
    return None if usual is None else usual * row.facts.alerts.slow_factor


def _unit(row: JobRow, slot: Slot) -> str:
    return key_for(_mode(row), slot, slot.at_utc, row.facts.zone)


def _mode(row: JobRow) -> str:
    return "slot" if row.facts.key == "none" else row.facts.key


def _overdue(owed: List[Slot], latest: Slot) -> Overdue:
    return Overdue(owed[0], latest, min(len(owed), MOST_COUNTED), len(owed) > MOST_COUNTED)
