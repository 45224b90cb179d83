"""`cronguard checkpoint`: where a job got to. A run that lost its lock, or an older one, can never put it back.

Inside a run of the job its fence goes along. For another job's checkpoints we are outside: so long as a run of that job
is under way nobody else sets them, unless forced.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Callable, ContextManager, Dict, Iterator, List, Mapping, NamedTuple, Optional

from cronguard.core import names
from cronguard.core.checkpoints import (
    Checkpoint,
    CheckpointSet,
    Differs,
    NewerFence,
    RunUnderWay,
    SetAnswer,
    WasSet,
)
from cronguard.core.item_texts import item_key, item_payload
from cronguard.core.ledger import Fence, Fenced, fence_from, job_from
from cronguard.core.model import Invocation
from cronguard.core.names import short_id
from cronguard.core.records import instant_as_json
from cronguard.errors import UsageError
from cronguard.store.worker import StoreWorker
from cronguard.workspace import open_workspace

WITHIN_S = 10.0


class SetRequest(NamedTuple):
    """`job` None: that of the surrounding run. `expected` None: whatever it is now; empty: only if it is not set."""

    job: Optional[str]
    name: str
    value: str
    expected: Optional[str] = None
    force: bool = False


class SetResult(NamedTuple):
    """`refusal`: why it was not set. `notice`: what whoever set it should know."""

    job: str
    answer: SetAnswer
    refusal: Optional[str] = None
    notice: Optional[str] = None


@contextmanager
def opened_once(job: str, invocation: Invocation) -> Iterator[StoreWorker]:
    """The store, for one use case."""
    worker = open_workspace(invocation, job).worker()
    try:
        worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
        yield worker
    finally:
        worker.close(1.0)


# The store of a job.
Opened = Callable[[str, Invocation], ContextManager[StoreWorker]]


def get_checkpoint(
    job: Optional[str], name: str, invocation: Invocation, opened: Opened = opened_once
) -> Optional[Checkpoint]:
    """It, or None if it is not set."""
    wanted = _name(name)
    return next((each for each in list_checkpoints(job, invocation, opened) if each.name == wanted), None)


def list_checkpoints(job: Optional[str], invocation: Invocation, opened: Opened = opened_once) -> List[Checkpoint]:
    """All of a job, in order of name."""
    name = job_from(job, invocation.environ)
    with opened(name, invocation) as worker:
        return worker.call(lambda store: store.checkpoints(name, WITHIN_S), WITHIN_S)


def set_checkpoint(request: SetRequest, invocation: Invocation, opened: Opened = opened_once) -> SetResult:
    """Set it, unless that would undo what a newer run did."""
    environ = invocation.environ
    job, fence = job_from(request.job, environ), _fence_for(request.job, environ)
    value, expected = _value("VALUE", request.value), request.expected
    if expected is not None:
        expected = _value("--expect", expected)
    wish = CheckpointSet(job, _name(request.name), value, fence, expected, request.force)
    with opened(job, invocation) as worker:
        answer = worker.call(lambda store: store.set_checkpoint(wish, WITHIN_S), WITHIN_S)
    if isinstance(answer, WasSet):
        return SetResult(job, answer, notice=_notice(wish, answer))
    return SetResult(job, answer, refusal=f"checkpoint {wish.name}: left as it was: {_why_not(answer)}")


def clear_checkpoint(job: Optional[str], name: str, invocation: Invocation, opened: Opened = opened_once) -> bool:
    """Forget it; False: it was not set."""
    of, wanted = job_from(job, invocation.environ), _name(name)
    with opened(of, invocation) as worker:
        return worker.call(lambda store: store.clear_checkpoint(of, wanted, WITHIN_S), WITHIN_S)


def as_json(checkpoint: Checkpoint) -> Dict[str, object]:
    """A checkpoint in JSON; keys are only ever added."""
    return {
        "name": checkpoint.name,
        "value": checkpoint.value,
        "run_id": checkpoint.run_id,
        "fence": checkpoint.fence,
        "set_at": instant_as_json(checkpoint.set_at_utc),
    }


def _fence_for(given: Optional[str], environ: Mapping[str, str]) -> Optional[Fence]:
    return fence_from(environ) if given in (None, environ.get("CRONGUARD_JOB")) else None


def _name(text: str) -> str:
    try:
        return item_key(text)
    except ValueError as error:
        raise UsageError(f"NAME: {names.shown(text)}: {error}") from None


def _value(what: str, text: str) -> str:
    try:
        return item_payload(text)
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None


def _why_not(answer: SetAnswer) -> str:
    if isinstance(answer, Fenced):
        return f"run {short_id(answer.run_id)} no longer holds the lock of its job; it must not do anything more"
    if isinstance(answer, NewerFence):
        newer = answer.present
        by = f"run {short_id(newer.run_id)}" if newer.run_id else "a run"
        return f"{by}, which is newer than this one, has set it since"
    if isinstance(answer, RunUnderWay):
        return f"run {short_id(answer.run_id)} of the job is under way; wait for its end, or use --force"
    assert isinstance(answer, Differs)
    if answer.present is None:
        return "--expect: it is not set"
    return f"--expect: it is {names.shown(answer.present.value)}{_setter(answer.present)}"


def _notice(wish: CheckpointSet, answer: WasSet) -> Optional[str]:
    before = answer.before
    if wish.fence is not None or before is None or before.run_id is None or before.value == wish.value:
        return None
    return f"checkpoint {wish.name}: was {names.shown(before.value)}{_setter(before)}"


def _setter(checkpoint: Checkpoint) -> str:
    at = instant_as_json(checkpoint.set_at_utc)
    return f", set {at} by run {short_id(checkpoint.run_id)}" if checkpoint.run_id else f", set {at} outside of any run"
