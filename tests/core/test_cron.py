"""Cron expressions, as Debian's cron reads them."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from time import perf_counter
from typing import List

import pytest

from cronguard.core.cron import parse_cron
from cronguard.core.pattern import LAST
from cronguard.errors import ScheduleError

MONDAY = datetime(2026, 6, 1)


def days(day: str, month: str, weekday: str, start: datetime = MONDAY, count: int = 6) -> List[str]:
    times = parse_cron(f"0 0 {day} {month} {weekday}").pattern.between(start, LAST)
    return [f"{time:%m-%d}" for time in islice(times, count)]


def clock(minute: str, hour: str) -> List[str]:
    times = parse_cron(f"{minute} {hour} * * *").pattern.between(MONDAY, MONDAY + timedelta(days=1))
    return [f"{time:%H:%M}" for time in times]


@pytest.mark.parametrize(
    ("minute", "hour", "times"),
    [
        ("5", "4", ["04:05"]),
        ("05", "004", ["04:05"]),
        ("*/30", "4", ["04:00", "04:30"]),
        ("*/90", "4", ["04:00"]),
        ("10-50/20", "4", ["04:10", "04:30", "04:50"]),
        ("50-50/7", "4", ["04:50"]),
        ("0,0,59", "0-23/12", ["00:00", "00:59", "12:00", "12:59"]),
        ("1-2,5", "23", ["23:01", "23:02", "23:05"]),
    ],
)
def test_minutes_and_hours_are_read_as_cron_reads_them(minute: str, hour: str, times: List[str]) -> None:
    assert clock(minute, hour) == times


@pytest.mark.parametrize(
    ("weekday", "expected"),
    [
        ("0", ["06-07", "06-14"]),
        ("7", ["06-07", "06-14"]),
        ("SUN", ["06-07", "06-14"]),
        ("5-7", ["06-05", "06-06", "06-07"]),
        ("mon-Wed", ["06-01", "06-02", "06-03", "06-08"]),
        ("sat,sun", ["06-06", "06-07", "06-13"]),
        ("*/2", ["06-02", "06-04", "06-06", "06-07"]),  # 0, 2, 4, 6
        ("*/7", ["06-07", "06-14"]),  # 0 and 7
    ],
)
def test_weekdays_have_names_and_two_sundays(weekday: str, expected: List[str]) -> None:
    assert days("*", "*", weekday, count=len(expected)) == expected


def test_day_and_weekday_are_either_or_unless_one_starts_with_a_star() -> None:
    assert days("13", "*", "5") == ["06-05", "06-12", "06-13", "06-19", "06-26", "07-03"]
    assert days("13", "*", "*", count=2) == ["06-13", "07-13"]
    # The star need not stand alone: these match the 1st, 3rd, ... only if they are Fridays.
    assert days("*/2", "*", "5", count=3) == ["06-05", "06-19", "07-03"]
    assert days("13", "*", "*/5", count=2) == ["09-13", "11-13"]
    # And it must come first.
    assert days("31,*", "*", "5", count=2) == ["06-01", "06-02"]


def test_months_have_names() -> None:
    assert days("1", "JAN,mar-May/2", "*", count=3) == ["01-01", "03-01", "05-01"]


@pytest.mark.parametrize(
    ("nickname", "expression"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        (" @annually\t", "0 0 1 1 *"),
    ],
)
def test_nickname_means_its_five_fields(nickname: str, expression: str) -> None:
    assert parse_cron(nickname) == parse_cron(expression)


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("30 2 * * *", True),
        ("0-59 2 * * *", True),
        ("0 0-23 * * *", True),
        ("5,* 2 * * *", True),
        ("0 2 */2 * *", True),
        ("*/30 2 * * *", False),
        ("0 */2 * * *", False),
        ("* 2 * * *", False),
        ("*,5 2 * * *", False),
        ("@hourly", False),
        ("@daily", True),
    ],
)
def test_job_is_fixed_when_neither_minute_nor_hour_starts_with_a_star(text: str, fixed: bool) -> None:
    """FR-88: Debian's classification and its edges."""
    assert parse_cron(text).fixed is fixed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("60 * * * *", "bad minute: '60'"),
        ("0 24 * * *", "bad hour: '24'"),
        ("0 0 0 * *", "bad day-of-month: '0'"),
        ("0 0 32 * *", "bad day-of-month: '32'"),
        ("0 0 * 13 *", "bad month: '13'"),
        ("0 0 * * 8", "bad day-of-week: '8'"),
        ("0 0 L * *", "bad day-of-month: 'L'"),
        ("0 0 15W * *", "bad day-of-month: '15W'"),
        ("0 0 * * 5L", "bad day-of-week: '5L'"),
        ("0 0 * * 5#2", "bad day-of-week: '5#2'"),
        ("0 0 ? * *", "bad day-of-month: '?'"),
        ("5/15 * * * *", "bad minute: '5/15': a step needs a range or *, such as 5-59/15"),
        ("*/0 * * * *", "bad minute: '*/0'"),
        ("*/ * * * *", "bad minute: '*/'"),
        ("*/-1 * * * *", "bad minute: '*/-1'"),
        ("0-10/2/2 * * * *", "bad minute: '0-10/2/2'"),
        ("0 22-2 * * *", "bad hour: '22-2': the range 22-2 runs backwards"),
        ("0 0 * * fri-sun", "bad day-of-week: 'fri-sun': the range fri-sun runs backwards"),
        ("0 0 * * monday", "bad day-of-week: 'monday'"),
        ("0 mon * * *", "bad hour: 'mon'"),
        ("0 0 * mon *", "bad month: 'mon'"),
        ("1,,2 * * * *", "bad minute: '1,,2'"),
        (", * * * *", "bad minute: ','"),
        ("*-5 * * * *", "bad minute: '*-5'"),
        ("** * * * *", "bad minute: '**'"),
        ("-5 * * * *", "bad minute: '-5'"),
        ("5- * * * *", "bad minute: '5-'"),
        ("+5 * * * *", "bad minute: '+5'"),
        ("٣ * * * *", "bad minute: '٣'"),
        ("9" * 5000 + " * * * *", "bad minute"),
        ("H * * * *", "bad minute: 'H'"),
        ("0~30 * * * *", "bad minute: '0~30'"),
        ("* * * *", "bad expression: '* * * *': 4 fields"),
        ("0 0 2 * * *", "6 fields instead of five"),
        ("0 2 * * *\n0 3 * * *", "9 fields instead of five"),
        ("0 2 *\xa0* * *", "bad day-of-month"),
        ("", "bad expression: '': 0 fields"),
        ("@reboot", "bad nickname: '@reboot'"),
        ("@every 5m", "bad nickname: '@every 5m'"),
        ("@Daily", "bad nickname: '@Daily'"),
    ],
)
def test_what_debian_does_not_know_is_refused_by_field_and_text(text: str, why: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_cron(text)
    assert str(caught.value).startswith("--cron: ")
    assert why in str(caught.value)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30-31 feb */2"])
def test_date_that_never_occurs_is_an_error_at_once(text: str) -> None:
    """FR-84."""
    started = perf_counter()
    with pytest.raises(ScheduleError, match="--cron: no such date ever: day-of-month"):
        parse_cron(text)
    assert perf_counter() - started < 1


def test_impossible_day_with_a_weekday_is_that_weekday() -> None:
    assert days("30", "2", "1", count=2) == ["02-01", "02-08"]
