"""Several clients of one store at the same instant, each a thread with a connection of its own."""

from __future__ import annotations

import threading
from typing import Callable, List, Sequence

from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store

Work = Callable[[SqlStore], None]


def crowd(url: str, works: Sequence[Work]) -> None:
    """Do them all at once on a store that has its tables; what one raises is raised here."""
    gate = threading.Barrier(len(works))
    failures: List[BaseException] = []

    def run(work: Work) -> None:
        store = open_store(url)  # SQLite wants to be used by the thread that connected
        try:
            gate.wait()
            work(store)
        except BaseException as failure:  # noqa: BLE001  # raised below, where pytest sees it
            failures.append(failure)
        finally:
            store.close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
