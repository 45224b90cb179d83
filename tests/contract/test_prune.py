"""What prune takes and what it must leave, on every kind of store (FR-67)."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any, List

import pytest

from cronguard.core.model import Claimed, Done, Finding, Pruned, Slot, Used
from cronguard.store import pruning
from cronguard.store.backend import SqlStore
from cronguard.store.claiming import insert_run
from cronguard.store.waiting import Deadline
from tests.support.claims import (
    ALIVE,
    WITHIN_S,
    claimed,
    facts,
    finish,
    report,
    request,
    row_of,
    skip,
    summary_of,
)
from tests.support.plans import plan

NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)
OLD = NOW - 90 * DAY
ALL = 10**9


def slot(at: datetime) -> Slot:
    return Slot(at.isoformat(), at, at.replace(tzinfo=None), at, None)


def run(store: SqlStore, days_ago: float, status: str = "success", **changes: Any) -> str:
    """A run of that day's slot; answers the day, which is its key."""
    at = NOW - days_ago * DAY
    wish = request(f"{at:%m-%d}", slot=slot(at), now_utc=at)._replace(**changes)
    assert store.finish(claimed(store, wish), finish(status, finished_at_utc=at + timedelta(minutes=1)), WITHIN_S)
    return wish.run_key


def keys(store: SqlStore) -> List[str]:
    return [row.run_key for row in store.history("job", 1000, (), None, WITHIN_S)]


def prune(store: SqlStore, before: datetime = OLD, keep: int = ALL, keep_skips: int = ALL, limit: int = ALL) -> int:
    return store.prune("job", before, keep, keep_skips, limit, WITHIN_S)


def test_what_is_too_old_goes_and_the_rest_stays(store: SqlStore) -> None:
    for days in (100, 91, 89):
        run(store, days, "failed")
    last = run(store, 1)
    assert prune(store) == 2
    assert keys(store) == [last, f"{NOW - 89 * DAY:%m-%d}"]
    assert prune(store) == 0


def test_what_is_too_many_goes_oldest_first_and_at_most_so_many_at_a_time(store: SqlStore) -> None:
    every = [run(store, each, facts=facts(look_back_s=0.0)) for each in range(60, 50, -1)]
    assert prune(store, keep=4, limit=2) == 2
    assert keys(store) == every[:1:-1]
    assert prune(store, keep=4) == 4
    assert keys(store) == every[:5:-1]
    assert prune(store, keep=4) == 0


def test_more_than_a_step_goes_in_one_call(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "STEP", 2)
    for each in range(60, 50, -1):
        run(store, each, facts=facts(look_back_s=0.0))
    assert prune(store, keep=3, limit=5) == 5
    assert prune(store, keep=3) == 2


def test_other_jobs_are_left_alone(store: SqlStore) -> None:
    other = claimed(store, request(job="other", now_utc=NOW - 200 * DAY))
    store.finish(other, finish(), WITHIN_S)
    run(store, 1)
    assert prune(store) == 0
    assert store.prune("nobody", OLD, 0, 0, ALL, WITHIN_S) == 0
    assert row_of(store, other.run_id).status == "success"


def test_last_success_stays_however_old_and_its_slot_is_done(store: SqlStore) -> None:
    """FR-67: even if it is two years old."""
    run(store, 800)
    last = run(store, 730)
    for days in (100, 99, 1):
        run(store, days, "failed")
    assert prune(store) == 3
    assert keys(store) == [f"{NOW - DAY:%m-%d}", last]
    at = NOW - 730 * DAY
    assert isinstance(store.claim(request(last, slot=slot(at)), ALIVE, WITHIN_S), Done)


def test_what_is_running_stays(store: SqlStore) -> None:
    claim = claimed(store, request("running", now_utc=NOW - 200 * DAY))
    store.deliver(report(request("later", now_utc=NOW), finish()), WITHIN_S)
    assert prune(store, keep=0) == 0
    assert row_of(store, claim.run_id).status == "running"


def test_run_whose_orphans_hold_the_lock_stays(store: SqlStore) -> None:
    claim = claimed(store, request("orphaned", now_utc=NOW - 200 * DAY))
    store.finish(claim, finish("aborted", orphans=(7,)), WITHIN_S)
    store.deliver(report(request("later", now_utc=NOW), finish()), WITHIN_S)
    assert prune(store, keep=0) == 0
    assert "orphaned" in keys(store)


@pytest.mark.parametrize("keep", [0, 1])
def test_done_slots_within_the_look_back_stay_whatever_the_count(store: SqlStore, keep: int) -> None:
    """FR-67: done slots inside the backfill window still refuse a second run."""
    days = [10, 8, 6, 4, 2]
    for each in days:
        run(store, each)
    assert prune(store, before=NOW, keep=keep) == 1  # the look-back is 7 days, the latest run was 2 days ago
    for each in days[1:]:
        at = NOW - each * DAY
        assert isinstance(store.claim(request(f"{at:%m-%d}", slot=slot(at)), ALIVE, WITHIN_S), Done)


def test_without_a_key_nothing_is_asked_for_again(store: SqlStore) -> None:
    for each in (3, 2, 1):
        run(store, each, facts=facts(key="none"), keyed=False, slot=None)
    assert prune(store, keep=1) == 2
    assert summary_of(store).pruned_before_utc is None


def test_successes_under_a_key_of_ones_own_stay_for_ever(store: SqlStore) -> None:
    named = run(store, 500, run_key="invoice-7", slot=None, named=True)
    run(store, 499, "failed", run_key="invoice-8", slot=None, named=True)
    run(store, 1)
    assert prune(store, keep=1) == 1
    assert named in keys(store)
    assert isinstance(store.claim(request("invoice-7", named=True), ALIVE, WITHIN_S), Done)


def test_slots_before_the_watermark_are_refused_unless_forced(store: SqlStore) -> None:
    for each in (200, 150, 1):
        run(store, each)
    run(store, 100, "failed")
    assert summary_of(store).pruned_before_utc is None
    assert prune(store) == 2
    mark = NOW - 150 * DAY
    assert summary_of(store).pruned_before_utc == mark

    def claim_of(at: datetime, **changes: Any) -> Any:
        answer = store.claim(request(f"again-{at}", slot=slot(at), **changes), ALIVE, WITHIN_S)
        if isinstance(answer, Claimed):
            store.finish(answer, finish("failed"), WITHIN_S)
        return answer

    assert claim_of(mark) == Pruned(mark)
    assert claim_of(mark - 30 * DAY) == Pruned(mark)
    assert isinstance(claim_of(mark + DAY), Claimed)
    assert isinstance(claim_of(mark, force=True), Claimed)
    assert isinstance(claim_of(mark, named=True), Claimed)
    assert isinstance(claim_of(mark, keyed=False), Claimed)


def test_watermark_never_moves_back(store: SqlStore) -> None:
    for each in (100, 95):
        run(store, each)
    run(store, 1)
    prune(store)
    mark = summary_of(store).pruned_before_utc
    run(store, 200, force=True)
    run(store, 0)
    assert prune(store) == 1
    assert summary_of(store).pruned_before_utc == mark == NOW - 95 * DAY


def test_job_that_was_never_pruned_may_be_filled_in_from_any_date(store: SqlStore) -> None:
    run(store, 1)
    prune(store)
    run(store, 700, trigger="backfill")


@pytest.mark.parametrize(("key", "days"), [("day", 1), ("week", 7), ("month", 31)])
def test_watermark_covers_the_whole_time_of_a_key(store: SqlStore, key: str, days: int) -> None:
    """Another slot of the same month, which was done, must not run again."""
    run(store, 200, facts=facts(key=key))
    run(store, 1, facts=facts(key=key))
    assert prune(store) == 1
    at = NOW - (200 - days) * DAY
    answer = store.claim(request("same", slot=slot(at), facts=facts(key=key)), ALIVE, WITHIN_S)
    assert isinstance(answer, Pruned)


def test_key_of_a_month_is_kept_through_the_month(store: SqlStore) -> None:
    monthly = facts(key="month")
    for each in (50, 30, 10):
        run(store, each, facts=monthly)
    assert prune(store, before=NOW, keep=1) == 1  # 7 days of look-back and a month before the latest


def test_every_claim_counts_where_a_slot_may_be_tried_once(store: SqlStore) -> None:
    """`--redo never`."""
    once = facts(redo="never")
    for each in (300, 200):
        run(store, each, "failed", facts=once, redo="never")
    run(store, 250, "failed", facts=once, redo="never", run_key="mine", named=True, slot=None)
    run(store, 1, facts=once, redo="never")
    assert prune(store) == 2
    assert summary_of(store).pruned_before_utc == NOW - 200 * DAY
    assert isinstance(store.claim(request("mine", redo="never", named=True), ALIVE, WITHIN_S), Used)


def test_skips_have_a_count_of_their_own(store: SqlStore) -> None:
    run(store, 60)
    for number in range(5):
        at = NOW - 50 * DAY + number * timedelta(minutes=1)
        store.record_skip(skip(holder=str(number), at_utc=at), WITHIN_S)
    assert prune(store, keep=1, keep_skips=2) == 3
    assert [row.holder for row in store.history("job", 9, ("skipped",), None, WITHIN_S)] == ["4", "3"]
    run(store, 1)
    assert prune(store, before=NOW - 40 * DAY) == 3


def test_run_that_an_open_incident_began_with_stays(store: SqlStore) -> None:
    first = run(store, 200, "failed")
    for each in (199, 198, 1):
        run(store, each, "failed")
    since = NOW - 200 * DAY + timedelta(seconds=30)
    found = Finding("job", "failing", "critical", "3 in a row", since, ())
    store.sync_incidents(["job"], [found], NOW, 86400.0, WITHIN_S)
    assert prune(store) == 2
    assert keys(store) == [f"{NOW - DAY:%m-%d}", first]
    store.sync_incidents(["job"], [], NOW, 86400.0, WITHIN_S)
    assert prune(store) == 1


def test_incidents_that_are_long_over_go_too(store: SqlStore) -> None:
    run(store, 1)
    found = Finding("job", "failing", "critical", "", OLD, ())
    store.sync_incidents(["job"], [found], OLD - 2 * DAY, 86400.0, WITHIN_S)
    store.sync_incidents(["job"], [], OLD - DAY, 86400.0, WITHIN_S)
    prune(store)
    assert store.sync_incidents(["job"], [], OLD, 86400.0, WITHIN_S) == []


@pytest.mark.usual
def test_pruning_stays_quick_in_a_long_history(sqlite_url: str, opened: Any) -> None:
    """Where nothing is to be done too, and above many rows that stay for ever."""
    store: SqlStore = opened(sqlite_url)
    run(store, 1)
    model = row_of(store, store.history("job", 1, (), None, WITHIN_S)[0].run_id)

    def fill(session: Any) -> None:
        for number in range(10_000):
            at = NOW - 2000 * DAY + number * timedelta(minutes=10)
            row = model._replace(run_id=f"r{number}", run_key=f"k{number}", claim_no=None, started_at_utc=at,
                                 slot_at_utc=at, finished_at_utc=at)
            session.run([insert_run(row, "slot"), insert_run(row._replace(run_id=f"t{number}", run_key=f"t{number}"),
                                                             "text")])

    store._transact(fill, Deadline(60.0))
    ages_ago = NOW - 5000 * DAY
    began = time.monotonic()
    assert prune(store, ages_ago, 1000, limit=500) == 500
    assert time.monotonic() - began < 2.0
    assert prune(store, ages_ago, 1000) == 8501  # with the run above, 1,000 remain
    began = time.monotonic()
    assert prune(store, ages_ago, 1000) == 0
    assert time.monotonic() - began < 0.5
    assert len(store.history("job", 20_000, (), None, WITHIN_S)) == 11_000


@pytest.mark.parametrize(("kind", "index"), [(pruning._RUNS, "runs_prunable"), (pruning._SKIPS, "runs_skips")])
def test_pruning_reads_its_own_index(store: SqlStore, kind: str, index: str) -> None:
    for statement in (pruning._nth_newest("job", kind, 10), pruning._candidates("job", kind, NOW, "failed", 200)):
        assert index in plan(store, statement), plan(store, statement)
