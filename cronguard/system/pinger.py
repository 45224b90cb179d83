"""Sends heartbeats from a process of their own, so that they can neither hang nor bloat the supervisor (P7).

A ping is an exec'd `pinger_main.py` with the URL and the body on its stdin (never in its arguments or environment),
killed when its time is over and reaped by its pid. Nothing here raises, retries on its own or outlasts its budget,
and no result contains the URL. Whoever makes a `Pinger` has loaded all that `finish` needs, because the installation
may be replaced while the command runs (FR-34); then the result says so. Importing this module loads next to nothing.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import IO, Dict, List, NamedTuple, Optional, Union

from cronguard import __version__
from cronguard.core.heartbeat import Ping, PingRequest, guess_style, request_for, tail_within, url_problem

if not hasattr(os, "memfd_create"):  # macOS, and Pythons built against a C library before 2.27
    from tempfile import TemporaryFile

__all__ = ["Ping", "Pinger", "guess_style", "once", "request_for"]

TRY_S = 5.0
BUDGET_S = 10.0
# What a finished command still waits for its start ping, so that the service hears of them in order.
START_PATIENCE_S = 2.0
# Taken off the pinger's own time, so that it can say what went wrong before it is killed.
LAST_WORDS_S = 0.3
# Healthchecks as people host it keeps the first 10 kB of a body unless it says otherwise (Ping-Body-Limit).
BODY_LIMIT_BYTES = 10_000
LARGEST_BODY_BYTES = 1_000_000
REAP_S = 1.0
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pinger_main.py")
# What ends a run does not end the news of it; the kernel's alarm and our KILL bound the pinger.
HELD_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Pinger:
    """The heartbeats of one run: at most one start ping, then exactly one terminal ping."""

    def __init__(self, url: str, style: str, run_id: str, python: str = sys.executable) -> None:
        """`url`: the secret itself, resolved; `style`: one of heartbeat.STYLES or `auto`; `run_id` becomes the rid."""
        import json  # noqa: F401 - for `finish`; so is urllib.parse, which url_problem loads

        self._url = url
        self._problem = url_problem(url)
        self._style = guess_style(url) if style == "auto" and not self._problem else style
        self._run_id = run_id
        self._python = python
        self._body_limit_bytes = BODY_LIMIT_BYTES
        self._started: Union[_Courier, _Answer, None] = None

    def start(self) -> None:
        """Sends the start ping on its way and waits for nothing."""
        request = self._request(Ping("start"), b"", None)
        if request is not None:
            self._started = _send(self._python, request, time.monotonic() + BUDGET_S)

    def finish(self, ping: Ping, body: bytes, duration_s: Optional[float], cut_bytes: int = 0) -> str:
        """Sends the terminal ping and says in plain words what became of both; takes 12 s at the very most.

        `body` is the output's tail and `cut_bytes` what came before it; what the service would not keep is cut from its
        beginning.
        """
        if self._problem:
            return f"{ping.name} not delivered: {self._problem}"
        results = self._start_result()
        request = self._request(ping, body, duration_s, cut_bytes)
        if request is None:
            return "; ".join([*results, f"{ping.name} not sent: a {self._style} URL has no word for it"])
        deadline = time.monotonic() + BUDGET_S
        answer = _answer_of(_send(self._python, request, deadline), deadline)
        return "; ".join([*results, answer.told_of(ping)])

    def _start_result(self) -> List[str]:
        if self._started is None:
            return []
        answer = _answer_of(self._started, time.monotonic() + START_PATIENCE_S)
        self._started = None
        if answer.limit_bytes is not None:
            self._body_limit_bytes = min(answer.limit_bytes, LARGEST_BODY_BYTES)
        return [answer.told_of(Ping("start"))]

    def _request(
        self, ping: Ping, body: bytes, duration_s: Optional[float], cut_bytes: int = 0
    ) -> Optional[PingRequest]:
        if self._problem:
            return None
        limit_bytes = self._body_limit_bytes
        kept = tail_within(body, limit_bytes - len(ping.reason), cut_bytes)
        request = request_for(self._style, self._url, ping, self._run_id, body=kept, duration_s=duration_s)
        return request and request._replace(body=request.body[:limit_bytes])


def once(url: str, style: str, ping: Ping, body: bytes = b"", *, run_id: str = "") -> str:
    """Sends one ping where there was no run (125-127); the result as of `Pinger.finish`, within 10 s."""
    return Pinger(url, style, run_id).finish(ping, body, None)


class _Answer(NamedTuple):
    delivered: bool
    detail: str
    limit_bytes: Optional[int] = None

    def told_of(self, ping: Ping) -> str:
        return f"{ping.name} delivered" if self.delivered else f"{ping.name} not delivered: {self.detail}"


class _Courier(NamedTuple):
    """A pinger process. It is our child until it is reaped here, so its pid cannot be anybody else's."""

    pid: int
    answer_fd: int
    deadline: float


def _send(python: str, request: PingRequest, deadline: float) -> Union[_Courier, _Answer]:
    import json

    order = {
        "method": request.method,
        "url": request.url,
        "agent": f"cronguard/{__version__}",
        "try_s": TRY_S,
        "deadline": deadline - LAST_WORDS_S,
        # The pinger is isolated (-I) but finds httpx wherever this process would, user site included.
        "path": [folder for folder in sys.path if folder],
    }
    try:
        return _spawn(python, json.dumps(order).encode() + b"\n" + request.body, deadline)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return _Answer(False, f"the pinger could not be started: {reason.lower()}")


def _spawn(python: str, order: bytes, deadline: float) -> _Courier:
    answer_fd, answer_end = os.pipe()
    try:
        with _anonymous_file() as letter:
            letter.write(order)
            letter.flush()
            letter.seek(0)
            pid = _posix_spawn(python, letter.fileno(), answer_end)
    except BaseException:
        os.close(answer_fd)
        raise
    finally:
        os.close(answer_end)
    return _Courier(pid, answer_fd, deadline)


def _anonymous_file() -> IO[bytes]:
    """A file, because writing 100 kB into a pipe waits for a reader. In memory where possible: it holds the URL."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("cronguard-ping"), "w+b")
    return TemporaryFile()


def _posix_spawn(python: str, stdin: int, stdout: int) -> int:
    """Starts the pinger; a ^C on the terminal ends the job and not the news of it, its mask keeps that away."""
    return os.posix_spawn(
        python,
        [python, "-I", SCRIPT],
        _environment(),
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setsigmask=HELD_SIGNALS,
        setsigdef=(*HELD_SIGNALS, signal.SIGPIPE, signal.SIGCHLD, signal.SIGALRM),
    )


def _environment() -> Dict[str, str]:
    """Proxies, certificates and resolver settings go along; not our secrets, nor the mark of the run's processes."""
    return {name: text for name, text in os.environ.items() if not name.startswith("CRONGUARD_")}


def _answer_of(sent: Union[_Courier, _Answer], deadline: float) -> _Answer:
    """Waits for the answer until the deadline or the courier's own; then there is no such process any more."""
    if isinstance(sent, _Answer):
        return sent
    import json

    try:
        line = _line_from(sent.answer_fd, min(deadline, sent.deadline))
    finally:
        os.close(sent.answer_fd)
        _end(sent.pid)
    if line is None:
        return _Answer(False, "no answer in time")
    try:
        report = json.loads(line)
        return _Answer(report["delivered"], report["detail"], report["limit_bytes"])
    except ValueError:
        return _Answer(False, "the pinger ended without a word")


def _line_from(fd: int, deadline: float) -> Optional[bytes]:
    """What the pipe says up to a line's end or its own; None if the deadline came first."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    line = b""
    while not line.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        if not poll.poll(max(0, left_s * 1000)):
            return None
        piece = os.read(fd, 4096)
        if not piece:
            break
        line += piece
    return line


def _end(pid: int) -> None:
    """Kills and reaps; a child that somebody else reaped is gone, and its pid may be a stranger's by now."""
    try:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        os.kill(pid, signal.SIGKILL)
        give_up = time.monotonic() + REAP_S
        while not os.waitpid(pid, os.WNOHANG)[0] and time.monotonic() < give_up:
            time.sleep(0.002)
    except ChildProcessError:
        pass
