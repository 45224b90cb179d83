"""Schedules around changes of the clock, leap days, early and late starts. Tables of expected instants, with offsets.

Europe/Berlin 2026: 29 March 01:00Z (02:00 -> 03:00), 25 October 01:00Z (03:00 -> 02:00).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from time import perf_counter
from typing import List, Optional

import pytest

from cronguard.core.instants import iso_minutes
from cronguard.core.model import ScheduleText, Slot
from cronguard.core.schedule import Schedule, parse_schedule
from cronguard.core.wallclock import UTC
from cronguard.errors import ScheduleError


def cron(text: str, zone: str) -> Schedule:
    return parse_schedule(ScheduleText("cron", text), zone)


def every(text: str, zone: str = "UTC") -> Schedule:
    return parse_schedule(ScheduleText("every", text), zone)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def label(slot: Optional[Slot]) -> str:
    assert slot is not None
    return slot.label


def day(text: str, zone: str, start: str, hours: int) -> List[Slot]:
    return list(cron(text, zone).between(utc(start), utc(start) + timedelta(hours=hours)))


def test_fixed_slot_in_a_gap_keeps_its_label_and_comes_at_the_end_of_it() -> None:
    """FR-86."""
    assert label(cron("30 2 * * *", "Europe/Berlin").latest(utc("2026-03-29T01:00"))) == "2026-03-29T02:30"
    assert label(cron("30 2 * * *", "Europe/Berlin").latest(utc("2026-03-29T00:59:50"))) == "2026-03-28T02:30"


def test_fixed_slot_in_a_fold_is_due_once_at_the_first_pass() -> None:
    """FR-86: the second pass still belongs to the same slot, so it is done already."""
    schedule = cron("30 2 * * *", "Europe/Berlin")
    assert label(schedule.latest(utc("2026-10-25T00:30"))) == "2026-10-25T02:30"
    assert schedule.latest(utc("2026-10-25T01:30")) == schedule.latest(utc("2026-10-25T00:30"))


def test_daily_slot_at_the_change_itself_has_no_hole_and_no_double() -> None:
    """FR-104: a daily job at 02:00 over the days of 25 and of 23 hours."""
    slots = [f"{slot.at_utc:%d %H:%M}" for slot in day("0 2 * * *", "Europe/Berlin", "2026-10-24T00:00", 72)]
    assert slots == ["24 00:00", "25 00:00", "26 01:00"]
    slots = [f"{slot.at_utc:%d %H:%M}" for slot in day("0 2 * * *", "Europe/Berlin", "2026-03-28T00:00", 72)]
    assert slots == ["28 01:00", "29 01:00", "30 00:00"]


def test_wildcard_slots_follow_real_time() -> None:
    """FR-88: 100 quarters of an hour on the long day, 92 on the short one, each with a key of its own."""
    long_day = day("*/15 * * * *", "Europe/Berlin", "2026-10-24T22:00", 25)
    short_day = day("*/15 * * * *", "Europe/Berlin", "2026-03-28T23:00", 23)
    assert [len({slot.label for slot in slots}) for slots in (long_day, short_day)] == [100, 92]


@pytest.mark.parametrize(
    ("text", "short_day", "long_day"),
    [
        ("*/30 2 * * *", [], ["00:00", "00:30", "01:00", "01:30"]),
        ("0-59/30 2 * * *", ["01:00"], ["00:00", "00:30"]),
        ("0 */2 * * *", ["23:00", "02:00"], ["22:00", "00:00", "01:00"]),
        ("0 0-3 * * *", ["23:00", "00:00", "01:00"], ["22:00", "23:00", "00:00", "02:00"]),
    ],
)
def test_classification_decides_what_a_change_does(text: str, short_day: List[str], long_day: List[str]) -> None:
    """FR-88: in the hours around both changes, in UTC."""
    assert [f"{slot.at_utc:%H:%M}" for slot in day(text, "Europe/Berlin", "2026-03-28T23:00", 4)] == short_day
    assert [f"{slot.at_utc:%H:%M}" for slot in day(text, "Europe/Berlin", "2026-10-24T22:00", 5)] == long_day


def test_labels_that_land_on_one_instant_are_one_slot_labelled_by_the_latest() -> None:
    slots = day("0,30 2,3 * * *", "Europe/Rome", "2026-03-29T00:00", 3)
    assert [(slot.label, slot.note) for slot in slots] == [("2026-03-29T03:00", None), ("2026-03-29T03:30", None)]
    slots = day("0,30 2 * * *", "Europe/Rome", "2026-03-29T00:00", 3)
    assert [(slot.label, slot.note) for slot in slots] == [("2026-03-29T02:30", "gap")]


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("America/Santiago", "2026-09-04T12:00"),
        ("Africa/Cairo", "2026-04-22T12:00"),
        ("Asia/Beirut", "2026-03-27T12:00"),
        ("America/Havana", "2026-03-06T12:00"),
    ],
)
@pytest.mark.parametrize("text", ["0 0 * * *", "0 6 * * *", "30 23 * * *"])
def test_zone_whose_midnight_is_missing_has_one_slot_a_day(zone: str, start: str, text: str) -> None:
    """FR-90."""
    started = perf_counter()
    slots = list(islice(cron(text, zone).slots_from(utc(start)), 5))
    assert perf_counter() - started < 0.1
    days = [slot.nominal.date() for slot in slots]
    assert days == [days[0] + timedelta(days=n) for n in range(5)]
    assert [cron(text, zone).latest(slot.at_utc) for slot in slots] == slots


def test_last_hour_of_a_day_that_comes_twice_has_one_slot() -> None:
    """FR-90: Cairo, 29 October 2026, 23:30 at 20:30Z and at 21:30Z."""
    slots = day("30 23 * * *", "Africa/Cairo", "2026-10-29T12:00", 24)
    assert [(slot.label, slot.at_utc, slot.note) for slot in slots] == [
        ("2026-10-29T23:30", utc("2026-10-29T20:30"), "fold")
    ]


def test_every_second_hour_in_a_zone_of_odd_quarters_goes_backwards_too() -> None:
    """Pacific/Chatham is 12:45 or 13:45 ahead and changes at 02:45 and 03:45."""
    schedule = cron("0 */2 * * *", "Pacific/Chatham")
    low, high = utc("2026-04-03T00:00"), utc("2026-04-06T00:00")
    slots = list(schedule.between(low, high))
    assert [iso_minutes(slot.local)[11:] for slot in slots if slot.nominal.hour in (2, 4)][2:6] == [
        "02:00+13:45", "04:00+12:45", "02:00+12:45", "04:00+12:45",
    ]  # fmt: skip
    assert list(schedule.between(low, high, -1)) == slots[::-1]


def test_day_that_a_zone_left_out_is_a_gap_like_any_other() -> None:
    """Apia had no 30 December 2011."""
    wild = day("0 */6 * * *", "Pacific/Apia", "2011-12-30T00:00", 24)
    assert [slot.label for slot in wild] == [
        "2011-12-29T18:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T06:00+14:00", "2011-12-31T12:00+14:00",
    ]  # fmt: skip
    fixed = cron("0 3 * * *", "Pacific/Apia")
    assert label(fixed.latest(utc("2011-12-30T10:00"))) == "2011-12-30T03:00"


def test_weekdays_are_those_of_the_company_zone() -> None:
    """FR-99: 23:30 on weekdays in Auckland, 11:30 or 10:30 UTC."""
    for start in ("2026-07-01T00:00", "2027-01-01T00:00"):
        for slot in islice(cron("30 23 * * 1-5", "Pacific/Auckland").slots_from(utc(start)), 20):
            assert slot.local.isoweekday() <= 5
            assert f"{slot.local:%H:%M}" == "23:30"


def test_long_month_days_and_leap_days_come_when_they_exist() -> None:
    """FR-84: nothing in April for day 31; no leap day in 2100."""
    thirty_first = cron("0 5 31 * *", "Europe/Rome")
    assert label(thirty_first.latest(utc("2026-05-01T03:00"))) == "2026-03-31T05:00"
    leap = cron("0 0 29 2 *", "Europe/Rome")
    assert label(next(leap.slots_from(utc("2096-03-01T00:00")))) == "2104-02-29T00:00"
    assert label(leap.latest(utc("2104-01-01T00:00"))) == "2096-02-29T00:00"


@pytest.mark.parametrize("text", ["0 0 29 2 *", "* * 29 2 *", "*/5 * 29 2 6", "0 4 1 1 *", "* * * * *"])
def test_latest_slot_is_found_quickly_however_long_ago(text: str) -> None:
    started = perf_counter()
    cron(text, "Europe/Rome").latest(utc("2104-01-31T12:00:30"))
    assert perf_counter() - started < 0.2  # 20 ms at the worst on an idle machine


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("12:59:57.999", "12:00"),
        ("12:59:58", "13:00"),
        ("12:59:59.998", "13:00"),
        ("13:00:00", "13:00"),
        ("13:00:00.500", "13:00"),
        ("13:59:57", "13:00"),
    ],
)
def test_timer_that_fires_a_little_early_gets_the_slot_it_is_for(at: str, expected: str) -> None:
    """FR-74."""
    assert label(cron("0 * * * *", "UTC").latest(utc(f"2026-01-20T{at}"))) == f"2026-01-20T{expected}Z"


def test_tolerance_never_merges_neighbours() -> None:
    """FR-74: at most a quarter of the distance to the slot before."""
    minutely = cron("* * * * *", "UTC")
    assert label(minutely.latest(utc("2026-01-20T12:59:00"))) == "2026-01-20T12:59Z"
    assert label(minutely.latest(utc("2026-01-20T12:59:58"))) == "2026-01-20T13:00Z"
    assert label(every("4s").latest(utc("2026-01-20T12:00:02.900"))) == "2026-01-20T12:00Z"
    assert label(every("4s").latest(utc("2026-01-20T12:00:03"))) == "2026-01-20T12:00:04Z"
    assert label(every("1s").latest(utc("2026-01-20T12:00:00.700"))) == "2026-01-20T12:00Z"


def test_late_start_keeps_its_slot_over_midnight() -> None:
    """FR-76."""
    assert label(cron("30 23 * * *", "Europe/Rome").latest(utc("2026-01-20T23:10"))) == "2026-01-20T23:30"


def test_due_slots_are_those_after_one_instant_and_up_to_the_other() -> None:
    due = cron("0 * * * *", "UTC").due_between(utc("2026-01-20T12:00"), utc("2026-01-20T14:00"))
    assert [slot.label for slot in due] == ["2026-01-20T13:00Z", "2026-01-20T14:00Z"]
    assert not list(cron("0 * * * *", "UTC").due_between(utc("2026-01-20T14:00"), utc("2026-01-20T12:00")))


def test_every_is_aligned_to_the_epoch_whatever_the_zone() -> None:
    slots = list(islice(every("7m", "Asia/Kathmandu").slots_from(utc("2026-01-20T12:00")), 3))
    assert [slot.at_utc.timestamp() % 420 for slot in slots] == [0, 0, 0]
    assert slots[0].label == "2026-01-20T17:49+05:45"


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "Zulu"])
def test_labels_in_utc_end_in_z(zone: str) -> None:
    at = utc("2026-01-20T02:07")
    assert label(cron("0 2 * * *", zone).latest(at)) == "2026-01-20T02:00Z"
    assert label(cron("*/5 * * * *", zone).latest(at)) == "2026-01-20T02:05Z"
    assert label(every("90s", zone).latest(at)) == "2026-01-20T02:06Z"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0", "bad duration: '0'"),
        ("0s", "bad duration: '0s'"),
        ("", "bad duration: ''"),
        ("five", "bad duration: 'five'"),
        ("500ms", "bad duration: '500ms': not whole seconds"),
        ("-5m", "bad duration: '-5m'"),
        ("1d", "bad duration: '1d': more than 12h"),
        ("12h1s", "--cron"),
    ],
)
def test_period_is_from_one_second_to_twelve_hours(text: str, why: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        every(text)
    assert str(caught.value).startswith("--every: ")
    assert why in str(caught.value)


def test_search_ends_where_datetime_does() -> None:
    for plan in (cron("0 2 * * *", "Asia/Tokyo"), cron("*/5 * * * *", "Asia/Tokyo"), every("5m", "Asia/Tokyo")):
        assert list(plan.slots_from(datetime.max.replace(tzinfo=UTC))) == []
        assert plan.latest_due(datetime.min.replace(tzinfo=UTC)) is None
