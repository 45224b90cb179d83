"""One number at a time, taken from outside: the clock, wait4's account, and /proc while the command runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple

from tests.bench.contenders import Contender

HERD = 200
GIGABYTE = 1_000_000_000
PATIENCE_S = 30.0


class Timing(NamedTuple):
    """`wall_s` from spawn to reaped; `lag_s` from spawn to the command's first words; `cpu_s` of the whole tree."""

    wall_s: float
    lag_s: float
    cpu_s: float


class Herd(NamedTuple):
    """Many at once: until the last is reaped, CPU of them all, and how many did not leave with 0."""

    wall_s: float
    cpu_s: float
    failed: int


def timing(contender: Contender, work: Path) -> Timing:
    """A command that notes the time and ends."""
    stamp = work / "stamp"
    began_ns, began = time.time_ns(), time.perf_counter()
    cpu_s = _reap(_spawn(contender, ["/bin/sh", "-c", f"exec date +%s%N >{stamp}"]))[1]
    wall_s = time.perf_counter() - began
    return Timing(wall_s, (int(stamp.read_text()) - began_ns) / 1e9, cpu_s)


def supervising_bytes(contender: Contender, work: Path) -> int:
    """Proportional memory (PSS) of everything but the command while it runs."""
    ready, go = work / "ready", work / "go"
    os.mkfifo(str(go))
    command = ["/bin/sh", "-c", f"echo $$ >{ready}.new && mv {ready}.new {ready} && read x <{go}"]
    pid = _spawn(contender, command)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        own = int(ready.read_text())
        time.sleep(1.5)  # helpers of the start (a start ping) are not what stays
        return sum(_pss_bytes(other) for other in _tree(pid) if other != own)
    finally:
        go.write_text("\n")
        _reap(pid)
        ready.unlink()
        go.unlink()


def gigabyte_s(contender: Contender) -> float:
    """Wall time of a command that prints a gigabyte."""
    began = time.perf_counter()
    _reap(_spawn(contender, ["head", "-c", str(GIGABYTE), "/dev/zero"]))
    return time.perf_counter() - began


def herd(contender: Contender) -> Herd:
    """HERD jobs of different names, started as fast as possible."""
    began = time.perf_counter()
    pids = [_spawn(contender, ["true"], number) for number in range(HERD)]
    ends = [_reap(pid) for pid in pids]
    wall_s = time.perf_counter() - began
    return Herd(wall_s, sum(cpu_s for _, cpu_s in ends), sum(1 for status, _ in ends if status))


def environment(contender: Contender) -> Dict[str, str]:
    """As cron's: nothing of the shell's, above all no PYTHONDONTWRITEBYTECODE and no PYTHONUNBUFFERED."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, **contender.environ}


def _spawn(contender: Contender, command: List[str], number: int = 0) -> int:
    words = contender.wrap(command, number)
    silence = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    return os.posix_spawnp(words[0], words, environment(contender), file_actions=silence)


def _reap(pid: int) -> Tuple[int, float]:
    """The wait status, and CPU seconds of the process and of all it waited for."""
    _, status, usage = os.wait4(pid, 0)
    return status, usage.ru_utime + usage.ru_stime


def _tree(pid: int) -> Iterator[int]:
    """The process and its descendants."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended while we looked
    generation = {pid}
    while generation:
        yield from generation
        generation = {child for child, parent in parents.items() if parent in generation}


def _pss_bytes(pid: int) -> int:
    """0 for one that has ended meanwhile."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
