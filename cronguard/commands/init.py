"""`init`: the store's tables, made or brought up to date by whoever owns them, and the rights of those who do not.

Nobody needs it who may make tables: any run does. It is for a database whose owner is not the role that runs jobs. What
is done and which rights a runner gets is the store's to know (store.installing).
"""

from __future__ import annotations

from typing import NamedTuple, Sequence, Tuple

from cronguard.core.model import Invocation
from cronguard.core.names import shown
from cronguard.errors import UsageError
from cronguard.store.opening import masked
from cronguard.workspace import open_workspace

WITHIN_S = 30.0


class Initialised(NamedTuple):
    """`before`, `after`: versions of the schema, 0 for none. `roles` were given a runner's rights; `short`: others that
    start runs there and lack some of them. `store` shows no secret."""

    store: str
    before: int
    after: int
    roles: Tuple[str, ...]
    short: Tuple[str, ...]


def init(roles: Sequence[str], invocation: Invocation) -> Initialised:
    """Make or upgrade the tables, give the rights. UsageError for a role that does not exist."""
    wanted = _judged(roles)
    workspace = open_workspace(invocation, None)
    worker = workspace.worker()
    try:
        done = worker.call(lambda store: store.install(wanted, WITHIN_S), WITHIN_S)
    finally:
        worker.close(1.0)
    return Initialised(masked(workspace.store), done.before, done.after, wanted, done.short)


def script(roles: Sequence[str], invocation: Invocation) -> Tuple[str, ...]:
    """The same as lines of SQL. Reads how far the store is, and writes nothing."""
    wanted = _judged(roles)
    worker = open_workspace(invocation, None).worker()
    try:
        return tuple(worker.call(lambda store: store.script(wanted, WITHIN_S), WITHIN_S))
    finally:
        worker.close(1.0)


def _judged(roles: Sequence[str]) -> Tuple[str, ...]:
    for role in roles:
        if not role or not role.isprintable():
            raise UsageError(f"--grant: {shown(role)}: not a role's name")
    return tuple(dict.fromkeys(roles))
