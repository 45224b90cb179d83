"""systemd calendar expressions: oncalendar parses, our walk and our rules for gap and fold do the rest."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from itertools import islice
from typing import List

import pytest

from cronguard.core.calendar import parse_calendar
from cronguard.core.model import ScheduleText
from cronguard.core.pattern import LAST
from cronguard.core.schedule import parse_schedule
from cronguard.core.wallclock import UTC
from cronguard.errors import ScheduleError

has_parser = pytest.mark.skipif(sys.version_info < (3, 10), reason="oncalendar needs Python 3.10")


def labels(text: str, zone: str, start: datetime, count: int) -> List[str]:
    slots = parse_schedule(ScheduleText("calendar", text), zone).slots_from(start.replace(tzinfo=UTC))
    return [slot.label for slot in islice(slots, count)]


@pytest.mark.skipif(sys.version_info >= (3, 10), reason="about older Pythons")
def test_calendar_on_an_older_python_is_a_clear_error() -> None:
    with pytest.raises(ScheduleError, match=r"--calendar: not supported: 'daily': .* needs Python 3.10"):
        parse_calendar("daily")


@has_parser
@pytest.mark.parametrize(
    "text",
    [
        "daily", "Mon..Fri 02:30", "Sat,Sun 00/6:15", "*-*-* *:0/20:30", "*-02~01 03:00", "*-*~07/1 12:00",
        "quarterly", "2027-*-29", "Mon *-05~07/1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("start", [datetime(2026, 1, 1), datetime(2026, 2, 27, 23, 59, 59), datetime(2027, 12, 31)])
def test_naive_walk_agrees_with_oncalendar(text: str, start: datetime) -> None:
    from oncalendar import BaseIterator

    ours = parse_calendar(text).between(start + timedelta(seconds=1), LAST)
    assert list(islice(ours, 30)) == list(islice(BaseIterator(text, start), 30))


@has_parser
def test_nothing_is_due_in_a_gap() -> None:
    start = datetime(2026, 3, 28, 12)
    assert labels("02:30", "Europe/Rome", start, 2) == ["2026-03-30T02:30", "2026-03-31T02:30"]
    assert labels("00:30", "Pacific/Apia", datetime(2011, 12, 29), 3) == [
        "2011-12-29T00:30", "2011-12-31T00:30", "2012-01-01T00:30",
    ]  # fmt: skip


@has_parser
def test_only_first_pass_of_a_repeated_hour_is_due() -> None:
    slots = labels("*:0/30", "Europe/Rome", datetime(2026, 10, 24, 23, 59), 5)
    assert slots == [f"2026-10-25T{time}" for time in ("02:00", "02:30", "03:00", "03:30", "04:00")]


@has_parser
def test_label_has_seconds_only_where_they_are_not_zero() -> None:
    slots = labels("*:*:0/30", "UTC", datetime(2026, 1, 20), 2)
    assert slots == ["2026-01-20T00:00Z", "2026-01-20T00:00:30Z"]


@has_parser
def test_expression_that_ends_has_a_last_slot_and_none_after_it() -> None:
    schedule = parse_schedule(ScheduleText("calendar", "2024-02-29 10:00"), "Europe/Rome")
    now = datetime(2026, 1, 20, tzinfo=UTC)
    assert list(schedule.slots_from(now)) == []
    assert schedule.latest(now).label == "2024-02-29T10:00"  # type: ignore[union-attr]
    assert schedule.latest(datetime(2020, 1, 1, tzinfo=UTC)) is None


@has_parser
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("25:00", "bad expression: '25:00': bad hour"),
        ("Fri..Mon 02:00", "bad day-of-week"),
        ("02:30 Europe/Rome", "without a time zone"),
        ("02:30 UTC", "without a time zone"),
        ("02:30\n03:30", "not one short line"),
        ("Mon 02:30 é", "not one short line"),
        ("9" * 5000, "not one short line"),
        ("", "bad expression: ''"),
        ("reboot", "bad expression: 'reboot'"),
        ("*-02-30", "no such date ever: '*-02-30'"),
        ("Mon 2026-01-01", "no such date ever: 'Mon 2026-01-01'"),
    ],
)
def test_wrong_expression_is_refused_with_its_text(text: str, why: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_calendar(text)
    assert str(caught.value).startswith("--calendar: ")
    assert why in str(caught.value)
