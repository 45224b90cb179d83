"""`status`: a line a job, once or for as long as somebody watches.

State, last success, how long it took and usually takes, next due, what runs, streaks, the latest outcomes.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any, List, Optional, Sequence, Tuple

from cronguard.cli.parameters import arguments, command, option
from cronguard.cli.render import (
    Cell,
    Span,
    Table,
    common_zone,
    duration,
    is_terminal,
    offset_local,
    print_json,
    print_table,
)
from cronguard.cli.watch import watch as watched
from cronguard.commands import status as status_of
from cronguard.core.model import Invocation, JobRow
from cronguard.core.names import short_id
from cronguard.core.overdue import is_paused
from cronguard.core.standing import JobStatus

STATE_COLOURS = {
    **dict.fromkeys(("ok", "success"), "green"),
    **dict.fromkeys(("paused", "skipped", "never_ran"), "yellow"),
    **dict.fromkeys(("failed", "timeout", "aborted", "lost"), "red"),
    "running": "cyan",
}
_LETTER_COLOURS = {"s": "green", "f": "red", "t": "red", "a": "red", "l": "red"}
_HEADERS = ("job", "state", "last success", "took", "next due", "next due UTC", "running", "note", "latest")
_BAR_CHARS = 10


@command(
    arguments("jobs", "[JOB]...", "only these"),
    option("as_json", "--json", "print one JSON object"),
    option("watch", "--watch", "on a terminal: show it again every two seconds, until q or ^C"),
)
def status(invocation: Invocation, ctx: Any, jobs: Optional[List[str]], as_json: bool, watch: bool) -> int:
    """Show a line a job: state, last success, next due, what runs, failures and skips in a row, latest outcomes.

    The latest outcomes read from old to new: s success, f failed, t timeout, a aborted, l lost. Times are the jobs'
    zone where they share one, else UTC.

    Example: cronguard status

    Example: cronguard status nightly-export billing-sync --watch
    """
    if watch and not as_json and is_terminal(invocation.environ):
        return watched(lambda: status_of.status(jobs or [], invocation), table_of, invocation.environ)
    result = status_of.status(jobs or [], invocation)
    if as_json:
        print_json(status_of.as_json(result))
    else:
        print_table(table_of(result, result.now_utc), invocation.environ)
    return 0


def table_of(result: status_of.Status, now_utc: datetime) -> Table:
    """The jobs as they stood, what runs as of now."""
    zone, _ = common_zone([job.row.facts.zone for job in result.jobs if job.row is not None])
    return Table(
        _HEADERS,
        tuple(_row_of(job, now_utc, zone) for job in result.jobs),
        STATE_COLOURS,
        optional=("next due UTC", "took", "latest", "next due", "last success", "running", "note"),
        elastic=("running", "note"),
    )


def _row_of(job: JobStatus, now_utc: datetime, zone: tzinfo) -> Tuple[Cell, ...]:
    due_utc = job.next_due.at_utc if job.next_due else None
    due = (offset_local(due_utc, zone, _precision(due_utc)), _utc_text(due_utc))
    row = job.row
    if row is None:
        return (job.job, job.state, "", "", *due, "", "", "")
    return (
        job.job,
        _state_cell(job.state, row),
        offset_local(row.last_success_utc, zone, "minutes"),
        _took(row),
        *due,
        _running(row, now_utc),
        "; ".join(_notes(row, now_utc, zone)),
        tuple(Span(letter, _LETTER_COLOURS.get(letter, "")) for letter in row.strip),
    )


def _precision(at_utc: Optional[datetime]) -> str:
    return "seconds" if at_utc is not None and at_utc.second else "minutes"


def _utc_text(at_utc: Optional[datetime]) -> str:
    zone, _ = common_zone(["UTC"])
    return offset_local(at_utc, zone, _precision(at_utc))


def _state_cell(state: str, row: JobRow) -> Cell:
    """A success that reported errors is one, in yellow."""
    if state == "ok" and row.last_run is not None and row.last_run.errors:
        return (Span(state, "yellow"),)
    return state


def _took(row: JobRow) -> str:
    """`7m43s (usually 5m)`, of the latest run; without the first while it is under way."""
    last = duration(row.last_run.duration_s) if row.last_run else ""
    if row.usual_duration_s is None:
        return last
    return f"{last} (usually {duration(row.usual_duration_s)})".lstrip()


def _running(row: JobRow, now_utc: datetime) -> str:
    """`[####------] 2m10s of 5m on web-2`."""
    progress = status_of.progress_of(row, now_utc)
    if row.running is None or progress is None:
        return ""
    where = f"on {row.running.host}"
    if progress.share is None:
        return f"{duration(progress.elapsed_s)} {where}"
    return f"{bar(progress.share)} {duration(progress.elapsed_s)} of {duration(progress.usual_s)} {where}"


def bar(share: float) -> str:
    """Ten marks for the usual duration, an exclamation mark when it takes longer."""
    done = min(_BAR_CHARS, int(share * _BAR_CHARS))
    return f"[{'#' * done}{'-' * (_BAR_CHARS - done)}]{'!' if share > 1 else ''}"


def _notes(row: JobRow, now_utc: datetime, zone: tzinfo) -> Sequence[str]:
    notes = []
    if is_paused(row, now_utc):
        until = f" until {offset_local(row.paused_until_utc, zone, 'minutes')}" if row.paused_until_utc else ""
        notes.append(f"paused{until}{f': {row.paused_reason}' if row.paused_reason else ''}")
    if row.failures_in_row:
        notes.append(f"{row.failures_in_row} failed in a row")
    if row.skips_in_row:
        holder = f" by {short_id(row.last_skip_holder)}" if row.last_skip_holder else ""
        why = f": {row.last_skip_reason}{holder}" if row.last_skip_reason else ""
        notes.append(f"{row.skips_in_row} skipped in a row{why}")
    if row.last_run is not None and row.last_run.status == "success" and row.last_run.errors:
        notes.append(f"{row.last_run.errors} errors")
    return notes
