"""`status`: a line a job. Reads the jobs' summaries and never the history, so that it costs the same every day.

Jobs that only the config file knows are shown too: one that has never run is what somebody looks for here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Dict, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.model import Invocation, JobRow, RunRow, ScheduleText
from cronguard.core.overdue import is_paused
from cronguard.core.records import instant_as_json, run_as_json
from cronguard.core.standing import JobStatus
from cronguard.overview import judged_workspace, overview
from cronguard.system import clock


class Status(NamedTuple):
    """`now_utc`: when it was so."""

    jobs: Tuple[JobStatus, ...]
    now_utc: datetime


class Progress(NamedTuple):
    """`share` of the usual duration, above 1 when it takes longer; None while nothing is known to be usual."""

    elapsed_s: float
    usual_s: Optional[float]
    share: Optional[float]


def status(names: Sequence[str], invocation: Invocation) -> Status:
    """The state of some jobs, or of all. NotFound for a name that neither store nor config file knows."""
    with overview(judged_workspace(invocation)) as known:
        now_utc = clock.now_utc(invocation.environ)
        return Status(known.standings(known.chosen(names), invocation.environ, now_utc), now_utc)


def as_json(result: Status) -> Dict[str, object]:
    """The JSON of `status`, version 1: keys are only ever added."""
    jobs = [_job_as_json(job, result.now_utc) for job in result.jobs]
    return {"version": 1, "now": instant_as_json(result.now_utc), "jobs": jobs}


def progress_of(row: JobRow, now_utc: datetime) -> Optional[Progress]:
    """How far the running run is; None when nothing runs. Another host's clock may be ahead: never less than 0."""
    if row.running is None:
        return None
    elapsed_s = max(0.0, (now_utc - row.running.started_at_utc).total_seconds())
    usual_s = row.usual_duration_s
    return Progress(elapsed_s, usual_s, elapsed_s / usual_s if usual_s else None)


def _job_as_json(job: JobStatus, now_utc: datetime) -> Dict[str, object]:
    fields: Dict[str, object] = {"job": job.job, "state": job.state}
    fields["next_due"] = instant_as_json(job.next_due.at_utc) if job.next_due else None
    row = job.row
    fields.update(
        schedule=_schedule_as_json(row.facts.schedule) if row else None,
        key=row.facts.key if row else None,
        zone=row.facts.zone if row else None,
        first_seen=instant_as_json(row.first_seen_utc) if row else None,
        last_success=instant_as_json(row.last_success_utc) if row else None,
        last_success_key=row.last_success_key if row else None,
        last_run=_run_or_none(row.last_run) if row else None,
        running=_run_or_none(row.running) if row else None,
        running_lease=instant_as_json(row.running_lease_utc) if row else None,
        progress=_progress_as_json(row, now_utc) if row else None,
        usual_duration_s=row.usual_duration_s if row else None,
        failures_in_row=row.failures_in_row if row else 0,
        skips_in_row=row.skips_in_row if row else 0,
        last_skip_reason=row.last_skip_reason if row else None,
        last_skip_holder=row.last_skip_holder if row else None,
        strip=row.strip if row else "",
        paused=_pause_as_json(row, now_utc) if row else None,
        pruned_before=instant_as_json(row.pruned_before_utc) if row else None,
    )
    return fields


def _schedule_as_json(schedule: Optional[ScheduleText]) -> Optional[Dict[str, str]]:
    return {schedule.kind: schedule.text} if schedule else None


def _run_or_none(row: Optional[RunRow]) -> Optional[Dict[str, object]]:
    return run_as_json(row) if row else None


def _progress_as_json(row: JobRow, now_utc: datetime) -> Optional[Dict[str, object]]:
    progress = progress_of(row, now_utc)
    return None if progress is None else dict(progress._asdict())


def _pause_as_json(row: JobRow, now_utc: datetime) -> Optional[Dict[str, object]]:
    if not is_paused(row, now_utc):
        return None
    return {
        "since": instant_as_json(row.paused_since_utc),
        "until": instant_as_json(row.paused_until_utc),
        "reason": row.paused_reason,
    }


