"""Handlers as processes: one thread and one keeper for each that may run at the same time.

The keepers were forked before there was any thread. The main thread keeps the signals and hands them on, the store's
thread tells what became of reservations; each handler is supervised as a run's command is, and has ended, by its
keeper if by nobody else, before its reservation can.
"""

from __future__ import annotations

import select
import threading
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.item_settings import ItemsSpec
from cronguard.core.item_texts import filled, item_environment
from cronguard.core.masking import mask_known, mask_text
from cronguard.core.model import Exit
from cronguard.core.outcome import judge
from cronguard.core.queue import Reserved
from cronguard.errors import CronguardError
from cronguard.pipeline.draining import Handed, Handled, Pass
from cronguard.system.keeper import Keeper
from cronguard.system.launch import NOT_FOUND
from cronguard.system.output import tail_text
from cronguard.system.relay import Relay, RelayedLease, RelayedSignals
from cronguard.system.signals import Signals
from cronguard.system.supervisor import Command, KeptLease, Limits, supervise

_TAIL_BYTES = 1 << 12
_LONGEST_LINE = 300


class Handlers(NamedTuple):
    """What they have in common. `secrets`: texts that must not get into a message."""

    spec: ItemsSpec
    environ: Mapping[str, str]
    secrets: Tuple[str, ...]


def drain(pass_: Pass, handlers: Handlers, keepers: Sequence[Keeper], signals: Signals) -> None:
    """Until the pass has nothing more to hand out. Raises CronguardError when descriptors or threads run out."""
    try:
        endings: Relay[int] = Relay()
        runners = [_Runner(pass_, handlers, keeper, endings) for keeper in keepers]
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CronguardError(f"handlers: pipes for them: {why}", "raise `ulimit -n`") from error
    running = _start(pass_, runners)
    while running:
        _wait(signals, endings)
        for signum in signals.take():
            pass_.stop("signal")
            for runner in runners:
                runner.signals.tell(signum)
        running -= len(endings.take())
    for runner in runners:
        if runner.bug is not None:
            raise runner.bug


def _start(pass_: Pass, runners: Sequence[_Runner]) -> int:
    """How many of them run."""
    for number, runner in enumerate(runners):
        try:
            runner.start()
        except RuntimeError as error:
            pass_.stop("fault", CronguardError(f"handlers: threads for them: {error}", "raise `ulimit -u`"))
            return number
    return len(runners)


def _wait(*sources: Any) -> None:
    waiting = select.poll()
    for source in sources:
        waiting.register(source, select.POLLIN)
    waiting.poll(1000)


class _Runner(threading.Thread):
    """Handles one item after the other. `bug`: what ended it unforeseen, for the main thread to raise."""

    def __init__(self, pass_: Pass, handlers: Handlers, keeper: Keeper, endings: Relay[int]) -> None:
        super().__init__(name=f"cronguard-handler-{keeper.pid}", daemon=True)
        self.signals = RelayedSignals()
        self.bug: Optional[BaseException] = None
        self._pass = pass_
        self._handlers = handlers
        self._keeper = keeper
        self._endings = endings
        self._lease = RelayedLease()

    def run(self) -> None:
        try:
            handed = self._pass.next(None, self._lease.tell)
            while handed is not None:
                handed = self._pass.next(self._ending_of(handed), self._lease.tell)
        except BaseException as error:  # noqa: BLE001  # raised again in the main thread
            self.bug = error
            self._pass.stop("fault")
        finally:
            self._endings.tell(self._keeper.pid)

    def _ending_of(self, handed: Handed) -> Handled:
        spec, item = self._handlers.spec, handed.item
        self._lease.expect(item)
        lease = KeptLease(self._lease, handed.sent_at)
        limits = Limits(spec.timeout_s, spec.grace_s, "leave")
        try:
            exit_ = supervise(
                self._keeper, self._command(item), limits, self.signals, lease, spec.reserve_s, handed.sent_at,
                lambda _pid: None,
            )  # fmt: skip
        except CronguardError as error:
            self._pass.stop("fault", error)
            return Handled(item, "interrupted", "", 0.0)
        return self._judged(item, exit_, lease.sent_at + spec.reserve_s)

    def _command(self, item: Reserved) -> Command:
        handlers = self._handlers
        return Command(
            argv=filled(handlers.spec.command, item),
            env={**handlers.environ, **item_environment(handlers.spec.job, item)},
            directory=None,
            stdin="null",
            capture=True,
            echo=True,
            tail_bytes=_TAIL_BYTES,
            results_path=None,
        )

    def _judged(self, item: Reserved, exit_: Exit, settle_until: float) -> Handled:
        outcome = judge(exit_, self._handlers.spec.timeout_s)
        last_line = _last_line(tail_text(mask_known(exit_.tail, self._handlers.secrets), exit_.cut_bytes))
        message = f"{outcome.message}: {last_line}" if outcome.message and last_line else outcome.message
        if outcome.status == "success":
            return Handled(item, "done", "", settle_until)
        if exit_.stopped_by == "keeper_lost" or exit_.start_code == NOT_FOUND:  # it would be so for all others too
            self._pass.stop("fault", CronguardError(f"handler: {outcome.message}"))
            return Handled(item, "interrupted", message, 0.0)
        if outcome.status == "aborted":
            return Handled(item, "interrupted", message, 0.0)
        return Handled(item, "failed", message, settle_until)


def _last_line(tail: str) -> str:
    """The last words of a handler, for whoever asks why."""
    line = next((line.strip() for line in reversed(tail.split("\n")) if line.strip()), "")
    return mask_text(line[:_LONGEST_LINE])
