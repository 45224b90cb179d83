"""One test at a time for those that take the whole machine, although several workers run (pytest-xdist).

Two hundred processes at once starve everybody else's short timeouts. A test marked `herd` waits until the tests under
way are through and lets none begin before it is; two flocks, the first a turnstile so that it cannot be overtaken.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator


@contextmanager
def a_turn(alone: bool) -> Iterator[None]:
    """Hold a place among the tests that run, or the only one."""
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    # Two empty files that stay, as lock files must: for all workers, and for all runs of this user.
    places = Path(tempfile.gettempdir()) / f"cronguard-tests-{os.getuid()}"
    with open(f"{places}.turnstile", "ab") as turnstile, open(f"{places}.lock", "ab") as lock:
        fcntl.flock(turnstile, kind)
        fcntl.flock(lock, kind)
        if not alone:
            fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield
