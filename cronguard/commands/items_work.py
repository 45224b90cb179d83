"""`items work`: one pass over a job's queue, a process for each item.

No job lock and no run row: any number of workers may be at it, on any host. Inside a run every reservation asks for the
run's fence, and the run's deadline is the budget unless one was given.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core import exitcodes
from cronguard.core.item_settings import ItemsSpec, command_problem, pass_s, resolve_items
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


class Watch:
    """Somebody who follows the pass. Hears from several threads, one at a time."""

    def began(self, ready: int) -> None:
        """So many items may be taken now."""

    def moved(self, tally: Tally) -> None:
        """So far that came of it."""


class Worked(NamedTuple):
    """`trouble`: what ended the pass before its time, None if nothing did."""

    exit_code: int
    tally: Tally
    trouble: Optional[CronguardError]


def work(request: WorkRequest, invocation: Invocation, say: Say, watch: Optional[Watch] = None) -> Worked:
    """One pass. Raises CronguardError (exit code 125) when it could not begin."""
    began_at = boot_s()
    workspace = open_workspace(invocation, request.job)
    spec = resolve_items(*request, workspace.document, workspace.file_name).spec
    if not spec.command:
        raise command_problem(request.job)
    environ = invocation.environ
    fence, end_at = fence_from(environ), began_at + pass_s(spec, environ, clock.now_utc(environ))
    handlers = Handlers(spec, _environment(spec, environ), _secrets(workspace))
    signals = Signals()
    signals.install()
    try:
        with _keepers(spec.parallel) as keepers, _opened(workspace) as store:
            if watch is not None:
                counts = store.call(lambda store: store.count_items(spec.job, WITHIN_S), WITHIN_S)
                watch.began(counts.ready)
            pass_ = Pass(store, spec, fence, end_at, say, (watch or Watch()).moved)
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
