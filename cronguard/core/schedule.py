"""Schedules: which instants a job is due at, and under which label each of them is known.

One engine for run, next, check, backfill and lint. Three kinds follow three rules for the clock's jumps:

* fixed times (cron without a leading `*` in minute and hour, Debian cron's rule): one slot for each nominal local
  time. In a gap it falls at the first instant after it, in a fold at the first of the two. Nominal times that land on
  one instant are one slot, labelled by the latest. The label is the nominal time, whatever tzdata a host has.
* calendar: the same, but systemd fires nothing in a gap, so there is no slot.
* wildcards and `every` follow real time: each matching instant is a slot, and the label carries the offset.

Nominal times are walked as naive local time and brought to UTC by explicit rules (`wallclock`), never by arithmetic on
aware local times, so what comes out does not depend on where a search began (FR-93). The searches are lazy and end with
the years that `pattern` names. Promises not to read the clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from itertools import groupby
from typing import Iterator, Optional, Tuple

from cronguard.core.calendar import parse_calendar
from cronguard.core.cron import parse_cron
from cronguard.core.instants import iso_minutes, local_text
from cronguard.core.model import ScheduleText, Slot
from cronguard.core.pattern import FIRST, LAST, Pattern
from cronguard.core.values import period
from cronguard.core.wallclock import EPOCH, UTC, first_reached, high_water, is_repeated, regimes
from cronguard.core.zones import is_utc, load_zone
from cronguard.errors import ScheduleError

_EARLY = timedelta(seconds=2)
_START = FIRST.replace(tzinfo=UTC)
_END = LAST.replace(tzinfo=UTC)


class Schedule:
    """The slots of one schedule in one zone. Instants are aware UTC; a search may begin anywhere."""

    def __init__(self, zone: tzinfo, in_utc: bool) -> None:
        self._zone = zone
        self._in_utc = in_utc

    def between(self, low_utc: datetime, high_utc: datetime, step: int = 1) -> Iterator[Slot]:
        """Slots in [low, high), oldest first for step 1, newest first for step -1; lazily."""
        return self._walk(_bounded(low_utc), _bounded(high_utc), step)

    def slots_from(self, start_utc: datetime) -> Iterator[Slot]:
        """Slots at or after an instant, oldest first; without an end unless the expression has one."""
        return self.between(start_utc, _END)

    def due_between(self, after_utc: datetime, until_utc: datetime) -> Iterator[Slot]:
        """Slots after one instant and not after the other, oldest first."""
        return self.between(_just_after(after_utc), _just_after(until_utc))

    def latest_due(self, at_utc: datetime) -> Optional[Slot]:
        """The latest slot that is not after an instant."""
        return next(self.between(_START, _just_after(at_utc), -1), None)

    def latest(self, at_utc: datetime) -> Optional[Slot]:
        """The slot that an invocation at that instant belongs to: the latest due, or one that is about to be.

        Timers fire early (FR-74): up to 2 s before a slot count as that slot, but no more than a quarter of its
        distance to the slot before it.
        """
        due = self.latest_due(at_utc)
        coming = next(self.due_between(at_utc, at_utc + _EARLY), None)
        if coming is None or due is None:
            return coming or due
        is_early = coming.at_utc - at_utc <= (coming.at_utc - due.at_utc) / 4
        return coming if is_early else due

    def _walk(self, low: datetime, high: datetime, step: int) -> Iterator[Slot]:
        raise NotImplementedError

    def _real_slot(self, at_utc: datetime) -> Slot:
        """A slot that is known by its real local time, offset included."""
        local = at_utc.astimezone(self._zone)
        nominal = local.replace(tzinfo=None, fold=0)
        note = "fold" if is_repeated(self._zone, nominal) else None
        return Slot(local_text(local, self._in_utc), at_utc, nominal, local, note)


class _NominalTimes(Schedule):
    """One slot for each nominal local time: fixed times and calendar expressions."""

    def __init__(self, zone: tzinfo, in_utc: bool, pattern: Pattern, in_gap: str) -> None:
        super().__init__(zone, in_utc)
        self._pattern = pattern
        self._in_gap = in_gap  # `after`: due at its end; `never`

    def _walk(self, low: datetime, high: datetime, step: int) -> Iterator[Slot]:
        # A nominal time is due in [low, high) exactly if the clock first reached it then.
        nominals = self._pattern.between(high_water(self._zone, low), high_water(self._zone, high), step)
        placed = ((nominal, first_reached(self._zone, nominal)) for nominal in nominals)
        kept = ((nominal, at) for nominal, at in placed if self._in_gap == "after" or at[1] != "gap")
        for at_utc, group in groupby(kept, key=lambda pair: pair[1][0]):
            yield self._slot(at_utc, *max(group))

    def _slot(self, at_utc: datetime, nominal: datetime, placed: Tuple[datetime, Optional[str]]) -> Slot:
        label = iso_minutes(nominal) + ("Z" if self._in_utc else "")
        return Slot(label, at_utc, nominal, at_utc.astimezone(self._zone), placed[1])


class _RealTimes(Schedule):
    """Every instant whose local time matches: wildcard cron."""

    def __init__(self, zone: tzinfo, in_utc: bool, pattern: Pattern) -> None:
        super().__init__(zone, in_utc)
        self._pattern = pattern

    def _walk(self, low: datetime, high: datetime, step: int) -> Iterator[Slot]:
        for regime in regimes(self._zone, low, high, step):
            for local in self._pattern.between(regime.clock(regime.start), regime.clock(regime.end), step):
                yield self._real_slot(regime.instant(local))


class _Period(Schedule):
    """Every so many seconds, counted from the epoch: the clock on the wall does not matter."""

    def __init__(self, zone: tzinfo, in_utc: bool, period: timedelta) -> None:
        super().__init__(zone, in_utc)
        self._period = period

    def _walk(self, low: datetime, high: datetime, step: int) -> Iterator[Slot]:
        first, end = (-((EPOCH - bound) // self._period) for bound in (low, high))  # rounded up
        for count in range(first, end)[::step]:
            yield self._real_slot(EPOCH + count * self._period)


def _bounded(at_utc: datetime) -> datetime:
    return min(max(at_utc, _START), _END)


def _just_after(at_utc: datetime) -> datetime:
    return min(at_utc, _END) + timedelta.resolution


def parse_schedule(text: ScheduleText, zone: str) -> Schedule:
    """The schedule that a text means in a zone; ScheduleError beginning with the option that is wrong."""
    loaded, in_utc = load_zone(zone), is_utc(zone)
    if text.kind == "every":
        return _Period(loaded, in_utc, _parse_period(text.text))
    if text.kind == "calendar":
        return _NominalTimes(loaded, in_utc, parse_calendar(text.text), in_gap="never")
    times = parse_cron(text.text)
    if times.fixed:
        return _NominalTimes(loaded, in_utc, times.pattern, in_gap="after")
    return _RealTimes(loaded, in_utc, times.pattern)


def _parse_period(text: str) -> timedelta:
    try:
        return timedelta(seconds=period(text))
    except ValueError as error:
        raise ScheduleError(f"--every: bad duration: {text!r}: {error}") from None
