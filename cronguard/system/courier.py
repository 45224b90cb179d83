"""Carries one message to somebody on the network from a process of its own, which is killed when its time is over.

The process is an exec'd `pinger_main.py` with URL and body on its stdin (never in its arguments or environment), reaped
by its pid. So neither a name server that never answers nor a library that hangs can hold up whoever sends. Nothing here
raises, and no answer contains the URL. Importing this module loads next to nothing.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import IO, Dict, Mapping, NamedTuple, Optional, Union

from cronguard import __version__

if not hasattr(os, "memfd_create"):  # macOS, and Pythons built against a C library before 2.27
    from tempfile import TemporaryFile

TRY_S = 5.0
# Taken off the courier's own time, so that it can say what went wrong before it is killed.
LAST_WORDS_S = 0.3
REAP_S = 1.0
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pinger_main.py")
# What ends a run does not end the news of it; the kernel's alarm and our KILL bound the courier.
HELD_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Answer(NamedTuple):
    """What became of it, `detail` in our own words. `limit_bytes`: how much of a body the server keeps."""

    delivered: bool
    detail: str
    limit_bytes: Optional[int] = None


class Courier(NamedTuple):
    """A courier's process. It is our child until it is reaped here, so its pid cannot be anybody else's."""

    pid: int
    answer_fd: int
    deadline: float


def send(python: str, order: Mapping[str, object], body: bytes, deadline: float) -> Union[Courier, Answer]:
    """Set a courier off and wait for nothing. `order` as `pinger_main` reads it; `deadline` on the monotonic clock."""
    import json

    whole = {
        **order,
        "agent": f"cronguard/{__version__}",
        "try_s": TRY_S,
        "deadline": deadline - LAST_WORDS_S,
        # The courier is isolated (-I) but finds httpx wherever this process would, user site included.
        "path": [folder for folder in sys.path if folder],
    }
    try:
        return _spawn(python, json.dumps(whole).encode() + b"\n" + body, deadline)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        return Answer(False, f"the pinger could not be started: {reason.lower()}")


def _spawn(python: str, order: bytes, deadline: float) -> Courier:
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
    return Courier(pid, answer_fd, deadline)


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


def answer_of(sent: Union[Courier, Answer], deadline: float) -> Answer:
    """Waits for the answer until the deadline or the courier's own; then there is no such process any more."""
    if isinstance(sent, Answer):
        return sent
    import json

    try:
        line = _line_from(sent.answer_fd, min(deadline, sent.deadline))
    finally:
        os.close(sent.answer_fd)
        _end(sent.pid)
    if line is None:
        return Answer(False, "no answer in time")
    try:
        report = json.loads(line)
        return Answer(report["delivered"], report["detail"], report["limit_bytes"])
    except ValueError:
        return Answer(False, "the pinger ended without a word")


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
