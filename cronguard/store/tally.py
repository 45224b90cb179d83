"""Who started what lately, counted by the database: no history is read into memory."""

from __future__ import annotations

from datetime import datetime
from typing import List

from cronguard.core.checkup.facts import Starts, Tally, Twice
from cronguard.store import rows
from cronguard.store.dialect import Result, Statement

# Nearer to its slot than that an invocation was started for it, and not to catch up.
PROMPT_S = 60.0
_BY_CLOCK = "trigger IN ('schedule', 'retry')"
# A row of skips goes on: its latest invocation is where it ends.
_AT = "CASE WHEN status = 'skipped' THEN finished_at_utc ELSE started_at_utc END"


def statements(since_utc: datetime) -> List[Statement]:
    """Invocations by what they have in common; slots that one host started twice. Rows of skips stand for several
    slots, so in the second each counts once."""
    return [
        Statement(
            "SELECT job, host, user_name, zone, tzdata, version, SUM(times),"
            f" MAX({_AT}), MAX(CASE WHEN {_BY_CLOCK} THEN {_AT} END)"
            " FROM runs WHERE started_at_utc >= ? GROUP BY job, host, user_name, zone, tzdata, version",
            (since_utc,),
        ),
        Statement(
            "SELECT job, host, COUNT(*) FROM (SELECT job, host, slot_at_utc FROM runs"
            f" WHERE started_at_utc >= ? AND {_BY_CLOCK} AND slot_at_utc IS NOT NULL AND lateness_s < ?"
            " GROUP BY job, host, slot_at_utc HAVING COUNT(*) > 1) doubled GROUP BY job, host",
            (since_utc, PROMPT_S),
        ),
    ]


def starts_of(results: List[Result]) -> Starts:
    alike, twice = results
    return Starts(
        tuple(
            Tally(*words, int(times), rows.known_instant(latest), rows.instant(by_clock))  # type: ignore[call-arg]
            for *words, times, latest, by_clock in alike.rows
        ),
        tuple(Twice(job, host, int(slots)) for job, host, slots in twice.rows),
    )
