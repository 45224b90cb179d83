"""Lines that have a guard already: which they are, which of them `wrap` wrote, and what stood there before."""

from __future__ import annotations

import re
from typing import Match, Optional, Tuple

from cronguard.core.checkup.lines import guarded_in
from cronguard.core.crons import Cron
from cronguard.core.crontab import Job, command_places

_OURS = re.compile(
    rb'/[A-Za-z0-9_./+,:@=-]+ run (?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,99}) --cron "(?P<cron>[^"$`\\]*)"'
    rb"(?: --timezone [A-Za-z0-9_+/-]+)?(?: --timeout [0-9a-z.]+)?(?: --stdin inherit)?"
    rb'(?: --shell --| -- "\$SHELL" -c) \'(?P<text>(?:[^\']|\'\\\'\')*)\''
)


def guarding(job: Job) -> Optional[Tuple[str, ...]]:
    """The names of the jobs that a line guards already, or that it is a command of cronguard's own; else None."""
    ours = _ours(job)
    if ours is not None:
        return (ours["name"].decode("ascii"),)
    found = [guarded for guarded in guarded_in(job.command.decode("utf-8", "surrogateescape")) if guarded.subcommand]
    return tuple(guarded.job for guarded in found if guarded.job) if found else None


def identity(job: Job) -> bytes:
    """What two lines have in common that may share a job's name: the same command at the same times, guard or not."""
    ours = _ours(job)
    written = job.written if ours is None else _unquoted(ours["text"]) + job.written[ours.end() :]
    return one_blank(job.schedule).encode("ascii") + b" " + written


def original(job: Job, cron: Cron) -> Optional[bytes]:
    """What stood there before wrap wrote the line; None for any other line."""
    end = command_end(job.written, cron)
    ours = _OURS.fullmatch(job.written[:end])
    return None if ours is None else _unquoted(ours["text"]) + job.written[end:]


def told_schedule(job: Job) -> Optional[str]:
    """The `--cron` of a line that wrap wrote; None for any other line."""
    ours = _ours(job)
    return None if ours is None else ours["cron"].decode("ascii", "replace")


def command_end(written: bytes, cron: Cron) -> int:
    """Where the standard input begins, with its `%`."""
    return command_places(written)[1] if cron.splits_percent else len(written)


def one_blank(schedule: str) -> str:
    """The fields with one blank between them."""
    return " ".join(schedule.split())


def quoted(text: bytes) -> bytes:
    """In single quotes, for any Bourne shell."""
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


def _unquoted(text: bytes) -> bytes:
    return text.replace(b"'\\''", b"'")


def _ours(job: Job) -> Optional[Match[bytes]]:
    return _OURS.match(job.written)
