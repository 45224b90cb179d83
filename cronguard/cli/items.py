"""`cronguard items`: a durable queue for a job. What each verb says is data; trouble goes to stderr."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import IO, Any, List, Optional, Tuple

from cronguard.cli.behind import CommandBehindDashes, words_behind
from cronguard.cli.edge import one_line, print_lines, show
from cronguard.cli.item_work import carry_out
from cronguard.cli.marks import LEDGER, RUN_KEY, UNKNOWN, forget_marks, print_mark, print_marks, settle
from cronguard.cli.parameters import Family, argument, arguments, command, option, option_for
from cronguard.cli.render import Cell, Table, common_zone, offset_local, print_json, print_table
from cronguard.cli.talk import Talk
from cronguard.commands import items_add, items_list, items_mend
from cronguard.core.model import Invocation
from cronguard.core.names import shown
from cronguard.core.queue import Counts, Item
from cronguard.core.settings import ITEMS
from cronguard.errors import UsageError

NOT_THERE = 1
_JOB = argument("job", "JOB", "the job that the items belong to")
_KEYS = arguments("keys", "[KEY]...", "items by their keys")
_JSON = option("as_json", "--json", "print one JSON object")
_GROUP = option("group", "--group", "the group that they belong to; groups do not hold each other up", "G")
_COLOURS = {"done": "green", "dead": "red", "reserved": "cyan"}
_HEADERS = ("key", "group", "status", "attempts", "available", "added", "payload", "message")
_PAYLOAD_CHARS = 60


@command(
    _JOB,
    arguments("keys", "[KEY]...", "keys; - or none with something on stdin: a key a line"),
    _GROUP,
    option("not_before", "--not-before", "not to be taken before: a date, a time, or a duration from now", "WHEN"),
    option("payload", "--payload", "text that goes with each, at most 64 KiB", "TEXT"),
    option("json_lines", "--json-lines", "stdin holds objects with key, group, payload and not_before, one a line"),
)
def add(
    invocation: Invocation,
    ctx: Any,
    job: str,
    keys: Optional[List[str]],
    group: Optional[str],
    not_before: Optional[str],
    payload: Optional[str],
    json_lines: bool,
) -> int:
    """Put items into the queue of a job. Those that are there already, done ones too, stay as they are.

    Example: psql -Atc 'select id from outbox' | cronguard items add mails -
    """
    ctx.obj.job = job
    lines = _lines(keys or [], json_lines)
    request = items_add.AddRequest(job, keys or [], lines, json_lines, group, not_before, payload)
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    added = items_add.add(request, invocation, talk)
    print_lines([f"added={added.added} known={added.known}"])
    return 0


def _lines(keys: List[str], json_lines: bool) -> Optional[IO[bytes]]:
    """Stdin, when keys are to be read there."""
    if keys not in ([], ["-"]):
        if json_lines:
            raise UsageError("--json-lines: goes without keys: they stand in the lines")
        return None
    if sys.stdin is None or (not keys and os.isatty(0)):
        raise UsageError("KEY: none given", "name some, or - to read them from stdin, one a line")
    return sys.stdin.buffer


@command(_JOB, *[option_for(setting) for setting in ITEMS])
def work(invocation: Invocation, ctx: Any, job: str, **given: Any) -> int:
    """Work through the queue: CMD for each item, {key}, {group} and {payload} filled in, until nothing is ready.

    Example: cronguard items work mails --budget 50s --timeout 10s -- ./send {key}

    Any number of these may run at once, on any host. Every option can also stand in [jobs.JOB.items] of the config
    file. Exit codes: 0 the pass got to its end; 1 items died, or a group was left alone for failing; 75 the surrounding
    run has lost its lock; 125 cronguard could not do its part; 128+n ended by a signal.
    """
    ctx.obj.job = job
    return carry_out(job, words_behind(ctx), given, invocation)


work.parser = CommandBehindDashes  # type: ignore[attr-defined]


@command(
    _JOB,
    option("status", "--status", "only waiting, reserved, done or dead ones", "S"),
    _GROUP,
    option("limit", "--limit", "at most so many [20]", "N"),
    LEDGER,
    UNKNOWN,
    _JSON,
)
def list_(
    invocation: Invocation,
    ctx: Any,
    job: str,
    status: Optional[str],
    group: Optional[str],
    limit: Optional[str],
    ledger: bool,
    unknown: bool,
    as_json: bool,
) -> int:
    """List what is in the queue, what may be taken soonest first. --status dead: what has failed for good.

    Example: cronguard items list mails --status dead
    """
    if ledger or unknown:
        if group is not None:
            raise UsageError("--group: the ledger has none")
        return print_marks(job, status, unknown, limit, as_json, invocation)
    result = items_list.list_items(items_list.ListRequest(job, status, group, limit), invocation)
    if as_json:
        print_json(items_list.as_json(result))
        return 0
    if result.items:
        print_table(_table(result.items), invocation.environ)
    print_lines([_counted(result.counts)])
    return 0


@command(_JOB, argument("key", "KEY", "the item's key"), LEDGER, _JSON)
def show_(invocation: Invocation, ctx: Any, job: str, key: str, ledger: bool, as_json: bool) -> int:
    """Show everything about one item.

    Example: cronguard items show mails 4711
    """
    if ledger:
        return print_mark(job, key, as_json, invocation)
    item = items_list.show_item(job, key, invocation)
    if as_json:
        print_json({"version": 1, "item": items_list.item_as_json(item)})
        return 0
    print_table(Table(("what", "value"), _facts(item), _COLOURS, elastic=("value",)), invocation.environ)
    return 0


@command(_JOB, _KEYS, option("dead", "--dead", "all dead ones"))
def retry(invocation: Invocation, ctx: Any, job: str, keys: Optional[List[str]], dead: bool) -> int:
    """Let items be taken again at once, with all their attempts before them. Not those that are reserved.

    Example: cronguard items retry mails --dead
    """
    request = items_mend.MendRequest(job, keys or [], "dead" if dead else None)
    return _told(items_mend.retry(request, invocation), "retried", "not there, or reserved")


@command(
    _JOB,
    _KEYS,
    option("done", "--done", "all done ones: their keys may then be added again"),
    option("dead", "--dead", "all dead ones"),
    option("older_than", "--older-than", "only those that were added so long ago", "DUR"),
    LEDGER,
    RUN_KEY,
)
def forget(
    invocation: Invocation,
    ctx: Any,
    job: str,
    keys: Optional[List[str]],
    done: bool,
    dead: bool,
    older_than: Optional[str],
    ledger: bool,
    run_key: Optional[str],
) -> int:
    """Delete items. What a worker still makes of one that is deleted under it counts for nothing.

    Example: cronguard items forget mails --done --older-than 30d
    """
    if ledger:
        if done or dead or older_than is not None:
            raise UsageError("--ledger: goes with keys, and nothing else says which marks are meant")
        return forget_marks(job, keys or [], run_key, invocation)
    if run_key is not None:
        raise UsageError("--run-key: goes with --ledger")
    if done and dead:
        raise UsageError("--done and --dead: one at a time")
    status = "done" if done else "dead" if dead else None
    request = items_mend.MendRequest(job, keys or [], status, older_than)
    return _told(items_mend.forget(request, invocation), "forgotten", "not there")


items = Family(
    "Work through a queue of items: each done once, failures tried again, groups apart from each other.",
    {"add": add, "work": work, "list": list_, "show": show_, "retry": retry, "forget": forget, "settle": settle},
)


def _told(mended: items_mend.Mended, what: str, why_not: str) -> int:
    print_lines([f"{what}={mended.items}"])
    show([f"cronguard: {one_line(shown(key))}: {why_not}" for key in mended.missing])
    return NOT_THERE if mended.missing else 0


def _counted(counts: Counts) -> str:
    return " ".join(f"{name}={number}" for name, number in counts._asdict().items())


def _table(found: Tuple[Item, ...]) -> Table:
    return Table(
        _HEADERS,
        tuple(_row(item) for item in found),
        _COLOURS,
        optional=("payload", "added", "group", "attempts", "message"),
        elastic=("key", "message"),
    )


def _row(item: Item) -> Tuple[Cell, ...]:
    payload = item.payload if len(item.payload) <= _PAYLOAD_CHARS else item.payload[: _PAYLOAD_CHARS - 3] + "..."
    available = _local(item.available_at_utc) if item.status in ("waiting", "reserved") else ""
    return (
        item.key,
        item.group,
        item.status,
        str(item.attempts),
        available,
        _local(item.added_at_utc),
        payload,
        item.message,
    )


def _facts(item: Item) -> Tuple[Tuple[Cell, ...], ...]:
    facts = (
        ("key", item.key),
        ("job", item.job),
        ("group", item.group),
        ("status", item.status),
        ("message", item.message),
        ("attempts", str(item.attempts)),
        ("available", _local(item.available_at_utc) if item.status == "waiting" else ""),
        ("reserved until", _local(item.available_at_utc) if item.status == "reserved" else ""),
        ("worker", item.worker or ""),
        ("run", item.run_id or ""),
        ("token", str(item.token)),
        ("added", _local(item.added_at_utc)),
        ("started", _local(item.started_at_utc)),
        ("finished", _local(item.finished_at_utc)),
        ("payload", item.payload),
    )
    return tuple(fact for fact in facts if fact[1])


def _local(moment: Optional[datetime]) -> str:
    """In UTC: items belong to no zone."""
    return offset_local(moment, common_zone(["UTC"])[0])
