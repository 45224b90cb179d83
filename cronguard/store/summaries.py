"""The columns of `jobs` that spare status and check the history: one statement an event, in its transaction."""

from __future__ import annotations

from datetime import datetime
from typing import List, Optional, Sequence

from cronguard.core.model import JobFacts, JobRow, RunRow, ScheduleText
from cronguard.store import rows
from cronguard.store.dialect import Statement, Values

_FACTS = (
    "schedule_kind", "schedule_text", "zone", "key", "timeout_s", "grace_s", "max_late_s", "look_back_s", "redo",
)
_STATE = (
    "first_seen_at", "paused_since_at", "paused_until_at", "paused_reason", "last_success_at", "last_success_key",
    "success_durations", "failures_in_row", "skips_in_row", "strip",
)
_LETTERS = {"success": "s", "failed": "f", "timeout": "t", "aborted": "a", "lost": "l"}


def remembered(facts: JobFacts, seen_at: datetime, trigger: str) -> Statement:
    """The job as it is now defined; its first sight is kept, and so is all that is known of it when a person runs it
    by hand: what `cronguard run backup -- ...` leaves away, the schedule above all, is still so."""
    names = ("job", *_FACTS, "first_seen_at")
    updates = ", ".join(f"{name} = excluded.{name}" for name in _FACTS)
    kind, text = facts.schedule if facts.schedule else (None, None)
    return Statement(
        f"INSERT INTO jobs ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        f" ON CONFLICT (job) DO {'NOTHING' if trigger == 'manual' else f'UPDATE SET {updates}'}",
        (facts.job, kind, text, facts.zone, facts.key, facts.timeout_s, facts.grace_s, facts.max_late_s,
         facts.look_back_s, facts.redo, seen_at),
    )


def claimed(job: str, run_id: str) -> Statement:
    """A run began: the streak of skips is over."""
    return Statement(
        "UPDATE jobs SET last_run_id = ?, running_run_id = ?, skips_in_row = 0 WHERE job = ?", (run_id, run_id, job)
    )


def succeeded(row: RunRow, durations: str) -> List[Statement]:
    """A run ended well; `durations` is the column's new value."""
    return [
        Statement(
            "UPDATE jobs SET failures_in_row = 0, strip = substr(strip || 's', 2),"
            " running_run_id = CASE WHEN running_run_id = ? THEN NULL ELSE running_run_id END WHERE job = ?",
            (row.run_id, row.job),
        ),
        _kept(row, durations),
    ]


def unsuccessful(job: str, run_id: str, status: str) -> Statement:
    """A run ended in another way, or was found dead, or refused to start under `--on-conflict fail`."""
    return Statement(
        "UPDATE jobs SET failures_in_row = failures_in_row + 1, strip = substr(strip || ?, 2),"
        " running_run_id = CASE WHEN running_run_id = ? THEN NULL ELSE running_run_id END WHERE job = ?",
        (_LETTERS[status], run_id, job),
    )


def found_successful(row: RunRow, durations: str) -> List[Statement]:
    """A run that had been closed as lost turned out a success; streak and letter are put right if nothing ran since."""
    return [
        Statement(
            "UPDATE jobs SET failures_in_row = 0, strip = substr(strip, 1, 19) || 's'"
            " WHERE job = ? AND last_run_id = ?",
            (row.job, row.run_id),
        ),
        _kept(row, durations),
    ]


def _kept(row: RunRow, durations: str) -> Statement:
    """The latest success; an older one that is delivered late moves nothing back."""
    ended_at = row.finished_at_utc
    return Statement(
        "UPDATE jobs SET success_durations = ?,"
        " last_success_key = CASE WHEN last_success_at > ? THEN last_success_key ELSE ? END,"
        " last_success_at = CASE WHEN last_success_at > ? THEN last_success_at ELSE ? END WHERE job = ?",
        (durations, ended_at, row.run_key, ended_at, ended_at, row.job),
    )


def skipped(job: str) -> Statement:
    return Statement("UPDATE jobs SET skips_in_row = skips_in_row + 1 WHERE job = ?", (job,))


def select_statement(names: Sequence[str]) -> Statement:
    """The summaries with the latest and the running row, without their output."""
    own = ", ".join(f"j.{name}" for name in ("job", *_FACTS, *_STATE))
    where = f"WHERE j.job IN ({', '.join('?' * len(names))})" if names else ""
    return Statement(
        f"SELECT {own}, {rows.summary_columns('a')}, {rows.summary_columns('b')} FROM jobs j"
        " LEFT JOIN runs a ON a.run_id = j.last_run_id LEFT JOIN runs b ON b.run_id = j.running_run_id"
        f" {where} ORDER BY j.job",
        tuple(names),
    )


def job_row(values: Values) -> JobRow:
    """One row of that."""
    facts, rest = values[: 1 + len(_FACTS)], values[1 + len(_FACTS) :]
    state, runs = dict(zip(_STATE, rest)), rest[len(_STATE) :]
    width = len(rows.RUN_COLUMNS)
    job, kind, text, *others = facts
    first_seen = rows.instant(state["first_seen_at"])
    assert first_seen is not None
    return JobRow(
        facts=JobFacts(job, ScheduleText(kind, text) if kind else None, *others),
        first_seen_utc=first_seen,
        paused_since_utc=rows.instant(state["paused_since_at"]),
        paused_until_utc=rows.instant(state["paused_until_at"]),
        paused_reason=state["paused_reason"],
        last_success_utc=rows.instant(state["last_success_at"]),
        last_success_key=state["last_success_key"],
        last_run=_run_or_none(runs[:width]),
        running=_run_or_none(runs[width:]),
        usual_duration_s=rows.median_of(state["success_durations"]),
        failures_in_row=int(state["failures_in_row"]),
        skips_in_row=int(state["skips_in_row"]),
        strip=state["strip"].strip(),
    )


def _run_or_none(values: Values) -> Optional[RunRow]:
    return None if values[0] is None else rows.run_row(values)
