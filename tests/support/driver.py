"""A small supervisor for process tests: one `supervise` in a process of its own, facts as JSON in a file.

The test process must not become a subreaper or lose its signal handlers, so every test that runs a command does it
through here. What to do comes as JSON in argv[1]; the facts go as JSON to the path named there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict, List, Union

from cronguard.core.model import Lease
from cronguard.system.clock import boot_s
from cronguard.system.keeper import Keeper, fork_keeper
from cronguard.system.signals import Signals
from cronguard.system.supervisor import Command, KeptLease, Limits, pause, supervise


class ScriptedLease(Lease):
    """News as the test writes it to a pipe: a line `renewed`, `lost` or `cancelled` each."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def fileno(self) -> int:
        return self._fd

    def news(self) -> List[Union[float, str]]:
        try:
            lines = os.read(self._fd, 4096).split()
        except BlockingIOError:
            return []
        return [boot_s() if line == b"renewed" else line.decode() for line in lines]


def main() -> int:
    words: Dict[str, Any] = json.loads(sys.argv[1])
    keeper = fork_keeper()
    signals = Signals()
    signals.install()
    if "stall_s" in words:
        _stall(keeper, words["stall_s"])
    lease = KeptLease(ScriptedLease(words["lease"]), boot_s()) if words.get("lease") else None
    orders = words.get("argvs") or [words["argv"]] * words.get("attempts", 1)
    command = Command(
        argv=(),
        env={**words["env"], **_filler(words.get("grow_env_bytes", 0))},
        directory=words.get("directory"),
        stdin=words.get("stdin", "null"),
        capture=words.get("capture", True),
        echo=words.get("echo", True),
        tail_bytes=words.get("tail_bytes", 1 << 16),
        results_path=words.get("results_path"),
    )
    limits = Limits(words.get("timeout_s"), words.get("grace_s", 0.2), words.get("leftovers", "leave"))
    seen: List[Dict[str, Any]] = []
    interrupted = None
    for number, argv in enumerate(orders):
        interrupted = pause(words.get("pause_s", 0.0), signals, lease) if number else None
        if interrupted:
            break
        sent_at = boot_s() if lease is None else lease.sent_at
        started: List[int] = []
        facts = supervise(
            keeper,
            command._replace(argv=tuple(argv)),
            limits,
            signals,
            lease,
            words.get("lease_s", 60.0),
            sent_at,
            lambda pid, started=started: _started(words, keeper, pid, started),
        )
        seen.append({**facts._asdict(), "tail": facts.tail.decode("latin-1"), "pid": (started or [None])[0]})
    first = signals.first
    keeper.goodbye()
    late = sorted(set(sys.modules) - words["modules"]) if "modules" in words else []
    signals.restore()
    with open(words["facts"], "w", encoding="utf-8") as out:
        told = {"attempts": seen, "first": first, "keeper": keeper.pid, "interrupted": interrupted, "late": late}
        json.dump(told, out)
    return 0


def _stall(keeper: Keeper, seconds: float) -> None:
    """Every message to the keeper leaves late, as if this process had been stopped just before."""
    send = keeper.channel.send

    def send_late(*message: Any, **words: Any) -> bool:
        time.sleep(seconds)
        return send(*message, **words)

    keeper.channel.send = send_late  # type: ignore[method-assign]


def _filler(size: int) -> Dict[str, str]:
    """Variables of that many bytes in all: more than one argv of the test's own may hold."""
    return {f"FILLER{number}": "x" * 100_000 for number in range(size // 100_000)}


def _started(words: Dict[str, Any], keeper: Keeper, pid: int, started: List[int]) -> None:
    started.append(pid)
    words.setdefault("modules", set(sys.modules))
    if "announce" in words:
        with open(words["announce"], "w", encoding="utf-8") as out:
            out.write(f"{os.getpid()} {keeper.pid} {pid}\n")
    if "garble" in words:
        keeper.channel.send(words["garble"])


if __name__ == "__main__":
    sys.exit(main())
