"""Taking items: in turns over the groups, the oldest of each first, never one that another worker is taking.

A take goes through its groups in order, a *share* of each, then again from the first, until it has enough. On
PostgreSQL that is one statement which locks no row that it does not take: takes at the same time step over each other's
items (SKIP LOCKED) and never go away empty while there are others. SQLite lets one writer in at a time: there it is a
few look-ups and an update. A take whose COMMIT had no answer is found again by its `take_id`.
"""

from __future__ import annotations

from typing import Iterable, List, Sequence

from cronguard.core.queue import Reserved, Take
from cronguard.store import rows
from cronguard.store.dialect import Dialect, Session, Statement, Values
from cronguard.store.queue import OPEN, RESERVED

_RESERVED = "item_key, group_name, payload, token, attempts"
_MINE = f"worker = ? AND take_id = ? AND {RESERVED}"
# What may be taken, of one job and group. The clock in a sub-select is read once, and an index can be used with it.
_READY = f"job = ? AND group_name = {{group}} AND {OPEN} AND available_at <= (SELECT {{now}})"
_OLDEST = "ORDER BY available_at, item_key"


def share(take: Take) -> int:
    """How many of a group in one turn: if all groups have plenty, one turn is enough."""
    return max(1, min(take.per_group, -(-take.most // len(take.groups))))


def take_by_locks(session: Session, take: Take, dialect: Dialect, alone: Statement) -> List[Reserved]:
    """Where rows can be locked one by one (PostgreSQL); `alone` lets in one try of the same take at a time."""
    _, _, before, taken = session.run([alone, *_again(take, dialect), _take_in_one(take, dialect)], last=True)
    if before.rows:
        return _reserved(before.rows)
    return _reserved(taken.rows)


def take_alone(session: Session, take: Take, dialect: Dialect) -> List[Reserved]:
    """Where nobody else writes in the meantime (SQLite)."""
    _, before = session.run(_again(take, dialect))
    if before.rows:
        return _reserved(before.rows)
    keys = _in_turns(session, take, dialect)
    chosen = f"job = ? AND item_key {dialect.among_texts}"
    parameters = (take.job, rows.texts_json(keys))
    _, taken = session.run([
        Statement(f"UPDATE items SET {_reserve(dialect)} WHERE {chosen}", (*_reserve_values(take), *parameters)),
        Statement(f"SELECT {_RESERVED} FROM items WHERE {chosen}", parameters),
    ])
    places = {key: place for place, key in enumerate(keys)}
    return sorted(_reserved(taken.rows), key=lambda item: places[item.key])


def _reserved(found: Iterable[Values]) -> List[Reserved]:
    return [Reserved(*values) for values in found]


def _again(take: Take, dialect: Dialect) -> List[Statement]:
    """What an earlier try has taken, extended, so that the answer's time is right."""
    return [
        Statement(
            f"UPDATE items SET available_at = {dialect.lease_end} WHERE {_MINE}",
            (take.reserve_s, take.worker, take.take_id),
        ),
        Statement(
            f"SELECT {_RESERVED} FROM items WHERE {_MINE} ORDER BY added_at, item_key", (take.worker, take.take_id)
        ),
    ]


def _reserve(dialect: Dialect) -> str:
    return (
        f"status = 'reserved', token = token + 1, available_at = {dialect.lease_end}, worker = ?, take_id = ?,"
        " run_id = ?, finished_at = NULL"
    )


def _reserve_values(take: Take) -> Values:
    return take.reserve_s, take.worker, take.take_id, take.fence.run_id if take.fence else None


def _take_in_one(take: Take, dialect: Dialect) -> Statement:
    """One series counts the groups of all turns, so that the order does not depend on a plan; LIMIT ends it early.

    OFFSET steps over what the turns before have locked, which are ours. If others let go of rows meanwhile, a row may
    come up a second time: then the take is smaller, no more."""
    groups, each = len(take.groups), share(take)
    turns = -(-min(take.per_group, take.most) // each)
    ready = _READY.format(group="(?::text[])[mod(turn.n, ?) + 1]", now=dialect.now)
    return Statement(
        "WITH picked AS (SELECT turn.n, ready.available_at, ready.item_key"
        " FROM generate_series(0, ?) AS turn(n) CROSS JOIN LATERAL (SELECT available_at, item_key FROM items"
        f" WHERE {ready} {_OLDEST} OFFSET turn.n / ? * ? LIMIT least(?, ? - turn.n / ? * ?)"
        f" FOR UPDATE SKIP LOCKED) AS ready WHERE NOT EXISTS (SELECT 1 FROM items WHERE {_MINE}) LIMIT ?)"
        f", taken AS (UPDATE items SET {_reserve(dialect)}"
        f" WHERE job = ? AND item_key {dialect.among.format('SELECT item_key FROM picked')} RETURNING {_RESERVED})"
        f" SELECT {_RESERVED} FROM taken JOIN picked USING (item_key) ORDER BY n, available_at, item_key",
        (
            groups * turns - 1, take.job, [rows.clean(group) for group in take.groups], groups,
            groups, each, each, take.per_group, groups, each,
            take.worker, take.take_id, take.most, *_reserve_values(take), take.job,
        ),
    )


def _in_turns(session: Session, take: Take, dialect: Dialect) -> List[str]:
    """The same by one look-up for each group and turn; a group that gave less than wanted has no more."""
    ready = _READY.format(group="?", now=dialect.now)
    oldest = f"SELECT item_key FROM items WHERE {ready} {_OLDEST} LIMIT ? OFFSET ?"
    keys: List[str] = []
    groups: Sequence[str] = take.groups
    for offset in range(0, take.per_group, share(take)):
        going_on = []
        for group in groups:
            wanted = min(share(take), take.per_group - offset, take.most - len(keys))
            (found,) = session.run([Statement(oldest, (take.job, rows.clean(group), wanted, offset))])
            keys += [values[0] for values in found.rows]
            if len(keys) == take.most:
                return keys
            if len(found.rows) == wanted:
                going_on.append(group)
        groups = going_on
    return keys
