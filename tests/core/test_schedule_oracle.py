"""The engine against brute force: every minute around every change of the clock, in forty zones."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import List, Tuple

import pytest

from cronguard.core.model import ScheduleText
from cronguard.core.schedule import Schedule, parse_schedule
from cronguard.core.zones import load_zone
from tests.support.slot_oracle import UTC, Clock, Expected, changes

ZONES = (
    "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Johannesburg", "America/Asuncion",
    "America/Bogota", "America/Chicago", "America/Havana", "America/Los_Angeles", "America/Mexico_City",
    "America/Miquelon", "America/New_York", "America/Nuuk", "America/Sao_Paulo", "America/Santiago",
    "America/Scoresbysund", "America/St_Johns", "Antarctica/Troll", "Asia/Beirut", "Asia/Famagusta",
    "Asia/Gaza", "Asia/Jerusalem", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Tokyo",
    "Atlantic/Azores", "Australia/Adelaide", "Australia/Lord_Howe", "Australia/Sydney", "Europe/Athens",
    "Europe/Berlin", "Europe/Chisinau", "Europe/Dublin", "Europe/Lisbon", "Europe/London",
    "Europe/Rome", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter", "Pacific/Norfolk",
)  # fmt: skip
CRONS = (
    "30 2 * * *", "*/15 * * * *", "0 * * * *", "0 0 * * *", "0 */2 * * *", "*/30 2 * * *", "0-59 1-3 * * *",
    "15,45 0-23 * * *", "30 23 * * 1-5", "0,30 0,1,2,3 * * 0",
)  # fmt: skip
# Changes that no year repeats: a day left out, a day lived twice, half an hour for good, a week between two.
ODD_CHANGES = (
    ("Pacific/Apia", "2011-12-30"), ("Pacific/Kwajalein", "1993-08-21"), ("Pacific/Kwajalein", "1969-09-30"),
    ("Asia/Pyongyang", "2018-05-04"), ("America/Caracas", "2016-05-01"), ("Asia/Kathmandu", "1985-12-31"),
    ("Europe/Istanbul", "2015-11-08"), ("Asia/Dhaka", "2009-06-19"), ("Antarctica/Casey", "2018-03-10"),
    ("America/Boa_Vista", "2000-10-08"), ("America/Boa_Vista", "2000-10-15"), ("Pacific/Enderbury", "1994-12-31"),
)  # fmt: skip
HOUR = timedelta(hours=1)


def engine(cron: str, zone: str) -> Schedule:
    return parse_schedule(ScheduleText("cron", cron), zone)


def found(cron: str, zone: str, clock: Clock, step: int = 1) -> List[Expected]:
    slots = engine(cron, zone).between(clock.low, clock.high, step)
    return [Expected(slot.label, slot.at_utc, slot.note) for slot in slots]


@lru_cache(maxsize=None)
def changes_of(zone: str) -> Tuple[datetime, ...]:
    return tuple(changes(load_zone(zone), datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)))


@pytest.mark.parametrize("zone", ZONES)
def test_slots_around_every_change_are_those_of_brute_force(zone: str) -> None:
    """FR-86, FR-88, FR-90, FR-93, FR-104."""
    for change in changes_of(zone) or (datetime(2026, 3, 29, tzinfo=UTC),):
        clock = Clock(load_zone(zone), change - 4 * HOUR, change + 4 * HOUR, 3 * HOUR)
        for cron in CRONS:
            assert found(cron, zone, clock) == clock.slots(cron), (cron, change)


@pytest.mark.parametrize(("zone", "day"), ODD_CHANGES)
def test_slots_around_odd_changes_are_those_of_brute_force(zone: str, day: str) -> None:
    middle = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    clock = Clock(load_zone(zone), middle - 14 * HOUR, middle + 14 * HOUR, 25 * HOUR)
    assert changes(load_zone(zone), clock.low, clock.high)
    for cron in CRONS:
        forwards = found(cron, zone, clock)
        assert forwards == clock.slots(cron), cron
        assert found(cron, zone, clock, -1) == forwards[::-1], cron


@pytest.mark.parametrize("zone", ZONES[::2])
@pytest.mark.parametrize("cron", CRONS[:5])
def test_slot_of_an_instant_moves_on_and_never_back_wherever_the_search_began(zone: str, cron: str) -> None:
    """FR-93, the grid in a reduced form: one second, one hour and forty days before every change."""
    schedule = engine(cron, zone)
    for change in changes_of(zone)[:2]:
        times = [change + minutes * timedelta(minutes=23) for minutes in range(-6, 12)]
        latest = [schedule.latest_due(at) for at in times]
        for at, slot in zip(times, latest):
            assert slot is not None
            assert slot.at_utc <= at < next(schedule.slots_from(slot.at_utc + timedelta(seconds=1))).at_utc
        assert latest == sorted(latest, key=lambda slot: slot.at_utc)  # type: ignore[union-attr]
        from_far = list(schedule.due_between(times[0] - timedelta(days=40), times[-1]))
        for begin in (times[0] - timedelta(seconds=1), times[0] - HOUR):
            assert list(schedule.due_between(begin, times[-1])) == [slot for slot in from_far if slot.at_utc > begin]
