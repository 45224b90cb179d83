"""Checkpoints on every store: an older run never puts one back, and nobody does so unnoticed."""

from __future__ import annotations

from typing import Any, Callable

from cronguard.core.checkpoints import CheckpointSet, Differs, NewerFence, RunUnderWay, WasSet
from cronguard.core.ledger import Fence, Fenced
from cronguard.core.model import Claimed
from cronguard.store.backend import SqlStore
from cronguard.store.dialect import Statement
from tests.support.claims import DEAD, WITHIN_S, claimed, finish, request
from tests.support.crowd import crowd

Opened = Callable[[str], SqlStore]


def put(store: SqlStore, value: str, **changes: Any) -> Any:
    return store.set_checkpoint(CheckpointSet("job", "page", value, None)._replace(**changes), WITHIN_S)


def value_of(store: SqlStore, name: str = "page") -> Any:
    return {row.name: row.value for row in store.checkpoints("job", WITHIN_S)}.get(name)


def fence_of(run: Claimed) -> Fence:
    return Fence(run.run_id, run.fence)


def test_set_get_list_clear(store: SqlStore) -> None:
    assert store.checkpoints("job", WITHIN_S) == []
    assert put(store, "1") == WasSet(None)
    was = put(store, "2")
    assert (was.before.value, was.before.run_id, was.before.fence) == ("1", None, None)
    put(store, "x", name="a")
    put(store, "y", job="other")
    assert [(row.name, row.value) for row in store.checkpoints("job", WITHIN_S)] == [("a", "x"), ("page", "2")]
    assert store.clear_checkpoint("job", "page", WITHIN_S)
    assert not store.clear_checkpoint("job", "page", WITHIN_S)
    assert value_of(store) is None


def test_run_sets_while_it_holds_its_lock_and_never_after(store_url: str, store: SqlStore, opened: Opened) -> None:
    old = claimed(store, request(lease_s=0.0))
    assert put(store, "1", fence=fence_of(old)) == WasSet(None)
    (row,) = store.checkpoints("job", WITHIN_S)
    assert (row.run_id, row.fence) == (old.run_id, old.fence)
    store.close()  # on SQLite, its flock
    new = claimed(opened(store_url), request("next"), DEAD)
    assert put(store, "2", fence=fence_of(old)) == Fenced(old.run_id)
    assert isinstance(put(store, "3", fence=fence_of(new)), WasSet)
    assert put(store, "4", fence=fence_of(new)._replace(fence=old.fence)) == Fenced(new.run_id)
    assert value_of(store) == "3"


def test_fence_never_gets_lower_whoever_sets(store: SqlStore) -> None:
    """Under another lock name a run may hold an older fence; the newer one counts, also after a set by hand."""
    older = claimed(store, request("one", lock="a"))
    store.finish(older, finish(), WITHIN_S)
    newer = claimed(store, request("two", lock="b"))
    put(store, "new", fence=fence_of(newer))
    store.finish(newer, finish(), WITHIN_S)
    assert isinstance(put(store, "by hand"), WasSet)
    again = claimed(store, request("three", lock="a"))
    store._send([Statement("UPDATE locks SET fence = 1 WHERE lock = 'a'")], WITHIN_S)
    answer = put(store, "old", fence=Fence(again.run_id, 1))
    assert isinstance(answer, NewerFence)
    assert (answer.present.value, answer.present.fence) == ("by hand", newer.fence)
    assert value_of(store) == "by hand"


def test_nobody_else_sets_while_a_run_is_under_way(store: SqlStore) -> None:
    run = claimed(store, request())
    assert put(store, "1") == RunUnderWay(run.run_id)
    assert put(store, "1", job="other") == WasSet(None)
    assert put(store, "1", force=True) == WasSet(None)
    store.finish(run, finish(), WITHIN_S)
    assert isinstance(put(store, "2"), WasSet)


def test_run_whose_lease_has_ended_does_not_keep_people_out(postgres_url: str, opened: Opened) -> None:
    store = opened(postgres_url)
    claimed(store, request(lease_s=0.0))
    assert put(store, "1") == WasSet(None)


def test_expected_value_is_compared_before(store: SqlStore) -> None:
    assert put(store, "1", expected="0") == Differs(None)
    assert put(store, "1", expected="") == WasSet(None)
    answer = put(store, "2", expected="")
    assert isinstance(answer, Differs)
    assert answer.present is not None
    assert answer.present.value == "1"
    assert isinstance(put(store, "", expected="1"), WasSet)
    assert isinstance(put(store, "3", expected=""), WasSet)


def test_values_of_any_length_and_kind_come_back_as_they_were(store: SqlStore) -> None:
    for value in ("", " ", "caf\u00e9\n\t\U0001f600", "'\"%s?\\", "x" * 100_000):
        put(store, value)
        assert value_of(store) == value
    assert isinstance(put(store, "a\x00b\udce9"), WasSet)


def test_counting_up_by_many_at_once_loses_no_count(store_url: str, store: SqlStore) -> None:
    """Each sets what it saw plus one, if it is still that: sets come one after another, also the first."""

    def count(one: SqlStore) -> None:
        for _ in range(5):
            while True:
                seen = value_of(one) or ""
                if isinstance(put(one, str(int(seen or 0) + 1), expected=seen), WasSet):
                    break

    crowd(store_url, 4 * [count])
    assert value_of(store) == "20"
