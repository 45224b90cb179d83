"""What holds for any schedule, zone and instant (FR-93)."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from cronsim import CronSim, CronSimError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cronguard.core.cron import parse_cron
from cronguard.core.model import ScheduleText
from cronguard.core.pattern import FIRST, LAST
from cronguard.core.schedule import Schedule, parse_schedule
from cronguard.core.wallclock import UTC
from cronguard.errors import ScheduleError

ZONES = (
    "UTC", "Europe/Rome", "America/New_York", "America/Santiago", "Asia/Beirut", "Asia/Kathmandu", "Africa/Casablanca",
    "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll", "Pacific/Kwajalein", "Europe/Dublin",
)  # fmt: skip
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> str:
    first = draw(st.integers(low, high))
    last = draw(st.integers(min(first + 1, high), high))
    step = draw(st.integers(1, 20))
    forms = ["*", "*", f"*/{step}", str(first), f"{first},{last}", f"{first}-{last}"]
    # Not `5-5/15`: cronsim takes it for `5/15`, from 5 on.
    return draw(st.sampled_from([*forms, f"{first}-{last}/{step}"] if first < last else forms))


CRONS = st.tuples(fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12), fields(0, 7)).map(" ".join)
PERIODS = st.sampled_from(["90s", "5m", "45m", "12h"])
TEXTS = st.one_of(CRONS.map(lambda text: ScheduleText("cron", text)), PERIODS.map(lambda t: ScheduleText("every", t)))
MOMENTS = st.datetimes(datetime(1965, 1, 1), datetime(2110, 1, 1))
# Half of the instants lie where some zone of ours changes its offset.
CHANGES = st.sampled_from([
    datetime(2026, 3, 29, 1), datetime(2026, 10, 25, 1), datetime(2026, 3, 8, 7), datetime(2026, 11, 1, 6),
    datetime(2026, 9, 6, 4), datetime(2026, 3, 28, 22), datetime(2026, 2, 15, 2), datetime(2026, 3, 22, 2),
    datetime(2026, 4, 4, 15), datetime(2026, 10, 3, 15, 30), datetime(2026, 4, 4, 14), datetime(2026, 9, 26, 14),
    datetime(2011, 12, 30, 10), datetime(1993, 8, 21, 12), datetime(1969, 9, 30, 13),
])  # fmt: skip
NEAR_CHANGES = st.builds(lambda change, near: change + near, CHANGES, st.timedeltas(-HOUR * 27, HOUR * 3))
INSTANTS = st.one_of(MOMENTS, NEAR_CHANGES).map(lambda moment: moment.replace(tzinfo=UTC))
MANY = settings(max_examples=60, deadline=None)


def schedule(text: ScheduleText, zone: str) -> Schedule:
    try:
        return parse_schedule(text, zone)
    except ScheduleError as error:
        assume("no such date ever" not in str(error))
        raise


@MANY
@given(TEXTS, st.sampled_from(ZONES), INSTANTS)
def test_slots_strictly_increase_and_no_two_share_a_label(text: ScheduleText, zone: str, start: datetime) -> None:
    slots = list(islice(schedule(text, zone).slots_from(start), 60))
    instants = [slot.at_utc for slot in slots]
    assert instants == sorted(set(instants))
    assert len({slot.label for slot in slots}) == len(slots) == 60
    assert instants[0] >= start


@MANY
@given(TEXTS, st.sampled_from(ZONES), INSTANTS)
def test_slot_of_an_instant_is_the_last_before_it_tolerance_aside(text: ScheduleText, zone: str, at: datetime) -> None:
    """FR-74."""
    due, coming = schedule(text, zone).latest_due(at), next(schedule(text, zone).slots_from(at + timedelta.resolution))
    assert due is not None
    assert due.at_utc <= at < coming.at_utc
    tolerance = min(timedelta(seconds=2), (coming.at_utc - due.at_utc) / 4)
    assert schedule(text, zone).latest(at) == (coming if coming.at_utc - at <= tolerance else due)


@MANY
@given(TEXTS, st.sampled_from(ZONES), INSTANTS, st.timedeltas(timedelta(0), HOUR * 30))
def test_result_does_not_depend_on_where_the_search_began(
    text: ScheduleText, zone: str, start: datetime, later: timedelta
) -> None:
    plan, end = schedule(text, zone), start + later + timedelta(minutes=20)
    whole = list(plan.between(start, end))
    assert list(plan.between(start + later, end)) == [slot for slot in whole if slot.at_utc >= start + later]
    assert list(plan.between(start, end, -1)) == whole[::-1]


@MANY
@given(CRONS, MOMENTS, st.sampled_from([1, -1]))
def test_naive_walk_agrees_with_cronsim_in_both_directions(text: str, start: datetime, step: int) -> None:
    """Another engine, over naive local time, where it is sound."""
    start = start.replace(second=0, microsecond=0)
    try:
        pattern = parse_cron(text).pattern
        theirs = CronSim(text, start, reverse=step == -1)
    except (ScheduleError, CronSimError):  # cronsim 2.6, the last for Python 3.8, refuses the Sundays of `* * 30 2 0`
        assume(False)
    ours = pattern.between(start + MINUTE, LAST) if step == 1 else pattern.between(FIRST, start, -1)
    assert list(islice(ours, 5)) == list(islice(theirs, 5))


@MANY
@given(st.sampled_from(["cron", "calendar", "every"]), st.text(max_size=30), st.sampled_from(ZONES))
def test_any_text_is_a_schedule_or_a_schedule_error(kind: str, text: str, zone: str) -> None:
    said = f"--{kind}: "
    try:
        parse_schedule(ScheduleText(kind, text), zone)
    except ScheduleError as error:
        said = str(error)
    assert said.startswith(f"--{kind}: ")
