"""Finding what is missing: pages of a job's units, put before the store until one has what is wanted.

Reads are bounded by what is asked for, not by how much is missing. Where everything is done, which is how it should be,
the oldest missing unit is the end of a long search: what has been searched in vain is noted with the job, so that the
next start, on whatever host, begins behind it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from cronguard.core import overdue
from cronguard.core.durations import format_duration
from cronguard.core.missing import PAGE, Missing, Stretch, Timetable, Unit, missing_of, most_claims
from cronguard.core.model import Event, JobRow, JobSpec, Say
from cronguard.core.schedule import parse_schedule
from cronguard.errors import StoreDown, StoreError
from cronguard.pipeline.passage import Budget, Place
from cronguard.store.worker import StoreWorker

FIND_S = 10.0
HURRIED_S = 3.0  # for who may do without the store: it is given its full time again when the slot is claimed
NOTE_S = 2.0


class Choice(NamedTuple):
    """Which unit an invocation takes and why. `given_up`: older ones that were tried too often."""

    place: Place
    why: str
    given_up: Tuple[Missing, ...] = ()


class Search(NamedTuple):
    """A page of units and those of them that are missing; `until_utc`: everything before it has been looked at."""

    units: List[Unit]
    missing: List[Missing]
    until_utc: datetime


def search(job: str, times: Timetable, stretch: Stretch, store: StoreWorker) -> Iterator[Search]:
    """The missing units of a stretch, page by page, oldest first."""
    for page in times.pages(stretch):
        undone, claims = _asked(job, [unit.key for unit in page], store)
        until = page[-1].slot.at_utc + timedelta.resolution
        yield Search(page, missing_of(page, frozenset(undone), claims, stretch.lead), until)


def _asked(job: str, keys: List[str], store: StoreWorker) -> Tuple[List[str], Dict[str, int]]:
    """Which of the keys have no success, and how often each of those was claimed."""
    budget = Budget(FIND_S)
    undone = store.call(lambda opened: opened.undone(job, keys, budget.left()), budget.left())
    if not undone:
        return [], {}
    return undone, store.call(lambda opened: opened.claims(job, undone, budget.left()), budget.left())


def place_of(unit: Missing, at_utc: datetime, late_from_utc: Optional[datetime]) -> Place:
    """Where a passage for that unit belongs."""
    return Place(unit.slot, unit.key, at_utc, late_from_utc)


def say_choice(spec: JobSpec, choice: Choice, own: Place, say: Say) -> None:
    """What of it is news."""
    if choice.given_up:
        first = choice.given_up[0]
        text = f"passed over what was tried too often, from {first.key} on; `cronguard backfill {spec.job}` tries again"
        say(Event("given_up", "info", {"job": spec.job, "slots": len(choice.given_up)}, text))
    if choice.place.run_key != own.run_key:
        say(Event("catching_up", "info", {"job": spec.job, "key": choice.place.run_key}, choice.why))


def choose(spec: JobSpec, zone: str, own: Place, store: StoreWorker, note: bool) -> Choice:
    """`--catch-up oldest`: the oldest missing unit since the job was expected, within the look-back, or the own one.

    `note`: remember what was searched in vain. StoreDown when nobody can tell what is missing."""
    late_s = own.late_s(own.at_utc)
    if spec.max_late_s is not None and late_s is not None and late_s > spec.max_late_s:
        return Choice(own, "the start is too late even for its own slot")
    row = next(iter(store.call(lambda opened: opened.jobs((spec.job,), FIND_S), FIND_S)), None)
    if row is None:
        return Choice(own, "the job is new")
    if (row.facts.schedule, row.facts.zone, row.facts.key) != (spec.schedule, zone, spec.key):
        return Choice(own, "the job had another schedule, zone or key until now")
    if overdue.is_paused(row, own.at_utc):
        return Choice(own, "the job is paused")
    return _oldest(spec, row, own, zone, store, note)


def choose_or_latest(spec: JobSpec, zone: str, own: Place, store: StoreWorker, say: Say) -> Place:
    """The choice for a run, said; with `--on-store-error run` and a store that is down the own slot."""
    within_s = HURRIED_S if spec.on_store_error == "run" else FIND_S
    try:
        store.call(lambda opened: opened.prepare(within_s), within_s)
        choice = choose(spec, zone, own, store, note=True)
    except StoreDown as error:
        if spec.on_store_error != "run":
            raise
        text = f"{spec.job} takes its latest slot: the store is down, nobody can tell what is missing ({error})"
        say(Event("not_caught_up", "warning", {"job": spec.job}, text))
        return own
    say_choice(spec, choice, own, say)
    return choice.place


def _oldest(spec: JobSpec, row: JobRow, own: Place, zone: str, store: StoreWorker, note: bool) -> Choice:
    assert spec.schedule is not None
    assert own.slot is not None
    times = Timetable(parse_schedule(spec.schedule, zone), spec.key, zone)
    whole = times.stretch(overdue.expected_since(row), _low(row, spec, own.at_utc), own.slot.at_utc)
    stretch = _unsettled(row, whole)
    most = most_claims(spec.redo)
    wanted: Optional[Missing] = None
    given_up: List[Missing] = []
    searched: Optional[datetime] = None
    for found in search(spec.job, times, stretch, store):
        older = [each for each in found.missing if each.key != own.run_key]
        wanted = next((each for each in older if each.claims < most), None)
        given_up += older if wanted is None else older[: older.index(wanted)]
        if wanted is not None:
            break
        if len(found.units) == PAGE:
            searched = found.until_utc
    if note and searched is not None:
        _note(spec.job, row, whole, stretch, searched, store)
    if wanted is None:
        return Choice(own, "nothing older is missing", tuple(given_up))
    back = format_duration(spec.look_back_s)
    why = f"the oldest missing slot of the last {back}; the own slot of this start is {own.slot.label}"
    return Choice(place_of(wanted, own.at_utc, own.late_from_utc), why, tuple(given_up))


def _low(row: JobRow, spec: JobSpec, now_utc: datetime) -> datetime:
    """No further back than the look-back, and than rows are kept."""
    low = now_utc - timedelta(seconds=spec.look_back_s)
    return low if row.pruned_before_utc is None else max(low, row.pruned_before_utc + timedelta.resolution)


def _begin(stretch: Stretch) -> datetime:
    return stretch.low_utc if stretch.lead is None else stretch.lead.slot.at_utc


def _unsettled(row: JobRow, stretch: Stretch) -> Stretch:
    """The part that has not been searched in vain before."""
    begin, end = row.settled_from_utc, row.settled_until_utc
    if begin is None or end is None or not begin <= _begin(stretch) < end:
        return stretch
    return Stretch(min(end, stretch.high_utc), stretch.high_utc)


def _note(
    job: str, row: JobRow, whole: Stretch, searched: Stretch, until_utc: datetime, store: StoreWorker
) -> None:
    """What is known by now joins what was known before, if it was of use. Only speed depends on it (P7)."""
    begin = row.settled_from_utc if searched != whole and row.settled_from_utc is not None else _begin(whole)
    try:
        store.call(lambda opened: opened.note_settled(job, begin, until_utc, NOTE_S), NOTE_S)
    except StoreError:
        pass
