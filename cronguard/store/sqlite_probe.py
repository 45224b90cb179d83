"""A SQLite store looked over: see store.probing.

The database and a lock file are held here while a second process tries both; the lock's file is removed again, which no
file of a job's lock ever is (FR-03). A store that is not there yet is not made: whether it could be is asked of its
directory, and locks are tried on a throw-away database there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import datetime
from typing import Tuple

from cronguard.core.checkup.facts import Starts, StoreFacts
from cronguard.errors import StoreError
from cronguard.store import schema, tally
from cronguard.store.dialect import NoSchema, Session, Statement
from cronguard.store.flock import HostLock
from cronguard.store.probing import Clock, Undo, trial_name, trial_row
from cronguard.store.sqlite import SqliteStore
from cronguard.store.waiting import Deadline

_SECOND_S = 4.0
# A job may be writing just when the lock has been given back.
_BUSY_S = 2


class SqliteProbe(SqliteStore):
    """See store.probing.Probe."""

    def starts(self, since_utc: datetime, within_s: float) -> Starts:
        return tally.starts_of(self._read(tally.statements(since_utc), Deadline(within_s)))

    def examine(self, now_utc: Clock, within_s: float) -> StoreFacts:
        facts = StoreFacts(self.name, self.leased, newest=schema.VERSION, exists=os.path.exists(self.path))
        if not facts.exists:
            return self._before_the_first_run(facts)
        deadline = Deadline(within_s)
        (result,) = self._read([Statement(schema.VERSION_SQL)], deadline)
        facts = facts._replace(version=schema.version_of(result))
        try:
            schema.is_current(facts.version, self.name)
        except StoreError as problem:
            return facts._replace(refused=problem.message, hint=problem.hint)
        problem_, held = self._tried(facts.version > 0, deadline)
        return facts._replace(write_problem=problem_, held=held)

    def _before_the_first_run(self, facts: StoreFacts) -> StoreFacts:
        folder = os.path.dirname(self.path)
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
            return facts._replace(write_problem=f"{folder} is not a directory that we may write to")
        if folder != os.path.dirname(self.path):
            return facts._replace(held="its directory is not there yet")
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as place:
            there = SqliteProbe(os.path.join(place, "trial.db"), self._journal == "delete")
            try:
                there.prepare(_SECOND_S)
                problem, held = there._tried(True, Deadline(_SECOND_S))
            except StoreError as error:
                problem, held = error.message.replace(there.path, self.path), ""
            finally:
                there.close()
        return facts._replace(write_problem=problem, held=held)

    def _tried(self, has_tables: bool, deadline: Deadline) -> Tuple[str, str]:
        """Why it cannot be written, and what a second process met."""
        lock = _TrialLock(os.path.realpath(self.path) + ".locks")

        def first(session: Session) -> None:
            session.run([trial_row(lock.name) if has_tables else Statement("CREATE TABLE trial (it INTEGER)")])
            raise Undo(self._met_by_second(lock, 0))

        try:
            with lock:
                self._transact(first, deadline)
        except Undo as end:
            if end.found != "held":
                return "", end.found
            return "", "held" if self._met_by_second(lock, _BUSY_S) == "free" else "stuck"
        except StoreError as problem:
            return problem.message, ""
        except NoSchema:
            return "it has no tables any more", ""
        finally:
            lock.remove()
        return "", "it could not be undone"

    def _met_by_second(self, lock: _TrialLock, wait_s: int) -> str:
        words = [sys.executable, "-m", "cronguard.store.lock_trial", self.path, lock.folder, lock.name, str(wait_s)]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            done = subprocess.run(
                words, env=environ, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECOND_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"the second process failed: {type(problem).__name__}"
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return lines[-1] if done.returncode == 0 and lines else "the second process failed"


class _TrialLock:
    """A lock file that nobody else knows of, and its folder if that was not there before."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.name = trial_name()
        self._had_folder = os.path.isdir(folder)
        self._lock = HostLock(folder, self.name)

    def __enter__(self) -> None:
        if not self._lock.try_acquire():
            raise StoreError(f"cannot lock: {self._lock.path}: somebody has it")

    def __exit__(self, *_exc: object) -> None:
        self._lock.release()

    def remove(self) -> None:
        for remove, path in ((os.unlink, self._lock.path), (os.rmdir, self.folder)):
            if path != self.folder or not self._had_folder:
                try:
                    remove(path)
                except OSError:
                    pass  # it was never made, or a job has made its own lock beside it
