"""Cron expressions as Debian's cron reads them (crontab(5), entry.c, cron.c), and nothing that it does not.

Other dialects' signs (`L W # ?`, `5/15`, seconds, `@reboot`, ranges that wrap) are refused by field and text: an
expression that another cron reads differently would give slots at which nothing ever fires. Two of Debian's rules
hang on how a field is written, not on what it matches: a day-of-month or day-of-week that *starts* with `*` (`*/2`
too) makes both apply, otherwise either will do; a minute or hour that starts with `*` makes the job a wildcard job.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence, Set, Tuple

from cronguard.core.pattern import FIRST_YEAR, LAST_YEAR, Pattern, refuse_never
from cronguard.errors import ScheduleError


class CronTimes(NamedTuple):
    """What an expression means. `fixed`: the job runs at fixed times (Debian's rule), not by wildcard."""

    pattern: Pattern
    fixed: bool


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: Tuple[str, ...] = ()  # the first one stands for `low`


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day-of-month", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("day-of-week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def parse_cron(text: str) -> CronTimes:
    """The times of five fields or a nickname; ScheduleError naming the field and the text for anything else."""
    minute, hour, day, month, weekday = fields = _split(text)
    minutes, hours, days, months, weekdays = (
        _values(field, written) for field, written in zip(_FIELDS, fields)
    )
    pattern = Pattern(
        years=range(FIRST_YEAR, LAST_YEAR + 1),
        months=months,
        days=frozenset(days),
        weekdays=frozenset((number - 1) % 7 for number in weekdays),
        either=not (day.startswith("*") or weekday.startswith("*")),
        hours=hours,
        minutes=minutes,
        seconds=(0,),
    )
    refuse_never(pattern, f"--cron: no such date ever: day-of-month {day} in month {month}")
    return CronTimes(pattern, fixed=not (minute.startswith("*") or hour.startswith("*")))


def _split(text: str) -> Sequence[str]:
    bare = text.strip(" \t")
    if bare.startswith("@"):
        if bare not in NICKNAMES:
            raise ScheduleError(f"--cron: bad nickname: {bare!r}: not one of {' '.join(NICKNAMES)}")
        bare = NICKNAMES[bare]
    # Blanks and tabs only, as cron has it: str.split() would take a line break or a no-break space for one.
    fields = [part for part in bare.replace("\t", " ").split(" ") if part]
    if len(fields) != len(_FIELDS):
        raise ScheduleError(
            f"--cron: bad expression: {text!r}: {len(fields)} fields instead of five",
            "write minute, hour, day-of-month, month and day-of-week, in quotes; no seconds, no year",
        )
    return fields


def _values(field: _Field, written: str) -> Tuple[int, ...]:
    values: Set[int] = set()
    for term in written.split(","):
        values.update(_term(field, term, written))
    return tuple(sorted(values))


def _term(field: _Field, term: str, written: str) -> Sequence[int]:
    """The numbers of one item of a list: `*`, `*/n`, `n`, `n-m`, `n-m/n`."""
    body, slash, step = term.partition("/")
    first, dash, last = body.partition("-")
    if body == "*":
        low, high = field.low, field.high
    else:
        low = _number(field, first, written)
        high = _number(field, last, written) if dash else low
    if slash and not dash and body != "*":
        raise _bad(field, written, f"a step needs a range or *, such as {first}-{field.high}/{step}")
    if low > high:
        sunday = ", or Sunday as 7" if "sun" in field.names else ""
        raise _bad(field, written, f"the range {body} runs backwards; write it as two{sunday}")
    return range(low, high + 1, _step(field, step, written) if slash else 1)


def _number(field: _Field, text: str, written: str) -> int:
    if text.lower() in field.names:
        return field.names.index(text.lower()) + field.low
    if not _is_digits(text):
        names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise _bad(field, written, f"{text!r} is not a number{names}; cron has lists, ranges, steps and *, no L W # ?")
    if not field.low <= int(text) <= field.high:
        raise _bad(field, written, f"only {field.low} to {field.high} are allowed")
    return int(text)


def _step(field: _Field, text: str, written: str) -> int:
    if not _is_digits(text) or int(text) == 0:
        raise _bad(field, written, "a step is a number from 1 up")
    return int(text)


def _is_digits(text: str) -> bool:
    # ASCII only (isdigit takes other scripts'), and no longer than int() takes from anybody.
    return text.isascii() and text.isdigit() and len(text) <= 9


def _bad(field: _Field, written: str, why: str) -> ScheduleError:
    return ScheduleError(f"--cron: bad {field.name}: {written!r}: {why}")
