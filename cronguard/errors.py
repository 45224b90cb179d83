"""The errors that cronguard raises, each owning an exit code and a hint.

Refusals (somebody else holds the lock, the slot is done) are values, never exceptions. An error here means that
cronguard could not do its part. Messages read `what: which thing: why`; the hint says what to do. Lower case, no
full stop, no secret (a DSN or ping URL is masked before it gets here).
"""

from __future__ import annotations

from typing import Sequence


class CronguardError(Exception):
    """Something that the user is told in one line; `exit_code` is that of `run`, the edge maps it elsewhere."""

    exit_code = 125

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(CronguardError):
    """The command line asks for something that does not exist or does not fit together."""


class ConfigError(CronguardError):
    """Settings, from whatever source, are wrong. Carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[str], hint: str = "") -> None:
        super().__init__("; ".join(problems), hint)
        self.problems = tuple(problems)


class ScheduleError(CronguardError):
    """A schedule, zone or instant cannot be understood or never occurs."""


class StoreError(CronguardError):
    """The store answered, but cannot serve: no rights, newer schema, unusable path."""


class StoreDown(StoreError):
    """The store could not be reached or did not answer in time; `--on-store-error` applies."""


class NoRights(StoreError):
    """The store answered that whoever asks may not do that."""


class NotFound(CronguardError):
    """A job or run asked for by name does not exist. Looking commands exit 1."""

    exit_code = 1


class Refused(CronguardError):
    """To a Python program, what the command line leaves with 75 for: not now, or not by this run."""

    exit_code = 75


class RunLost(Refused):
    """The run that this is part of no longer holds its lock, or a newer one is at work: it must do nothing more."""
