"""`next`: the coming slots of a schedule given in the line, or of jobs by their own, as text or JSON."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from cronguard.cli.edge import print_lines
from cronguard.cli.parameters import arguments, command, option, option_for
from cronguard.cli.render import Table, print_json, print_table
from cronguard.commands import next as next_of
from cronguard.commands.next import MOST, NextSlots
from cronguard.commands.schedules import Asked, schedule_given, schedules_of
from cronguard.core.instants import local_text, parse_instant, utc_text
from cronguard.core.model import Invocation, Slot
from cronguard.core.settings import BY_NAME, RIVALS
from cronguard.core.values import judged, whole_number
from cronguard.core.wording import in_words
from cronguard.errors import UsageError
from cronguard.system import clock

_COUNT = 10
_HEADERS = ("key", "local", "utc", "note")


@command(
    arguments("jobs", "[JOB]...", "jobs whose schedule is known; all of them without any"),
    *[option_for(BY_NAME[name]) for name in (*RIVALS[0], "timezone")],
    option("start", "--from", "the first instant that counts [now]", "INSTANT"),
    option("count", "--count", f"how many slots [{_COUNT}]", "N"),
    option("as_json", "--json", "print one JSON object"),
)
def coming(
    invocation: Invocation,
    ctx: Any,
    jobs: Optional[List[str]],
    start: Optional[str],
    count: Optional[str],
    as_json: bool,
    **schedule: Optional[str],
) -> int:
    """Show the coming slots of a schedule, in local time and in UTC.

    A note says when a slot's local time does not exist that day (gap) or comes twice (fold).

    Example: cronguard next --cron "30 2 * * *" --timezone Europe/Rome --from 2027-03-27

    Example: cronguard next nightly-export --count 3
    """
    given = {name: text for name, text in schedule.items() if text is not None}
    found = _found(jobs or [], given, invocation, start, count)
    if as_json:
        print_json(_as_json(found))
        return 0
    for each in found:
        whose = "" if each.job is None else f"job {each.job}: "
        print_lines([f"{whose}{in_words(each.schedule)}, {each.zone}"])
        print_table(Table(_HEADERS, tuple(_row(slot) for slot in each.slots)), invocation.environ)
    return 0


def _found(
    jobs: List[str], given: Dict[str, str], invocation: Invocation, start: Optional[str], count: Optional[str]
) -> Tuple[NextSlots, ...]:
    number = _COUNT if count is None else judged("--count", whole_number(1, MOST), count)
    schedule_options = [f"--{name}" for name in given if name != "timezone"]
    if schedule_options and jobs:
        raise UsageError(f"{schedule_options[0]}: goes without a job's name, whose own schedule it is that counts")
    asked: Tuple[Asked, ...]
    if schedule_options:
        asked = (schedule_given(given, invocation),)
    else:
        asked = schedules_of(jobs, given.get("timezone"), invocation)
    now_utc = clock.now_utc(invocation.environ)
    starts = [now_utc if start is None else parse_instant(start, each.zone, now_utc) for each in asked]
    return tuple(
        next_of.next_slots(each.schedule, each.zone, start_utc, number, each.job)
        for each, start_utc in zip(asked, starts)
    )


def _as_json(found: Tuple[NextSlots, ...]) -> Dict[str, object]:
    """That of one schedule; slots of jobs also carry the job's name."""
    slots: List[object] = []
    for each in found:
        listed: Any = next_of.as_json(each.slots)["slots"]
        slots += [slot if each.job is None else {**slot, "job": each.job} for slot in listed]
    return {"version": 1, "slots": slots}


def _row(slot: Slot) -> Tuple[str, ...]:
    return (slot.label, local_text(slot.local, slot.label.endswith("Z")), utc_text(slot.at_utc), slot.note or "")
