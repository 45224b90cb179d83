"""`metrics`: numbers for Prometheus. Reads summaries and open incidents, never the history."""

from __future__ import annotations

from datetime import datetime
from typing import Optional

from cronguard.core.metrics import Facts
from cronguard.core.model import Invocation, JobRow
from cronguard.core.overdue import Overdue, is_paused, overdue_each, overdue_latest, units_due
from cronguard.core.standing import schedule_of
from cronguard.overview import judged_workspace, overview
from cronguard.store.worker import StoreWorker
from cronguard.system import clock

WITHIN_S = 10.0


def metrics(invocation: Invocation) -> Facts:
    """The numbers of all jobs that the store or the config file knows."""
    now_utc = clock.now_utc(invocation.environ)
    with overview(judged_workspace(invocation)) as known:
        missed = {name: _missed(row, known.store, now_utc) for name, row in known.rows.items()}
        incidents = known.store.call(lambda store: store.incidents(WITHIN_S), WITHIN_S)
    return Facts(
        jobs=known.standings(known.names, invocation.environ, now_utc),
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
