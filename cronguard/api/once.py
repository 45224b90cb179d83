"""`from cronguard import once`: one effect, once, in a Python program.

The same ledger, rules and settings as `cronguard once`. What is between mark and settlement is the caller's: nobody can
stop it from outside, so a block should be no longer than what it does.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, Optional, Union

from cronguard.api.session import invocation_for, log, session_of, text
from cronguard.core import exitcodes
from cronguard.core.effect_settings import check_options, resolve_effect
from cronguard.core.effect_texts import effect_of, idempotency_of
from cronguard.core.ledger import Begun, Effect, fence_from, job_from
from cronguard.core.masking import mask_text
from cronguard.core.model import Event
from cronguard.errors import Refused, RunLost
from cronguard.pipeline.effect import Left, Scene, begin, settle
from cronguard.workspace import open_workspace

_LONGEST_MESSAGE = 300


class Once:
    """True: it is to be done now. Otherwise `state` says why not: done, failed, under_way or unknown.

    `attempt`: 1 the first time. `idempotency_key`: for a service that takes one, the same each time it is tried."""

    def __init__(self, effect: Effect, answer: Union[Begun, Left]) -> None:
        self.key = effect.key
        self.idempotency_key = idempotency_of(effect)
        self.state = "begun" if isinstance(answer, Begun) else answer.state
        self.attempt = answer.attempts if isinstance(answer, Begun) else 0

    def __bool__(self) -> bool:
        return self.state == "begun"


@contextmanager
def once(
    key: str,
    *,
    effect: Optional[str] = None,
    on_unknown: Optional[str] = None,
    per_slot: bool = False,
    job: Optional[str] = None,
    store: Optional[str] = None,
    config: Optional[str] = None,
) -> Iterator[Once]:
    """Mark it, let the block do it, and record what became of it.

        with once("mail:4711") as begun:
            if begun:
                send(4711)

    The block is entered in any case; `begun` is false when there is nothing to do. An exception out of it makes the
    mark `failed` and goes on its way: at most once, that is the end of it; at least once, it is tried again next time.
    `effect`, `on_unknown`, `per_slot` and `job` are the options of `cronguard once`.

    Refused: at least once, and somebody is at it, or nobody knows whether it happened. RunLost: our run has lost its
    lock. StoreError: the store is down. ConfigError, UsageError: what was asked for makes no sense. Then the block is
    not entered, and nothing was begun.
    """
    given = {"effect": effect, "on_unknown": on_unknown, "job": job}
    options = {name: value for name, value in given.items() if value is not None}
    invocation = invocation_for(store, config)
    check_options(options)
    of = effect_of(job_from(job, invocation.environ), text("key", key), per_slot, invocation.environ)
    workspace = open_workspace(invocation, of.job)
    session = session_of(workspace)
    spec = resolve_effect(of.job, options, workspace.document, workspace.file_name)
    fence = fence_from(invocation.environ)
    scene = Scene(of, spec, session.owner, fence, session.worker, workspace.state_dir, session.judge, _hear)
    answer = begin(scene)
    if isinstance(answer, Left):
        if answer.leave_with != exitcodes.DONE:
            raise (RunLost if answer.state == "fenced" else Refused)(f"once: {key}: not begun: {answer.why}")
        yield Once(of, answer)
        return
    try:
        with session.kept(answer):
            yield Once(of, answer)
    except BaseException as error:
        message = mask_text(f"{type(error).__name__}: {error}")[:_LONGEST_MESSAGE]
        settle(scene, answer, "failed", message)
        raise
    settle(scene, answer, "done", "")


def _hear(event: Event) -> None:
    """A refusal is raised, and need not be said as well."""
    if event.name != "refused":
        log(event)
