"""Which lines of a crontab can be guarded without changing what they do, and under which name and zone.

What cannot is refused with the reason, never guessed. Serves both ways of moving a crontab over: lines with a guard
(`core.wrapping`) and systemd's units (`core.units`). Sources: do_command.c and entry.c of Debian's cron 3.0pl1 and of
cronie, as told in `core.crontab`.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Union

from cronguard.core.cron import parse_cron
from cronguard.core.crons import Cron
from cronguard.core.crontab import Job, Line
from cronguard.core.guards import identity
from cronguard.core.naming import Nameless, names_for
from cronguard.core.shell import simple_commands
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

USUAL_SHELL = b"/bin/sh"
_SHELLS = frozenset(b"sh bash dash ash ksh ksh93 mksh zsh".split())  # all take '...' and '\'' alike


class Wishes(NamedTuple):
    """How lines are to be guarded. `program`: cronguard's path. `timezone`: for lines without a zone of their own.
    `timeout`: None for what `run` has. `host_zone`: None if unknown. `cron`: who reads the file. `taken`: job names of
    other crontabs, each with the `identity` of its line or None. `homeless`: users who have no place for their runs."""

    program: str
    cron: Cron
    timezone: Optional[str] = None
    timeout: Optional[str] = None
    host_zone: Optional[str] = None
    taken: Mapping[str, Optional[bytes]] = {}
    homeless: FrozenSet[bytes] = frozenset()


class Remark(NamedTuple):
    """Something to be said about a line."""

    line: int
    text: str


class Plan(NamedTuple):
    """A line that is to be guarded. `zone`: to be told to the guard, None if it finds that by itself."""

    line: Line
    job: Job
    zone: Optional[str]
    shell: bytes
    name: str = ""


def plan_for(line: Line, job: Job, wishes: Wishes) -> Union[Plan, str]:
    """How to guard a line, its name aside; or why not to."""
    why = _no_clock(job) or _odd_bytes(line, job) or _background(job) or _no_place(job, wishes)
    if why:
        return why
    shell = job.environment.get(b"SHELL", USUAL_SHELL)
    if shell != USUAL_SHELL and not (shell.startswith(b"/") and shell.rpartition(b"/")[2] in _SHELLS):
        return f"SHELL={_text(shell)}: not a shell that is known to quote like sh"
    try:
        zone = _zone(job, wishes)
    except ScheduleError as error:
        return f"its zone: {str(error).replace('--timezone: ', '', 1)}"
    return Plan(line, job, zone, shell)


def named(plans: List[Plan], taken: Mapping[str, Optional[bytes]]) -> List[Plan]:
    """The plans with names: those that have none get one that nobody else has."""
    without = [plan for plan in plans if not plan.name]
    taken = {**taken, **{plan.name: None for plan in plans if plan.name}}
    nameless = [Nameless(_text(plan.job.command), plan.job.schedule, identity(plan.job)) for plan in without]
    names: Dict[int, str] = {plan.line.number: name for plan, name in zip(without, names_for(nameless, taken))}
    return [plan._replace(name=plan.name or names[plan.line.number]) for plan in plans]


def _no_clock(job: Job) -> str:
    if job.schedule == "@reboot":
        return "@reboot is no schedule: it runs once whenever cron starts"
    try:
        parse_cron(job.schedule)
    except ScheduleError as error:
        return f"its schedule: {str(error).replace('--cron: ', '', 1)}"
    return ""


def _odd_bytes(line: Line, job: Job) -> str:
    if line.raw.rstrip(b"\n").endswith(b"\r"):
        return "ends in a carriage return, which cron hands to the command; take it away (tr -d '\\r') and wrap again"
    if b"\0" in job.written:
        return "has a NUL byte, at which cron ends the command"
    return ""


def _background(job: Job) -> str:
    commands = simple_commands(_text(job.command))
    if any(command.after == "&" for command in commands) and not any(
        command.words and command.words[0].text == "wait" for command in commands
    ):
        return "has a & that leaves work in the background, where no guard sees its end; take it away and wrap again"
    return ""


def _no_place(job: Job, wishes: Wishes) -> str:
    told = any(name in job.environment for name in (b"CRONGUARD_STATE_DIR", b"XDG_STATE_HOME", b"HOME"))
    if job.user not in wishes.homeless or told:
        return ""
    return (
        f"{_text(job.user or b'')} has no home to keep its runs in; put CRONGUARD_STATE_DIR= above it, a directory of "
        "that user's with mode 0700, and wrap again"
    )


def _zone(job: Job, wishes: Wishes) -> Optional[str]:
    """The zone to be named: that by which cron takes the schedule, if the guard would not find it by itself."""
    variable = wishes.cron.zone_variable.encode("ascii")
    if variable in job.environment:
        return _known(_text(job.environment[variable]))
    if wishes.timezone is not None:
        return wishes.timezone
    if b"TZ" not in job.environment or job.environment.get(b"CRONGUARD_TIMEZONE"):
        return None
    # TZ is for the command: cron takes the schedule by its own zone, which a guard that sees TZ would not think of.
    if wishes.host_zone is None:
        raise ScheduleError("TZ= above it is not for the schedule, and the host's zone is not known; give --timezone")
    return _known(wishes.host_zone)


def _known(zone: str) -> str:
    load_zone(zone)
    return zone


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
