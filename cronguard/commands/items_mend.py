"""`items retry` and `items forget`: what people do with items that did not work, or are not needed any more."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from cronguard.core.item_texts import item_key
from cronguard.core.model import Invocation
from cronguard.core.names import check_job_name
from cronguard.core.values import duration, judged
from cronguard.errors import UsageError
from cronguard.store.contract import Store
from cronguard.store.worker import StoreWorker
from cronguard.system import clock
from cronguard.workspace import open_workspace

WITHIN_S = 10.0
AT_ONCE = 500


class MendRequest(NamedTuple):
    """Named items, or all of one status (`done`, `dead`). `older_than` as typed: of when they were added."""

    job: str
    keys: Sequence[str]
    status: Optional[str]
    older_than: Optional[str] = None


class Mended(NamedTuple):
    """`missing`: keys for which nothing could be done."""

    items: int
    missing: Tuple[str, ...] = ()


def retry(request: MendRequest, invocation: Invocation) -> Mended:
    """Let them be taken at once, with all their attempts before them; not those that are reserved."""
    _check(request)
    with _opened(request.job, invocation) as worker:
        if request.keys:
            return _named(request, worker, lambda keys, store: store.retry_items(request.job, keys, WITHIN_S))
        return Mended(_retry_all(request.job, str(request.status), worker))


def forget(request: MendRequest, invocation: Invocation) -> Mended:
    """Delete them, reserved ones too if they are named."""
    _check(request)
    before_utc = None
    if request.older_than is not None:
        age_s = judged("--older-than", duration(0), request.older_than)
        before_utc = clock.now_utc(invocation.environ) - timedelta(seconds=age_s)
    with _opened(request.job, invocation) as worker:
        if request.keys:
            return _named(request, worker, lambda keys, store: store.forget_items(request.job, keys, WITHIN_S))
        return Mended(_clear(request.job, str(request.status), before_utc, worker))


def _check(request: MendRequest) -> None:
    problem = check_job_name(request.job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    if bool(request.keys) == (request.status is not None):
        raise UsageError("KEY: either name items, or say which kind of them is meant")
    if request.keys and request.older_than is not None:
        raise UsageError("--older-than: goes without keys, which say themselves what is meant")
    for key in request.keys:
        judged("KEY", item_key, key)


def _named(
    request: MendRequest, worker: StoreWorker, change: Callable[[Sequence[str], Store], List[str]]
) -> Mended:
    keys = list(dict.fromkeys(request.keys))
    changed: Set[str] = set()
    for start in range(0, len(keys), AT_ONCE):
        changed.update(worker.call(partial(change, keys[start : start + AT_ONCE]), WITHIN_S))
    return Mended(len(changed), tuple(key for key in keys if key not in changed))


def _retry_all(job: str, status: str, worker: StoreWorker) -> int:
    """As many as there are now: what fails anew meanwhile waits for another time."""
    counts = worker.call(lambda store: store.count_items(job, WITHIN_S), WITHIN_S)
    there, total = getattr(counts, status), 0
    while total < there:
        most = min(AT_ONCE, there - total)
        found = worker.call(partial(_some, job, status, most), WITHIN_S)
        if not found:
            break
        total += len(worker.call(partial(_retry_some, job, found), WITHIN_S))
    return int(total)


def _some(job: str, status: str, most: int, store: Store) -> List[str]:
    return [item.key for item in store.items(job, (status,), None, most, WITHIN_S)]


def _retry_some(job: str, keys: Sequence[str], store: Store) -> List[str]:
    return store.retry_items(job, keys, WITHIN_S)


def _clear(job: str, status: str, before_utc: Optional[datetime], worker: StoreWorker) -> int:
    """In steps that keep nobody waiting."""
    total, gone = 0, AT_ONCE
    while gone == AT_ONCE:
        gone = worker.call(lambda store: store.clear_items(job, status, before_utc, AT_ONCE, WITHIN_S), WITHIN_S)
        total += gone
    return total


@contextmanager
def _opened(job: str, invocation: Invocation) -> Iterator[StoreWorker]:
    worker = open_workspace(invocation, job).worker()
    try:
        worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        yield worker
    finally:
        worker.close(1.0)
