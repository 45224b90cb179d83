"""systemd's OnCalendar expressions, parsed by oncalendar, brought to a `Pattern`.

oncalendar is asked to parse and never to iterate: over aware datetimes it has its own idea of gaps and folds. It
needs Python 3.10. A time zone inside the expression is refused: the company's zone decides, for every job alike.
"""

from __future__ import annotations

from datetime import datetime

from cronguard.core.pattern import Pattern, refuse_never
from cronguard.errors import ScheduleError

_LONGEST = 200
_HINT = "write it as systemd.time(7) says, such as 'Mon..Fri 02:30', without a time zone (--timezone says that)"


def parse_calendar(text: str) -> Pattern:
    """The times of one expression; ScheduleError with the text for one that is wrong or never occurs."""
    try:
        from oncalendar import BaseIterator, OnCalendarError
    except ImportError:
        raise ScheduleError(
            f"--calendar: not supported: {text!r}: this Python has no oncalendar, which needs Python 3.10",
            "write it as --cron",
        ) from None
    # systemd knows ASCII only; oncalendar's numbers are as long as you like.
    if not text.isascii() or not text.isprintable() or len(text) > _LONGEST:
        raise ScheduleError(f"--calendar: bad expression: {text[:_LONGEST]!r}: not one short line of ASCII", _HINT)
    try:
        # It only parses here; the start is of no importance.
        times = BaseIterator(text, datetime(2000, 1, 1))
    except OnCalendarError as error:
        raise ScheduleError(f"--calendar: bad expression: {text!r}: {str(error).lower()}", _HINT) from None
    pattern = Pattern(
        years=frozenset(times.years),
        months=tuple(sorted(times.months)),
        days=frozenset(times.days),
        weekdays=frozenset(times.weekdays),
        either=False,
        hours=tuple(sorted(times.hours)),
        minutes=tuple(sorted(times.minutes)),
        seconds=tuple(sorted(times.seconds)),
    )
    refuse_never(pattern, f"--calendar: no such date ever: {text!r}")
    return pattern
