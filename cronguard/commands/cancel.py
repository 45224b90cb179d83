"""`cancel`: end the running run of a job, on whatever host it is.

The store is told first: what is marked there is acted on with the owner's next renewal, and makes the row say
`cancelled` however the run comes to its end. Where the owner is provably a process of this host it also gets TERM at
once; on SQLite, which has no renewals, that is the only way. Whoever cannot be proved to be the owner gets nothing.
"""

from __future__ import annotations

import time
from typing import NamedTuple, Optional

from cronguard.core.durations import parse_duration
from cronguard.core.model import Invocation, Owner, RunRow
from cronguard.core.names import no_such_job
from cronguard.core.values import judged
from cronguard.errors import NotFound
from cronguard.store.worker import StoreWorker
from cronguard.system.clock import boot_s
from cronguard.system.identity import stop_owner
from cronguard.workspace import open_workspace

WITHIN_S = 10.0
_LOOK_EVERY_S = 0.25


class Cancelled(NamedTuple):
    """`signalled`: sent, gone, elsewhere or forbidden, as `stop_owner` says it. `leased`: the owner hears of it with
    its next renewal in any case. `waited`: until the run had ended or the time was over; `run` is as it then was."""

    run: RunRow
    signalled: str
    leased: bool
    waited: bool

    @property
    def under_way(self) -> bool:
        """Somebody who can end the run has been told, and it has ended if that was waited for."""
        told = self.signalled == "sent" or (self.leased and self.signalled != "gone")
        return told and not (self.waited and self.run.status == "running")


def cancel(job: str, wait: Optional[str], invocation: Invocation) -> Cancelled:
    """Ask for the end of the job's running run. NotFound when nothing runs; UsageError for a bad `wait`."""
    wait_s = None if wait is None else judged("--wait", parse_duration, wait)
    worker = open_workspace(invocation, job).worker()
    try:
        known = [row.facts.job for row in worker.call(lambda store: store.jobs((), WITHIN_S), WITHIN_S)]
        if job not in known:
            raise no_such_job(job, known)
        row = worker.call(lambda store: store.request_cancel(job, WITHIN_S), WITHIN_S)
        if row is None:
            raise NotFound(f"{job}: not running: there is nothing to cancel")
        signalled = stop_owner(_owner_of(row), invocation.environ)
        asked = Cancelled(row, signalled, worker.leased, False)
        if wait_s is None or not asked.under_way:
            return asked
        return asked._replace(run=_await_end(row, wait_s, worker), waited=True)
    finally:
        worker.close(1.0)


def _owner_of(row: RunRow) -> Owner:
    return Owner(
        machine_id=row.machine_id,
        host=row.host,
        boot_id=row.boot_id,
        pid_ns=row.pid_ns,
        pid=row.pid,
        pid_start=row.pid_start,
        keeper_pid=row.keeper_pid,
        keeper_start=row.keeper_start,
    )


def _await_end(row: RunRow, wait_s: float, worker: StoreWorker) -> RunRow:
    until_s = boot_s() + wait_s
    while True:
        found = worker.call(lambda store: store.find_runs(row.run_id, WITHIN_S), WITHIN_S)
        latest = found[0] if found else row
        if latest.status != "running" or boot_s() >= until_s:
            return latest
        time.sleep(_LOOK_EVERY_S)
