"""Stores as an earlier cronguard left them: of any version of the schema, empty."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from cronguard.store import schema

EARLIER = range(1, schema.VERSION)


def make_version(version: int, url: str) -> None:
    """Make the tables of that version where the store's URL points; there must be none yet."""
    types = schema.SQLITE_TYPES if url.startswith("sqlite:") else schema.POSTGRES_TYPES
    statements = [each.format(**types) for step in schema._STEPS[:version] for each in step]
    if url.startswith("sqlite:"):
        path = Path(url.partition(":")[2])
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.executescript(";\n".join(statements))
        return
    import psycopg

    dsn, _, name = url.partition("?schema=")
    with closing(psycopg.connect(dsn, autocommit=True)) as server:
        server.execute(";\n".join([f"CREATE SCHEMA {name}", f"SET search_path = {name}", *statements]).encode())
