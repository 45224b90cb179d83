"""Run keys: what "once" means for one invocation, and what the command is told of its slot.

The key is fixed at the start from slot or start instant, in the company's zone, and never changes with the clock.
Days, weeks and months are those of the slot's nominal local label, so that a run that starts after midnight still
belongs to yesterday (FR-76); the hour is that of the slot's instant, with its offset, for an hour may come twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Dict, Optional

from cronguard.core.instants import local_text, utc_text
from cronguard.core.model import Slot
from cronguard.core.zones import is_utc, load_zone
from cronguard.errors import ScheduleError

_LONGEST = 200


def key_for(mode: str, slot: Optional[Slot], at_utc: datetime, zone: str) -> str:
    """The run key for `--key slot|day|hour|week|month`; without a slot by the instant `at_utc` of the start."""
    local = _local(slot, at_utc, zone)
    nominal = slot.nominal if slot else local
    if mode == "slot":
        if slot is None:
            raise ScheduleError("--key: slot: there is no schedule", "give --cron, --calendar or --every")
        return slot.label
    if mode == "hour":
        # Cut from the text: at 01:30+10:30 on Lord Howe the clock never showed 01:00+10:30.
        text = local_text(local.replace(second=0), is_utc(zone))
        return text[:13] + text[16:]
    if mode == "week":
        year, week, _ = nominal.isocalendar()
        return f"{year:04d}-W{week:02d}"
    day = nominal.date().isoformat()
    return day[:7] if mode == "month" else day


def check_run_key(text: str) -> Optional[str]:
    """What is wrong with a text as `--run-key`, None if nothing: 1 to 200 printable characters, kept byte for byte."""
    if not 1 <= len(text) <= _LONGEST:
        return f"{len(text)} characters long; 1 to {_LONGEST} are allowed"
    # A lone surrogate stands for bytes in argv that are not UTF-8; it is not printable either.
    strange = next((letter for letter in text if not letter.isprintable()), None)
    return f"the character {strange!r} is not printable" if strange else None


def identity(job: str, key: str) -> str:
    """Job and key in one text: `billing-sync:2026-01-20T02:00Z`."""
    return f"{job}:{key}"


def environment_for(slot: Optional[Slot], at_utc: datetime, zone: str) -> Dict[str, str]:
    """What the command is told of its time. Without a slot the slot's two are empty, never an outer run's."""
    nominal = slot.nominal if slot else _local(slot, at_utc, zone)
    return {
        "CRONGUARD_SLOT": utc_text(slot.at_utc) if slot else "",
        "CRONGUARD_SLOT_LOCAL": local_text(slot.local, is_utc(zone)) if slot else "",
        "CRONGUARD_DAY": nominal.date().isoformat(),
        "CRONGUARD_ZONE": zone,
    }


def _local(slot: Optional[Slot], at_utc: datetime, zone: str) -> datetime:
    return slot.local if slot else at_utc.astimezone(load_zone(zone))
