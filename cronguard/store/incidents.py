"""One memory of what is wrong, for all hosts that check: who tells what, and when (FR-100, FR-102).

A finding (job, kind) opens one incident, told once, told again every `remind_s` while it lasts, and its recovery told
once. Nothing is told twice at a time: what a caller gets to tell is its own for a minute; if that was not delivered, or
the caller died, the next check gets it.

Flapping: what comes back within `QUIET` of its end is the same incident. People who have not been told of the end hear
nothing; people who have are told that it is back, but not before `QUIET` has passed since they were told. From then on
the end of it is told only when it has been quiet for `QUIET`. So something that flips with every check is told at most
once each ten minutes, and the last word is always true in the end.

Callers hold a lock that lets in one at a time. Instants are the caller's, so that `check --at` is consistent.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from cronguard.core.model import Finding, Incident, Notice
from cronguard.store import rows
from cronguard.store.dialect import Session, Statement, Values

QUIET = timedelta(minutes=10)
TELLING = timedelta(seconds=60)
# A recovery that could not be delivered for so long is no news any more.
OLD_NEWS = timedelta(days=7)

_COLUMNS = (
    "incident_id", "job", "kind", "state", "summary", "check_first", "since_at", "opened_at", "told_at", "closed_at",
    "reopened", "recovery_told_at", "telling_until", "teller",
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM incidents"

Key = Tuple[str, str]


class _Record(NamedTuple):
    """An incident with what is known of its telling. `incident.told_at_utc` is when people last heard that it is on,
    `recovery_told_at` when they heard after that, that it is over."""

    incident: Incident
    reopened: int
    recovery_told_at: Optional[datetime]
    telling_until: Optional[datetime]
    teller: Optional[str]


class Sync(NamedTuple):
    """One check's view. `teller` names the call, so that a transaction done again gets what the first one took."""

    jobs: Sequence[str]
    findings: Sequence[Finding]
    now: datetime
    remind_s: float
    teller: str


def new_teller() -> str:
    return os.urandom(16).hex()


def sync(session: Session, check: Sync) -> List[Notice]:
    """Bring the table in line with the findings, and take what is to be told now."""
    found = {(finding.job, finding.kind): finding for finding in reversed(check.findings)}
    covered = {*check.jobs, *(finding.job for finding in check.findings)}
    records = _read(session, check.now, covered)
    statements: List[Statement] = []
    notices: List[Notice] = []
    for key in sorted({*found, *records}):
        before = records.get(key)
        record = _as_found(before, found.get(key), check)
        what = _to_tell(record, check)
        if what is not None:
            record = record._replace(telling_until=check.now + TELLING, teller=check.teller)
            notices.append(Notice(what, record.incident))
        if record != before:
            statements.append(_update(record) if _same(before, record) else _insert(record))
    session.run(statements, last=True)
    return notices


def settle(notice: Notice, delivered: bool, now: datetime) -> Statement:
    """What became of a notice."""
    told = ""
    values: Values = ()
    if delivered and notice.what == "recovered":
        told, values = "recovery_told_at = ?,", (now,)
    elif delivered:
        told, values = "told_at = ?, recovery_told_at = NULL,", (now,)
    return Statement(
        f"UPDATE incidents SET {told} telling_until = NULL, teller = NULL WHERE incident_id = ?",
        (*values, notice.incident.incident_id),
    )


def select_open() -> Statement:
    return Statement(f"{_SELECT} WHERE closed_at IS NULL ORDER BY opened_at, incident_id")


def incident_of(values: Values) -> Incident:
    """A row of that."""
    return _record_of(values).incident


def _read(session: Session, now: datetime, covered: Set[str]) -> Dict[Key, _Record]:
    """The incidents of those jobs that matter still: the open one of each kind, else the one that ended last."""
    (result,) = session.run([
        Statement(f"{_SELECT} WHERE closed_at IS NULL OR closed_at > ? ORDER BY closed_at", (now - OLD_NEWS,))
    ])
    records: Dict[Key, _Record] = {}
    for record in map(_record_of, result.rows):
        incident = record.incident
        key = (incident.job, incident.kind)
        if incident.job in covered and (incident.closed_at_utc is None or not _is_open(records.get(key))):
            records[key] = record
    return records


def _is_open(record: Optional[_Record]) -> bool:
    return record is not None and record.incident.closed_at_utc is None


def _same(before: Optional[_Record], record: _Record) -> bool:
    return before is not None and before.incident.incident_id == record.incident.incident_id


def _as_found(record: Optional[_Record], finding: Optional[Finding], check: Sync) -> _Record:
    """The incident after this check."""
    if finding is None:
        assert record is not None
        if not _is_open(record):
            return record
        return record._replace(incident=record.incident._replace(closed_at_utc=check.now))
    if record is None:
        return _opened(finding, check.now)
    closed_at = record.incident.closed_at_utc
    if closed_at is not None:
        if check.now - closed_at >= QUIET:
            return _opened(finding, check.now)
        record = record._replace(reopened=record.reopened + 1)
    return record._replace(
        incident=record.incident._replace(
            state=finding.state, summary=finding.summary, check_first=finding.check_first,
            since_utc=finding.since_utc, closed_at_utc=None,
        )
    )


def _opened(finding: Finding, now: datetime) -> _Record:
    incident = Incident(
        incident_id=os.urandom(16).hex(), job=finding.job, kind=finding.kind, state=finding.state,
        summary=finding.summary, check_first=finding.check_first, since_utc=finding.since_utc, opened_at_utc=now,
        told_at_utc=None, closed_at_utc=None,
    )
    return _Record(incident, 0, None, None, None)


def _to_tell(record: _Record, check: Sync) -> Optional[str]:
    """What people ought to hear of it now: opened, reminder, recovered, or nothing."""
    if record.teller != check.teller and record.telling_until is not None and record.telling_until > check.now:
        return None
    told_at, closed_at = record.incident.told_at_utc, record.incident.closed_at_utc
    if closed_at is not None:
        unheard = told_at is not None and record.recovery_told_at is None
        quiet = record.reopened == 0 or check.now - closed_at >= QUIET
        return "recovered" if unheard and quiet else None
    if told_at is None:
        return "opened"
    if record.recovery_told_at is not None:
        return "opened" if check.now - record.recovery_told_at >= QUIET else None
    return "reminder" if (check.now - told_at).total_seconds() >= check.remind_s else None


def _record_of(values: Values) -> _Record:
    row = dict(zip(_COLUMNS, values))
    incident = Incident(
        incident_id=row["incident_id"], job=row["job"], kind=row["kind"], state=row["state"], summary=row["summary"],
        check_first=tuple(json.loads(row["check_first"])), since_utc=rows.known_instant(row["since_at"]),
        opened_at_utc=rows.known_instant(row["opened_at"]), told_at_utc=rows.instant(row["told_at"]),
        closed_at_utc=rows.instant(row["closed_at"]),
    )
    return _Record(
        incident, int(row["reopened"]), rows.instant(row["recovery_told_at"]), rows.instant(row["telling_until"]),
        row["teller"],
    )


def _values_of(record: _Record) -> Values:
    incident = record.incident
    return (
        incident.incident_id, incident.job, incident.kind, incident.state, rows.clean(incident.summary),
        json.dumps(incident.check_first), incident.since_utc, incident.opened_at_utc, incident.told_at_utc,
        incident.closed_at_utc, record.reopened, record.recovery_told_at, record.telling_until, record.teller,
    )


def _insert(record: _Record) -> Statement:
    marks = ", ".join("?" * len(_COLUMNS))
    return Statement(f"INSERT INTO incidents ({', '.join(_COLUMNS)}) VALUES ({marks})", _values_of(record))


def _update(record: _Record) -> Statement:
    updates = ", ".join(f"{name} = ?" for name in _COLUMNS[1:])
    identity, *values = _values_of(record)
    return Statement(f"UPDATE incidents SET {updates} WHERE incident_id = ?", (*values, identity))
