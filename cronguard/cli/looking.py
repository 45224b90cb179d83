"""`history` and `show`: what is on record, as text or JSON. They change nothing."""

from __future__ import annotations

import shlex
from datetime import tzinfo
from typing import Any, List, Optional, Tuple

from cronguard.cli.edge import print_lines
from cronguard.cli.parameters import argument, command, option
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
    tail_lines,
    zone_or_utc,
)
from cronguard.cli.status import STATE_COLOURS
from cronguard.commands import history as history_of
from cronguard.commands import show as show_of
from cronguard.core.instants import utc_text
from cronguard.core.model import Invocation, RunRow
from cronguard.core.outcome import signal_name

_ID_CHARS = 13  # of a run's id on a terminal: its time to the millisecond, enough for `show`
_HEADERS = ("run", "status", "reason", "key", "started", "took", "counts", "exit", "host", "message")
_JSON = option("as_json", "--json", "print one JSON object")


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
    """List a job's runs, newest first.

    Example: cronguard history nightly-export --status failed --since 7d
    """
    result = history_of.history(history_of.HistoryRequest(job, limit, status, since), invocation)
    if as_json:
        print_json(history_of.as_json(result))
    else:
        print_table(_history_table(result.runs, is_terminal(invocation.environ)), invocation.environ)
    return 0


@command(argument("run", "RUN", "a run's id, or the beginning of it"), _JSON)
def show(invocation: Invocation, ctx: Any, run: str, as_json: bool) -> int:
    """Show everything about one run, with the end of its output.

    Example: cronguard show 0197f3a2
    """
    result = show_of.show(run, invocation)
    if as_json:
        print_json(show_of.as_json(result))
        return 0
    print_table(Table(("what", "value"), _facts(result.run), STATE_COLOURS, elastic=("value",)), invocation.environ)
    if result.run.tail:
        cut = f" ({result.run.cut_bytes} bytes before it were cut)" if result.run.cut_bytes else ""
        print_lines(["", f"end of the output{cut}:", *tail_lines(result.run.tail)])
    return 0


def _history_table(runs: Tuple[RunRow, ...], on_terminal: bool) -> Table:
    zone, _ = common_zone([run.zone for run in runs])
    return Table(
        _HEADERS,
        tuple(_history_row(run, zone, _ID_CHARS if on_terminal else None) for run in runs),
        STATE_COLOURS,
        optional=("host", "key", "counts", "exit", "took", "message", "reason", "started"),
        elastic=("message",),
    )


def _history_row(run: RunRow, zone: tzinfo, id_chars: Optional[int]) -> Tuple[Cell, ...]:
    times = f" x{run.times}" if run.times > 1 else ""
    return (
        run.run_id[:id_chars],
        _status_cell(run),
        (run.reason or "") + times,
        run.run_key if run.run_key != run.run_id else "",
        offset_local(run.started_at_utc, zone),
        duration(run.duration_s),
        _counts(run),
        _exit_text(run),
        run.host,
        run.message,
    )


def _status_cell(run: RunRow) -> Cell:
    """A success that reported errors is one, in yellow."""
    return (Span(run.status, "yellow"),) if run.status == "success" and run.errors else run.status


def _counts(run: RunRow) -> str:
    counts = ((run.items, "items"), (run.errors, "errors"))
    return ", ".join(f"{count} {what}" for count, what in counts if count is not None)


def _exit_text(run: RunRow) -> str:
    if run.signal is not None:
        return signal_name(run.signal)
    return "" if run.exit_code is None else str(run.exit_code)


def _facts(run: RunRow) -> Tuple[Tuple[Cell, ...], ...]:
    """What there is to say, in the order in which one asks."""
    zone, zone_name = zone_or_utc(run.zone)
    facts: Tuple[Tuple[str, Cell], ...] = (
        ("run", run.run_id),
        ("job", run.job),
        ("status", _status_cell(run)),
        ("reason", run.reason or ""),
        ("message", run.message),
        ("counts", _counts(run)),
        ("key", run.run_key if run.run_key != run.run_id else ""),
        ("slot", _slot(run, zone)),
        ("zone", zone_name),
        ("trigger", run.trigger + (", forced" if run.forced else "") + (", unguarded" if run.unguarded else "")),
        ("started", offset_local(run.started_at_utc, zone)),
        ("late", duration(run.lateness_s)),
        ("finished", offset_local(run.finished_at_utc, zone)),
        ("took", duration(run.duration_s)),
        ("exit", _exit_text(run)),
        ("attempts", str(run.attempts) if run.attempts else ""),
        ("claim", "" if run.claim_no is None else f"number {run.claim_no} for this key"),
        ("invocations", str(run.times) if run.times > 1 else ""),
        ("held by", run.holder or ""),
        ("cpu", duration(run.cpu_s)),
        ("peak memory", "" if run.peak_rss_bytes is None else f"{run.peak_rss_bytes / 2**20:.1f} MiB"),
        ("host", f"{run.host}, pid {run.pid}" if run.pid else run.host),
        ("user", run.user_name),
        ("lock", f"{run.lock}, fence {run.fence}" if run.fence is not None else run.lock),
        ("command", shlex.join(run.argv)),
        ("directory", run.directory),
        ("release", run.release or ""),
        ("cronguard", f"{run.version}, tzdata {run.tzdata}"),
        *_repeated("ping", [line for line in run.pings.splitlines() if line]),
        ("stdin", "was left unread" if run.stdin_unread else ""),
        *_repeated("left behind", [f"{process.pid} {process.command}" for process in run.leftovers]),
        ("orphans", ", ".join(str(pid) for pid in run.orphans)),
        ("late report", _late(run, zone)),
    )
    return tuple(fact for fact in facts if fact[1])


def _repeated(name: str, texts: List[str]) -> List[Tuple[str, Cell]]:
    """A line each, the name only before the first."""
    return [(name if number == 0 else "", text) for number, text in enumerate(texts)]


def _slot(run: RunRow, zone: tzinfo) -> str:
    """Both ways, for the reader who asks what the host's clock showed (FR-51)."""
    if run.slot_at_utc is None:
        return ""
    return f"{offset_local(run.slot_at_utc, zone, 'minutes')} ({utc_text(run.slot_at_utc)})"


def _late(run: RunRow, zone: tzinfo) -> str:
    if run.late_status is None:
        return ""
    code = "" if run.late_exit_code is None else f", exit {run.late_exit_code}"
    at = f" at {offset_local(run.late_finished_at_utc, zone)}" if run.late_finished_at_utc else ""
    return f"{run.late_status}{code}{at}, after the run had been given up"
