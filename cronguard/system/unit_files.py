"""systemd's unit files with their drop-ins, as far as they lie beside each other or, for a unit of the system's, in
/etc, where its administrator puts them (systemd.unit(5)). Nothing of systemd is asked."""

from __future__ import annotations

import os
from typing import List, Tuple

from cronguard.errors import UsageError
from cronguard.system.crontabs import read_source

_SERVICE, _TIMER, _DROP_IN = ".service", ".timer", ".conf"
_OWN = "/etc/systemd/system"
_OF_PACKAGES = ("/lib/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system")


def read_unit(path: str, must_be_there: bool = True) -> Tuple[str, ...]:
    """The text of a unit and of its drop-ins, by name; one in /etc counts instead of a package's of that name.
    UsageError for one that cannot be read."""
    if not must_be_there and not os.path.lexists(path):
        return ()
    files = {name: file for folder in dict.fromkeys((f"{path}.d", drop_ins_of(path))) for name, file in _in(folder)}
    ordered = [path, *(files[name] for name in sorted(files))]
    return tuple(read_source(file).data.decode("utf-8", "surrogateescape") for file in ordered)


def drop_ins_of(path: str) -> str:
    """The folder that a unit's drop-ins belong into: not that of a package, which its next version may replace."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(_OWN if folder in _OF_PACKAGES else os.path.dirname(path), f"{name}.d")


def _in(folder: str) -> List[Tuple[str, str]]:
    """Names and paths of its drop-ins."""
    try:
        return [(name, os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(_DROP_IN)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"cannot read: {folder}: {(error.strerror or 'failed').lower()}") from None


def timer_of(service: str) -> str:
    """The path of the timer that starts a service unless told otherwise (systemd.timer(5), Unit=)."""
    return service[: -len(_SERVICE)] + _TIMER
