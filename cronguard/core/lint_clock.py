"""Rules on clocks: what the changes of the next two years do to a job, and by which zone its cron goes at all.

What a clock change does hangs on the cron (`core.crons`), so nominal times are looked for in each gap and fold, and
the cron says what becomes of them. An hour that is left open (`*`, `*/2`) makes an interval, which follows real time
everywhere, and is no finding (FR-88).
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from cronguard.core.cron import NICKNAMES
from cronguard.core.crons import Cron
from cronguard.core.lint_command import is_guarded
from cronguard.core.lint_model import Case, Remark, Tab, text_of
from cronguard.core.lint_schedule import parsed
from cronguard.core.pattern import Pattern
from cronguard.core.wallclock import UTC, regimes
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

_AHEAD = timedelta(days=2 * 366)
_SMALL = timedelta(hours=3)  # cron(8): larger changes are taken for corrections of the clock
_DAY = timedelta(days=1)


class Change(NamedTuple):
    """A zone's change of offset."""

    at_utc: datetime
    before: timedelta
    after: timedelta


@lru_cache(maxsize=8)  # each job of a crontab asks anew
def changes(zone: tzinfo, low: datetime, high: datetime) -> Tuple[Change, ...]:
    """The changes of a zone's offset between two instants."""
    pieces = list(regimes(zone, low, high))
    return tuple(
        Change(later.start, earlier.offset, later.offset)
        for earlier, later in zip(pieces, pieces[1:])
        if earlier.offset != later.offset
    )


def zone_settings(tab: Tab) -> Iterator[Remark]:
    """CRON_TZ and TZ: which cron takes them for what (FR-97)."""
    for line in tab.crontab.lines:
        if line.setting is not None and line.setting.name in (b"CRON_TZ", b"TZ"):
            column = len(line.raw) - len(line.raw.lstrip(b" \t")) + 1
            name, value = text_of(line.setting.name), text_of(line.setting.value)
            yield Remark(*_about_zone(tab.judge.cron, name, value, line.number, column))


def _about_zone(cron: Cron, name: str, value: str, line: int, column: int) -> Tuple[str, int, int, str, str]:
    if name == cron.zone_variable and not _is_zone(value):
        what = f"{name}={value}: not a zone that this host knows: {cron.name} would take the schedules below in UTC"
        return "bad-zone", line, column, what, "write a name of the tz database, such as Europe/Rome"
    if name == cron.zone_variable:
        what = f"{cron.name} takes the schedules below in {value}; Debian's cron would go by the host's zone"
        return "cron-tz-used", line, column, what, "give cronguard run the same --timezone"
    if name == "CRON_TZ":
        what = (
            f"{cron.name} ignores CRON_TZ={value}: the schedules below go by the host's zone, and only the commands see"
            " it; cronie would take them in that zone"
        )
        fix = "set the host's zone, or write the times by it; give cronguard run --timezone"
        return "cron-tz-ignored", line, column, what, fix
    what = f"TZ={value} is for the commands alone: {cron.name} goes by the host's zone, whatever TZ says"
    return "tz-not-for-schedule", line, column, what, "set the host's zone for cron; give cronguard run --timezone"


def _is_zone(name: str) -> bool:
    try:
        return load_zone(name) is not None
    except ScheduleError:
        return False


def zone_of(case: Case) -> str:
    """The zone that a job's times are in: the crontab's own where the cron takes it, else the judge's."""
    return _own_zone(case) or case.judge.zone


def _own_zone(case: Case) -> Optional[str]:
    variable = case.judge.cron.zone_variable.encode("ascii")
    value = case.job.environment.get(variable) if variable else None
    return text_of(value) if value is not None and _is_zone(text_of(value)) else None


class _Hit(NamedTuple):
    """A nominal time in a gap or fold: `skipped`, `doubled`, or handled by the cron (`moved`, `once`)."""

    local: datetime
    what: str


def clock_changes(case: Case) -> Iterator[Remark]:
    """Times that a clock change of the next two years skips or doubles, with the dates (FR-86, FR-88)."""
    pattern = parsed(case)
    if pattern is None or _hour_field(case.job.schedule).startswith("*"):
        return
    zone = zone_of(case)
    hits = _hits(case, pattern, load_zone(zone))
    bad = [hit for hit in hits if hit.what in ("skipped", "doubled")]
    column = case.job.schedule_at + 1
    name = case.judge.cron.name
    if bad:
        hours = sorted({hit.local.hour for hit in bad})
        yield case.remark(
            "clock-change", column, f"{_told(bad)} in {zone}, by {name}{_why(case)}",
            f"choose an hour that no clock change touches (not {', '.join(map(str, hours))}), or fire it hourly through"
            " cronguard run, which lets each slot run once",
            _dates(bad),
        )  # fmt: skip
    handled = [hit for hit in hits if hit.what in ("moved", "once")]
    if handled and not bad:
        yield case.remark(
            "clock-change-handled", column,
            f"{_told(handled)} in {zone}: {name} runs a fixed time that is skipped right after the change, and one that"
            " comes twice once; other crons would skip and double it",
            "fine with this cron",
            _dates(handled),
        )  # fmt: skip


def _hour_field(schedule: str) -> str:
    return NICKNAMES.get(schedule, schedule).split()[1]


def _why(case: Case) -> str:
    if case.judge.cron.in_gap != "after":
        return ""
    if _own_zone(case) is not None:
        return ", which looks after the clock changes of its own zone, not of CRON_TZ"
    return ", which takes a * in the minute for a wildcard job"


def _hits(case: Case, pattern: Pattern, zone: tzinfo) -> List[_Hit]:
    """One hit for each change that touches the pattern: its first time in the gap or fold."""
    now = case.judge.now_utc
    found: List[_Hit] = []
    for change in changes(zone, now, now + _AHEAD):
        clock = change.at_utc.replace(tzinfo=None)
        low, high = sorted((clock + change.before, clock + change.after))
        first = next(pattern.between(low, high), None)
        what = _what_becomes(case, change)
        if first is not None and what is not None:
            found.append(_Hit(first, what))
    return found


def _what_becomes(case: Case, change: Change) -> Optional[str]:
    cron = case.judge.cron
    is_gap = change.after > change.before
    minute = NICKNAMES.get(case.job.schedule, case.job.schedule).split()[0]
    # cronie's find_jobs() (cron.c) looks after the changes of its own zone only, and says so in a comment.
    is_looked_after = cron.in_gap == "after" and _own_zone(case) is None
    is_special = is_looked_after and not minute.startswith("*") and abs(change.after - change.before) < _SMALL
    if is_gap:
        return "moved" if is_special else "skipped"
    if cron.kind == "systemd":
        return None  # once, as on any other day
    if is_special:
        return "once"
    return None if is_guarded(case) else "doubled"


def _told(hits: Sequence[_Hit]) -> str:
    words = {"moved": "skipped by the clock", "once": "doubled by the clock"}
    return ", ".join(f"{hit.local:%Y-%m-%d %H:%M} ({words.get(hit.what, hit.what)})" for hit in hits)


def _dates(hits: Sequence[_Hit]) -> Tuple[Tuple[str, str], ...]:
    return tuple((f"{hit.local:%Y-%m-%dT%H:%M}", hit.what) for hit in hits)


def other_zone(case: Case) -> Iterator[Remark]:
    """A crontab by UTC, or another zone, than the one it is meant in: days shift, times move (FR-99)."""
    pattern = parsed(case)
    by = _own_zone(case) or case.judge.host_zone
    meant = case.judge.zone
    if pattern is None or by is None or by == meant or _hour_field(case.job.schedule).startswith("*"):
        return
    ahead = _ahead(case.judge.now_utc, load_zone(by), load_zone(meant))
    column = case.job.schedule_at + 1
    shifts = {offset: _day_shift(pattern, offset) for offset in ahead}
    shifted = [offset for offset in sorted(ahead) if shifts[offset]]
    if shifted and _is_by_date(pattern):
        yield case.remark(
            "local-day-shift", column,
            f"{case.judge.cron.name} runs it by {by}: in {meant} that is {_clock(pattern, shifted[-1])} of the"
            f" {shifts[shifted[-1]]}{'' if len(shifted) == len(ahead) else ', for a part of the year'}",
            f"give {meant} to the host or, for cronie, to CRON_TZ; or write the days by {by}",
        )  # fmt: skip
    elif len(ahead) > 1:
        times = " or ".join(_clock(pattern, offset) for offset in sorted(ahead))
        yield case.remark(
            "local-time-moves", column, f"{case.judge.cron.name} runs it by {by}: in {meant} that is {times}",
            f"fine if {by} is meant; else give {meant} to the host or, for cronie, to CRON_TZ",
        )  # fmt: skip


def _ahead(now: datetime, by: tzinfo, meant: tzinfo) -> Set[timedelta]:
    """By how much the one zone's clock is ahead of the other's, over the next two years."""
    instants = [now]
    for zone in (by, meant):
        instants += [change.at_utc for change in changes(zone, now, now + _AHEAD)]
    return {_offset(at, meant) - _offset(at, by) for at in instants}


def _offset(at_utc: datetime, zone: tzinfo) -> timedelta:
    return at_utc.astimezone(zone).replace(tzinfo=UTC) - at_utc


def _day_shift(pattern: Pattern, ahead: timedelta) -> str:
    first, last = _time(pattern, 0), _time(pattern, -1)
    return "next day" if last + ahead >= _DAY else "day before" if first + ahead < timedelta(0) else ""


def _time(pattern: Pattern, place: int) -> timedelta:
    return timedelta(hours=pattern.hours[place], minutes=pattern.minutes[place])


def _clock(pattern: Pattern, ahead: timedelta) -> str:
    """The time of day that is meant to the other zone's people: of the last time a day, which shifts forwards first."""
    place = -1 if _time(pattern, -1) + ahead >= _DAY else 0
    minutes = int((_time(pattern, place) + ahead) % _DAY / timedelta(minutes=1))
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _is_by_date(pattern: Pattern) -> bool:
    return len(pattern.days) < 31 or len(pattern.weekdays) < 7 or len(pattern.months) < 12
