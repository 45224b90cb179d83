"""The rules of `check` at frozen instants, each kind with its threshold, through clock changes and pauses."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, List, Optional, Sequence, Tuple

import pytest

from cronguard.core import overdue
from cronguard.core.health import Case, Finding, findings_of, nothing_to_check
from cronguard.core.model import Alerts, JobRow, ScheduleText, Slot, Success, Verdict
from cronguard.core.schedule import Schedule, parse_schedule
from tests.support.rows import job_row, run_row

UTC = timezone.utc
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NIGHTLY = ScheduleText("cron", "0 2 * * *")
ROME = "Europe/Rome"  # 02:00 is 01:00Z in winter


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


parsed = lru_cache(maxsize=None)(parse_schedule)


def schedule_of(row: JobRow) -> Optional[Schedule]:
    return parsed(row.facts.schedule, row.facts.zone) if row.facts.schedule else None


def found(row: JobRow, now: datetime, **more: Any) -> List[Finding]:
    return findings_of(Case(row, now, schedule_of(row), **more))


def kinds(row: JobRow, now: datetime, **more: Any) -> List[str]:
    return [finding.kind for finding in found(row, now, **more)]


def nightly(last_slot: str, took: timedelta = 6 * MINUTE, **more: Any) -> JobRow:
    """A job of 02:00 Rome that last succeeded for that slot."""
    slot_at = at(last_slot)
    run = run_row("nightly-export", slot_at, took_s=took.total_seconds(), slot_at_utc=slot_at)
    fields = {"last_run": run, "last_success_utc": slot_at + took, "last_success_slot_utc": slot_at,
              "last_success_key": f"{slot_at + HOUR:%Y-%m-%dT%H:%M}"}  # fmt: skip
    return job_row("nightly-export", NIGHTLY, ROME, **{**fields, **more})


# --- missed ---


def test_slot_is_missed_when_its_allowance_is_over_and_not_before() -> None:
    """Article 3: nightly at 02:00, allowance 15 minutes, no success."""
    row = nightly("2026-01-19T01:00")
    assert kinds(row, at("2026-01-20T01:14:59")) == []
    (finding,) = found(row, at("2026-01-20T01:15"))
    assert (finding.kind, finding.state, finding.since_utc) == ("missed", "critical", at("2026-01-20T01:00"))


def test_summary_says_in_plain_words_how_long_and_what_was_expected() -> None:
    """FR-51: with the zone, and instants in it and in UTC."""
    row = nightly("2026-01-19T01:00")
    (finding,) = found(row, at("2026-01-20T02:06"))
    assert finding.summary == (
        "nightly-export has not succeeded for 25h (expected at 02:00 every day, Europe/Rome)."
        " last success: 2026-01-19 02:06; missed: 2026-01-20 02:00 (2026-01-20T01:00Z), 66m late;"
        " next: 2026-01-21 02:00 (2026-01-21T01:00Z)"
    )
    (finding,) = found(row, at("2026-01-23T02:06"))
    assert "4 slots missed since 2026-01-20 02:00" in finding.summary
    assert "has not succeeded for 4d" in finding.summary


def test_allowance_for_starting_late_is_the_jobs_own() -> None:
    row = nightly("2026-01-19T01:00", alerts=Alerts(late_s=7200))
    assert kinds(row, at("2026-01-20T02:59")) == []
    assert kinds(row, at("2026-01-20T03:00")) == ["missed"]


def test_run_under_way_is_not_missed_while_it_may_take_so_long() -> None:
    run = run_row("nightly-export", at("2026-01-20T01:00"), "running", slot_at_utc=at("2026-01-20T01:00"))
    row = nightly("2026-01-19T01:00", running=run, last_run=run, alerts=Alerts(long_s=7200))
    assert kinds(row, at("2026-01-20T03:00")) == []
    assert kinds(row, at("2026-01-20T03:01")) == ["missed", "stuck"]
    of_yesterday = run._replace(slot_at_utc=at("2026-01-19T01:00"), started_at_utc=at("2026-01-20T00:30"))
    assert kinds(row._replace(running=of_yesterday), at("2026-01-20T01:15")) == ["missed"]


def test_job_registered_in_the_evening_is_first_expected_at_night() -> None:
    """FR-100: 17:00 for 01:00."""
    row = job_row("j", ScheduleText("cron", "0 1 * * *"), first_seen_utc=at("2026-01-19T17:00"))
    for now in ("2026-01-19T17:01", "2026-01-20T00:59", "2026-01-20T01:14"):
        assert kinds(row, at(now)) == []
    (finding,) = found(row, at("2026-01-20T01:15"))
    assert finding.kind == "never_ran"
    assert finding.summary.startswith("j has never run in the 8h since it is known (expected at 01:00 every day, UTC)")
    assert "nothing started it" in finding.check_first[-1]


def test_changed_schedule_does_not_make_old_slots_missed() -> None:
    """FR-82."""
    row = nightly("2026-01-18T01:00", since_utc=at("2026-01-20T09:00"))
    assert kinds(row, at("2026-01-20T12:00")) == []
    assert kinds(row, at("2026-01-21T01:15")) == ["missed"]


def test_paused_job_has_no_findings_and_is_expected_again_after_it() -> None:
    pause = {"paused_since_utc": at("2026-01-19T12:00"), "paused_reason": "move"}
    row = nightly("2026-01-19T01:00", failures_in_row=9, skips_in_row=9, **pause)
    assert kinds(row, at("2026-03-01T00:00")) == []
    row = nightly("2026-01-19T01:00", paused_until_utc=at("2026-01-22T00:00"), **pause)
    assert kinds(row, at("2026-01-21T23:00")) == []
    assert kinds(row, at("2026-01-22T01:14")) == []
    assert kinds(row, at("2026-01-22T01:15")) == ["missed"]


def test_success_by_hand_without_a_slot_excuses_the_slot_before_it() -> None:
    by_hand = run_row("nightly-export", at("2026-01-20T08:00"))
    row = nightly("2026-01-19T01:00", last_run=by_hand, last_success_utc=by_hand.finished_at_utc, last_success_key="x")
    assert kinds(row, at("2026-01-20T09:00")) == []
    assert kinds(row, at("2026-01-21T01:15")) == ["missed"]


def test_success_of_a_later_slot_excuses_and_a_backfilled_older_one_does_not() -> None:
    assert kinds(nightly("2026-01-21T01:00"), at("2026-01-21T12:00")) == []
    late = nightly("2026-01-18T01:00", last_success_utc=at("2026-01-21T11:00"))
    assert kinds(late, at("2026-01-21T12:00")) == ["missed"]


def test_slots_with_one_key_are_one_unit() -> None:
    hourly = ScheduleText("cron", "0 * * * *")
    row = job_row("j", hourly, key="day", first_seen_utc=at("2026-01-01T00:00"), last_success_key="2026-01-20",
                  last_success_slot_utc=at("2026-01-20T03:00"), last_success_utc=at("2026-01-20T03:01"))  # fmt: skip
    assert kinds(row, at("2026-01-20T23:59")) == []
    assert kinds(row, at("2026-01-21T00:14")) == []
    assert kinds(row, at("2026-01-21T00:15")) == ["missed"]
    (finding,) = found(row, at("2026-01-22T12:00"))
    assert "2 slots missed" in finding.summary


def each(row: JobRow, now: datetime, done: Sequence[str]) -> List[Finding]:
    """As check asks a store that has these keys."""
    schedule = schedule_of(row)
    assert schedule is not None
    units = overdue.units_due(row, schedule, now)
    undone: Tuple[Tuple[str, Slot], ...] = tuple((key, slot) for key, slot in units.items() if key not in done)
    return found(row, now, undone=undone)


def test_each_slot_needs_its_own_success() -> None:
    row = nightly("2026-01-22T01:00", alerts=Alerts(slots="each"), since_utc=at("2026-01-19T12:00"))
    now = at("2026-01-22T12:00")
    assert each(row, now, ["2026-01-20T02:00", "2026-01-21T02:00", "2026-01-22T02:00"]) == []
    (finding,) = each(row, now, ["2026-01-20T02:00", "2026-01-22T02:00"])
    assert finding.since_utc == at("2026-01-21T01:00")
    assert "2026-01-21 02:00" in finding.summary


def test_each_looks_back_no_further_than_the_look_back_and_what_is_kept() -> None:
    row = nightly("2026-01-22T01:00", alerts=Alerts(slots="each"))
    schedule = schedule_of(row)
    assert schedule is not None
    now = at("2026-01-22T12:00")
    assert next(iter(overdue.units_due(row, schedule, now))) == "2026-01-16T02:00"
    kept = row._replace(pruned_before_utc=at("2026-01-20T01:00"))
    assert next(iter(overdue.units_due(kept, schedule, now))) == "2026-01-20T02:00"


def test_slot_under_way_is_not_owed() -> None:
    run = run_row("j", at("2026-01-22T01:00"), "running", run_key="2026-01-22T02:00")
    row = nightly("2026-01-21T01:00", alerts=Alerts(slots="each"), since_utc=at("2026-01-20T12:00"), running=run)
    assert each(row, at("2026-01-22T01:30"), ["2026-01-21T02:00"]) == []


def test_absence_of_weeks_is_counted_once_and_fast() -> None:
    """FR-80: every minute, three weeks ago: 30,000 slots."""
    last = at("2026-01-01T00:00")
    row = job_row("j", ScheduleText("cron", "* * * * *"), last_success_utc=last, last_success_slot_utc=last)
    (finding,) = found(row, at("2026-01-22T00:00"))
    assert "more than 1000 slots missed since 2026-01-01 00:01" in finding.summary


# --- the calendar ---


@pytest.mark.parametrize(
    ("start", "days", "slots"),
    [
        ("2026-10-24T00:00", 3, ["2026-10-24T00:00", "2026-10-25T00:00", "2026-10-26T01:00"]),
        ("2026-03-28T00:00", 3, ["2026-03-28T01:00", "2026-03-29T01:00", "2026-03-30T00:00"]),
    ],
)
def test_clock_changes_make_neither_a_false_alert_nor_a_hole(start: str, days: int, slots: List[str]) -> None:
    """FR-104: Europe/Berlin, 02:00, looked at every 5 minutes; then without the run of the day of the change."""
    instants = [at(slot) for slot in slots]
    for dropped in (None, instants[1]):
        now, alerts = at(start), []
        while now < at(start) + days * DAY:
            done = [slot for slot in instants if slot + 3 * MINUTE <= now and slot != dropped]
            last = done[-1] if done else instants[0] - DAY
            row = job_row("j", NIGHTLY, "Europe/Berlin", last_run=run_row("j", last, slot_at_utc=last),
                          last_success_slot_utc=last, last_success_utc=last + 3 * MINUTE)  # fmt: skip
            if found(row, now):
                alerts.append(now)
            now += 5 * MINUTE
        if dropped is None:
            assert alerts == []
        else:
            assert alerts[0] == dropped + 15 * MINUTE
            assert alerts[-1] == instants[2]  # until the next night's success, found by the look after it


def test_days_that_a_month_does_not_have_are_not_missed() -> None:
    """FR-84."""
    march = at("2026-03-31T05:00")
    row = job_row("j", ScheduleText("cron", "0 5 31 * *"), last_run=run_row("j", march, slot_at_utc=march),
                  last_success_slot_utc=march, last_success_utc=march + MINUTE)  # fmt: skip
    for day in ("2026-04-30T12:00", "2026-05-01T12:00", "2026-05-31T05:14"):
        assert kinds(row, at(day)) == []
    assert kinds(row, at("2026-05-31T05:15")) == ["missed"]


# --- without a schedule ---


def successes(*ends: str, took_s: float = 60.0) -> Tuple[Success, ...]:
    return tuple(Success(at(end), took_s) for end in ends)


def unscheduled(**more: Any) -> JobRow:
    ends = ("2026-01-20T00:00", "2026-01-20T01:00", "2026-01-20T02:00")
    fields = {"successes": successes(*ends), "last_success_utc": at(ends[-1]), "last_run": run_row("j", at(ends[-1]))}
    return job_row("j", **{**fields, **more})


def test_without_a_schedule_twice_the_usual_interval_is_too_long() -> None:
    row = unscheduled()
    assert kinds(row, at("2026-01-20T03:59")) == []
    (finding,) = found(row, at("2026-01-20T04:00"))
    assert finding.summary.startswith("j has not succeeded for 2h (usually every 60m). last success: 2026-01-20 02:00")
    assert kinds(unscheduled(successes=successes("2026-01-20T02:00")), at("2027-01-01T00:00")) == []


def test_max_age_overrules_what_is_usual_and_adds_to_a_schedule() -> None:
    row = unscheduled(alerts=Alerts(max_age_s=86400))
    assert kinds(row, at("2026-01-21T01:59")) == []
    assert kinds(row, at("2026-01-21T02:00")) == ["missed"]
    assert kinds(nightly("2026-01-19T01:00", alerts=Alerts(max_age_s=3600)), at("2026-01-19T12:00")) == ["missed"]
    never = job_row("j", first_seen_utc=at("2026-01-01T00:00"), alerts=Alerts(max_age_s=3600))
    assert kinds(never, at("2026-01-01T00:59")) == []
    assert kinds(never, at("2026-01-01T01:00")) == ["never_ran"]


# --- stuck, lost, failing, slow, skipping ---


def running(**more: Any) -> JobRow:
    run = run_row("j", at("2026-01-20T00:00"), "running")
    return job_row("j", **{"running": run, "last_run": run, **more})


def test_run_beyond_its_limit_is_stuck() -> None:
    row = running(limit_s=3610.0)
    assert kinds(row, at("2026-01-20T01:01")) == []
    (finding,) = found(row, at("2026-01-20T01:02"))
    assert (finding.kind, finding.state) == ("stuck", "critical")
    assert "web-1" in finding.summary
    assert finding.check_first[0].startswith(f"lock j: run {row.running.run_id[:8]} on web-1, pid 100, holds it since")  # type: ignore[union-attr]
    assert kinds(running(limit_s=None), at("2026-02-20T00:00")) == []
    assert kinds(running(limit_s=9e9, alerts=Alerts(long_s=60)), at("2026-01-20T00:02")) == ["stuck"]


def test_run_whose_owner_is_gone_is_stuck_at_once() -> None:
    now = at("2026-01-20T00:01")
    assert kinds(running(), now, verdict=Verdict("alive")) == []
    assert kinds(running(), now, verdict=Verdict("unknown")) == []
    assert kinds(running(), now, verdict=Verdict("unknown"), lease_over=True) == ["stuck"]
    (finding,) = found(running(), now, verdict=Verdict("dead", (7, 9)))
    assert "its cronguard is gone, which left processes behind: 7 9" in finding.summary


def test_lost_run_is_told_until_something_succeeded() -> None:
    lost = run_row("j", at("2026-01-20T00:00"), "lost")
    assert kinds(job_row("j", last_run=lost), at("2026-01-20T03:00")) == ["lost"]
    assert kinds(job_row("j", last_run=lost, last_success_utc=at("2026-01-20T01:00")), at("2026-01-20T03:00")) == []


@pytest.mark.parametrize(("failures", "limit", "expected"), [(2, 3, []), (3, 3, ["failing"]), (4, 5, [])])
def test_failures_in_a_row_have_a_threshold_of_their_own(failures: int, limit: int, expected: List[str]) -> None:
    """FR-106."""
    bad = run_row("j", at("2026-01-20T00:00"), "failed", exit_code=3, message="exit code 3")
    row = job_row("j", last_run=bad, failures_in_row=failures, alerts=Alerts(max_failures=limit))
    assert kinds(row, at("2026-01-20T03:00")) == expected


def test_advice_has_the_end_of_the_output_and_what_changed() -> None:
    good = run_row("j", at("2026-01-19T00:00"), release="v1")
    bad = run_row("j", at("2026-01-20T00:00"), "failed", exit_code=3, host="web-2", release="v2", message="token=abc")
    row = job_row("j", last_run=bad, failures_in_row=3)
    (finding,) = found(row, at("2026-01-20T03:00"), tail="one\nno space left, password=hunter2\n\n", last_good=good)
    assert finding.check_first == (
        f"last run {bad.run_id} on web-2: failed, exit 3: token=*** (cronguard show {bad.run_id})",
        "its output ends: no space left, password=***",
        "changed since the last success: host web-1 -> web-2",
        "changed since the last success: release v1 -> v2",
    )


def test_slow_is_measured_against_at_least_five_successes() -> None:
    now = at("2026-01-20T12:00")
    usual = tuple(Success(at("2026-01-20T00:00") + n * HOUR, 60.0) for n in range(5))
    slow = Success(at("2026-01-20T06:00"), 181.0)
    assert kinds(job_row("j", successes=(*usual, slow), alerts=FAR), now) == ["slow"]
    assert kinds(job_row("j", successes=(*usual, slow._replace(duration_s=180.0)), alerts=FAR), now) == []
    assert kinds(job_row("j", successes=(*usual[1:], slow), alerts=FAR), now) == []
    quick = tuple(each._replace(duration_s=0.1) for each in usual)
    assert kinds(job_row("j", successes=(*quick, slow._replace(duration_s=0.9)), alerts=FAR), now) == []
    at_work = run_row("j", now - 4 * MINUTE, "running")
    (finding,) = found(job_row("j", successes=usual, running=at_work, last_run=at_work, alerts=FAR), now)
    assert (finding.kind, finding.state, finding.summary) == ("slow", "warning", "j is running for 4m, usually 60s")


FAR = Alerts(max_age_s=3e9)


def test_skips_in_a_row_name_the_holder() -> None:
    row = job_row("j", skips_in_row=5, last_skip_reason="lock_held", last_skip_holder="0197f3a2deadbeef")
    (finding,) = found(row, at("2026-01-20T00:00"))
    assert (finding.kind, finding.state) == ("skipping", "warning")
    assert finding.summary == "j was skipped 5 times in a row: lock_held by run 0197f3a2deadb. last success: never"
    assert kinds(row._replace(skips_in_row=4), at("2026-01-20T00:00")) == []


def test_many_hosts_that_give_way_to_the_one_that_runs_are_no_trouble() -> None:
    done = nightly("2026-01-20T01:00", skips_in_row=7, last_skip_reason="lock_held")
    assert done.last_run is not None
    done = done._replace(last_skip_holder=done.last_run.run_id)
    assert kinds(done, at("2026-01-20T12:00")) == []
    run = run_row("nightly-export", at("2026-01-20T01:00"), "running", slot_at_utc=at("2026-01-20T01:00"))
    busy = done._replace(running=run, last_run=run, last_skip_holder=run.run_id)
    assert kinds(busy, at("2026-01-20T01:05")) == []
    assert kinds(busy, at("2026-01-21T01:05")) == ["skipping"]


def test_nothing_to_check_is_unknown() -> None:
    finding = nothing_to_check(at("2026-01-20T00:00"))
    assert (finding.job, finding.kind, finding.state) == ("", "nothing_to_check", "unknown")
