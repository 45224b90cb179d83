"""The two clocks: the wall clock that names slots and rows, and the boot-time clock that every deadline counts on.

Tests may set the wall clock; never the boot-time clock, so that no test can bend a deadline. Nothing here sleeps.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from typing import Mapping, Optional

from cronguard.errors import ConfigError

# CLOCK_BOOTTIME also counts the time that the machine was suspended: a lease runs on in the database meanwhile.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_s() -> float:
    """Seconds since boot, suspended ones included; monotonic time where there is no such clock."""
    return time.clock_gettime(_BOOT_CLOCK)


# Loaded with the first module that needs a clock: near enough to the start of the process for a test clock.
_LOADED_AT_S = boot_s()


def now_utc(environ: Mapping[str, str] = os.environ) -> datetime:
    """The wall clock, aware and in UTC. With `CRONGUARD_TEST=1`, `CRONGUARD_TEST_NOW` is where it started from.

    Raises ConfigError when that is not an ISO 8601 instant with an offset."""
    text = _test_value("CRONGUARD_TEST_NOW", environ)
    if text is None:
        return datetime.now(timezone.utc)
    return _instant(text) + timedelta(seconds=boot_s() - _LOADED_AT_S)


def test_notice(environ: Mapping[str, str]) -> Optional[str]:
    """The line that tells that the clock or the host is not the real one; None when both are."""
    texts = [
        f"{what} is {value}"
        for what, value in (
            ("the time", _test_value("CRONGUARD_TEST_NOW", environ)),
            ("the host", _test_value("CRONGUARD_TEST_HOST", environ)),
        )
        if value is not None
    ]
    return f"for a test, {' and '.join(texts)} (CRONGUARD_TEST=1)" if texts else None


test_notice.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it by its name


def _test_value(name: str, environ: Mapping[str, str]) -> Optional[str]:
    return environ.get(name) if environ.get("CRONGUARD_TEST") == "1" else None


def _instant(text: str) -> datetime:
    try:
        # Python 3.8 to 3.10 know neither the Z nor fractions other than of three or six digits.
        whole, dot, rest = text.replace("Z", "+00:00").partition(".")
        offset = rest.lstrip("0123456789")
        fraction = rest[: len(rest) - len(offset)]
        at = datetime.fromisoformat(f"{whole}{dot}{fraction.ljust(6, '0')}{offset}" if dot else whole)
    except ValueError:
        at = datetime.min
    if at.tzinfo is None:
        raise ConfigError([f"CRONGUARD_TEST_NOW: {text!r}: not an ISO 8601 instant with an offset"])
    return at.astimezone(timezone.utc)
