"""A queue to be worked through by the real command, and looked into from the test."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from cronguard.core.queue import Counts, Item, NewItem
from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store
from tests.support.cronguard import Started, cronguard, environment

WITHIN_S = 20.0
JOB = "mails"


class Queue:
    """The items of one job in a store of its own."""

    def __init__(self, url: str) -> None:
        self.env = environment(CRONGUARD_STORE=url)
        self.store: SqlStore = open_store(url)
        self.store.prepare(WITHIN_S)

    def add(self, *keys: str, group: str = "", payload: str = "") -> None:
        items = [NewItem(key, group, payload) for key in keys]
        for start in range(0, len(items), 1000):
            self.store.add_items(JOB, items[start : start + 1000], WITHIN_S)

    def work(self, *words: str, env: Optional[Dict[str, str]] = None, **more: Any) -> Any:
        """To its end."""
        return cronguard("items", "work", JOB, *words, env=env or self.env, **more)

    def working(self, *words: str, env: Optional[Dict[str, str]] = None) -> Started:
        return Started("items", "work", JOB, *words, env=env or self.env)

    def counts(self) -> Counts:
        return self.store.count_items(JOB, WITHIN_S)

    def items(self, *statuses: str) -> List[Item]:
        return self.store.items(JOB, statuses, None, 10_000, WITHIN_S)

    def item(self, key: str) -> Item:
        (found,) = self.store.find_items(JOB, [key], WITHIN_S)
        return found


def sh(script: str) -> Sequence[str]:
    """A handler that is a shell script."""
    return ("--", "sh", "-c", script)
