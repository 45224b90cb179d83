"""Rows of the store to values of the model and back, for both dialects.

The order of `RunRow`'s fields is the order of columns. Lists are JSON text. Text that no database takes (NUL, bytes in
a foreign encoding that Python carries as surrogates) is made harmless here, so that no finish can fail on it.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, Iterable, Optional, Sequence, Tuple

from cronguard.core.model import ClaimRequest, Finish, Holder, Owner, Process, RunRow, Skip
from cronguard.store.dialect import Values

RUN_COLUMNS = RunRow._fields


def columns(table: str) -> str:
    """The columns of `runs`, each qualified by that table name."""
    return ", ".join(f"{table}.{name}" for name in RUN_COLUMNS)


def summary_columns(table: str) -> str:
    """The same without the output: a list of jobs must not carry 64 KiB for each."""
    return ", ".join("''" if name == "tail" else f"{table}.{name}" for name in RUN_COLUMNS)


def instant(value: Any) -> Optional[datetime]:
    """Aware UTC from what either driver returns."""
    if value is None:
        return None
    moment: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.astimezone(timezone.utc)


def known_instant(value: Any) -> datetime:
    """The same for a column that is never null."""
    moment = instant(value)
    if moment is None:
        raise ValueError("no instant")
    return moment


def instant_text(moment: datetime) -> str:
    """`2026-01-20T02:00:00.000000+00:00`: always as long, so that text order is time order."""
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds")


def clean(text: str) -> str:
    """The same text, storable anywhere."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "backslashreplace").decode("utf-8")


def clean_or_none(text: Optional[str]) -> Optional[str]:
    return None if text is None else clean(text)


def texts_json(texts: Iterable[str]) -> str:
    """Texts as one parameter, for `Dialect.among_texts`."""
    return json_table([clean(text)] for text in texts)


def json_table(table: Iterable[Sequence[Optional[str]]]) -> str:
    """Rows of clean texts as one parameter, for `Dialect.each`."""
    return json.dumps(list(table), ensure_ascii=False)


def run_row(values: Sequence[Any]) -> RunRow:
    """A row as read, in the order of RUN_COLUMNS."""
    row = RunRow(*values)
    return row._replace(
        forced=bool(row.forced),
        unguarded=bool(row.unguarded),
        stdin_unread=bool(row.stdin_unread),
        slot_at_utc=instant(row.slot_at_utc),
        started_at_utc=known_instant(row.started_at_utc),
        finished_at_utc=instant(row.finished_at_utc),
        late_finished_at_utc=instant(row.late_finished_at_utc),
        argv=_list_of(row.argv),
        leftovers=tuple(Process(int(pid), str(command)) for pid, command in _list_of(row.leftovers)),
        orphans=_list_of(row.orphans),
    )


def _list_of(text: Any) -> Tuple[Any, ...]:
    """Most are empty, and a list of 10,000 jobs has 40,000 of them."""
    return () if text == "[]" else tuple(json.loads(text))


def run_values(row: RunRow) -> Values:
    """The same row as parameters of an INSERT."""
    return tuple(
        row._replace(
            argv=json.dumps(row.argv),  # type: ignore[arg-type]  # lists travel as text
            leftovers=processes_text(row.leftovers),  # type: ignore[arg-type]
            orphans=json.dumps(row.orphans),  # type: ignore[arg-type]
            user_name=clean(row.user_name),
            directory=clean(row.directory),
            release=clean_or_none(row.release),
            message=clean(row.message),
            tail=clean(row.tail),
        )
    )


def processes_text(processes: Iterable[Process]) -> str:
    return json.dumps([[process.pid, process.command] for process in processes])


def owner_of(row: RunRow) -> Owner:
    """Who held that run's claim."""
    return Owner(
        row.machine_id, row.host, row.boot_id, row.pid_ns, row.pid, row.pid_start, row.keeper_pid, row.keeper_start
    )


def holder_of(row: RunRow) -> Holder:
    """That run as somebody who waits for it is told of it."""
    return Holder(row.run_id, row.job, row.host, row.pid, row.started_at_utc)


def claimed_row(request: ClaimRequest, claim_no: Optional[int], fence: Optional[int], forced: bool) -> RunRow:
    """The row of a run that has just begun."""
    owner = request.owner
    return RunRow(
        run_id=request.run_id, job=request.facts.job, lock=request.lock, run_key=request.run_key, claim_no=claim_no,
        status="running", reason=None, forced=forced, unguarded=False,
        slot_at_utc=request.slot.at_utc if request.slot else None,
        slot_local=request.slot.local.isoformat() if request.slot else None,
        zone=request.zone, tzdata=request.tzdata,
        trigger=trigger_of(request, claim_no), attempts=1, fence=fence,
        machine_id=owner.machine_id, host=owner.host, boot_id=owner.boot_id, pid_ns=owner.pid_ns, pid=owner.pid,
        pid_start=owner.pid_start, keeper_pid=owner.keeper_pid, keeper_start=owner.keeper_start,
        user_name=request.user, version=request.version, argv=request.argv, directory=request.directory,
        release=request.release, started_at_utc=request.now_utc, finished_at_utc=None, lateness_s=request.lateness_s,
        **_NOTHING_YET,
    )


def keyed_by(request: ClaimRequest) -> str:
    """What the run key was made of, for the row: `slot day hour week month`, `none`, or `text` for `--run-key`."""
    if not request.keyed:
        return "none"
    return "text" if request.named else request.facts.key


def trigger_of(request: ClaimRequest, claim_no: Optional[int]) -> str:
    """A schedule's second go at a key is a `retry`."""
    return "retry" if request.trigger == "schedule" and (claim_no or 1) > 1 else request.trigger


def skipped_row(skip: Skip) -> RunRow:
    """The row of an invocation that started nothing; no process ever stood behind it."""
    return RunRow(
        run_id=skip.run_id, job=skip.facts.job, lock=skip.lock, run_key=skip.run_key, claim_no=None,
        status=skip.status, reason=skip.reason, forced=False, unguarded=False,
        slot_at_utc=skip.slot.at_utc if skip.slot else None,
        slot_local=skip.slot.local.isoformat() if skip.slot else None,
        zone=skip.zone, tzdata=skip.tzdata, trigger=skip.trigger, attempts=0, fence=None,
        machine_id="", host=skip.host, boot_id="", pid_ns="", pid=0, pid_start=0, keeper_pid=0, keeper_start=0,
        user_name=skip.user, version=skip.version, argv=(), directory="", release=None,
        started_at_utc=skip.at_utc, finished_at_utc=skip.at_utc, lateness_s=skip.lateness_s,
        **_NOTHING_YET,
    )._replace(message=skip.message, holder=skip.holder)


def finished_row(row: RunRow, finish: Finish) -> RunRow:
    """The same row with the outcome in it."""
    outcome = finish.outcome
    return row._replace(
        status=outcome.status, reason=outcome.reason, exit_code=outcome.exit_code, signal=outcome.signal,
        message=finish.message, finished_at_utc=finish.finished_at_utc, duration_s=finish.duration_s,
        attempts=finish.attempts, cpu_s=finish.cpu_s, peak_rss_bytes=finish.peak_rss_bytes, items=finish.items,
        errors=finish.errors, tail=finish.tail, cut_bytes=finish.cut_bytes, leftovers=finish.leftovers,
        orphans=finish.orphans, stdin_unread=finish.stdin_unread,
    )


_NOTHING_YET: Any = {
    "duration_s": None, "exit_code": None, "signal": None, "cpu_s": None, "peak_rss_bytes": None, "items": None,
    "errors": None, "message": "", "tail": "", "cut_bytes": 0, "leftovers": (), "orphans": (), "stdin_unread": False,
    "holder": None, "times": 1, "pings": "", "late_status": None, "late_exit_code": None, "late_finished_at_utc": None,
}
