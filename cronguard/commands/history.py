"""`history`: a job's runs, newest first."""

from __future__ import annotations

from datetime import timedelta
from typing import Dict, NamedTuple, Optional, Tuple

from cronguard.core.durations import parse_duration
from cronguard.core.model import STATUSES, Invocation, RunRow
from cronguard.core.names import check_job_name, did_you_mean
from cronguard.core.records import run_as_json
from cronguard.core.values import judged, one_of, whole_number
from cronguard.errors import NotFound, UsageError
from cronguard.system import clock
from cronguard.workspace import open_workspace

WITHIN_S = 10.0
MOST = 10_000


class History(NamedTuple):
    job: str
    runs: Tuple[RunRow, ...]


class HistoryRequest(NamedTuple):
    """Options as typed; None for one that was not given."""

    job: str
    limit: Optional[str]
    status: Optional[str]
    since: Optional[str]


def history(request: HistoryRequest, invocation: Invocation) -> History:
    """The latest runs that match. NotFound for a job that never was seen; UsageError for a bad option."""
    problem = check_job_name(request.job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    limit = 20 if request.limit is None else judged("--limit", whole_number(1, MOST), request.limit)
    statuses = () if request.status is None else (judged("--status", one_of(*STATUSES), request.status),)
    since_utc = None
    if request.since is not None:
        back_s = judged("--since", parse_duration, request.since)
        since_utc = clock.now_utc(invocation.environ) - timedelta(seconds=back_s)
    worker = open_workspace(invocation, request.job).worker()
    try:
        found = worker.call(lambda s: s.history(request.job, limit, statuses, since_utc, WITHIN_S), WITHIN_S)
        known = [] if found else [row.facts.job for row in worker.call(lambda s: s.jobs((), WITHIN_S), WITHIN_S)]
    finally:
        worker.close(1.0)
    if not found and request.job not in known:
        raise NotFound(f"no such job: {request.job}: it never ran{did_you_mean(request.job, known)}")
    return History(request.job, tuple(found))


def as_json(result: History) -> Dict[str, object]:
    """The JSON of `history`, version 1: keys are only ever added."""
    return {"version": 1, "job": result.job, "runs": [run_as_json(row) for row in result.runs]}
