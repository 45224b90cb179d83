"""The two calls of prctl(2) that the standard library lacks. Linux only; elsewhere they say that they did nothing.

Loaded once, before the keeper is forked: nothing in a forked child may have to load a library.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _load_prctl() -> Optional[Any]:
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):  # no dynamic loading (a static interpreter), or not Linux
        return None
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    prctl.restype = ctypes.c_int
    return prctl


_prctl = _load_prctl()


def become_subreaper() -> bool:
    """Let orphaned descendants of this process become its children (PR_SET_CHILD_SUBREAPER(2const)); False: cannot."""
    return _set(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signum: int) -> bool:
    """Get that signal when the parent's thread that forked this process ends (PR_SET_PDEATHSIG(2const))."""
    return _set(_PR_SET_PDEATHSIG, signum)


def _set(option: int, value: int) -> bool:
    return _prctl is not None and _prctl(option, value, 0, 0, 0) == 0
