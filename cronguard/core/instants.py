"""Instants as text: how cronguard writes them, and how it reads those that people give.

Writing: ISO 8601 to the minute, seconds only when they are not :00, `Z` for UTC. Reading: ISO 8601 (without an offset
in the company's zone), a date, or a duration ago. The reading is our own because `datetime.fromisoformat` takes other
texts with every Python version. The present is an argument, never read here.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cronguard.core.durations import parse_duration
from cronguard.core.wallclock import UTC, first_reached
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

_HINT = "write it as 2026-01-20, 2026-01-20T02:00, 2026-01-20T02:00Z, 2026-01-20T02:00+01:00 or, for so long ago, 36h"


def iso_minutes(moment: datetime) -> str:
    """ISO 8601 without seconds where they are :00, and with the offset if there is one: `2026-10-25T02:15+02:00`."""
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")


def utc_text(at_utc: datetime) -> str:
    """An instant in UTC: `2026-03-29T01:00Z`."""
    return iso_minutes(at_utc.astimezone(UTC).replace(tzinfo=None)) + "Z"


def local_text(local: datetime, in_utc: bool) -> str:
    """An aware local time with its offset, which in UTC is written `Z`."""
    return utc_text(local) if in_utc else iso_minutes(local)


def parse_instant(text: str, zone: str, now_utc: datetime) -> datetime:
    """The instant, in UTC, that a text means; ScheduleError for one that means none.

    A local time in a gap is the first instant after it, one that comes twice is the first of the two; a date is the
    first instant of that day in the zone.
    """
    try:
        if text[4:5] == "-":
            return _parse_iso(text, zone)
        return now_utc - _parse_ago(text)
    except (ValueError, OverflowError):
        raise ScheduleError(f"bad instant: {text!r}: neither a date and time nor a duration", _HINT) from None


def _parse_ago(text: str) -> timedelta:
    # A bare number is a duration elsewhere; here `20260120` must not mean eight months ago.
    if text.isdigit():
        raise ValueError(text)
    return timedelta(seconds=parse_duration(text))


def _parse_iso(text: str, zone: str) -> datetime:
    import re  # here, for the start path writes instants and reads none

    parts = re.fullmatch(
        r"(?P<day>\d{4}-\d\d-\d\d)"
        r"([T ](?P<clock>\d\d:\d\d(:\d\d(\.\d{1,6})?)?)(?P<zulu>Z)?(?P<offset>[+-]\d\d(:?\d\d)?)?)?",
        text.upper(),
        re.ASCII,
    )
    if parts is None or (parts["zulu"] and parts["offset"]):
        raise ValueError(text)
    whole, dot, fraction = (parts["clock"] or "00:00").partition(".")
    local = datetime.fromisoformat(f"{parts['day']}T{whole}{dot}{dot and fraction.ljust(6, '0')}")
    if parts["zulu"]:
        return local.replace(tzinfo=UTC)
    if parts["offset"]:
        return (local - _offset(parts["offset"])).replace(tzinfo=UTC)
    return first_reached(load_zone(zone), local)[0]


def _offset(text: str) -> timedelta:
    digits = text[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    return timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1)
