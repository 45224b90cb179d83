"""The ledger's statements: a mark is made before the effect, belongs to a token, and is settled by nobody else.

A mark that ends (`done`, `failed`) keeps its token, so that whoever repeats a call whose answer was lost sees that it
went through.
"""

from __future__ import annotations

import json
from typing import List, Optional, Sequence, Union

from cronguard.core.ledger import Begun, Effect, EffectAnswer, EffectRequest, Fenced, Mark
from cronguard.core.model import Owner
from cronguard.store import rows
from cronguard.store.dialect import Dialect, Session, Statement, Values
from cronguard.store.fencing import is_fenced_off
from cronguard.store.waiting import boot_time_s

_COLUMNS = (
    "job", "effect_key", "run_key", "status", "token", "attempts", "run_id", "owner", "started_at", "finished_at",
    "message",
)
_KEY = "job = ? AND run_key = ? AND effect_key = ?"
_OURS = f"{_KEY} AND token = ? AND status = 'started'"


def begin(session: Session, dialect: Dialect, request: EffectRequest) -> EffectAnswer:
    """Mark it, or say what is there. The same token once more extends what the first call began."""
    if request.fence is not None and is_fenced_off(session, dialect, request.fence):
        return Fenced(request.fence.run_id)
    sent_at = boot_time_s()
    statements = [_insert(request, dialect), _select(f"WHERE {_KEY}", _key(request.effect), dialect)]
    if request.replaces is not None:
        statements.insert(0, _replace(request, request.replaces, dialect))
    mark = mark_of(session.run(statements, last=True)[-1].rows[0])
    if mark.token == request.token and mark.status == "started":
        return Begun(request.effect, request.token, mark.attempts, sent_at)
    return mark


def renewal(begun: Begun, lease_s: float, dialect: Dialect) -> Statement:
    return Statement(
        f"UPDATE ledger SET lease_until = {dialect.lease_end} WHERE {_OURS}", (lease_s, *_key_and_token(begun))
    )


def settlement(begun: Begun, status: str, message: str, dialect: Dialect) -> List[Statement]:
    """The last one answers a row if the mark now says so, by this call or by one before it."""
    return [
        Statement(
            f"UPDATE ledger SET status = ?, finished_at = {dialect.now}, lease_until = NULL, message = ? WHERE {_OURS}",
            (status, rows.clean(message), *_key_and_token(begun)),
        ),
        Statement(f"SELECT 1 FROM ledger WHERE {_KEY} AND token = ? AND status = ?", (*_key_and_token(begun), status)),
    ]


def withdrawal(begun: Begun, dialect: Dialect) -> List[Statement]:
    """Of a first attempt nothing stays; an earlier one's mark stays as a failed one."""
    return [
        Statement(f"DELETE FROM ledger WHERE {_OURS} AND attempts = 1", _key_and_token(begun)),
        Statement(
            "UPDATE ledger SET status = 'failed', attempts = attempts - 1, lease_until = NULL,"
            f" finished_at = {dialect.now} WHERE {_OURS}",
            _key_and_token(begun),
        ),
    ]


def selection(job: Optional[str], statuses: Sequence[str], limit: int, dialect: Dialect) -> Statement:
    """Rows for people, newest start first. For what is not done there is an index of its own."""
    conditions: List[str] = []
    values: List[object] = []
    if job is not None:
        conditions.append("job = ?")
        values.append(job)
    if statuses:
        conditions.append(f"status IN ({', '.join('?' * len(statuses))})")
        values += statuses
        if "done" not in statuses:
            conditions.append("status <> 'done'")
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return _select(f"{where} ORDER BY started_at DESC, effect_key LIMIT ?", (*values, limit), dialect)


def found(job: str, keys: Sequence[str], dialect: Dialect) -> Statement:
    """Those of these keys, of every run key; reads the job's part of the ledger."""
    where = f"WHERE job = ? AND effect_key {dialect.among_texts} ORDER BY effect_key, run_key"
    return _select(where, (job, rows.texts_json(keys)), dialect)


def deletion(effect: Effect) -> Statement:
    return Statement(f"DELETE FROM ledger WHERE {_KEY}", _key(effect))


def resolution(effect: Effect, dialect: Dialect) -> Statement:
    return Statement(
        f"UPDATE ledger SET finished_at = CASE WHEN status = 'done' THEN finished_at ELSE {dialect.now} END,"
        f" status = 'done', lease_until = NULL WHERE {_KEY}",
        _key(effect),
    )


def mark_of(values: Values) -> Mark:
    """A row as `_select` reads it."""
    row = dict(zip(_COLUMNS, values))
    return Mark(
        effect=Effect(row["job"], row["effect_key"], row["run_key"]), status=row["status"], token=row["token"],
        attempts=int(row["attempts"]), run_id=row["run_id"], owner=_owner_of(row["owner"]), lease_live=bool(values[-1]),
        started_at_utc=rows.known_instant(row["started_at"]), finished_at_utc=rows.instant(row["finished_at"]),
        message=row["message"],
    )


def _insert(request: EffectRequest, dialect: Dialect) -> Statement:
    return Statement(
        "INSERT INTO ledger (job, run_key, effect_key, status, token, run_id, owner, lease_until, started_at)"
        f" VALUES (?, ?, ?, 'started', ?, ?, ?, {dialect.lease_end}, {dialect.now})"
        " ON CONFLICT (job, run_key, effect_key) DO UPDATE SET lease_until = excluded.lease_until"
        " WHERE ledger.token = excluded.token AND ledger.status = 'started'",
        (*_key(request.effect), *_author(request)),
    )


def _replace(request: EffectRequest, replaced: str, dialect: Dialect) -> Statement:
    """The condition is repeated here: whoever asked has only looked before."""
    return Statement(
        "UPDATE ledger SET status = 'started', token = ?, run_id = ?, owner = ?,"
        f" lease_until = {dialect.lease_end}, started_at = {dialect.now}, finished_at = NULL, message = '',"
        f" attempts = attempts + 1 WHERE {_KEY} AND token = ? AND status <> 'done'",
        (*_author(request), *_key(request.effect), replaced),
    )


def _author(request: EffectRequest) -> Values:
    run_id = request.fence.run_id if request.fence else None
    return request.token, run_id, json.dumps(request.owner._asdict()), request.lease_s


def _select(where: str, values: Sequence[object], dialect: Dialect) -> Statement:
    return Statement(
        f"SELECT {', '.join(_COLUMNS)}, lease_until > {dialect.now} FROM ledger {where}", tuple(values)
    )


def _key(effect: Effect) -> Values:
    return effect.job, rows.clean(effect.run_key), rows.clean(effect.key)


def _key_and_token(begun: Begun) -> Values:
    return (*_key(begun.effect), begun.token)


def _owner_of(text: Union[str, None]) -> Optional[Owner]:
    """None for what a job's own SQL may have put there; it must not keep the rest from being shown."""
    try:
        fields = json.loads(text or "null")
        return Owner(**{name: fields[name] for name in Owner._fields})
    except (ValueError, TypeError, KeyError):
        return None
