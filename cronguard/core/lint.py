"""Lint: what will go wrong with a crontab, before it does. The rules, brought together.

Promises not to look at the host or the clock, not to raise whatever the bytes, and to show no secret: every message is
masked once more here, whatever its rule has quoted.
"""

from __future__ import annotations

from typing import Callable, Iterator, List, Optional, Tuple

from cronguard.core import lint_clock, lint_command, lint_schedule, lint_text
from cronguard.core.crontab import Crontab, Job, Line
from cronguard.core.lint_model import Case, Judge, Remark, Tab, text_of
from cronguard.core.masking import mask_text
from cronguard.core.shell import Simple, nested_commands, simple_commands

_OF_TABS: Tuple[Callable[[Tab], Iterator[Remark]], ...] = (
    lint_text.ignored_file,
    lint_text.unparsable_lines,
    lint_text.missing_newline,
    lint_text.carriage_returns,
    lint_text.secret_settings,
    lint_clock.zone_settings,
)
_OF_JOBS: Tuple[Callable[[Case], Iterator[Remark]], ...] = (
    lint_text.dash,
    lint_text.too_long,
    lint_schedule.schedules,
    lint_clock.clock_changes,
    lint_clock.other_zone,
    lint_schedule.day_or_weekday,
    lint_schedule.short_months,
    lint_schedule.overlaps,
    lint_text.percent,
    lint_text.secrets,
    lint_command.unguarded,
    lint_command.pipelines,
    lint_command.masked_exits,
    lint_command.background,
    lint_command.missing_directories,
    lint_command.missing_commands,
)


def lint(crontab: Crontab, judge: Judge, path: Optional[str] = None) -> Tuple[Remark, ...]:
    """The findings in a crontab, by line and column. The zones of the judge are known to exist."""
    tab = Tab(crontab, judge, path)
    found: List[Remark] = [remark for rule in _OF_TABS for remark in rule(tab)]
    for line in crontab.lines:
        if line.job is not None:
            case = _case(line, line.job, judge)
            found += [remark for rule in _OF_JOBS for remark in rule(case)]
            found += _unknown_user(line, line.job, judge)
    ordered = sorted(found, key=lambda remark: (remark.line, remark.column, remark.rule))
    return tuple(
        remark._replace(message=mask_text(remark.message), fix=mask_text(remark.fix)) for remark in ordered
    )


def _case(line: Line, job: Job, judge: Judge) -> Case:
    """Without `%` for crons that do not know it, the whole of what was written is the command."""
    command = job.command if judge.cron.splits_percent else job.written
    text = command.decode("latin-1")
    return Case(line, job, judge, text, _with_nested(simple_commands(text)))


def _with_nested(commands: Tuple[Simple, ...], depth: int = 0) -> Tuple[Simple, ...]:
    """The commands, each followed by those of the shell line in it."""
    found: List[Simple] = []
    for command in commands:
        found.append(command)
        if depth < 3:
            found += _with_nested(nested_commands(command.words), depth + 1)
    return tuple(found)


def _unknown_user(line: Line, job: Job, judge: Judge) -> Iterator[Remark]:
    """A system crontab's user that is none."""
    user: Optional[str] = None if job.user is None else text_of(job.user)
    if user is not None and judge.host.home_of(user) is None:
        yield Remark(
            "unknown-user", line.number, (job.user_at or 0) + 1,
            f"no such user here: {user}: {judge.cron.name} {judge.cron.bad_line}",
            "name the user who is to run it, before the command",
        )  # fmt: skip
