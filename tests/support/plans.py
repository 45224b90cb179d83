"""How a database would go about a statement, if it believed its tables long."""

from __future__ import annotations

from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Statement
from cronguard.store.waiting import Deadline
from tests.support.claims import WITHIN_S


def plan(store: SqlStore, statement: Statement) -> str:
    """A step a line. PostgreSQL would read a table of no rows whole; it is told not to, as it would not with many."""
    sqlite = store.name.startswith("sqlite")
    first = [] if sqlite else [Statement("SET LOCAL enable_seqscan = off")]
    asked = Statement(("EXPLAIN QUERY PLAN " if sqlite else "EXPLAIN ") + statement.sql, statement.values)
    return "\n".join(str(row) for row in store._read([*first, asked], Deadline(WITHIN_S))[-1].rows)
