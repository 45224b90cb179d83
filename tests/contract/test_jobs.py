"""What is kept of a job so that nobody reads its history: definition, streaks, successes, on every kind of store."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, List

import pytest

from cronguard.core.model import Alerts, ScheduleText, Slot, Success
from cronguard.store.backend import SqlStore
from cronguard.store.summaries import job_row, select_statement
from cronguard.store.waiting import Deadline
from tests.support.claims import (
    DEAD,
    WITHIN_S,
    claimed,
    facts,
    finish,
    now,
    report,
    request,
    row_of,
    skip,
    summary_of,
)
from tests.support.plans import plan

AT = datetime(2026, 1, 20, 1, 0, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def slot(at: datetime) -> Slot:
    return Slot(at.isoformat(), at, at.replace(tzinfo=None), at, None)


def run(store: SqlStore, status: str, key: str, end: Any = None, **wish: Any) -> None:
    claim = claimed(store, request(key, **wish))
    assert store.finish(claim, finish(status, **(end or {})), WITHIN_S)


def see(store: SqlStore, at: datetime, **changes: Any) -> None:
    store.remember(facts(**changes), at, WITHIN_S)


def test_whole_definition_comes_back_with_its_alerts(store: SqlStore) -> None:
    known = facts(alerts=Alerts("each", 60.0, 7200.0, 90000.0, 5, 9, 1.5), limit_s=4000.0)
    run(store, "success", "one", facts=known)
    assert summary_of(store).facts == known
    see(store, now())
    assert summary_of(store).facts == facts()


def test_job_can_be_known_before_its_first_run(store: SqlStore) -> None:
    see(store, AT)
    summary = summary_of(store)
    assert (summary.first_seen_utc, summary.since_utc, summary.last_run) == (AT, AT, None)
    assert (summary.successes, summary.usual_duration_s, summary.strip) == ((), None, "")


@pytest.mark.parametrize("change", [{"schedule": ScheduleText("cron", "0 3 * * *")}, {"zone": "Europe/Berlin"}])
def test_job_is_looked_at_anew_from_a_change_of_schedule_or_zone(store: SqlStore, change: Any) -> None:
    """Schedule changes do not make old slots missed."""
    see(store, AT)
    see(store, AT + HOUR, timeout_s=5.0)
    assert summary_of(store).since_utc == AT
    see(store, AT + 2 * HOUR, **change)
    summary = summary_of(store)
    assert (summary.since_utc, summary.first_seen_utc) == (AT + 2 * HOUR, AT)
    see(store, AT + 3 * HOUR, **change)
    assert summary_of(store).since_utc == AT + 2 * HOUR


def test_definition_is_as_old_as_schedule_zone_and_key_whatever_pauses_there_were(store: SqlStore) -> None:
    """Keys of before were others: backfill takes nothing for missing there."""
    see(store, AT)
    store.pause(facts().job, "", None, AT + HOUR, WITHIN_S)
    store.resume(facts().job, AT + 2 * HOUR, WITHIN_S)
    assert (summary_of(store).defined_utc, summary_of(store).since_utc) == (AT, AT + 2 * HOUR)
    see(store, AT + 3 * HOUR, key="day")
    assert (summary_of(store).defined_utc, summary_of(store).since_utc) == (AT + 3 * HOUR, AT + 2 * HOUR)


def test_jobs_of_the_version_before_can_be_looked_at(store: SqlStore) -> None:
    """Whoever looks first after an update neither upgrades the tables nor fails on them."""
    see(store, AT)
    (old,) = store._read([select_statement((facts().job,), 1)], Deadline(WITHIN_S))
    assert job_row(old.rows[0], store.leased)._replace(defined_utc=AT) == summary_of(store)


def test_where_nothing_is_left_to_catch_up_is_remembered(store: SqlStore) -> None:
    see(store, AT)
    assert summary_of(store).settled_until_utc is None
    store.note_settled(facts().job, AT, AT + HOUR, WITHIN_S)
    assert (summary_of(store).settled_from_utc, summary_of(store).settled_until_utc) == (AT, AT + HOUR)


def test_a_start_without_a_schedule_takes_none_away(store: SqlStore) -> None:
    """A script that starts the job as well must not make it a job of which nothing is expected."""
    see(store, AT)
    see(store, AT + HOUR, schedule=None, zone="Asia/Tokyo", key="none", timeout_s=5.0)
    summary = summary_of(store)
    assert (summary.facts.schedule, summary.facts.zone, summary.facts.key) == (
        facts().schedule, facts().zone, facts().key,
    )  # fmt: skip
    assert (summary.facts.timeout_s, summary.since_utc) == (5.0, AT)


def test_runs_by_hand_and_late_reports_change_no_definition(store: SqlStore) -> None:
    see(store, AT)
    other = facts(schedule=None)
    run(store, "success", "one", facts=other, trigger="manual", now_utc=AT + HOUR)
    run(store, "success", "filled", facts=other, trigger="backfill", now_utc=AT + HOUR)
    store.deliver(report(request("two", facts=other, now_utc=AT - HOUR), finish()), WITHIN_S)
    summary = summary_of(store)
    assert (summary.facts, summary.since_utc) == (facts(), AT)


def test_latest_successes_are_kept_with_their_ends_oldest_first(store: SqlStore) -> None:
    ends = [AT + number * HOUR for number in range(23)]
    for number, end in enumerate(ends):
        run(store, "success", str(number), {"finished_at_utc": end, "duration_s": float(number)})
    run(store, "failed", "failed")
    summary = summary_of(store)
    assert summary.successes == tuple(Success(ends[number], float(number)) for number in range(2, 23))
    assert (summary.usual_duration_s, summary.last_success_utc) == (12.0, ends[-1])


def test_success_for_an_older_slot_moves_the_latest_slot_not_back(store: SqlStore) -> None:
    run(store, "success", "new", slot=slot(AT))
    run(store, "success", "old", slot=slot(AT - 24 * HOUR), trigger="backfill")
    run(store, "success", "none", trigger="manual")
    assert summary_of(store).last_success_slot_utc == AT
    run(store, "failed", "next", slot=slot(AT + 24 * HOUR))
    assert summary_of(store).last_success_slot_utc == AT


def outcomes(store: SqlStore, letters: str) -> List[int]:
    """The streak after each run: capital letters are scheduled, small ones by hand, `-` is a skip."""
    streaks = []
    for number, letter in enumerate(letters):
        if letter == "-":
            store.record_skip(skip(), WITHIN_S)
        else:
            trigger = "schedule" if letter.isupper() else "manual"
            run(store, "success" if letter in "Ss" else "failed", str(number), trigger=trigger)
        streaks.append(summary_of(store).failures_in_row)
    return streaks


@pytest.mark.parametrize(
    ("letters", "streaks"),
    [
        ("FFSFFF", [1, 2, 0, 1, 2, 3]),
        ("F-F-FS", [1, 1, 2, 2, 3, 0]),
        ("FfsF", [1, 1, 1, 2]),
        ("sfF", [0, 0, 1]),
    ],
)
def test_streak_is_of_scheduled_runs_alone(store: SqlStore, letters: str, streaks: List[int]) -> None:
    """FR-106."""
    assert outcomes(store, letters) == streaks


def test_slot_that_fails_again_and_again_counts_once_and_ends_the_streak_when_it_succeeds(store: SqlStore) -> None:
    """FR-106."""
    run(store, "failed", "a")
    run(store, "failed", "b")
    run(store, "timeout", "b")
    claimed(store, request("b"))
    store.close()
    claim = claimed(store, request("b"), DEAD)
    assert summary_of(store).failures_in_row == 2
    store.finish(claim, finish("failed", attempts=4), WITHIN_S)
    assert summary_of(store).failures_in_row == 2
    run(store, "success", "b")
    assert summary_of(store).failures_in_row == 0
    run(store, "failed", "b2")
    run(store, "success", "a", trigger="backfill")
    assert summary_of(store).failures_in_row == 0


def test_slot_that_a_person_failed_first_counts_when_the_schedule_fails_it(store: SqlStore) -> None:
    run(store, "failed", "a")
    run(store, "failed", "b", trigger="manual")
    run(store, "failed", "b")
    assert summary_of(store).failures_in_row == 2


def test_refusal_by_hand_is_no_failure_of_the_job(store: SqlStore) -> None:
    store.record_skip(skip(status="failed", trigger="manual"), WITHIN_S)
    assert (summary_of(store).failures_in_row, summary_of(store).strip) == (0, "f")


def test_streak_of_skips_says_why_and_who(store: SqlStore) -> None:
    store.record_skip(skip(holder="r1"), WITHIN_S)
    store.record_skip(skip("already_done", holder="r0"), WITHIN_S)
    store.record_skip(skip("paused"), WITHIN_S)
    summary = summary_of(store)
    assert (summary.skips_in_row, summary.last_skip_reason, summary.last_skip_holder) == (1, "lock_held", "r1")
    store.record_skip(skip("too_late"), WITHIN_S)
    summary = summary_of(store)
    assert (summary.skips_in_row, summary.last_skip_reason, summary.last_skip_holder) == (2, "too_late", None)


def test_running_run_shows_until_when_its_claim_is_good(store: SqlStore) -> None:
    """Where nothing renews (SQLite) a claim has no end but its owner's."""
    before = now()
    claim = claimed(store, request(lease_s=600.0))
    lease = summary_of(store).running_lease_utc
    assert (lease is not None) == store.leased
    if lease is not None:
        assert timedelta(seconds=590) < lease - before < timedelta(seconds=620)
    store.finish(claim, finish(), WITHIN_S)
    assert summary_of(store).running_lease_utc is None


def test_runs_of_all_jobs_since_an_instant_come_newest_first_without_output(store: SqlStore) -> None:
    for number, job in enumerate(["a", "b", "a", "c"]):
        wish = request(str(number), job, run_id=f"r{number}", now_utc=AT + number * HOUR)
        store.finish(claimed(store, wish), finish(tail="long"), WITHIN_S)
    found = store.runs_since(AT + HOUR, 10, WITHIN_S)
    assert [row.run_id for row in found] == ["r3", "r2", "r1"]
    assert {row.tail for row in found} == {""}
    assert found[0] == row_of(store, "r3")._replace(tail="")
    assert [row.run_id for row in store.runs_since(AT, 2, WITHIN_S)] == ["r3", "r2"]


@pytest.mark.parametrize("names", [(), ("job",)])
def test_summaries_never_read_the_history(store: SqlStore, names: Any) -> None:
    """FR-67: by the plan, not by the watch."""
    text = plan(store, select_statement(names))
    for scan in ("SCAN a", "SCAN b", "SCAN l", "Seq Scan on runs", "Seq Scan on locks"):
        assert scan not in text, text


def test_totals_count_what_was_started_failed_and_skipped(store: SqlStore) -> None:
    """Counters for Prometheus: pruning and runs by hand take nothing from them."""
    for status in ("failed", "success"):
        run(store, status, status, {"claim_s": 0.25})
    store.record_skip(skip("already_done"), WITHIN_S)
    summary = summary_of(store)
    assert (summary.runs_total, summary.failures_total, summary.skips_total) == (2, 1, 1)
    assert summary.last_claim_s == 0.25
