"""A connection to PostgreSQL on which nothing waits for ever, and what its errors mean.

Only simple-query messages, several statements in each: no prepared statement, no session state, no `options`, so that a
transaction-pooling PgBouncer in between is not noticed (FR-52, FR-60). psycopg's exception classes do not tell a lost
connection from a refused statement (25P03 and 25006 are InternalError, 55P03 on a healthy connection is
OperationalError): here the connection's state and the sqlstate decide, never the class.
"""

from __future__ import annotations

import math
import os
import select
from typing import Any, Dict, Generator, List, Optional, Sequence, TypeVar

import psycopg
from psycopg import ClientCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from cronguard.store.dialect import Result, Statement
from cronguard.store.waiting import Deadline

R = TypeVar("R")

# A dead path is noticed in about 11 s when idle and 8 s with data under way; each alone covers one of the two cases
# only (measured; tcp(7)). A user's own value in the URL wins.
_DEFAULTS = {
    "keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3",
    "tcp_user_timeout": "8000",
    # The default, prefer, may look for a Kerberos realm in the DNS first.
    "gssencmode": "disable",
}
# psycopg takes less than 2 s for 2 s.
_CONNECT_AT_LEAST_S = 2
_CONNECT_AT_MOST_S = 10

# What an error means for us.
RETRY = "retry"
READ_ONLY = "read-only"
COLLISION = "collision"
NO_TABLES = "no tables"
OLD_TABLES = "old tables"
NO_RIGHTS = "no rights"
OTHER = "other"

_MEANINGS = {
    "23505": COLLISION,
    "25006": READ_ONLY,
    "3F000": NO_TABLES,
    "42P01": NO_TABLES,
    "42703": OLD_TABLES,
    "42501": NO_RIGHTS,
}
# 08 connection, 53 resources (53300: too many connections), 57 shut down, starting up or cancelled by a timeout.
_PASSING_CLASSES = ("08", "53", "57")
# Serialization failure, deadlock, lock not available, idle in transaction, transaction timeout.
_PASSING = frozenset(("40001", "40P01", "55P03", "25P03", "25P04"))


class TimeIsUp(Exception):
    """The deadline passed before a message was sent."""


class _BoundedConnection(psycopg.Connection[Any]):
    """A connection whose every wait ends at `deadline`. After that its state is unknown: it is closed."""

    deadline: Deadline

    def wait(self, gen: Generator[Any, Any, R], *_unused: object, **_no_interval: object) -> R:
        """Drive psycopg's generator as psycopg.waiting does, by poll(2): select(2) would sleep on after SIGCONT."""
        poller = select.poll()
        try:
            wanted = next(gen)
            while True:
                poller.register(self.pgconn.socket, _events(wanted))
                if not poller.poll(min(1.0, self.deadline.left_s) * 1000):
                    if self.deadline.over:
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"no answer within {self.deadline.within_s:.0f} s")
                    continue
                wanted = gen.send(wanted)
        except StopIteration as end:
            value: R = end.value
            return value


def _events(wanted: int) -> int:
    """From psycopg's Wait (1 read, 2 write) to poll(2)."""
    return (select.POLLIN if wanted & 1 else 0) | (select.POLLOUT if wanted & 2 else 0)


class Link:
    """One connection, made when first needed and again when it was lost; that is not an event."""

    def __init__(self, conninfo: str) -> None:
        """ProgrammingError if libpq cannot read `conninfo`; nothing is connected."""
        self._parameters: Dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(conninfo)}
        self._parameters.update(application_name=f"cronguard:{os.getpid()}", client_encoding="utf8")
        self._connection: Optional[_BoundedConnection] = None

    @property
    def password(self) -> str:
        return str(self._parameters.get("password") or "")

    @property
    def user(self) -> str:
        """The role that we are; empty if that was not said and nothing is connected."""
        if self._connection is None or self._connection.closed:
            return str(self._parameters.get("user") or "")
        return self._connection.info.user

    @property
    def server_version(self) -> int:
        """170002 for 17.2; behind a pooler the server's too."""
        assert self._connection is not None
        return self._connection.info.server_version

    @property
    def told_pid(self) -> int:
        """The backend's number as it was told at connect: behind a pooler none that the server knows."""
        assert self._connection is not None
        return self._connection.info.backend_pid

    @property
    def is_lost(self) -> bool:
        return self._connection is None or self._connection.closed

    def ensure(self, deadline: Deadline) -> None:
        """Be connected."""
        if self.is_lost:
            self.close()
            wait_s = max(_CONNECT_AT_LEAST_S, min(_CONNECT_AT_MOST_S, math.ceil(deadline.left_s)))
            conninfo = make_conninfo("", **{**self._parameters, "connect_timeout": wait_s})
            # prepare_threshold None: never a prepared statement, which a pooler would lose.
            self._connection = _BoundedConnection.connect(
                conninfo, autocommit=True, prepare_threshold=None, cursor_factory=ClientCursor
            )

    def send(self, statements: Sequence[Statement], deadline: Deadline) -> List[Result]:
        """All the statements in one message, answered one by one.

        Nothing is sent when the time is up: whoever asked has been told that the store is down, and a claim that went
        through after that would be nobody's.
        """
        assert self._connection is not None
        if deadline.over:
            raise TimeIsUp
        self._connection.deadline = deadline
        text = ";\n".join(statement.sql for statement in statements).replace("?", "%s")
        values = [value for statement in statements for value in statement.values]
        cursor = self._connection.execute(text.encode(), values or None)
        results = []
        for _ in statements:
            found = cursor.fetchall() if cursor.description else []
            results.append(Result(found, cursor.rowcount))
            cursor.nextset()
        return results

    def roll_back(self) -> None:
        """Leave no transaction open; if that does not work at once, leave no connection."""
        if self.is_lost:
            return
        assert self._connection is not None
        if self._connection.pgconn.transaction_status != TransactionStatus.IDLE:
            try:
                self.send([Statement("ROLLBACK")], Deadline(1.0))
            except (psycopg.Error, TimeIsUp):
                self.close()

    def close(self) -> None:
        """Never raises."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def meaning(problem: psycopg.Error, link: Link) -> str:
    """What went wrong, as far as the next step depends on it."""
    state = problem.sqlstate or ""
    if state in _MEANINGS:
        return _MEANINGS[state]
    if link.is_lost or state in _PASSING or state[:2] in _PASSING_CLASSES:
        return RETRY
    return OTHER
