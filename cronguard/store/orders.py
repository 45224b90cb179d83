"""What people tell a job: pause, go on, end what is running. Statements only; the job's next claim, renewal or finish
heeds them, on whatever host that is. A pause that has an end needs nobody to end it."""

from __future__ import annotations

from datetime import datetime
from typing import List, Optional

from cronguard.core.model import RunRow
from cronguard.store import rows
from cronguard.store.dialect import Session, Statement


def pause(job: str, reason: str, until_at: Optional[datetime], now: datetime) -> Statement:
    """One that is under way already keeps its beginning; the end of one that has ended is kept in `since_at`."""
    return Statement(
        "UPDATE jobs SET since_at = CASE WHEN paused_until_at <= ? AND paused_until_at > since_at"
        " THEN paused_until_at ELSE since_at END,"
        " paused_since_at = CASE WHEN paused_until_at <= ? THEN ? ELSE coalesce(paused_since_at, ?) END,"
        " paused_until_at = ?, paused_reason = ? WHERE job = ?",
        (now, now, now, now, until_at, rows.clean(reason), job),
    )


def resume(job: str, now: datetime) -> Statement:
    """What was due in the pause, which may have ended by itself before, is not missed."""
    return Statement(
        "UPDATE jobs SET since_at = CASE WHEN paused_since_at IS NULL THEN since_at"
        " WHEN paused_until_at <= ? THEN CASE WHEN paused_until_at > since_at THEN paused_until_at ELSE since_at END"
        " ELSE ? END, paused_since_at = NULL, paused_until_at = NULL, paused_reason = '' WHERE job = ?",
        (now, now, job),
    )


def request_cancel(session: Session, job: str) -> Optional[RunRow]:
    """Mark the claim of the running run; None if nothing runs, or if it ended just now."""
    (found,) = session.run([
        Statement(f"SELECT {rows.columns('runs')} FROM runs WHERE job = ? AND status = 'running'", (job,))
    ])
    if not found.rows:
        return None
    row = rows.run_row(found.rows[0])
    (marked,) = session.run([
        Statement("UPDATE locks SET cancel_requested = TRUE WHERE lock = ? AND owner_run = ?", (row.lock, row.run_id))
    ])
    return row if marked.changed else None


def renewal(lock: str, run_id: str, fence: Optional[int], lease_s: float, lease_end: str) -> List[Statement]:
    """Extend the lease, if the lock is ours, and see whether somebody wants the run ended."""
    return [
        Statement(
            f"UPDATE locks SET lease_until = {lease_end} WHERE lock = ? AND owner_run = ? AND fence = ?",
            (lease_s, lock, run_id, fence),
        ),
        Statement("SELECT cancel_requested FROM locks WHERE lock = ?", (lock,)),
    ]
