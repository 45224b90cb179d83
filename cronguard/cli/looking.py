"""`status`, `history` and `show`: what is on record, as text or JSON. They change nothing."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any, List, Optional, Tuple

from cronguard.cli.edge import print_lines
from cronguard.cli.parameters import argument, arguments, command, option
from cronguard.cli.render import (
    Table,
    duration,
    is_terminal,
    local,
    print_json,
    print_table,
    tail_lines,
    zone_or_utc,
)
from cronguard.commands import history as history_of
from cronguard.commands import show as show_of
from cronguard.commands import status as status_of
from cronguard.core.model import Invocation, JobRow, RunRow

COLOURS = {
    **dict.fromkeys(("ok", "success"), "green"),
    **dict.fromkeys(("paused", "skipped", "never_ran"), "yellow"),
    **dict.fromkeys(("failed", "timeout", "aborted", "lost"), "red"),
    "running": "cyan",
}
_WATCH_EVERY_S = 2.0
_JSON = option("as_json", "--json", "print one JSON object")


@command(
    arguments("jobs", "[JOB]...", "only these"),
    _JSON,
    option("watch", "--watch", "show it again every two seconds, until interrupted"),
)
def status(invocation: Invocation, ctx: Any, jobs: Optional[List[str]], as_json: bool, watch: bool) -> int:
    """Show a line a job: state, last success, next due, running since, failures and skips in a row, latest outcomes.

    The latest outcomes read from old to new: s success, f failed, t timeout, a aborted, l lost. Times are the job's.
    """
    while True:
        result = status_of.status(jobs or [], invocation)
        if watch and is_terminal(invocation.environ) and not as_json:
            print("\033[H\033[2J", end="")
        if as_json:
            print_json(status_of.as_json(result))
        else:
            print_table(_status_table(result), invocation.environ)
        if not watch:
            return 0
        try:
            time.sleep(_WATCH_EVERY_S)
        except KeyboardInterrupt:
            return 0


@command(
    argument("job", "JOB", "the job's name"),
    option("limit", "--limit", "at most so many [20]", "N"),
    option("status", "--status", "only runs that ended so", "S"),
    option("since", "--since", "only runs of the last so long", "DUR"),
    _JSON,
)
def history(
    invocation: Invocation,
    ctx: Any,
    job: str,
    limit: Optional[str],
    status: Optional[str],
    since: Optional[str],
    as_json: bool,
) -> int:
    """List a job's runs, newest first."""
    result = history_of.history(history_of.HistoryRequest(job, limit, status, since), invocation)
    if as_json:
        print_json(history_of.as_json(result))
    else:
        print_table(_history_table(result.runs), invocation.environ)
    return 0


@command(argument("run", "RUN", "a run's id, or the beginning of it"), _JSON)
def show(invocation: Invocation, ctx: Any, run: str, as_json: bool) -> int:
    """Show everything about one run, with the end of its output."""
    result = show_of.show(run, invocation)
    if as_json:
        print_json(show_of.as_json(result))
        return 0
    print_table(Table(("what", "value"), _facts(result.run), COLOURS), invocation.environ)
    if result.run.tail:
        cut = f" ({result.run.cut_bytes} bytes before it were cut)" if result.run.cut_bytes else ""
        print_lines(["", f"end of the output{cut}:", *tail_lines(result.run.tail)])
    return 0


def _status_table(result: status_of.Status) -> Table:
    headers = ("job", "state", "last success", "last run", "took", "next due", "running since", "in a row", "latest")
    return Table(headers, tuple(_status_row(job, result.now_utc) for job in result.jobs), COLOURS)


def _status_row(job: status_of.JobStatus, now_utc: datetime) -> Tuple[str, ...]:
    row = job.row
    if row is None:
        due = job.next_due.local.strftime("%Y-%m-%d %H:%M:%S") if job.next_due else ""
        return (job.job, job.state, "", "", "", due, "", "", "")
    zone, _ = zone_or_utc(row.facts.zone)
    last = row.last_run
    return (
        job.job,
        job.state,
        local(row.last_success_utc, zone),
        local(last.started_at_utc, zone) if last else "",
        duration(last.duration_s) if last else "",
        local(job.next_due.at_utc, zone) if job.next_due else "",
        _running(row, now_utc),
        _streak(row),
        row.strip,
    )


def _running(row: JobRow, now_utc: datetime) -> str:
    """`2m10s (usually 5m)`."""
    if row.running is None:
        return ""
    since = duration(max(0.0, (now_utc - row.running.started_at_utc).total_seconds()))
    return f"{since} (usually {duration(row.usual_duration_s)})" if row.usual_duration_s is not None else since


def _streak(row: JobRow) -> str:
    counts = ((row.failures_in_row, "failed"), (row.skips_in_row, "skipped"))
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _history_table(runs: Tuple[RunRow, ...]) -> Table:
    headers = ("run", "status", "reason", "key", "started", "took", "exit", "host", "message")
    return Table(headers, tuple(_history_row(run) for run in runs), COLOURS)


def _history_row(run: RunRow) -> Tuple[str, ...]:
    zone, _ = zone_or_utc(run.zone)
    times = f" x{run.times}" if run.times > 1 else ""
    return (
        run.run_id,
        run.status,
        (run.reason or "") + times,
        run.run_key if run.run_key != run.run_id else "",
        local(run.started_at_utc, zone),
        duration(run.duration_s),
        _exit_text(run),
        run.host,
        run.message,
    )


def _exit_text(run: RunRow) -> str:
    if run.signal is not None:
        return f"signal {run.signal}"
    return "" if run.exit_code is None else str(run.exit_code)


def _facts(run: RunRow) -> Tuple[Tuple[str, str], ...]:
    """What there is to say, in the order in which one asks."""
    zone, zone_name = zone_or_utc(run.zone)
    facts = (
        ("run", run.run_id),
        ("job", run.job),
        ("status", run.status),
        ("reason", run.reason or ""),
        ("message", run.message),
        ("key", run.run_key),
        ("slot", run.slot_local or ""),
        ("trigger", run.trigger + (", forced" if run.forced else "") + (", unguarded" if run.unguarded else "")),
        ("started", f"{local(run.started_at_utc, zone)} {zone_name}"),
        ("finished", local(run.finished_at_utc, zone)),
        ("late", duration(run.lateness_s)),
        ("took", duration(run.duration_s)),
        ("exit", _exit_text(run)),
        ("attempts", str(run.attempts) if run.attempts > 1 else ""),
        ("invocations", str(run.times) if run.times > 1 else ""),
        ("held by", run.holder or ""),
        ("items", "" if run.items is None else str(run.items)),
        ("errors", "" if run.errors is None else str(run.errors)),
        ("cpu", duration(run.cpu_s)),
        ("peak memory", "" if run.peak_rss_bytes is None else f"{run.peak_rss_bytes / 2**20:.1f} MiB"),
        ("host", f"{run.host}, pid {run.pid}, user {run.user_name}"),
        ("lock", f"{run.lock}, fence {run.fence}" if run.fence is not None else run.lock),
        ("command", " ".join(run.argv)),
        ("directory", run.directory),
        ("release", run.release or ""),
        ("cronguard", f"{run.version}, tzdata {run.tzdata}"),
        ("pings", run.pings.replace("\n", "; ")),
        ("stdin", "was left unread" if run.stdin_unread else ""),
        ("left behind", ", ".join(f"{process.pid} {process.command}" for process in run.leftovers)),
        ("orphans", ", ".join(str(pid) for pid in run.orphans)),
        ("late report", _late(run)),
    )
    return tuple((name, text) for name, text in facts if text)


def _late(run: RunRow) -> str:
    if run.late_status is None:
        return ""
    code = "" if run.late_exit_code is None else f", exit {run.late_exit_code}"
    return f"{run.late_status}{code}, after the run had been given up"
