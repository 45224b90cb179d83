"""`from cronguard import checkpoint`: where a job got to, kept so that no older run can put it back.

    since = checkpoint.get("cursor", default="0")
    ...
    checkpoint.set("cursor", "418")

The same rules as `cronguard checkpoint`. The job is that of the surrounding run, or named: `job="sync"`.
"""

from __future__ import annotations

from typing import Dict, Optional, overload

from cronguard.api.session import invocation_for, log, opened, text
from cronguard.commands import checkpoint as checkpoints
from cronguard.core.checkpoints import NewerFence
from cronguard.core.ledger import Fenced
from cronguard.core.model import Event
from cronguard.errors import Refused, RunLost

__all__ = ["clear", "get", "list", "set"]


@overload
def get(
    name: str, default: str, *, job: Optional[str] = ..., store: Optional[str] = ..., config: Optional[str] = ...
) -> str: ...


@overload
def get(
    name: str, default: None = ..., *, job: Optional[str] = ..., store: Optional[str] = ..., config: Optional[str] = ...
) -> Optional[str]: ...


def get(
    name: str,
    default: Optional[str] = None,
    *,
    job: Optional[str] = None,
    store: Optional[str] = None,
    config: Optional[str] = None,
) -> Optional[str]:
    """Its value; `default` when it is not set. CronguardError when the store cannot say."""
    found = checkpoints.get_checkpoint(job, text("name", name), invocation_for(store, config), opened)
    return default if found is None else found.value


def set(
    name: str,
    value: str,
    *,
    expect: Optional[str] = None,
    force: bool = False,
    job: Optional[str] = None,
    store: Optional[str] = None,
    config: Optional[str] = None,
) -> None:
    """Set it. `expect`: only if that is its present value; empty: only if it is not set.

    RunLost: our run has lost its lock, or a newer one has set it. Refused: it is not what was expected, or a run of the
    job is under way and we are not part of it (unless `force`). Then nothing has changed."""
    expected = None if expect is None else text("expect", expect)
    request = checkpoints.SetRequest(job, text("name", name), text("value", value), expected, force)
    result = checkpoints.set_checkpoint(request, invocation_for(store, config), opened)
    if result.refusal is not None:
        raise (RunLost if isinstance(result.answer, (Fenced, NewerFence)) else Refused)(result.refusal)
    if result.notice is not None:
        log(Event("overwritten", "warning", {"job": result.job}, result.notice))


def list(*, job: Optional[str] = None, store: Optional[str] = None, config: Optional[str] = None) -> Dict[str, str]:
    """All of the job: name to value."""
    found = checkpoints.list_checkpoints(job, invocation_for(store, config), opened)
    return {each.name: each.value for each in found}


def clear(
    name: str, *, job: Optional[str] = None, store: Optional[str] = None, config: Optional[str] = None
) -> bool:
    """Forget it; False: it was not set."""
    return checkpoints.clear_checkpoint(job, text("name", name), invocation_for(store, config), opened)
