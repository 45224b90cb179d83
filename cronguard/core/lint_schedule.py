"""Rules on a job's schedule by itself: dates that never come, days that are not what they seem, times too near."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Iterator, Optional, Sequence

from cronguard.core.cron import parse_cron
from cronguard.core.durations import format_duration, parse_duration
from cronguard.core.lint_command import guard_words, is_guarded, program_words
from cronguard.core.lint_model import Case, Remark
from cronguard.core.pattern import Pattern
from cronguard.core.shell import Word
from cronguard.errors import ScheduleError

_AHEAD = timedelta(days=2 * 366)  # in which intervals are looked for
_MONTH_NAMES = "January February March April May June July August September October November December"
_MONTHS = _MONTH_NAMES.split()
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SAMPLE = 400  # times that are looked at for the shortest interval


def parsed(case: Case) -> Optional[Pattern]:
    """The times of a job's schedule; None for @reboot and for what the rule `schedules` reports."""
    return _pattern(case.job.schedule)


@lru_cache(maxsize=64)  # each rule asks anew, and to see that a date never comes takes its time
def _pattern(text: str) -> Optional[Pattern]:
    try:
        return parse_cron(text).pattern
    except ScheduleError:
        return None


def schedules(case: Case) -> Iterator[Remark]:
    """A schedule that cron refuses, reads as something else, or that never comes (FR-84)."""
    if case.job.schedule == "@reboot":
        return
    try:
        parse_cron(case.job.schedule)
    except ScheduleError as error:
        what = str(error).partition(": ")[2]
        column = case.job.schedule_at + 1
        if _is_readable_by_field(case.job.schedule):
            yield case.remark("impossible-date", column, what, "choose a date that exists, or delete the line")
        else:
            yield case.remark(
                "bad-schedule", column, f"{what}; {case.judge.cron.name} refuses it or reads something else in it",
                "write it with numbers, lists, ranges, steps and * only",
            )  # fmt: skip


def _is_readable_by_field(text: str) -> bool:
    """Is every field right, so that only the date that they make does not exist?"""
    fields = text.split()
    if len(fields) != 5:
        return False
    minute, hour, day, month, weekday = fields
    try:
        parse_cron(f"{minute} {hour} {day} * {weekday}")
        parse_cron(f"{minute} {hour} * {month} {weekday}")
    except ScheduleError:
        return False
    return True


def short_months(case: Case) -> Iterator[Remark]:
    """A day that not every month has (FR-84)."""
    pattern = parsed(case)
    if pattern is None or pattern.either or not pattern.days or min(pattern.days) <= 28:
        return
    first = min(pattern.days)
    without = [_MONTHS[month - 1] for month in pattern.months if _LENGTHS[month - 1] < first]
    if without:
        leap = " except in leap years" if first == 29 else ""
        yield case.remark(
            "short-months", case.job.schedule_at + 1, f"no day {first} in {_joined(without)}{leap}: no run then",
            "fine if that is meant; for the last day run on the 1st, or let --calendar '*-*~01' of cronguard say it",
        )  # fmt: skip


def day_or_weekday(case: Case) -> Iterator[Remark]:
    """Day and weekday both restricted: either will do, which hardly anybody means (crontab(5), NOTES)."""
    pattern = parsed(case)
    if pattern is not None and pattern.either:
        _, _, day, _, weekday = case.job.schedule.split()
        yield case.remark(
            "day-or-weekday", case.job.schedule_at + 1,
            f"runs on day-of-month {day} and also on each weekday {weekday}: with both given, either will do",
            "leave one of them *, and test for the other in the command",
        )  # fmt: skip


def overlaps(case: Case) -> Iterator[Remark]:
    """A job that may still be running when the next one is due: its time limit is longer than its interval."""
    pattern = parsed(case)
    limit_s = _limit_s(case)
    if pattern is None or limit_s is None:
        return
    interval_s = _shortest_interval_s(pattern, case.judge.now_utc)
    if interval_s is not None and limit_s > interval_s:
        # busybox crond passes over a line whose last run goes on: "process already running" (crond.c).
        alone = is_guarded(case) or program_words(case, "flock") is not None or case.judge.cron.kind == "busybox"
        consequence = "the runs in between are refused" if alone else "two may run at once"
        yield case.remark(
            "likely-overlap", case.job.schedule_at + 1,
            f"due every {format_duration(interval_s)} but may run {format_duration(limit_s)}: {consequence}",
            "a shorter time limit or a longer interval",
        )  # fmt: skip


def _limit_s(case: Case) -> Optional[float]:
    """The limit that the line itself sets: the guard's `--timeout`, else that of timeout(1)."""
    texts = [word.text for word in guard_words(case)]
    for place, text in enumerate(texts):
        if text == "--":
            break
        if text.startswith("--timeout="):
            return _seconds(text.partition("=")[2])
        if text == "--timeout" and place + 1 < len(texts):
            return _seconds(texts[place + 1])
    words = program_words(case, "timeout")
    return None if words is None else _timeout_s(words)


def _timeout_s(words: Sequence[Word]) -> Optional[float]:
    """What timeout(1) is given: its first word that is no option and no option's value."""
    rest = [word.text for word in words]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-k", "-s", "--kill-after", "--signal") and rest:
            rest.pop(0)
    return _seconds(rest[0]) if rest else None


def _seconds(text: str) -> Optional[float]:
    """A duration of cronguard's or timeout(1)'s; None for none, or no limit."""
    try:
        return parse_duration(f"{text}s" if text[-1:].isdigit() and text.isascii() else text) or None
    except ValueError:
        return None


def _shortest_interval_s(pattern: Pattern, now_utc: datetime) -> Optional[float]:
    start = now_utc.replace(tzinfo=None)
    times = list(islice(pattern.between(start, start + _AHEAD), _SAMPLE))
    return min(((later - earlier).total_seconds() for earlier, later in zip(times, times[1:])), default=None)


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
