"""The signals that end a run, as something to read instead of something that interrupts.

Handlers do nothing: the interpreter writes each signal's number to a pipe, and the loop that waits reads it there. No
signal is lost between two looks, none arrives in the middle of a statement.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Dict, List, Optional

_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class SignalNews:
    """What a loop that supervises wants of signals, from wherever they come."""

    def fileno(self) -> int:
        """Readable when `take` has something."""
        raise NotImplementedError

    def take(self) -> List[int]:
        """The signals received since the last take, in order."""
        raise NotImplementedError

    @property
    def first(self) -> Optional[int]:
        """The first signal ever, taken or not."""
        raise NotImplementedError


class Signals(SignalNews):
    """TERM, INT, HUP and QUIT to this process.

    TERM, INT and QUIT are taken even when whoever started us ignored them: a job that nothing can stop is worse
    (FR-26). HUP that was ignored stays ignored: that is what nohup(1) asks for, and the command has a session of its
    own, which no terminal hangs up. The command itself starts with default dispositions in any case.
    """

    def __init__(self) -> None:
        self._read = self._write = -1
        self._old_wakeup = -1
        self._old: Dict[int, Any] = {}
        self._pending: List[int] = []
        self._first: Optional[int] = None

    def install(self) -> None:
        """Take over, in the main thread. SIGCHLD gets its default back: ignored, no child's status would be told."""
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._old_wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for signum in _STOPPING:
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                self._old[signum] = signal.signal(signum, _only_wake)
        self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_STOPPING, signal.SIGCHLD))

    def fileno(self) -> int:
        """As the news'."""
        return self._read

    def take(self) -> List[int]:
        """As the news'."""
        self._collect()
        taken, self._pending = self._pending, []
        return taken

    @property
    def first(self) -> Optional[int]:
        """The first signal received since `install`, taken or not."""
        self._collect()
        return self._first

    def restore(self) -> None:
        """Put everything back as `install` found it."""
        self._collect()
        for signum, handler in self._old.items():
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)
        self._old.clear()
        if self._read >= 0:
            signal.set_wakeup_fd(self._old_wakeup)
            os.close(self._read)
            os.close(self._write)
            self._read = self._write = -1

    def _collect(self) -> None:
        if self._read < 0:
            return
        try:
            numbers = os.read(self._read, 4096)
        except BlockingIOError:
            return
        fresh = [number for number in numbers if number in _STOPPING]
        self._pending += fresh
        if self._first is None and fresh:
            self._first = fresh[0]


def _only_wake(signum: int, frame: Any) -> None:
    """The wake-up descriptor tells; only signals with a handler are written to it."""
