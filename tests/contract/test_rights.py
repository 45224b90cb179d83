"""Who may do what: the owner makes the tables, a runner has what jobs need and nothing else (FR-62)."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
import sys
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from cronguard.cli.main import execute
from cronguard.errors import NoRights, StoreError, UsageError
from cronguard.store import schema
from cronguard.store.backend import SqlStore
from cronguard.store.installing import RUNNER, Installed
from cronguard.store.opening import open_store
from tests.support.claims import WITHIN_S, claimed, facts, finish, request
from tests.support.cronguard import Started, cronguard, environment, history
from tests.support.stores import Sql, parts_of
from tests.support.versions import EARLIER, make_version

Opened = Callable[[str], SqlStore]
LEASE = ("--timeout", "60s", "--lease", "15s")
# Every run prunes, and its exit code and talk are its own.
TIDY_ALWAYS = """
import sys
from cronguard.cli.main import main
from cronguard.pipeline import tidying
tidying.ONE_IN = 1
main(sys.argv[1:])
"""


@pytest.fixture
def role(sql: Sql) -> Iterator[str]:
    """A role that owns nothing and was given nothing, with a name that only quotes can hold."""
    name = f'r "{uuid.uuid4().hex[:8]}" ?%s'
    sql(f"CREATE ROLE {_quoted(name)} LOGIN")
    yield name
    sql(f"DROP OWNED BY {_quoted(name)}")
    sql(f"DROP ROLE {_quoted(name)}")


@pytest.fixture
def role_url(role: str, admin_dsn: str, schema_name: str) -> str:
    from urllib.parse import quote

    parts = parts_of(admin_dsn)
    return f"postgresql://{quote(role)}@{parts['host']}:{parts['port']}/{parts['dbname']}?schema={schema_name}"


@pytest.fixture
def runner(role: str, role_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a role with just what `init --grant` gives; the commands use it."""
    assert _install(postgres_url, role) == Installed(0, schema.VERSION)
    monkeypatch.setenv("CRONGUARD_STORE", role_url)
    return role_url


@pytest.fixture
def as_role(role: str, admin_dsn: str, schema_name: str) -> Iterator[Sql]:
    """Runs a statement as that role, in the schema."""
    import psycopg

    with closing(psycopg.connect(admin_dsn, user=role, autocommit=True)) as connection:
        connection.execute(f"SET search_path = {schema_name}".encode())
        yield lambda text: connection.execute(text.encode())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _install(url: str, *roles: str) -> Installed:
    with closing(open_store(url)) as store:
        return store.install(roles, WITHIN_S)


# What a runner may do.


def test_rights_speak_of_every_table(postgres_url: str, schema_name: str, sql: Sql) -> None:
    _install(postgres_url)
    tables = {name for (name,) in sql("SELECT tablename FROM pg_tables WHERE schemaname = %s", schema_name)}
    assert tables == set(RUNNER)


def test_runner_can_run_jobs_to_every_end(runner: str, postgres_url: str, opened: Opened) -> None:
    owner = opened(postgres_url)
    assert cronguard("run", "j", *LEASE, "--", "true").returncode == 0
    assert cronguard("run", "j", *LEASE, "--", "false").returncode == 1
    assert cronguard("run", "j", "--timeout", "100ms", "--grace", "0", "--", "sleep", "60").returncode == 124
    assert execute(["pause", "j", "--reason", "tidy"]) == 0
    assert cronguard("run", "j", *LEASE, "--", "true").returncode == 75
    assert execute(["resume", "j"]) == 0
    held = claimed(owner, request("k", "j", facts=facts("j", schedule=None, key="none"), lock="j"))
    assert cronguard("run", "j", *LEASE, "--", "true").returncode == 75
    assert owner.finish(held, finish(), WITHIN_S)
    claimed(owner, request("dead", "j", facts=facts("j", schedule=None, key="none"), lock="j", lease_s=0.0))
    assert cronguard("run", "j", *LEASE, "--", "true").returncode == 0
    with Started("run", "j", *LEASE, "--", "sh", "-c", "echo up; exec sleep 60") as run:
        assert run.line() == "up"
        assert execute(["cancel", "j", "--wait", "30s"]) == 0
        assert run.end().returncode == 143
    assert Counter(row["status"] for row in history("j")) == {
        "success": 3, "skipped": 2, "failed": 1, "timeout": 1, "lost": 1, "aborted": 1
    }  # fmt: skip


def test_runner_can_look_and_check(runner: str, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        assert cronguard("run", "j", *LEASE, "--", "false").returncode == 1
    assert execute(["check", "--notify"]) == 2
    assert execute(["check"]) == 2
    assert cronguard("run", "j", *LEASE, "--", "true").returncode == 0
    assert execute(["check", "--notify"]) == 0
    for words in (["status"], ["history", "j"], ["metrics"], ["report", "--html", "-"], ["config"]):
        assert execute(words) == 0, words
    assert "permission" not in capfd.readouterr().err


@pytest.mark.parametrize("table", [table for table, rights in RUNNER.items() if "DELETE" in rights])
def test_runner_may_forget_what_is_the_jobs_own(runner: str, table: str, as_role: Sql) -> None:
    key, columns, values = {
        "items": ("item_key", "job, item_key", "'j', 'a'"),
        "ledger": ("effect_key", "job, effect_key", "'j', 'a'"),
        "checkpoints": ("name", "job, name, value, set_at", "'j', 'a', 'v', now()"),
    }[table]
    as_role(f"INSERT INTO {table} ({columns}) VALUES ({values})")
    as_role(f"UPDATE {table} SET run_id = 'r' WHERE {key} = 'a'")
    assert as_role(f"DELETE FROM {table}").rowcount == 1


@pytest.mark.parametrize(
    "statement",
    [
        *[f"DELETE FROM {table}" for table, rights in RUNNER.items() if "DELETE" not in rights],
        *[f"TRUNCATE {table}" for table in RUNNER],
        "UPDATE meta SET value = '99'",
        "INSERT INTO meta (name, value) VALUES ('a', 'b')",
        "CREATE TABLE own (x int)",
        "ALTER TABLE runs ADD COLUMN own int",
        "DROP TABLE items",
        "CREATE INDEX own ON runs (job)",
    ],
)
def test_runner_may_not(runner: str, statement: str, as_role: Sql) -> None:
    import psycopg

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role(statement)


def test_pruning_is_the_owners_silently_after_runs_and_in_words_by_hand(
    runner: str, postgres_url: str, opened: Opened, capfd: pytest.CaptureFixture[str]
) -> None:
    """P7: a run does not fail, nor say anything, for rows that it may not delete."""
    owner, long_ago = opened(postgres_url), datetime(2020, 1, 1, tzinfo=timezone.utc)
    for number in range(2):
        then = long_ago + timedelta(hours=number)
        plain = facts("j", schedule=None, key="none")
        claim = claimed(owner, request(f"k{number}", "j", facts=plain, lock="j", keyed=False, now_utc=then))
        assert owner.finish(claim, finish(finished_at_utc=then), WITHIN_S)
    line = [sys.executable, "-c", TIDY_ALWAYS, "run", "j", *LEASE, "--", "true"]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(history("j")) == 3
    assert execute(["prune"]) == 125
    (told,) = capfd.readouterr().err.splitlines()
    assert "no right to DELETE from runs and incidents" in told
    assert execute(["prune", "--store", postgres_url]) == 0
    assert len(history("j")) == 1


# Who lacks rights is told what the owner has to type.


def _told(url: str) -> str:
    """What a run says that fails for that."""
    done = cronguard("run", "j", *LEASE, "--store", url.replace("@", ":hunter2@"), "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (125, 1)
    assert "hunter2" not in done.stderr
    return done.stderr


def test_runner_without_tables_is_told_the_owners_command(role_url: str, role: str, schema_name: str) -> None:
    command = shlex.split(_told(role_url).partition("an owner must run: ")[2])
    assert command[:3] == ["cronguard", "init", "--store"]
    assert command[3].endswith(f"?schema={schema_name}")
    assert command[4:] == ["--grant", role]


def test_runner_with_nothing_granted_is_told_the_owners_command(role_url: str, postgres_url: str) -> None:
    _install(postgres_url)
    assert "no right to use schema" in _told(role_url)


def test_runner_on_an_old_schema_is_told_the_owners_command(
    role_url: str, role: str, postgres_url: str, sql: Sql, schema_name: str
) -> None:
    make_version(1, postgres_url)
    sql(f"GRANT USAGE ON SCHEMA {schema_name} TO {_quoted(role)}")
    sql(f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {schema_name} TO {_quoted(role)}")
    told = _told(role_url)
    (owner,) = sql("SELECT current_user")[0]
    assert f"only role {owner} may change its tables, and the schema has version 1, not {schema.VERSION}; " in told
    assert "an owner must run: cronguard init" in told


# What the owner does.


def test_upgrade_names_the_roles_that_lack_the_new_tables(
    role: str, postgres_url: str, sql: Sql, schema_name: str
) -> None:
    make_version(1, postgres_url)
    sql(f"GRANT INSERT ON {schema_name}.runs TO {_quoted(role)}")
    assert _install(postgres_url) == Installed(1, schema.VERSION, (role,))
    assert _install(postgres_url, role) == Installed(schema.VERSION, schema.VERSION)


@pytest.mark.parametrize("version", EARLIER)
def test_upgraded_schema_is_the_same_as_a_new_one(admin_dsn: str, sql: Sql, version: int) -> None:
    names = [f"t_{uuid.uuid4().hex[:12]}" for _ in range(3)]
    _install(f"{admin_dsn}?schema={names[0]}")
    for name in names[1:]:
        make_version(version, f"{admin_dsn}?schema={name}")
    _install(f"{admin_dsn}?schema={names[1]}")
    with closing(open_store(f"{admin_dsn}?schema={names[2]}")) as store:
        sql("\n".join(store.script((), WITHIN_S)))
    assert _shape(sql, names[0]) == _shape(sql, names[1]) == _shape(sql, names[2])


def _shape(sql: Sql, name: str) -> Any:
    columns = sql(
        "SELECT table_name, column_name, data_type, column_default, is_nullable, collation_name"
        " FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2",
        name,
    )
    indexes = sql("SELECT replace(indexdef, schemaname, '') FROM pg_indexes WHERE schemaname = %s ORDER BY 1", name)
    return columns, indexes


def test_script_makes_what_init_makes_with_rights_and_all(
    role: str, role_url: str, postgres_url: str, sql: Sql, opened: Opened
) -> None:
    with closing(open_store(postgres_url)) as store:
        lines = store.script((role,), WITHIN_S)
        assert store.jobs((), WITHIN_S) == []
        with pytest.raises(StoreError, match="no tables"):
            claimed(store, request())
    sql("\n".join(lines))
    runner = opened(role_url)
    assert runner.finish(claimed(runner, request()), finish(), WITHIN_S)
    with closing(open_store(postgres_url)) as store:
        (line,) = store.script((), WITHIN_S)
    assert line.startswith("--")


def test_script_for_a_version_that_is_no_more_changes_nothing(
    postgres_url: str, schema_name: str, sql: Sql
) -> None:
    """Else it would take the tables that a later version made for those of the version it was written for."""
    import psycopg

    make_version(1, postgres_url)
    with closing(open_store(postgres_url)) as store:
        lines = store.script((), WITHIN_S)
    _install(postgres_url)
    sql(f"INSERT INTO {schema_name}.items (job, item_key) VALUES ('j', 'a')")
    with pytest.raises(psycopg.errors.RaiseException, match="not at version 1 any more"):
        sql("\n".join(lines))
    sql("ROLLBACK")
    assert sql(f"SELECT item_key FROM {schema_name}.items") == [("a",)]


def test_unknown_role_is_a_mistake_and_nothing_is_made(
    role: str, postgres_url: str, schema_name: str, sql: Sql
) -> None:
    with closing(open_store(postgres_url)) as store:
        for call in (store.install, store.script):
            with pytest.raises(UsageError, match="no such role"):
                call((role + "x",), WITHIN_S)
    assert sql("SELECT 1 FROM pg_namespace WHERE nspname = %s", schema_name) == []


def test_who_may_not_grant_is_not_told_that_it_was_granted(
    runner: str, role: str, postgres_url: str, sql: Sql
) -> None:
    """The server answers such a GRANT with a warning."""
    other = f"r_{uuid.uuid4().hex[:8]}"
    sql(f"CREATE ROLE {other}")
    try:
        with pytest.raises(NoRights, match=f"no right to grant; an owner must run: cronguard init .* --grant {other}"):
            _install(runner, other)
    finally:
        sql(f"DROP ROLE {other}")


def test_twenty_installations_at_once_all_succeed(store_url: str) -> None:
    """FR-62: one made the tables, nineteen found them."""
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(_install, [store_url] * 20))
    assert sorted(each.before for each in done) == [0] + [schema.VERSION] * 19
    assert {each.after for each in done} == {schema.VERSION}


def test_twenty_grants_at_once_all_succeed(role: str, postgres_url: str) -> None:
    """Two at a time on one table would fail (tuple concurrently updated)."""
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda url: _install(url, role), [postgres_url] * 20))
    assert {each.short for each in done} == {()}


@pytest.mark.parametrize("version", EARLIER)
def test_sqlite_file_of_before_is_upgraded(sqlite_url: str, version: int) -> None:
    make_version(version, sqlite_url)
    assert _install(sqlite_url) == Installed(version, schema.VERSION)
    assert _install(sqlite_url) == Installed(schema.VERSION, schema.VERSION)


def test_sqlite_has_no_roles(sqlite_url: str) -> None:
    with pytest.raises(UsageError, match="--grant: a SQLite file has no roles"):
        _install(sqlite_url, "deploy")
    assert not Path(sqlite_url.partition(":")[2]).exists()


@pytest.mark.parametrize("version", range(schema.VERSION))
def test_sqlite_script_makes_what_init_makes(sqlite_url: str, tmp_path: Path, version: int) -> None:
    path = Path(sqlite_url.partition(":")[2])
    if version:
        make_version(version, sqlite_url)
    with closing(open_store(sqlite_url)) as store:
        lines = store.script((), WITHIN_S)
    assert path.exists() == bool(version)
    made = tmp_path / "made.db"
    if version:
        made.write_bytes(path.read_bytes())
    _feed(made, lines)
    _install(sqlite_url)
    assert _sqlite_shape(made) == _sqlite_shape(path)
    with pytest.raises(sqlite3.Error):
        _feed(made, lines)


def _feed(path: Path, lines: List[str]) -> None:
    """As the sqlite3 shell does with `.bail on`."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("\n".join(line for line in lines if not line.startswith(".")))


def _sqlite_shape(path: Path) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT name, replace(sql, ' ', '') FROM sqlite_master ORDER BY name").fetchall()
        return made, connection.execute("PRAGMA journal_mode").fetchall()
