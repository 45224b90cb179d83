"""`report`: a page to look at. Reads the summaries, the open incidents and the runs of the window, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Optional

from cronguard import __version__
from cronguard.core.durations import parse_duration
from cronguard.core.model import Invocation
from cronguard.core.report import Facts
from cronguard.core.values import judged
from cronguard.errors import UsageError
from cronguard.overview import judged_workspace, overview
from cronguard.store.opening import masked
from cronguard.system import clock

WITHIN_S = 30.0
DEFAULT_SINCE = "7d"
RUNS = 50_000  # a week of five jobs that run every minute; more than that is no page to look at
_LEAST_S = 60.0


def report(since: Optional[str], invocation: Invocation) -> Facts:
    """What a page of that window is made from. UsageError for a window that is none."""
    back_s = judged("--since", parse_duration, since or DEFAULT_SINCE)
    if back_s < _LEAST_S:
        raise UsageError(f"--since: {since}: too short to draw; at least 1m")
    workspace = judged_workspace(invocation)
    now_utc = clock.now_utc(invocation.environ)
    since_utc = now_utc - timedelta(seconds=back_s)
    with overview(workspace) as known:
        runs = known.store.call(lambda store: store.runs_since(since_utc, RUNS, WITHIN_S), WITHIN_S)
        incidents = known.store.call(lambda store: store.incidents(WITHIN_S), WITHIN_S)
    return Facts(
        jobs=known.standings(known.names, invocation.environ, now_utc),
        runs=tuple(runs),
        incidents=tuple(incidents),
        since_utc=since_utc,
        now_utc=now_utc,
        read_from_utc=since_utc if len(runs) < RUNS else runs[-1].started_at_utc,
        store=masked(workspace.store),
        version=__version__,
    )
