"""Pause, resume, cancel: what people tell a job, on every kind of store."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Callable

import pytest

from cronguard.core.model import Claimed, Outcome, Paused
from cronguard.store.backend import SqlStore
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
    summary_of,
)

AT = datetime(2026, 1, 20, 1, 0, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
ABORTED = Outcome("aborted", None, None, 15, 143, "stopped")


@pytest.fixture
def known(store: SqlStore) -> SqlStore:
    """A store that knows the job, since AT."""
    store.remember(facts(), AT, WITHIN_S)
    return store


def test_nobody_starts_a_paused_job_until_it_is_resumed(known: SqlStore) -> None:
    assert known.pause("job", "moving house", None, AT + HOUR, WITHIN_S)
    assert known.claim(request(), ALIVE, WITHIN_S) == Paused("moving house")
    assert known.look("job", "job", "k", ALIVE, WITHIN_S).paused == "moving house"
    summary = summary_of(known)
    assert (summary.paused_since_utc, summary.paused_until_utc) == (AT + HOUR, None)
    assert summary.paused_reason == "moving house"
    assert known.resume("job", AT + 3 * HOUR, WITHIN_S)
    summary = summary_of(known)
    assert (summary.paused_since_utc, summary.paused_until_utc, summary.paused_reason) == (None, None, "")
    assert summary.since_utc == AT + 3 * HOUR
    claimed(known, request())


def test_pause_ends_by_itself_and_what_was_due_in_it_is_not_missed(known: SqlStore) -> None:
    known.pause("job", "", now() - HOUR, now() - 2 * HOUR, WITHIN_S)
    assert known.look("job", "job", "k", ALIVE, WITHIN_S).paused is None
    claimed(known, request())
    summary = summary_of(known)
    assert summary.since_utc == summary.paused_until_utc
    known.resume("job", now(), WITHIN_S)
    assert summary_of(known).since_utc == summary.since_utc


def test_pause_that_is_still_on_holds(known: SqlStore) -> None:
    known.pause("job", "", now() + HOUR, now(), WITHIN_S)
    assert known.claim(request(), ALIVE, WITHIN_S) == Paused("")


def test_pausing_again_keeps_the_beginning_but_not_that_of_one_that_is_over(known: SqlStore) -> None:
    known.pause("job", "", AT + 2 * HOUR, AT + HOUR, WITHIN_S)
    known.pause("job", "longer", AT + 4 * HOUR, AT + HOUR * 1.5, WITHIN_S)
    assert summary_of(known).paused_since_utc == AT + HOUR
    known.pause("job", "anew", None, AT + 5 * HOUR, WITHIN_S)
    summary = summary_of(known)
    assert (summary.paused_since_utc, summary.since_utc, summary.paused_reason) == (
        AT + 5 * HOUR, AT + 4 * HOUR, "anew",
    )


def test_resuming_what_is_not_paused_changes_nothing(known: SqlStore) -> None:
    before = summary_of(known)
    assert known.resume("job", AT + HOUR, WITHIN_S)
    assert summary_of(known) == before


def test_orders_for_a_job_that_nobody_knows_are_refused(known: SqlStore) -> None:
    assert not known.pause("other", "", None, AT, WITHIN_S)
    assert not known.resume("other", AT, WITHIN_S)
    assert known.request_cancel("other", WITHIN_S) is None
    assert known.request_cancel("job", WITHIN_S) is None


def test_cancelled_run_hears_it_with_each_renewal_and_its_row_says_why_it_ended(
    store: SqlStore, store_url: str, opened: Callable[[str], SqlStore]
) -> None:
    other = opened(store_url)
    claim = claimed(store, request())
    row = other.request_cancel("job", WITHIN_S)
    assert row == row_of(store, claim.run_id)
    assert [store.renew(claim, 30.0, WITHIN_S) for _ in range(2)] == ["cancelled", "cancelled"]
    assert store.finish(claim, finish("aborted", outcome=ABORTED), WITHIN_S)
    row = row_of(store, claim.run_id)
    assert (row.status, row.reason, row.signal) == ("aborted", "cancelled", 15)
    assert other.request_cancel("job", WITHIN_S) is None


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ABORTED._replace(reason="lock_lost"), "lock_lost"),
        (Outcome("success", None, 0, None, 0, ""), None),
        (Outcome("failed", None, 1, None, 1, ""), None),
    ],
)
def test_run_that_ended_otherwise_is_not_called_cancelled(store: SqlStore, outcome: Outcome, reason: str) -> None:
    claim = claimed(store, request())
    store.request_cancel("job", WITHIN_S)
    store.finish(claim, finish(outcome=outcome), WITHIN_S)
    row = row_of(store, claim.run_id)
    assert (row.status, row.reason) == (outcome.status, reason)


def test_abort_without_a_wish_has_no_reason_and_wishes_do_not_outlive_their_run(store: SqlStore) -> None:
    first = claimed(store, request("one"))
    store.request_cancel("job", WITHIN_S)
    store.finish(first, finish(outcome=ABORTED), WITHIN_S)
    second = claimed(store, request("two"))
    assert store.renew(second, 30.0, WITHIN_S) == "ours"
    store.finish(second, finish(outcome=ABORTED), WITHIN_S)
    assert row_of(store, second.run_id).reason is None


def test_wish_does_not_pass_to_a_run_that_takes_over(store: SqlStore) -> None:
    claimed(store, request("one"))
    store.request_cancel("job", WITHIN_S)
    store.close()
    claim = store.claim(request("two"), DEAD, WITHIN_S)
    assert isinstance(claim, Claimed)
    assert store.renew(claim, 30.0, WITHIN_S) == "ours"


def test_forgotten_job_leaves_nothing_and_one_that_runs_is_not_forgotten(store: SqlStore) -> None:
    run = claimed(store, request("a"))
    other = claimed(store, request("a", job="other"))
    assert not store.forget_job("job", WITHIN_S)
    assert store.finish(run, finish(), WITHIN_S)
    assert store.forget_job("job", WITHIN_S)
    assert store.history("job", 9, (), None, WITHIN_S) == []
    assert [row.facts.job for row in store.jobs((), WITHIN_S)] == ["other"]
    assert store.finish(other, finish(), WITHIN_S)
    assert isinstance(store.claim(request("a"), ALIVE, WITHIN_S), Claimed)
