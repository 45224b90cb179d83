"""The report's axis of time: where an instant falls, where lines and labels stand, and on which days the clocks change.

Places are per cent of the width, so that one drawing fits a wall and a phone. Days are those of the job's zone.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Iterator, List, NamedTuple, Tuple

from cronguard.core.durations import format_duration
from cronguard.core.instants import utc_text
from cronguard.core.wallclock import first_reached, regimes

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = timedelta(days=1)
_MOST_TICKS = 7
_STEPS = tuple(
    timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, *(1440 * days for days in (1, 2, 7, 14)))
)


class Tick(NamedTuple):
    """A line at `at`, per cent; `label`: `20 Jan` or `06:00`."""

    at: float
    label: str


class ClockChange(NamedTuple):
    """A local day that is not 24 hours long, from `start` to `end`, per cent; `label`: `29 Mar +1h`."""

    start: float
    end: float
    label: str
    text: str


class Axis(NamedTuple):
    """From one instant to another, both UTC."""

    since_utc: datetime
    until_utc: datetime

    def place(self, at_utc: datetime) -> float:
        """Per cent of the width, within 0 and 100."""
        share = (at_utc - self.since_utc) / (self.until_utc - self.since_utc)
        return 100.0 * min(max(share, 0.0), 1.0)

    def ticks(self, zone: tzinfo) -> List[Tick]:
        """At most 7 round local times, the same distance apart."""
        span = self.until_utc - self.since_utc
        step = next((step for step in _STEPS if span <= step * _MOST_TICKS), _DAY * (1 + span // _DAY // _MOST_TICKS))
        return [Tick(self.place(at_utc), _label(local, step)) for local, at_utc in self._round_times(zone, step)]

    def clock_changes(self, zone: tzinfo) -> List[ClockChange]:
        """The days on which the zone's clocks go forwards or back."""
        pieces = list(regimes(zone, self.since_utc, self.until_utc))
        return [
            self._clock_change(zone, before.offset, after.offset, after.start)
            for before, after in zip(pieces, pieces[1:])
            if before.offset != after.offset
        ]

    def _clock_change(self, zone: tzinfo, before: timedelta, after: timedelta, at_utc: datetime) -> ClockChange:
        day = (at_utc.replace(tzinfo=None) + before).replace(hour=0, minute=0, second=0, microsecond=0)
        start, end = (first_reached(zone, moment)[0] for moment in (day, day + _DAY))
        which = "forward" if after > before else "back"
        by = format_duration(abs((after - before).total_seconds()))
        text = f"{day.date().isoformat()}: the clocks go {which} by {by} at {utc_text(at_utc)}"
        label = f"{_label(day, _DAY)} {'+' if after > before else '-'}{by}"
        return ClockChange(self.place(start), self.place(end), label, text)

    def _round_times(self, zone: tzinfo, step: timedelta) -> Iterator[Tuple[datetime, datetime]]:
        origin = datetime(2001, 1, 1)  # a Monday
        local = self.since_utc.astimezone(zone).replace(tzinfo=None) - step
        local = origin + (local - origin) // step * step
        while True:
            at_utc = first_reached(zone, local)[0]
            if at_utc > self.until_utc:
                return
            if at_utc >= self.since_utc:
                yield local, at_utc
            local += step


def _label(local: datetime, step: timedelta) -> str:
    return f"{local.day} {_MONTHS[local.month - 1]}" if step >= _DAY else f"{local:%H:%M}"
