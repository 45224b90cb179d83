"""Run keys and what the command is told of its slot."""

from __future__ import annotations

from datetime import datetime
from typing import Optional

import pytest

from cronguard.core.model import ScheduleText, Slot
from cronguard.core.runkey import check_run_key, environment_for, identity, key_for
from cronguard.core.schedule import parse_schedule
from cronguard.core.wallclock import UTC
from cronguard.errors import ScheduleError


def slot_at(cron: str, zone: str, at: datetime) -> Optional[Slot]:
    return parse_schedule(ScheduleText("cron", cron), zone).latest(at)


def test_late_run_is_told_of_its_slot_and_never_of_today() -> None:
    """FR-76."""
    at = datetime(2026, 1, 20, 23, 10, tzinfo=UTC)  # past midnight in Rome
    assert environment_for(slot_at("30 23 * * *", "Europe/Rome", at), at, "Europe/Rome") == {
        "CRONGUARD_SLOT": "2026-01-20T22:30Z",
        "CRONGUARD_SLOT_LOCAL": "2026-01-20T23:30+01:00",
        "CRONGUARD_DAY": "2026-01-20",
        "CRONGUARD_ZONE": "Europe/Rome",
    }


def test_day_is_that_of_the_label_even_where_that_day_does_not_exist() -> None:
    """The slot of 30 December 2011 in Apia came when it was the 31st."""
    at = datetime(2011, 12, 30, 10, tzinfo=UTC)
    slot = slot_at("30 2 * * *", "Pacific/Apia", at)
    told = environment_for(slot, at, "Pacific/Apia")
    assert told["CRONGUARD_DAY"] == key_for("day", slot, at, "Pacific/Apia") == "2011-12-30"
    assert told["CRONGUARD_SLOT_LOCAL"] == "2011-12-31T00:00+14:00"
    assert key_for("hour", slot, at, "Pacific/Apia") == "2011-12-31T00+14:00"


def test_without_a_schedule_the_start_instant_decides_and_no_outer_slot_shines_through() -> None:
    at = datetime(2026, 1, 19, 23, 30, tzinfo=UTC)
    assert environment_for(None, at, "Europe/Rome") == {
        "CRONGUARD_SLOT": "",
        "CRONGUARD_SLOT_LOCAL": "",
        "CRONGUARD_DAY": "2026-01-20",
        "CRONGUARD_ZONE": "Europe/Rome",
    }


@pytest.mark.parametrize(
    ("mode", "key"),
    [("slot", "2026-01-20T02:00Z"), ("hour", "2026-01-20T02Z"), ("day", "2026-01-20"), ("month", "2026-01")],
)
def test_keys_in_utc(mode: str, key: str) -> None:
    at = datetime(2026, 1, 20, 2, 59, 30, tzinfo=UTC)
    assert key_for(mode, slot_at("0 2 * * *", "UTC", at), at, "UTC") == key


@pytest.mark.parametrize(
    ("zone", "at", "key"),
    [
        ("Asia/Kathmandu", datetime(2026, 1, 20, 2, 59, 30, 5, tzinfo=UTC), "2026-01-20T08+05:45"),
        ("Australia/Lord_Howe", datetime(2025, 4, 5, 14, 30, tzinfo=UTC), "2025-04-06T01+11:00"),
        ("Australia/Lord_Howe", datetime(2025, 4, 5, 15, 0, tzinfo=UTC), "2025-04-06T01+10:30"),
        ("UTC", datetime(2026, 1, 20, 0, 0, 1, tzinfo=UTC), "2026-01-20T00Z"),
    ],
)
def test_hour_without_a_schedule_is_that_of_the_start(zone: str, at: datetime, key: str) -> None:
    assert key_for("hour", None, at, zone) == key


def test_key_slot_without_a_schedule_is_refused() -> None:
    with pytest.raises(ScheduleError, match="--key: slot: there is no schedule"):
        key_for("slot", None, datetime(2026, 1, 20, tzinfo=UTC), "UTC")


@pytest.mark.parametrize("text", ["x", "Rechnung 4711 für März", "a" * 200, "2026-01-20T02:00Z", "日本"])
def test_printable_text_is_a_run_key(text: str) -> None:
    assert check_run_key(text) is None


@pytest.mark.parametrize("text", ["", "a" * 201, "a\nb", "a\tb", "\0", "a\x1b[31m", "\udcff", "a\u200bb", "a\u2028"])
def test_empty_long_or_unprintable_text_is_no_run_key(text: str) -> None:
    assert check_run_key(text)


def test_identity_is_job_and_key() -> None:
    assert identity("billing-sync", "2026-01-20T02:00Z") == "billing-sync:2026-01-20T02:00Z"
