"""What only PostgreSQL brings: timeouts, roles, restarts of backends, poolers, clocks of its own."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from cronguard.core.model import Claimed, Held
from cronguard.errors import StoreDown, StoreError
from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store
from tests.support.claims import ALIVE, UNKNOWN, WITHIN_S, claimed, finish, judge_as, request, row_of
from tests.support.pgbouncer import POOL_SIZE
from tests.support.postgres import free_port
from tests.support.stores import Sql, parts_of

Opened = Callable[[str], SqlStore]


@pytest.fixture
def role(sql: Sql) -> Iterator[str]:
    """A role of the test's own that may create what it likes."""
    name = f"r_{uuid.uuid4().hex[:12]}"
    sql(f"CREATE ROLE {name} LOGIN")
    (database,) = sql("SELECT current_database()")[0]
    sql(f"GRANT CREATE ON DATABASE {database} TO {name}")
    yield name
    sql(f"DROP OWNED BY {name} CASCADE")
    sql(f"DROP ROLE {name}")


@pytest.fixture
def role_url(role: str, admin_dsn: str, schema_name: str) -> str:
    parts = parts_of(admin_dsn)
    return f"postgresql://{role}@{parts['host']}:{parts['port']}/{parts['dbname']}?schema={schema_name}"


def backends(sql: Sql, role: str) -> Any:
    return sql("SELECT pid, state, application_name FROM pg_stat_activity WHERE usename = %s", role)


def test_connection_terminated_between_calls_is_no_event(role_url: str, role: str, sql: Sql, opened: Opened) -> None:
    store = opened(role_url)
    claim = claimed(store, request())
    for call in (lambda: store.renew(claim, 30.0, WITHIN_S), lambda: store.finish(claim, finish(), WITHIN_S)):
        sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", role)
        assert call()


def test_idle_timeouts_of_the_server_lose_no_claim(role_url: str, role: str, sql: Sql, opened: Opened) -> None:
    """FR-54: nothing is left open between the calls."""
    sql(f"ALTER ROLE {role} SET idle_in_transaction_session_timeout = '300ms'")
    sql(f"ALTER ROLE {role} SET idle_session_timeout = '300ms'")
    store = opened(role_url)
    claim = claimed(store, request())
    ((_, state, name),) = backends(sql, role)
    assert state == "idle"
    assert name.startswith("cronguard:")
    deadline = time.monotonic() + WITHIN_S
    while backends(sql, role):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert isinstance(opened(role_url).claim(request("next"), UNKNOWN, WITHIN_S), Held)
    assert store.renew(claim, 30.0, WITHIN_S) == "ours"


def test_no_advisory_lock_and_no_prepared_statement_stays(role_url: str, sql: Sql, opened: Opened) -> None:
    """FR-52, FR-60."""
    store = opened(role_url)
    claim = claimed(store, request())
    for _ in range(10):  # psycopg prepares after five
        assert store.renew(claim, 30.0, WITHIN_S) == "ours"
    assert sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'") == []
    assert _own_rows(store, "SELECT name FROM pg_prepared_statements") == []


def _own_rows(store: SqlStore, text: str) -> Any:
    from cronguard.store.dialect import Statement
    from cronguard.store.waiting import Deadline

    return store._read([Statement(text)], Deadline(WITHIN_S))[0].rows


def test_role_that_defaults_to_serializable_gets_along(role_url: str, role: str, sql: Sql, opened: Opened) -> None:
    """Section 3 of lock-protocol: a role's default would hold back vacuum and read old snapshots."""
    sql(f"ALTER ROLE {role} SET default_transaction_isolation = 'serializable'")
    store = opened(role_url)
    assert _own_rows(store, "SELECT current_setting('transaction_isolation')") == [("read committed",)]
    store.finish(claimed(store, request()), finish(), WITHIN_S)


def test_read_only_server_is_a_store_that_is_down(role_url: str, role: str, sql: Sql, opened: Opened) -> None:
    """The operator's maintenance switch is not overridden."""
    store = opened(role_url)
    claim = claimed(store, request())
    sql(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    store.close()
    for call in (
        lambda: store.claim(request("next", job="b"), ALIVE, WITHIN_S),
        lambda: store.renew(claim, 30.0, WITHIN_S),
        lambda: store.finish(claim, finish(), WITHIN_S),
    ):
        with pytest.raises(StoreDown, match="read-only"):
            call()
    assert store.look("job", "job", "k", ALIVE, WITHIN_S).holder is not None


def test_role_without_rights_is_told_what_to_do(role_url: str, role: str, sql: Sql) -> None:
    """FR-62."""
    (database,) = sql("SELECT current_database()")[0]
    sql(f"REVOKE CREATE ON DATABASE {database} FROM {role}")
    with pytest.raises(StoreError, match=f"--grant {role}") as caught, closing(open_store(role_url)) as store:
        store.prepare(WITHIN_S)
    assert not isinstance(caught.value, StoreDown)


def test_role_without_the_right_to_create_can_use_what_is_there(
    role_url: str, postgres_url: str, role: str, schema_name: str, sql: Sql, opened: Opened
) -> None:
    """FR-62."""
    (database,) = sql("SELECT current_database()")[0]
    sql(f"REVOKE CREATE ON DATABASE {database} FROM {role}")
    opened(postgres_url)
    with pytest.raises(StoreError, match=f"--grant {role}"):
        opened(role_url)
    with pytest.raises(StoreError, match="no right to use schema"), closing(open_store(role_url)) as blind:
        blind.jobs((), WITHIN_S)
    sql(f"GRANT USAGE ON SCHEMA {schema_name} TO {role}")
    sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema_name} TO {role}")
    store = opened(role_url)
    store.finish(claimed(store, request()), finish(), WITHIN_S)


def test_newer_schema_is_refused(postgres_url: str, schema_name: str, sql: Sql, opened: Opened) -> None:
    """FR-62."""
    opened(postgres_url)
    sql(f"UPDATE {schema_name}.meta SET value = '99' WHERE name = 'schema_version'")
    with pytest.raises(StoreError, match="version 99"):
        opened(postgres_url)


def test_connections_running_out_are_waited_for(role_url: str, role: str, sql: Sql, opened: Opened) -> None:
    """FR-63: 53300."""
    store = opened(role_url)
    claim = claimed(store, request())
    sql(f"ALTER ROLE {role} CONNECTION LIMIT 1")
    late = open_store(role_url)
    began = time.monotonic()
    with pytest.raises(StoreDown, match="too many connections"):
        late.prepare(0.6)
    assert 0.5 < time.monotonic() - began < 3.0
    store.finish(claim, finish(), WITHIN_S)
    store.close()
    late.prepare(WITHIN_S)
    late.close()


def test_server_that_refuses_connections_is_down(admin_dsn: str) -> None:
    store = open_store(f"postgresql://app:hunter2@127.0.0.1:{free_port()}/app")
    with pytest.raises(StoreDown, match="127") as caught:
        store.prepare(0.5)
    assert "hunter2" not in str(caught.value)


def test_server_that_accepts_and_never_answers_is_down_in_time() -> None:
    """FR-19."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = open_store(f"postgresql://app@127.0.0.1:{silent.getsockname()[1]}/app")
        began = time.monotonic()
        with pytest.raises(StoreDown):
            store.prepare(1.0)
        assert time.monotonic() - began < 5.0


_STOPPED = """
import sys
from cronguard.store import claiming
from cronguard.store.opening import open_store
from cronguard.store.waiting import Deadline
from tests.support.claims import request

store = open_store(sys.argv[1])

def stop_after_the_locks(session):
    session.run(claiming.lock_statements(request(), store.dialect))
    print("holding", flush=True)
    sys.stdin.read()

store._transact(stop_after_the_locks, Deadline(60))
"""


def test_claimer_stopped_in_the_middle_does_not_block_a_renewal_for_long(postgres_url: str, opened: Opened) -> None:
    """Section 10 of lock-protocol: it blocked for ever; now for 2 s."""
    store = opened(postgres_url)
    claim = claimed(store, request())
    root = Path(__file__).parents[2]
    stopped = subprocess.Popen([sys.executable, "-c", _STOPPED, postgres_url], cwd=root, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert stopped.stdout is not None
    try:
        assert stopped.stdout.readline() == b"holding\n"
        began = time.monotonic()
        assert store.renew(claim, 30.0, WITHIN_S) == "ours"
        assert time.monotonic() - began < 5.0
    finally:
        stopped.kill()
        stopped.communicate()


def test_ended_lease_is_taken_over_from_an_owner_who_lives_elsewhere(postgres_url: str, opened: Opened) -> None:
    """Owners renew; one who does not has been told to end its command before this."""
    store = opened(postgres_url)
    wish = request("one", lease_s=0.0)
    claim = claimed(store, wish)
    other = opened(postgres_url)
    assert claimed(other, request("two"), ALIVE).took_over == (wish.run_id,)
    assert store.renew(claim, 30.0, WITHIN_S) == "lost"
    assert row_of(other, wish.run_id).status == "lost"


def test_ended_lease_is_not_enough_where_the_commands_processes_still_run(postgres_url: str, opened: Opened) -> None:
    """P1, on the owner's own host; elsewhere nobody can see them."""
    store = opened(postgres_url)
    claimed(store, request("one", lease_s=0.0))
    other = opened(postgres_url)
    for state in ("alive", "dead"):
        assert isinstance(other.claim(request("two"), judge_as(state, (7,)), WITHIN_S), Held)
    assert isinstance(other.claim(request("two"), UNKNOWN, WITHIN_S), Claimed)


def test_renewed_lease_is_counted_by_the_servers_clock(
    postgres_url: str, schema_name: str, sql: Sql, opened: Opened
) -> None:
    """FR-78."""
    store = opened(postgres_url)
    claim = claimed(store, request(lease_s=1.0))
    assert store.renew(claim, 120.0, WITHIN_S) == "ours"
    ((left_s,),) = sql(f"SELECT extract(epoch FROM lease_until - clock_timestamp())::float FROM {schema_name}.locks")
    assert 100 < left_s <= 120


def test_schemas_do_not_know_each_other(admin_dsn: str, opened: Opened) -> None:
    one, two = (opened(f"{admin_dsn}?schema=t_{uuid.uuid4().hex[:12]}") for _ in range(2))
    claimed(one, request())
    claimed(two, request())


def test_temporary_table_of_a_pooled_session_is_not_taken_for_ours(
    pgbouncer_url: str, pooler: Any, admin_dsn: str, opened: Opened
) -> None:
    store = opened(pgbouncer_url)
    dsn = pooler.dsn(parts_of(admin_dsn)["dbname"])
    store.close()
    _in_every_pooled_session(dsn, "CREATE TEMP TABLE runs (x int)")
    try:
        store.finish(claimed(store, request()), finish(), WITHIN_S)
        assert len(store.history("job", 5, (), None, WITHIN_S)) == 1
    finally:
        _in_every_pooled_session(dsn, "DISCARD TEMP")


def _in_every_pooled_session(dsn: str, text: str) -> None:
    """Open transactions keep a server connection each, until all have had it."""
    import psycopg

    connections = [psycopg.connect(dsn, autocommit=True, prepare_threshold=None) for _ in range(POOL_SIZE)]
    try:
        for step in ("BEGIN", text, "COMMIT"):
            for connection in connections:
                connection.execute(step.encode())
    finally:
        for connection in connections:
            connection.close()


def test_many_running_jobs_share_a_small_pool(pgbouncer_url: str, opened: Opened) -> None:
    """Twenty claims held at once through a pool of two: none waits for another's connection."""
    stores = [opened(pgbouncer_url) for _ in range(20)]
    claims = [claimed(store, request(job=f"job-{number}")) for number, store in enumerate(stores)]
    began = time.monotonic()
    assert {store.renew(claim, 30.0, WITHIN_S) for store, claim in zip(stores, claims)} == {"ours"}
    assert all(store.finish(claim, finish(), WITHIN_S) for store, claim in zip(stores, claims))
    assert time.monotonic() - began < WITHIN_S
