"""`prune`: take old rows out of the history, in small steps that keep nobody waiting.

What may go and what never may is the store's to know (contract, `prune`): the last success, whatever runs, and what
keeps a slot from being done twice stay. Every run does a little of the same by itself (pipeline.tidying); this is for
who wants less kept than usual, or has just moved in with a large history.
"""

from __future__ import annotations

from datetime import timedelta
from typing import List, NamedTuple, Optional, Sequence, Tuple

from cronguard.core import keeping
from cronguard.core.model import Invocation
from cronguard.core.names import no_such_job
from cronguard.core.values import duration, judged, whole_number
from cronguard.errors import NoRights
from cronguard.store.worker import StoreWorker
from cronguard.system import clock
from cronguard.workspace import open_workspace

WITHIN_S = 10.0
_LACKING = "a runner has no right to DELETE from runs and incidents, as prune does: run it as the schema's owner"


class PruneRequest(NamedTuple):
    """Options as typed; None for one that was not given. No jobs: all."""

    jobs: Sequence[str]
    older_than: Optional[str]
    keep: Optional[str]


class Pruned(NamedTuple):
    """How many rows of the job went."""

    job: str
    rows: int


def prune(request: PruneRequest, invocation: Invocation) -> Tuple[Pruned, ...]:
    """Prune, job by job. NotFound for a job that the store does not know, UsageError for a bad option."""
    age_s = keeping.OLDEST_S
    if request.older_than is not None:
        age_s = judged("--older-than", duration(0), request.older_than)
    keep = keeping.MOST_ROWS
    if request.keep is not None:
        keep = judged("--keep", whole_number(0, keeping.MOST_EVER), request.keep)
    before_utc = clock.now_utc(invocation.environ) - timedelta(seconds=age_s)
    limits = keeping.Limits(before_utc, keep, min(keep, keeping.MOST_SKIPS))
    worker = open_workspace(invocation, None).worker()
    try:
        jobs = _known(request.jobs, worker)
        return tuple(Pruned(job, _prune_whole(job, limits, worker)) for job in jobs)
    except NoRights as problem:
        raise NoRights(problem.message, _LACKING) from None
    finally:
        worker.close(1.0)


def _known(jobs: Sequence[str], worker: StoreWorker) -> List[str]:
    known = [row.facts.job for row in worker.call(lambda store: store.jobs((), WITHIN_S), WITHIN_S)]
    for job in jobs:
        if job not in known:
            raise no_such_job(job, known)
    return list(dict.fromkeys(jobs)) or known


def _prune_whole(job: str, limits: keeping.Limits, worker: StoreWorker) -> int:
    """Steps until one finds nothing; each is a short transaction of its own."""
    total = 0
    while True:
        gone = worker.call(lambda store: store.prune(job, *limits, keeping.ROWS_A_STEP, WITHIN_S), WITHIN_S)
        total += gone
        if gone == 0:
            return total
