"""The values of a passage: where it is about, what it works with, what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Callable, Mapping, NamedTuple, Optional, Tuple

from cronguard.core.model import JobFacts, JobSpec, Judge, Owner, Say, Slot
from cronguard.store.flock import HostLock
from cronguard.store.spool import Spool
from cronguard.store.worker import StoreWorker
from cronguard.system.clock import boot_s
from cronguard.system.keeper import Keeper
from cronguard.system.signals import Signals


class Place(NamedTuple):
    """Which unit of work a passage is about, fixed before anything is claimed."""

    slot: Optional[Slot]
    run_key: Optional[str]  # None: `--key none`, every run is its own
    at_utc: datetime
    late_from_utc: Optional[datetime]  # what `--max-late` counts from: the invocation's own slot, whichever it takes

    def late_s(self, now_utc: datetime) -> Optional[float]:
        """How late a start would be; None: it can never be too late."""
        return None if self.late_from_utc is None else (now_utc - self.late_from_utc).total_seconds()


class Surroundings(NamedTuple):
    """What a passage works with. Made once an invocation, shared by all its slots."""

    spec: JobSpec
    facts: JobFacts
    zone: str
    tzdata: str
    owner: Owner
    user: str
    version: str
    argv: Tuple[str, ...]
    masked_argv: Tuple[str, ...]
    directory: str
    environ: Mapping[str, str]
    state_dir: str
    trigger: str
    force: bool
    store: StoreWorker
    host_lock: Optional[HostLock]  # for `--on-store-error run`: what runs without the store must still be alone here
    spool: Spool
    keeper: Keeper
    signals: Signals
    judge: Judge
    ping_url: Optional[str]
    secrets: Tuple[str, ...]  # the command may know them, and print them; they go into no row and no ping
    say: Say
    now: Callable[[], datetime]
    on_started: Optional[Callable[[], None]] = None  # whenever a command was started; must not block


class Passage(NamedTuple):
    """What became of a slot. `tail` is for `--quiet`, which shows output only after a failure."""

    leave_with: int
    status: str
    reason: Optional[str]
    tail: bytes = b""


class Budget:
    """Seconds that a phase may still take, on the boot-time clock."""

    def __init__(self, seconds: float) -> None:
        self._end = boot_s() + seconds

    def left(self) -> float:
        """Never negative; 0 when it is spent."""
        return max(0.0, self._end - boot_s())
