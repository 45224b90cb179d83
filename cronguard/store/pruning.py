"""Which rows of `runs` may go, and what must be remembered of them (FR-67).

By age and by count, oldest first, a few a transaction. Never: what is running or still keeps a lock, the latest run and
the latest success, what an open incident began with, and a success that P2 needs. Of those there are two kinds. A key
given by `--run-key` may be asked for at any time, so its success is kept for ever. Every other key belongs to a time:
its rows are kept as long as an invocation may look back for it, and when they go the job's watermark
(`pruned_before_at`) moves up to the end of their time, before which slots are refused unless forced. Where `redo` is
`never` all this holds for every row that claimed, success or not.

Safe to repeat as a whole, like everything that is done in a store's transaction.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import List, NamedTuple, Optional, Sequence

from cronguard.store import rows
from cronguard.store.dialect import Dialect, Result, Session, Statement

# Rows a transaction: a claim that has to wait for one does not notice it.
STEP = 100

# How far apart two slots of one key can be, with an hour to spare for a change of offset.
_SPANS = {
    "slot": timedelta(0),
    "hour": timedelta(hours=2),
    "day": timedelta(hours=26),
    "week": timedelta(days=7, hours=2),
    "month": timedelta(days=31, hours=2),
}

# The conditions of the indexes `runs_prunable` and `runs_skips`, word for word, or SQLite would not use them.
_RUNS = "status <> 'skipped' AND (keyed_by <> 'text' OR status <> 'success')"
_SKIPS = "status = 'skipped'"


class Limits(NamedTuple):
    """What may go: what began before `before`, or beyond the newest `keep` runs, `keep_skips` skips; at most `most`."""

    before: datetime
    keep: int
    keep_skips: int
    most: int


class _Job(NamedTuple):
    """What the job's row says. `seen`: the start of its latest run, by that host's clock."""

    look_back: timedelta
    key: str
    redo: str
    now: datetime
    seen: datetime

    @property
    def horizon(self) -> Optional[datetime]:
        """Keys of a later time may still be asked for; None: keys are never asked for again."""
        if self.key == "none":
            return None
        return min(self.now, self.seen) - self.look_back - _SPANS[self.key]


def prune(session: Session, dialect: Dialect, job: str, limits: Limits) -> int:
    """One step; how many rows went."""
    known, nth_run, nth_skip = session.run([
        Statement(
            f"SELECT j.look_back_s, j.key, j.redo, {dialect.now}, coalesce(r.started_at_utc, j.first_seen_at)"
            " FROM jobs j LEFT JOIN runs r ON r.run_id = j.last_run_id WHERE j.job = ?",
            (job,),
        ),
        _nth_newest(job, _RUNS, limits.keep),
        _nth_newest(job, _SKIPS, limits.keep_skips),
    ])
    if not known.rows:
        return 0
    about = _job_of(known)
    until = _later(limits.before, nth_run)
    if about.horizon is not None:
        until = min(until, about.horizon)
    runs, skips = session.run([
        _candidates(job, _RUNS, until, about.redo, limits.most),
        _candidates(job, _SKIPS, _later(limits.before, nth_skip), about.redo, limits.most),
    ])
    return _delete(session, job, about.redo, [*runs.rows, *skips.rows][: limits.most], limits.before)


def _job_of(result: Result) -> _Job:
    look_back_s, key, redo, now, seen = result.rows[0]
    return _Job(timedelta(seconds=look_back_s), key, redo, rows.known_instant(now), rows.known_instant(seen))


def _nth_newest(job: str, kind: str, kept: int) -> Statement:
    """When the newest row beyond those that are kept began."""
    return Statement(
        f"SELECT started_at_utc FROM runs WHERE job = ? AND {kind}"
        " ORDER BY started_at_utc DESC LIMIT 1 OFFSET ?",
        (job, kept),
    )


def _later(before: datetime, nth: Result) -> datetime:
    return max(before, rows.known_instant(nth.rows[0][0])) if nth.rows else before


def _candidates(job: str, kind: str, until: datetime, redo: str, most: int) -> Statement:
    return Statement(
        f"SELECT run_id, status, slot_at_utc, keyed_by, claim_no FROM runs r"
        f" WHERE job = ? AND {kind} AND started_at_utc <= ? AND status <> 'running'"
        " AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.job = r.job"
        "  AND (j.last_run_id = r.run_id OR (r.status = 'success' AND j.last_success_key = r.run_key)))"
        " AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.lock = r.lock AND l.owner_run = r.run_id)"
        " AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.job = r.job AND i.closed_at IS NULL"
        "  AND r.started_at_utc <= i.since_at AND r.finished_at_utc >= i.since_at)"
        " AND NOT (? = 'never' AND r.keyed_by = 'text' AND r.claim_no IS NOT NULL)"
        " ORDER BY started_at_utc LIMIT ?",
        (job, until, redo, most),
    )


def _delete(session: Session, job: str, redo: str, found: Sequence[Sequence[object]], before: datetime) -> int:
    old_incidents = Statement("DELETE FROM incidents WHERE job = ? AND closed_at <= ?", (job, before))
    if not found:
        session.run([old_incidents], last=True)
        return 0
    ids = [values[0] for values in found]
    deletion = Statement(f"DELETE FROM runs WHERE run_id IN ({', '.join('?' * len(ids))})", tuple(ids))
    results = session.run([deletion, old_incidents, *_watermark(job, _end_of_time(redo, found))], last=True)
    return results[0].changed


def _end_of_time(redo: str, found: Sequence[Sequence[object]]) -> Optional[datetime]:
    """The latest instant to which a key that these rows used up may reach."""
    ends = [
        rows.known_instant(slot_at) + _SPANS[str(keyed_by)]
        for _, status, slot_at, keyed_by, claim_no in found
        if slot_at is not None
        and keyed_by in _SPANS
        and (status == "success" or (redo == "never" and claim_no is not None))
    ]
    return max(ends, default=None)


def _watermark(job: str, end: Optional[datetime]) -> List[Statement]:
    if end is None:
        return []
    return [
        Statement(
            "UPDATE jobs SET pruned_before_at = CASE WHEN pruned_before_at > ? THEN pruned_before_at ELSE ? END"
            " WHERE job = ?",
            (end, end, job),
        )
    ]
