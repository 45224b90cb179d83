"""Locks of this host: flock(2) on a file that is as good as never unlinked and whose existence means nothing.

The descriptor is close-on-exec and belongs to one process; nobody inherits it, since the keeper is forked before any
store is opened and commands are started by the keeper. Never blocks. A lock says that nobody else on this host is at
it, not that the job may run: that is what the rows are for.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from datetime import datetime
from typing import Optional

from cronguard.core.model import ClaimRequest, Holder
from cronguard.errors import StoreError

_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
# A note longer than this was not written by us.
_NOTE_BYTES = 4096


class HostLock:
    """The lock of that name in that directory. `try_acquire` and `release` may alternate as often as wanted."""

    def __init__(self, directory: str, lock: str) -> None:
        self.path = os.path.join(directory, lock_file_name(lock))
        self._fd: Optional[int] = None

    def try_acquire(self, note: str = "") -> bool:
        """Take the lock if it is free; `note` says who we are, for those who find it taken.

        Raises StoreError where the file system cannot lock (NFS, FUSE: EBADF, ENOLCK, ENOSYS; FR-07): without a lock
        nothing may be started.
        """
        if self._fd is not None:
            return True
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as problem:
            raise self._cannot(problem) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(fd)
            if problem.errno in _BUSY:
                return False
            raise self._cannot(problem) from None
        self._fd = fd
        self._write(note)
        return True

    def release(self) -> None:
        """Let go; harmless without the lock. The file stays: unlinking it would give two processes the lock (FR-03)."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def remove(self) -> None:
        """Unlink the file while the lock is ours: only for a name that will never be asked for again (FR-03)."""
        if self._fd is not None:
            os.unlink(self.path)
            self.release()

    def holder_text(self) -> str:
        """What the latest owner wrote; empty if it wrote nothing that can be read."""
        try:
            with open(self.path, "rb") as file:
                return file.read(_NOTE_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def _write(self, note: str) -> None:
        """For readers only: that it cannot be written (disk full) does not take the lock away."""
        assert self._fd is not None
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, note.encode("utf-8", "replace"), 0)
        except OSError:
            pass

    def _cannot(self, problem: OSError) -> StoreError:
        return StoreError(
            f"cannot lock: {self.path}: {problem.strerror}",
            "put the store or the state directory on a local file system, or use PostgreSQL",
        )


def note_of(request: ClaimRequest) -> str:
    """What a claimer leaves in the file."""
    owner = request.owner
    since = request.now_utc.isoformat()
    return json.dumps(
        {"run_id": request.run_id, "job": request.facts.job, "host": owner.host, "pid": owner.pid, "since": since}
    )


def holder_of(note: str) -> Optional[Holder]:
    """Whom a note names; None for one that names nobody."""
    try:
        read = json.loads(note)
        since = datetime.fromisoformat(read["since"])
        return Holder(str(read["run_id"]), str(read["job"]), str(read["host"]), int(read["pid"]), since)
    except (KeyError, TypeError, ValueError):
        return None


def lock_file_name(lock: str) -> str:
    """A readable file name, one to one: what a path cannot carry gets a hash behind a `~`, which no plain name has."""
    if 0 < len(lock) <= 100 and not lock.startswith(".") and _PLAIN.issuperset(lock):
        return f"{lock}.lock"
    import hashlib  # 3 ms that plain names do not pay

    slug = "".join(char if char in _PLAIN else "_" for char in lock[:40])
    return f"_{slug}~{hashlib.sha256(lock.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.lock"
