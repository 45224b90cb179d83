"""From the keeper to the command: fork, a clean slate, exec; and plain words for why that failed.

The command gets its own session, default signal dispositions, an empty signal mask, three descriptors and nothing else
of ours. Limits, umask, priority and credentials are left as they are. It is never handed to a shell behind its back.
"""

from __future__ import annotations

import errno
import marshal
import os
import signal
from typing import Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.system import kernel

NOT_FOUND = 127
NOT_STARTED = 126
_DEFAULT_PATH = b"/usr/bin:/bin"  # cron's
_SIGNALS = signal.valid_signals()
_CATCHABLE = tuple(_SIGNALS - {signal.SIGKILL, signal.SIGSTOP})


class Order(NamedTuple):
    """What to start, in bytes as exec takes them. `directory` None: where the keeper is."""

    argv: Tuple[bytes, ...]
    env: Mapping[bytes, bytes]
    directory: Optional[bytes]


class Launch(NamedTuple):
    """A command on its way. `report` ends without a word once it runs, else it says why it does not."""

    pid: int
    report: int


def launch(order: Order, standard: Sequence[int]) -> Launch:
    """Fork and exec; `standard` become its descriptors 0, 1 and 2. Raises OSError when there can be no process."""
    report, tell = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(report, False)
    keeper = os.getpid()
    # No signal may find the child with the keeper's handlers.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _become(order, standard, keeper, tell)
    except OSError:
        os.close(report)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(tell)
    return Launch(pid, report)


def _become(order: Order, standard: Sequence[int], keeper: int, tell: int) -> None:
    """In the child; never returns. `tell` is closed by a successful exec."""
    step, path = "prepare", b""
    try:
        os.setsid()
        kernel.die_with_parent(signal.SIGKILL)
        if os.getppid() != keeper:  # it ended before the line above
            os._exit(NOT_STARTED)
        for number, fd in enumerate(standard):
            os.dup2(fd, number)
        for signum in _CATCHABLE:
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if order.directory is not None:
            step, path = "directory", order.directory
            os.chdir(order.directory)
        step, path = "exec", order.argv[0]
        _search(order)
    except OSError as error:
        os.write(tell, marshal.dumps((step, error.errno or 0, os.fsencode(error.filename or path))))
    except ValueError as error:  # a NUL byte, or `=` in a name
        os.write(tell, marshal.dumps((step, errno.EINVAL, str(error).encode())))
    finally:
        os._exit(NOT_FOUND)


def _search(order: Order) -> None:
    """exec as execvp(3) looks for it, but with the PATH that the command is going to have. Raises OSError."""
    name = order.argv[0]
    if b"/" in name:
        os.execve(name, order.argv, order.env)
    kept: Optional[OSError] = None
    for folder in _search_path(order.env).split(b":") if name else ():
        candidate = os.path.join(folder, name)
        try:
            os.execve(candidate, order.argv, order.env)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                raise
            if kept is None and (error.errno == errno.EACCES or os.path.lexists(candidate)):
                kept = OSError(error.errno, error.strerror, candidate)
    raise kept or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _search_path(env: Mapping[bytes, bytes]) -> bytes:
    return env.get(b"PATH", _DEFAULT_PATH)


def refusal(report: bytes, order: Order) -> Tuple[int, str]:
    """Exit code (126 or 127, as POSIX shells use them) and reason, from what the child said."""
    step, number, raw = marshal.loads(report)
    path = os.fsdecode(raw)
    why = os.strerror(number).lower()
    if step == "prepare":
        return NOT_STARTED, f"preparing the process: {why}"
    if step == "directory":
        return NOT_STARTED, f"directory {path}: {why}"
    if number == errno.EINVAL:
        return NOT_STARTED, f"arguments or environment: {path}"
    if number == errno.ENOENT:
        return NOT_FOUND, _not_found(raw, order)
    if number == errno.ENOEXEC:
        why = "no `#!` line and no program for this machine; start it with its interpreter"
    elif number == errno.EACCES and os.path.isdir(os.path.join(order.directory or b"", raw)):
        why = "is a directory"
    elif number == errno.E2BIG:
        why = "arguments and environment are longer than the system takes"
    return NOT_STARTED, f"{path}: {why}"


def _not_found(raw: bytes, order: Order) -> str:
    path = os.fsdecode(raw) or "the empty name"
    if raw and os.path.lexists(os.path.join(order.directory or b"", raw)):
        return f"{path}: the interpreter or loader that it names does not exist{_interpreter(raw, order)}"
    if b"/" in raw:
        return f"{path}: no such file"
    hint = "; a shell's line needs --shell" if b" " in raw else ""
    return f"{path}: not found in PATH={os.fsdecode(_search_path(order.env))}{hint}"


def _interpreter(raw: bytes, order: Order) -> str:
    try:
        with open(os.path.join(order.directory or b"", raw), "rb") as script:
            line = script.readline(256)
    except OSError:
        return ""
    # As a literal: a carriage return at its end is a common reason.
    return f" ({os.fsdecode(line)[:-1]!r})" if line.startswith(b"#!") else ""
