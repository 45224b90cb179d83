"""Slots by brute force: every minute of real time is looked at, so that there is nothing to get wrong.

Shares nothing with the engine but the zone data. Good for whole minutes and a few days at a time.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Iterator, List, NamedTuple, Optional, Set

UTC = timezone.utc
MINUTE = timedelta(minutes=1)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Expected(NamedTuple):
    label: str
    at_utc: datetime
    note: Optional[str]


class Cron:
    """Five numeric fields, judged against one minute at a time."""

    def __init__(self, text: str) -> None:
        self.fields = text.split()
        self.sets = [self._numbers(field, *bounds) for field, bounds in zip(self.fields, RANGES)]
        self.fixed = self.fields[0][0] != "*" and self.fields[1][0] != "*"

    def _numbers(self, field: str, low: int, high: int) -> Set[int]:
        found: Set[int] = set()
        for term in field.split(","):
            body, _, step = term.partition("/")
            first, _, last = body.partition("-")
            bounds = (low, high) if body == "*" else (int(first), int(last or first))
            found |= set(range(bounds[0], bounds[1] + 1, int(step or 1)))
        return found

    def matches(self, local: datetime) -> bool:
        minutes, hours, days, months, weekdays = self.sets
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        on_day = local.day in days
        on_weekday = local.isoweekday() in weekdays or local.isoweekday() % 7 in weekdays
        if self.fields[2][0] == "*" or self.fields[4][0] == "*":
            return on_day and on_weekday
        return on_day or on_weekday


class Clock:
    """What a zone's clock shows at every minute in [low, high), and around it for longer than any jump there."""

    def __init__(self, zone: tzinfo, low: datetime, high: datetime, around: timedelta) -> None:
        self.low, self.high = low, high
        start = low - around
        instants = [start + n * MINUTE for n in range(int((high + around - start) / MINUTE))]
        self.shown = [(at_utc, at_utc.astimezone(zone)) for at_utc in instants]
        self.times = Counter(local.replace(tzinfo=None, fold=0) for _, local in self.shown)

    def slots(self, text: str) -> List[Expected]:
        """The slots of a cron expression in [low, high), oldest first."""
        cron = Cron(text)
        found = self._fixed(cron) if cron.fixed else self._wild(cron)
        return [slot for slot in found if self.low <= slot.at_utc < self.high]

    def _wild(self, cron: Cron) -> Iterator[Expected]:
        for at_utc, local in self.shown:
            naive = local.replace(tzinfo=None, fold=0)
            if cron.matches(naive):
                yield Expected(local.isoformat(timespec="minutes"), at_utc, self._note(naive))

    def _fixed(self, cron: Cron) -> Iterator[Expected]:
        """Each minute: the nominal minutes that the clock now reached for the first time, of those the latest."""
        reached = self.shown[0][1].replace(tzinfo=None) - MINUTE
        for at_utc, local in self.shown:
            due = None
            while reached < local.replace(tzinfo=None):
                reached += MINUTE
                due = reached if cron.matches(reached) else due
            if due:
                yield Expected(due.isoformat(timespec="minutes"), at_utc, self._note(due))

    def _note(self, naive: datetime) -> Optional[str]:
        return {0: "gap", 1: None, 2: "fold"}[self.times[naive]]


def changes(zone: tzinfo, low: datetime, high: datetime) -> List[datetime]:
    """The hours in [low, high) in which the zone's offset changes, found by looking at every hour."""
    hour = timedelta(hours=1)
    hours = [low + n * hour for n in range(int((high - low) / hour))]
    return [at for at in hours if at.astimezone(zone).utcoffset() != (at + hour).astimezone(zone).utcoffset()]
