"""What every command works on: the config document, the state directory and the store, found in one way.

Finding is all it does: the document is not judged here, and the store is not opened before a worker's first call.
"""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING, Dict, Mapping, NamedTuple, Optional, Sequence

from cronguard.core.config import Effective, resolve_settings, resolve_store
from cronguard.core.masking import mask_url
from cronguard.core.model import Invocation, RunRequest
from cronguard.errors import ConfigError
from cronguard.store.contract import Store
from cronguard.store.opening import masked, open_store
from cronguard.store.worker import StoreWorker
from cronguard.system import host
from cronguard.system.config_file import load_config
from cronguard.system.secrets import resolve

if TYPE_CHECKING:  # not on the path of a run
    from cronguard.core.standing import Due


class Workspace(NamedTuple):
    """`file_name` is empty without a config file. `store` may hold a password: it is for opening, not for showing."""

    document: Mapping[str, object]
    file_name: str
    state_dir: str
    store: str
    store_source: str

    @property
    def spool_dir(self) -> str:
        """Where finishes wait that could not be recorded: apart for each store, whatever its password is today."""
        return f"{self.state_dir}/spool/{zlib.crc32(masked(self.store).encode()):08x}"

    def worker(self) -> StoreWorker:
        """A thread of its own for the store, which connects at the first call. ConfigError for a URL that is none."""
        kind, _, path = self.store.partition(":")
        shared = kind == "sqlite" and host.file_system_kind(os.path.dirname(path))[1]

        def opened() -> Store:
            return open_store(self.store, network_fs=shared)

        return StoreWorker(opened(), opened)


def open_workspace(invocation: Invocation, job: Optional[str]) -> Workspace:
    """Find all, make nothing. `job`: whose table may name another store. ConfigError for what cannot be read."""
    document, file_name = load_config(invocation.config, invocation.environ)
    return workspace_of(document, file_name, invocation, job)


def workspace_of(
    document: Mapping[str, object], file_name: str, invocation: Invocation, job: Optional[str]
) -> Workspace:
    """The same for a config file that was read already."""
    state_dir = host.state_path(invocation.environ)
    found = resolve_store(invocation.store, job, document, file_name, invocation.environ)
    if found is None:
        found = Effective("store", f"sqlite:{state_dir}/cronguard.db", "default")
    url = _lasting(resolve(found.value_text, invocation.environ, found.source), found.source)
    return Workspace(document, file_name, state_dir, url, found.source)


def planned_jobs(workspace: Workspace, names: Sequence[str], environ: Mapping[str, str]) -> Dict[str, Due]:
    """Schedule and zone by the config file, for jobs that have never run."""
    found: Dict[str, Due] = {}
    for name in names:
        spec = resolve_settings(RunRequest(name, (), {}), workspace.document, workspace.file_name, environ).spec
        found[name] = (spec.schedule, spec.timezone or host.host_zone() or "")
    return found


def _lasting(url: str, source: str) -> str:
    """A URL that means the same for the whole run, also when the directory it was relative to is gone (FR-34)."""
    try:
        url.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError([f"{source}: {mask_url(url)}: not UTF-8 text"]) from None
    kind, _, path = url.partition(":")
    if kind != "sqlite" or not path or path.startswith("/"):
        return url
    try:
        return f"sqlite:{os.path.abspath(path)}"
    except FileNotFoundError:
        raise ConfigError([f"{source}: {url}: the current directory is gone"], "name an absolute path") from None
