"""What every command works on: the config document, the state directory and the store, found in one way.

Finding is all it does: the document is not judged here, and the store is not opened before a worker's first call.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from cronguard.core.config import resolve_store
from cronguard.core.model import Invocation
from cronguard.store.opening import open_store
from cronguard.store.worker import StoreWorker
from cronguard.system import host
from cronguard.system.config_file import load_config
from cronguard.system.secrets import resolve


class Workspace(NamedTuple):
    """`file_name` is empty without a config file. `store` may hold a password: it is for opening, not for showing."""

    document: Mapping[str, object]
    file_name: str
    state_dir: str
    store: str
    store_source: str

    @property
    def spool_dir(self) -> str:
        """Where finishes wait that could not be recorded."""
        return f"{self.state_dir}/spool"

    def worker(self) -> StoreWorker:
        """A thread of its own for the store, which opens it at the first call."""
        return StoreWorker(lambda: open_store(self.store))


def open_workspace(invocation: Invocation, job: Optional[str]) -> Workspace:
    """Find everything. `job`: whose table may name another store. ConfigError when something named cannot be read."""
    document, file_name = load_config(invocation.config, invocation.environ)
    state_dir = host.state_dir(invocation.environ)
    found = resolve_store(invocation.store, job, document, file_name, invocation.environ)
    if found is None:
        return Workspace(document, file_name, state_dir, f"sqlite:{state_dir}/cronguard.db", "default")
    url = resolve(found.value_text, invocation.environ, found.source)
    return Workspace(document, file_name, state_dir, url, found.source)
