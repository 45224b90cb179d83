"""`report`: a page to look at. Reads the summaries, the open incidents and the runs of the window, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Optional

from cronguard import __version__
from cronguard.core.document import check_document, table_of
from cronguard.core.durations import parse_duration
from cronguard.core.model import Invocation
from cronguard.core.report import Facts
from cronguard.core.standing import standing_of
from cronguard.core.values import judged
from cronguard.errors import ConfigError, UsageError
from cronguard.store.opening import masked
from cronguard.system import clock
from cronguard.workspace import open_workspace, planned_jobs

WITHIN_S = 30.0
DEFAULT_SINCE = "7d"
RUNS = 50_000  # a week of five jobs that run every minute; more than that is no page to look at
_LEAST_S = 60.0


def report(since: Optional[str], invocation: Invocation) -> Facts:
    """What a page of that window is made from. UsageError for a window that is none."""
    back_s = judged("--since", parse_duration, since or DEFAULT_SINCE)
    if back_s < _LEAST_S:
        raise UsageError(f"--since: {since}: too short to draw; at least 1m")
    workspace = open_workspace(invocation, None)
    problems = check_document(workspace.document, workspace.file_name)
    if problems:
        raise ConfigError(problems)
    now_utc = clock.now_utc(invocation.environ)
    since_utc = now_utc - timedelta(seconds=back_s)
    worker = workspace.worker()
    try:
        rows = {row.facts.job: row for row in worker.call(lambda store: store.jobs((), WITHIN_S), WITHIN_S)}
        runs = worker.call(lambda store: store.runs_since(since_utc, RUNS, WITHIN_S), WITHIN_S)
        incidents = worker.call(lambda store: store.incidents(WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    planned = planned_jobs(
        workspace, [name for name in table_of(workspace.document, "jobs") if name not in rows], invocation.environ
    )
    return Facts(
        jobs=tuple(standing_of(name, rows.get(name), planned.get(name), now_utc) for name in sorted({*rows, *planned})),
        runs=tuple(runs),
        incidents=tuple(incidents),
        since_utc=since_utc,
        now_utc=now_utc,
        read_from_utc=since_utc if len(runs) < RUNS else runs[-1].started_at_utc,
        store=masked(workspace.store),
        version=__version__,
    )
