"""What lint's rules are given and what they find: the rules' ids and severities, and questions to the host.

A rule's id never changes its meaning: people silence and count them in CI. Promises not to look at the host; what is
asked of it comes in as `HostFacts`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Dict, Mapping, NamedTuple, Optional, Protocol, Tuple

from cronguard.core.crons import Cron
from cronguard.core.crontab import Crontab, Job, Line, command_places
from cronguard.core.shell import Simple

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)

RULES: Dict[str, str] = {
    "unparsable-line": ERROR,
    "bad-schedule": ERROR,
    "bad-zone": ERROR,
    "impossible-date": ERROR,
    "missing-newline": ERROR,
    "carriage-return": ERROR,
    "command-too-long": ERROR,
    "unescaped-percent": ERROR,
    "unknown-user": WARNING,
    "ignored-file": WARNING,
    "clock-change": WARNING,
    "cron-tz-ignored": WARNING,
    "local-day-shift": WARNING,
    "day-or-weekday": WARNING,
    "likely-overlap": WARNING,
    "pipeline-status": WARNING,
    "masked-exit": WARNING,
    "background-job": WARNING,
    "missing-directory": WARNING,
    "command-not-found": WARNING,
    "secret-on-line": WARNING,
    "clock-change-handled": INFO,
    "cron-tz-used": INFO,
    "tz-not-for-schedule": INFO,
    "local-time-moves": INFO,
    "short-months": INFO,
    "percent-stdin": INFO,
    "unguarded": INFO,
}


class Remark(NamedTuple):
    """One finding. Line and column count from 1, columns in bytes. `dates`: local times that a clock change hits."""

    rule: str
    line: int
    column: int
    message: str
    fix: str
    dates: Tuple[Tuple[str, str], ...] = ()

    @property
    def severity(self) -> str:
        return RULES[self.rule]


class HostFacts(Protocol):
    """What rules ask of the host that the crontab is for."""

    def is_directory(self, path: str) -> bool:
        """Does an absolute path lead to a directory?"""

    def has_command(self, name: str, search_path: str) -> bool:
        """Would execvp(3) with that PATH find the name? An absolute path is looked at itself."""

    def home_of(self, user: str) -> Optional[str]:
        """A user's home; None for nobody of that name."""


class Judge(NamedTuple):
    """By what a crontab is judged. `zone`: the one its times are meant in. `host_zone`: the one that cron runs in, None
    if it does not matter or is not known. `owner`: whose user crontab it is."""

    cron: Cron
    zone: str
    host_zone: Optional[str]
    now_utc: datetime
    host: HostFacts
    owner: str


class Case(NamedTuple):
    """A job's line for the rules. `commands`: those of the line as the shell gets it, and of a `sh -c` in it; their
    offsets are those of `text`, whose letters are bytes (Latin-1)."""

    line: Line
    job: Job
    judge: Judge
    text: str
    commands: Tuple[Simple, ...]

    def column(self, at: int) -> int:
        """The column in the file of an offset into the command."""
        if not self.judge.cron.splits_percent:
            return self.job.written_at + at + 1
        places, end = command_places(self.job.written, self.judge.cron.kind)
        return self.job.written_at + (places[at] if at < len(places) else end) + 1

    def remark(self, rule: str, column: int, message: str, fix: str, dates: Tuple[Tuple[str, str], ...] = ()) -> Remark:
        return Remark(rule, self.line.number, column, message, fix, dates)

    def environment(self) -> Mapping[str, str]:
        """What cron and the settings above give the job, as far as that is known here."""
        user = text_of(self.job.user) if self.job.user is not None else self.judge.owner
        given = {text_of(name): text_of(value) for name, value in self.job.environment.items()}
        defaults = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": user}
        home = self.judge.host.home_of(user)
        return {**defaults, **({} if home is None else {"HOME": home}), **given}


class Tab(NamedTuple):
    """A crontab for the rules that look at more than one line. `path`: where it stands, if it is a file."""

    crontab: Crontab
    judge: Judge
    path: Optional[str]


def text_of(data: bytes) -> str:
    """Bytes of a file as text: UTF-8, and what is none escaped."""
    return data.decode("utf-8", "backslashreplace")


def shown(latin: str) -> str:
    """Text that was decoded byte by byte, for people."""
    return text_of(latin.encode("latin-1"))
