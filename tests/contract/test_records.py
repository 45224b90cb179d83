"""Skips, summaries, history: what status and check read, on every kind of store."""

from __future__ import annotations

from datetime import timedelta
from typing import Callable

import pytest

from cronguard.core.model import ScheduleText
from cronguard.core.model import Slot as ASlot
from cronguard.store.backend import KEYS_AT_ONCE, SqlStore
from cronguard.store.opening import open_store
from tests.support.claims import (
    ALIVE,
    DEAD,
    WITHIN_S,
    claimed,
    facts,
    finish,
    now,
    request,
    row_of,
    skip,
    summary_of,
)
from tests.support.plans import plan


def run(store: SqlStore, status: str, key: str, **changes: object) -> str:
    """A whole run that ends that way."""
    claim = claimed(store, request(key))
    store.finish(claim, finish(status, **changes), WITHIN_S)
    return claim.run_id


def test_skip_is_a_row_of_its_own(store: SqlStore) -> None:
    one = skip("too_late", message="2 h late")
    store.record_skip(one, WITHIN_S)
    row = row_of(store, one.run_id)
    assert (row.status, row.reason, row.host, row.message, row.times) == ("skipped", "too_late", "web-2", "2 h late", 1)
    assert (row.started_at_utc, row.finished_at_utc, row.claim_no, row.fence) == (one.at_utc, one.at_utc, None, None)


def test_consecutive_skips_alike_are_one_row(store: SqlStore) -> None:
    first = skip(holder="r1")
    later = skip(holder="r1", at_utc=first.at_utc + timedelta(minutes=5))
    for each in (first, later):
        store.record_skip(each, WITHIN_S)
    (row,) = store.history("job", 10, (), None, WITHIN_S)
    assert (row.run_id, row.times, row.finished_at_utc) == (first.run_id, 2, later.at_utc)
    assert summary_of(store).skips_in_row == 2


@pytest.mark.parametrize("other", [{"holder": "r2"}, {"reason": "paused"}])
def test_skips_for_another_reason_or_holder_are_apart(store: SqlStore, other: dict[str, str]) -> None:
    store.record_skip(skip(holder="r1"), WITHIN_S)
    store.record_skip(skip(**{"holder": "r1", **other}), WITHIN_S)
    assert len(store.history("job", 10, (), None, WITHIN_S)) == 2


def test_skips_with_a_run_between_them_are_apart(store: SqlStore) -> None:
    store.record_skip(skip(), WITHIN_S)
    run(store, "success", "one")
    store.record_skip(skip(), WITHIN_S)
    assert [row.status for row in store.history("job", 10, (), None, WITHIN_S)] == ["skipped", "success", "skipped"]
    assert summary_of(store).skips_in_row == 1


def test_skips_of_other_jobs_do_not_part_them(store: SqlStore) -> None:
    for job in ("job", "other", "job"):
        store.record_skip(skip(job=job), WITHIN_S)
    assert len(store.history("job", 10, (), None, WITHIN_S)) == 1


def test_skips_change_no_streak_of_failures_but_refusals_do(store: SqlStore) -> None:
    """FR-106."""
    run(store, "failed", "one")
    store.record_skip(skip(), WITHIN_S)
    assert summary_of(store).failures_in_row == 1
    for _ in range(2):
        store.record_skip(skip(status="failed"), WITHIN_S)
    assert summary_of(store).failures_in_row == 3
    assert [row.times for row in store.history("job", 10, ("failed",), None, WITHIN_S)] == [1, 1, 1]


def test_slots_done_already_are_no_streak_of_skips(store: SqlStore) -> None:
    run(store, "success", "one")
    store.record_skip(skip("already_done"), WITHIN_S)
    assert summary_of(store).skips_in_row == 0


def test_skip_recorded_twice_by_one_invocation_counts_once(store: SqlStore) -> None:
    one = skip()
    for _ in range(2):
        store.record_skip(one, WITHIN_S)
    assert row_of(store, one.run_id).times == 1


def test_summary_follows_the_runs(store: SqlStore) -> None:
    run(store, "success", "one", duration_s=10.0)
    for status in ("failed", "timeout", "aborted"):
        run(store, status, status)
    summary = summary_of(store)
    assert (summary.failures_in_row, summary.strip, summary.last_success_key) == (3, "sfta", "one")
    assert summary.usual_duration_s == 10.0
    last = run(store, "success", "two", duration_s=20.0)
    summary = summary_of(store)
    assert (summary.failures_in_row, summary.strip, summary.last_success_key) == (0, "sftas", "two")
    assert summary.last_success_utc == row_of(store, last).finished_at_utc
    assert (summary.last_run.run_id, summary.running) == (last, None)


def test_summary_names_the_running_run(store: SqlStore) -> None:
    claim = claimed(store, request())
    assert summary_of(store).running == row_of(store, claim.run_id)
    store.finish(claim, finish(), WITHIN_S)
    assert summary_of(store).running is None


def test_lost_run_counts_as_a_failure_once(store: SqlStore, store_url: str, opened: Callable[[str], SqlStore]) -> None:
    """FR-68."""
    claimed(store, request("one"))
    store.close()
    other = opened(store_url)
    claim = claimed(other, request("two"), DEAD)
    summary = summary_of(other)
    assert (summary.failures_in_row, summary.strip) == (1, "l")
    assert summary.running.run_id == claim.run_id


def test_strip_keeps_the_latest_twenty(store: SqlStore) -> None:
    for number in range(22):
        run(store, "failed" if number < 2 else "success", str(number))
    assert summary_of(store).strip == "s" * 20


def test_usual_duration_is_the_median_of_the_latest_successes(store: SqlStore) -> None:
    for number in range(25):
        run(store, "success", str(number), duration_s=1000.0 if number < 4 else float(number))
    assert summary_of(store).usual_duration_s == 14.0


def test_summary_remembers_the_definition_last_seen_and_the_first_sight(store: SqlStore) -> None:
    first = request("one")
    store.finish(claimed(store, first), finish(), WITHIN_S)
    changed = facts(schedule=ScheduleText("every", "5m"), timeout_s=None, max_late_s=60.0)
    claimed(store, request("two", facts=changed))
    summary = summary_of(store)
    assert (summary.facts, summary.first_seen_utc) == (changed, first.now_utc)


def test_summaries_come_by_name_without_output(store: SqlStore) -> None:
    for job in ("b", "B", "a", "a-1"):
        store.finish(claimed(store, request(job=job)), finish(tail="long"), WITHIN_S)
    summaries = store.jobs((), WITHIN_S)
    assert [summary.facts.job for summary in summaries] == ["B", "a", "a-1", "b"]
    assert {summary.last_run.tail for summary in summaries if summary.last_run} == {""}
    assert [summary.facts.job for summary in store.jobs(["b", "none"], WITHIN_S)] == ["b"]


def test_history_is_newest_first_and_can_be_narrowed(store: SqlStore) -> None:
    ids = [run(store, "failed" if number % 2 else "success", str(number)) for number in range(4)]
    newest_first = ids[::-1]
    assert [row.run_id for row in store.history("job", 10, (), None, WITHIN_S)] == newest_first
    assert [row.run_id for row in store.history("job", 2, (), None, WITHIN_S)] == newest_first[:2]
    assert [row.run_id for row in store.history("job", 9, ("failed",), None, WITHIN_S)] == [ids[3], ids[1]]
    since = row_of(store, ids[2]).started_at_utc
    assert [row.run_id for row in store.history("job", 9, (), since, WITHIN_S)] == newest_first[:2]
    assert store.history("job", 9, (), now() + timedelta(hours=1), WITHIN_S) == []


def test_runs_are_found_by_the_beginning_of_their_id(store: SqlStore) -> None:
    for run_id in ("ab1", "ab2", "b%"):
        store.finish(claimed(store, request(run_id, run_id=run_id)), finish(), WITHIN_S)
    assert [row.run_id for row in store.find_runs("ab", WITHIN_S)] == ["ab1", "ab2"]
    assert [row.run_id for row in store.find_runs("b%", WITHIN_S)] == ["b%"]
    assert store.find_runs("%", WITHIN_S) == []


def test_undone_are_the_keys_without_success_in_the_order_given(store: SqlStore) -> None:
    run(store, "success", "b")
    run(store, "failed", "c")
    assert store.undone("job", ["d", "c", "b", "a"], WITHIN_S) == ["d", "c", "a"]
    many = [f"k{number}" for number in range(2 * KEYS_AT_ONCE + 1)]
    assert store.undone("job", [*many, "b"], WITHIN_S) == many
    assert store.undone("job", [], WITHIN_S) == []


def test_slot_and_instants_come_back_as_they_went(store: SqlStore) -> None:
    at = now()
    slot = ASlot("2026-03-29T02:30", at, at.replace(tzinfo=None), at, None)
    wish = request(slot=slot)
    claimed(store, wish)
    row = row_of(store, wish.run_id)
    assert (row.slot_at_utc, row.slot_local, row.started_at_utc) == (at, at.isoformat(), wish.now_utc)
    assert row.slot_at_utc.utcoffset() == timedelta(0)


def test_looking_at_a_store_that_is_not_there_creates_nothing(store_url: str) -> None:
    """For `--dry-run` and the looking commands."""
    store = open_store(store_url)
    try:
        assert not store.look("job", "job", "k", ALIVE, WITHIN_S).known
        assert store.jobs((), WITHIN_S) == []
        assert store.history("job", 5, (), None, WITHIN_S) == []
        assert store.find_runs("a", WITHIN_S) == []
        assert store.undone("job", ["a"], WITHIN_S) == ["a"]
    finally:
        store.close()


def test_look_stays_quick_in_a_long_history(store: SqlStore) -> None:
    """FR-67: by the plan, not by the watch: no statement of a look reads the whole of `runs`."""
    from cronguard.store.claiming import view_statements

    for statement in view_statements("job", "job", "k", "id", store.dialect):
        text = plan(store, statement)
        for scan in ("SCAN runs", "SCAN r ", "SCAN l ", "SCAN locks", "Seq Scan on runs", "Seq Scan on locks"):
            assert scan not in text, text
