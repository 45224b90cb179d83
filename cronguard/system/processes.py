"""What /proc tells about processes, and signals to many of them at once.

A process may end, or its number be used again, between being seen and being acted on; nothing here promises more than
a snapshot. Whoever needs proof compares start times. Zombies are dead: they hold nothing and run nothing.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from cronguard.core.model import Process
from cronguard.system.clock import boot_s

COMMAND_CHARS = 200
LISTED_AT_MOST = 50
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.1


class Stat(NamedTuple):
    """A line of `/proc/PID/stat` (proc(5)); `start` is in clock ticks since boot."""

    pid: int
    state: str
    ppid: int
    session: int
    start: int

    @property
    def alive(self) -> bool:
        """Neither a zombie nor on the way there."""
        return self.state not in ("Z", "X", "x")


def read_file(path: str, limit: int = 1 << 16) -> Optional[bytes]:
    """The first `limit` bytes of a small file; None when it is not there, or not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, limit)
    except OSError:  # ESRCH: the process has ended since
        return None
    finally:
        os.close(fd)


def read_stat(pid: int) -> Optional[Stat]:
    """None when there is no such process, or it cannot be seen (`hidepid`, no /proc)."""
    line = read_file(f"/proc/{pid}/stat", 4096)
    if not line:
        return None
    # The name is in parentheses and may hold anything, parentheses and blanks included.
    fields = line[line.rindex(b")") + 2 :].split()
    return Stat(pid, fields[0].decode("ascii"), int(fields[1]), int(fields[3]), int(fields[19]))


def proc_is_ours() -> bool:
    """Whether /proc shows this pid namespace. After `unshare -p` without `--mount-proc` its numbers are others'."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def table() -> Dict[int, Stat]:
    """All processes that can be seen; empty when /proc is absent or another namespace's."""
    if not proc_is_ours():
        return {}
    stats = (read_stat(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {stat.pid: stat for stat in stats if stat is not None}


def descendants(root: int, seen: Dict[int, Stat]) -> Set[int]:
    """Children of `root`, their children and so on, zombies included."""
    children: Dict[int, List[int]] = {}
    for stat in seen.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    found: Set[int] = set()
    front = [root]
    while front:
        fresh = [pid for pid in children.get(front.pop(), ()) if pid not in found]
        found.update(fresh)
        front.extend(fresh)
    return found


def describe(pids: Iterable[int]) -> Tuple[Process, ...]:
    """The processes as told to a person, at most 50 of them, command lines cut to 200 characters."""
    return tuple(Process(pid, _command_line(pid)) for pid in sorted(pids)[:LISTED_AT_MOST])


def _command_line(pid: int) -> str:
    words = read_file(f"/proc/{pid}/cmdline", 4096)
    if not words:  # a process may clear its arguments; one that has ended since has none
        return (read_file(f"/proc/{pid}/comm", 64) or b"?").decode("utf-8", "replace").strip()
    return words.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")[:COMMAND_CHARS]


def send(pids: Iterable[int], *signums: int) -> None:
    """Signal each process; those that have ended or are not ours to signal are passed over.

    A group or a lower number first, so as a rule a parent before its children: a shell whose present command is ended
    before itself would go on with its next line."""
    for pid in sorted(pids):
        for signum in signums:
            try:
                os.kill(pid, signum)
            except OSError:
                break


def living_below(root: int) -> Set[int]:
    """Descendants of `root` that are not zombies."""
    seen = table()
    return {pid for pid in descendants(root, seen) if seen[pid].alive}


def end_all(find: Callable[[], Set[int]], grace_s: float, kill_for_s: float) -> Set[int]:
    """TERM (and wake) what `find` finds, then KILL it until it finds nothing; what is left after all."""
    send(find(), signal.SIGTERM, signal.SIGCONT)
    if _wait_until_gone(find, grace_s):
        return _wait_until_gone(find, kill_for_s, signal.SIGKILL)
    return set()


def _wait_until_gone(find: Callable[[], Set[int]], within_s: float, *signums: int) -> Set[int]:
    until_s = boot_s() + within_s
    pause_s = _FIRST_PAUSE_S
    while True:
        left = find()
        send(left, *signums)
        if not left or boot_s() >= until_s:
            return left
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
