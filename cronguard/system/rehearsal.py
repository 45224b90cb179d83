"""Our own command as cron would start it: processes of their own, their output kept, everything bounded.

Used to try guards on purpose. Whatever was started here is gone at the end.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from types import TracebackType
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple, Type

from cronguard.system.clock import boot_s
from cronguard.system.processes import read_stat

_SLICE_MS = 50
_ENDED_WITHIN_S = 2.0
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class Ended(NamedTuple):
    """How it left (-n: by signal n; None: it did not, and was killed) and what it said on stderr."""

    code: Optional[int]
    said: str

    @property
    def last_words(self) -> str:
        """The last line of stderr."""
        return (self.said.strip().splitlines() or [""])[-1]


class Rehearsal:
    """Starts `cronguard ARGS...` with one environment. A context manager: what still runs at its end is killed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ: Dict[str, str] = {"PATH": _DEFAULT_PATH, **environ}
        # The child finds this very package wherever we found it, and not another one where it happens to start.
        self._environ["PYTHONPATH"] = os.pathsep.join(folder for folder in sys.path if folder)
        self._started: List[Actor] = []

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        for actor in self._started:
            actor.end()

    def start(self, *args: str) -> Actor:
        """Set it off. OSError when processes or descriptors run out."""
        actor = Actor([sys.executable, "-m", "cronguard", *args], self._environ)
        self._started.append(actor)
        return actor

    def play(self, *args: str, within_s: float) -> Ended:
        """Start it and wait for its end."""
        return self.start(*args).wait(within_s)


class Actor:
    """One of our processes. Its stdin is a pipe that is open until `release`."""

    def __init__(self, argv: List[str], environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            argv, env=dict(environ), cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._ended: Optional[Ended] = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def line(self, within_s: float) -> str:
        """The first line that the command writes to stdout; empty when none came in time."""
        stream = self._process.stdout
        assert stream is not None
        waiting = select.poll()
        waiting.register(stream, select.POLLIN)
        until_s, text = boot_s() + within_s, b""
        while b"\n" not in text and boot_s() < until_s:
            if waiting.poll(_SLICE_MS):
                fresh = os.read(stream.fileno(), 4096)
                if not fresh:
                    break
                text += fresh
        return text.decode("utf-8", "replace").partition("\n")[0]

    def release(self) -> None:
        """End the command's stdin, which it waits for."""
        stream, self._process.stdin = self._process.stdin, None  # communicate() would flush what is closed
        if stream is not None:
            stream.close()

    def kill(self) -> None:
        """SIGKILL to the process alone, not to what it supervises."""
        self._process.send_signal(signal.SIGKILL)

    def wait(self, within_s: float) -> Ended:
        """Wait for its end; when that does not come in time it is killed."""
        if self._ended is None:
            try:
                _, said = self._process.communicate(timeout=within_s)
                code: Optional[int] = self._process.returncode
            except subprocess.TimeoutExpired:
                self._process.terminate()
                try:
                    _, said = self._process.communicate(timeout=_ENDED_WITHIN_S)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    _, said = self._process.communicate()
                code = None
            self._ended = Ended(code, said.decode("utf-8", "replace"))
        return self._ended

    def end(self) -> None:
        """Make sure that it is gone."""
        if self._ended is None:
            self.release()
            self.wait(0.0 if self._process.poll() is None else _ENDED_WITHIN_S)


def await_gone(pids: Tuple[int, ...], within_s: float) -> Tuple[int, ...]:
    """Wait until these processes have ended; those that have not. A zombie has."""
    until_s = boot_s() + within_s
    while True:
        left = tuple(pid for pid in pids if _lives(pid))
        if not left or boot_s() >= until_s:
            return left
        select.poll().poll(_SLICE_MS)


def _lives(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.alive
