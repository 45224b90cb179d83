"""Which naive local times a schedule names: the calendar arithmetic without any time zone.

Cron and calendar expressions are both brought to one `Pattern`, so that one small walk, forwards or backwards, serves
both. It is written here and not left to cronsim, as the design first had it, for three reasons: cronsim's import alone
(12 ms, it loads `calendar` and `locale`) costs more than the interpreter does, at every start of `run`; oncalendar
cannot walk backwards; and cronsim takes expressions that Debian's cron refuses, and `5-5/15` for `5/15`. The tests
hold this walk against both.

Promises not to know of zones, offsets or today.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Container, FrozenSet, Iterator, List, NamedTuple, Sequence, Tuple

from cronguard.errors import ScheduleError

# Every search ends here. Far enough for any job; near enough to stay clear of datetime's own limits.
FIRST_YEAR, LAST_YEAR = 1900, 2999
FIRST = datetime(FIRST_YEAR, 1, 1)
LAST = datetime(LAST_YEAR + 1, 1, 1)

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


class Pattern(NamedTuple):
    """Sets of values, each sequence increasing.

    `days` counts from 1, or, when negative, from the end of the month (-1 is the last). `weekdays`: Monday is 0.
    `either`: a date fits when its day or its weekday does (cron, neither field starting with `*`), else both must.
    """

    years: Container[int]
    months: Sequence[int]
    days: FrozenSet[int]
    weekdays: FrozenSet[int]
    either: bool
    hours: Sequence[int]
    minutes: Sequence[int]
    seconds: Sequence[int]

    def between(self, low: datetime, high: datetime, step: int = 1) -> Iterator[datetime]:
        """The naive times in [low, high), increasing for step 1, decreasing for step -1; lazily."""
        for year, month in self._months(low, high, step):
            for day in self._days_of(year, month)[::step]:
                midnight = datetime(year, month, day)
                if midnight < high and midnight + _DAY > low:
                    yield from self._times_of(midnight, low, high, step)

    def ever(self) -> bool:
        """Whether it names any time at all: 30 February does not."""
        return next(self.between(FIRST, LAST), None) is not None

    def _months(self, low: datetime, high: datetime, step: int) -> Iterator[Tuple[int, int]]:
        for year in range(low.year, high.year + 1)[::step]:
            if year not in self.years:
                continue
            for month in self.months[::step]:
                if (low.year, low.month) <= (year, month) <= (high.year, high.month):
                    yield year, month

    def _days_of(self, year: int, month: int) -> List[int]:
        first = date(year, month, 1)
        length = (date(year + month // 12, month % 12 + 1, 1) - first).days
        fits = any if self.either else all
        return [
            day
            for day in range(1, length + 1)
            if fits((
                day in self.days or day - length - 1 in self.days,
                (first.weekday() + day - 1) % 7 in self.weekdays,
            ))
        ]

    def _times_of(self, midnight: datetime, low: datetime, high: datetime, step: int) -> Iterator[datetime]:
        for hour in self.hours[::step]:
            start = midnight.replace(hour=hour)
            if start >= high or start + _HOUR <= low:
                continue
            for minute in self.minutes[::step]:
                for second in self.seconds[::step]:
                    moment = start.replace(minute=minute, second=second)
                    if low <= moment < high:
                        yield moment


def refuse_never(pattern: Pattern, message: str) -> None:
    """ScheduleError with that message for a pattern that names no time, such as 30 February; quickly (FR-84)."""
    if not pattern.ever():
        raise ScheduleError(message)
