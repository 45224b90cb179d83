"""Looks a store over for `doctor`, and leaves it as it was.

What is tried is undone by a rollback, never by a deletion: a doctor that is killed in the middle leaves nothing, and a
role that may not delete can run it. Locks that are tried have names that no job can have.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Callable, Protocol

from cronguard.core.checkup.facts import Starts, StoreFacts
from cronguard.store.contract import Store
from cronguard.store.dialect import Statement
from cronguard.store.opening import masked, sqlite_path, without_schema

Clock = Callable[[], datetime]


class Probe(Store, Protocol):
    """A store that can be looked over."""

    def examine(self, now_utc: Clock, within_s: float) -> StoreFacts:
        """Raises as every call does when the store cannot be reached; what does not work on it is told in the facts."""

    def starts(self, since_utc: datetime, within_s: float) -> Starts:
        """Who started what since then."""


class Undo(Exception):
    """Ends a trial: the transaction is rolled back."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


def probe_of(url: str, network_fs: bool) -> Probe:
    """As `open_store`: connects to nothing. ConfigError for a URL that cannot be understood."""
    if url.startswith("sqlite:"):
        from cronguard.store.sqlite_probe import SqliteProbe

        return SqliteProbe(sqlite_path(url), network_fs)
    from cronguard.store.opening import open_store

    open_store(url).close()  # judges the URL, and that there is a driver
    from cronguard.store.postgres_probe import PostgresProbe

    conninfo, schema_name = without_schema(url)
    return PostgresProbe(conninfo, schema_name, masked(url))


def trial_name() -> str:
    """A lock name that no job can have, and no other doctor has."""
    return f"~doctor-{os.urandom(8).hex()}"


def trial_row(name: str) -> Statement:
    """The row by which a lock is taken (see store.claiming)."""
    return Statement("INSERT INTO locks (lock) VALUES (?)", (name,))
