"""`next` as a use case: what it finds, what it refuses. The table of slots_cases.json has its JSON."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from cronguard.commands.next import MOST, as_json, next_slots
from cronguard.core.model import ScheduleText
from cronguard.core.wallclock import UTC
from cronguard.errors import ScheduleError, UsageError

NIGHTLY = ScheduleText("cron", "0 2 * * *")
FROM = datetime(2026, 1, 20, 1, tzinfo=UTC)


def test_from_is_inclusive_and_the_result_says_what_was_asked() -> None:
    found = next_slots(NIGHTLY, "Europe/Rome", FROM, 2, job="nightly")
    assert found[:3] == ("nightly", NIGHTLY, "Europe/Rome")
    assert [slot.label for slot in found.slots] == ["2026-01-20T02:00", "2026-01-21T02:00"]


def test_json_has_exactly_the_promised_keys() -> None:
    slots = next_slots(ScheduleText("every", "90s"), "UTC", FROM, 2).slots
    assert json.loads(json.dumps(as_json(slots))) == {
        "version": 1,
        "slots": [
            {"key": time, "local": time, "utc": time, "note": None}
            for time in ("2026-01-20T01:00Z", "2026-01-20T01:01:30Z")
        ],
    }


@pytest.mark.parametrize("count", [0, -1, MOST + 1])
def test_silly_count_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match="--count: bad number"):
        next_slots(NIGHTLY, "UTC", FROM, count)


def test_wrong_schedule_is_refused() -> None:
    with pytest.raises(ScheduleError, match="--cron: bad hour"):
        next_slots(ScheduleText("cron", "0 25 * * *"), "UTC", FROM, 1)
