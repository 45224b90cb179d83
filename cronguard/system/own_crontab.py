"""This user's crontab by way of crontab(1), the only program that may touch the spool: it tells cron, too.

What it prints and takes are bytes. Everything that goes wrong is a CronguardError with the program's own words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Mapping, Tuple

from cronguard.errors import CronguardError
from cronguard.system.saving import keep_copy

_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"
_PATIENCE_S = 30.0


def read_own_crontab(environ: Mapping[str, str]) -> bytes:
    """What `crontab -l` prints."""
    return _run(environ, ("-l",), b"")


def install_own_crontab(new: bytes, environ: Mapping[str, str]) -> None:
    """`crontab -`, and a look whether that is what is there now."""
    _run(environ, ("-",), new)
    if read_own_crontab(environ) != new:
        raise CronguardError("crontab: it took the text, but `crontab -l` prints another one", "look at it")


def keep_own_crontab(old: bytes, stamp: str, environ: Mapping[str, str]) -> str:
    """A copy in the home directory, readable for its owner only; its path."""
    home = environ.get("HOME") or os.path.expanduser("~")
    try:
        return keep_copy(os.path.join(home, "crontab"), old, stamp)
    except OSError as error:
        why = (error.strerror or "failed").lower()
        raise CronguardError(f"crontab: no backup can be kept: {home}: {why}; nothing was changed") from None


def _run(environ: Mapping[str, str], arguments: Tuple[str, ...], text: bytes) -> bytes:
    program = shutil.which("crontab", path=environ.get("PATH") or _USUAL_PATH)
    if program is None:
        raise CronguardError("crontab: no such program here", "name a file, or - for stdin")
    try:
        done = subprocess.run((program, *arguments), input=text, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CronguardError(f"crontab {' '.join(arguments)}: {error}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
        raise CronguardError(f"crontab {' '.join(arguments)}: {said}")
    return done.stdout
