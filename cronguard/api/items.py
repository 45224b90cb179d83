"""`from cronguard import items`: put items into a queue, and work through it with a Python function.

The same queue, settings and config file as `cronguard items`. An item cannot be lost: it is handed to a function, and
what the function does with it, return, raise, or never come back, is all that can happen to it. Nobody can stop a
function from outside: once it is over its timeout its reservation is no longer renewed, somebody else gets the item,
and what it then comes to is refused.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Callable, Dict, Iterable, Iterator, Mapping, Optional, Union

from cronguard.api.session import log, text
from cronguard.commands.items_add import Added, add_all
from cronguard.core.item_settings import ItemsSpec, pass_s, resolve_items
from cronguard.core.item_texts import checked, item_environment
from cronguard.core.ledger import fence_from
from cronguard.core.model import Invocation
from cronguard.core.names import did_you_mean
from cronguard.core.queue import NewItem, Reserved
from cronguard.core.settings import ITEMS
from cronguard.errors import RunLost, UsageError
from cronguard.pipeline.draining import Handed, Handled, Pass, Tally
from cronguard.store.worker import StoreWorker
from cronguard.system import clock
from cronguard.system.clock import boot_s
from cronguard.system.host import own_environment
from cronguard.workspace import Workspace, open_workspace

__all__ = ["Added", "NewItem", "Tally", "Work", "add", "drain"]

WITHIN_S = 10.0
_SETTINGS = [setting.name for setting in ITEMS if setting.name not in ("grace", "parallel")]  # not those of processes


class Work:
    """An item in the hand of a handler. `attempt`: 1 the first time."""

    def __init__(self, job: str, item: Reserved) -> None:
        self.key = item.key
        self.group = item.group
        self.payload = item.payload
        self.attempt = item.attempts + 1
        self.token = item.token
        self.idempotency_key = item_environment(job, item)["CRONGUARD_IDEMPOTENCY_KEY"]
        self.lost = False  # True: somebody else may have it now, and what comes of it here will be refused


Handler = Callable[[Work], object]


def add(
    items: Iterable[Union[str, NewItem]],
    *,
    job: Optional[str] = None,
    group: str = "",
    payload: str = "",
    not_before: Union[datetime, timedelta, None] = None,
    store: Optional[str] = None,
    config: Optional[str] = None,
) -> Added:
    """Put them into the queue of `job` (default: that of the surrounding run), a statement for each thousand.

    Keys, which get the same `group`, `payload` and `not_before` (aware, or so long from now), or whole items. Those
    that are there already stay as they are. CronguardError for what is no item, or a store that is down."""
    if isinstance(items, str):
        raise UsageError(f"items: {items!r}: one text, and each of its letters would be an item", "put it into a list")
    environ = own_environment()
    name = _job(job, environ)
    if isinstance(not_before, timedelta):
        not_before = clock.now_utc(environ) + not_before
    model = NewItem("", group, payload, not_before)
    whole = (each if isinstance(each, NewItem) else model._replace(key=text("item", each)) for each in items)
    with _store(open_workspace(Invocation(store, config, None, False, environ), name)) as worker:
        return add_all(name, (_checked(each) for each in whole), worker)


def drain(
    handler: Handler,
    *,
    job: Optional[str] = None,
    store: Optional[str] = None,
    config: Optional[str] = None,
    **settings: Union[str, int, float],
) -> Tally:
    """Call `handler` for one item after the other until none is ready, or the budget is spent.

    It returns: the item is done. It raises: the item has failed, and is tried again later. An exception that is no
    Exception (KeyboardInterrupt, SystemExit) gives the item back and goes on its way. `settings` are those of
    `items work`: batch, budget, reserve, per_group, attempts, timeout, backoff, group_failures, group.

    RunLost when the surrounding run no longer holds its lock; StoreDown when the store was away for too long."""
    began_at, environ = boot_s(), own_environment()
    name = _job(job, environ)
    workspace = open_workspace(Invocation(store, config, None, False, environ), name)
    spec = _spec(name, settings, workspace)
    end_at = began_at + pass_s(spec, environ, clock.now_utc(environ))
    with _store(workspace) as worker:
        pass_ = Pass(worker, spec, fence_from(environ), end_at, log, lambda _tally: None, spec.timeout_s)
        try:
            pass_.begin()
            _work_through(pass_, handler, spec)
        finally:
            tally = pass_.finish()
    if pass_.fault is not None:
        raise pass_.fault
    if tally.ended_by == "fenced":
        raise RunLost(f"items: {name}: the surrounding run no longer holds its lock", "end this process")
    return tally


def _work_through(pass_: Pass, handler: Handler, spec: ItemsSpec) -> None:
    present: Dict[Reserved, Work] = {}

    def tell(item: Reserved, news: Union[float, str]) -> None:
        work = present.get(item)
        if work is not None and news == "lost":
            work.lost = True

    handed = pass_.next(None, tell)
    while handed is not None:
        work = Work(spec.job, handed.item)
        present[handed.item] = work
        handled = _handled(handler, work, handed, spec, pass_)
        del present[handed.item]
        handed = pass_.next(handled, tell)


def _handled(handler: Handler, work: Work, handed: Handed, spec: ItemsSpec, pass_: Pass) -> Handled:
    """Settling is tried for as long as a reservation that was renewed just now can last."""
    ending, message = "interrupted", ""
    try:
        handler(work)
        ending = "done"
    except Exception as error:  # noqa: BLE001  # whatever it was: the item has failed, and the next one has its turn
        ending, message = "failed", f"{type(error).__name__}: {error}"
    except BaseException:
        pass_.stop("signal")
        pass_.next(Handled(handed.item, "interrupted", "", 0.0), lambda _item, _news: None)
        raise
    return Handled(handed.item, ending, message, boot_s() + spec.reserve_s)


def _spec(job: str, settings: Mapping[str, Union[str, int, float]], workspace: Workspace) -> ItemsSpec:
    for name in settings:
        if name not in _SETTINGS:
            raise UsageError(f"{name}: no setting of drain{did_you_mean(name, _SETTINGS)}")
    texts = {name: str(value) for name, value in settings.items()}
    options = {**texts, "grace": "0", "parallel": "1"}
    return resolve_items(job, (), options, workspace.document, workspace.file_name).spec


def _job(given: Optional[str], environ: Mapping[str, str]) -> str:
    job = given or environ.get("CRONGUARD_JOB")
    if not job:
        raise UsageError("job: none given, and no surrounding run", "name the job that the items belong to")
    return job


def _checked(item: NewItem) -> NewItem:
    for name in ("key", "group", "payload"):
        text(name, getattr(item, name))
    if item.not_before_utc is not None and item.not_before_utc.tzinfo is None:
        raise UsageError("not_before: without a time zone", "datetime.now(timezone.utc) has one")
    try:
        return checked(item)
    except ValueError as error:
        raise UsageError(f"item {item.key!r}: {error}") from None


@contextmanager
def _store(workspace: Workspace) -> Iterator[StoreWorker]:
    worker = workspace.worker()
    try:
        worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        yield worker
    finally:
        worker.close(1.0)
