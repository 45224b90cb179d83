"""What only the SQLite store has: a file, locks of the host beside it, a writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import pytest

from cronguard.core.model import Claimed, Held
from cronguard.errors import StoreDown, StoreError
from cronguard.store.backend import SqlStore
from cronguard.store.flock import HostLock, lock_file_name
from cronguard.store.opening import open_store
from tests.support.claims import ALIVE, UNKNOWN, WITHIN_S, claimed, facts, finish, now, request, row_of
from tests.support.processes import ROOT

Opened = Callable[[str], SqlStore]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store" / "cronguard.db"


@pytest.fixture
def store(file: Path, opened: Opened) -> SqlStore:
    return opened(f"sqlite:{file}")


def test_file_and_directory_are_private(store: SqlStore, file: Path) -> None:
    store.finish(claimed(store, request()), finish(), WITHIN_S)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    for each in file.parent.rglob("*"):
        assert stat.S_IMODE(each.stat().st_mode) == (0o700 if each.is_dir() else 0o600), each


def test_directory_that_exists_keeps_its_mode(file: Path, opened: Opened) -> None:
    file.parent.mkdir(mode=0o755)
    opened(f"sqlite:{file}")
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o755


def test_commits_are_durable_and_readers_never_wait(store: SqlStore, file: Path) -> None:
    connection = sqlite3.connect(str(file))
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # type: ignore[attr-defined]


def test_network_file_system_gets_no_wal_and_a_warning(file: Path) -> None:
    """FR-07: WAL needs shared memory between all who open the file."""
    store = open_store(f"sqlite:{file}", network_fs=True)
    store.prepare(WITHIN_S)
    assert "network" in store.warnings[0]
    assert str(file) in store.warnings[0]
    connection = sqlite3.connect(str(file))
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    claimed(store, request())
    store.close()


def test_lock_file_is_close_on_exec_named_by_the_lock_and_stays(store: SqlStore, file: Path) -> None:
    """FR-01, FR-03."""
    lock_file = Path(f"{file}.locks") / "job.lock"
    claim = claimed(store, request())
    fds = [int(fd) for fd in os.listdir("/proc/self/fd") if _target(fd) == str(lock_file)]
    assert fds
    assert all(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for fd in fds)
    seen = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True, close_fds=False)
    assert str(lock_file) not in seen.stdout
    store.finish(claim, finish(), WITHIN_S)
    assert lock_file.exists()


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def test_lock_is_of_the_file_and_not_of_a_link_to_it(store: SqlStore, file: Path, opened: Opened) -> None:
    link = file.parent.parent / "link.db"
    link.symlink_to(file)
    claimed(store, request("one", job="a", lock="shared"))
    assert isinstance(opened(f"sqlite:{link}").claim(request("two", job="b", lock="shared"), ALIVE, WITHIN_S), Held)
    assert not Path(f"{link}.locks").exists()


def test_lock_file_deleted_by_hand_lets_nobody_in(store: SqlStore, file: Path, opened: Opened) -> None:
    """FR-03: the row decides."""
    claimed(store, request("one"))
    for each in Path(f"{file}.locks").iterdir():
        each.unlink()
    assert isinstance(opened(f"sqlite:{file}").claim(request("two"), ALIVE, 0.5), Held)


def test_lock_files_left_behind_mean_nothing(store: SqlStore, file: Path) -> None:
    """FR-05."""
    directory = Path(f"{file}.locks")
    directory.mkdir(exist_ok=True)
    (directory / "job.lock").write_text("{}")
    claimed(store, request())


def test_lock_without_a_running_row_is_held_by_whom_the_file_names(store: SqlStore, file: Path, opened: Opened) -> None:
    """Between the locking and the row; or by a process whose row was removed by hand."""
    first = request()
    claimed(store, first)
    connection = sqlite3.connect(str(file))
    connection.execute("DELETE FROM runs")
    connection.commit()
    connection.close()
    answer = opened(f"sqlite:{file}").claim(request(), ALIVE, 0.3)
    assert isinstance(answer, Held)
    assert (answer.holder.run_id, answer.holder.since_utc) == (first.run_id, first.now_utc)


def test_lock_held_by_nobody_who_says_so_is_no_lock_held(store: SqlStore, file: Path) -> None:
    lock = HostLock(f"{file}.locks", "job")
    assert lock.try_acquire()
    with pytest.raises(StoreDown, match=r"job\.lock"):
        store.claim(request(), ALIVE, 0.3)
    lock.release()
    claimed(store, request())


def test_unknown_owner_who_holds_the_flock_is_never_replaced(store: SqlStore, file: Path, opened: Opened) -> None:
    """An owner in another container cannot be judged, but its lock can be felt; its lease is never renewed here."""
    wish = request("one", lease_s=0.0)
    claimed(store, wish)
    answer = opened(f"sqlite:{file}").claim(request("two"), UNKNOWN, WITHIN_S)
    assert isinstance(answer, Held)
    assert answer.holder.run_id == wish.run_id
    store.close()
    claimed(opened(f"sqlite:{file}"), request("two"), UNKNOWN)


def test_living_owner_is_believed_whatever_the_clock_says(store: SqlStore, file: Path, opened: Opened) -> None:
    """FR-78."""
    claimed(store, request("one", lease_s=0.0))
    assert isinstance(opened(f"sqlite:{file}").claim(request("two"), ALIVE, 0.5), Held)


@pytest.mark.parametrize("code", [errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_file_system_that_cannot_lock_starts_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """FR-07."""

    def refuse(_fd: int, operation: int) -> None:
        assert operation & fcntl.LOCK_NB, "flock might wait"
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match="cannot lock") as caught:
        store.claim(request(), ALIVE, WITHIN_S)
    assert not isinstance(caught.value, StoreDown)
    assert store.history("job", 9, (), None, WITHIN_S) == []


_EXCLUSIVE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = " + sys.argv[2])
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("COMMIT")
connection.close()
"""


@pytest.mark.parametrize("mode", ["NORMAL", "EXCLUSIVE"])
def test_store_locked_by_another_process_is_waited_for_then_down(store: SqlStore, file: Path, mode: str) -> None:
    """FR-64; with locking mode EXCLUSIVE even readers are shut out."""
    store.close()
    blocker = subprocess.Popen(
        [sys.executable, "-c", _EXCLUSIVE, str(file), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert blocker.stdout is not None
    assert blocker.stdin is not None
    try:
        assert blocker.stdout.readline() == b"locked\n"
        began = time.monotonic()
        with pytest.raises(StoreDown, match=str(file)):
            store.claim(request(), ALIVE, 0.5)
        assert 0.4 <= time.monotonic() - began < 3.0
        blocker.stdin.close()
        claimed(store, request())
    finally:
        blocker.kill()
        blocker.wait()
        blocker.stdout.close()


def test_refused_claim_leaves_the_lock_free(store: SqlStore, file: Path) -> None:
    wish = request("one")
    store.finish(claimed(store, wish), finish(), WITHIN_S)
    assert not isinstance(store.claim(request("one"), ALIVE, WITHIN_S), Claimed)
    assert HostLock(f"{file}.locks", "job").try_acquire()


def test_file_that_is_no_database_is_named(file: Path, opened: Opened) -> None:
    file.parent.mkdir()
    file.write_text("not a database, and long enough to be seen as none" * 100)
    with pytest.raises(StoreError, match=str(file)) as caught:
        opened(f"sqlite:{file}")
    assert not isinstance(caught.value, StoreDown)


def test_path_that_cannot_be_is_named(tmp_path: Path, opened: Opened) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/x\.db"):
        opened(f"sqlite:{tmp_path}/file/x.db")
    with pytest.raises(StoreError, match=str(tmp_path)):
        opened(f"sqlite:{tmp_path}")


def test_newer_schema_is_refused(store: SqlStore, file: Path, opened: Opened) -> None:
    """FR-62: old and new cronguard side by side."""
    connection = sqlite3.connect(str(file))
    connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="version 99"):
        opened(f"sqlite:{file}")


def test_tables_gone_while_running_is_an_error_in_words(store: SqlStore, file: Path) -> None:
    connection = sqlite3.connect(str(file))
    connection.execute("DROP TABLE runs")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="tables"):
        store.claim(request(), ALIVE, WITHIN_S)


def test_library_without_json_is_an_error_in_words(store: SqlStore) -> None:
    """It was an option before SQLite 3.38."""
    store.dialect = store.dialect._replace(each="json_each_that_is_not_there(?)")
    with pytest.raises(StoreError, match="has no JSON") as caught:
        store.find_items("job", ["a"], WITHIN_S)
    assert not isinstance(caught.value, StoreDown)


def test_closed_store_opens_again_by_itself(store: SqlStore) -> None:
    claim = claimed(store, request())
    store.close()
    assert store.finish(claim, finish(), WITHIN_S)
    assert row_of(store, claim.run_id).status == "success"


@pytest.mark.parametrize(
    "lock", ["", ".", "..", ".hidden", "a/b", "../../etc/passwd", "caf\u00e9", "x" * 300, "a\0b", "a~b"]
)
def test_any_lock_name_is_a_file_name_of_its_own(lock: str) -> None:
    name = lock_file_name(lock)
    assert "/" not in name
    assert "\0" not in name
    assert len(name.encode()) < 200
    assert not name.startswith(".")
    assert name not in {lock_file_name("a_b"), lock_file_name("_"), lock_file_name("x" * 100)}


def test_plain_lock_name_is_readable() -> None:
    assert lock_file_name("nightly-export") == "nightly-export.lock"


def test_second_connection_of_a_process_costs_the_first_none_of_its_locks(sqlite_url: str, opened: Opened) -> None:
    """POSIX locks belong to the process: closing any descriptor of the file drops them all. Then the next process that
    leaves takes itself for the last one, removes the log that the first connection reads, and the two drift apart."""
    first = opened(sqlite_url)
    first.remember(facts("before"), now(), WITHIN_S)
    opened(sqlite_url)
    elsewhere = f"""
from cronguard.store.opening import open_store
from tests.support.claims import facts, now
store = open_store({sqlite_url!r})
store.prepare(5)
store.remember(facts("elsewhere"), now(), 5)
store.close()
"""
    subprocess.run([sys.executable, "-c", elsewhere], check=True, cwd=ROOT)
    assert [row.facts.job for row in first.jobs((), WITHIN_S)] == ["before", "elsewhere"]
    first.remember(facts("after"), now(), WITHIN_S)
    assert len(opened(sqlite_url).jobs((), WITHIN_S)) == 3
