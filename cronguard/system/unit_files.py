"""systemd's unit files with their drop-ins, as far as they lie beside each other. Nothing of systemd is asked."""

from __future__ import annotations

import os
from typing import List, Tuple

from cronguard.errors import UsageError
from cronguard.system.crontabs import read_source

_SERVICE, _TIMER, _DROP_IN = ".service", ".timer", ".conf"


def read_unit(path: str, must_be_there: bool = True) -> Tuple[str, ...]:
    """The text of a unit and of the drop-ins in `PATH.d`, by name. UsageError for one that cannot be read."""
    if not must_be_there and not os.path.lexists(path):
        return ()
    folder = f"{path}.d"
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_DROP_IN))
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise UsageError(f"cannot read: {folder}: {(error.strerror or 'failed').lower()}") from None
    files: List[str] = [path, *(os.path.join(folder, name) for name in names)]
    return tuple(read_source(file).data.decode("utf-8", "surrogateescape") for file in files)


def timer_of(service: str) -> str:
    """The path of the timer that starts a service unless told otherwise (systemd.timer(5), Unit=)."""
    return service[: -len(_SERVICE)] + _TIMER
