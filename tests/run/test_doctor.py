"""`doctor` on real stores, servers, files and crontabs: what it finds, and that it leaves everything as it was."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

from cronguard.commands import doctor as doctor_of
from cronguard.core.model import Invocation
from cronguard.store import lock_trial
from cronguard.store.backend import SqlStore
from cronguard.store.flock import HostLock
from cronguard.store.opening import without_schema
from cronguard.store.postgres_probe import PostgresProbe
from cronguard.store.spool import Spool
from cronguard.system import clockwork
from cronguard.workspace import open_workspace
from tests.support.claims import claimed, finish, report, request
from tests.support.cronguard import cronguard, environment, history
from tests.support.pingserver import PingServer
from tests.support.postgres import free_port, private_directory

pytestmark = pytest.mark.usual

ELSEWHERE = {"clock daemon", "alerts", "scheduled"}  # what the machine of the test may lack
STORE_ITEMS = ("store", "schema", "lock", "pooler", "clock")


def doctor(
    *names: str, store: Optional[str] = None, config: Optional[Path] = None, **variables: str
) -> Tuple[str, Dict[str, Any]]:
    """The worst state and the JSON, without the start of a Python for each."""
    invocation = Invocation(store, str(config) if config else None, None, False, environment(**variables))
    document = doctor_of.as_json(doctor_of.doctor(names, invocation, lambda _: None))
    return str(document["state"]), document


def items(document: Dict[str, Any], name: str) -> List[Dict[str, Any]]:
    return [item for item in document["items"] if item["name"] == name]


def worst(document: Dict[str, Any], name: str) -> str:
    order = ["ok", "skipped", "warning", "failure"]
    return max((item["state"] for item in items(document, name)), key=order.index)


def texts(document: Dict[str, Any], name: str) -> str:
    return "\n".join(f"{item['text']} -> {item['what_to_do']}" for item in items(document, name))


def tree(folder: Path) -> Dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mode for path in folder.rglob("*")}


@pytest.fixture
def crontab(tmp_path: Path) -> Callable[[str], str]:
    """A `crontab` that prints this; returns the PATH that finds it."""

    def made(text: str) -> str:
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "tab").write_text(text)
        program = tmp_path / "bin" / "crontab"
        program.write_text(f"#!/bin/sh\nexec cat {tmp_path}/tab\n")
        program.chmod(0o755)
        return f"{tmp_path}/bin:/usr/bin:/bin"

    return made


# --- the store ---


def test_healthy_store_passes_and_is_left_as_it_was(
    store: SqlStore, store_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """FR-52: with PgBouncer in between, which is detected and does no harm."""
    behind_pooler = "pgbouncer" in request.node.name
    before = tree(tmp_path)
    code, found = doctor(store=store_url)
    assert {name: worst(found, name) for name in STORE_ITEMS} == dict.fromkeys(STORE_ITEMS, "ok"), found
    assert code == "ok" or {item["name"] for item in found["items"] if item["state"] == "warning"} <= ELSEWHERE
    assert ("in between" in texts(found, "pooler")) == behind_pooler
    assert store._read([_count("locks"), _count("jobs"), _count("runs")], _soon()) == [([(0,)], 1)] * 3
    after = tree(tmp_path)
    assert {path for path in after if not path.endswith(("-wal", "-shm"))} == {
        path for path in before if not path.endswith(("-wal", "-shm"))
    }


def _count(table: str) -> Any:
    from cronguard.store.dialect import Statement

    return Statement(f"SELECT COUNT(*) FROM {table}")


def _soon() -> Any:
    from cronguard.store.waiting import Deadline

    return Deadline(10)


def test_store_that_is_not_there_yet_is_not_made(store_url: str, tmp_path: Path) -> None:
    code, found = doctor(store=store_url)
    assert code != "failure"
    assert "no tables yet" in texts(found, "schema")
    assert worst(found, "store") == "ok"
    assert not (tmp_path / "store").exists()


def test_role_or_server_that_only_reads_is_a_failure(
    postgres_url: str, admin_dsn: str, schema_name: str, opened: Callable[[str], SqlStore]
) -> None:
    import psycopg

    opened(postgres_url)
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {schema_name} LOGIN")
        try:
            admin.execute(f"GRANT USAGE ON SCHEMA {schema_name} TO {schema_name}")
            admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema_name} TO {schema_name}")
            as_role = postgres_url.replace("postgres@", f"{schema_name}@")
            code, found = doctor(store=as_role)
            assert (code, worst(found, "store")) == ("failure", "failure")
            assert "permission denied" in texts(found, "store")
            assert "cronguard init" in texts(found, "store")
            admin.execute(f"ALTER ROLE {schema_name} SET default_transaction_read_only = on")
            code, found = doctor(store=as_role)
            assert (code, worst(found, "store")) == ("failure", "failure")
            assert "read-only" in texts(found, "store")
        finally:
            admin.execute(f"DROP OWNED BY {schema_name}")
            admin.execute(f"DROP ROLE {schema_name}")


def test_unreachable_store_is_one_failure_and_the_rest_is_judged() -> None:
    url = f"postgresql://me:s3cret-pw@127.0.0.1:{free_port()}/app"
    done = cronguard("doctor", "--store", url)
    assert done.returncode == 1
    assert "s3cret-pw" not in done.stdout + done.stderr
    assert "FAILURE  store" in done.stdout
    assert "skipped  lock" in done.stdout
    assert "ok       state" in done.stdout


def test_newer_schema_is_a_failure_and_an_older_one_a_warning(sqlite_url: str, opened: Any) -> None:
    """FR-62."""
    opened(sqlite_url)
    database = sqlite3.connect(sqlite_url[len("sqlite:") :])
    for version, state in ((99, "failure"), (1, "warning")):
        with database:
            database.execute("UPDATE meta SET value = ?", (str(version),))
        overall, found = doctor(store=sqlite_url)
        assert worst(found, "schema") == overall == state
    database.close()


def test_two_databases_behind_one_name_are_found_not_exclusive(postgres_url: str, admin_dsn: str) -> None:
    """As behind a pooler that spreads connections over two primaries."""
    conninfo, schema_name = without_schema(postgres_url)
    probe = PostgresProbe(conninfo, schema_name, "store")
    probe._conninfo = admin_dsn.rpartition("/")[0] + "/template1"
    try:
        assert probe.examine(_now, 10).held == "free"
    finally:
        probe.close()


def _now() -> Any:
    from datetime import datetime, timezone

    return datetime.now(timezone.utc)


def test_second_process_tells_what_is_held(sqlite_url: str, opened: Any, tmp_path: Path) -> None:
    opened(sqlite_url)
    path, folder = sqlite_url[len("sqlite:") :], str(tmp_path / "locks")
    assert lock_trial.main(path, folder, "x", "0") == "free"
    lock = HostLock(folder, "x")
    assert lock.try_acquire()
    database = sqlite3.connect(path, isolation_level=None)
    try:
        assert lock_trial.main(path, folder, "x", "0") == "free"  # the lock's file alone does not help
        database.execute("BEGIN IMMEDIATE")
        assert lock_trial.main(path, folder, "x", "0") == "held"
    finally:
        database.close()
        lock.release()


def test_clock_of_the_database_is_held_against_ours(postgres_url: str) -> None:
    code, found = doctor(store=postgres_url, CRONGUARD_TEST="1", CRONGUARD_TEST_NOW="2026-01-20T02:00:00Z")
    assert (code, worst(found, "clock")) == ("failure", "failure")


def test_spool_is_delivered(store: SqlStore, store_url: str) -> None:
    """As by every run and check."""
    begun = request(job="spooled")
    claim = claimed(store, begun)
    store.close()
    invocation = Invocation(store_url, None, None, False, environment())
    spool = Spool(open_workspace(invocation, None).spool_dir)
    spool.save(report(begun, finish(), claim))
    _, found = doctor(store=store_url)
    assert spool.pending() == []
    assert worst(found, "spool") == "ok"
    (row,) = history("spooled", environment(CRONGUARD_STORE=store_url))
    assert row["status"] == "success"


# --- files ---


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that everybody may go through; pytest's own are closed."""
    place = private_directory("cg-doc-")
    place.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(place, 0, 0)
    yield place
    shutil.rmtree(place)


def test_secrets_that_others_can_read_and_files_that_they_can_write_are_failures(open_place: Path) -> None:
    config, token = open_place / "config.toml", open_place / "ping"
    token.write_text("http://127.0.0.1:1/secret-part\n")
    config.write_text(f'[jobs.x]\nping = "file:{token}"\ncommand = ["true"]\n')
    for mode, of_token, state in ((0o644, 0o600, "ok"), (0o644, 0o644, "failure"), (0o666, 0o600, "failure")):
        config.chmod(mode)
        token.chmod(of_token)
        _, found = doctor(config=config)
        assert worst(found, "config") == state, texts(found, "config")
    assert "secret-part" not in json.dumps(found)


def test_config_file_with_mistakes_is_an_item_and_not_the_end(tmp_path: Path) -> None:
    for text in ("[jobs.x]\ntimout = '1h'\n", "not toml at all"):
        (tmp_path / "c.toml").write_text(text)
        code, found = doctor(config=tmp_path / "c.toml")
        assert (code, worst(found, "config")) == ("failure", "failure")
        assert items(found, "state")


def test_open_state_directory_is_found(tmp_path: Path) -> None:
    for mode, state in ((0o755, "warning"), (0o777, "failure")):
        (tmp_path / "state").chmod(mode)
        assert worst(doctor()[1], "state") == state


def test_missing_release_and_program_are_failures(tmp_path: Path) -> None:
    """Article 4: the symlink to the live copy."""
    live = tmp_path / "live"
    live.symlink_to(tmp_path / "r1")
    config = tmp_path / "c.toml"
    config.write_text(f'[jobs.x]\nchdir = "{live}"\ncommand = ["./run"]\n')
    config.chmod(0o600)
    assert "r1" in texts(doctor(config=config)[1], "program")
    (tmp_path / "r1").mkdir()
    assert "run is not there" in texts(doctor(config=config)[1], "program")
    (tmp_path / "r1" / "run").write_text("#!/bin/sh\n")
    assert "cannot be executed" in texts(doctor(config=config)[1], "program")
    (tmp_path / "r1" / "run").chmod(0o755)
    assert worst(doctor(config=config)[1], "program") == "ok"


# --- heartbeats ---


def test_heartbeat_is_tried_without_a_ping_and_without_showing_it(tmp_path: Path) -> None:
    with PingServer() as server:
        (tmp_path / "c.toml").write_text(
            f'[jobs.up]\nping = "{server.check_url}"\n'
            f'[jobs.down]\nping = "http://127.0.0.1:{free_port()}/0123456789abcdef"\n'
            '[jobs.gone]\nping = "env:NO_SUCH_PING"\n'
        )
        done = cronguard("doctor", "--config", str(tmp_path / "c.toml"))
        assert server.received == []
    assert done.returncode == 1
    assert f"127.0.0.1:{server.port}/*** of up answers" in done.stdout
    assert "/*** of down: connection refused" in done.stdout
    assert "NO_SUCH_PING: not set" in done.stdout
    assert "0123456789abcdef" not in done.stdout + done.stderr
    assert server.check_url not in done.stdout


# --- clocks ---


def test_line_of_the_crontab_is_found_and_its_options_count(crontab: Callable[[str], str]) -> None:
    path = crontab("*/5 * * * * cronguard run billing --cron '*/5 * * * *' --timezone Europe/Rome -- no-such-program\n")
    _, found = doctor("billing", PATH=path)
    assert worst(found, "scheduled") in ("ok", "skipped")
    assert "may run for 1d" in texts(found, "timeout")
    assert "no-such-program is not in PATH=/usr/bin:/bin" in texts(found, "program")
    assert "crontab of" in texts(found, "zone")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("#*/5 * * * * cronguard run billing -- true\n", "commented out"),
        ("*/5 * * * * cronguard run billing -- true", "no newline"),
    ],
)
def test_line_that_no_cron_follows_is_a_warning(crontab: Callable[[str], str], line: str, why: str) -> None:
    """FR-32 for the second."""
    _, found = doctor("billing", PATH=crontab(line))
    assert worst(found, "scheduled") == "warning"
    assert why in texts(found, "scheduled")


def test_job_that_a_clock_started_here_and_that_has_no_line_any_more_is_a_warning(sqlite_url: str) -> None:
    cronguard("run", "billing", "--store", sqlite_url, "--every", "5m", "--", "true")
    _, found = doctor("billing", store=sqlite_url)
    assert worst(found, "scheduled") == "warning"
    assert "a clock on this host last started it" in texts(found, "scheduled")


def test_two_starts_of_each_slot_are_found(store_url: str, crontab: Callable[[str], str]) -> None:
    """Article 2, by the rows: two schedulers after a deploy; and by the lines."""
    for _ in range(2):
        cronguard(
            "run", "billing", "--store", store_url, "--cron", "0 * * * *", "--timezone", "UTC", "--", "true",
            env=environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW="2026-01-20T02:00:01Z"),
        )
    line = "0 * * * * cronguard run billing -- true\n"
    _, found = doctor(
        store=store_url, CRONGUARD_TEST="1", CRONGUARD_TEST_NOW="2026-01-20T04:00:00Z", PATH=crontab(line * 2)
    )
    assert "started 1 slot of billing more than once within a minute" in texts(found, "schedulers")
    assert "by several lines here" in texts(found, "schedulers")


def test_every_place_of_a_host_is_looked_at(tmp_path: Path) -> None:
    """Debian's rules for cron.d, other users' crontabs, timers with templates and drop-ins."""
    root = f"{tmp_path}/root/"
    line = "* * * * * root cronguard run {} -- true\n"
    for path, text in {
        "etc/crontab": line.format("a"),
        "etc/cron.d/app": line.format("b"),
        "etc/cron.d/app.conf": line.format("c"),
        "var/spool/cron/crontabs/deploy": "* * * * * cronguard run d -- true\n",
        "etc/systemd/system/cronguard@.service": "[Service]\nExecStart=/usr/bin/cronguard \\\n  run %i\n",
        "etc/systemd/system/cronguard@.timer": "[Timer]\nOnCalendar=daily\n",
        "etc/systemd/system/off.timer": "[Timer]\nUnit=work.service\n",
        "etc/systemd/system/work.service": "[Service]\nExecStart=/bin/other\n",
        "etc/systemd/system/work.service.d/x.conf": "[Service]\nExecStart=\nExecStart=-cronguard run f\n",
        "proc/1/comm": "systemd\n",
        "proc/77/comm": "cron\n",
    }.items():
        Path(root + path).parent.mkdir(parents=True, exist_ok=True)
        Path(root + path).write_text(text)
        Path(root + path).chmod(0o644)
    wants = Path(root) / "etc/systemd/system/timers.target.wants"
    wants.mkdir()
    (wants / "cronguard@e.timer").symlink_to("../cronguard@.timer")
    found = clockwork.look_around("nobody-here", {"PATH": "/nowhere"}, root)
    ignored = {os.path.basename(file.place): bool(file.ignored) for file in found.files}
    assert ignored == {"crontab": False, "app": False, "app.conf": True, "crontab of deploy": False}
    assert {(timer.name, timer.commands, timer.problem) for timer in found.timers} == {
        ("cronguard@e.timer", ("/usr/bin/cronguard    run e",), ""),
        ("off.timer", ("cronguard run f",), "not enabled"),
    }
    assert found.daemons == ("cron", "systemd")


def test_unknown_job_is_refused() -> None:
    done = cronguard("doctor", "bilingsync")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "no such job: bilingsync" in done.stderr


def test_json_and_exit_code_of_the_command(sqlite_url: str) -> None:
    done = cronguard("doctor", "--json", "--store", sqlite_url)
    document = json.loads(done.stdout)
    assert (done.returncode, document["version"], document["jobs"]) == (0, 1, 0)
    assert set(document["items"][0]) == {"name", "state", "text", "what_to_do", "job"}
