"""Deadlines and pauses between tries, for everything in the store that may have to be repeated.

Monotonic clock only. Never sleeps beyond the deadline, and never in step with other processes: jobs all start at :00.
"""

from __future__ import annotations

import os
import time

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0


class Deadline:
    """An instant on the monotonic clock that a call must not pass."""

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        self._end = time.monotonic() + within_s

    @property
    def left_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())

    @property
    def over(self) -> bool:
        return self.left_s <= 0


class Pauses:
    """Growing pauses with jitter (half to full length), cut at the deadline."""

    def __init__(self, deadline: Deadline, longest_s: float = LONGEST_PAUSE_S) -> None:
        self._deadline = deadline
        self._longest_s = longest_s
        self._next_s = FIRST_PAUSE_S

    def take(self) -> bool:
        """Sleep once; False, without sleeping, when the time is up."""
        if self._deadline.over:
            return False
        # os.urandom and not `random`: importing that loads hashlib and OpenSSL on the path of every run.
        length_s = self._next_s * (0.5 + os.urandom(1)[0] / 510)
        time.sleep(min(length_s, self._deadline.left_s))
        self._next_s = min(self._longest_s, self._next_s * 2)
        return True


def boot_time_s() -> float:
    """Seconds since boot, suspend included (clock_gettime(2), CLOCK_BOOTTIME): what a lease's deadline counts on."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
