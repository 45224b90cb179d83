"""Files that others read while they are written: a reader sees the old one or the new one, whole, never a part.

By rename(2) within a directory, after fsync(2): a power cut leaves one of the two. The new file is readable for all as
far as the umask allows, for who writes (cron) is seldom who reads (a web server, node_exporter).
"""

from __future__ import annotations

import os
import stat
from typing import Optional

from cronguard.errors import CronguardError

_MODE = 0o644


def publish(path: str, text: str) -> None:
    """Replace the file at that path. CronguardError, with nothing changed or left behind, when that cannot be done.

    Through a symbolic link its target is replaced. What is no regular file, such as /dev/null or a fifo, is written to.
    """
    data = text.encode("utf-8", "backslashreplace")
    try:
        target = os.path.realpath(path)
        if os.path.lexists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            with open(target, "wb") as stream:
                stream.write(data)
        else:
            replace(target, data)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CronguardError(f"cannot write: {path}: {(why or 'failed').lower()}") from None


def replace(target: str, data: bytes, like: Optional[os.stat_result] = None) -> None:
    """Replace a regular file, or make a new one; OSError, with nothing changed, if that fails. `like`: whose owner,
    group and mode it gets; nobody else can read it before."""
    directory, name = os.path.split(target)
    # Hidden and of another ending: node_exporter reads every *.prom, a web server may list what is there.
    temporary = os.path.join(directory, f".{name[:200]}.{os.getpid()}.tmp")
    mode = _MODE if like is None else 0o600
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with open(descriptor, "wb") as stream:
            stream.write(data)
            if like is not None:
                make_alike(stream.fileno(), like)
            stream.flush()
            os.fsync(descriptor)
        os.replace(temporary, target)
    except OSError:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    sync_directory(directory)


def make_alike(descriptor: int, like: os.stat_result) -> None:
    """Owner and group before the mode, which a change of owner may cut."""
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
