"""`$CRONGUARD_OUTPUT`: a file where a command may say what it achieved: `items=418`, `errors=2`, `message=...`.

The command may do anything to that file; reading it never blocks, never follows a link, never fails, and never reads
more than 64 KiB (the last ones: the last value of a key wins).
"""

from __future__ import annotations

import os
import stat
from typing import Dict, Mapping, Optional

from cronguard.errors import CronguardError

KEYS = ("items", "errors", "message")
_LIMIT_BYTES = 1 << 16


def create_results(state_dir: str, run_id: str) -> str:
    """A new empty file that only this user can reach; its absolute path. Raises CronguardError."""
    folder = os.path.join(state_dir, "results")
    path = os.path.join(folder, run_id)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise CronguardError(f"results file: {path}: {os.strerror(error.errno or 0).lower()}") from error
    return path


def read_results(path: Optional[str]) -> Mapping[str, str]:
    """The known keys that were given, blanks around values removed. Whatever else is in there is passed over."""
    found: Dict[str, str] = {}
    for line in _last_bytes(path).decode("utf-8", "replace").replace("\0", "").splitlines():
        key, separator, value = line.partition("=")
        if separator and key.strip() in KEYS:
            found[key.strip()] = value.strip()
    return found


def add_results(path: Optional[str], found: Mapping[str, int]) -> None:
    """Tell the run that this is a part of, by its file, which must be there. Never raises."""
    try:
        fd = os.open(path or "", os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, "".join(f"{name}={value}\n" for name, value in found.items()).encode())
    except OSError:
        pass
    finally:
        os.close(fd)


def remove_results(path: Optional[str]) -> None:
    """Remove the file, whatever became of it. Never raises."""
    try:
        os.unlink(path or "")
    except OSError:
        pass


def forget_results(state_dir: str, run_id: str) -> None:
    """Remove what the attempts of a run left that nobody will read any more. Never raises."""
    folder = os.path.join(state_dir, "results")
    try:
        names = [name for name in os.listdir(folder) if name.startswith(run_id)]
    except OSError:
        return
    for name in names:
        remove_results(os.path.join(folder, name))


def _last_bytes(path: Optional[str]) -> bytes:
    try:
        # Not blocking: it may be a pipe by now.
        fd = os.open(path or "", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return b""
        start = max(0, status.st_size - _LIMIT_BYTES)
        text = os.pread(fd, _LIMIT_BYTES, start)
        return text.partition(b"\n")[2] if start else text  # the first line is cut
    except OSError:
        return b""
    finally:
        os.close(fd)
