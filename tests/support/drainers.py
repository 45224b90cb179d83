"""Many workers at one queue: `python -m tests.support.drainers URL JOB WORKERS FOLDER`.

All are forked from one process, which has loaded everything; each drains with a handler that only notes the key, in a
file of its own. Says how long that took, from before the fork to the end of the last.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from cronguard.api import items


def main(url: str, job: str, workers: str, folder: str) -> int:
    began = time.perf_counter()
    pids = [_forked(url, job, Path(folder) / str(number)) for number in range(int(workers))]
    failed = sum(os.waitpid(pid, 0)[1] != 0 for pid in pids)
    print(f"{time.perf_counter() - began:.3f}", flush=True)
    return failed


def _forked(url: str, job: str, notes: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with notes.open("ab", buffering=0) as file:
            items.drain(lambda work: file.write(work.key.encode() + b"\n"), job=job, store=url, batch=50)
        code = 0
    finally:
        os._exit(code)


def noted(folder: Path) -> list:
    """The keys that were handled, one for each time."""
    return [key for notes in folder.iterdir() for key in notes.read_text().split()]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
