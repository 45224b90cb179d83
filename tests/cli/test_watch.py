"""`status --watch` on a real terminal: it redraws, lives through an outage, ends on q and ^C, leaves no mess."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from tests.support.cronguard import PATIENCE_S, command, cronguard, environment

ALTERNATE_ON, ALTERNATE_OFF = b"\x1b[?1049h", b"\x1b[?1049l"
ONCE = ("--timeout", "60s", "--", "true")


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Watching:
    """`status --watch` behind a pseudo-terminal."""

    def __init__(self, *words: str, **changes: str) -> None:
        self.master, slave = pty.openpty()
        self.before = termios.tcgetattr(slave)
        self.seen = b""
        env = environment(**{"TERM": "xterm-256color", "COLUMNS": "200", "LINES": "30", **changes})
        self.process = subprocess.Popen(
            command("status", "--watch", *words), env=env, stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=_take_terminal,  # noqa: PLW1509  ^C needs a controlling terminal
        )  # fmt: skip
        self.slave = slave

    def until(self, text: bytes) -> None:
        """Read on until that is shown; what was before it is forgotten."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < end, (text, self.seen[-3000:])
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536)
            else:
                assert self.process.poll() is None, self.seen
        self.seen = self.seen[self.seen.index(text) + len(text) :]

    def end(self) -> int:
        """Its exit code, everything that it still printed being in `seen`."""
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None or select.select([self.master], [], [], 0)[0]:
            assert time.monotonic() < end
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def watching() -> Iterator[Callable[..., Watching]]:
    started: List[Watching] = []

    def start(*words: str, **changes: str) -> Watching:
        started.append(Watching(*words, **changes))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_it_redraws_and_q_ends_it_with_0(watching: Callable[..., Watching]) -> None:
    assert cronguard("run", "first", *ONCE).returncode == 0
    watch = watching()
    watch.until(ALTERNATE_ON)
    watch.until(b"first")
    assert cronguard("run", "second", *ONCE).returncode == 0
    watch.until(b"second")
    os.write(watch.master, b"xq")
    assert watch.end() == 0
    assert ALTERNATE_OFF in watch.seen
    assert termios.tcgetattr(watch.slave) == watch.before


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_it_and_the_terminal_is_as_before(
    watching: Callable[..., Watching], signum: int, code: int
) -> None:
    assert cronguard("run", "first", *ONCE).returncode == 0
    watch = watching()
    watch.until(b"first")
    if signum == signal.SIGINT:
        os.write(watch.master, b"\x03")
    else:
        watch.process.send_signal(signum)
    assert watch.end() == code
    assert ALTERNATE_OFF in watch.seen
    assert b"Traceback" not in watch.seen
    assert termios.tcgetattr(watch.slave) == watch.before


def test_a_store_that_is_down_for_a_while_is_said_and_survived(
    watching: Callable[..., Watching], tmp_path: Path
) -> None:
    store = tmp_path / "s"
    url = f"sqlite:{store}/cronguard.db"
    assert cronguard("run", "first", "--store", url, *ONCE).returncode == 0
    watch = watching("--store", url)
    watch.until(b"first")
    store.rename(tmp_path / "away")
    store.mkdir()
    (store / "cronguard.db").write_bytes(b"this is no database, " * 100)
    watch.until(b"not a database")
    watch.until(b"first")  # what was seen last stays
    (store / "cronguard.db").unlink()
    store.rmdir()
    (tmp_path / "away").rename(store)
    assert cronguard("run", "second", "--store", url, *ONCE).returncode == 0
    watch.until(b"second")
    os.write(watch.master, b"q")
    assert watch.end() == 0


def test_a_slip_in_the_name_is_an_error_and_no_screen(watching: Callable[..., Watching]) -> None:
    assert cronguard("run", "first", *ONCE).returncode == 0
    watch = watching("frist")
    assert watch.end() == 1
    assert b"did you mean first?" in watch.seen
    assert ALTERNATE_ON not in watch.seen


def test_no_colour_is_respected(watching: Callable[..., Watching]) -> None:
    assert cronguard("run", "first", *ONCE).returncode == 0
    watch = watching(NO_COLOR="1")
    watch.until(b"first")
    os.write(watch.master, b"q")
    assert watch.end() == 0
    assert b"\x1b[32m" not in watch.seen


def test_where_nothing_can_be_redrawn_it_prints_once(watching: Callable[..., Watching]) -> None:
    assert cronguard("run", "first", *ONCE).returncode == 0
    piped = cronguard("status", "--watch")
    assert (piped.returncode, len(piped.stdout.splitlines())) == (0, 2)
    dumb = watching(TERM="dumb")
    assert dumb.end() == 0
    assert b"first" in dumb.seen
    assert b"\x1b" not in dumb.seen


def test_more_jobs_than_lines_are_counted(watching: Callable[..., Watching]) -> None:
    for number in range(6):
        assert cronguard("run", f"job-{number}", *ONCE).returncode == 0
    watch = watching(LINES="8")
    watch.until(b"3 more jobs below")
    os.write(watch.master, b"q")
    assert watch.end() == 0
