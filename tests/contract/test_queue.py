"""The queue on every store: who gets which item, for how long, and whose word about it counts."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from typing import Any, Callable, List

from cronguard.core.ledger import Fence, Fenced
from cronguard.core.queue import Counts, NewItem, Start
from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Statement
from cronguard.store.opening import open_store
from cronguard.store.waiting import Deadline
from tests.support.claims import DEAD, WITHIN_S, claimed, now, request
from tests.support.crowd import crowd
from tests.support.queueing import add, done, item, keys, settle, take, wish

Opened = Callable[[str], SqlStore]


# Adding.


def test_adding_twice_adds_once_whatever_became_of_the_item(store: SqlStore) -> None:
    assert add(store, "a", "b", "a") == 2
    for one in take(store, wish()):
        settle(store, done(one))
    assert add(store, "b", "c", "a") == 1
    assert store.count_items("job", WITHIN_S) == Counts(1, 1, 0, 2, 0)
    assert store.add_items("other", [NewItem("a")], WITHIN_S) == 1


def test_thousand_items_are_added_in_one_call_and_come_out_in_their_order(store: SqlStore) -> None:
    named = [f"k{(number * 7919) % 1000}" for number in range(1000)]
    assert add(store, *named) == 1000
    assert keys(take(store, wish(1000))) == named
    assert store.add_items("job", [], WITHIN_S) == 0


def test_items_keep_group_payload_and_their_time(store: SqlStore) -> None:
    later = now() + timedelta(hours=1)
    add(store, "caf\u00e9 '\"?%s\\", group="g\u00fc", payload='{"a": [1]}\n\U0001f600')
    add(store, "later", not_before_utc=later)
    (one,) = take(store, wish(9, ("g\u00fc", "")))
    assert (one.key, one.group, one.payload) == ("caf\u00e9 '\"?%s\\", "g\u00fc", '{"a": [1]}\n\U0001f600')
    assert (one.token, one.attempts) == (1, 0)
    assert item(store, "later").available_at_utc == later
    assert store.count_items("job", WITHIN_S) == Counts(1, 0, 1, 0, 0)


def test_text_that_no_database_takes_does_not_break_the_call(store: SqlStore) -> None:
    assert add(store, "a\x00\udce9", payload="\udcff\x00", group="\x00") == 1
    assert len(store.find_items("job", ["a\x00\udce9"], WITHIN_S)) == 1
    assert store.forget_items("job", ["a\x00\udce9"], WITHIN_S) != []


def test_same_items_added_in_another_order_at_once_wait_for_nobody(
    store_url: str, store: SqlStore
) -> None:
    """Two transactions that lock the same rows in another order would be a deadlock; it takes a second to be found."""
    named = [f"k{number}" for number in range(1000)]
    began = time.monotonic()
    added: List[int] = []
    crowd(
        store_url,
        2 * [lambda one: added.append(add(one, *named)), lambda one: added.append(add(one, *reversed(named)))],
    )
    assert sum(added) == 1000
    assert time.monotonic() - began < 1.0


# Groups.


def test_groups_that_have_an_item_to_take_now_are_found_in_order(store: SqlStore) -> None:
    for group in ("", "b", "a", "c"):
        add(store, f"1{group}", f"2{group}", group=group)
    add(store, "later", group="d", not_before_utc=now() + timedelta(hours=1))
    assert store.ready_groups("job", None, 9, WITHIN_S) == ["", "a", "b", "c"]
    assert store.ready_groups("job", "", 9, WITHIN_S) == ["a", "b", "c"]
    assert store.ready_groups("job", "a", 1, WITHIN_S) == ["b"]
    assert store.ready_groups("job", "c", 9, WITHIN_S) == []
    assert store.ready_groups("other", None, 9, WITHIN_S) == []
    for one in take(store, wish(9, ("a", "b"))):
        settle(store, done(one) if one.group == "a" else done(one, "waiting"))
    assert store.ready_groups("job", None, 9, WITHIN_S) == ["", "b", "c"]


# Taking.


def test_take_goes_in_turns_over_the_groups(store: SqlStore) -> None:
    for group in "abcdefghij":
        add(store, *(f"{group}{number}" for number in range(5)), group=group)
    assert keys(take(store, wish(10, "jihgfedcba"))) == [f"{group}0" for group in "jihgfedcba"]
    assert sorted(keys(take(store, wish(6, "abc")))) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    add(store, "lonely", group="z")
    got = Counter(one.group for one in take(store, wish(9, "za")))
    assert got == {"z": 1, "a": 2}, "what one group does not have, another may"
    assert Counter(one.group for one in take(store, wish(9, "de", per_group=2))) == {"d": 2, "e": 2}
    assert take(store, wish(9, "xy")) == []


def test_take_of_one_group_is_oldest_first_and_no_item_before_its_time(store: SqlStore) -> None:
    add(store, "new")
    add(store, "old", not_before_utc=now() - timedelta(hours=1))
    add(store, "later", not_before_utc=now() + timedelta(hours=1))
    assert keys(take(store, wish(1))) == ["old"]
    assert keys(take(store, wish())) == ["new"]
    assert take(store, wish()) == []
    assert take(store, wish(groups=())) == []


def test_taken_item_is_nobody_elses_until_its_time_is_over(store: SqlStore) -> None:
    """FR-69."""
    add(store, "a")
    (first,) = take(store, wish(reserve_s=0.0))
    row = item(store, "a")
    assert (row.status, row.worker, row.run_id, row.attempts) == ("reserved", "worker-1", None, 0)
    assert store.ready_groups("job", None, 9, WITHIN_S) == [""]
    (second,) = take(store, wish(worker="worker-2"))
    assert (second.key, second.token) == ("a", first.token + 1)
    assert take(store, wish()) == []
    assert settle(store, done(first)) == ("a",), "the first comes late"
    assert settle(store, done(second)) == ()
    assert item(store, "a").status == "done"


def test_take_repeated_by_its_id_gives_the_same_items_and_their_full_time(store: SqlStore) -> None:
    """As after a COMMIT whose answer was lost."""
    add(store, "a", "b", "c")
    once = wish(2, reserve_s=5.0)
    first = take(store, once)
    assert take(store, once._replace(reserve_s=900.0)) == first
    assert store.count_items("job", WITHIN_S).reserved == 2
    assert item(store, "a").available_at_utc > now() + timedelta(seconds=600)


def test_tries_of_one_take_at_the_same_time_are_one_take(store_url: str, store: SqlStore) -> None:
    """The first may still be under way when the connection is lost under it."""
    add(store, *(f"k{number}" for number in range(40)))
    once = wish(5)
    got: List[Any] = []
    crowd(store_url, 4 * [lambda one: got.append(sorted(take(one, once)))])
    assert got == 4 * [got[0]]
    assert store.count_items("job", WITHIN_S).reserved == 5


def test_take_of_a_run_that_lost_its_lock_is_refused(store_url: str, store: SqlStore, opened: Opened) -> None:
    add(store, "a", "b")
    run = claimed(store, request(lease_s=0.0))
    fence = Fence(run.run_id, run.fence)
    (mine,) = take(store, wish(1, fence=fence))
    assert item(store, mine.key).run_id == run.run_id
    store.close()  # on SQLite, its flock
    claimed(opened(store_url), request("next"), DEAD)
    assert store.take_items(wish(fence=fence), WITHIN_S) == Fenced(run.run_id)
    assert store.count_items("job", WITHIN_S).reserved == 1
    assert settle(store, done(mine)) == (), "but what it has done is done"


def test_rows_that_others_hold_do_not_make_a_take_come_back_empty(postgres_url: str, opened: Opened) -> None:
    """SKIP LOCKED behind a LIMIT of its own would: the oldest ten are locked, and the take asks for ten."""
    store, other = opened(postgres_url), opened(postgres_url)
    add(store, *(f"k{number:02}" for number in range(30)))

    def meanwhile(session: Any) -> None:
        session.run([Statement(f"SELECT 1 FROM items ORDER BY available_at LIMIT 10 {store.dialect.for_update}")])
        assert keys(take(other, wish())) == [f"k{number}" for number in range(10, 20)]
        assert Counter(one.group for one in take(other, wish(100))) == {"": 10}

    store._transact(meanwhile, Deadline(WITHIN_S))


# Settling, starting, renewing.


def test_step_settles_and_starts_at_once(store: SqlStore) -> None:
    add(store, "a", "b", "c")
    one, two, three = take(store, wish(reserve_s=5.0))
    step = store.step_items(
        "job", [done(one), done(two, "waiting", delay_s=3600.0, message="exit 1")], [Start("c", three.token, 1)],
        900.0, WITHIN_S,
    )
    assert (step.unsettled, step.unstarted) == ((), ())
    a, b, c = store.find_items("job", ["a", "b", "c"], WITHIN_S)
    assert (a.status, a.attempts, a.worker) == ("done", 1, None)
    assert a.finished_at_utc is not None
    assert (b.status, b.attempts, b.worker, b.message, b.finished_at_utc) == ("waiting", 1, None, "exit 1", None)
    assert now() + timedelta(minutes=50) < b.available_at_utc < now() + timedelta(minutes=70)
    assert (c.status, c.attempts, c.worker) == ("reserved", 1, "worker-1")
    assert c.started_at_utc is not None
    assert c.available_at_utc > now() + timedelta(seconds=600), "a start renews"


def test_step_repeated_answers_the_same(store: SqlStore) -> None:
    add(store, "a", "b", "c")
    one, two, three = take(store, wish())
    for _ in range(2):
        step = store.step_items("job", [done(one), done(two, "waiting")], [Start("c", three.token, 1)], 30.0, WITHIN_S)
        assert (step.unsettled, step.unstarted) == ((), ())
    assert item(store, "c").attempts == 1
    assert settle(store, done(one, "dead")) == ("a",), "it is done, and stays so"


def test_step_refuses_by_key_what_is_no_longer_ours(store: SqlStore) -> None:
    add(store, "a", "b", "c")
    one, two, three = take(store, wish())
    store.forget_items("job", ["b"], WITHIN_S)
    step = store.step_items(
        "job", [done(one)._replace(token=one.token - 1), done(two)], [Start("c", three.token, 1), Start("x", 1, 1)],
        30.0, WITHIN_S,
    )
    assert (step.unsettled, step.unstarted) == (("a", "b"), ("x",))
    assert item(store, "a").status == "reserved"


def test_renewal_extends_what_the_worker_has_and_tells_what_it_has_not(store: SqlStore) -> None:
    add(store, "a", "b", "c")
    mine = take(store, wish(reserve_s=0.0))
    (lost,) = take(store, wish(1, worker="worker-2"))
    kept = {one.key: one.token for one in mine if one.key != lost.key}
    assert store.renew_items("job", "worker-1", 900.0, WITHIN_S) == kept
    assert store.renew_items("job", "nobody", 900.0, WITHIN_S) == {}
    assert store.renew_items("other", "worker-1", 900.0, WITHIN_S) == {}
    assert all(item(store, key).available_at_utc > now() + timedelta(seconds=600) for key in kept)


# What people do with items.


def test_dead_item_is_retried_with_all_attempts_before_it(store: SqlStore) -> None:
    add(store, "a", "b", "c")
    add(store, "later", not_before_utc=now() + timedelta(hours=1))
    one, two, three = take(store, wish())
    settle(store, done(one, "dead", attempts=5, message="exit 1"), done(two))
    assert store.retry_items("job", ["later", "c", "b", "a", "x"], WITHIN_S) == ["a", "b", "later"]
    row = item(store, "a")
    assert (row.status, row.attempts, row.finished_at_utc) == ("waiting", 0, None)
    assert settle(store, done(one, "dead")) == ("a",), "a late writer from before"
    assert sorted(keys(take(store, wish()))) == ["a", "b", "later"]
    assert settle(store, done(three)) == ()


def test_items_are_listed_by_what_may_be_taken_soonest(store: SqlStore) -> None:
    add(store, "a", "b", "c", group="g")
    add(store, "later", not_before_utc=now() + timedelta(hours=1))
    add(store, "early", not_before_utc=now() - timedelta(hours=1))
    settle(store, done(take(store, wish(1, "g"))[0]))
    assert keys(store.items("job", ("waiting",), None, 9, WITHIN_S)) == ["early", "b", "c", "later"]
    assert keys(store.items("job", ("waiting",), "g", 1, WITHIN_S)) == ["b"]
    assert keys(store.items("job", (), None, 2, WITHIN_S)) == ["early", "b"]
    assert keys(store.items("job", ("done", "dead"), None, 9, WITHIN_S)) == ["a"]
    assert len(store.items("job", (), None, 9, WITHIN_S)) == 5
    assert store.items("other", (), None, 9, WITHIN_S) == []


def test_forgotten_items_are_gone_and_may_be_added_again(store: SqlStore) -> None:
    add(store, "a", "b")
    (one,) = take(store, wish(1))
    assert store.forget_items("job", ["b", "x", "a"], WITHIN_S) == ["a", "b"]
    assert store.forget_items("job", ["a"], WITHIN_S) == []
    assert settle(store, done(one)) == ("a",)
    assert add(store, "a") == 1


def test_clearing_deletes_one_status_by_age_a_few_at_a_time(store: SqlStore) -> None:
    add(store, *(f"k{number}" for number in range(5)))
    for one in take(store, wish(4)):
        settle(store, done(one))
    assert store.clear_items("job", "done", now() - timedelta(hours=1), 9, WITHIN_S) == 0
    assert store.clear_items("job", "done", now() + timedelta(hours=1), 3, WITHIN_S) == 3
    assert store.clear_items("job", "done", None, 3, WITHIN_S) == 1
    assert store.clear_items("job", "dead", None, 3, WITHIN_S) == 0
    assert store.count_items("job", WITHIN_S) == Counts(1, 1, 0, 0, 0)


def test_row_of_a_jobs_own_sql_is_an_item_to_be_taken_now(store: SqlStore) -> None:
    """README, "In your own transaction": the key alone means that it waits."""
    store._send([Statement("INSERT INTO items (job, item_key) VALUES ('job', 'a')")], WITHIN_S)
    assert store.count_items("job", WITHIN_S) == Counts(1, 1, 0, 0, 0)
    assert keys(take(store, wish())) == ["a"]


def test_store_without_tables_has_no_items(store_url: str) -> None:
    empty = open_store(store_url)
    assert empty.count_items("job", WITHIN_S) == Counts(0, 0, 0, 0, 0)
    assert empty.items("job", (), None, 9, WITHIN_S) == []
    assert empty.ready_groups("job", None, 9, WITHIN_S) == []
    assert empty.marks(None, (), 9, WITHIN_S) == []
    assert empty.checkpoints("job", WITHIN_S) == []
    empty.close()
