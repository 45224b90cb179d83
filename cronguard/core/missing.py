"""Which units of work a stretch of time owed, and which of them are missing, oldest first.

A unit is a run key with its first slot; slots with one key are one unit, for run, check, catch-up and backfill alike.
All of it is lazy: a week of a minutely job is ten thousand slots, and whoever wants the oldest missing one should not
have to make the others. Pure: the present, and what a store says of the keys, are arguments.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Container, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

from cronguard.core.model import Slot
from cronguard.core.runkey import key_for
from cronguard.core.schedule import Schedule

PAGE = 500  # units that a store is asked about at once: as many keys as one of its statements takes
GIVEN_UP_AFTER = 3  # claims without success, after which `--catch-up oldest` leaves a unit to people


class Unit(NamedTuple):
    """A run key and the first slot that has it."""

    key: str
    slot: Slot


class Missing(NamedTuple):
    """A unit without success; `claims`: how often it was tried."""

    key: str
    slot: Slot
    claims: int


class Stretch(NamedTuple):
    """Units with a slot in [low, high) are owed. So is `lead`, but only if it was tried: the unit that was current when
    the job became known. It is the business of the run that made it known, if that was a run, no check and no pause."""

    low_utc: datetime
    high_utc: datetime
    lead: Optional[Unit] = None


class Timetable(NamedTuple):
    """What the keys of a job are made of: `mode` as `--key` has it, but never `none`."""

    schedule: Schedule
    mode: str
    zone: str

    def unit_of(self, slot: Slot) -> Unit:
        """The unit that a slot belongs to, with that slot."""
        return Unit(key_for(self.mode, slot, slot.at_utc, self.zone), slot)

    def units(self, stretch: Stretch) -> Iterator[Unit]:
        """Those of a stretch, oldest first, its lead at the head, lazily."""
        lead = () if stretch.lead is None else (stretch.lead.slot,)
        slots = self.schedule.between(stretch.low_utc, stretch.high_utc)
        return units_of(chain(lead, slots), self.mode, self.zone)

    def pages(self, stretch: Stretch, size: int = PAGE) -> Iterator[List[Unit]]:
        """The same, so many at a time."""
        units = self.units(stretch)
        return iter(lambda: list(islice(units, size)), [])

    def stretch(self, known_utc: datetime, low_utc: datetime, high_utc: datetime) -> Stretch:
        """What is owed in [low, high) of a job that is known since then."""
        if low_utc > known_utc:
            return Stretch(low_utc, high_utc)
        owed = Stretch(known_utc + timedelta.resolution, high_utc)
        current = self.schedule.latest_due(known_utc)
        if current is None or not low_utc <= current.at_utc < high_utc:
            return owed
        lead, first = self.unit_of(current), next(self.units(owed), None)
        return owed if first is not None and first.key == lead.key else owed._replace(lead=lead)


def units_of(slots: Iterable[Slot], mode: str, zone: str) -> Iterator[Unit]:
    """The units of these slots, each once, at its first slot. A key may come back: local days do in some folds."""
    seen: Set[str] = set()
    for slot in slots:
        key = key_for(mode, slot, slot.at_utc, zone)
        if key not in seen:
            seen.add(key)
            yield Unit(key, slot)


def missing_of(
    units: Sequence[Unit], undone: Container[str], claims: Mapping[str, int], lead: Optional[Unit]
) -> List[Missing]:
    """Those of a page that have no success, given the undone keys and how often each of them was claimed."""
    found = [Missing(unit.key, unit.slot, claims.get(unit.key, 0)) for unit in units if unit.key in undone]
    return [each for each in found if each.claims or lead is None or each.key != lead.key]


def most_claims(redo: str) -> int:
    """How often `--catch-up oldest` tries a unit before it passes it over."""
    return 1 if redo == "never" else GIVEN_UP_AFTER
