"""The queue's statements: add, look, settle, start, renew, and what people do with items. Taking is in store.taking.

Whoever settles or starts an item names the token of the reservation; one that was taken since, or retried by hand, has
another. Several rows are always locked in the order of their keys.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import List, Optional, Sequence

from cronguard.core.queue import STATUSES, Counts, Item, NewItem, Settlement, Start, Steps
from cronguard.store import rows
from cronguard.store.dialect import Dialect, Result, Session, Statement, Values

_ITEM = (
    "job, item_key, group_name, payload, status, token, attempts, available_at, worker, run_id, added_at, started_at,"
    " finished_at, message"
)
# The conditions of the indexes `items_open` and `items_ended`, word for word, or SQLite would not use them.
OPEN = "status IN ('waiting', 'reserved')"
ENDED = "status IN ('done', 'dead')"
# With an empty text added no index serves the condition: that of the key (or the worker) is to be used, also while
# statistics are old and PostgreSQL believes that as good as nothing is reserved, or of this job.
RESERVED = "status || '' = 'reserved'"
_OURS = f"job = ? AND item_key = ? AND token = ? AND {RESERVED}"
_ORDER_STEP = timedelta(microseconds=1)


def add(session: Session, dialect: Dialect, job: str, items: Sequence[NewItem]) -> int:
    """One statement for all. What comes first is available first, by a microsecond each, but is written in the order of
    keys: two that add the same in another order do not wait for each other."""
    (clock,) = session.run([Statement(f"SELECT {dialect.now}")])
    now = rows.known_instant(clock.rows[0][0])
    table = [
        (
            rows.clean(item.key), rows.clean(item.group), rows.clean(item.payload),
            rows.instant_text(item.not_before_utc or now - (len(items) - place) * _ORDER_STEP), rows.instant_text(now),
        )
        for place, item in enumerate(items)
    ]
    cells = ", ".join([*map(dialect.cell.format, range(3)), *map(dialect.instant_cell.format, (3, 4))])
    (added,) = session.run([
        Statement(
            "INSERT INTO items (job, item_key, group_name, payload, available_at, added_at)"
            f" SELECT ?, {cells} FROM {dialect.each} WHERE TRUE ON CONFLICT (job, item_key) DO NOTHING",
            (job, rows.json_table(sorted(table))),
        )
    ])
    return added.changed


def ready_groups(job: str, after: Optional[str], limit: int, dialect: Dialect) -> Statement:
    """A loose index scan: from each group the index is entered anew at the next one, and once for its earliest item."""
    of_job = f"SELECT min(group_name) FROM items WHERE job = ? AND {OPEN}"
    first, start = (of_job, ()) if after is None else (f"{of_job} AND group_name > ?", (after,))
    return Statement(
        f"WITH RECURSIVE steps (name) AS ({first}"
        f" UNION ALL SELECT ({of_job} AND group_name > steps.name) FROM steps WHERE steps.name IS NOT NULL)"
        f" SELECT name FROM steps WHERE name IS NOT NULL AND (SELECT min(available_at) FROM items"
        f" WHERE job = ? AND {OPEN} AND group_name = steps.name) <= {dialect.now} LIMIT ?",
        (job, *start, job, job, limit),
    )


def step(
    session: Session, dialect: Dialect, job: str, settled: Sequence[Settlement], starting: Sequence[Start],
    reserve_s: float, sent_at: float,
) -> Steps:
    """Everything in one message. A settlement counts if the row says so afterwards, by this call or by one before."""
    ends, starts = sorted(settled), sorted(starting)
    statements = [_settle(job, end, dialect) for end in ends]
    statements += [_start(job, start, reserve_s, dialect) for start in starts]
    statements += [_status(job, end) for end in ends]
    results = session.run(statements, last=True)
    said = results[len(ends) + len(starts) :]
    return Steps(
        unsettled=tuple(end.key for end, result in zip(ends, said) if result.rows != [(end.status,)]),
        unstarted=tuple(start.key for start, result in zip(starts, results[len(ends) :]) if result.changed != 1),
        sent_at=sent_at,
    )


def renewal(job: str, worker: str, reserve_s: float, dialect: Dialect) -> List[Statement]:
    """Whatever it still has, even if the time was over: nobody else has taken that."""
    held = f"job || '' = ? AND worker = ? AND {RESERVED}"
    return [
        Statement(f"UPDATE items SET available_at = {dialect.lease_end} WHERE {held}", (reserve_s, job, worker)),
        Statement(f"SELECT item_key, token FROM items WHERE {held}", (job, worker)),
    ]


def counting(job: str, dialect: Dialect) -> List[Statement]:
    """Reads the job's parts of two indexes, ended items too: about a second for a million."""
    return [
        Statement(
            f"SELECT status, count(*), sum(CASE WHEN available_at <= (SELECT {dialect.now}) THEN 1 ELSE 0 END)"
            f" FROM items WHERE job = ? AND {kind} GROUP BY status",
            (job,),
        )
        for kind in (OPEN, ENDED)
    ]


def counts_of(results: Sequence[Result]) -> Counts:
    numbers = {status: (int(count), int(due)) for result in results for status, count, due in result.rows}
    waiting, reserved, done, dead = (numbers.get(status, (0, 0)) for status in STATUSES)
    return Counts(waiting[0], waiting[1], reserved[0], done[0], dead[0])


def selections(job: str, statuses: Sequence[str], group: Optional[str], limit: int) -> List[Statement]:
    """One for each status: so that of the ended ones no more than `limit` are read."""
    where, values = ("", ()) if group is None else (" AND group_name = ?", (rows.clean(group),))
    return [
        Statement(
            f"SELECT {_ITEM} FROM items WHERE {_with_status(status)}{where} ORDER BY available_at, item_key LIMIT ?",
            (job, status, *values, limit),
        )
        for status in statuses or STATUSES
    ]


def found(job: str, keys: Sequence[str], dialect: Dialect) -> Statement:
    return Statement(
        f"SELECT {_ITEM} FROM items WHERE job = ? AND item_key {dialect.among_texts} ORDER BY item_key",
        (job, rows.texts_json(keys)),
    )


def retry(session: Session, dialect: Dialect, job: str, keys: Sequence[str]) -> List[str]:
    """With a new token: a writer from before, however late, is refused."""
    there = _locked(session, dialect, job, keys, "AND status <> 'reserved'")
    session.run(
        [
            Statement(
                "UPDATE items SET status = 'waiting', attempts = 0, token = token + 1, worker = NULL, take_id = NULL,"
                f" available_at = {dialect.now}, finished_at = NULL WHERE job = ? AND item_key {dialect.among_texts}",
                (job, rows.texts_json(there)),
            )
        ],
        last=True,
    )
    return there


def forget(session: Session, dialect: Dialect, job: str, keys: Sequence[str]) -> List[str]:
    there = _locked(session, dialect, job, keys, "")
    session.run([
        Statement(f"DELETE FROM items WHERE job = ? AND item_key {dialect.among_texts}", (job, rows.texts_json(there)))
    ])
    return there


def clearing(job: str, status: str, before: Optional[datetime], limit: int, dialect: Dialect) -> Statement:
    """The status stands there twice: an item that is taken just now must not go."""
    age, values = ("", ()) if before is None else (" AND added_at < ?", (before,))
    # In the order of the index: of ended ones the oldest first, of waiting ones group by group.
    order = "available_at" if status in ("done", "dead") else "group_name, available_at"
    some = f"SELECT item_key FROM items WHERE {_with_status(status)}{age} ORDER BY {order} LIMIT ?"
    return Statement(
        f"DELETE FROM items WHERE job = ? AND status || '' = ? AND item_key {dialect.among.format(some)}",
        (job, status, job, status, *values, limit),
    )


def item_of(values: Values) -> Item:
    """A row of the selections."""
    item = Item(*values)
    return item._replace(
        available_at_utc=rows.known_instant(item.available_at_utc),
        added_at_utc=rows.known_instant(item.added_at_utc),
        started_at_utc=rows.instant(item.started_at_utc),
        finished_at_utc=rows.instant(item.finished_at_utc),
    )


def _with_status(status: str) -> str:
    """Takes two parameters, job and status."""
    return f"job = ? AND status = ? AND {ENDED if status in ('done', 'dead') else OPEN}"


def _settle(job: str, end: Settlement, dialect: Dialect) -> Statement:
    finished = "NULL" if end.status == "waiting" else dialect.now
    message = None if end.message is None else rows.clean(end.message)
    return Statement(
        f"UPDATE items SET status = ?, attempts = ?, available_at = {dialect.lease_end}, finished_at = {finished},"
        f" message = coalesce(?, message), worker = NULL, take_id = NULL WHERE {_OURS}",
        (end.status, end.attempts, end.delay_s, message, job, rows.clean(end.key), end.token),
    )


def _status(job: str, end: Settlement) -> Statement:
    return Statement(
        "SELECT status FROM items WHERE job = ? AND item_key = ? AND token = ?", (job, rows.clean(end.key), end.token)
    )


def _start(job: str, start: Start, reserve_s: float, dialect: Dialect) -> Statement:
    return Statement(
        f"UPDATE items SET started_at = {dialect.now}, attempts = ?, available_at = {dialect.lease_end} WHERE {_OURS}",
        (start.attempt, reserve_s, job, rows.clean(start.key), start.token),
    )


def _locked(session: Session, dialect: Dialect, job: str, keys: Sequence[str], condition: str) -> List[str]:
    """Those of the keys that are there, so, and stay so until the end of the transaction."""
    (result,) = session.run([
        Statement(
            f"SELECT item_key FROM items WHERE job = ? AND item_key {dialect.among_texts} {condition}"
            f" ORDER BY item_key {dialect.for_update}",
            (job, rows.texts_json(keys)),
        )
    ])
    return [str(values[0]) for values in result.rows]
