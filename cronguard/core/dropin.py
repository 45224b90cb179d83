"""A drop-in that puts a guard before a service's command, as `systemctl edit` would be given it.

The command stays word for word: quotes, specifiers, variables and the prefixes `-`, `+`, `!`, `!!` and `:`, which then
count for the guard and what it starts. Where a guard would change what the service is, there is no drop-in but a
reason: `@` (the command's own name for itself), several commands, or a service that is started once and stays.
Sources: systemd.service(5) "Command lines", systemd.syntax(7), systemd.timer(5).
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Sequence, Tuple, Union

from cronguard.core.calendar import parse_calendar
from cronguard.core.checkup.lines import guarded_in
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

_PREFIXES = re.compile(r"[@:+!|-]*")
_STAYING = frozenset(("forking", "dbus", "notify", "notify-reload", "idle"))
_ZONE = re.compile(r"\s+([A-Z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*)$")
_OTHER_CLOCKS = ("OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec")
_SANDBOX = ("ProtectSystem", "DynamicUser", "ReadOnlyPaths", "RootDirectory", "RootImage")
_NETWORK = ("PrivateNetwork", "IPAddressDeny", "RestrictAddressFamilies", "SystemCallFilter")
_OPEN = frozenset(("no", "false", "full", "true", "yes"))  # none of them closes /var/lib
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")

_TEXT = """\
[Service]
ExecStart=
ExecStart={}
# 75: another start has the slot in hand; nothing was started and nothing is wrong.
SuccessExitStatus=75
"""


class DropIn(NamedTuple):
    """`text` empty: it has a guard already."""

    text: str
    remarks: Tuple[str, ...]


def settings_of(files: Sequence[str], section: str) -> List[Tuple[str, str]]:
    """Names and values of a section, in order, of a unit and its drop-ins; continued lines joined."""
    found: List[Tuple[str, str]] = []
    for text in files:
        current = ""
        for line in _whole_lines(text):
            if line.startswith("[") and line.endswith("]"):
                current = line[1:-1]
            elif current == section and "=" in line:
                name, _, value = line.partition("=")
                found.append((name.strip(), value.strip()))
    return found


def values_of(settings: Sequence[Tuple[str, str]], name: str) -> List[str]:
    """A list setting's values: an empty one takes away all before it."""
    values: List[str] = []
    for key, value in settings:
        if key == name:
            values = [*values, value] if value else []
    return values


def drop_in(unit: str, service: Sequence[str], timer: Sequence[str], program: str, options: str) -> Union[DropIn, str]:
    """The drop-in for a service, or why there is none. `unit`: its file's name. `service`, `timer`: the unit's text and
    that of its drop-ins; none for no timer of that name. `options`: of `run`, to stand behind the job's name."""
    settings = settings_of(service, "Service")
    commands = values_of(settings, "ExecStart")
    if len(commands) != 1:
        return f"{len(commands) or 'no'} commands in ExecStart=: a guard goes before one; put them into a script"
    kind = (values_of(settings, "Type") or ["simple"])[-1]
    if kind in _STAYING:
        return f"Type={kind}: a service that stays, and tells systemd of itself what a guard could not"
    if kind != "oneshot" and not timer:
        return f"Type={kind} and no timer of its name beside it: a service that stays, not a job"
    prefixes, command = _split_prefixes(commands[0])
    why = _unfit(prefixes, command)
    if why:
        return why
    if any(guarded.subcommand for guarded in guarded_in(command)):
        return DropIn("", ())
    schedule, remarks = _schedule(timer)
    own = [*schedule, *([options] if options else []), *_input(settings)]
    words = [f"{prefixes}{program} run {_job_name(unit)}", *own, "--", command]
    said = (*remarks, *_about_places(settings), *_about_network(settings))
    return DropIn(_TEXT.format(" ".join(words)), said)


def _split_prefixes(command: str) -> Tuple[str, str]:
    match = _PREFIXES.match(command)
    end = match.end() if match is not None else 0
    return command[:end], command[end:].lstrip()


def _unfit(prefixes: str, command: str) -> str:
    if "@" in prefixes:
        return "ExecStart=@...: the command's name for itself cannot be handed on"
    if "|" in prefixes:
        return "ExecStart=|...: the command is the login shell's; write `/bin/sh -c` instead"
    if re.search(r"(?:^|\s);(?:\s|$)", command):
        return "ExecStart= has a ; and so several commands: a guard goes before one; put them into a script"
    if not command or "$" in command.split(maxsplit=1)[0]:
        return "ExecStart= has no command's name that can be handed on"
    return ""


def _job_name(unit: str) -> str:
    """`a@.service` has an instance, which systemd puts in: `a-%i`."""
    stem = unit[: -len(".service")] if unit.endswith(".service") else unit
    name, at, instance = stem.partition("@")
    slug = _FOREIGN.sub("-", name).strip("-._")[:60] or "job"
    return f"{slug}-%i" if at and not instance else _FOREIGN.sub("-", stem).strip("-._")[:60] or "job"


def _schedule(timer: Sequence[str]) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """The options that name the timer's slots, and what is to be said if it has none that can be named."""
    if not timer:
        return (), ("no timer of its name beside it: without a schedule only the lock protects",)
    settings = settings_of(timer, "Timer")
    calendars = values_of(settings, "OnCalendar")
    if len(calendars) != 1 or any(values_of(settings, name) for name in _OTHER_CLOCKS):
        return (), ("its timer has not just one OnCalendar=: without a schedule only the lock protects",)
    expression, zone = calendars[0], None
    match = _ZONE.search(expression)
    try:
        if match is not None and _is_zone(match.group(1)):
            expression, zone = expression[: match.start()], match.group(1)
        parse_calendar(expression)
    except ScheduleError as error:
        return (), (f"its timer: {error}: without a schedule only the lock protects",)
    quoted = expression.replace("%", "%%")
    return (f'--calendar "{quoted}"', *((f"--timezone {zone}",) if zone else ())), ()


def _is_zone(name: str) -> bool:
    try:
        load_zone(name)
    except ScheduleError:
        return False
    return True


def _about_places(settings: Sequence[Tuple[str, str]]) -> Tuple[str, ...]:
    environment = " ".join(values_of(settings, "Environment"))
    if "CRONGUARD_STATE_DIR=" in environment or "CRONGUARD_STORE=" in environment:
        return ()
    used = [name for name in _SANDBOX if (values_of(settings, name) or ["no"])[-1] not in _OPEN]
    used += ["User"] if values_of(settings, "User") else []
    if not used:
        return ()
    return (
        f"{', '.join(name + '=' for name in used)}: see that it may write where cronguard keeps its runs: add"
        " StateDirectory=cronguard and Environment=CRONGUARD_STATE_DIR=%S/cronguard, or --store",
    )


def _about_network(settings: Sequence[Tuple[str, str]]) -> Tuple[str, ...]:
    used = [name for name in _NETWORK if (values_of(settings, name) or ["no"])[-1] not in ("no", "false")]
    if not used:
        return ()
    return (f"{', '.join(name + '=' for name in used)}: a shared store or a heartbeat must be reachable from inside",)


def _input(settings: Sequence[Tuple[str, str]]) -> Tuple[str, ...]:
    source = (values_of(settings, "StandardInput") or ["null"])[-1]
    return () if source == "null" else ("--stdin inherit",)


def _whole_lines(text: str) -> List[str]:
    lines: List[str] = []
    joined = ""
    for line in text.split("\n"):
        bare = line.strip()
        if bare[:1] in ("#", ";"):
            continue
        if bare.endswith("\\"):
            joined += bare[:-1] + " "
            continue
        lines.append((joined + bare).strip())
        joined = ""
    return [*lines, joined.strip()]
