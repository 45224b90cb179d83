"""Looks that may hang (a dead NFS mount, a name server, systemctl), each in a thread of its own, waited for so long.

A thread that does not come back is left: it is a daemon, and whoever asks here leaves by os._exit. Nothing is changed
in such a thread, so that none can do harm late.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Generic, List, Optional, TypeVar

T = TypeVar("T")


class Errand(Generic[T]):
    """Starts at once; `result` may be asked for once others are under way."""

    def __init__(self, look: Callable[[], T], within_s: float) -> None:
        self._look = look
        self._end = time.monotonic() + within_s
        self._found: List[T] = []
        self._error: Optional[BaseException] = None
        self._done = threading.Event()
        threading.Thread(target=self._run, name="cronguard-errand", daemon=True).start()

    def result(self) -> Optional[T]:
        """What was found, or what was raised; None when the time was over."""
        if not self._done.wait(max(0.0, self._end - time.monotonic())):
            return None
        if self._error is not None:
            raise self._error
        return self._found[0]

    def _run(self) -> None:
        try:
            self._found.append(self._look())
        except BaseException as error:  # noqa: BLE001  # raised again where the result is asked for
            self._error = error
        self._done.set()
