"""A zone's wall clock against real time: the one place that knows what a change of offset does.

The clock is taken as a function from instants to naive local times: straight pieces of slope 1 (`Regime`), each with
one UTC offset, that jump forwards (a gap) or backwards (a fold) where they meet. Everything is asked of that function
with instants in UTC; no day is ever added to a local time, for midnight, or the whole day, may not exist.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo
from typing import Iterator, List, NamedTuple, Optional, Tuple

UTC = timezone.utc
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SECOND = timedelta(seconds=1)
_NO_OFFSET = timedelta(0)
# The offset is sampled once a cell. Two changes nearer to each other than that could cancel out unseen; the nearest
# pair in the tz database is a week apart (a test looks through all of it).
_CELL = timedelta(days=3)
# No clock was ever put back by more than a day (Alaska 1867, Kwajalein 1969).
_LONGEST_FOLD = timedelta(days=1, hours=1)


class Regime(NamedTuple):
    """From `start` on and before `end`, both UTC, the zone is `offset` ahead of UTC."""

    start: datetime
    end: datetime
    offset: timedelta

    def clock(self, at_utc: datetime) -> datetime:
        """The naive local time at an instant, by this offset."""
        return at_utc.replace(tzinfo=None) + self.offset

    def instant(self, local: datetime) -> datetime:
        """The instant of a naive local time, by this offset."""
        return (local - self.offset).replace(tzinfo=UTC)


def regimes(zone: tzinfo, low: datetime, high: datetime, step: int = 1) -> Iterator[Regime]:
    """Pieces that cover [low, high), in order of time for step 1, backwards for step -1; lazily."""
    cells = range((low - EPOCH) // _CELL, (high - EPOCH) // _CELL + 1)
    for cell in cells[::step]:
        start, end = max(low, EPOCH + cell * _CELL), min(high, EPOCH + (cell + 1) * _CELL)
        if start < end:
            yield from _split(zone, start, end)[::step]


def high_water(zone: tzinfo, at_utc: datetime) -> datetime:
    """The naive local time that the clock had reached (never quite: it is a supremum) before that instant."""
    recent = regimes(zone, at_utc - _LONGEST_FOLD, at_utc)
    return max(regime.clock(regime.end) for regime in recent)


def first_reached(zone: tzinfo, local: datetime) -> Tuple[datetime, Optional[str]]:
    """The first instant at which the clock shows that naive time or a later one, and `gap` or `fold` if it did jump.

    In a fold that is the first of the two passes, in a gap the first instant after it. Hence the result never
    decreases as `local` grows, and two local times share an instant only at the end of a gap.
    """
    # PEP 495: fold=0 takes the offset before the change, fold=1 the one after it; without a change they agree.
    before, after = (_offset(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    earliest = (local - before).replace(tzinfo=UTC)
    if before >= after:
        return earliest, "fold" if before > after else None
    return _change(zone, (local - after).replace(tzinfo=UTC), earliest), "gap"


def is_repeated(zone: tzinfo, local: datetime) -> bool:
    """Whether a naive time that the clock does show is shown twice."""
    before, after = (_offset(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    return before > after


def _split(zone: tzinfo, start: datetime, end: datetime) -> List[Regime]:
    pieces: List[Regime] = []
    last = _offset_at(zone, end - timedelta.resolution)
    while _offset_at(zone, start) != last:
        change = _change(zone, start, end)
        pieces.append(Regime(start, change, _offset_at(zone, start)))
        start = change
    return [*pieces, Regime(start, end, last)]


def _change(zone: tzinfo, low: datetime, high: datetime) -> datetime:
    """The first instant after `low` whose offset is not that of `low`; somewhere up to `high` there is one."""
    low = low.replace(microsecond=0)  # changes fall on whole seconds
    old = _offset_at(zone, low)
    same, other = 0, -((low - high) // _SECOND)
    while other - same > 1:
        middle = (same + other) // 2
        if _offset_at(zone, low + middle * _SECOND) == old:
            same = middle
        else:
            other = middle
    return low + other * _SECOND


def _offset_at(zone: tzinfo, at_utc: datetime) -> timedelta:
    return _offset(at_utc.astimezone(zone))


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or _NO_OFFSET  # aware, so None cannot be; a zero offset is false, too
