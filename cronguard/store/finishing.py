"""How a run's end, a late report of it, or an invocation that never started gets into the tables.

Functions of an open session, safe to repeat as a whole: after a COMMIT of unknown outcome the backend runs them again.
A late report never takes a row away from anybody (P3).
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional

from cronguard.core.model import Finish, Report, RunRow, Skip
from cronguard.store import rows, summaries
from cronguard.store.claiming import FREE, insert_run
from cronguard.store.dialect import Dialect, Session, Statement

_OUTCOME = (
    "status", "reason", "finished_at_utc", "duration_s", "exit_code", "signal", "attempts", "cpu_s", "peak_rss_bytes",
    "items", "errors", "message", "tail", "cut_bytes", "leftovers", "orphans", "stdin_unread",
)


class _Ledger(NamedTuple):
    """What stands in the tables about a run that reports its end."""

    row: Optional[RunRow]
    holds: bool  # the lock is this run's, under this fence
    cancelled: bool  # somebody has asked for its end
    successes: str


def finish(session: Session, dialect: Dialect, run_id: str, fence: Optional[int], end: Finish) -> bool:
    """Write the outcome and free the lock, if owner and fence are ours; False: they were not. Repeating is harmless."""
    ledger = _read(session, dialect, run_id, fence)
    row = ledger.row
    if row is None:
        return False
    if row.status == "running" and ledger.holds:
        ended = _with_reason(rows.finished_row(row, end), ledger.cancelled)
        statements = [_write_outcome(ended), *_summary(ended, ledger.successes)]
        if end.claim_s is not None:
            statements.append(summaries.claim_took(row.job, end.claim_s))
        if not end.orphans:
            statements.append(_free(row))
        session.run(statements)
        return True
    if row.status not in ("running", "lost"):
        return row.late_status is None and row.fence == fence
    _note_late(session, ledger, end)
    return False


def deliver(session: Session, dialect: Dialect, report: Report, forced: bool) -> None:
    """Bring in a spooled finish. A run that the store never saw is inserted whole, as `forced` if its key is taken."""
    request = report.request
    ledger = _read(session, dialect, request.run_id, report.fence)
    if ledger.row is not None:
        if not report.unguarded:
            finish(session, dialect, request.run_id, report.fence, report.finish)
        return
    begun = rows.claimed_row(request, None, None, forced)._replace(unguarded=report.unguarded)
    row = rows.finished_row(begun, report.finish)
    session.run([summaries.introduced(request.facts, request.now_utc)])
    successes = _read_successes(session, dialect, row.job)
    session.run([insert_run(row, rows.keyed_by(request)), *_summary(row, successes)])


def record_skip(session: Session, dialect: Dialect, skip: Skip) -> None:
    """A row for an invocation that started nothing, or one more on the row before it."""
    job = skip.facts.job
    _, latest = session.run([
        summaries.seen(skip.facts, skip.at_utc, skip.trigger),
        Statement(
            "SELECT run_id, status, reason, holder FROM runs WHERE job = ?"
            " ORDER BY started_at_utc DESC, run_id DESC LIMIT 1",
            (job,),
        ),
    ])
    last = latest.rows[0] if latest.rows else (None, None, None, None)
    if last[0] == skip.run_id:
        return
    if skip.status == "skipped" and last[1:] == ("skipped", skip.reason, skip.holder):
        write = Statement(
            "UPDATE runs SET times = times + 1, finished_at_utc = ?, message = ? WHERE run_id = ?",
            (skip.at_utc, rows.clean(skip.message), last[0]),
        )
    else:
        write = insert_run(rows.skipped_row(skip), "none")
    session.run([write, *summaries.skipped(skip)])


def _read(session: Session, dialect: Dialect, run_id: str, fence: Optional[int]) -> _Ledger:
    """Lock in the order of every other transaction: locks, runs, jobs."""
    lock, run, job = session.run([
        Statement(
            "SELECT fence, cancel_requested FROM locks WHERE lock = (SELECT lock FROM runs WHERE run_id = ?)"
            f" AND owner_run = ? {dialect.for_update}",
            (run_id, run_id),
        ),
        Statement(f"SELECT {rows.columns('runs')} FROM runs WHERE run_id = ? {dialect.for_update}", (run_id,)),
        Statement(
            "SELECT successes FROM jobs WHERE job = (SELECT job FROM runs WHERE run_id = ?)"
            f" {dialect.for_update}",
            (run_id,),
        ),
    ])
    return _Ledger(
        row=rows.run_row(run.rows[0]) if run.rows else None,
        holds=bool(lock.rows) and lock.rows[0][0] == fence,
        cancelled=bool(lock.rows) and bool(lock.rows[0][1]),
        successes=job.rows[0][0] if job.rows else "[]",
    )


def _read_successes(session: Session, dialect: Dialect, job: str) -> str:
    (result,) = session.run([Statement(f"SELECT successes FROM jobs WHERE job = ? {dialect.for_update}", (job,))])
    return str(result.rows[0][0])


def _with_reason(row: RunRow, cancelled: bool) -> RunRow:
    """However the run was brought to its end (the renewal's answer, a TERM), it was because somebody wanted it."""
    return row._replace(reason="cancelled") if cancelled and row.status == "aborted" and row.reason is None else row


def _write_outcome(row: RunRow) -> Statement:
    values = dict(zip(rows.RUN_COLUMNS, rows.run_values(row)))
    updates = ", ".join(f"{name} = ?" for name in _OUTCOME)
    return Statement(
        f"UPDATE runs SET {updates} WHERE run_id = ?", (*(values[name] for name in _OUTCOME), row.run_id)
    )


def _summary(row: RunRow, successes: str) -> List[Statement]:
    return summaries.succeeded(row, successes) if row.status == "success" else [summaries.unsuccessful(row)]


def _free(row: RunRow) -> Statement:
    return Statement(f"UPDATE locks SET {FREE} WHERE lock = ? AND owner_run = ?", (row.lock, row.run_id))


def _note_late(session: Session, ledger: _Ledger, end: Finish) -> None:
    """Fill `late_*`; make it a success only if exit 0 was seen and nobody else held the key since."""
    row = ledger.row
    assert row is not None
    statements = [
        Statement(
            "UPDATE runs SET late_status = ?, late_exit_code = ?, late_finished_at_utc = ? WHERE run_id = ?",
            (end.outcome.status, end.outcome.exit_code, end.finished_at_utc, row.run_id),
        )
    ]
    if row.status == "lost" and end.outcome.status == "success" and not _held_since(session, row):
        proven = rows.finished_row(row, end)
        statements += [_write_outcome(proven), *summaries.found_successful(proven, ledger.successes)]
    session.run(statements)


def _held_since(session: Session, row: RunRow) -> bool:
    """Whether another run claimed, or without a claim finished, the same key after this one."""
    (others,) = session.run([
        Statement(
            "SELECT 1 FROM runs WHERE job = ? AND run_key = ? AND run_id <> ?"
            " AND (claim_no > ? OR status = 'success') LIMIT 1",
            (row.job, row.run_key, row.run_id, row.claim_no),
        )
    ])
    return bool(others.rows)
