"""Taking a job out of the store as if it had never been there: for a throwaway job, when its work is done.

Its locks go too. Elsewhere they never do, because a fence must not start again; here nothing is left to remember one.
"""

from __future__ import annotations

from cronguard.store.dialect import Dialect, Session, Statement

_TABLES = ("items", "ledger", "checkpoints", "incidents", "runs", "jobs")


def forget_job(session: Session, dialect: Dialect, job: str) -> bool:
    """Delete every row of the job, unless it is running; False: it is, and nothing was deleted."""
    theirs = f"SELECT lock FROM locks WHERE lock = ? OR owner_job = ? ORDER BY lock {dialect.for_update}"
    locks, running = session.run([
        Statement(theirs, (job, job)),
        Statement("SELECT run_id FROM runs WHERE job = ? AND status = 'running'", (job,)),
    ])
    if running.rows:
        return False
    session.run([
        *[Statement(f"DELETE FROM {table} WHERE job = ?", (job,)) for table in _TABLES],
        *[Statement("DELETE FROM locks WHERE lock = ? AND owner_run IS NULL", (values[0],)) for values in locks.rows],
    ])
    return True
