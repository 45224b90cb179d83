"""`pause`, `resume`, `cancel` and `prune`: what a person does to jobs by hand. Each says what it did."""

from __future__ import annotations

from typing import Any, List, Optional

from cronguard.cli.edge import one_line, print_lines
from cronguard.cli.parameters import argument, arguments, command, option
from cronguard.cli.render import offset_local, zone_or_utc
from cronguard.commands import cancel as cancel_of
from cronguard.commands import pause as pause_of
from cronguard.commands import prune as prune_of
from cronguard.core import keeping
from cronguard.core.durations import format_duration
from cronguard.core.model import Invocation
from cronguard.core.names import short_id

NOT_DONE = 1
_JOB = argument("job", "JOB", "the job's name")


@command(
    _JOB,
    option("how_long", "--for", "ends by itself after so long", "DUR"),
    option("reason", "--reason", "why, for those who find it paused", "TEXT"),
)
def pause(invocation: Invocation, ctx: Any, job: str, how_long: Optional[str], reason: Optional[str]) -> int:
    """Let nobody start a job, on any host, until it is resumed. A run that is under way goes on.

    Example: cronguard pause nightly-export --for 2h --reason "database migration"
    """
    result = pause_of.pause(pause_of.PauseRequest(job, how_long, reason), invocation)
    until = "until `cronguard resume` ends it"
    if result.until_utc is not None:
        zone, _ = zone_or_utc(result.zone)
        until = f"until {offset_local(result.until_utc, zone)}"
    why = f": {one_line(result.reason)}" if result.reason else ""
    print_lines([f"{job} is paused {until}{why}"])
    if result.runs:
        print_lines([f"{job} is running at this moment and goes on; `cronguard cancel {job}` ends it"])
    return 0


@command(_JOB)
def resume(invocation: Invocation, ctx: Any, job: str) -> int:
    """Let a paused job be started again. Slots that were due meanwhile are not missed.

    Example: cronguard resume nightly-export
    """
    result = pause_of.resume(job, invocation)
    print_lines([f"{job} is resumed" if result.was_paused else f"{job} was not paused"])
    return 0


@command(_JOB, option("wait", "--wait", "wait at most so long until the run has ended", "DUR"))
def cancel(invocation: Invocation, ctx: Any, job: str, wait: Optional[str]) -> int:
    """End the running run of a job: TERM, and KILL after its grace. It is recorded as aborted and not tried again.

    Example: cronguard cancel nightly-export --wait 1m
    """
    result = cancel_of.cancel(job, wait, invocation)
    print_lines([f"{job}: {_what_happened(result)}"])
    return 0 if result.under_way else NOT_DONE


def _what_happened(result: cancel_of.Cancelled) -> str:
    run = result.run
    name = f"run {short_id(run.run_id)}"
    if run.status != "running":
        return f"{name} has ended: {run.status}{f' ({run.reason})' if run.reason else ''}"
    if result.waited:
        return f"{name} was told to end and is still running on {run.host}"
    if result.signalled == "sent":
        return f"{name} was told to end (TERM to its cronguard, pid {run.pid} on this host)"
    if result.signalled == "gone":
        return f"{name} has no cronguard any more on {run.host}; its claim ends by itself, its row will say lost"
    if result.leased:
        return f"{name} on {run.host} ends with its next renewal, within a sixth of its lease (as a rule 20s)"
    if result.signalled == "forbidden":
        return f"{name} is {run.user_name}'s: not allowed to signal pid {run.pid}; cancel it as {run.user_name} or root"
    return f"{name} cannot be reached from here; cancel it on {run.host}, in the container or user session it runs in"


@command(
    arguments("jobs", "[JOB]...", "only these"),
    option("older_than", "--older-than", f"rows older than that [{format_duration(keeping.OLDEST_S)}]", "DUR"),
    option("keep", "--keep", f"at most so many rows a job [{keeping.MOST_ROWS}]", "N"),
)
def prune(
    invocation: Invocation, ctx: Any, jobs: Optional[List[str]], older_than: Optional[str], keep: Optional[str]
) -> int:
    """Delete old rows of the history, in small steps.

    Never the last success, a run under way, or a success that keeps a slot from being done again. A little of it
    happens after runs by itself.

    Example: cronguard prune --older-than 30d --keep 1000
    """
    result = prune_of.prune(prune_of.PruneRequest(jobs or [], older_than, keep), invocation)
    total = sum(each.rows for each in result)
    of_each = [f"{each.job}: {each.rows} rows" for each in result if each.rows]
    print_lines([*of_each, f"pruned {total} rows of {len(result)} jobs"])
    return 0
