"""Many workers on one queue, and how a database goes about what they ask of it."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Callable, Dict, List

import pytest

from cronguard.core.queue import Counts, Settlement, Start
from cronguard.store import queue, taking
from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Statement
from tests.support.claims import WITHIN_S
from tests.support.crowd import crowd
from tests.support.plans import plan
from tests.support.queueing import add, done, settle, take, wish

Opened = Callable[[str], SqlStore]


def drain(store: SqlStore, worker: str, handled: List[str]) -> None:
    """Take, settle and take again until nothing is there; every tenth is given back the first time."""
    while True:
        groups = store.ready_groups("job", None, 9, WITHIN_S)
        if not groups:
            return
        got = take(store, wish(7, groups, worker=worker, per_group=5))
        ends = [done(one, "waiting" if one.key.endswith("0") and not one.attempts else "done") for one in got]
        assert settle(store, *ends) == ()
        handled += [end.key for end in ends if end.status == "done"]


def test_six_workers_do_every_item_once(store_url: str, store: SqlStore) -> None:
    """FR-60, through PgBouncer: 200 items and more, and no prepared statement that is missed."""
    for group in ("", "a", "b"):
        add(store, *(f"{group}{number}" for number in range(200)), group=group)
    handled: Dict[str, List[str]] = {f"worker-{number}": [] for number in range(6)}
    crowd(store_url, [partial(drain, worker=name, handled=mine) for name, mine in handled.items()])
    counted = Counter(key for mine in handled.values() for key in mine)
    assert len(counted) == 600
    assert set(counted.values()) == {1}
    assert store.count_items("job", WITHIN_S) == Counts(0, 0, 0, 600, 0)


def test_takes_and_those_who_forget_and_retry_do_not_block_each_other(
    store_url: str, store: SqlStore
) -> None:
    named = [f"k{number}" for number in range(60)]
    add(store, *named)

    def meddle(people: SqlStore) -> None:
        for turn in range(10):
            people.retry_items("job", named[:: (-1) ** turn], WITHIN_S)
            people.forget_items("job", named[turn * 3 : turn * 3 + 2], WITHIN_S)

    crowd(store_url, [meddle, *(partial(drain_loosely, worker=name) for name in ("x", "y"))])
    drain_loosely(store, "z")
    assert store.count_items("job", WITHIN_S) == Counts(0, 0, 0, 40, 0)


def drain_loosely(store: SqlStore, worker: str) -> None:
    """The same without a claim that every settlement is accepted."""
    while True:
        got = take(store, wish(7, worker=worker))
        if not got:
            return
        settle(store, *(done(one) for one in got))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_of_a_worker_reads_the_table(kind: str, request: pytest.FixtureRequest, opened: Opened) -> None:
    """Also for a database that believes the job to have no items: its statistics are from before they were added."""
    store = opened(request.getfixturevalue(f"{kind}_url"))
    dialect = store.dialect
    add(store, *(f"old{number}" for number in range(500)))
    store._send(
        [Statement("UPDATE items SET job = 'other', status = 'done'"), Statement("ANALYZE items")], WITHIN_S
    )
    add(store, *(f"k{number}" for number in range(500)))
    one = wish(20, ("", "a"))
    hands: Dict[str, List[Statement]] = {
        "items_open": [queue.ready_groups("job", None, 9, dialect)],
        "items_by_worker": [*queue.renewal("job", "worker-1", 30.0, dialect), taking._again(one, dialect)[0]],
        "items_ended": [queue.clearing("job", "done", None, 9, dialect)],
        "key": [
            queue._start("job", Start("k1", 1, 1), 30.0, dialect), queue._status("job", Settlement("k1", 1, "done", 1)),
            queue._settle("job", Settlement("k1", 1, "done", 1), dialect), queue.found("job", ["k1", "k2"], dialect),
        ],
    }  # fmt: skip
    if kind == "postgres":
        hands["items_open"].append(taking._take_in_one(one, dialect))
    for index, statements in hands.items():
        for statement in statements:
            steps = plan(store, statement)
            wanted = {"sqlite": "sqlite_autoindex_items_1", "postgres": "items_pkey"}[kind] if index == "key" else index
            assert wanted in steps, steps
            assert "Seq Scan on items" not in steps
            assert "SCAN items" not in steps
            assert "SCAN TABLE items" not in steps
