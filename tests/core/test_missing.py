"""Units of slots: which are owed, each once, in order, through clock changes; and which of them are missing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any, Iterator, List

import pytest

from cronguard.core.missing import PAGE, Missing, Stretch, Timetable, missing_of, most_claims
from cronguard.core.model import ScheduleText, Slot
from cronguard.core.schedule import Schedule, parse_schedule

UTC = timezone.utc
ROME = "Europe/Rome"
WEEK = timedelta(days=7)
# Monday 00:00 in Rome of the weeks in which the clocks change there.
MARCH_2026, OCTOBER_2026 = datetime(2026, 3, 22, 23, tzinfo=UTC), datetime(2026, 10, 18, 22, tzinfo=UTC)
MARCH_2027, OCTOBER_2027 = datetime(2027, 3, 21, 23, tzinfo=UTC), datetime(2027, 10, 24, 22, tzinfo=UTC)
WEEKS = [MARCH_2026, OCTOBER_2026, MARCH_2027, OCTOBER_2027]


def times(text: str, mode: str = "slot", zone: str = ROME) -> Timetable:
    return Timetable(parse_schedule(ScheduleText("cron", text), zone), mode, zone)


def week(timetable: Timetable, monday: datetime) -> List[Any]:
    """Its units, and a day more on either side that must make no difference."""
    spring = monday.month == 3
    end = monday + WEEK - timedelta(hours=1 if spring else -1)
    units = list(timetable.units(Stretch(monday, end)))
    wider = list(timetable.units(Stretch(monday - timedelta(days=1), end + timedelta(days=1))))
    assert [unit.key for unit in wider if monday <= unit.slot.at_utc < end] == [unit.key for unit in units]
    return units


@pytest.mark.parametrize("monday", WEEKS)
@pytest.mark.parametrize("clock", ["30 2", "0 0", "59 23", "0 3"])
def test_a_fixed_time_has_one_unit_a_day_with_that_days_label(monday: datetime, clock: str) -> None:
    """FR-86: also at a time that does not exist, or exists twice, on the Sunday."""
    units = week(times(f"{clock} * * *"), monday)
    minute, hour = clock.split()
    first = monday.astimezone(UTC).date() + timedelta(days=1)
    assert [unit.key for unit in units] == [
        f"{first + timedelta(days=number)}T{int(hour):02}:{int(minute):02}" for number in range(7)
    ]
    assert [unit.slot.at_utc for unit in units] == sorted({unit.slot.at_utc for unit in units})


@pytest.mark.parametrize(("monday", "hours"), list(zip(WEEKS, [167, 169, 167, 169])))
def test_a_wildcard_has_every_real_instant_once(monday: datetime, hours: int) -> None:
    """FR-88."""
    units = week(times("*/15 * * * *"), monday)
    assert len({unit.key for unit in units}) == len(units) == hours * 4
    gaps = {later.slot.at_utc - unit.slot.at_utc for unit, later in zip(units, units[1:])}
    assert gaps == {timedelta(minutes=15)}


@pytest.mark.parametrize("monday", WEEKS)
@pytest.mark.parametrize("text", ["0 6,12,18 * * *", "*/5 * * * *", "30 2,3 * * *"])
def test_several_slots_a_day_with_a_days_key_are_one_unit_at_the_first(monday: datetime, text: str) -> None:
    units = week(times(text, "day"), monday)
    assert [unit.key for unit in units] == sorted({unit.slot.nominal.date().isoformat() for unit in units})
    assert len(units) == 7
    slots = list(times(text).units(Stretch(monday, monday + WEEK)))
    assert {unit.slot for unit in units} <= {unit.slot for unit in slots}
    assert units[0].slot == slots[0].slot


def test_a_days_key_that_comes_back_in_a_fold_is_one_unit() -> None:
    """In 2010 St John's put its clocks back at one past midnight: the 7th, for a minute, and then the 6th again."""
    minutely = times("* * * * *", "day", "America/St_Johns")
    stretch = Stretch(datetime(2010, 11, 7, 1, tzinfo=UTC), datetime(2010, 11, 7, 6, tzinfo=UTC))
    assert [unit.key for unit in minutely.units(stretch)] == ["2010-11-06", "2010-11-07"]
    days = [slot.nominal.day for slot in minutely.schedule.between(stretch.low_utc, stretch.high_utc)]
    assert days != sorted(days)


class Counted(Schedule):
    """A schedule that knows how many of its slots were asked for."""

    def __init__(self, schedule: Schedule) -> None:
        self.made = 0
        self._inner = schedule

    def between(self, low_utc: datetime, high_utc: datetime, step: int = 1) -> Iterator[Slot]:
        for slot in self._inner.between(low_utc, high_utc, step):
            self.made += 1
            yield slot


def test_no_more_slots_are_made_than_are_asked_for() -> None:
    """FR-80: thirty thousand are missed, and the oldest is found at the first look."""
    counted = Counted(times("* * * * *").schedule)
    pages = Timetable(counted, "slot", ROME).pages(Stretch(MARCH_2026 - 3 * WEEK, MARCH_2026))
    assert len(next(pages)) == PAGE == counted.made
    assert sum(len(page) for page in islice(pages, 100)) == 30_240 - PAGE


# --- since when something is owed ---

KNOWN = datetime(2026, 1, 20, 13, 30, tzinfo=UTC)
HOURLY, DAILY = times("0 * * * *", zone="UTC"), times("0 6,12,18 * * *", "day", "UTC")
DAY_BEFORE, DAY_AFTER = KNOWN - timedelta(days=1), KNOWN + timedelta(days=1)


def owed(timetable: Timetable, low: datetime, claims: Any, high: datetime = DAY_AFTER) -> List[Missing]:
    """The missing ones of a job that was known since 13:30 and has done nothing."""
    stretch = timetable.stretch(KNOWN, low, high)
    units = list(timetable.units(stretch))
    return missing_of(units, {unit.key for unit in units}, claims, stretch.lead)


def test_nothing_before_the_job_was_known_is_owed() -> None:
    """FR-82."""
    found = owed(HOURLY, DAY_BEFORE, {})
    assert found[0].key == "2026-01-20T14:00Z"
    assert len(found) == 24


def test_what_the_first_run_was_about_is_owed_if_it_was_tried() -> None:
    found = owed(HOURLY, DAY_BEFORE, {"2026-01-20T13:00Z": 1})
    assert found[0] == Missing("2026-01-20T13:00Z", found[0].slot, 1)
    assert owed(HOURLY, KNOWN - timedelta(minutes=1), {"2026-01-20T13:00Z": 1})[0].key == "2026-01-20T14:00Z"


def test_a_unit_that_began_before_the_job_was_known_is_owed_at_its_next_slot() -> None:
    found = owed(DAILY, DAY_BEFORE, {})
    assert [unit.key for unit in found] == ["2026-01-20", "2026-01-21"]
    assert found[0].slot.at_utc == KNOWN.replace(hour=18, minute=0)


def test_a_unit_without_another_slot_is_owed_only_if_it_was_tried() -> None:
    high = KNOWN + timedelta(hours=1)
    assert owed(DAILY, DAY_BEFORE, {}, high) == []
    assert [unit.key for unit in owed(DAILY, DAY_BEFORE, {"2026-01-20": 2}, high)] == ["2026-01-20"]


def test_a_later_beginning_is_a_beginning() -> None:
    assert owed(HOURLY, KNOWN + timedelta(hours=3), {})[0].key == "2026-01-20T17:00Z"


def test_what_is_done_is_not_missing() -> None:
    units = list(HOURLY.units(Stretch(KNOWN, DAY_AFTER)))
    found = missing_of(units, {units[3].key, units[1].key}, {units[3].key: 2}, None)
    assert found == [Missing(*units[1], 0), Missing(*units[3], 2)]


def test_what_may_not_be_tried_again_is_given_up_at_once() -> None:
    assert (most_claims("failed"), most_claims("never")) == (3, 1)
