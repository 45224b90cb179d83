"""`items list` and `items show`: what is in a job's queue. They change nothing."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

from cronguard.core.item_texts import item_group, item_key
from cronguard.core.model import Invocation
from cronguard.core.names import check_job_name
from cronguard.core.queue import STATUSES, Counts, Item
from cronguard.core.values import judged, one_of, whole_number
from cronguard.errors import NotFound, UsageError
from cronguard.workspace import open_workspace

WITHIN_S = 10.0
MOST = 100_000
_LIMIT = 20


class ListRequest(NamedTuple):
    """Options as typed; None for one that was not given."""

    job: str
    status: Optional[str]
    group: Optional[str]
    limit: Optional[str]


class Listed(NamedTuple):
    """`items` are those that match, `counts` of all of the job."""

    job: str
    items: Tuple[Item, ...]
    counts: Counts


def list_items(request: ListRequest, invocation: Invocation) -> Listed:
    """Those that may be taken soonest first. UsageError for a bad option; a queue nobody filled is an empty one."""
    problem = check_job_name(request.job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    job = request.job
    statuses = () if request.status is None else (judged("--status", one_of(*STATUSES), request.status),)
    group = None if request.group is None else judged("--group", item_group, request.group)
    limit = _LIMIT if request.limit is None else judged("--limit", whole_number(1, MOST), request.limit)
    worker = open_workspace(invocation, job).worker()
    try:
        items = worker.call(lambda store: store.items(job, statuses, group, limit, WITHIN_S), WITHIN_S)
        counts = worker.call(lambda store: store.count_items(job, WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    return Listed(job, tuple(items), counts)


def show_item(job: str, key: str, invocation: Invocation) -> Item:
    """One of them. NotFound for one that is not there."""
    worker = open_workspace(invocation, job).worker()
    try:
        found = worker.call(lambda store: store.find_items(job, (judged("KEY", item_key, key),), WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    if not found:
        raise NotFound(f"no such item: {key!r}", f"cronguard items list {job} shows what there is")
    return found[0]


def as_json(result: Listed) -> Dict[str, object]:
    """The JSON of `items list`, version 1: keys are only ever added."""
    return {
        "version": 1,
        "job": result.job,
        "counts": result.counts._asdict(),
        "items": [item_as_json(item) for item in result.items],
    }


def item_as_json(item: Item) -> Dict[str, object]:
    """An item in JSON; instants as ISO 8601 in UTC."""
    instants = ("available_at_utc", "added_at_utc", "started_at_utc", "finished_at_utc")
    fields: Dict[str, object] = item._asdict()
    for name in instants:
        moment = getattr(item, name)
        fields[name] = None if moment is None else moment.isoformat()
    return fields
