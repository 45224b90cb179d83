"""A second process that wants what a first one holds: its arguments are database, folder, lock and WAIT.

WAIT: seconds that the database may be busy. Prints `held` when it gets neither the database nor the lock's file, `free`
when it gets the database, else what is odd. POSIX locks are a process's, so that one process cannot try this alone.
Changes nothing.
"""

from __future__ import annotations

import sqlite3
import sys
from urllib.parse import quote

from cronguard.errors import StoreError
from cronguard.store.flock import HostLock


def main(database: str, folder: str, lock: str, wait: str) -> str:
    file = HostLock(folder, lock)
    try:
        database_is_free, file_is_free = _is_free(database, float(wait)), file.try_acquire()
    except (sqlite3.Error, StoreError) as problem:
        return str(problem)
    finally:
        file.release()
    if database_is_free == file_is_free:
        return "free" if file_is_free else "held"
    return "free" if database_is_free else "the database was held, its lock file was not: locks do not work there"


def _is_free(database: str, wait_s: float) -> bool:
    # mode=rw: it must not be made here.
    connection = sqlite3.connect(f"file:{quote(database)}?mode=rw", timeout=wait_s, isolation_level=None, uri=True)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as problem:
        if "locked" not in str(problem):
            raise
        return False
    finally:
        connection.close()
    return True


if __name__ == "__main__":
    print(main(*sys.argv[1:5]))
