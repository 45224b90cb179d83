"""Which units are missing: the right days around every change of the clock, each once, lazily."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import List

import pytest

from cronguard.core.missing import PAGE, Missing, Stretch, Timetable, Unit, missing_of, most_claims
from cronguard.core.model import ScheduleText
from cronguard.core.schedule import parse_schedule

ROME = "Europe/Rome"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def times(cron: str, mode: str = "slot", zone: str = ROME) -> Timetable:
    return Timetable(parse_schedule(ScheduleText("cron", cron), zone), mode, zone)


def keys(table: Timetable, low: str, high: str) -> List[str]:
    return [unit.key for unit in table.units(Stretch(utc(low), utc(high)))]


@pytest.mark.parametrize(
    ("low", "high", "days"),
    [
        ("2026-03-26T23:00", "2026-04-01T22:00", ["27", "28", "29", "30", "31", "01"]),
        ("2027-03-25T23:00", "2027-03-31T22:00", ["26", "27", "28", "29", "30", "31"]),
        ("2026-10-22T22:00", "2026-10-28T23:00", ["23", "24", "25", "26", "27", "28"]),
        ("2027-10-28T22:00", "2027-11-02T23:00", ["29", "30", "31", "01", "02"]),
    ],
)
def test_week_of_a_clock_change_has_each_day_once(low: str, high: str, days: List[str]) -> None:
    """FR-86: 02:30 exists neither on the last Sunday of March nor once on that of October."""
    found = keys(times("30 2 * * *"), low, high)
    assert [key[8:10] for key in found] == days
    assert all(key.endswith("T02:30") for key in found)


def test_wildcards_follow_real_time_and_days_unite_their_slots() -> None:
    low, high = "2026-10-24T22:00", "2026-10-25T23:00"
    quarters = keys(times("*/15 * * * *"), low, high)
    assert len(quarters) == len(set(quarters)) == 100
    assert keys(times("*/15 * * * *", "day"), low, high) == ["2026-10-25"]
    assert keys(times("0 */6 * * *", "day"), "2026-03-27T23:00", "2026-03-30T22:00") == [
        "2026-03-28", "2026-03-29", "2026-03-30",
    ]  # fmt: skip


def test_unit_is_known_by_its_first_slot() -> None:
    (unit,) = times("0 8,20 * * *", "day").units(Stretch(utc("2026-01-20T00:00"), utc("2026-01-21T00:00")))
    assert (unit.key, unit.slot.label) == ("2026-01-20", "2026-01-20T08:00")


def test_pages_are_made_as_they_are_asked_for() -> None:
    """FR-80: nobody walks through thirty thousand slots to see the first page."""
    table = times("* * * * *", zone="UTC")
    stretch = Stretch(utc("0001-02-01T00:00"), utc("9999-01-01T00:00"))
    first, second = islice(table.pages(stretch), 2)
    assert len(first) == len(second) == PAGE
    assert second[0].slot.at_utc - first[-1].slot.at_utc == timedelta(minutes=1)


def test_unit_of_the_time_when_the_job_became_known_counts_only_if_it_was_tried() -> None:
    """FR-82: a job that is new today is not sent to yesterday; the slot of its very first run is its business."""
    table = times("0 2 * * *", zone="UTC")
    stretch = table.stretch(utc("2026-01-20T02:00:01"), utc("2026-01-01T00:00"), utc("2026-01-22T00:00"))
    units = list(table.units(stretch))
    assert [unit.key for unit in units] == ["2026-01-20T02:00Z", "2026-01-21T02:00Z"]
    undone = frozenset(unit.key for unit in units)
    assert [each.key for each in missing_of(units, undone, {}, stretch.lead)] == ["2026-01-21T02:00Z"]
    tried = missing_of(units, undone, {"2026-01-20T02:00Z": 2}, stretch.lead)
    assert [(each.key, each.claims) for each in tried] == [("2026-01-20T02:00Z", 2), ("2026-01-21T02:00Z", 0)]


def test_what_is_done_is_not_missing() -> None:
    units: List[Unit] = list(times("0 * * * *").units(Stretch(utc("2026-01-20T00:00"), utc("2026-01-20T03:00"))))
    found = missing_of(units, frozenset([units[1].key]), {}, None)
    assert found == [Missing(units[1].key, units[1].slot, 0)]


def test_never_redone_means_one_claim() -> None:
    assert (most_claims("never"), most_claims("failed")) == (1, 3)
