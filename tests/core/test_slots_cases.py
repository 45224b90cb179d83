"""The shared table of expected slots and keys, whole: tests/core/slots_cases.json, made by another engine."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict

import pytest

from cronguard.commands.next import as_json, coming
from cronguard.core.model import ScheduleText
from cronguard.core.runkey import key_for
from cronguard.core.schedule import Schedule, parse_schedule
from cronguard.errors import ScheduleError

CASES = json.loads((Path(__file__).parent / "slots_cases.json").read_text(encoding="utf-8"))
Case = Dict[str, Any]


def instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def schedule_of(case: Case) -> Schedule:
    kind = next(kind for kind in ("cron", "every", "calendar") if kind in case)
    return parse_schedule(ScheduleText(kind, case[kind]), case["zone"])


def named(kind: str) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES[kind]])


@named("slots")
def test_coming_slots_are_those_of_the_table(case: Case) -> None:
    """FR-86, FR-88, FR-90, FR-84."""
    slots = coming(schedule_of(case), instant(case["from"]), case["count"])
    assert as_json(slots) == {"version": 1, "slots": case["slots"]}


@named("instants")
def test_slot_and_keys_of_an_instant_are_those_of_the_table(case: Case) -> None:
    """FR-74, FR-76, FR-86."""
    at_utc = instant(case["at"])
    slot = schedule_of(case).latest(at_utc) if case["slot"] else None
    if slot:
        assert as_json([slot])["slots"] == [case["slot"]]
    assert {mode: key_for(mode, slot, at_utc, case["zone"]) for mode in case["keys"]} == case["keys"]


@named("invalid")
def test_wrong_schedule_is_refused_with_the_reason(case: Case) -> None:
    with pytest.raises(ScheduleError) as caught:
        schedule_of(case)
    assert case["why"] in str(caught.value)
