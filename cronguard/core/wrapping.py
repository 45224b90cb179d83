"""A crontab with a guard before each command, and back: bytes in, bytes and remarks out.

What cron hands to the shell becomes, in single quotes, the argument of `cronguard run NAME --cron "..." --shell --`,
and that hands the same bytes to the same shell. Only quotes are touched, and each becomes `'\\''`. This commutes with
cron's own reading: cron drops backslashes only before `%` and (Debian's) before another backslash, and of what is
inserted neither follows one. So `%` and `\\%`, with the standard input behind the first one, stay where they are, and
it matters not which cron reads the line. A command is never taken apart to run it without a shell: a script without
`#!`, a builtin or a `$` would then mean something else.

What cannot be kept is left as it is, and said: never guessed. Promises not to raise, whatever the bytes; that wrapping
again changes nothing; that `unwrap` gives back every byte (but for a final newline, without which cron takes no line).
Sources: do_command.c, entry.c and cron.h (MAX_COMMAND) of Debian's cron 3.0pl1 and of cronie.
"""

from __future__ import annotations

import re
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from cronguard.core.checkup.lines import guarded_in
from cronguard.core.cron import parse_cron
from cronguard.core.crons import CRONS, Cron
from cronguard.core.crontab import Job, Line, command_places, parse_crontab
from cronguard.core.naming import Nameless, names_for
from cronguard.core.shell import simple_commands
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

_LONGEST_COMMAND = CRONS["debian"].longest_command  # of cronie, too, for long; who knows which one comes next
_USUAL_SHELL = b"/bin/sh"
_SHELLS = frozenset(b"sh bash dash ash ksh ksh93 mksh zsh".split())  # all take '...' and '\'' alike
_TO_SHELL = b"--shell --"
_TO_NAMED_SHELL = b'-- "$SHELL" -c'
_SAFE = re.compile(r"/[A-Za-z0-9_./+,:@=-]+")
_OURS = re.compile(
    rb'/[A-Za-z0-9_./+,:@=-]+ run (?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99}) --cron "(?P<cron>[^"$`\\]*)"'
    rb"(?: --timezone [A-Za-z0-9_+/-]+)?(?: --timeout [0-9a-z]+)?(?: --stdin inherit)?"
    rb'(?: --shell --| -- "\$SHELL" -c) \'(?P<text>(?:[^\']|\'\\\'\')*)\''
)


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


class Wrapped(NamedTuple):
    """The new text. `guarded`: lines that now have a guard. `already`: had one. `left`: have none."""

    data: bytes
    remarks: Tuple[Remark, ...]
    guarded: int = 0
    already: int = 0
    left: int = 0


class _Plan(NamedTuple):
    """A line to be guarded and what its guard is told."""

    line: Line
    job: Job
    zone: Optional[str]
    to_shell: bytes


def unsafe_program(path: str) -> Optional[str]:
    """Why a path cannot stand in a crontab as it is; None if it can."""
    if not path.startswith("/"):
        return "not an absolute path"
    return None if _SAFE.fullmatch(path) else "has characters that a crontab line would need quotes for"


def wrap(data: bytes, flavour: Optional[str], wishes: Wishes) -> Wrapped:
    """The crontab with every line guarded that can be."""
    crontab = parse_crontab(data, flavour)
    remarks: List[Remark] = []
    plans: List[_Plan] = []
    taken: Dict[str, Optional[bytes]] = dict(wishes.taken)
    already = left = 0
    for line in crontab.lines:
        if line.kind == "unparsable":
            remarks.append(Remark(line.number, f"not understood, left as it is: {line.problem}"))
        if line.job is None:
            continue
        names = guarding(line.job)
        if names is not None:
            taken.update((name, None) for name in names)
            remarks += _drifted(line, line.job)
            already += 1
            continue
        plan = _plan(line, line.job, wishes)
        if isinstance(plan, str):
            remarks.append(Remark(line.number, f"left as it is: {plan}"))
            left += 1
        else:
            plans.append(plan)
    new, too_long = _guarded(plans, taken, wishes)
    remarks += too_long
    if data and not data.endswith(b"\n"):
        remarks.append(Remark(len(crontab.lines), "the last line had no newline, so cron passed it over: one is added"))
    text = b"".join(new.get(line.number, line.raw) for line in crontab.lines)
    return Wrapped(_ended(text), tuple(sorted(remarks)), len(new), already, left + len(too_long))


def unwrap(data: bytes, flavour: Optional[str], cron: Cron) -> Wrapped:
    """The crontab with the guards taken away that `wrap` has put there. `guarded`: how many those were."""
    crontab = parse_crontab(data, flavour)
    remarks: List[Remark] = []
    pieces: List[bytes] = []
    count = 0
    for line in crontab.lines:
        job = line.job
        original = None if job is None else _original(job, cron)
        if job is None or original is None:
            pieces.append(line.raw)
            if job is not None and guarding(job) is not None:
                remarks.append(Remark(line.number, "left as it is: guarded, but not in the form that wrap writes"))
        else:
            pieces.append(line.raw[: job.written_at] + original + line.raw[job.written_at + len(job.written) :])
            count += 1
    return Wrapped(b"".join(pieces), tuple(remarks), guarded=count)


def guarding(job: Job) -> Optional[Tuple[str, ...]]:
    """The names of the jobs that a line guards already, or that it is a command of cronguard's own; else None."""
    ours = _OURS.match(job.written)
    if ours is not None:
        return (ours["name"].decode("ascii"),)
    found = [guarded for guarded in guarded_in(_text(job.command)) if guarded.subcommand]
    return tuple(guarded.job for guarded in found if guarded.job) if found else None


def identity(job: Job) -> bytes:
    """What two lines have in common that may share a job's name: the same command at the same times, guard or not."""
    ours = _OURS.match(job.written)
    written = job.written if ours is None else _unquoted(ours["text"]) + job.written[ours.end() :]
    return _one_blank(job.schedule).encode("ascii") + b" " + written


def _plan(line: Line, job: Job, wishes: Wishes) -> Union[_Plan, str]:
    """How to guard a line, or why not to."""
    why = _no_clock(job) or _odd_bytes(line, job) or _background(job) or _no_place(job, wishes)
    if why:
        return why
    shell = job.environment.get(b"SHELL", _USUAL_SHELL)
    if shell != _USUAL_SHELL and not (shell.startswith(b"/") and shell.rpartition(b"/")[2] in _SHELLS):
        return f"SHELL={_text(shell)}: not a shell that is known to quote like sh"
    try:
        zone = _zone(job, wishes)
    except ScheduleError as error:
        return f"its zone: {str(error).replace('--timezone: ', '', 1)}"
    return _Plan(line, job, zone, _TO_SHELL if shell == _USUAL_SHELL else _TO_NAMED_SHELL)


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


def _guarded(
    plans: Sequence[_Plan], taken: Mapping[str, Optional[bytes]], wishes: Wishes
) -> Tuple[Dict[int, bytes], List[Remark]]:
    """The new lines by number, and what to say of those that would be too long for cron."""
    nameless = [Nameless(_text(plan.job.command), plan.job.schedule, identity(plan.job)) for plan in plans]
    new: Dict[int, bytes] = {}
    too_long: List[Remark] = []
    for plan, name in zip(plans, names_for(nameless, taken)):
        written = _written(plan, name, wishes)
        if len(written) > _LONGEST_COMMAND:
            why = f"left as it is: cron takes {_LONGEST_COMMAND} bytes of a command, and it would have {len(written)}"
            too_long.append(Remark(plan.line.number, why + "; move it into a script and wrap again"))
        else:
            new[plan.line.number] = plan.line.raw[: plan.job.written_at] + written + b"\n"
    return new, too_long


def _written(plan: _Plan, name: str, wishes: Wishes) -> bytes:
    end = _command_end(plan.job.written, wishes.cron)
    words = [f'{wishes.program} run {name} --cron "{_one_blank(plan.job.schedule)}"']
    words += [f"--timezone {plan.zone}"] if plan.zone else []
    words += [f"--timeout {wishes.timeout}"] if wishes.timeout else []
    words += ["--stdin inherit"] if end < len(plan.job.written) else []
    quoted = b"'" + plan.job.written[:end].replace(b"'", b"'\\''") + b"'"
    return " ".join(words).encode("ascii") + b" " + plan.to_shell + b" " + quoted + plan.job.written[end:]


def _original(job: Job, cron: Cron) -> Optional[bytes]:
    """What stood there before wrap wrote the line; None for any other line."""
    end = _command_end(job.written, cron)
    ours = _OURS.fullmatch(job.written[:end])
    return None if ours is None else _unquoted(ours["text"]) + job.written[end:]


def _unquoted(text: bytes) -> bytes:
    return text.replace(b"'\\''", b"'")


def _command_end(written: bytes, cron: Cron) -> int:
    """Where the standard input begins, with its `%`."""
    return command_places(written)[1] if cron.splits_percent else len(written)


def _drifted(line: Line, job: Job) -> List[Remark]:
    """A schedule that was changed in one of the two places where a guarded line has it."""
    ours = _OURS.match(job.written)
    told = "" if ours is None else ours["cron"].decode("ascii", "replace")
    if ours is None or told == _one_blank(job.schedule):
        return []
    return [Remark(line.number, f'--cron says "{told}", but the line is started at "{_one_blank(job.schedule)}"')]


def _one_blank(schedule: str) -> str:
    return " ".join(schedule.split())


def _ended(data: bytes) -> bytes:
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
