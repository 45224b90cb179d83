"""`pause` and `resume`: nobody starts the job meanwhile, whoever asks; what runs goes on.

A job that only the config file knows can be paused too, before its first run: the store is told of it as that run
would tell it. A name that neither knows is taken for a slip, for a pause of it would silently do nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple, Optional

from cronguard.core.config import resolve_settings
from cronguard.core.document import table_of
from cronguard.core.model import Invocation, JobFacts, JobRow, RunRequest
from cronguard.core.names import no_such_job
from cronguard.core.overdue import is_paused
from cronguard.core.values import any_text, duration, judged
from cronguard.pipeline.placing import facts_of, zone_for
from cronguard.store.worker import StoreWorker
from cronguard.system import clock
from cronguard.workspace import Workspace, open_workspace

WITHIN_S = 10.0


class PauseRequest(NamedTuple):
    """Options as typed; None for one that was not given."""

    job: str
    how_long: Optional[str]
    reason: Optional[str]


class Pause(NamedTuple):
    """`until_utc` None: until somebody resumes it. `runs`: a run that is under way, which goes on."""

    job: str
    zone: str
    until_utc: Optional[datetime]
    reason: str
    runs: bool


class Resumption(NamedTuple):
    """`was_paused` False: nothing had to be done."""

    job: str
    was_paused: bool


def pause(request: PauseRequest, invocation: Invocation) -> Pause:
    """Pause the job. NotFound for one that nobody knows, UsageError for a bad option."""
    now_utc = clock.now_utc(invocation.environ)
    until_utc = None
    if request.how_long is not None:
        until_utc = now_utc + timedelta(seconds=judged("--for", duration(1), request.how_long))
    reason = "" if request.reason is None else judged("--reason", any_text, request.reason)
    workspace = open_workspace(invocation, request.job)
    worker = workspace.worker()
    try:
        row = _known_row(request.job, workspace, worker, invocation)
        worker.call(lambda store: store.pause(request.job, reason, until_utc, now_utc, WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    return Pause(request.job, row.facts.zone, until_utc, reason, row.running is not None)


def resume(job: str, invocation: Invocation) -> Resumption:
    """Let it be started again. NotFound for a job that nobody knows."""
    now_utc = clock.now_utc(invocation.environ)
    workspace = open_workspace(invocation, job)
    worker = workspace.worker()
    try:
        row = _known_row(job, workspace, worker, invocation)
        worker.call(lambda store: store.resume(job, now_utc, WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    return Resumption(job, is_paused(row, now_utc))


def _known_row(job: str, workspace: Workspace, worker: StoreWorker, invocation: Invocation) -> JobRow:
    """The job's summary; the store gets to know a job that only the config file has."""
    worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
    found = worker.call(lambda store: store.jobs((job,), WITHIN_S), WITHIN_S)
    if found:
        return found[0]
    configured = table_of(workspace.document, "jobs")
    if job not in configured:
        others = [row.facts.job for row in worker.call(lambda store: store.jobs((), WITHIN_S), WITHIN_S)]
        raise no_such_job(job, {*others, *configured})
    facts, now_utc = _facts_from_file(job, workspace, invocation), clock.now_utc(invocation.environ)
    worker.call(lambda store: store.remember(facts, now_utc, WITHIN_S), WITHIN_S)
    return worker.call(lambda store: store.jobs((job,), WITHIN_S), WITHIN_S)[0]


def _facts_from_file(job: str, workspace: Workspace, invocation: Invocation) -> JobFacts:
    request = RunRequest(job, (), {})
    spec = resolve_settings(request, workspace.document, workspace.file_name, invocation.environ).spec
    return facts_of(spec, zone_for(spec, lambda _event: None))
