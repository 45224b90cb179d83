"""What looking costs when there is much to look at: as many jobs, with one run each and with two hundred.

`status` and `check` read summaries and not history, so the two should take as long. The stores are filled by SQL from
one real run, without indexes, which are put back as they were: two million rows by claims would take hours.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tests.support.cronguard import command, environment

JOBS = 10_000
FEW, MANY = 1, 200  # runs a job
WANTED = 1.3  # at most so many times as long
ROUNDS = 2
_COMMANDS = ("status", "check")
_FIRST = "job-00000"
_CHANGED = {  # columns of a copy of the one run: `j` numbers jobs, `k` runs from the newest
    "run_id": "'{id}' || (j * 1000 + k)",
    "job": "{job}",
    "lock": "{job}",
    "run_key": "'key-' || k",
}
_JOB = {"sqlite": "printf('job-%05d', j)", "postgres": "'job-' || lpad(j::text, 5, '0')"}
_EARLIER = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%S', {column}, '-' || k || ' hours') || '.000000+00:00'",
    "postgres": "{column} - k * interval '1 hour'",
}
_SERIES = {
    "sqlite": "{name}({name}) AS (SELECT {low} UNION ALL SELECT {name} + 1 FROM {name} WHERE {name} < {high})",
    "postgres": "{name}({name}) AS (SELECT generate_series({low}, {high}))",
}


class Cost(NamedTuple):
    """`cpu_s` of the command alone: a busy machine does not bend it, but PostgreSQL's own is not in it."""

    wall_s: float
    cpu_s: float


class Looked(NamedTuple):
    """The best of ROUNDS with few and with many runs: what else the machine does only ever adds."""

    store: str
    command: str
    few: Cost
    many: Cost


def looking(work: Path, dsn: Optional[str]) -> List[Looked]:
    """Fill the stores and measure; PostgreSQL only with a server."""
    pairs: List[Tuple[str, str, str]] = [("SQLite", *(f"sqlite:{work}/{name}.db" for name in ("few", "many")))]
    if dsn is not None:
        mark = "&" if "?" in dsn else "?"
        pairs.append(("PostgreSQL", *(f"{dsn}{mark}schema=looking_{name}" for name in ("few", "many"))))
    found: List[Looked] = []
    for store, few, many in pairs:
        fill(few, FEW)
        fill(many, MANY)
        found += [_measured(store, name, few, many) for name in _COMMANDS]
    return found


def fill(url: str, runs: int) -> None:
    """JOBS jobs with so many runs each, all successes, an hour apart, the latest now."""
    line = ("run", _FIRST, "--store", url, "--every", "12h", "--timezone", "UTC", "--timeout", "1h", "--", "true")
    subprocess.run(command(*line), env=environment(), check=True)
    if url.startswith("sqlite:"):
        _fill_sqlite(url.partition(":")[2], runs)
    else:
        _fill_postgres(*url.rsplit("schema=", 1), runs)


def _measured(store: str, name: str, few: str, many: str) -> Looked:
    costs = [(_cost(name, few), _cost(name, many)) for _ in range(ROUNDS)]
    best = [Cost(*(min(numbers) for numbers in zip(*column))) for column in zip(*costs)]
    return Looked(store, name, *best)


def _cost(name: str, url: str) -> Cost:
    began = time.perf_counter()
    line = command(name, "--json", "--store", url)
    silence = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    _, status, usage = os.wait4(os.posix_spawn(line[0], line, environment(), file_actions=silence), 0)
    if status != 0:
        raise SystemExit(f"{name}: wait status {status}: the filled store is not what it should be")
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)


def _fill_sqlite(path: str, runs: int) -> None:
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'runs' AND sql LIKE 'CREATE%INDEX%'"
        )
        indexes = {str(name): str(sql) for name, sql in rows}
        names = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in ("jobs", "runs")
        }
        connection.execute("BEGIN")
        for sql in statements("sqlite", names, indexes, runs):
            connection.execute(sql)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def _fill_postgres(start: str, schema: str, runs: int) -> None:
    import psycopg

    with psycopg.connect(start.rstrip("?&"), options=f"-c search_path={schema}") as connection:
        found = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = 'runs'"
            " AND indexname NOT LIKE '%%_pkey'", (schema,),
        ).fetchall()  # fmt: skip
        names: Dict[str, List[str]] = {}
        for table in ("jobs", "runs"):
            columns: Any = connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
                (schema, table),
            ).fetchall()
            names[table] = [name for (name,) in columns]
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET maintenance_work_mem = '256MB'")
        for sql in statements("postgres", names, dict(found), runs):
            connection.execute(sql)
    with psycopg.connect(start.rstrip("?&"), autocommit=True) as connection:
        for table in ("jobs", "runs"):
            connection.execute(f"VACUUM ANALYZE {schema}.{table}")


def statements(kind: str, names: Dict[str, List[str]], indexes: Dict[str, str], runs: int) -> List[str]:
    """SQL that multiplies the one job and its one run."""
    changed = {name: text.format(id="bench-", job=_JOB[kind]) for name, text in _CHANGED.items()}
    for column in ("slot_at_utc", "started_at_utc", "finished_at_utc"):
        changed[column] = _EARLIER[kind].format(column=f"one.{column}")
    job, run = (f"(SELECT * FROM {table} WHERE job = '{_FIRST}') one" for table in ("jobs", "runs"))
    jobs = {"job": _JOB[kind], "last_run_id": "'bench-' || (j * 1000)"}  # of the newest
    return [
        *[f"DROP INDEX {name}" for name in indexes],
        _copies(kind, "jobs", names["jobs"], jobs, f"{job}, j", 1),
        _copies(kind, "runs", names["runs"], changed, f"{run}, j, k", runs),
        *indexes.values(),
    ]


def _copies(kind: str, table: str, names: Sequence[str], changed: Dict[str, str], source: str, runs: int) -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    values = ", ".join(changed.get(name, f'one."{name}"') for name in names)
    numbers = [_SERIES[kind].format(name=name, low=low, high=high) for name, low, high in
               (("j", 1, JOBS - 1), ("k", 0, runs - 1))]  # fmt: skip
    return f"INSERT INTO {table} ({columns}) WITH RECURSIVE {', '.join(numbers)} SELECT {values} FROM {source}"
