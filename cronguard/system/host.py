"""Which machine, user and place this is. Every look-up works with an empty environment, no home and no /proc.

The working directory is asked for here and nowhere else: it may have been deleted under us (FR-34).
"""

from __future__ import annotations

import os
import pwd
import stat
from typing import Dict, Iterator, Mapping, Optional, Tuple

from cronguard.errors import ConfigError
from cronguard.system.processes import read_file

_ZONE_FOLDER = "/zoneinfo/"
# File systems where a lock of this host may mean nothing to another, or nothing at all (flock(2), FR-07).
_SHARED_KINDS = {
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "drvfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
}
_MOUNTS_BYTES = 1 << 22


def host_name(environ: Mapping[str, str]) -> str:
    """The node name, as uname(2) has it. With `CRONGUARD_TEST=1`, `CRONGUARD_TEST_HOST` instead."""
    if environ.get("CRONGUARD_TEST") == "1" and environ.get("CRONGUARD_TEST_HOST"):
        return environ["CRONGUARD_TEST_HOST"]
    return os.uname().nodename


def own_environment() -> Dict[str, str]:
    """The environment as we were given it. In the C locale Python adds an `LC_CTYPE` of its own to it (PEP 538), which
    a command must not see."""
    environ = dict(os.environ)
    if "LC_CTYPE" in environ and b"\0LC_CTYPE=" not in b"\0" + (_whole("/proc/self/environ") or b"\0LC_CTYPE="):
        del environ["LC_CTYPE"]
    return environ


def user_name() -> str:
    """Of the effective user; its number when it has no name (containers)."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def host_zone() -> Optional[str]:
    """The name of the host's time zone: TZ, /etc/timezone, the target of /etc/localtime; None when none tells.

    Whether such a zone exists is for the caller to find out. An empty TZ is UTC (tzset(3))."""
    text = os.environ.get("TZ")
    if text == "":
        return "UTC"
    if text is not None and not text.lstrip(":").startswith("/etc/localtime"):
        return _zone_of_path(text.lstrip(":"))
    lines = (read_file("/etc/timezone", 256) or b"").decode("utf-8", "replace").split()
    if lines:
        return lines[0]
    return _zone_of_path(os.path.realpath("/etc/localtime"))


def _zone_of_path(text: str) -> Optional[str]:
    """`/usr/share/zoneinfo/Europe/Rome` -> `Europe/Rome`; other paths tell no name."""
    if not text.startswith("/"):
        return text
    return text.partition(_ZONE_FOLDER)[2] or None


def state_dir(environ: Mapping[str, str]) -> str:
    """The absolute path of the state directory, which exists, is ours and is nobody else's to read.

    `CRONGUARD_STATE_DIR`; `/var/lib/cronguard` for root; else `$XDG_STATE_HOME/cronguard` or
    `~/.local/state/cronguard`, with the home of the password database when there is no HOME. Raises ConfigError."""
    path = state_path(environ)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise ConfigError([f"state directory: {path}: {why}"], "set CRONGUARD_STATE_DIR") from error
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError([f"state directory: {path}: not a directory"], "set CRONGUARD_STATE_DIR")
    if status.st_uid != os.geteuid():
        raise ConfigError(
            [f"state directory: {path}: belongs to {_name_of(status.st_uid)}, not to {user_name()}"],
            f"run as {_name_of(status.st_uid)}, or set CRONGUARD_STATE_DIR",
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError([f"state directory: {path}: not writable"], "set CRONGUARD_STATE_DIR")
    return path


def state_path(environ: Mapping[str, str]) -> str:
    """Where the state directory is or would be, for those who only look: nothing is made, nothing is asked of it."""
    given = environ.get("CRONGUARD_STATE_DIR")
    if given:
        return given if os.path.isabs(given) else os.path.join(working_directory(None), given)
    if os.geteuid() == 0:
        return "/var/lib/cronguard"
    # The specification wants relative paths to be passed over (XDG base directories, "must be absolute").
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(_home(environ), ".local/state")
    return os.path.join(base, "cronguard")


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        raise ConfigError(
            [f"state directory: neither HOME nor a password entry for user {os.geteuid()} says where"],
            "set CRONGUARD_STATE_DIR",
        ) from None


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def file_system_kind(path: str) -> Tuple[str, bool]:
    """The type of the file system that holds `path`, as mounted, and whether it is a network's or FUSE's.

    `("unknown", False)` where the system does not tell."""
    real = os.path.realpath(path)
    kind, longest = "unknown", ""
    for point, fs_type in _mounts():
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(longest):  # the later of two on one point hides the earlier
            kind, longest = fs_type, point
    return kind, kind in _SHARED_KINDS or kind.startswith("fuse")


def _mounts() -> Iterator[Tuple[str, str]]:
    """Mount points and types of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    for line in (_whole("/proc/self/mountinfo") or b"").splitlines():
        before, separator, after = line.partition(b" - ")
        fields = before.split(b" ")
        if separator and len(fields) > 4:
            yield os.fsdecode(_unescaped(fields[4])), os.fsdecode(after.split(b" ")[0])


def _unescaped(text: bytes) -> bytes:
    for code, plain in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        text = text.replace(code, plain)
    return text


def _whole(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read(_MOUNTS_BYTES)
    except OSError:
        return None


def working_directory(chdir: Optional[str]) -> str:
    """The real path that the command will run in: of `chdir` when given (it need not exist), else the present one.

    Raises ConfigError when the present one is needed and is gone."""
    if chdir is not None and os.path.isabs(chdir):
        return os.path.realpath(chdir)
    try:
        here = os.getcwd()
    except OSError as error:
        raise ConfigError(
            [f"working directory: it has been deleted under us: {os.strerror(error.errno or 0).lower()}"],
            "start from a directory that exists, or give --chdir an absolute path",
        ) from error
    return os.path.realpath(os.path.join(here, chdir or ""))
