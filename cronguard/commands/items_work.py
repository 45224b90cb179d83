"""`items work`: one pass over a job's queue, a process for each item.

No job lock and no run row: any number of workers may be at it, on any host. Inside a run every reservation asks for the
run's fence, and the run's deadline is the budget unless one was given.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from math import inf
from typing import Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core import exitcodes
from cronguard.core.instants import parse_instant
from cronguard.core.item_settings import ItemsSpec, command_problem, resolve_items
from cronguard.core.ledger import fence_from
from cronguard.core.masking import mask_endpoint
from cronguard.core.model import Invocation, Say
from cronguard.errors import CronguardError
from cronguard.pipeline.draining import Pass, Tally
from cronguard.pipeline.handling import Handlers, drain
from cronguard.store.worker import StoreWorker
from cronguard.system import clock
from cronguard.system.clock import boot_s
from cronguard.system.keeper import Keeper, fork_keepers
from cronguard.system.results import add_results
from cronguard.system.signals import Signals
from cronguard.workspace import Workspace, open_workspace

WITHIN_S = 10.0


class WorkRequest(NamedTuple):
    """`options` holds only what was given, setting name to raw text."""

    job: str
    command: Tuple[str, ...]
    options: Mapping[str, str]


class Worked(NamedTuple):
    """`trouble`: what ended the pass before its time, None if nothing did."""

    exit_code: int
    tally: Tally
    trouble: Optional[CronguardError]


def work(request: WorkRequest, invocation: Invocation, say: Say, progress: Callable[[Tally], None]) -> Worked:
    """One pass. Raises CronguardError (exit code 125) when it could not begin."""
    began_at = boot_s()
    workspace = open_workspace(invocation, request.job)
    spec = resolve_items(*request, workspace.document, workspace.file_name).spec
    if not spec.command:
        raise command_problem(request.job)
    environ = invocation.environ
    fence, end_at = fence_from(environ), began_at + _budget_s(spec, environ)
    handlers = Handlers(spec, _environment(spec, environ), _secrets(workspace))
    signals = Signals()
    signals.install()
    try:
        with _keepers(spec.parallel) as keepers, _opened(workspace) as store:
            pass_ = Pass(store, spec, fence, end_at, say, progress)
            tally = _drained(pass_, handlers, keepers, signals)
        worked = Worked(_leave_with(tally, pass_.fault, signals), tally, pass_.fault)
    finally:
        signals.restore()
    add_results(environ.get("CRONGUARD_OUTPUT"), {"items": tally.done, "errors": tally.failed})
    return worked


def summary(tally: Tally) -> str:
    """`done=283 failed=2 left=15`, and what else there was."""
    numbers = {"done": tally.done, "failed": tally.failed, "left": tally.left}
    more = {"dead": tally.dead, "lost": tally.lost}
    shown = {**numbers, **{name: number for name, number in more.items() if number}}
    return " ".join(f"{name}={'unknown' if number is None else number}" for name, number in shown.items())


def _drained(pass_: Pass, handlers: Handlers, keepers: Sequence[Keeper], signals: Signals) -> Tally:
    try:
        pass_.begin()
        drain(pass_, handlers, keepers, signals)
    except CronguardError as error:
        pass_.stop("fault", error)
    finally:
        tally = pass_.finish()
    return tally


def _leave_with(tally: Tally, fault: Optional[CronguardError], signals: Signals) -> int:
    if signals.first is not None:
        return exitcodes.for_signal(signals.first)
    if fault is not None:
        return exitcodes.OUR_FAULT
    if tally.ended_by == "fenced":
        return exitcodes.NOT_STARTED
    return 1 if tally.dead or tally.lost or tally.left_alone or tally.ended_by == "starved" else 0


def _budget_s(spec: ItemsSpec, environ: Mapping[str, str]) -> float:
    """What was asked for; else what a surrounding run has left; else no limit."""
    if spec.budget_s is not None:
        return spec.budget_s
    text = environ.get("CRONGUARD_DEADLINE")
    if not environ.get("CRONGUARD_RUN_ID") or not text:
        return inf
    now_utc = clock.now_utc(environ)
    return (parse_instant(text, "UTC", now_utc) - now_utc).total_seconds()


def _environment(spec: ItemsSpec, environ: Mapping[str, str]) -> Dict[str, str]:
    """A handler's, but for its item. In a run it goes on to belong to that one's job."""
    return {"CRONGUARD_JOB": spec.job, **environ, **spec.env}


def _secrets(workspace: Workspace) -> Tuple[str, ...]:
    return (workspace.store,) if mask_endpoint(workspace.store) != workspace.store else ()


@contextmanager
def _keepers(count: int) -> Iterator[Sequence[Keeper]]:
    """Forked before there is any thread. Handlers get no input, and nobody is to wait for the end of ours."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    keepers = fork_keepers(count)
    try:
        yield keepers
    finally:
        for keeper in keepers:
            keeper.goodbye()


@contextmanager
def _opened(workspace: Workspace) -> Iterator[StoreWorker]:
    worker = workspace.worker()
    try:
        worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        yield worker
    finally:
        worker.close(1.0)
