"""What could start jobs on this host: every crontab that we may read, timers of systemd, and who follows them.

Runs nothing but `crontab -l` and `systemctl list-units`, each with a deadline. Which crontabs cron passes over is told
by the rules of Debian's cron(8): names in cron.d, owner and mode, a last line without its end.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from cronguard.core.checkup.lines import CronFile, Timer
from cronguard.core.crontab import SYSTEM, USER
from cronguard.system.crontabs import cron_kind
from cronguard.system.processes import read_file

_SPOOLS = ("var/spool/cron/crontabs", "var/spool/cron", "var/spool/cron/tabs", "var/cron/tabs", "etc/crontabs")
_UNITS = (
    "etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system",
    "lib/systemd/system", "etc/systemd/user",
)  # fmt: skip
_DAEMONS = ("cron", "crond", "fcron", "supercronic", "bcron-start")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_BYTES = 1 << 20
_PATIENCE_S = 4.0


class Found(NamedTuple):
    files: Tuple[CronFile, ...]
    timers: Tuple[Timer, ...]
    daemons: Tuple[str, ...]
    unread: Tuple[str, ...]


def look_around(user: str, environ: Mapping[str, str], root: str = "/") -> Found:
    """`root`: for tests, the directory that stands for /."""
    unread: List[str] = []
    files = [*_system_wide(root, unread), *_spooled(root, unread)]
    if not any(file.place == f"crontab of {user}" for file in files):
        files += _own(user, environ)
    return Found(tuple(files), tuple(_timers(root, environ)), _daemons(root), tuple(unread))


# --- crontabs ---


def _system_wide(root: str, unread: List[str]) -> Iterator[CronFile]:
    for path in (f"{root}etc/crontab", *_listed(f"{root}etc/cron.d", unread)):
        data = _content(path, unread)
        if data is not None:
            yield CronFile(path, SYSTEM, data, _why_ignored(path, data, root))


def _spooled(root: str, unread: List[str]) -> Iterator[CronFile]:
    for spool in _SPOOLS:
        for path in _listed(root + spool, unread):
            data = _content(path, unread)
            if data is not None:
                yield CronFile(f"crontab of {os.path.basename(path)}", USER, data, _unended(data))


def _own(user: str, environ: Mapping[str, str]) -> Iterator[CronFile]:
    """What `crontab -l` prints: it may read what its caller may not."""
    said = _said(["crontab", "-l"], environ)
    if said is not None:
        yield CronFile(f"crontab of {user}", USER, said, _unended(said))


def _why_ignored(path: str, data: bytes, root: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return ""
    if os.path.basename(os.path.dirname(path)) == "cron.d" and not _PLAIN_NAME.fullmatch(os.path.basename(path)):
        return "" if cron_kind() == "cronie" else "cron ignores a file of that name: letters, digits, _ and - only"
    if root == "/" and status.st_uid != 0:
        return "cron ignores it: it does not belong to root"
    if stat.S_IMODE(status.st_mode) & 0o022:
        return "cron ignores it: its group or others may write to it"
    return _unended(data)


def _unended(data: bytes) -> str:
    """Debian's cron drops the file, cronie the line (FR-32)."""
    last = data.rpartition(b"\n")[2].strip()
    return "" if not last or last.startswith(b"#") else "the file's last line has no newline: cron ignores the file"


def _listed(folder: str, unread: List[str]) -> List[str]:
    try:
        names = sorted(os.listdir(folder))
    except PermissionError:
        unread.append(folder)
        return []
    except OSError:
        return []
    return [f"{folder}/{name}" for name in names if not name.startswith(".") and os.path.isfile(f"{folder}/{name}")]


def _content(path: str, unread: List[str]) -> Optional[bytes]:
    if not os.path.isfile(path):
        return None
    data = read_file(path, _LONGEST_BYTES)
    if data is None:
        unread.append(path)
    return data


# --- systemd ---


def _timers(root: str, environ: Mapping[str, str]) -> Iterator[Timer]:
    folders = [root + folder for folder in _UNITS]
    home = environ.get("HOME", "")
    if root == "/" and os.path.isabs(home):
        folders.append(f"{home}/.config/systemd/user")
    units = _unit_files(folders)
    enabled = _enabled(folders)
    active = _active(environ) if root == "/" else None
    instances = {name for name in enabled if name.endswith(".timer")}
    for name in sorted({name for name in units if name.endswith(".timer")} | instances):
        if name.endswith("@.timer"):
            continue  # a template starts nothing by itself
        commands = _commands_of(name, units)
        if commands:
            yield Timer(name, commands, _why_idle(name, enabled, active))


def _why_idle(name: str, enabled: Set[str], active: Optional[Set[str]]) -> str:
    if active is not None and name in active:
        return ""
    if active is not None:
        return "not started" if name in enabled else "not enabled"
    return "" if name in enabled else "not enabled"


def _commands_of(timer: str, units: Mapping[str, Sequence[str]]) -> Tuple[str, ...]:
    """What its service executes, if cronguard is in it."""
    _, _, instance = timer[: -len(".timer")].partition("@")
    settings = _settings_of(timer, units)
    service = (settings.get("Unit") or [timer[: -len(".timer")] + ".service"])[-1]
    commands = _settings_of(service, units).get("ExecStart", [])
    told = [each.lstrip("@-:+!").replace("%i", instance).replace("%I", instance) for each in commands]
    return tuple(each for each in told if "cronguard" in each)


def _settings_of(name: str, units: Mapping[str, Sequence[str]]) -> Dict[str, List[str]]:
    """Settings of a unit, its template's if it has no file, drop-ins last; an empty value resets (systemd.unit(5))."""
    stem, at, rest = name.partition("@")
    template = f"{stem}@.{rest.rpartition('.')[2]}" if at else name
    paths = [*(units.get(name) or units.get(template) or ())[:1]]
    paths += [path for each in (template, name) for path in units.get(f"{each}.d", ())]
    found: Dict[str, List[str]] = {}
    for path in paths:
        text = (read_file(path, _LONGEST_BYTES) or b"").decode("utf-8", "replace").replace("\\\n", " ")
        for line in text.splitlines():
            key, equals, value = line.strip().partition("=")
            if equals and not key.startswith(("#", ";")):
                values = found.setdefault(key.strip(), [])
                values.append(value.strip()) if value.strip() else values.clear()
    return found


def _unit_files(folders: Sequence[str]) -> Dict[str, List[str]]:
    """Files by a unit's name, those that win first, and drop-ins by `NAME.d`."""
    found: Dict[str, List[str]] = {}
    for folder in folders:
        for entry in _entries(folder):
            if entry.name.endswith((".timer", ".service")):
                found.setdefault(entry.name, []).append(entry.path)
            elif entry.name.endswith((".timer.d", ".service.d")):
                found.setdefault(entry.name, []).extend(
                    sorted(each.path for each in _entries(entry.path) if each.name.endswith(".conf"))
                )
    return found


def _enabled(folders: Sequence[str]) -> Set[str]:
    """Names that are linked from some `*.wants` or `*.requires`: what `systemctl enable` does."""
    within = [each for folder in folders for each in _entries(folder)]
    groups = [each.path for each in within if each.name.endswith((".wants", ".requires"))]
    return {entry.name for group in groups for entry in _entries(group)}


def _active(environ: Mapping[str, str]) -> Optional[Set[str]]:
    """Timers that are running; None when systemd cannot be asked."""
    said = _said(["systemctl", "list-units", "--type=timer", "--state=active", "--plain", "--no-legend"], environ)
    return None if said is None else {line.split()[0] for line in said.decode("utf-8", "replace").splitlines() if line}


def _entries(folder: str) -> List[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


# --- who follows them ---


def _daemons(root: str) -> Tuple[str, ...]:
    names = set()
    for pid in (name for name in os.listdir(f"{root}proc") if name.isdecimal()) if os.path.isdir(f"{root}proc") else ():
        name = (read_file(f"{root}proc/{pid}/comm", 64) or b"").decode("utf-8", "replace").strip()
        if name in _DAEMONS or (name == "systemd" and pid == "1"):
            names.add(name)
        elif name == "busybox" and b"crond" in (read_file(f"{root}proc/{pid}/cmdline", 256) or b""):
            names.add("crond")
    return tuple(sorted(names))


def _said(words: Sequence[str], environ: Mapping[str, str]) -> Optional[bytes]:
    """What a program prints; None without it, for an error, or when it takes too long."""
    program = shutil.which(words[0], path=environ.get("PATH") or "/usr/bin:/bin")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *words[1:]], env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_PATIENCE_S, check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
