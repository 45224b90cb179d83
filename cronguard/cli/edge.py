"""Where errors end: one place that knows which exit code and which line belong to which of them.

No traceback ever reaches a user, whose cron would mail it: a bug is one line that says where. Imports nothing that is
needed only after the command has run, for by then the files of this package may have been replaced (FR-34).
"""

from __future__ import annotations

import os
import sys
from typing import Callable, Dict, List, Optional, Sequence

from cronguard.errors import ConfigError, CronguardError, NotFound, StoreError

OUR_FAULT = 125
INTERRUPTED = 130  # 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE: what any other program at that place would leave with

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# Those that stand in front of a command: their own failures must not be taken for the command's (design, section 8).
GUARDING = ("run", "once", "backfill", "items")


class PipeClosed(Exception):
    """The reader of our stdout has gone, as in `cronguard history x | head`."""


class Progress:
    """What is known of this invocation so far: the job, for messages, and shared options given before the command."""

    def __init__(self) -> None:
        self.job: Optional[str] = None
        self.shared: Dict[str, object] = {}


def exit_code_for(command: Optional[str], error: BaseException) -> int:
    """What a command leaves with after that error."""
    if command == "items" and isinstance(error, NotFound):  # only where no command of the user's is in play
        return NotFound.exit_code
    if command in GUARDING:
        return OUR_FAULT
    if command == "check":
        return 3  # Nagios: unknown
    if isinstance(error, NotFound):
        return NotFound.exit_code
    return OUR_FAULT if isinstance(error, StoreError) else 2


def lines_for(error: BaseException, job: Optional[str] = None) -> List[str]:
    """What is said about it: a line, or for settings a line a mistake. Names the job when it is known."""
    prefix = "cronguard: " if job is None else f"cronguard: {job}: "
    if isinstance(error, ConfigError):
        hint = f"; {error.hint}" if error.hint else ""
        return [prefix + one_line(problem + hint) for problem in error.problems]
    if isinstance(error, CronguardError):
        return [prefix + one_line(str(error))]
    return [prefix + one_line(_about_bug(error))]


def one_line(text: str) -> str:
    """Text that cannot move the cursor, ring the bell or pose as a second line."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def show(lines: Sequence[str]) -> None:
    """Write to stderr, whatever state that is in: closed, full, or of a small encoding."""
    data = "".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace")
    try:
        os.write(2, data)
    except OSError:
        pass  # nobody is left to tell


def print_lines(lines: Sequence[str]) -> None:
    """Data to stdout, all of it or an error: PipeClosed, or a CronguardError when the disk is full."""
    if sys.stdout is None:  # it was closed before we began: nobody wants it
        return
    _to_stdout(lambda: [print(line) for line in lines])


def _to_stdout(write: Callable[[], object]) -> None:
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        raise PipeClosed from None
    except OSError as error:
        _drop_stdout()
        raise CronguardError(f"cannot write: stdout: {(error.strerror or 'failed').lower()}") from None


def print_bytes(data: bytes) -> None:
    """Bytes to stdout as they are, whatever its encoding; errors as with `print_lines`."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    _to_stdout(lambda: sys.stdout.buffer.write(data))


def open_standard_descriptors() -> None:
    """With 0, 1 or 2 closed, the next file opened would get its number: a database that takes the command's output."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def leave(code: int) -> None:
    """End at once: a store's thread that hangs on the network must not keep the process."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(code)


def _drop_stdout() -> None:
    """What is still buffered has no reader."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _escaped(letter: str) -> str:
    """By hand: the codec for it would be loaded at its first use, which may be after the command (FR-34)."""
    code = ord(letter)
    if letter in _NAMED:
        return _NAMED[letter]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _about_bug(error: BaseException) -> str:
    where = ""
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "cronguard" in name:
            where = f" in {os.path.basename(name)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"internal error: {type(error).__name__}: {error}{where}; this is a bug in cronguard, please report it"
