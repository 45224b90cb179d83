"""Finds and reads the config file. What stands in it is core.document's to judge.

A file that was asked for must be there; the two usual places may be empty. Every way in which reading can go wrong is
a ConfigError that names the file. The TOML parser is loaded only when there is a file.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib import import_module
from typing import Dict, Mapping, NoReturn, Optional, Tuple

from cronguard.errors import ConfigError

VARIABLE = "CRONGUARD_CONFIG"
SYSTEM_WIDE = "/etc/cronguard/config.toml"
LONGEST_BYTES = 1 << 20


def load_config(given: Optional[str], environ: Mapping[str, str]) -> Tuple[Mapping[str, object], str]:
    """The config file's content and its name; an empty mapping and name when there is none.

    Looked for: `given` (`--config`), `CRONGUARD_CONFIG`, `$XDG_CONFIG_HOME/cronguard/config.toml` (without the
    variable below `~/.config`), /etc/cronguard/config.toml. The first that exists is the only one.
    """
    asked_for = given if given is not None else environ.get(VARIABLE) or None
    if asked_for is not None:
        return _parse(_content(asked_for), asked_for), asked_for
    for path in _usual_places(environ):
        if os.path.lexists(path):
            return _parse(_content(path), path), path
    return {}, ""


def _usual_places(environ: Mapping[str, str]) -> Tuple[str, ...]:
    """The XDG base directory specification: a relative or empty variable counts as not set."""
    base, home = environ.get("XDG_CONFIG_HOME", ""), environ.get("HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(home, ".config") if os.path.isabs(home) else ""
    own = (os.path.join(base, "cronguard", "config.toml"),) if base else ()
    return (*own, SYSTEM_WIDE)


def _content(path: str) -> bytes:
    try:
        # Not blocking: a FIFO without a writer would hold the job up for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        _refuse(path, (error.strerror or "cannot be opened").lower(), error)
    except ValueError as error:
        _refuse(path, "not a path", error)
    try:
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                _refuse(path, "not a regular file")
            content = file.read(LONGEST_BYTES + 1)
    except OSError as error:  # a directory, or a disk that gives way
        _refuse(path, (error.strerror or "cannot be read").lower(), error)
    if len(content) > LONGEST_BYTES:
        _refuse(path, "larger than 1 MiB; is it the right file")
    return content


def _parse(content: bytes, path: str) -> Dict[str, object]:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        document: Dict[str, object] = toml.loads(content.decode("utf-8"))
        return document
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        _refuse(path, f"not UTF-8 (at line {line})", error)
    except (ValueError, RecursionError) as error:
        reason = str(error) if not isinstance(error, RecursionError) else "nested too deeply"
        _refuse(path, f"not TOML: {reason[:1].lower()}{reason[1:]}", error)


def _refuse(path: str, reason: str, cause: Optional[BaseException] = None) -> NoReturn:
    raise ConfigError([f"config: {path}: {reason}"]) from cause
