"""What to look at first when something is wrong with a job: facts from the rows, most likely cause first.

In the order in which an experienced person would ask: who holds the lock and where, how the last run ended, what has
changed since it last worked, does anybody start it at all. What is not known is left out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Iterator, List, Optional, Tuple

from cronguard.core.instants import utc_text
from cronguard.core.masking import mask_text
from cronguard.core.model import JobRow, RunRow, Verdict
from cronguard.core.names import short_id

_BAD_ENDS = ("failed", "timeout", "aborted", "lost")
_LONGEST_LINE = 200
_COMPARED = (
    ("host", "host"), ("release", "release"), ("directory", "directory"), ("user", "user_name"),
    ("cronguard", "version"), ("tzdata", "tzdata"),
)  # fmt: skip


def check_first(
    kind: str, row: JobRow, verdict: Optional[Verdict], tail: str, last_good: Optional[RunRow], due_utc: datetime
) -> Tuple[str, ...]:
    """Lines to act on. `tail`: the end of the last run's output; `last_good`: the row of the last success;
    `due_utc`: when a start was due."""
    found: List[str] = []
    found += _holder(row, verdict)
    if kind != "slow":
        found += _last_end(row, tail)
    found += _changes(row, last_good)
    if kind in ("missed", "never_ran"):
        found += _scheduler(row, due_utc)
    return tuple(found)


def _holder(row: JobRow, verdict: Optional[Verdict]) -> Iterator[str]:
    run = row.running
    if run is not None:
        since = utc_text(run.started_at_utc.replace(microsecond=0))
        yield f"lock {run.lock}: run {short_id(run.run_id)} on {run.host}, pid {run.pid}, holds it since {since}"
        if verdict is not None and verdict.pids:
            yield f"processes left by it on {run.host}: {' '.join(str(pid) for pid in verdict.pids)}; end them"
    elif row.skips_in_row and row.last_skip_reason in ("lock_held", "orphans"):
        holder = f"run {short_id(row.last_skip_holder)}" if row.last_skip_holder else "another run"
        yield f"the lock: {holder} held it at the last of {row.skips_in_row} starts ({row.last_skip_reason})"
    elif row.skips_in_row and row.last_skip_reason != "already_done":
        yield f"its last {row.skips_in_row} starts were skipped: {row.last_skip_reason}"


def _last_end(row: JobRow, tail: str) -> Iterator[str]:
    last = row.last_run
    if last is None or last.status not in _BAD_ENDS:
        return
    code = f", exit {last.exit_code}" if last.exit_code is not None else ""
    signal = f", signal {last.signal}" if last.signal is not None else ""
    message = f": {mask_text(last.message)}" if last.message else ""
    ended = f"{last.status}{code}{signal}{message}"
    yield f"last run {short_id(last.run_id)} on {last.host}: {ended} (cronguard show {short_id(last.run_id)})"
    line = next((text.strip() for text in reversed(tail.splitlines()) if text.strip()), "")
    if line:
        yield f"its output ends: {mask_text(line)[-_LONGEST_LINE:]}"


def _changes(row: JobRow, last_good: Optional[RunRow]) -> Iterator[str]:
    now = row.running or row.last_run
    if now is None or last_good is None or now.run_id == last_good.run_id:
        return
    for name, field in _COMPARED:
        before, after = getattr(last_good, field), getattr(now, field)
        if before != after:
            yield f"changed since the last success: {name} {before or 'none'} -> {after or 'none'}"


def _scheduler(row: JobRow, due_utc: datetime) -> Iterator[str]:
    last = row.last_run
    if last is not None and last.started_at_utc >= due_utc:
        return
    where = f" on {last.host}" if last is not None else ""
    yield f"nothing started it: is its crontab line or timer still there{where}, the host up, its clock and zone right?"
