"""Who gets a claim, on every kind of store (P1, P2)."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict

import pytest

from cronguard.core.model import Claimed, Done, Held, Owner, Paused, Sight, Used, Verdict
from cronguard.store.backend import SqlStore
from cronguard.store.claiming import insert_run
from cronguard.store.dialect import Collision, Statement
from cronguard.store.waiting import Deadline, boot_time_s
from tests.support.claims import (
    ALIVE,
    DEAD,
    OWNER,
    UNKNOWN,
    WITHIN_S,
    claimed,
    finish,
    judge_as,
    request,
    row_of,
    summary_of,
)

Opened = Callable[[str], SqlStore]


@pytest.fixture
def other(store: SqlStore, store_url: str, opened: Opened) -> SqlStore:
    """The same store as another invocation sees it."""
    return opened(store_url)


def pause(store: SqlStore, job: str, reason: str, until: str) -> None:
    """What the pause command will write."""
    write = Statement(
        f"UPDATE jobs SET paused_since_at = first_seen_at, paused_reason = ?, paused_until_at = {until} WHERE job = ?",
        (reason, job),
    )
    store._transact(lambda session: session.run([write], last=True), Deadline(WITHIN_S))


def test_free_job_is_claimed_with_a_fence_and_a_running_row(store: SqlStore) -> None:
    before = boot_time_s()
    wish = request()
    claim = claimed(store, wish)
    assert (claim.run_id, claim.lock, claim.claim_no, claim.trigger) == (wish.run_id, "job", 1, "schedule")
    assert claim.took_over == ()
    assert before <= claim.sent_at <= boot_time_s()
    row = row_of(store, wish.run_id)
    assert (row.status, row.fence, row.claim_no, row.forced) == ("running", claim.fence, 1, False)
    assert row.started_at_utc == wish.now_utc
    assert Owner(*row[row._fields.index("machine_id") : row._fields.index("user_name")]) == OWNER


def test_second_claim_for_same_slot_is_held(store: SqlStore, other: SqlStore) -> None:
    first = request()
    claimed(store, first)
    answer = other.claim(request(), ALIVE, WITHIN_S)
    assert isinstance(answer, Held)
    assert answer.holder.run_id == first.run_id
    assert (answer.holder.job, answer.holder.host, answer.holder.pid) == ("job", OWNER.host, OWNER.pid)
    assert answer.holder.since_utc == first.now_utc
    assert answer.orphans == ()


def test_another_slot_of_the_job_is_held_too(store: SqlStore, other: SqlStore) -> None:
    claimed(store, request("one"))
    assert isinstance(other.claim(request("two"), ALIVE, WITHIN_S), Held)


def test_jobs_that_share_a_lock_exclude_each_other(store: SqlStore, other: SqlStore) -> None:
    claimed(store, request(job="a", lock="shared"))
    answer = other.claim(request(job="b", lock="shared"), ALIVE, WITHIN_S)
    assert isinstance(answer, Held)
    assert answer.holder.job == "a"


def test_job_whose_lock_was_renamed_still_excludes_itself(store: SqlStore, other: SqlStore) -> None:
    claimed(store, request("one", lock="old"))
    assert isinstance(other.claim(request("two", lock="new"), ALIVE, WITHIN_S), Held)


def test_jobs_with_own_locks_do_not_meet(store: SqlStore, other: SqlStore) -> None:
    claimed(store, request(job="a"))
    claimed(other, request(job="b"))


def test_done_key_is_not_claimed_again(store: SqlStore, other: SqlStore) -> None:
    wish = request()
    store.finish(claimed(store, wish), finish(), WITHIN_S)
    assert other.claim(request(), ALIVE, WITHIN_S) == Done(wish.run_id)


def test_done_key_is_reported_even_while_another_slot_runs(store: SqlStore, other: SqlStore) -> None:
    """The order of decisions: done comes before held."""
    wish = request("one")
    store.finish(claimed(store, wish), finish(), WITHIN_S)
    claimed(store, request("two"))
    assert other.claim(request("one"), ALIVE, WITHIN_S) == Done(wish.run_id)


def test_forced_run_on_a_done_key_is_marked_and_does_not_undo_it(store: SqlStore) -> None:
    store.finish(claimed(store, request()), finish(), WITHIN_S)
    again = request(force=True)
    store.finish(claimed(store, again), finish("failed"), WITHIN_S)
    assert row_of(store, again.run_id).forced
    assert isinstance(store.claim(request(), ALIVE, WITHIN_S), Done)


def test_forced_run_on_a_key_not_done_is_an_ordinary_one(store: SqlStore) -> None:
    wish = request(force=True)
    store.finish(claimed(store, wish), finish(), WITHIN_S)
    assert not row_of(store, wish.run_id).forced
    assert isinstance(store.claim(request(), ALIVE, WITHIN_S), Done)


def test_force_overrides_no_lock(store: SqlStore, other: SqlStore) -> None:
    claimed(store, request())
    assert isinstance(other.claim(request(force=True), ALIVE, WITHIN_S), Held)


def test_failed_key_is_claimed_again_as_a_retry(store: SqlStore) -> None:
    store.finish(claimed(store, request()), finish("failed"), WITHIN_S)
    claim = claimed(store, request())
    assert (claim.claim_no, claim.trigger) == (2, "retry")
    assert row_of(store, claim.run_id).trigger == "retry"


def test_second_go_by_hand_stays_manual(store: SqlStore) -> None:
    store.finish(claimed(store, request()), finish("failed"), WITHIN_S)
    assert claimed(store, request(trigger="manual")).trigger == "manual"


def test_redo_never_claims_a_key_once(store: SqlStore) -> None:
    wish = request(redo="never")
    store.finish(claimed(store, wish), finish("failed"), WITHIN_S)
    assert store.claim(request(redo="never"), ALIVE, WITHIN_S) == Used(wish.run_id)


def test_force_overrides_redo_never(store: SqlStore) -> None:
    store.finish(claimed(store, request(redo="never")), finish("failed"), WITHIN_S)
    assert claimed(store, request(redo="never", force=True)).claim_no == 2


def test_redo_never_closes_the_dead_run_that_used_it_up(store: SqlStore, other: SqlStore) -> None:
    """P3: no row stays `running` for ever, whatever the answer is."""
    wish = request(redo="never")
    claimed(store, wish)
    store.close()
    assert other.claim(request(redo="never"), DEAD, WITHIN_S) == Used(wish.run_id)
    assert row_of(other, wish.run_id).status == "lost"


def test_runs_without_a_key_are_never_done(store: SqlStore) -> None:
    for _ in range(2):
        wish = request(keyed=False)
        store.finish(claimed(store, wish._replace(run_key=wish.run_id)), finish(), WITHIN_S)


def test_paused_job_is_not_claimed_even_by_force(store: SqlStore) -> None:
    store.finish(claimed(store, request("one")), finish(), WITHIN_S)
    pause(store, "job", "migration", "NULL")
    assert store.claim(request("two"), ALIVE, WITHIN_S) == Paused("migration")
    assert store.claim(request("two", force=True), ALIVE, WITHIN_S) == Paused("migration")
    assert store.look("job", "job", "two", ALIVE, WITHIN_S).paused == "migration"


def test_pause_that_is_over_pauses_nothing(store: SqlStore) -> None:
    store.finish(claimed(store, request("one")), finish(), WITHIN_S)
    pause(store, "job", "migration", "first_seen_at")
    claimed(store, request("two"))


def test_claim_repeated_by_its_own_run_is_the_same_claim(store: SqlStore) -> None:
    wish = request()
    first = claimed(store, wish)
    second = claimed(store, wish)
    assert second._replace(sent_at=first.sent_at) == first
    assert second.sent_at >= first.sent_at


def test_provably_dead_owner_is_taken_over_at_once_and_closed_as_lost(store: SqlStore, other: SqlStore) -> None:
    """FR-05, FR-68."""
    wish = request()
    first = claimed(store, wish)
    store.close()
    second = claimed(other, request(), DEAD)
    assert second.took_over == (wish.run_id,)
    assert second.fence > first.fence
    assert second.claim_no == 2
    row = row_of(other, wish.run_id)
    assert (row.status, row.reason) == ("lost", None)
    assert row.finished_at_utc is not None


def test_orphans_of_a_dead_owner_hold_the_claim(store: SqlStore, other: SqlStore) -> None:
    wish = request()
    claimed(store, wish)
    store.close()
    answer = other.claim(request(), judge_as("dead", (77, 78)), WITHIN_S)
    assert isinstance(answer, Held)
    assert (answer.holder.run_id, answer.orphans) == (wish.run_id, (77, 78))
    assert row_of(other, wish.run_id).status == "running"
    sight = other.look("job", "job", "x", judge_as("dead", (77, 78)), WITHIN_S)
    assert sight.orphans == (77, 78)


def test_unknown_owner_is_believed_until_its_lease_has_ended(store: SqlStore, other: SqlStore) -> None:
    """FR-69, FR-78: the store's clock, whatever the claimers' wall clocks say."""
    wish = request(lease_s=1.0)
    claimed(store, wish)
    store.close()
    assert isinstance(other.claim(request(), UNKNOWN, WITHIN_S), Held)
    answer = other.claim(request(), UNKNOWN, WITHIN_S)
    deadline = time.monotonic() + WITHIN_S
    while isinstance(answer, Held) and time.monotonic() < deadline:
        time.sleep(0.05)
        answer = other.claim(request(), UNKNOWN, WITHIN_S)
    assert isinstance(answer, Claimed)
    assert answer.took_over == (wish.run_id,)


def test_processes_that_could_not_be_killed_keep_the_claim_of_a_finished_run(store: SqlStore, other: SqlStore) -> None:
    wish = request("one")
    store.finish(claimed(store, wish), finish("timeout", orphans=(99,)), WITHIN_S)
    answer = other.claim(request("two"), judge_as("dead", (99,)), WITHIN_S)
    assert isinstance(answer, Held)
    assert (answer.holder.run_id, answer.orphans) == (wish.run_id, (99,))
    claim = claimed(other, request("two"), DEAD)
    assert claim.took_over == ()
    assert row_of(other, wish.run_id).status == "timeout"


def test_finished_runs_orphans_also_hold_while_its_supervisor_still_lives(store: SqlStore, other: SqlStore) -> None:
    wish = request("one")
    store.finish(claimed(store, wish), finish("timeout", orphans=(99,)), WITHIN_S)
    answer = other.claim(request("two"), judge_as("alive", (99,)), WITHIN_S)
    assert isinstance(answer, Held)
    assert answer.orphans == (99,)


def test_finished_runs_claim_is_free_at_once(store: SqlStore, other: SqlStore) -> None:
    store.finish(claimed(store, request("one")), finish(), WITHIN_S)
    claimed(other, request("two"))


def test_fences_only_grow(store: SqlStore) -> None:
    fences = []
    for key in "abcde":
        claim = claimed(store, request(key))
        store.finish(claim, finish(), WITHIN_S)
        fences.append(claim.fence)
    assert fences == sorted(set(fences))


def test_looking_shows_what_a_claim_would_meet(store: SqlStore, other: SqlStore) -> None:
    empty = other.look("job", "job", "one", ALIVE, WITHIN_S)
    assert empty == Sight(None, None, None, (), 0, False)
    wish = request("one")
    claim = claimed(store, wish)
    sight = other.look("job", "job", "one", ALIVE, WITHIN_S)
    assert sight.holder is not None
    assert (sight.holder.run_id, sight.claims, sight.known, sight.done_run) == (wish.run_id, 1, True, None)
    store.finish(claim, finish(), WITHIN_S)
    assert other.look("job", "job", "one", ALIVE, WITHIN_S) == Sight(wish.run_id, None, None, (), 1, True)


def test_claim_in_several_rows_way_is_judged_owner_by_owner(store: SqlStore, other: SqlStore) -> None:
    """The job runs under one lock, another job holds the lock that is asked for: one dead owner opens nothing."""
    mine = request("one", lock="old", owner=OWNER._replace(pid=1))
    foreign = request(job="b", lock="new", owner=OWNER._replace(pid=2))
    claimed(store, mine)
    claimed(store, foreign)
    store.close()

    def judge(owner: Owner, _run_id: str) -> Verdict:
        return Verdict("dead" if owner.pid == 1 else "alive")

    answer = other.claim(request("two", lock="new"), judge, WITHIN_S)
    assert isinstance(answer, Held)
    assert answer.holder.run_id == foreign.run_id
    assert set(claimed(other, request("two", lock="new"), DEAD).took_over) == {mine.run_id, foreign.run_id}
    assert summary_of(other, "b").failures_in_row == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"run_key": "other", "lock": "other"},  # the same job
        {"run_key": "other", "job": "other"},  # the same lock
        {"lock": "other", "status": "success"},  # the same key
        {"lock": "other", "status": "failed", "claim_no": 1},  # the same claim
    ],
)
def test_constraints_refuse_what_no_claim_may_do(store: SqlStore, changes: Dict[str, Any]) -> None:
    """P1 and P2 are the database's promises, not the code's."""
    running = row_of(store, claimed(store, request()).run_id)
    row = running._replace(run_id="second", claim_no=None)._replace(**changes)
    with pytest.raises(Collision):
        store._transact(lambda session: session.run([insert_run(row, "slot")]), Deadline(WITHIN_S))
    harmless = insert_run(row._replace(status="skipped", claim_no=None), "none")
    store._transact(lambda session: session.run([harmless]), Deadline(WITHIN_S))


def test_lock_of_a_run_whose_row_was_deleted_is_free_when_its_lease_has_ended(
    store: SqlStore, other: SqlStore
) -> None:
    """By hand, or by restoring an older backup."""
    claimed(store, request("one", lease_s=0.0))
    store._transact(lambda session: session.run([Statement("DELETE FROM runs")]), Deadline(WITHIN_S))
    store.close()
    claimed(other, request("two"), UNKNOWN)


def test_look_never_waits_for_a_claim_that_is_under_way(store: SqlStore, other: SqlStore) -> None:
    def slow(session: object) -> float:
        session.run([Statement("INSERT INTO locks (lock) VALUES (?)", ("job",))])  # type: ignore[attr-defined]
        began = time.monotonic()
        other.look("job", "job", "one", ALIVE, WITHIN_S)
        return time.monotonic() - began

    assert store._transact(slow, Deadline(WITHIN_S)) < 1.0
