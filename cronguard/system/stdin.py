"""Whether somebody sent data to cronguard's stdin that the command never got.

`pg_dump | cronguard run x -- gzip` with the default `--stdin null` would make an empty backup in silence. Looks only:
not a byte is read. A terminal, /dev/null and an empty closed pipe are never unread data.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
import termios

_STDIN = 0
_LOOK_FOR_S = 1.0


class StdinWatch:
    """Look at fd 0 while a command runs that does not get it."""

    def __init__(self, passed_on: bool) -> None:
        self.unread = False
        self._mode = 0
        if not passed_on:
            try:
                self._mode = os.fstat(_STDIN).st_mode
            except OSError:  # closed
                pass
        self._open = stat.S_ISFIFO(self._mode)

    def look(self) -> None:
        """Look once, at once."""
        if stat.S_ISREG(self._mode):
            self.unread = _bytes_after_offset()
        elif stat.S_ISFIFO(self._mode) or stat.S_ISSOCK(self._mode):
            self.unread = self.unread or _bytes_waiting()
            self._open = self._open and not self.unread and not _writers_gone()

    def wait_s(self, since_start_s: float) -> float:
        """How much longer to look: a program at the other end of an open pipe gets a second to write its first byte."""
        return max(0.0, _LOOK_FOR_S - since_start_s) if self._open else 0.0


def _bytes_after_offset() -> bool:
    try:
        return os.lseek(_STDIN, 0, os.SEEK_CUR) < os.fstat(_STDIN).st_size
    except OSError:
        return False


def _bytes_waiting() -> bool:
    try:
        return int.from_bytes(fcntl.ioctl(_STDIN, termios.FIONREAD, b"\0" * 4), sys.byteorder) > 0
    except OSError:
        return False


def _writers_gone() -> bool:
    waiting = select.poll()
    waiting.register(_STDIN, 0)
    return any(event & select.POLLHUP for _, event in waiting.poll(0))
