"""The ledger on the screen: for the verbs of `items` with --ledger, and `items settle`."""

from __future__ import annotations

from datetime import timezone
from typing import Any, List, Optional, Tuple

from cronguard.cli.edge import one_line, print_lines, show
from cronguard.cli.parameters import argument, arguments, command, option
from cronguard.cli.render import Cell, Table, offset_local, print_json, print_table
from cronguard.commands import ledger
from cronguard.core.effect_texts import idempotency_of, what_to_do
from cronguard.core.model import Invocation
from cronguard.core.names import short_id
from cronguard.errors import UsageError

NOT_CHANGED = 1
LEDGER = option("ledger", "--ledger", "what `once` has marked, instead of the queue")
UNKNOWN = option("unknown", "--unknown", "what `once` began and nobody saw the end of")
RUN_KEY = option("run_key", "--run-key", "of the ledger: what was marked with --per-slot in that slot", "TEXT")
_COLOURS = {"done": "green", "failed": "red", "unknown": "red", "under_way": "cyan"}


def print_marks(
    job: str, status: Optional[str], unknown: bool, limit: Optional[str], as_json: bool, invocation: Invocation
) -> int:
    """`items list --ledger` and `--unknown`."""
    if unknown and status is not None:
        raise UsageError("--unknown and --status: one at a time")
    found = ledger.list_marks(ledger.MarksRequest(job, "unknown" if unknown else status, limit), invocation)
    if as_json:
        print_json({"version": 1, "job": job, "marks": ledger.as_json(found)})
        return 0
    if found:
        headers = ("key", "slot", "state", "tries", "since", "run", "host", "message")
        rows = tuple(_row(each) for each in found)
        optional = ("slot", "tries", "run", "message")
        print_table(Table(headers, rows, _COLOURS, optional, elastic=("key", "message")), invocation.environ)
    for each in found:
        if each.state == "unknown":
            print_lines([f"{one_line(each.mark.effect.key)}: {what_to_do(each.mark.effect)}"])
    return 0


def print_mark(job: str, key: str, as_json: bool, invocation: Invocation) -> int:
    """`items show --ledger`."""
    found = ledger.show_marks(job, key, invocation)
    if as_json:
        print_json({"version": 1, "marks": ledger.as_json(found)})
        return 0
    for each in found:
        print_table(Table(("what", "value"), _facts(each), _COLOURS, elastic=("value",)), invocation.environ)
    return 0


def forget_marks(job: str, keys: List[str], run_key: Optional[str], invocation: Invocation) -> int:
    """`items forget --ledger`."""
    return _told(ledger.forget_marks(job, keys, run_key, invocation), "forgotten")


@command(argument("job", "JOB", "the job"), arguments("keys", "KEY...", "what did happen"), RUN_KEY)
def settle(invocation: Invocation, ctx: Any, job: str, keys: Optional[List[str]], run_key: Optional[str]) -> int:
    """Mark as done what `once` began, nobody saw the end of, and somebody found to have happened.

    Example: cronguard items settle reminders "reminder:2026-01-20:4711"
    """
    return _told(ledger.settle_marks(job, keys or [], run_key, invocation), "settled")


def _told(changed: ledger.Changed, what: str) -> int:
    print_lines([f"{what}={len(changed.effects)}"])
    show([f"cronguard: {one_line(line)}" for line in changed.refused])
    return NOT_CHANGED if changed.refused else 0


def _row(each: ledger.JudgedMark) -> Tuple[Cell, ...]:
    mark = each.mark
    return (
        mark.effect.key,
        mark.effect.run_key,
        each.state,
        str(mark.attempts),
        offset_local(mark.started_at_utc, timezone.utc),
        short_id(mark.run_id or ""),
        mark.owner.host if mark.owner else "",
        mark.message,
    )


def _facts(each: ledger.JudgedMark) -> Tuple[Tuple[Cell, ...], ...]:
    mark = each.mark
    facts = (
        ("key", mark.effect.key),
        ("job", mark.effect.job),
        ("slot", mark.effect.run_key),
        ("state", each.state),
        ("message", mark.message),
        ("tries", str(mark.attempts)),
        ("since", offset_local(mark.started_at_utc, timezone.utc)),
        ("ended", offset_local(mark.finished_at_utc, timezone.utc)),
        ("run", mark.run_id or ""),
        ("host", f"{mark.owner.host}, pid {mark.owner.pid}" if mark.owner else ""),
        ("idempotency key", idempotency_of(mark.effect)),
        ("what to do", what_to_do(mark.effect) if each.state in ("failed", "unknown") else ""),
    )
    return tuple(fact for fact in facts if fact[1])
