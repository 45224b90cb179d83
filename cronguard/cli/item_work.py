"""What both front ends of `items work` do alike: from given texts to a pass, its progress, its summary and exit code.

Loads no typer, and rich only on a terminal: cron starts this every minute.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional, Tuple

from cronguard.cli.edge import lines_for, print_lines, show
from cronguard.cli.talk import Talk
from cronguard.commands import items_work
from cronguard.core import names
from cronguard.core.model import Invocation
from cronguard.errors import UsageError
from cronguard.pipeline.draining import Tally


def carry_out(
    job: str, words: Optional[Tuple[str, ...]], given: Mapping[str, Any], invocation: Invocation
) -> int:
    """Work; returns the exit code. UsageError for what is no such line."""
    problem = names.check_job_name(job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    if words == ():
        raise UsageError("CMD: empty: nothing behind --", f"write cronguard items work {job} -- CMD {{key}}")
    options = {name: str(value) for name, value in given.items() if value is not None}
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    request = items_work.WorkRequest(job, words or (), options)
    with _watch(job, invocation.environ) as watch:
        worked = items_work.work(request, invocation, talk, watch)
    print_lines([items_work.summary(worked.tally)])
    if worked.trouble is not None:
        show(lines_for(worked.trouble, job))
    elif worked.tally.ended_by == "starved":
        show([f"cronguard: {job}: nothing was begun: what is left of the time is less than --timeout and --grace"])
    elif worked.tally.ended_by == "fenced":
        show([f"cronguard: {job}: the surrounding run no longer holds its lock; nothing more was begun"])
    return worked.exit_code


@contextmanager
def _watch(job: str, environ: Mapping[str, str]) -> Iterator[Optional[items_work.Watch]]:
    """A bar where somebody looks on; what handlers print stands beside it, as they print it."""
    if not os.isatty(2) or environ.get("TERM", "dumb") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(job), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    try:
        yield _Bar(progress)
    finally:
        progress.stop()


class _Bar(items_work.Watch):
    """Drawn in a thread of its own, which must not be there before the keepers are forked."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def began(self, ready: int) -> None:
        self._progress.update(self._task, total=ready)
        self._progress.start()

    def moved(self, tally: Tally) -> None:
        failed = f"{tally.failed} failed" if tally.failed else ""
        self._progress.update(self._task, completed=tally.done + tally.failed, description=failed)
