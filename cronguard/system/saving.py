"""Changing a file that a person wrote: the old text stays beside it, the new one is there as a whole or not at all.

The backup is made first, in the same directory, with the same owner and mode, and never over another file. In a cron.d
its name begins with a dot: cronie runs every file there but hidden ones, and would run all jobs twice. (Debian's cron
reads no name with a dot in it anywhere.)
"""

from __future__ import annotations

import os
import stat
from typing import Optional

from cronguard.errors import CronguardError
from cronguard.system.publishing import make_alike, replace, sync_directory

_READ_AS_CRONTABS = "cron.d"
_MOST_BACKUPS = 100


def save(path: str, old: bytes, new: bytes, stamp: str) -> str:
    """Put `new` in place of `old`; the backup's path. `stamp` goes into its name.

    CronguardError, with the file as it was, if it has another content by now, is no regular file, or cannot be written
    with its owner and mode. Through a symbolic link its target is replaced and the link stays.
    """
    target = os.path.realpath(path)
    try:
        like = os.stat(target)
        if not stat.S_ISREG(like.st_mode):
            raise CronguardError(f"cannot write: {path}: not a regular file")
        with open(target, "rb") as stream:
            if stream.read() != old:
                raise CronguardError(f"not written: {path}: somebody else has changed it just now", "try again")
        backup = keep_copy(target, old, stamp, like)
        replace(target, new, like)
    except OSError as error:
        raise CronguardError(f"cannot write: {path}: {(error.strerror or 'failed').lower()}") from None
    return backup


def keep_copy(target: str, data: bytes, stamp: str, like: Optional[os.stat_result] = None) -> str:
    """A new file `TARGET.bak-STAMP` with that content, ours alone without a `like`; its path. OSError if it fails."""
    directory, name = os.path.split(target)
    hidden = "." if os.path.basename(directory) == _READ_AS_CRONTABS and not name.startswith(".") else ""
    for number in range(_MOST_BACKUPS):
        path = os.path.join(directory, f"{hidden}{name}.bak-{stamp}" + (f"-{number + 1}" if number else ""))
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with open(descriptor, "wb") as stream:
            stream.write(data)
            if like is not None:
                make_alike(descriptor, like)
            stream.flush()
            os.fsync(descriptor)
        sync_directory(directory)
        return path
    raise FileExistsError(f"too many backups of {stamp}")
