"""What becomes of a run's end, in time or late, on every kind of store (P3)."""

from __future__ import annotations

from typing import Callable

import pytest

from cronguard.core.model import Claimed, ClaimRequest, Done, Finish, Process
from cronguard.store.backend import SqlStore
from tests.support.claims import (
    ALIVE,
    DEAD,
    WITHIN_S,
    claimed,
    finish,
    nasty,
    report,
    request,
    row_of,
    summary_of,
)

Opened = Callable[[str], SqlStore]


@pytest.fixture
def other(store: SqlStore, store_url: str, opened: Opened) -> SqlStore:
    return opened(store_url)


def lose(store: SqlStore, other: SqlStore, wish: ClaimRequest, then_key: str) -> Claimed:
    """A claim of `store` that `other` takes over to run `then_key`, which fails; answers the lost claim."""
    claim = claimed(store, wish)
    store.close()
    other.finish(claimed(other, request(then_key), DEAD), finish("failed"), WITHIN_S)
    assert row_of(other, wish.run_id).status == "lost"
    return claim


def test_finish_writes_the_whole_outcome(store: SqlStore) -> None:
    wish = request()
    end = finish(
        "failed", attempts=3, items=418, errors=2, tail="it broke\n", cut_bytes=12, stdin_unread=True, message="why",
        leftovers=(Process(7, "sleep 60"),),
    )
    end = end._replace(outcome=end.outcome._replace(exit_code=None, signal=9, reason="cancelled"))
    assert store.finish(claimed(store, wish), end, WITHIN_S)
    row = row_of(store, wish.run_id)
    assert (row.status, row.reason, row.exit_code, row.signal) == ("failed", "cancelled", None, 9)
    assert (row.attempts, row.items, row.errors, row.cut_bytes) == (3, 418, 2, 12)
    assert (row.tail, row.stdin_unread, row.leftovers) == ("it broke\n", True, (Process(7, "sleep 60"),))
    assert (row.finished_at_utc, row.duration_s, row.message) == (end.finished_at_utc, 2.0, "why")


def test_finish_said_twice_is_said_once(store: SqlStore) -> None:
    claim = claimed(store, request())
    assert store.finish(claim, finish(), WITHIN_S)
    assert store.finish(claim, finish(), WITHIN_S)
    assert summary_of(store).strip == "s"


def test_finish_takes_text_that_no_database_takes(store: SqlStore) -> None:
    """NUL, and bytes of a foreign encoding."""
    strange = nasty()
    left = strange.pop("leftovers")
    wish = request(**strange)
    claim = claimed(store, wish)
    assert store.finish(claim, finish(tail="a\x00b \udcff", message="\udc80", leftovers=left), WITHIN_S)
    row = row_of(store, wish.run_id)
    assert row.argv == wish.argv
    assert row.tail == "a\ufffdb \\udcff"
    assert row.leftovers == left


def test_finish_after_a_takeover_overwrites_nothing_and_is_kept_as_late(store: SqlStore, other: SqlStore) -> None:
    wish = request("one")
    claim = lose(store, other, wish, "one")
    end = finish("failed")
    assert not store.finish(claim, end, WITHIN_S)
    row = row_of(other, wish.run_id)
    assert (row.status, row.exit_code) == ("lost", None)
    assert (row.late_status, row.late_exit_code, row.late_finished_at_utc) == ("failed", 1, end.finished_at_utc)


def test_late_success_counts_when_nobody_held_the_key_since(store: SqlStore, other: SqlStore) -> None:
    wish = request("one")
    claim = lose(store, other, wish, "two")
    assert not store.finish(claim, finish(), WITHIN_S)
    assert row_of(other, wish.run_id).status == "success"
    assert other.claim(request("one"), ALIVE, WITHIN_S) == Done(wish.run_id)


def test_late_success_does_not_count_when_somebody_did(store: SqlStore, other: SqlStore) -> None:
    wish = request("one")
    claim = lose(store, other, wish, "one")
    store.deliver(report(wish, finish(), claim), WITHIN_S)
    row = row_of(other, wish.run_id)
    assert (row.status, row.late_status, row.late_exit_code) == ("lost", "success", 0)


def test_late_success_of_the_latest_run_ends_the_streak(store: SqlStore, other: SqlStore) -> None:
    wish = request("one", redo="never")
    claim = claimed(store, wish)
    store.close()
    other.claim(request("one", redo="never"), DEAD, WITHIN_S)
    assert (summary_of(other).failures_in_row, summary_of(other).strip) == (1, "l")
    store.deliver(report(wish, finish(), claim), WITHIN_S)
    summary = summary_of(other)
    assert (summary.failures_in_row, summary.strip, summary.last_success_key) == (0, "s", "one")


def test_renewal_after_a_takeover_is_refused(store: SqlStore, other: SqlStore) -> None:
    claim = lose(store, other, request("one"), "two")
    assert store.renew(claim, 30.0, WITHIN_S) == "lost"


def test_renewal_of_a_held_claim_is_granted_until_the_finish(store: SqlStore) -> None:
    claim = claimed(store, request())
    assert store.renew(claim, 30.0, WITHIN_S) == "ours"
    store.finish(claim, finish(), WITHIN_S)
    assert store.renew(claim, 30.0, WITHIN_S) == "lost"


def test_renewal_with_an_old_fence_is_refused(store: SqlStore) -> None:
    claim = claimed(store, request())
    assert store.renew(claim._replace(fence=claim.fence - 1), 30.0, WITHIN_S) == "lost"
    assert not store.finish(claim._replace(fence=claim.fence - 1), finish(), WITHIN_S)
    assert row_of(store, claim.run_id).status == "running"


def test_spooled_finish_of_a_row_still_running_is_its_finish(store: SqlStore) -> None:
    wish = request()
    claim = claimed(store, wish)
    for _ in range(2):
        store.deliver(report(wish, finish(), claim), WITHIN_S)
    assert row_of(store, wish.run_id).status == "success"
    assert summary_of(store).strip == "s"
    claimed(store, request("next"))


def test_unguarded_run_is_inserted_whole_and_makes_its_key_done(store: SqlStore) -> None:
    wish = request()
    for _ in range(2):
        store.deliver(report(wish, finish(tail="x")), WITHIN_S)
    row = row_of(store, wish.run_id)
    assert (row.status, row.unguarded, row.forced, row.claim_no, row.fence, row.tail) == (
        "success", True, False, None, None, "x",
    )
    assert store.claim(request(), ALIVE, WITHIN_S) == Done(wish.run_id)
    assert (summary_of(store).strip, summary_of(store).last_success_key) == ("s", wish.run_key)


def test_unguarded_success_on_a_taken_key_takes_nothing_away(store: SqlStore) -> None:
    first = request()
    claim = claimed(store, first)
    second = request()
    store.deliver(report(second, finish()), WITHIN_S)
    assert row_of(store, second.run_id).forced
    assert store.finish(claim, finish(), WITHIN_S)
    assert row_of(store, first.run_id).status == "success"


@pytest.mark.parametrize("end", [finish(), finish("failed")])
def test_report_of_a_row_that_vanished_is_not_lost(store: SqlStore, end: Finish) -> None:
    """Somebody restored an older backup of the store."""
    wish = request()
    store.deliver(report(wish, end, Claimed(wish.run_id, "job", 5, 1, 0.0, "schedule")), WITHIN_S)
    row = row_of(store, wish.run_id)
    assert (row.status, row.unguarded) == (end.outcome.status, False)


def test_pings_are_noted_after_the_fact(store: SqlStore) -> None:
    claim = claimed(store, request())
    store.finish(claim, finish(), WITHIN_S)
    store.note_pings(claim.run_id, "success: delivered", WITHIN_S)
    assert row_of(store, claim.run_id).pings == "success: delivered"
