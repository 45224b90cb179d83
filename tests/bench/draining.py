"""Items per second: twenty workers on ten thousand items, beside the least that could do the same.

Three rates a store. *Bare*: psycopg takes a row with SKIP LOCKED and marks it done, a transaction each; for SQLite a
committed insert an item. *Store*: `items.drain` with a function that does nothing. *Commands*: `items work -- true`, a
process an item, on fewer items. Each item is counted afterwards: none may be missing or done twice.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from cronguard.core.queue import NewItem
from cronguard.store.opening import open_store
from tests.support.processes import ROOT

WORKERS = 20
ITEMS = 10_000
COMMANDS = 1_000  # items that get a process each
_JOB = "bench"


class Rate(NamedTuple):
    """`times` as fast as the bare loop of the same store."""

    store: str
    what: str
    per_s: float
    times: float


def measured(work: Path, dsn: Optional[str]) -> List[Rate]:
    """Of SQLite, and of PostgreSQL if there is one; the bare loop first."""
    found = _of_store("SQLite", f"sqlite:{work}/draining.db", lambda: _sqlite_inserts(work))
    if dsn is not None:
        found += _of_store("PostgreSQL", f"{dsn}?schema=draining", lambda: _bare_loops(dsn))
    return found


def main(role: str, where: str) -> None:
    """A worker: `bare` with a DSN, or `drain` with a store's URL."""
    if role == "bare":
        _bare_loop(where)
    else:
        from cronguard import items

        tally = items.drain(lambda work: None, job=_JOB, store=where)
        print(tally.done)


def _of_store(name: str, url: str, bare: Callable[[], float]) -> List[Rate]:
    floor = bare()
    _fill(url, ITEMS)
    drained = _rate([sys.executable, "-m", "tests.bench.draining", "drain", url], ITEMS, url)
    _fill(url, COMMANDS)
    command = [sys.executable, "-m", "cronguard", "items", "work", _JOB, "--store", url, "--", "true"]
    worked = _rate(command, COMMANDS, url)
    return [
        Rate(name, "bare", floor, 1.0),
        Rate(name, "store (Python, no-op)", drained, drained / floor),
        Rate(name, "commands (true)", worked, worked / floor),
    ]


def _fill(url: str, number: int) -> None:
    with closing(open_store(url)) as store:
        store.prepare(30)
        store.forget_job(_JOB, 60)
        for start in range(0, number, 1000):
            store.add_items(_JOB, [NewItem(f"{key:06}") for key in range(start, start + 1000)], 60)


def _rate(argv: List[str], number: int, url: str) -> float:
    """Twenty of them at once until nothing is left; what they say they have done must add up."""
    began = time.monotonic()
    how: Any = {"env": _environment(), "cwd": ROOT, "stderr": subprocess.DEVNULL, "text": True}
    started = [subprocess.Popen(argv, stdout=subprocess.PIPE, **how) for _ in range(WORKERS)]
    said = [process.communicate()[0].split()[0].replace("done=", "") for process in started]
    took_s = time.monotonic() - began
    with closing(open_store(url)) as store:
        done = store.count_items(_JOB, 60).done
    if not sum(map(int, said)) == done == number:
        raise SystemExit(f"{number} items, {done} done, {sum(map(int, said))} told: lost or doubled")
    return number / took_s


def _sqlite_inserts(work: Path) -> float:
    with closing(sqlite3.connect(work / "inserts.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE items (item_key TEXT NOT NULL PRIMARY KEY)")
        began = time.monotonic()
        for number in range(ITEMS):
            connection.execute("INSERT INTO items VALUES (?)", (f"{number:06}",))
        return ITEMS / (time.monotonic() - began)


def _bare_loops(dsn: str) -> float:
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare_items")
        connection.execute("CREATE TABLE bare_items (item_key text PRIMARY KEY, done boolean NOT NULL DEFAULT FALSE)")
        fill = "INSERT INTO bare_items SELECT lpad(n::text, 6, '0') FROM generate_series(1, %s) n"
        connection.execute(fill, (ITEMS,))
        connection.execute("CREATE INDEX ON bare_items (item_key) WHERE NOT done")
        argv = [sys.executable, "-m", "tests.bench.draining", "bare", dsn]
        began = time.monotonic()
        for process in [subprocess.Popen(argv, cwd=ROOT, env=_environment()) for _ in range(WORKERS)]:
            process.wait()
        return ITEMS / (time.monotonic() - began)


def _environment() -> Dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _bare_loop(dsn: str) -> None:
    import psycopg

    take: Any = (
        "UPDATE bare_items SET done = TRUE WHERE item_key = (SELECT item_key FROM bare_items WHERE NOT done"
        " ORDER BY item_key LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING item_key"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        while connection.execute(take).fetchone():
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
