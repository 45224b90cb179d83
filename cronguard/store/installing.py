"""What an owner does for a store: make its tables, and give a runner's role what a runner needs, as statements.

A runner reads all tables and writes all but `meta`. It deletes where a job's own things end: items, effects and
checkpoints that are forgotten. It never deletes history (runs, incidents), what `check` and the next claim go by (jobs,
locks), nor changes a table: those are the owner's, and so is `prune`.

A script is for people without cronguard's connection: it says in SQL what `install` does, in one transaction, and
refuses to run on a store that has moved on since it was written.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence, Tuple

from cronguard.store import schema
from cronguard.store.dialect import Statement

_WRITTEN = ("SELECT", "INSERT", "UPDATE")

# The least for `run`, `once`, `items`, `checkpoint`, `check`, `pause`, `cancel` and all that only looks.
RUNNER: Dict[str, Tuple[str, ...]] = {
    "meta": ("SELECT",),
    "locks": _WRITTEN,
    "jobs": _WRITTEN,
    "runs": _WRITTEN,
    "incidents": _WRITTEN,
    "items": (*_WRITTEN, "DELETE"),
    "ledger": (*_WRITTEN, "DELETE"),
    "checkpoints": (*_WRITTEN, "DELETE"),
}


class Installed(NamedTuple):
    """What was done. `before` and `after` are versions of the schema, 0: there was none. `short`: roles that may start
    runs there but lack a right of a runner, as after an upgrade that brought new tables."""

    before: int
    after: int
    short: Tuple[str, ...] = ()


class Standing(NamedTuple):
    """How far a PostgreSQL schema is: `exists` without tables has version 0. `owner`: of its tables, if we are not."""

    exists: bool
    version: int
    owner: str = ""


def quoted(name: str) -> str:
    """An identifier, whatever is in it; `?`, which marks a parameter (dialect.Statement), and `%` by their numbers."""
    name = name.replace('"', '""')
    if "?" not in name and "%" not in name:
        return f'"{name}"'
    for letter in "\\?%":
        name = name.replace(letter, f"\\{ord(letter):04x}")
    return f'U&"{name}"'


def creation(schema_name: str, standing: Standing) -> List[str]:
    """The statements that bring the schema to this version; none where nothing is missing."""
    # CREATE SCHEMA IF NOT EXISTS would ask for the right to create even where nothing is to be created.
    first = [] if standing.exists else [f"CREATE SCHEMA {quoted(schema_name)}"]
    return [*first, *schema.steps_from(standing.version, schema.POSTGRES_TYPES)]


def grants(schema_name: str, roles: Sequence[str]) -> List[str]:
    """The statements that give these roles a runner's rights. Repeating them is harmless."""
    if not roles:
        return []
    place, whom = quoted(schema_name), ", ".join(quoted(role) for role in roles)
    by_rights: Dict[Tuple[str, ...], List[str]] = {}
    for table, rights in RUNNER.items():
        by_rights.setdefault(rights, []).append(f"{place}.{table}")
    tables = [f"GRANT {', '.join(rights)} ON {', '.join(named)} TO {whom}" for rights, named in by_rights.items()]
    return [f"GRANT USAGE ON SCHEMA {place} TO {whom}", *tables]


def roles_falling_short(schema_name: str, roles: Sequence[str]) -> Statement:
    """Those of `roles`, and of the roles that may start runs there, which lack a right of a runner.

    To be asked after a GRANT, too: from somebody who may not grant, the server takes it with a warning.
    """
    place = quoted(schema_name)
    complete = [f"has_schema_privilege(r.oid, '{schema_name}', 'USAGE')"]  # a name as it is, unlike tables'
    for table, rights in RUNNER.items():
        complete += [f"has_table_privilege(r.oid, '{place}.{table}', '{right}')" for right in rights]
    starting = (
        f"SELECT a.grantee FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = '{place}.runs'::regclass"
        " AND a.privilege_type = 'INSERT'"
    )
    asked = f"r.rolname IN ({', '.join('?' * len(roles))}) OR " if roles else ""
    return Statement(
        f"SELECT r.rolname FROM pg_roles r WHERE ({asked}r.oid IN ({starting})) AND NOT ({' AND '.join(complete)})"
        " ORDER BY r.rolname",
        tuple(roles),
    )


def postgres_script(schema_name: str, standing: Standing, roles: Sequence[str], lock_key: int) -> List[str]:
    """Lines for psql: the missing steps and the grants. Without anything to do a comment."""
    work = [*creation(schema_name, standing), *grants(schema_name, roles)]
    if not work:
        return [_NOTHING]
    place = quoted(schema_name)
    guard = [_still_at(place, standing.version)] if 0 < standing.version < schema.VERSION else []
    return [
        "-- psql -v ON_ERROR_STOP=1 DATABASE, as the role that owns the schema or is to own it: all of it or nothing",
        *_statements([
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            f"SET LOCAL search_path = {place}, pg_temp",
            f"DO $$ BEGIN PERFORM pg_advisory_xact_lock({lock_key}); END $$",
            *guard,
            *work,
            "COMMIT",
        ]),
    ]


def sqlite_script(version: int, journal: str) -> List[str]:
    """Lines for the sqlite3 shell, which would go on after an error if it were not told to stop."""
    steps = schema.steps_from(version, schema.SQLITE_TYPES)
    if not steps:
        return [_NOTHING]
    guard = [
        f"CREATE TEMP TABLE expected (version CONSTRAINT still_at_version_{version} CHECK (version = '{version}'))",
        f"INSERT INTO expected {schema.VERSION_SQL}",
    ]
    work = [*(guard if version else []), *steps]
    return [
        "-- sqlite3 FILE, as the user whose jobs run: all of it or nothing",
        ".bail on",
        *_statements([f"PRAGMA journal_mode = {journal}", "BEGIN IMMEDIATE", *work, "COMMIT"]),
    ]


_NOTHING = f"-- the schema is current (version {schema.VERSION}): nothing to do"


def _still_at(place: str, version: int) -> str:
    there = f"SELECT 1 FROM {place}.meta WHERE name = 'schema_version' AND value = '{version}'"
    complaint = f"the schema is not at version {version} any more: write this script anew"
    return f"DO $$ BEGIN IF NOT EXISTS ({there}) THEN RAISE EXCEPTION '{complaint}'; END IF; END $$"


def _statements(statements: Sequence[str]) -> List[str]:
    return [line for statement in statements for line in f"{_outdented(statement)};".split("\n")]


def _outdented(statement: str) -> str:
    """As it would be written at the margin: a table's columns by four spaces, its end by none."""
    first, *rest = statement.split("\n")
    return "\n".join([first, *(line[4:] if line.startswith("    ") else line for line in rest)])
