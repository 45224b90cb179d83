"""Directories and files as `doctor` judges them: whose, how open, how full, on what. Changes nothing."""

from __future__ import annotations

import os
import pwd
import stat
from typing import Iterator, List, Optional, Tuple

from cronguard.core.checkup.facts import Folder, Private, Program
from cronguard.system import host

_CRON_PATH = "/usr/bin:/bin"


def folder_at(path: str) -> Folder:
    """A directory that is there, or the place where it would be made."""
    nearest = next(place for place in _upwards(path) if os.path.lexists(place) or place == "/")
    status, room = os.stat(nearest), os.statvfs(nearest)
    kind, is_shared = host.file_system_kind(nearest)
    return Folder(
        path=path,
        exists=nearest == path,
        nearest=nearest,
        writable=os.path.isdir(nearest) and os.access(nearest, os.W_OK | os.X_OK),
        owner=name_of(status.st_uid),
        is_ours=status.st_uid == os.geteuid(),
        mode=stat.S_IMODE(status.st_mode),
        free_bytes=room.f_bavail * room.f_frsize,
        free_inodes=room.f_favail if room.f_files else None,
        kind=kind,
        is_shared=is_shared,
    )


def private_file(path: str, what: str, has_secret: bool) -> Private:
    """A file whose content is ours alone to decide on, and to read if it `has_secret`."""
    path = os.path.abspath(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return Private(path, what, has_secret, (getattr(error, "strerror", None) or "not a path").lower())
    problem = "" if os.access(path, os.R_OK) else "not ours to read"
    above = list(_upwards(os.path.dirname(os.path.realpath(path))))
    return Private(
        path, what, has_secret, problem,
        mode=stat.S_IMODE(status.st_mode),
        owner=name_of(status.st_uid),
        is_trusted=status.st_uid in (0, os.geteuid()),
        is_reachable=all(_mode(place) & 0o001 for place in above),
        open_folder=next((place for place in above if _is_open(_mode(place))), ""),
    )


def _is_open(mode: int) -> bool:
    """Everybody may replace what is in it; a sticky directory keeps what is another's."""
    return bool(mode & 0o002) and not mode & stat.S_ISVTX


def program_of(job: str, words: Tuple[str, ...], chdir: Optional[str], path: Optional[str]) -> Program:
    """The program that a command starts. `path`: the PATH that it will be looked for in; None: cron's own."""
    links = _links(chdir) if chdir and os.path.isabs(chdir) else []
    folder = os.path.realpath(chdir) if chdir and os.path.isabs(chdir) else ""
    if folder and not os.path.isdir(folder):
        leads = f", which leads to {folder}" if links else ""
        return Program(job, "", f"the directory {chdir} is not there{leads}", tuple(links), folder)
    if not words:
        return Program(job, "", "", tuple(links), folder)
    name = words[0]
    if "/" not in name:
        return _in_path(Program(job, name, "", tuple(links), folder), path if path is not None else _CRON_PATH)
    if not os.path.isabs(name):
        if not folder:
            return Program(job, name, "", tuple(links), folder)  # from where it is started, nobody knows
        name = os.path.join(folder, name)
    links += _links(name)
    return Program(job, name, _why_not(name), tuple(links), folder or os.path.dirname(os.path.realpath(name)))


def _in_path(program: Program, path: str) -> Program:
    """The first that can be executed, as execvp(3) goes on behind one that cannot."""
    places = [os.path.join(folder or ".", program.path) for folder in path.split(":")]
    if any(not _why_not(place) for place in places):
        return program
    return program._replace(problem=f"{program.path} is not in PATH={path}")


def _why_not(path: str) -> str:
    if not os.path.lexists(path):
        return f"{path} is not there"
    if not os.path.exists(path):
        return f"{path} leads to {os.path.realpath(path)}, which is not there"
    return "" if os.path.isfile(path) and os.access(path, os.X_OK) else f"{path} cannot be executed"


def _links(path: str) -> List[str]:
    """Symlinks on the way, the outermost first; those of the system itself (/bin, /lib) do not count."""
    found = [place for place in _upwards(path) if os.path.islink(place) and os.path.dirname(place) != "/"]
    return [place for place in reversed(found) if not place.startswith(("/usr/", "/etc/alternatives/"))]


def name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def is_container() -> bool:
    """By the marks that Docker, Podman and systemd leave."""
    return any(os.path.exists(mark) for mark in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container"))


def spooled(state_dir: str, own: str) -> Tuple[int, int, int, int]:
    """Files below the spool: reports for this store (`own`: its directory) and for others, set aside, messages."""
    reports = elsewhere = aside = messages = 0
    for folder, _, names in os.walk(os.path.join(state_dir, "spool")):
        waiting = sum(name.endswith(".json") for name in names)
        aside += sum(name.endswith(".bad") for name in names)
        if os.path.basename(folder) == "outbox":
            messages += waiting
        elif folder == own:
            reports += waiting
        else:
            elsewhere += waiting
    return reports, elsewhere, aside, messages


def _mode(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return 0


def _upwards(path: str) -> Iterator[str]:
    """The path and everything above it."""
    path = os.path.normpath(path)
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above
