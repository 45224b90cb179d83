"""From one version of the tables to the next: nothing is lost, the result is that of a new store, everybody may try.

Through a pooler all this is the same.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Callable, Iterator, List

import pytest

from cronguard.core.model import Claimed, Finding
from cronguard.core.queue import NewItem
from cronguard.errors import StoreDown, StoreError
from cronguard.store import schema
from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Statement
from cronguard.store.opening import open_store
from cronguard.store.waiting import Deadline
from tests.contract.test_contention import race
from tests.support.claims import WITHIN_S, claimed, finish, now, request, row_of, skip, summary_of
from tests.support.stores import parts_of

Opened = Callable[[str], SqlStore]
STEPS = schema._STEPS
TABLES_1 = ("jobs", "locks", "runs", "incidents", "checkpoints")
PARALLEL = 20

DESCRIBED = {
    "sqlite": ["SELECT type, name, sql FROM sqlite_master ORDER BY name"],
    "postgres": [
        "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default"
        " FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2",
        "SELECT indexname, replace(indexdef, current_schema(), '') FROM pg_indexes"
        " WHERE schemaname = current_schema() ORDER BY 1",
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2",
    ],
}


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest) -> str:
    """Of a store that does not exist yet. With something put behind, it is another one's."""
    return str(request.getfixturevalue(f"{kind}_url"))


def told(store: SqlStore, *texts: str) -> List[Any]:
    return [result.rows for result in store._read([Statement(text) for text in texts], Deadline(WITHIN_S))]


def program_of(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this program is the one that knew so many versions."""
    monkeypatch.setattr(schema, "_STEPS", STEPS[:version])
    monkeypatch.setattr(schema, "VERSION", version)


@pytest.fixture
def make_old(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes a store with the tables of version 1, and in them what another one has in those columns."""

    def make(url: str, like: Any = None) -> None:
        program_of(1, monkeypatch)
        store = opened(url)
        program_of(len(STEPS), monkeypatch)
        for table in TABLES_1 if like else ():
            copy(like, store, table)

    return make


def copy(source: SqlStore, target: SqlStore, table: str) -> None:
    (names,) = told(
        target,
        f"SELECT name FROM pragma_table_info('{table}')"
        if target.name.startswith("sqlite")
        else "SELECT column_name FROM information_schema.columns"
        f" WHERE table_schema = current_schema() AND table_name = '{table}'",
    )
    columns = ", ".join(name for (name,) in names)
    (rows,) = told(source, f"SELECT {columns} FROM {table}")
    marks = ", ".join("?" * len(names))
    target._send([Statement(f"INSERT INTO {table} ({columns}) VALUES ({marks})", row) for row in rows], WITHIN_S)


def full_store(store: SqlStore) -> Claimed:
    """A bit of everything, and a run under way."""
    store.finish(claimed(store, request("one")), finish(), WITHIN_S)
    store.finish(claimed(store, request("two")), finish("failed", message="caf\u00e9"), WITHIN_S)
    store.record_skip(skip(job="other"), WITHIN_S)
    store.pause("other", "holidays", None, now(), WITHIN_S)
    store.sync_incidents(["job"], [Finding("job", "missed", "critical", "late", now(), ())], now(), 60.0, WITHIN_S)
    return claimed(store, request("three"))


def seen_in(store: SqlStore) -> Any:
    """Everything that the operations of version 1 show."""
    return (
        store.history("job", 9, (), None, WITHIN_S), store.history("other", 9, (), None, WITHIN_S),
        store.jobs((), WITHIN_S), store.incidents(WITHIN_S), store.undone("job", ["one", "two", "three"], WITHIN_S),
    )


def test_store_of_version_1_keeps_everything(url: str, opened: Opened, make_old: Callable[..., None]) -> None:
    before = opened(f"{url}_source")
    running = full_store(before)
    make_old(url, before)
    after = opened(url)
    old, new = seen_in(before), seen_in(after)
    known = [[row._replace(defined_utc=None) for row in seen[2]] for seen in (old, new)]
    assert known[0] == known[1]
    assert (*old[:2], *old[3:]) == (*new[:2], *new[3:])
    assert len(new[0]) == 3
    assert after.add_items("job", [NewItem("a")], WITHIN_S) == 1
    assert after.finish(running, finish(), WITHIN_S), "a run goes on through it"
    assert row_of(after, running.run_id).status == "success"
    assert summary_of(after).strip == "sfs"


def test_upgraded_tables_are_those_of_a_new_store(
    kind: str, url: str, opened: Opened, make_old: Callable[..., None]
) -> None:
    fresh = opened(f"{url}_fresh")
    make_old(url)
    assert told(opened(url), *DESCRIBED[kind]) == told(fresh, *DESCRIBED[kind])


def test_many_upgrades_at_once_are_one(url: str, opened: Opened, make_old: Callable[..., None]) -> None:
    """FR-62."""
    before = opened(f"{url}_source")
    full_store(before)
    make_old(url, before)
    assert race("prepare", PARALLEL, url) == {"prepared": PARALLEL}
    assert seen_in(opened(url))[0] == seen_in(before)[0]


def test_program_of_before_says_that_the_store_is_newer(
    url: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FR-62: old and new cronguard side by side."""
    opened(url)
    program_of(1, monkeypatch)
    with pytest.raises(StoreError, match="has version 2, this cronguard knows 1"):
        opened(url)


def test_looking_into_old_tables_changes_nothing_and_is_no_store_that_is_down(
    url: str, opened: Opened, make_old: Callable[..., None]
) -> None:
    make_old(url)
    looking = open_store(url)
    assert looking.marks(None, (), 9, WITHIN_S) == []
    assert looking.checkpoints("job", WITHIN_S) == []
    assert looking.jobs((), WITHIN_S) == []
    with pytest.raises(StoreError, match="older version") as caught:
        looking.count_items("job", WITHIN_S)
    assert not isinstance(caught.value, StoreDown)
    assert "cronguard init" in str(caught.value.hint)
    assert told(looking, schema.VERSION_SQL) == [[("1",)]]
    looking.close()


@pytest.fixture
def guest_url(admin_dsn: str, postgres_url: str, schema_name: str) -> Iterator[str]:
    """The store as a role sees it that owns nothing."""
    import psycopg

    parts = parts_of(admin_dsn)
    guest = f"guest_{schema_name}"
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {guest} LOGIN".encode())
        yield f"postgresql://{guest}@{parts['host']}:{parts['port']}/{parts['dbname']}?schema={schema_name}"
        connection.execute(f"DROP OWNED BY {guest}; DROP ROLE {guest}".encode())


def test_role_that_may_not_change_the_tables_is_told_who_may(
    guest_url: str, postgres_url: str, schema_name: str, admin_dsn: str, opened: Opened, make_old: Callable[..., None]
) -> None:
    """FR-62. And what the new tables need afterwards: rights are not handed down."""
    make_old(postgres_url)
    guest = f"guest_{schema_name}"
    grants = [
        Statement(f"GRANT USAGE ON SCHEMA {schema_name} TO {guest}"),
        Statement(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema_name} TO {guest}"),
    ]
    owner = parts_of(admin_dsn)["user"]
    with closing(open_store(postgres_url)) as admin:
        admin._send(grants, WITHIN_S)
        with pytest.raises(StoreError, match=f"only role {owner} may .*, and the schema has version 1") as caught:
            opened(guest_url)
        assert "an owner must run: cronguard init" in str(caught.value.hint)
        assert f"--grant {guest}" in str(caught.value.hint)
        admin.prepare(WITHIN_S)
        admin._send(grants, WITHIN_S)
    assert opened(guest_url).add_items("job", [NewItem("a")], WITHIN_S) == 1
