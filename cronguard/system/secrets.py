"""Reads secrets from where they may lie: a file (systemd's credentials, a mounted secret) or a variable.

So that a DSN or a ping URL need not be in an argument list, which every user of the machine can read. Errors name
the place, never the content.
"""

from __future__ import annotations

import os
import stat
from typing import Mapping

from cronguard.errors import ConfigError

LONGEST_BYTES = 64 * 1024


def resolve(text: str, environ: Mapping[str, str], what: str) -> str:
    """The secret that `text` stands for: `file:PATH` (its first line), `env:NAME`, or `text` itself.

    `what` names the option or setting for the error, e.g. `--ping`. Raises ConfigError.
    """
    if text.startswith("file:"):
        return _first_line(text[len("file:") :], what)
    if text.startswith("env:"):
        return _variable(text[len("env:") :], environ, what)
    return text


def _first_line(path: str, what: str) -> str:
    try:
        # Not blocking: a FIFO without a writer would hold the job up for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise ConfigError([f"{what}: file {path!r}: {(reason or 'cannot be read').lower()}"]) from None
    try:
        return _decoded(_content(fd, path, what), path, what)
    finally:
        os.close(fd)


def _content(fd: int, path: str, what: str) -> bytes:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise ConfigError([f"{what}: file {path!r}: not a regular file"])
    try:
        return os.read(fd, LONGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{what}: file {path!r}: {(error.strerror or 'cannot be read').lower()}"]) from None


def _decoded(content: bytes, path: str, what: str) -> str:
    line = content.split(b"\n", 1)[0]
    if len(line) > LONGEST_BYTES:
        raise ConfigError([f"{what}: file {path!r}: the first line is longer than 64 KiB"])
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise ConfigError([f"{what}: file {path!r}: the first line is not UTF-8 text"]) from None
    if not text:
        raise ConfigError([f"{what}: file {path!r}: the first line is empty"])
    return text


def _variable(name: str, environ: Mapping[str, str], what: str) -> str:
    text = environ.get(name, "").strip()
    if not text:
        raise ConfigError([f"{what}: environment variable {name}: not set or empty"])
    return text
