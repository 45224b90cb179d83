"""Runs the real command, as cron would: a process of its own, its output in files, its exit code read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

PATIENCE_S = 60.0  # a bound on waiting for what must happen; never a measure


def environment(**changes: Optional[str]) -> Dict[str, str]:
    """The test's clean environment, with changes; None takes a variable away."""
    env = dict(os.environ)
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def command(*args: str) -> List[str]:
    return [sys.executable, "-m", "cronguard", *args]


def cronguard(*args: str, env: Optional[Dict[str, str]] = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """To its end; stdin is empty unless `input` or `stdin` is given."""
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        command(*args),
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=more.pop("timeout", PATIENCE_S),
        check=False,
        **more,
    )


class Started:
    """A running `cronguard`; used as a context manager, it and its process group are gone afterwards."""

    def __init__(self, *args: str, env: Optional[Dict[str, str]] = None, **more: Any) -> None:
        more.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(
            command(*args), env=env or environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
        )

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line of the command's stdout."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self, timeout: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        out, err = self.process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


def history(job: str, env: Optional[Dict[str, str]] = None) -> List[Dict[str, Any]]:
    """The job's rows as a script would read them, newest first by run id: tests set the clock, which orders nothing."""
    done = cronguard("history", job, "--limit", "1000", "--json", env=env)
    if done.returncode == 1:
        return []
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(done.stdout)["runs"], key=lambda row: str(row["run_id"]), reverse=True)


def show(run_id: str, env: Optional[Dict[str, str]] = None) -> Dict[str, Any]:
    """Everything known of a run."""
    done = cronguard("show", run_id, "--json", env=env)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)["run"])


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Poll until the condition holds; its value."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {patience_s:g} s in vain for: {what}"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether the process has ended; a zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"
