"""What is missing of a job in a stretch of time, and what of that time is left out and why.

Left out is what only looks missing: units of before the job was known as it is now defined (they had another key, or
none), and units of which the rows were pruned. So is, under `--redo never`, what was tried and may not be tried again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import FrozenSet, List, NamedTuple, Optional, Tuple

from cronguard.core.instants import utc_text
from cronguard.core.missing import Missing, Stretch, Timetable
from cronguard.core.model import Event, Say
from cronguard.pipeline.catching_up import search
from cronguard.store.worker import StoreWorker

MOST = 100_000  # units at once: two months of a minutely job
MOST_COUNTED = 1000  # of those that are left out


class Wanted(NamedTuple):
    """Units with a slot in [low, high), `most` of them. None: whatever the instant. `pruned_before_utc`: of units up to
    then nobody knows whether they were done; they are left out unless `forced`."""

    low_utc: datetime
    high_utc: datetime
    most: int
    known_utc: Optional[datetime]
    pruned_before_utc: Optional[datetime]
    forced: bool
    retried: bool  # units that were tried may be tried again


class Gaps(NamedTuple):
    """What is missing, oldest first; `more`: there is more of it than was wanted. `unknown`: those of the missing of
    which nobody knows whether they were done. The numbers are of units left out, up to one more than are counted."""

    missing: Tuple[Missing, ...]
    more: bool
    unknown: FrozenSet[str]
    before_known: int
    pruned: int
    tried: int


def find_gaps(job: str, times: Timetable, wanted: Wanted, store: StoreWorker) -> Gaps:
    """The gaps. StoreDown when nobody can tell. Reads no more than it takes to find as many as are wanted."""
    low, high, before = wanted.low_utc, wanted.high_utc, wanted.pruned_before_utc
    pruned = 0
    if before is not None and not wanted.forced:
        kept = before + timedelta.resolution
        pruned, low = _count(times, low, min(kept, high)), max(low, kept)
    stretch, before_known = Stretch(low, high), 0
    if wanted.known_utc is not None:
        stretch = times.stretch(wanted.known_utc, low, high)
        if stretch.lead is not None and before is not None and stretch.lead.slot.at_utc <= before:
            stretch = Stretch(stretch.lead.slot.at_utc, high)  # whether it was tried is no longer known
        owed = stretch.low_utc if stretch.lead is None else stretch.lead.slot.at_utc
        before_known = _count(times, low, min(owed, high))
    missing: List[Missing] = []
    tried = 0
    for found in search(job, times, stretch, store):
        free = [unit for unit in found.missing if wanted.retried or not unit.claims]
        tried += len(found.missing) - len(free)
        missing += free
        if len(missing) > wanted.most:
            break
    unknown = frozenset(unit.key for unit in missing if before is not None and unit.slot.at_utc <= before)
    return Gaps(tuple(missing[: wanted.most]), len(missing) > wanted.most, unknown, before_known, pruned, tried)


def say_left_out(job: str, wanted: Wanted, gaps: Gaps, say: Say) -> None:
    """A line for each reason."""
    since = "" if wanted.known_utc is None else utc_text(wanted.known_utc.replace(microsecond=0))
    for number, why in (
        (gaps.before_known, f"before {since}: the job was not known yet with this schedule, zone and key; see --all"),
        (gaps.pruned, "of before rows were pruned: nobody knows whether they were done; see --force"),
        (gaps.tried, "that were tried without success: --redo is never; see --force"),
    ):
        if number:
            counted = f"more than {MOST_COUNTED}" if number > MOST_COUNTED else str(number)
            slots = "slot" if number == 1 else "slots"
            say(Event("left_out", "warning", {"job": job}, f"without {counted} {slots} {why}"))


def _count(times: Timetable, low: datetime, high: datetime) -> int:
    return sum(1 for _ in islice(times.units(Stretch(low, high)), MOST_COUNTED + 1))
