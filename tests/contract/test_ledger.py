"""The ledger on every store: one mark, one token, and nobody else's word about it."""

from __future__ import annotations

from typing import Any, Callable, List

import pytest

from cronguard.core.ledger import Begun, Effect, EffectRequest, Fence, Fenced, Mark
from cronguard.errors import StoreDown
from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Session, Statement
from cronguard.store.fencing import is_fenced_off
from cronguard.store.waiting import Deadline
from tests.support.claims import DEAD, OWNER, WITHIN_S, claimed, finish, new_id, request
from tests.support.crowd import crowd

Opened = Callable[[str], SqlStore]
EFFECT = Effect("job", "mail:7")


def wish(effect: Effect = EFFECT, **changes: Any) -> EffectRequest:
    return EffectRequest(effect, new_id(), None, OWNER, None, 30.0)._replace(**changes)


def begun(store: SqlStore, of: EffectRequest) -> Begun:
    answer = store.begin_effect(of, WITHIN_S)
    assert isinstance(answer, Begun), answer
    return answer


def present(store: SqlStore, of: EffectRequest) -> Mark:
    answer = store.begin_effect(of, WITHIN_S)
    assert isinstance(answer, Mark), answer
    return answer


def test_effect_begins_once_and_the_next_is_shown_its_mark(store: SqlStore) -> None:
    first = wish()
    assert begun(store, first).attempts == 1
    mark = present(store, wish())
    assert (mark.status, mark.token, mark.attempts, mark.owner) == ("started", first.token, 1, OWNER)
    assert mark.lease_live
    assert mark.finished_at_utc is None


def test_begin_repeated_with_its_token_is_the_same_begin(store: SqlStore) -> None:
    """As after a COMMIT whose answer was lost."""
    first = wish(lease_s=0.0)
    begun(store, first)
    assert not present(store, wish()).lease_live
    assert begun(store, first._replace(lease_s=30.0)).attempts == 1
    assert present(store, wish()).lease_live, "the second call counts from its own time"


def test_settled_effect_stays_settled_whoever_comes_later(store: SqlStore) -> None:
    one = begun(store, wish())
    assert store.settle_effect(one, "done", "sent", WITHIN_S)
    assert store.settle_effect(one, "done", "sent", WITHIN_S), "repeated"
    assert not store.settle_effect(one, "failed", "", WITHIN_S)
    assert store.renew_effect(one, 30.0, WITHIN_S) == "lost"
    mark = present(store, wish(replaces=one.token))
    assert (mark.status, mark.message) == ("done", "sent")
    assert mark.finished_at_utc is not None


def test_failed_mark_is_replaced_only_by_whom_it_was_shown_to(store: SqlStore) -> None:
    one = begun(store, wish())
    assert store.settle_effect(one, "failed", "exit 1", WITHIN_S)
    assert present(store, wish(replaces="another")).status == "failed"
    two = begun(store, wish(replaces=one.token))
    assert two.attempts == 2
    assert begun(store, wish(token=two.token, replaces=one.token)).attempts == 2, "repeated"
    assert not store.settle_effect(one, "done", "", WITHIN_S), "the first one comes late"
    assert present(store, wish(replaces=one.token)).token == two.token
    assert store.settle_effect(two, "done", "", WITHIN_S)


def test_replacing_what_was_forgotten_meanwhile_begins_anew(store: SqlStore) -> None:
    one = begun(store, wish())
    assert store.forget_effects([EFFECT, Effect("job", "never")], WITHIN_S) == [EFFECT]
    assert begun(store, wish(replaces=one.token)).attempts == 1
    assert not store.settle_effect(one, "done", "", WITHIN_S)


def test_withdrawn_first_attempt_leaves_nothing_and_a_later_one_a_failed_mark(store: SqlStore) -> None:
    one = begun(store, wish())
    store.withdraw_effect(one, WITHIN_S)
    store.withdraw_effect(one, WITHIN_S)
    assert store.marks("job", (), 9, WITHIN_S) == []
    two = begun(store, wish())
    assert store.settle_effect(two, "failed", "", WITHIN_S)
    three = begun(store, wish(replaces=two.token))
    store.withdraw_effect(three, WITHIN_S)
    store.withdraw_effect(three, WITHIN_S)
    (mark,) = store.marks("job", (), 9, WITHIN_S)
    assert (mark.status, mark.attempts) == ("failed", 1)


def test_withdrawing_takes_nothing_from_somebody_else(store: SqlStore) -> None:
    one = begun(store, wish())
    store.withdraw_effect(one._replace(token="another"), WITHIN_S)
    assert store.settle_effect(one, "done", "", WITHIN_S)
    store.withdraw_effect(one, WITHIN_S)
    assert present(store, wish()).status == "done"


def test_keys_are_compared_byte_for_byte_and_belong_to_a_job_and_a_run_key(store: SqlStore) -> None:
    alike = [
        Effect("job", "caf\u00e9"), Effect("job", "cafe\u0301"), Effect("job", "Caf\u00e9"), Effect("job", ""),
        Effect("job", "caf\u00e9", "2026-01-20"), Effect("other", "caf\u00e9"), Effect("job", "caf\u00e9 "),
        Effect("job", "a'; --?%s\\"),
    ]  # fmt: skip
    for effect in alike:
        begun(store, wish(effect))
    assert {mark.effect for mark in store.marks(None, (), 99, WITHIN_S)} == set(alike)
    assert len(store.marks("other", (), 99, WITHIN_S)) == 1


def test_marks_are_listed_by_status_newest_first(store: SqlStore) -> None:
    for key, status in (("a", "done"), ("b", "failed"), ("c", None), ("d", "done")):
        one = begun(store, wish(Effect("job", key)))
        if status:
            store.settle_effect(one, status, "", WITHIN_S)
    keys = [mark.effect.key for mark in store.marks("job", (), 3, WITHIN_S)]
    assert keys == ["d", "c", "b"]
    assert [mark.effect.key for mark in store.marks(None, ("started", "failed"), 9, WITHIN_S)] == ["c", "b"]
    assert [mark.effect.key for mark in store.marks("job", ("done",), 9, WITHIN_S)] == ["d", "a"]


def test_what_somebody_found_to_have_happened_is_done(store: SqlStore) -> None:
    """FR-71."""
    one = begun(store, wish())
    assert store.resolve_effects([Effect("job", "never"), EFFECT], WITHIN_S) == [EFFECT]
    assert store.resolve_effects([EFFECT], WITHIN_S) == [EFFECT]
    assert not store.settle_effect(one, "failed", "", WITHIN_S)
    assert present(store, wish(replaces=one.token)).status == "done"


def test_row_of_a_jobs_own_sql_is_a_mark_that_is_done(store: SqlStore) -> None:
    """README, "In your own transaction": the key alone means that it happened."""
    store._send([Statement("INSERT INTO ledger (job, effect_key) VALUES ('job', 'mail:7')")], WITHIN_S)
    mark = present(store, wish())
    assert (mark.status, mark.owner, mark.lease_live, mark.token) == ("done", None, False, "")
    store._send([Statement("UPDATE ledger SET owner = 'me', status = 'started'")], WITHIN_S)
    assert present(store, wish()).owner is None
    assert begun(store, wish(replaces="")).attempts == 2


def test_run_that_lost_its_lock_begins_nothing(store_url: str, store: SqlStore, opened: Opened) -> None:
    run = claimed(store, request(lease_s=0.0))
    fence = Fence(run.run_id, run.fence)
    first = begun(store, wish(fence=fence))
    (mark,) = store.marks("job", (), 1, WITHIN_S)
    assert mark.run_id == run.run_id
    for wrong in (Fence(run.run_id, run.fence - 1), Fence("nobody", run.fence)):
        assert store.begin_effect(wish(Effect("job", "next"), fence=wrong), WITHIN_S) == Fenced(wrong.run_id)
    store.close()  # on SQLite, its flock
    claimed(opened(store_url), request("next"), DEAD)
    assert store.begin_effect(wish(Effect("job", "next"), fence=fence), WITHIN_S) == Fenced(run.run_id)
    assert len(store.marks("job", (), 9, WITHIN_S)) == 1
    assert store.settle_effect(first, "done", "", WITHIN_S), "what it began before was done all the same"


def test_no_takeover_slips_in_behind_the_question_and_no_renewal_waits_for_it(
    postgres_url: str, opened: Opened
) -> None:
    store, other = opened(postgres_url), opened(postgres_url)
    run = claimed(store, request())

    def meanwhile(session: Session) -> None:
        assert not is_fenced_off(session, store.dialect, Fence(run.run_id, run.fence))
        with pytest.raises(StoreDown):
            other.claim(request("next"), DEAD, 0.3)
        assert other.renew(run, 30.0, 0.3) == "ours"

    store._transact(meanwhile, Deadline(WITHIN_S))
    claimed(other, request("next"), DEAD)


def test_run_that_has_ended_begins_nothing(store: SqlStore) -> None:
    run = claimed(store, request())
    store.finish(run, finish(), WITHIN_S)
    fence = Fence(run.run_id, run.fence)
    assert store.begin_effect(wish(fence=fence), WITHIN_S) == Fenced(run.run_id)


@pytest.mark.parametrize("replacing", [False, True])
def test_of_many_at_once_one_begins(store_url: str, store: SqlStore, replacing: bool) -> None:
    token = None
    if replacing:
        failed = begun(store, wish())
        store.settle_effect(failed, "failed", "", WITHIN_S)
        token = failed.token
    answers: List[Any] = []
    crowd(store_url, 6 * [lambda one: answers.append(one.begin_effect(wish(replaces=token), WITHIN_S))])
    assert len(answers) == 6
    winners = [answer for answer in answers if isinstance(answer, Begun)]
    assert len(winners) == 1
    assert {answer.token for answer in answers} == {winners[0].token}


def test_messages_of_any_bytes_are_kept_as_far_as_they_can_be(store: SqlStore) -> None:
    one = begun(store, wish())
    assert store.settle_effect(one, "failed", "caf\udce9 \x00 \u20ac", WITHIN_S)
    assert "\u20ac" in store.marks("job", (), 1, WITHIN_S)[0].message
