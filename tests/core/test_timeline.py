"""What became of each slot, by runs and schedule; merged where there are too many; days on which the clocks change."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import List, Optional, Sequence

import pytest

from cronguard.core.axis import Axis
from cronguard.core.model import JobRow, RunRow, ScheduleText
from cronguard.core.timeline import CELLS, Timeline, cells_of, timeline_of
from cronguard.core.zones import load_zone
from tests.support.rows import job_row, run_row

UTC = timezone.utc
NOW = datetime(2026, 1, 20, 9, 30, tzinfo=UTC)
HOURLY = ScheduleText("cron", "0 * * * *")


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 20, hour, minute, tzinfo=UTC)


FIRST = at(4)


def slot_run(hour: int, status: str = "success", **more: object) -> RunRow:
    key = f"2026-01-20T{hour:02d}:00Z"
    claim = None if status == "skipped" else 1
    return run_row("job", at(hour, 1), status, **{"slot_at_utc": at(hour), "run_key": key, "claim_no": claim, **more})


def timeline(
    runs: Sequence[RunRow] = (), row: Optional[JobRow] = None, since: datetime = FIRST, most_slots: int = 1000
) -> Timeline:
    row = row or job_row("job", HOURLY)
    return timeline_of(row, runs, Axis(since, NOW), load_zone(row.facts.zone), since, most_slots)


def kinds(found: Timeline) -> List[str]:
    return [mark.kind for mark in found.marks]


def test_every_due_slot_has_its_fate() -> None:
    runs = [
        slot_run(4), slot_run(5, "timeout"), slot_run(6, "skipped", reason="lock_held"),
        slot_run(8, "lost"), slot_run(9, "running"),
    ]  # fmt: skip
    found = timeline(runs)
    assert kinds(found) == ["done", "failed", "skipped", "missed", "failed", "running"]
    assert found.marks[3].at_utc == at(7)
    assert found.marks[-1].until_utc == NOW
    assert found.unknown_before_utc is None


def test_success_counts_whatever_else_happened_to_the_slot() -> None:
    runs = [slot_run(hour) for hour in (4, 5, 6, 7, 9)]
    tries = [slot_run(8, "failed"), slot_run(8), slot_run(8, "skipped", reason="already_done")]
    found = timeline(runs + tries)
    assert kinds(found) == ["done"] * 6
    assert "2 runs" in found.marks[4].text


def test_slot_within_its_allowance_is_not_missed_yet() -> None:
    row = job_row("job", HOURLY)
    generous = row._replace(facts=row.facts._replace(alerts=row.facts.alerts._replace(late_s=45 * 60.0)))
    assert [mark.at_utc.hour for mark in timeline(row=row).marks] == [4, 5, 6, 7, 8, 9]
    assert [mark.at_utc.hour for mark in timeline(row=generous).marks] == [4, 5, 6, 7, 8]


def test_nothing_is_missed_before_the_job_was_known_nor_in_a_pause() -> None:
    """FR-82, FR-100."""
    assert [mark.at_utc.hour for mark in timeline(row=job_row("job", HOURLY, since_utc=at(6, 30))).marks] == [7, 8, 9]
    paused = job_row("job", HOURLY, paused_since_utc=at(5, 30))
    assert [mark.at_utc.hour for mark in timeline(row=paused).marks] == [4, 5]
    over = job_row("job", HOURLY, paused_since_utc=at(5, 30), paused_until_utc=at(7, 30))
    assert [mark.at_utc.hour for mark in timeline(row=over).marks] == [8, 9]


def test_hourly_start_of_a_daily_unit_is_done_with_the_day() -> None:
    row = job_row("job", HOURLY, key="day")
    found = timeline([slot_run(4, run_key="2026-01-20")], row)
    assert kinds(found) == ["done"]


def test_run_by_hand_stands_where_it_began() -> None:
    found = timeline([run_row("job", at(5, 20), "failed", message="exited with 3", exit_code=3)], job_row("job"))
    assert [(mark.kind, mark.at_utc) for mark in found.marks] == [("failed", at(5, 20))]
    assert "exited with 3" in found.marks[0].text


def test_slots_beyond_the_bound_are_not_called_missed() -> None:
    """An every-second job over a week: the latest slots count, and the page says since when."""
    row = job_row("job", ScheduleText("every", "1s"))
    began = time.process_time()
    found = timeline(row=row, since=NOW - timedelta(days=7), most_slots=500)
    assert time.process_time() - began < 5
    assert len(found.marks) == 500
    assert found.unknown_before_utc is not None
    assert NOW - found.unknown_before_utc < timedelta(minutes=25)
    assert len(cells_of(found.marks, Axis(NOW - timedelta(days=7), NOW))) <= CELLS


def test_what_stands_too_close_is_one_place_with_counts_and_the_worst_first() -> None:
    runs = [run_row("job", at(4) + timedelta(seconds=number), message="") for number in range(50)]
    runs.append(run_row("job", at(4, 1), "failed"))
    axis = Axis(NOW - timedelta(days=7), NOW)
    (cell,) = cells_of(timeline(runs, job_row("job"), axis.since_utc).marks, axis)
    assert (cell.counts["done"], cell.counts["failed"]) == (50, 1)
    assert cell.texts[0] == "50 done, 1 failed"
    assert "failed" in cell.texts[1]
    assert cell.texts[-1] == "and 46 more"


@pytest.mark.parametrize(
    ("day", "label", "text"),
    [
        (datetime(2026, 3, 29), "29 Mar +1h", "2026-03-29: the clocks go forward by 1h at 2026-03-29T01:00Z"),
        (datetime(2026, 10, 25), "25 Oct -1h", "2026-10-25: the clocks go back by 1h at 2026-10-25T01:00Z"),
    ],
)
def test_day_of_a_clock_change_is_marked_as_long_as_it_is(day: datetime, label: str, text: str) -> None:
    """FR-104: 23 and 25 hours."""
    axis = Axis((day - timedelta(days=3)).replace(tzinfo=UTC), (day + timedelta(days=4)).replace(tzinfo=UTC))
    (change,) = axis.clock_changes(load_zone("Europe/Rome"))
    hours = (change.end - change.start) / 100 * 7 * 24
    assert (change.label, change.text) == (label, text)
    assert round(hours) == (23 if label.endswith("+1h") else 25)
    assert axis.clock_changes(UTC) == []


@pytest.mark.parametrize("span", [timedelta(minutes=1), timedelta(hours=5), timedelta(days=7), timedelta(days=900)])
def test_axis_has_few_round_labels(span: timedelta) -> None:
    ticks = Axis(NOW - span, NOW).ticks(load_zone("Europe/Rome"))
    assert 1 <= len(ticks) <= 8
    assert all(0 <= tick.at <= 100 for tick in ticks)
