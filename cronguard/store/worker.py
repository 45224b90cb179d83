"""The one thread that owns the store connection, so that nobody else ever waits for a database without a deadline.

Name resolution and a driver's `connect` know no deadline of ours; here they happen behind one. The main loop hands over
a function and waits at most so long. When the thread does not come back it is given up (it is a daemon and may hang for
as long as it likes) and, if the worker knows how to open the store anew, the next call gets a fresh thread and a fresh
connection: everything in a store is keyed by run id and fence, so nothing is lost by changing horses. Waits are
conditions and polls, which go on at once after SIGCONT; select(2) would sleep on.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Callable, Deque, Generic, List, Optional, TypeVar, Union

from cronguard.core.model import Lease
from cronguard.errors import StoreDown, StoreError
from cronguard.store.contract import Store
from cronguard.store.waiting import Deadline, boot_time_s

T = TypeVar("T")

# Renews a claim or reservation within so many seconds: `ours`, `lost` or `cancelled`.
Renew = Callable[[Store, float], str]

# What a call may take over its time, for a store that keeps its own deadline to the last moment.
MARGIN_S = 0.25
# Renewals in a lease's time: two may fail in a row and the third is still before TERM at half the lease.
RENEWALS = 6
# One try at most: a finish may be waiting behind it.
RENEWAL_S = 5.0
# After a renewal that was not acknowledged; far below a sixth of the shortest lease.
FIRST_RETRY_S = 0.25
LONGEST_RETRY_S = 2.0


class StoreWorker:
    """Runs functions of a store in its own thread. `reopen` makes another store when that thread was given up."""

    def __init__(self, store: Store, reopen: Optional[Callable[[], Store]] = None) -> None:
        self.name = store.name
        self.leased = store.leased
        self.warnings = tuple(store.warnings)
        self._reopen = reopen
        self._hand: Optional[_Hand] = _Hand(store)
        self._renewal: Optional[_Renewal] = None

    def call(self, function: Callable[[Store], T], within_s: float) -> T:
        """What `function` returns or raises; StoreDown when that takes longer than `within_s` and a small margin."""
        hand = self._present_hand()
        job = _Job(function)
        hand.add(job)
        if job.done.wait(within_s + MARGIN_S):
            return job.result()
        hand.give_up()
        self._hand = None
        raise StoreDown(f"store: {self.name}: no answer within {within_s:.0f} s")

    def keep_renewed(self, renew: Renew, lease_s: float) -> Lease:
        """Renew from now on, every sixth of the lease; the answer tells when renewals were acknowledged or refused.

        Raises StoreError when descriptors run out."""
        self.stop_renewing()
        try:
            self._renewal = _Renewal(renew, lease_s)
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise StoreError(f"store: {self.name}: a pipe for renewals: {why}", "raise `ulimit -n`") from error
        self._present_hand().renew(self._renewal)
        return self._renewal.lease

    def stop_renewing(self) -> None:
        """No renewal begins after this; one that is under way may still be acknowledged by the store."""
        if self._renewal is not None:
            self._renewal.stopped = True
            self._renewal = None

    def close(self, within_s: float) -> None:
        """Close the store, or leave it to the end of the process if that takes too long. Never raises."""
        self.stop_renewing()
        hand, self._hand, self._reopen = self._hand, None, None
        if hand is not None:
            hand.finish(within_s)

    def _present_hand(self) -> _Hand:
        if self._hand is None:
            if self._reopen is None:
                raise StoreDown(f"store: {self.name}: it stopped answering")
            self._hand = _Hand(self._reopen())
            if self._renewal is not None:
                self._hand.renew(self._renewal)
        return self._hand


class _Job(Generic[T]):
    """A function under way in the thread."""

    def __init__(self, function: Callable[[Store], T]) -> None:
        self.done = threading.Event()
        self._function = function
        self._value: List[T] = []
        self._error: Optional[BaseException] = None

    def run(self, store: Store) -> None:
        try:
            self._value.append(self._function(store))
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that asked
            self._error = error
        self.done.set()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value[0]


class _News(Lease):
    """A pipe of which one end is the thread's; at most one byte waits in it, the news themselves in a queue."""

    def __init__(self, readable: int, writable: int) -> None:
        self._readable, self._writable = readable, writable
        os.set_blocking(self._readable, False)
        os.set_blocking(self._writable, False)
        self._queue: Deque[Union[float, str]] = deque()

    def fileno(self) -> int:
        return self._readable

    def news(self) -> List[Union[float, str]]:
        try:
            os.read(self._readable, 4096)
        except BlockingIOError:
            pass
        told = []
        while self._queue:
            told.append(self._queue.popleft())
        return told

    def tell(self, *news: Union[float, str]) -> None:
        self._queue.extend(news)
        try:
            os.write(self._writable, b".")
        except BlockingIOError:
            pass  # a full pipe is readable as it is

    def __del__(self) -> None:
        os.close(self._readable)
        os.close(self._writable)


class _Renewal:
    """What is to be renewed, and when next."""

    def __init__(self, renew: Renew, lease_s: float) -> None:
        self.lease = _News(*os.pipe())  # close-on-exec (PEP 446)
        self.stopped = False
        self._cancelled = False
        self._renew = renew
        self._lease_s = lease_s
        self._retry_s = FIRST_RETRY_S
        self._due = Deadline(lease_s / RENEWALS)

    @property
    def due_in_s(self) -> float:
        return self._due.left_s

    def run(self, store: Store) -> None:
        """One try. A renewal that was not acknowledged did not happen, whatever the reason was."""
        sent_at = boot_time_s()
        try:
            answer = self._renew(store, min(RENEWAL_S, self._lease_s / RENEWALS / 2))
        except Exception:  # noqa: BLE001  # whatever it was, it is no acknowledgement: the lease's deadline counts on
            self._due = Deadline(self._retry_s)
            self._retry_s = min(LONGEST_RETRY_S, self._retry_s * 2)
            return
        self._retry_s = FIRST_RETRY_S
        self._due = Deadline(self._lease_s / RENEWALS)
        if self.stopped:
            return
        if answer == "lost":
            self.stopped = True
            self.lease.tell("lost")
        elif answer == "cancelled" and not self._cancelled:
            self._cancelled = True  # said once; the claim is kept until the run has ended
            self.lease.tell(sent_at, "cancelled")
        else:
            self.lease.tell(sent_at)


class _Hand:
    """A thread, its store, and what it has been asked to do. The thread starts with the first job."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._jobs: Deque[_Job[object]] = deque()
        self._renewal: Optional[_Renewal] = None
        self._awake = threading.Condition()
        self._ended = False
        self._thread: Optional[threading.Thread] = None

    def add(self, job: _Job[T]) -> None:
        with self._awake:
            self._jobs.append(job)  # type: ignore[arg-type]  # nobody here looks at the result
            self._start()

    def renew(self, renewal: _Renewal) -> None:
        with self._awake:
            self._renewal = renewal
            self._start()

    def give_up(self) -> None:
        """Let the thread end after what it is at; it takes on nothing more."""
        with self._awake:
            self._ended = True
            self._jobs.clear()
            self._renewal = None
            self._awake.notify()

    def finish(self, within_s: float) -> None:
        self.give_up()
        if self._thread is not None:
            self._thread.join(within_s)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="cronguard-store", daemon=True)
            self._thread.start()
        self._awake.notify()

    def _serve(self) -> None:
        while True:
            task = self._next()
            if task is None:
                break
            task(self._store)
        self._store.close()

    def _next(self) -> Optional[Callable[[Store], None]]:
        """The next thing to do, jobs before renewals that are not due; None: the end."""
        with self._awake:
            while not self._ended:
                renewal = self._renewal if self._renewal is not None and not self._renewal.stopped else None
                if renewal is not None and renewal.due_in_s <= 0:
                    return renewal.run
                if self._jobs:
                    return self._jobs.popleft().run
                self._awake.wait(None if renewal is None else renewal.due_in_s)
            return None
