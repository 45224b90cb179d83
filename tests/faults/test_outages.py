"""The database goes away, comes back, or loses the one connection that matters, while a command runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from tests.support.cronguard import Started, cronguard, environment, gone, history, until
from tests.support.pingserver import PingServer
from tests.support.postgres import Server, server_binaries
from tests.support.proxy import AFTER, BEFORE, Proxy
from tests.support.stores import parts_of, unavailable

pytestmark = pytest.mark.usual

LEASED = ["--timeout", "300s", "--lease", "15s"]
# The message of its own that ends a writing transaction: type Q, length 11.
BARE_COMMIT = b"Q\0\0\0\x0bCOMMIT\0"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server for one test, to be stopped and started."""
    if server_binaries() is None:
        unavailable("no PostgreSQL of our own to stop and start")
    own = Server()
    try:
        own.start()
        yield own
    finally:
        own.remove()


def until_gate(gate: Path, then: str = "true") -> list:
    """A command that says its pid and waits for a file."""
    return ["--", "sh", "-c", f"echo $$; while ! [ -e {gate} ]; do sleep 0.05; done; {then}"]


def query(url: str, sql: str) -> Any:
    import psycopg

    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        cursor = connection.execute(sql)  # type: ignore[arg-type]  # a test's own text
        return cursor.fetchall() if cursor.description else None


def test_outage_shorter_than_half_the_lease_is_survived(server: Server, tmp_path: Path) -> None:
    env = environment(CRONGUARD_STORE=server.dsn, CRONGUARD_TEST="1")
    gate = tmp_path / "gate"
    with Started("run", "j", *LEASED, *until_gate(gate, "echo done"), env=env) as run:
        pid = int(run.line())
        server.stop()
        with Started("run", "j", *LEASED, "--", "true", env={**env, "CRONGUARD_TEST_HOST": "web-2"}) as other:
            time.sleep(4)  # the outage itself: at least one renewal (every 2.5 s) fails in it
            server.start()
            assert other.end().returncode == 75
        assert not gone(pid)
        renewed = "SELECT count(*) FROM cronguard.locks WHERE lease_until > clock_timestamp() + interval '12 s'"
        until(lambda: query(server.dsn, renewed) == [(1,)], "the lease to be renewed")
        gate.touch()
        done = run.end()
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert [row["status"] for row in history("j", env) if row["status"] != "skipped"] == ["success"]


def test_outage_longer_than_half_the_lease_ends_the_command_and_is_told_later(server: Server, tmp_path: Path) -> None:
    """Row `aborted`, reason `lock_lost`: spooled, delivered by the next run; 128+n; a fail ping."""
    with PingServer() as pings:
        env = environment(CRONGUARD_STORE=server.dsn, CRONGUARD_PING=pings.check_url)
        with Started("run", "j", *LEASED, *until_gate(tmp_path / "never"), env=env) as run:
            pid = int(run.line())
            server.stop()
            done = run.end()
        assert gone(pid)
        assert done.returncode == 143
        assert "lease" in done.stderr
        assert "Traceback" not in done.stderr
        server.start()
        assert cronguard("run", "other", "--timeout", "9s", "--", "true", env=env).returncode == 0
        assert pings.paths[:2] == ["/start", "/fail"]
    (row,) = history("j", env)
    assert (row["status"], row["reason"]) == ("aborted", "lock_lost")
    assert list(Path(os.environ["CRONGUARD_STATE_DIR"]).glob("spool/*/*")) == []


def test_terminated_backend_is_no_event(postgres_url: str, tmp_path: Path) -> None:
    """FR-54: the next renewal reconnects; nobody else gets in between."""
    env = environment(CRONGUARD_STORE=postgres_url)
    gate = tmp_path / "gate"
    schema = postgres_url.rpartition("=")[2]
    with Started("run", "j", *LEASED, *until_gate(gate), env=env) as run:
        run.line()
        (before,) = query(postgres_url, f"SELECT lease_until FROM {schema}.locks")
        query(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'cronguard%' AND pid <> pg_backend_pid()",
        )
        assert cronguard("run", "j", *LEASED, "--", "true", env=env).returncode == 75
        until(lambda: query(postgres_url, f"SELECT lease_until FROM {schema}.locks")[0] > before, "a renewal")
        gate.touch()
        assert run.end().returncode == 0
    assert [row["status"] for row in history("j", env)] == ["skipped", "success"]


def test_no_transaction_stays_open_while_the_command_runs(postgres_url: str, tmp_path: Path) -> None:
    """FR-54."""
    env = environment(CRONGUARD_STORE=postgres_url)
    gate = tmp_path / "gate"
    with Started("run", "j", *LEASED, *until_gate(gate), env=env) as run:
        run.line()
        states = query(
            postgres_url,
            "SELECT state, xact_start IS NULL FROM pg_stat_activity WHERE application_name LIKE 'cronguard%'",
        )
        gate.touch()
        assert run.end().returncode == 0
    assert set(states) <= {("idle", True)}


@pytest.mark.parametrize("where", [BEFORE, AFTER])
@pytest.mark.parametrize("phase", ["claim", "finish"])
def test_a_commit_cut_in_two_doubles_and_loses_nothing(
    postgres_url: str, admin_dsn: str, schema_name: str, tmp_path: Path, where: str, phase: str
) -> None:
    parts = parts_of(admin_dsn)
    direct = environment(CRONGUARD_STORE=postgres_url)
    assert cronguard("run", "warm", "--timeout", "9s", "--", "true", env=direct).returncode == 0
    proxy = Proxy(parts["host"], int(parts["port"]))
    url = f"postgresql://{parts['user']}@127.0.0.1:{proxy.port}/{parts['dbname']}?schema={schema_name}&sslmode=disable"
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    try:
        if phase == "claim":
            proxy.cut(where, BARE_COMMIT)
        command = until_gate(gate, f"echo ran >> {mark}")
        with Started("run", "j", "--timeout", "60s", *command, env={**direct, "CRONGUARD_STORE": url}) as run:
            run.line()
            if phase == "finish":
                proxy.cut(where, BARE_COMMIT)
            gate.touch()
            done = run.end()
        assert proxy.cuts == 1
    finally:
        proxy.close()
    assert (done.returncode, done.stderr) == (0, "")
    assert mark.read_text() == "ran\n"
    assert [(row["status"], row["claim_no"]) for row in history("j", direct)] == [("success", 1)]


def test_twenty_jobs_run_at_once_through_a_pool_of_two(pgbouncer_url: str, tmp_path: Path) -> None:
    """None waits for another's connection: a running job holds none of the pool (FR-52, FR-60)."""
    env = environment(CRONGUARD_STORE=pgbouncer_url)
    gate = tmp_path / "gate"
    runs = [Started("run", f"job{n}", *LEASED, *until_gate(gate), env=env) for n in range(20)]
    try:
        pids = [int(run.line()) for run in runs]
        assert not any(gone(pid) for pid in pids), "all twenty run at the same time"
        gate.touch()
        ended = [run.end() for run in runs]
    finally:
        for run in runs:
            run.__exit__()
    assert [done.returncode for done in ended] == [0] * 20, [done.stderr for done in ended if done.returncode]
    assert {row["status"] for n in (0, 7, 19) for row in history(f"job{n}", env)} == {"success"}


@pytest.fixture
def dead_store() -> Dict[str, str]:
    """A port where nobody listens: bound, never listened on, so that nobody else takes it."""
    return environment(CRONGUARD_STORE="postgresql://u:hunter2@127.0.0.1:1/app?connect_timeout=1")


def test_a_store_that_is_down_fails_closed(dead_store: Dict[str, str], tmp_path: Path) -> None:
    """FR-63, P9: 125, one line without the password, a fail ping, the command not started."""
    with PingServer() as pings:
        env = {**dead_store, "CRONGUARD_PING": pings.check_url}
        mark = tmp_path / "mark"
        done = cronguard("run", "j", "--timeout", "9s", "--", "touch", str(mark), env=env)
        assert (done.returncode, mark.exists()) == (125, False)
        assert pings.paths == ["/fail"]
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr
    assert "127.0.0.1" in done.stderr


def test_with_on_store_error_run_it_runs_loudly_and_is_delivered_later(server: Server, tmp_path: Path) -> None:
    """P2 and P3 of an unguarded run: this host knows that the slot is done, later everybody does."""
    env = environment(CRONGUARD_STORE=server.dsn, CRONGUARD_TEST="1", CRONGUARD_TEST_NOW="2026-01-20T02:00:01Z")
    options = ["--cron", "0 2 * * *", "--timezone", "UTC", "--timeout", "60s", "--on-store-error", "run"]
    mark = tmp_path / "mark"
    command = ["--", "sh", "-c", f"echo ran >> {mark}"]
    server.stop()
    first = cronguard("run", "j", *options, *command, env=env)
    assert first.returncode == 0
    assert "UNGUARDED" in first.stderr
    second = cronguard("run", "j", *options, *command, env=env)
    assert second.returncode == 0
    assert mark.read_text() == "ran\n"
    server.start()
    third = cronguard("run", "j", *options, *command, env=env)
    assert third.returncode == 0, third.stderr
    assert mark.read_text() == "ran\n"
    rows = [row for row in history("j", env) if row["status"] != "skipped"]
    assert [(row["status"], row["unguarded"]) for row in rows] == [("success", True)]


def test_a_store_and_a_heartbeat_that_never_answer_are_bounded(tmp_path: Path) -> None:
    """FR-19: both accept and stay silent."""
    with PingServer(misbehave="silent") as silent:
        env = environment(
            CRONGUARD_STORE=f"postgresql://u@127.0.0.1:{silent.port}/app", CRONGUARD_PING=silent.check_url
        )
        mark = tmp_path / "mark"
        done = cronguard("run", "j", "--timeout", "9s", "--", "touch", str(mark), env=env, timeout=45)
    assert (done.returncode, mark.exists()) == (125, False)
    assert "Traceback" not in done.stderr


def test_check_brings_in_a_success_before_it_judges(server: Server) -> None:
    """A host whose store was away at the end of the run does not report its own success as missing."""
    hourly = ["--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "60s", "--on-store-error", "run", "--", "true"]
    base = {"CRONGUARD_STORE": server.dsn, "CRONGUARD_TEST": "1"}
    first = environment(CRONGUARD_TEST_NOW="2026-01-20T01:00:01Z", **base)
    assert cronguard("run", "j", *hourly, env=first).returncode == 0
    server.stop()
    second = environment(CRONGUARD_TEST_NOW="2026-01-20T02:00:01Z", **base)
    assert cronguard("run", "j", *hourly, env=second).returncode == 0
    assert cronguard("check", env=environment(**base)).returncode == 3
    server.start()
    done = cronguard("check", "--at", "2026-01-20T02:30Z", env=environment(**base))
    assert (done.returncode, done.stdout) == (0, "OK: 1 job\n"), done.stderr


def test_restart_of_the_store_does_not_repeat_an_alert(server: Server, tmp_path: Path) -> None:
    base = {"CRONGUARD_STORE": server.dsn, "CRONGUARD_TEST": "1"}
    env = environment(CRONGUARD_TEST_NOW="2026-01-20T01:00:01Z", **base)
    options = ["--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "60s"]
    assert cronguard("run", "j", *options, "--", "true", env=env).returncode == 0
    file = tmp_path / "config.toml"
    with PingServer() as hook:
        file.write_text(f'[notify]\nurls = ["http://127.0.0.1:{hook.port}/hook"]\n')
        for minute in (15, 20):
            words = ("check", "--notify", "--config", str(file), "--at", f"2026-01-20T02:{minute}Z")
            assert cronguard(*words, env=environment(**base)).returncode == 2
            server.stop()
            server.start()
        assert len(hook.received) == 1
