"""The store of one machine: a SQLite file, and a flock for each lock name beside it.

Claims have no lease here that could run out under a living owner (`leased` is False): a `running` row counts as long as
its owner lives. The flock keeps two claimers from deciding at once and covers owners that cannot be judged (other pid
namespaces). SQL of SQLite 3.24. Errors name the file.
"""

from __future__ import annotations

import os
import sqlite3
import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from cronguard.core.model import ClaimAnswer, Claimed, ClaimRequest, Finish, Held
from cronguard.core.queue import Reserved, Take
from cronguard.errors import StoreDown, StoreError, UsageError
from cronguard.store import claiming, rows, schema, taking
from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Collision, Dialect, NoSchema, Result, Session, Statement
from cronguard.store.flock import HostLock, holder_of, note_of
from cronguard.store.waiting import Deadline, Pauses

if TYPE_CHECKING:  # not on the path of a run
    from cronguard.store.installing import Installed

T = TypeVar("T")

# The functions are ours (see _connect): SQLite's own clock has no microseconds before 3.42.
DIALECT = Dialect(
    now="clock_now()",
    lease_end="clock_after(?)",
    next_fence="max(fence + 1, clock_ms())",
    for_update="",  # whoever writes is alone
    for_key_share="",
    among="IN ({0})",
    each="json_each(?)",
    cell="json_extract(value, '$[{0}]')",
    instant_cell="json_extract(value, '$[{0}]')",
)


class SqliteStore(SqlStore):
    """See contract.py. The file appears at the first write, its directory too (0700, file 0600)."""

    leased = False
    dialect = DIALECT

    def __init__(self, path: str, network_fs: bool = False) -> None:
        self.path = os.path.abspath(path)
        self.name = f"sqlite:{self.path}"
        self.warnings = []
        self._journal = "delete" if network_fs else "wal"
        self._prepared = False
        self._connection: Optional[sqlite3.Connection] = None
        self._file: Optional[Tuple[int, int]] = None  # which one the connection has open
        self._locks: Dict[str, HostLock] = {}
        if network_fs:
            self.warnings.append(
                f"store: {self.path} is on a network or FUSE file system: its locks may not hold across hosts;"
                " put it on a local disk, or use PostgreSQL for several machines"
            )

    def prepare(self, within_s: float) -> None:
        if self._prepared:
            return
        deadline = Deadline(within_s)
        self._create_file()
        if self._standing(deadline) != schema.VERSION:
            self._upgrade(deadline)
        self._prepared = True

    def install(self, roles: Sequence[str], within_s: float) -> Installed:
        from cronguard.store.installing import Installed

        deadline = Deadline(within_s)
        _refuse_roles(roles)
        self._create_file()
        return Installed(self._upgrade(deadline), schema.VERSION)

    def script(self, roles: Sequence[str], within_s: float) -> List[str]:
        from cronguard.store.installing import sqlite_script

        _refuse_roles(roles)
        return sqlite_script(self._standing(Deadline(within_s)), self._journal)

    def finish(self, claim: Claimed, finish: Finish, within_s: float) -> bool:
        recorded = super().finish(claim, finish, within_s)
        self._release(claim.lock)
        return recorded

    def forget_job(self, job: str, within_s: float) -> bool:
        """The lock's file goes too, here alone: nobody else ever asks for it, and if so the rows would decide."""
        forgotten = super().forget_job(job, within_s)
        lock = self._host_lock(job)
        if forgotten and lock.try_acquire():
            lock.remove()
        return forgotten

    def close(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close()
            except sqlite3.Error:
                pass  # a checkpoint that fails now is done by the next process
            self._connection = None
        for lock in list(self._locks):
            self._release(lock)

    # Claims: the flock around the transaction.

    def _take(
        self, request: ClaimRequest, view: claiming.View, verdicts: claiming.Verdicts, deadline: Deadline
    ) -> Optional[ClaimAnswer]:
        lock = self._locks.get(request.lock) or self._host_lock(request.lock)
        if not lock.try_acquire(note_of(request)):
            # Whoever cannot be judged but holds the flock lives. Otherwise somebody is just taking or leaving it.
            return claiming.unjudgeable(view, verdicts, request.lock)
        self._locks[request.lock] = lock
        answer: Optional[ClaimAnswer] = None
        try:
            answer = super()._take(request, view, verdicts, deadline)
        finally:
            if not isinstance(answer, Claimed):
                self._release(request.lock)
        return answer

    def _claim_unsettled(self, request: ClaimRequest) -> ClaimAnswer:
        """The flock stayed busy and no row said why: name whom the file names, or say that nobody can be named."""
        lock = self._host_lock(request.lock)
        holder = holder_of(lock.holder_text())
        if holder is None:
            raise StoreDown(f"store: {lock.path}: locked by a process that does not say who it is")
        return Held(holder)

    def _take_in(self, session: Session, take: Take) -> List[Reserved]:
        return taking.take_alone(session, take, self.dialect)

    def _host_lock(self, lock: str) -> HostLock:
        return HostLock(os.path.realpath(self.path) + ".locks", lock)

    def _release(self, lock: str) -> None:
        held = self._locks.pop(lock, None)
        if held is not None:
            held.release()

    # Transactions.

    def _read(self, statements: Sequence[Statement], deadline: Deadline) -> List[Result]:
        if self._connection is None and not os.path.exists(self.path):
            return [Result([], 0) for _ in statements]  # looking creates nothing
        try:
            return self._repeat(lambda connection: _run(connection, "BEGIN", _reader(statements)), deadline)
        except NoSchema:
            return [Result([], 0) for _ in statements]

    def _transact(self, work: Callable[[Session], T], deadline: Deadline) -> T:
        def in_time(session: Session) -> T:
            """Whoever asked is told at the deadline that the store is down: a claim that went through after that (on a
            slow disk) would be nobody's."""
            value = work(session)
            if deadline.over:
                raise sqlite3.OperationalError("database is locked for too long")
            return value

        try:
            return self._repeat(lambda connection: _run(connection, "BEGIN IMMEDIATE", in_time), deadline)
        except NoSchema:
            raise StoreError(f"store: {self.name}: it has no tables", "cronguard init makes them") from None

    def _repeat(self, once: Callable[[sqlite3.Connection], T], deadline: Deadline) -> T:
        """SQLite's own busy handler is not asked in every case (recovery, change of journal mode): try again here."""
        pauses = Pauses(deadline, longest_s=0.1)
        while True:
            try:
                return once(self._connect(deadline))
            except sqlite3.Error as problem:
                _raise_if_final(problem, self.path)
                if not pauses.take():
                    raise StoreDown(
                        f"store: {self.path}: locked by another process for {deadline.within_s:.0f} s"
                    ) from None

    def _connect(self, deadline: Deadline) -> sqlite3.Connection:
        if self._connection is None:
            self._connection, self._file = _opened(self.path), _file_at(self.path)
        elif _file_at(self.path) != self._file:
            # What is written into a file without a name is lost in silence: better that it is spooled.
            raise StoreDown(f"store: {self.path}: the file was removed or replaced while it was in use")
        self._connection.execute(f"PRAGMA busy_timeout = {int(deadline.left_s * 1000)}")
        return self._connection

    # The file and its tables.

    def _standing(self, deadline: Deadline) -> int:
        """The version of its tables, 0 without any. StoreError if they are newer than this program."""
        (result,) = self._read([Statement(schema.VERSION_SQL)], deadline)
        version = schema.version_of(result)
        schema.is_current(version, self.name)
        return version

    def _upgrade(self, deadline: Deadline) -> int:
        """Bring the tables up to date; which version they had."""
        self._set_journal(deadline)
        return self._transact(_migrate(self.name), deadline)

    def _set_journal(self, deadline: Deadline) -> None:
        def switch(connection: sqlite3.Connection) -> None:
            connection.execute(f"PRAGMA journal_mode = {self._journal}").fetchall()

        self._repeat(switch, deadline)

    def _create_file(self) -> None:
        """SQLite would create it with the umask's mode. One that is there is never opened here: closing it again would
        drop the locks that another connection of this process has on it, and others would write over what that one
        reads (sqlite.org/howtocorrupt.html, section 2.2)."""
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            pass
        except OSError as problem:
            raise StoreError(f"store: {self.path}: {problem.strerror}", "name another file by --store") from None


def _opened(path: str) -> sqlite3.Connection:
    """A connection that is set up, or none that is left open."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error:
        connection.close()
        raise
    connection.create_function("clock_now", 0, lambda: rows.instant_text(_now()))
    connection.create_function(
        "clock_after", 1, lambda seconds: rows.instant_text(_now() + timedelta(seconds=seconds))
    )
    connection.create_function("clock_ms", 0, lambda: int(time.time() * 1000))
    return connection


class _SqliteSession:
    """A transaction of SQLite's; statements go one by one, there is no wire to save on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statements: Sequence[Statement], last: bool = False) -> List[Result]:
        return [self._run_one(statement) for statement in statements]

    def _run_one(self, statement: Statement) -> Result:
        values = [rows.instant_text(value) if isinstance(value, datetime) else value for value in statement.values]
        cursor = self._connection.execute(statement.sql, values)
        found = cursor.fetchall()
        return Result(found, cursor.rowcount if cursor.rowcount >= 0 else len(found))


def _run(connection: sqlite3.Connection, begin: str, work: Callable[[Session], T]) -> T:
    connection.execute(begin)
    try:
        value = work(_SqliteSession(connection))
        connection.execute("COMMIT")
        return value
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _reader(statements: Sequence[Statement]) -> Callable[[Session], List[Result]]:
    return lambda session: session.run(statements)


def _migrate(name: str) -> Callable[[Session], int]:
    """Bring the tables up to date, from which version is answered; another process may have done it while we waited."""

    def work(session: Session) -> int:
        (there,) = session.run([Statement("SELECT name FROM sqlite_master WHERE name = 'meta'")])
        version = schema.version_of(session.run([Statement(schema.VERSION_SQL)])[0]) if there.rows else 0
        if not schema.is_current(version, name):
            session.run([Statement(sql) for sql in schema.steps_from(version, schema.SQLITE_TYPES)])
        return version

    return work


def _refuse_roles(roles: Sequence[str]) -> None:
    if roles:
        raise UsageError("--grant: a SQLite file has no roles", "whoever may write it and its directory may run jobs")


def _raise_if_final(problem: sqlite3.Error, path: str) -> None:
    """Return only if the same may succeed a moment later. By message: error codes came with Python 3.11."""
    text = str(problem)
    if isinstance(problem, sqlite3.IntegrityError):
        raise Collision from problem
    if "json_each" in text:
        raise StoreError(f"store: {path}: this Python's SQLite has no JSON: {text}", "use another Python") from problem
    if "no such column" in text or "has no column" in text:
        raise StoreError(f"store: {path}: its tables have an older version: {text}", schema.BRING_UP) from problem
    if "no such table" in text:
        raise NoSchema from problem
    if "locked" in text or "busy" in text:
        return
    down = isinstance(problem, sqlite3.OperationalError) and "unable to open" not in text
    raise (StoreDown if down else StoreError)(f"store: {path}: {text}") from problem


def _file_at(path: str) -> Optional[Tuple[int, int]]:
    """Device and inode of what the path names now; None if there is nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _now() -> datetime:
    return datetime.now(timezone.utc)
