"""Rows as a store would give them, for tests of what is made of them. Only what a test is about need be said."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any, Dict, Optional

from cronguard.core.model import JobFacts, JobRow, RunRow, ScheduleText

LONG_AGO = datetime(2020, 1, 1, tzinfo=timezone.utc)
_numbers = count(1)
_EMPTY = dict.fromkeys(RunRow._fields)


def run_row(job: str, started_at: datetime, status: str = "success", took_s: float = 60.0, **more: Any) -> RunRow:
    """A run without a slot unless `slot_at_utc` says so; finished unless it is running."""
    number = next(_numbers)
    fields = {
        **_EMPTY, "run_id": f"{number:08x}", "job": job, "lock": job, "run_key": f"{number:08x}", "claim_no": 1,
        "status": status, "forced": False, "unguarded": False, "zone": "UTC", "tzdata": "2026a",
        "trigger": "schedule", "attempts": 1, "host": "web-1", "machine_id": "m", "boot_id": "b", "pid_ns": "4026",
        "pid": 100, "pid_start": 1, "keeper_pid": 101, "keeper_start": 1, "user_name": "app", "version": "0.1.0",
        "argv": ("true",), "directory": "/srv", "started_at_utc": started_at, "message": "", "tail": "", "cut_bytes": 0,
        "leftovers": (), "orphans": (), "stdin_unread": False, "times": 1, "pings": "",
    }  # fmt: skip
    if status not in ("running", "skipped"):
        fields.update(finished_at_utc=started_at + timedelta(seconds=took_s), duration_s=took_s)
    return RunRow(**{**fields, **more})  # type: ignore[arg-type]


def job_row(job: str, schedule: Optional[ScheduleText] = None, zone: str = "UTC", **more: Any) -> JobRow:
    """A job that has been known since 2020 and has not run."""
    known = {name: more.pop(name) for name in tuple(more) if name in JobFacts._fields}
    facts = JobFacts(job, schedule, zone, "slot" if schedule else "none", 3600.0, 10.0, None, 7 * 86400.0, "failed")
    fields: Dict[str, Any] = dict.fromkeys(JobRow._fields[1:])
    fields.update(first_seen_utc=LONG_AGO, paused_reason="", strip="", successes=())
    fields.update(dict.fromkeys(("failures_in_row", "skips_in_row", "runs_total", "failures_total", "skips_total"), 0))
    return JobRow(facts=facts._replace(**known), **{**fields, **more})
