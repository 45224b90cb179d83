"""Short words for tests of the queue: everything is about one job, `job`."""

from __future__ import annotations

from typing import Any, List, Sequence

from cronguard.core.queue import Item, NewItem, Reserved, Settlement, Take, Taken
from cronguard.store.backend import SqlStore
from tests.support.claims import WITHIN_S, new_id


def add(store: SqlStore, *keys: str, **fields: Any) -> int:
    return store.add_items("job", [NewItem(key, **fields) for key in keys], WITHIN_S)


def wish(most: int = 10, groups: Sequence[str] = ("",), **changes: Any) -> Take:
    plain = Take("job", tuple(groups), most, 1000, "worker-1", new_id(), None, 30.0)
    return plain._replace(**changes)


def take(store: SqlStore, of: Take) -> List[Reserved]:
    answer = store.take_items(of, WITHIN_S)
    assert isinstance(answer, Taken), answer
    return list(answer.items)


def keys(items: Sequence[Any]) -> List[str]:
    return [item.key for item in items]


def done(item: Reserved, status: str = "done", **changes: Any) -> Settlement:
    return Settlement(item.key, item.token, status, item.attempts + 1)._replace(**changes)


def settle(store: SqlStore, *ends: Settlement) -> Any:
    return store.step_items("job", ends, (), 30.0, WITHIN_S).unsettled


def item(store: SqlStore, key: str) -> Item:
    (found,) = store.find_items("job", [key], WITHIN_S)
    return found
