"""Signals and news of reservations, handed on to one of several loops that wait: a pipe to wake it, a queue to read.

The main thread gets the signals, the store's thread learns what became of reservations; each handler is supervised in
a thread of its own, which listens here. What is told is never lost, and telling never waits. The pipes live as long as
the process: a store's thread that hung may still want to tell something.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Deque, Generic, List, Optional, Tuple, TypeVar, Union

from cronguard.core.model import Lease
from cronguard.system.signals import SignalNews

T = TypeVar("T")


class Relay(Generic[T]):
    """One listener. Raises OSError when descriptors run out."""

    def __init__(self) -> None:
        self._readable, self._writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._queue: Deque[T] = deque()

    def fileno(self) -> int:
        return self._readable

    def tell(self, what: T) -> None:
        self._queue.append(what)
        try:
            os.write(self._writable, b".")
        except BlockingIOError:
            pass  # a full pipe is readable as it is

    def take(self) -> List[T]:
        try:
            os.read(self._readable, 4096)
        except BlockingIOError:
            pass
        told = []
        while self._queue:
            told.append(self._queue.popleft())
        return told


class RelayedSignals(SignalNews):
    """Signals, for a thread that can get none. Raises OSError when descriptors run out."""

    def __init__(self) -> None:
        self._relay: Relay[int] = Relay()
        self._pending: List[int] = []
        self._first: Optional[int] = None

    def tell(self, signum: int) -> None:
        """From the main thread."""
        self._relay.tell(signum)

    def fileno(self) -> int:
        """As the news'."""
        return self._relay.fileno()

    def take(self) -> List[int]:
        """As the news'."""
        self._collect()
        taken, self._pending = self._pending, []
        return taken

    @property
    def first(self) -> Optional[int]:
        """As the news'."""
        self._collect()
        return self._first

    def _collect(self) -> None:
        fresh = self._relay.take()
        self._pending += fresh
        if self._first is None and fresh:
            self._first = fresh[0]


class RelayedLease(Lease):
    """News of one reservation after the other. Raises OSError when descriptors run out."""

    def __init__(self) -> None:
        self._relay: Relay[Tuple[object, Union[float, str]]] = Relay()
        self._of: object = None

    def expect(self, reservation: object) -> None:
        """From now on only news of that one count."""
        self._of = reservation

    def tell(self, reservation: object, what: Union[float, str]) -> None:
        """From any thread: boot-time seconds at which an acknowledged renewal was sent, or `lost`."""
        self._relay.tell((reservation, what))

    def fileno(self) -> int:
        """As the lease's."""
        return self._relay.fileno()

    def news(self) -> List[Union[float, str]]:
        """As the lease's."""
        return [what for reservation, what in self._relay.take() if reservation == self._of]
