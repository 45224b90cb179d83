"""`metrics`: numbers for Prometheus. Reads summaries and open incidents, never the history."""

from __future__ import annotations

from datetime import datetime
from typing import Optional

from cronguard.core.document import check_document, table_of
from cronguard.core.metrics import Facts
from cronguard.core.model import Invocation, JobRow
from cronguard.core.overdue import Overdue, is_paused, overdue_each, overdue_latest, units_due
from cronguard.core.standing import schedule_of, standing_of
from cronguard.errors import ConfigError
from cronguard.store.worker import StoreWorker
from cronguard.system import clock
from cronguard.workspace import open_workspace, planned_jobs

WITHIN_S = 10.0


def metrics(invocation: Invocation) -> Facts:
    """The numbers of all jobs that the store or the config file knows."""
    workspace = open_workspace(invocation, None)
    problems = check_document(workspace.document, workspace.file_name)
    if problems:
        raise ConfigError(problems)
    now_utc = clock.now_utc(invocation.environ)
    worker = workspace.worker()
    try:
        rows = {row.facts.job: row for row in worker.call(lambda store: store.jobs((), WITHIN_S), WITHIN_S)}
        missed = {name: _missed(row, worker, now_utc) for name, row in rows.items()}
        incidents = worker.call(lambda store: store.incidents(WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    planned = planned_jobs(
        workspace, [name for name in table_of(workspace.document, "jobs") if name not in rows], invocation.environ
    )
    return Facts(
        jobs=tuple(standing_of(name, rows.get(name), planned.get(name), now_utc) for name in sorted({*rows, *planned})),
        missed={name: count for name, count in missed.items() if count is not None},
        incidents=tuple(incidents),
        now_utc=now_utc,
    )


def _missed(row: JobRow, worker: StoreWorker, now_utc: datetime) -> Optional[int]:
    """How many slots the job owes, as `check` counts them; None without a schedule. A paused job owes none."""
    schedule = schedule_of((row.facts.schedule, row.facts.zone))
    if schedule is None:
        return None
    if is_paused(row, now_utc):
        return 0
    overdue: Optional[Overdue]
    if row.facts.alerts.slots == "each":
        units = units_due(row, schedule, now_utc)
        undone = worker.call(lambda store: store.undone(row.facts.job, tuple(units), WITHIN_S), WITHIN_S)
        overdue = overdue_each(row, [(key, units[key]) for key in undone], now_utc)
    else:
        overdue = overdue_latest(row, schedule, now_utc)
    return overdue.slots if overdue else 0
