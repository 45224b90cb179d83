"""The crontabs of this host, its cron, and what lint asks of it. Changes nothing, runs nothing but `crontab -l`."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import sys
from typing import Callable, Iterator, NamedTuple, Optional, Tuple

from cronguard.errors import UsageError

SYSTEM_WIDE = "/etc/crontab"
DROP_INS = "/etc/cron.d"
STDIN = "-"
LONGEST_BYTES = 1 << 24
_GENERATOR = "systemd/system-generators/systemd-crontab-generator"


class Source(NamedTuple):
    """A crontab as it was read. `path`: absolute; None for stdin and `crontab -l`. `owner`: a user crontab's user, as
    far as it is known."""

    name: str
    path: Optional[str]
    data: bytes
    owner: Optional[str] = None


def read_source(file: str) -> Source:
    """A named file, or stdin for `-`; UsageError if it cannot be read."""
    if file == STDIN:
        return Source("stdin", None, sys.stdin.buffer.read() if sys.stdin is not None else b"")
    try:
        return Source(file, os.path.abspath(file), _content(file))
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"cannot read: {file}: {why}") from error


def host_sources(owner: str) -> Iterator[Source]:
    """This user's crontab, /etc/crontab and the files of /etc/cron.d: those that there are and that we may read."""
    own = _own_crontab()
    if own is not None:
        yield Source(f"crontab:{owner}", None, own, owner)
    for path in (SYSTEM_WIDE, *_drop_ins()):
        try:
            yield Source(path, path, _content(path))
        except (OSError, ValueError):
            continue  # not there, or root's alone


def cron_kind() -> Optional[str]:
    """Which cron this host has, as `core.crons` names it; None when none is to be seen."""
    if any(os.path.exists(f"{folder}/{_GENERATOR}") for folder in ("/usr/lib", "/lib")):
        return "systemd"
    if os.path.exists("/usr/sbin/cron"):
        return "cronie" if os.path.exists("/var/lib/dpkg/info/cronie.list") else "debian"
    crond = shutil.which("crond", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if crond is not None:
        return "busybox" if os.path.basename(os.path.realpath(crond)) == "busybox" else "cronie"
    return None if shutil.which("supercronic") is None else "supercronic"


class Host:
    """The host's answers to lint's questions (`core.lint_model.HostFacts`)."""

    def is_directory(self, path: str) -> bool:
        return _status_is(path, stat.S_ISDIR)

    def has_command(self, name: str, search_path: str) -> bool:
        places = (name,) if "/" in name else tuple(f"{folder or '.'}/{name}" for folder in search_path.split(":"))
        return any(_status_is(place, stat.S_ISREG) and os.access(place, os.X_OK) for place in places)

    def home_of(self, user: str) -> Optional[str]:
        try:
            return pwd.getpwnam(user).pw_dir
        except (KeyError, ValueError, UnicodeError):
            return None


def _status_is(path: str, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _content(path: str) -> bytes:
    """A regular file's; ValueError for another one: a FIFO would hold us up for ever."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        data = file.read(LONGEST_BYTES + 1)
    if len(data) > LONGEST_BYTES:
        raise ValueError("larger than 16 MiB")
    return data


def _drop_ins() -> Tuple[str, ...]:
    try:
        names = sorted(os.listdir(DROP_INS))
    except OSError:
        return ()
    return tuple(f"{DROP_INS}/{name}" for name in names if not name.startswith("."))


def _own_crontab() -> Optional[bytes]:
    """What `crontab -l` prints; None without that program or a crontab."""
    program = shutil.which("crontab", path="/usr/bin:/bin")
    if program is None:
        return None
    import subprocess  # a looking command may load it

    try:
        done = subprocess.run((program, "-l"), stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
