"""`items add`: put items into a job's queue. What is there already, whatever became of it, is left as it is.

Lines are read one by one and stored a thousand at a time: a million of them take no more memory than a thousand.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from itertools import islice
from typing import IO, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.config import resolve_settings
from cronguard.core.instants import parse_instant
from cronguard.core.item_texts import When, item_from_json, item_group, item_key, item_payload
from cronguard.core.model import Invocation, RunRequest, Say
from cronguard.core.names import check_job_name
from cronguard.core.queue import NewItem
from cronguard.core.values import judged
from cronguard.errors import CronguardError, UsageError
from cronguard.pipeline.placing import zone_for
from cronguard.store.contract import Store
from cronguard.store.worker import StoreWorker
from cronguard.system import clock
from cronguard.workspace import Workspace, open_workspace

WITHIN_S = 30.0
AT_ONCE = 1000
# Longer than any line that can be right: 64 KiB of payload, each byte of it escaped, and the rest.
_LONGEST_LINE_BYTES = 1 << 20


class AddRequest(NamedTuple):
    """Options as typed; None for one that was not given. `lines`: where keys come from if not from `keys`."""

    job: str
    keys: Sequence[str]
    lines: Optional[IO[bytes]]
    as_json: bool
    group: Optional[str]
    not_before: Optional[str]
    payload: Optional[str]


class Added(NamedTuple):
    """`known`: how many were there already, or were named twice."""

    added: int
    known: int


class StoppedAdding(CronguardError):
    """A line that is no item, or a store that failed: what came before is in the queue."""

    def __init__(self, error: CronguardError, before: Added) -> None:
        super().__init__(f"{error} (before that: added={before.added} known={before.known})")


def add(request: AddRequest, invocation: Invocation, say: Say) -> Added:
    """Add them all. UsageError for a bad option or key; StoppedAdding when it went wrong on the way."""
    problem = check_job_name(request.job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    workspace = open_workspace(invocation, request.job)
    when = _when_reader(request.job, workspace, invocation, say)
    model = NewItem(
        "",
        judged("--group", item_group, request.group or ""),
        judged("--payload", item_payload, request.payload or ""),
        None if request.not_before is None else when(request.not_before),
    )
    if request.lines is None:
        items: Iterable[NewItem] = [model._replace(key=judged("KEY", item_key, key)) for key in request.keys]
    else:
        items = _items_from(request.lines, model, when if request.as_json else None)
    worker = workspace.worker()
    try:
        return add_all(request.job, items, worker)
    finally:
        worker.close(1.0)


def add_all(job: str, items: Iterable[NewItem], worker: StoreWorker) -> Added:
    """A statement for each thousand; when the source breaks off, what it had given so far is added first."""
    worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
    done, broken = Added(0, 0), None
    source = iter(items)
    while broken is None:
        some, broken = _next_some(source)
        if not some:
            break
        try:
            added = worker.call(partial(_add_some, job, some), WITHIN_S)
        except CronguardError as error:
            raise StoppedAdding(error, done) from error
        done = Added(done.added + added, done.known + len(some) - added)
    if broken is not None:
        raise StoppedAdding(broken, done) from broken
    return done


def _add_some(job: str, some: Sequence[NewItem], store: Store) -> int:
    return store.add_items(job, some, WITHIN_S)


def _next_some(source: Iterator[NewItem]) -> Tuple[Sequence[NewItem], Optional[CronguardError]]:
    some = []
    try:
        for item in islice(source, AT_ONCE):
            some.append(item)
    except CronguardError as error:
        return some, error
    return some, None


def _items_from(lines: IO[bytes], model: NewItem, when: Optional[When]) -> Iterator[NewItem]:
    """A key a line, or (`when` given) an object; empty lines are passed over."""
    for number, line in enumerate(iter(lambda: lines.readline(_LONGEST_LINE_BYTES), b""), 1):
        try:
            if len(line) == _LONGEST_LINE_BYTES:
                raise ValueError("too long a line")
            text = _decoded(line)
            if not text:
                continue
            item = item_from_json(text, model, when) if when else model._replace(key=item_key(text))
        except (ValueError, CronguardError) as error:
            raise UsageError(f"line {number}: {error}") from None
        yield item


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8").rstrip("\n")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None


def _when_reader(job: str, workspace: Workspace, invocation: Invocation, say: Say) -> When:
    """Reads WHEN: an instant in the company's zone, which is looked up once it is needed, or a duration from now."""
    zones: List[str] = []

    def when(text: str) -> datetime:
        if not zones:
            request = RunRequest(job, (), {})
            spec = resolve_settings(request, workspace.document, workspace.file_name, invocation.environ).spec
            zones.append(zone_for(spec, say))
        now_utc = clock.now_utc(invocation.environ)
        instant = parse_instant(text, zones[0], now_utc)
        # A duration means so long ago elsewhere; nothing is put off until the past.
        return instant if text[4:5] == "-" else now_utc + (now_utc - instant)

    return when
