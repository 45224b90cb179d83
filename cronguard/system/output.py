"""The command's output on its way to ours: bytes in, the same bytes out at once, the last of them kept.

Memory is bounded whatever comes; nothing is decoded, split into lines or held back. When our own stdout is gone the
command is still drained, so that it neither blocks nor dies for it. Stdout and stderr are never mixed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import sys
import termios
import threading
from collections import deque
from typing import Callable, Deque, List, Optional, Tuple, Union

from cronguard.system.clock import boot_s

_CHUNK_BYTES = 1 << 16
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031  # in fcntl from Python 3.10 on
_SMALL_BYTES = 1 << 12
_LINGER_S = 2.0
_STALLED_S = 30.0
_LOOK_S = 0.1


class Tail:
    """The last `limit` bytes of both streams in order of arrival, and how many came before them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: Deque[Union[bytes, bytearray]] = deque()
        self._kept = 0
        self._all = 0
        self._lock = threading.Lock()

    def add(self, chunk: bytes) -> None:
        """Take it in; bytes that no longer fit at the other end are forgotten."""
        with self._lock:
            self._all += len(chunk)
            self._kept += len(chunk)
            last = self._pieces[-1] if self._pieces else b""
            if isinstance(last, bytearray) and len(last) < _SMALL_BYTES:
                last += chunk  # a program that writes byte by byte must not cost an object each
            else:
                self._pieces.append(bytearray(chunk) if len(chunk) < _SMALL_BYTES else chunk)
            while self._pieces and self._kept - len(self._pieces[0]) >= self._limit:
                self._kept -= len(self._pieces.popleft())

    def snapshot(self) -> Tuple[bytes, int]:
        """The bytes kept and the number of those cut."""
        with self._lock:
            kept = b"".join(self._pieces)[-self._limit :] if self._limit else b""
            return kept, self._all - len(kept)


def tail_text(tail: bytes, cut: int) -> str:
    """Valid text for rows, JSON and pings: begins on a character, no NUL, U+FFFD for what is not UTF-8."""
    if cut:
        # At most three bytes of a character whose first one was cut.
        start = 0
        while start < min(3, len(tail)) and tail[start] & 0xC0 == 0x80:
            start += 1
        tail = tail[start:]
    return tail.decode("utf-8", "replace").replace("\0", "")


class Pump:
    """Carries one stream, in a thread of its own. `sink` None: kept for the tail only."""

    def __init__(self, source: int, sink: Optional[int], tail: Tail) -> None:
        self.error: Optional[str] = None  # why bytes could not be written; a reader that left is no error
        self.done = threading.Event()
        self.passed = 0  # bytes written, or discarded for good
        self._taken = 0
        self._source = source
        self._sink = sink
        self._tail = tail
        self._closing = threading.Lock()
        threading.Thread(target=self._run, name=f"output-{source}", daemon=True).start()

    def owed(self) -> int:
        """What `passed` will be when everything that was written up to now is through."""
        with self._closing:
            return self._taken if self.done.is_set() else self._taken + _waiting_bytes(self._source)

    def abandon(self) -> None:
        """Write no more; what still comes is drained and forgotten, so that a daemon does not block on it."""
        self._sink = None

    def _run(self) -> None:
        while True:
            chunk = os.read(self._source, _CHUNK_BYTES)
            if not chunk:
                break
            self._taken += len(chunk)
            self._tail.add(chunk)
            self._write(chunk)
        with self._closing:
            self.done.set()
            os.close(self._source)

    def _write(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            sink = self._sink
            if sink is None:
                self.passed += len(rest)
                return
            try:
                count = os.write(sink, rest)
            except BlockingIOError:  # a stdout that somebody made non-blocking
                _wait_for_room(sink)
            except OSError as error:
                self._sink = None
                if error.errno != errno.EPIPE:
                    self.error = os.strerror(error.errno or 0).lower()
            else:
                self.passed += count
                rest = rest[count:]


class Streams:
    """Where a command's stdout and stderr go: through pumps to ours, or straight there.

    Raises OSError or RuntimeError when descriptors or threads run out; nothing is left open then."""

    def __init__(self, capture: bool, echo: bool, tail_bytes: int) -> None:
        self.ends = [1, 2]  # the command's, in order
        self._tail = Tail(tail_bytes)
        self._pumps: List[Pump] = []
        self._capture = capture
        if capture:
            self._open(echo)

    def handed_over(self) -> None:
        """The command has its ends: close ours, or the end of its output would never be seen."""
        if self._capture:
            for fd in self.ends:
                os.close(fd)
            self.ends = []

    def drain(self, patient: bool, hurry: Callable[[], bool]) -> None:
        """Wait for the end of both streams, two seconds at most: a daemon may hold the pipe.

        `patient`: longer, as long as our stdout takes what the command itself wrote, with pauses of up to thirty
        seconds. `hurry` true ends all waiting."""
        owed = {pump: pump.owed() if patient else 0 for pump in self._pumps}
        linger_until = boot_s() + _LINGER_S
        moved = {pump: (pump.passed, boot_s()) for pump in self._pumps}
        waiting = list(self._pumps)
        while waiting and not hurry():
            waiting[0].done.wait(_LOOK_S)
            now = boot_s()
            moved = {pump: mark if mark[0] == pump.passed else (pump.passed, now) for pump, mark in moved.items()}
            waiting = [
                pump
                for pump in waiting
                if not pump.done.is_set()
                and (now < linger_until or (pump.passed < owed[pump] and now < moved[pump][1] + _STALLED_S))
            ]
        for pump in self._pumps:
            if not pump.done.is_set():
                pump.abandon()

    def tail(self) -> Tuple[bytes, int]:
        """The last bytes and the number of those before them."""
        return self._tail.snapshot()

    def note(self, text: str) -> None:
        """Put words of our own where whoever looks for a reason will look."""
        self._tail.add(text.encode())

    def error(self) -> Optional[str]:
        """Why output was lost on its way to ours, None when nothing was."""
        texts = [f"{name}: {pump.error}" for name, pump in zip(("stdout", "stderr"), self._pumps) if pump.error]
        return "; ".join(texts) or None

    def _open(self, echo: bool) -> None:
        opened: List[int] = []
        try:
            for _ in range(2):
                opened += os.pipe()
        except OSError:
            for fd in opened:
                os.close(fd)
            raise
        self.ends = opened[1::2]
        for source, sink in zip(opened[0::2], (1, 2)):
            _widen(source)
            self._pumps.append(Pump(source, sink if echo else None, self._tail))


def _widen(pipe: int) -> None:
    """A command that writes in bursts waits less; a user at `pipe-user-pages-soft` keeps the 64 KiB."""
    try:
        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        pass


def _waiting_bytes(pipe: int) -> int:
    try:
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4), sys.byteorder)
    except OSError:
        return 0


def _wait_for_room(sink: int) -> None:
    waiting = select.poll()
    waiting.register(sink, select.POLLOUT)
    waiting.poll(1000)
