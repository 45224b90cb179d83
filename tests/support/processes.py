"""Real processes for tests: start `supervise` in one of its own, look at trees, wait for events with a deadline."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Set

from cronguard.system import processes

ROOT = Path(__file__).resolve().parents[2]
TAG = "CRONGUARD_TEST_TAG"


def wait_until(holds: Callable[[], Any], within_s: float = 10.0, what: str = "it never came true") -> Any:
    """Poll until it is truthy and return that; fail after the deadline."""
    until = time.monotonic() + within_s
    while True:
        value = holds()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(what)
        time.sleep(0.005)


def alive(pid: int) -> bool:
    """Exists, and is no zombie."""
    stat = processes.read_stat(pid)
    return stat is not None and stat.alive


def tagged(tag: str) -> Set[int]:
    """Living processes whose environment has that tag: everything a test's command started, wherever it went."""
    mark = f"{TAG}={tag}\0".encode()
    found = set()
    for stat in processes.table().values():
        if stat.alive and mark in (processes.read_file(f"/proc/{stat.pid}/environ", 1 << 20) or b""):
            found.add(stat.pid)
    return found


class Guarded:
    """One run of tests/support/driver.py. `words` are its JSON; `wrap` is put before it (`["nohup"]`)."""

    def __init__(self, folder: Path, argv: Sequence[str], wrap: Sequence[str] = (), **words: Any) -> None:
        self.tag = uuid.uuid4().hex
        self.began = time.monotonic()
        self._facts = folder / f"facts-{self.tag}"
        self._announce = folder / f"announce-{self.tag}"
        popen = {name: words.pop(name) for name in ("fd_in", "fd_out", "fd_err", "cwd", "preexec") if name in words}
        env = {"PATH": os.environ["PATH"], TAG: self.tag, **words.pop("extra_env", {})}
        words = {"argv": list(argv), "env": env, "facts": str(self._facts), "announce": str(self._announce), **words}
        self.process = subprocess.Popen(
            [*wrap, sys.executable, "-m", "tests.support.driver", json.dumps(words)],
            stdin=popen.get("fd_in", subprocess.DEVNULL),
            stdout=popen.get("fd_out", subprocess.PIPE),
            stderr=popen.get("fd_err", subprocess.PIPE),
            cwd=popen.get("cwd", ROOT),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            preexec_fn=popen.get("preexec"),  # noqa: PLW1509  limits and terminals cannot be set otherwise
        )
        self.out = b""
        self.err = b""

    def started(self) -> Dict[str, int]:
        """Wait for the command to run; the pids of supervisor, keeper and command."""

        def numbers() -> List[str]:
            try:
                text = self._announce.read_text()
            except FileNotFoundError:
                assert self.process.poll() is None, self.process.communicate()
                return []
            return text.split() if text.endswith("\n") else []

        return dict(zip(("supervisor", "keeper", "command"), map(int, wait_until(numbers))))

    def expect(self, word: bytes) -> None:
        """Wait for the next line of output, which begins so."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(word), line

    def finish(self, within_s: float = 15.0) -> Dict[str, Any]:
        """Wait for the end; the facts of the last attempt, and all of them under `attempts`."""
        self.out, self.err = self.process.communicate(timeout=within_s)
        self.took_s = time.monotonic() - self.began
        assert self.process.returncode == 0, (self.process.returncode, self.err)
        facts: Dict[str, Any] = json.loads(self._facts.read_text(encoding="utf-8"))
        return {**facts["attempts"][-1], **facts}

    def send(self, signum: int) -> None:
        """Signal the supervisor."""
        os.kill(self.started()["supervisor"], signum)

    def left(self) -> Set[int]:
        """Living processes of the command's."""
        return tagged(self.tag)

    def clean_up(self) -> None:
        """End whatever is left of it, for a test that failed half way or meant to leave something."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for pid in self.left():
            processes.send((pid,), signal.SIGKILL)


def run_driver(folder: Path, argv: Sequence[str], **words: Any) -> Dict[str, Any]:
    """Start, wait, give the facts with the output under `out` and `err`, and whether anything was left alive."""
    guarded = Guarded(folder, argv, **words)
    try:
        facts = guarded.finish()
        return {**facts, "out": guarded.out, "err": guarded.err, "took_s": guarded.took_s, "left": guarded.left()}
    finally:
        guarded.clean_up()


def sh(script: str, *args: str) -> List[str]:
    """An argv that runs a shell script."""
    return ["/bin/sh", "-c", script, "sh", *args]
