"""Instants as people write them, and as cronguard does."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from cronguard.core.instants import iso_minutes, local_text, parse_instant, utc_text
from cronguard.errors import ScheduleError

NOW = datetime(2026, 1, 20, 12, 0, 30, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-20T02:00", "2026-01-20T01:00:00"),
        ("2026-01-20 02:00:15", "2026-01-20T01:00:15"),
        ("2026-01-20T02:00:15.25", "2026-01-20T01:00:15.250000"),
        ("2026-01-20T02:00Z", "2026-01-20T02:00:00"),
        ("2026-01-20t02:00z", "2026-01-20T02:00:00"),
        ("2026-01-20T02:00+05:45", "2026-01-19T20:15:00"),
        ("2026-01-20T02:00-0330", "2026-01-20T05:30:00"),
        ("2026-01-20T02:00+01", "2026-01-20T01:00:00"),
        ("2026-01-20", "2026-01-19T23:00:00"),
        ("2026-07-20", "2026-07-19T22:00:00"),
        ("36h", "2026-01-19T00:00:30"),
        ("1h30m", "2026-01-20T10:30:30"),
        ("0s", "2026-01-20T12:00:30"),
    ],
)
def test_text_means_an_instant(text: str, expected: str) -> None:
    parsed = parse_instant(text, "Europe/Rome", NOW)
    assert parsed.utcoffset() == timedelta(0)
    assert parsed.replace(tzinfo=None).isoformat() == expected


def test_local_time_in_a_gap_is_the_end_of_it_and_in_a_fold_the_first_pass() -> None:
    assert utc_text(parse_instant("2026-03-29T02:30", "Europe/Rome", NOW)) == "2026-03-29T01:00Z"
    assert utc_text(parse_instant("2026-10-25T02:30", "Europe/Rome", NOW)) == "2026-10-25T00:30Z"
    assert utc_text(parse_instant("2025-09-07", "America/Santiago", NOW)) == "2025-09-07T04:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "yesterday", "2026", "20260120", "90", "٣h", "2026-1-20", "2026-01-32", "2026-02-29", "2026-01-20T",
        "2026-01-20T24:00", "2026-01-20T2:00", "2026-01-20T02", "2026-01-20T02:00+24:00", "2026-01-20T02:00+01:60",
        "2026-01-20T02:00Z+01:00", "2026-01-20T02:00 +01:00", "2026-01-20X02:00", "2026-W04-2", "2026-01-20T02:00\n",
        "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "-36h", "99999999999d", "2026-01-20T02:00:00.1234567",
    ],
)  # fmt: skip
def test_other_text_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_instant(text, "Europe/Rome", NOW)
    assert str(caught.value).startswith(f"bad instant: {text!r}: ")


def test_instants_are_written_with_seconds_only_where_they_are_not_zero() -> None:
    at = datetime(2026, 1, 20, 2, 0, tzinfo=timezone(timedelta(hours=1)))
    assert utc_text(at) == "2026-01-20T01:00Z"
    assert utc_text(at.replace(second=5)) == "2026-01-20T01:00:05Z"
    assert iso_minutes(at.replace(tzinfo=None)) == "2026-01-20T02:00"
    assert local_text(at, in_utc=False) == "2026-01-20T02:00+01:00"
    assert local_text(at.astimezone(timezone.utc), in_utc=True) == "2026-01-20T01:00Z"
