"""The stores that this process has open, so that a thousand effects need one connection.

A forked child makes its own: no thread of ours lives on in it, and no connection may be used by two.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import contextmanager
from typing import Dict, Iterator, Optional, Tuple

from cronguard.core.effect_texts import TOKEN_VARIABLE
from cronguard.core.ledger import Begun
from cronguard.core.model import Event, Invocation
from cronguard.errors import UsageError
from cronguard.pipeline.effect import LEASE_S
from cronguard.store.contract import Store
from cronguard.store.worker import StoreWorker
from cronguard.system import identity
from cronguard.system.host import own_environment
from cronguard.workspace import Workspace, open_workspace


class Session:
    """One store, and who we are to it."""

    def __init__(self, workspace: Workspace) -> None:
        environ = own_environment()
        self.worker = workspace.worker()
        self.owner = identity.own_identity(os.getpid(), environ)
        self.judge = identity.make_judge(workspace.state_dir, environ, TOKEN_VARIABLE)
        self._under_way: Dict[str, Begun] = {}
        self._lock = threading.Lock()

    @contextmanager
    def kept(self, begun: Begun) -> Iterator[None]:
        """Renew a mark meanwhile; there may be several, of several threads."""
        with self._lock:
            if not self._under_way:
                self.worker.keep_renewed(self._renew, LEASE_S)
            self._under_way[begun.token] = begun
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[begun.token]
                if not self._under_way:
                    self.worker.stop_renewing()

    def _renew(self, store: Store, within_s: float) -> str:
        """In the store's thread. Whether a mark is still ours shows when it is settled."""
        for begun in tuple(self._under_way.values()):
            store.renew_effect(begun, LEASE_S, within_s)
        return "ours"


_sessions: Dict[Tuple[int, str], Session] = {}


def session_of(workspace: Workspace) -> Session:
    """The session of that store in this process; opened at its first call. ConfigError for a URL that is none."""
    key = (os.getpid(), workspace.store)
    if key not in _sessions:
        _sessions[key] = Session(workspace)
    return _sessions[key]


@contextmanager
def opened(job: str, invocation: Invocation) -> Iterator[StoreWorker]:
    """The store of a job, for a use case; it stays open."""
    worker = session_of(open_workspace(invocation, job)).worker
    worker.call(lambda store: store.prepare(10.0), 10.0)
    yield worker


def invocation_for(store: Optional[str], config: Optional[str]) -> Invocation:
    """What a call works with: what it was given, else what the environment and the config file say."""
    return Invocation(store, config, None, False, own_environment())


def text(what: str, value: object) -> str:
    """It, if it is a str. UsageError otherwise: nobody but the caller knows how a number is to be written."""
    if not isinstance(value, str):
        raise UsageError(f"{what}: {value!r}: no str")
    return value


def log(event: Event) -> None:
    """To where a program's own messages go."""
    import logging

    level = {"error": logging.ERROR, "warning": logging.WARNING}.get(event.level, logging.INFO)
    fields = " ".join(f"{name}={value}" for name, value in event.fields.items())
    logging.getLogger("cronguard").log(level, "%s %s: %s", event.name, fields, event.text)


@atexit.register
def _close() -> None:
    for (pid, _), session in _sessions.items():
        if pid == os.getpid():
            session.worker.close(1.0)
