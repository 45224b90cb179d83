"""Time zones by name, and nothing but names of the tz database, spelled as it spells them.

Never a silent UTC: a name that is not known is an error that quotes it and says which one may be meant. Refused by
rule, for they mean something else on every host or on none: paths, `:Europe/Rome` and POSIX strings (`CET-1CEST,...`:
values of TZ, not names), names in quotes or with blanks, `localtime` and `posixrules` (the host's), `Factory` (which
means "nobody has set it"), `posix/...` and `right/...` (the latter counts leap seconds). `Z` is no name either; UTC
and its aliases are, and need no database at all (FR-94, FR-98).

The database is the system's where there is one, else the tzdata package's: zoneinfo's own order (PEP 615).
"""

from __future__ import annotations

import os
import sys
from datetime import timezone, tzinfo
from importlib import import_module
from types import ModuleType
from typing import Iterable, Optional

from cronguard.errors import ScheduleError

# The links to Etc/UTC in the tz database's `backward` and `etcetera`. GMT is a zone of its own there.
_UTC_NAMES = frozenset(("UTC", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"))
_NOT_ZONES = frozenset(("Factory", "SECURITY"))
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LETTERS = _CAPITALS | frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-+/")


def load_zone(name: str) -> tzinfo:
    """The zone of that name. ScheduleError, with the nearest name as a hint, for anything else."""
    if is_utc(name):
        return timezone.utc
    if not _is_plausible(name):
        raise _unknown(name)
    try:
        zone: tzinfo = _zoneinfo().ZoneInfo(name)
        return zone
    except (LookupError, ValueError, OSError):
        # Not there, or a directory (`Europe`).
        raise _unknown(name) from None


def is_utc(name: str) -> bool:
    """Whether a name stands for UTC itself; there keys and times end in `Z`."""
    return name in _UTC_NAMES


def tzdata_version() -> str:
    """The release of the database that zones come from, such as `2026f`; `none` without one, `unknown` if it is silent.

    Two hosts whose rows differ in it may have computed a slot differently.
    """
    for directory in _zoneinfo().TZPATH:
        if os.path.isdir(os.path.join(directory, "Europe")):
            return _version_in(directory)
    try:
        return str(import_module("tzdata").IANA_VERSION)
    except ImportError:
        return "none"


def _version_in(directory: str) -> str:
    try:
        with open(os.path.join(directory, "tzdata.zi"), encoding="ascii", errors="replace") as source:
            mark, word, release = [*source.readline().split(), "", "", ""][:3]
    except OSError:
        return "unknown"
    return release if (mark, word) == ("#", "version") else "unknown"


def _is_plausible(name: str) -> bool:
    # Zones begin with a capital; `localtime`, `posix/` and files that lie about there (`leapseconds`) do not. To be
    # settled before zoneinfo sees the name: it takes `./Europe/Rome`, and its backport crashes on a file that is no
    # zone (pganssle/zoneinfo#87).
    return (
        name[:1] in _CAPITALS
        and all(letter in _LETTERS for letter in name)
        and "" not in name.split("/")
        and name not in _NOT_ZONES
    )


def _unknown(name: str) -> ScheduleError:
    known = _zoneinfo().available_timezones()
    if not known:
        return ScheduleError(
            f"--timezone: no time zone database: {name!r}: neither the system nor Python has one",
            "install the package tzdata, the system's or Python's",
        )
    nearest = _nearest(name, known)
    hint = f"did you mean {nearest}?" if nearest else "write a name of the tz database, such as Europe/Rome or UTC"
    return ScheduleError(f"--timezone: unknown time zone: {name!r}", hint)


def _nearest(name: str, known: Iterable[str]) -> Optional[str]:
    import difflib

    by_folded = {zone.lower(): zone for zone in sorted(known) if _is_plausible(zone)}
    by_folded["z"] = "UTC"  # what it means in ISO 8601
    wanted = name.strip(" \t'\":").replace(" ", "_").lower()
    close = [wanted] if wanted in by_folded else difflib.get_close_matches(wanted, by_folded, n=1, cutoff=0.75)
    return by_folded[close[0]] if close else None


def _zoneinfo() -> ModuleType:
    if sys.version_info >= (3, 9):
        import zoneinfo
    else:
        from backports import zoneinfo
    return zoneinfo
