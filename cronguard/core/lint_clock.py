"""Rules on clocks: what the changes of the next two years do to a job, and by which zone its cron goes at all.

What a clock change does hangs on the cron (`core.crons`), so nominal times are looked for in each gap and fold, and
the cron says what becomes of them. An hour that is left open (`*`, `*/2`) makes an interval, which follows real time
everywhere, and is no finding (FR-88).
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from cronguard.core.cron import NICKNAMES
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


def changes(zone: tzinfo, low: datetime, high: datetime) -> Iterator[Change]:
    """The changes of a zone's offset between two instants."""
    offset = None
    for regime in regimes(zone, low, high):
        if offset is not None and regime.offset != offset:
            yield Change(regime.start, offset, regime.offset)
        offset = regime.offset


def zone_settings(tab: Tab) -> Iterator[Remark]:
    """CRON_TZ and TZ: which cron takes them for what (FR-97)."""
    cron = tab.judge.cron
    for line in tab.crontab.lines:
        if line.setting is None or line.setting.name not in (b"CRON_TZ", b"TZ"):
            continue
        column = len(line.raw) - len(line.raw.lstrip(b" \t")) + 1
        value = text_of(line.setting.value)
        if line.setting.name == b"TZ":
            yield Remark(
                "tz-not-for-schedule", line.number, column,
                f"TZ={value} is for the commands alone: {cron.name} goes by the host's zone",
                "give the zone to cronguard run --timezone; set the host's for cron",
            )  # fmt: skip
        elif cron.takes_zone:
            yield Remark(
                "cron-tz-used", line.number, column,
                f"{cron.name} takes the schedules below in {value}; Debian's cron would go by the host's zone",
                "give cronguard run the same --timezone",
            )  # fmt: skip
        else:
            yield Remark(
                "cron-tz-ignored", line.number, column,
                f"{cron.name} ignores CRON_TZ={value}: the schedules below go by the host's zone, and only the commands"
                " see it; cronie would take them in that zone",
                "set the host's zone, or write the times by it and give cronguard run --timezone",
            )  # fmt: skip


def zone_of(case: Case) -> str:
    """The zone that a job's times are in: CRON_TZ where the cron takes it, else the judge's."""
    return _cron_tz(case) or case.judge.zone


def _cron_tz(case: Case) -> Optional[str]:
    """The zone of CRON_TZ, where the cron at hand takes it and it is one."""
    value = case.job.environment.get(b"CRON_TZ")
    if value is None or not case.judge.cron.takes_zone:
        return None
    try:
        load_zone(text_of(value))
    except ScheduleError:
        return None
    return text_of(value)


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
    is_wildcard = case.judge.cron.in_gap == "after"
    return ", which takes a * in the minute for a wildcard job" if is_wildcard else ""


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
    is_special = cron.in_gap == "after" and not minute.startswith("*") and abs(change.after - change.before) < _SMALL
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
    by = _cron_tz(case) or case.judge.host_zone
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
