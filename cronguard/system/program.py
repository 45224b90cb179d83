"""Where this cronguard is, as a crontab has to call it: cron's PATH is short (FR-29)."""

from __future__ import annotations

import os
import sys
from typing import Optional

_NAME = "cronguard"


def own_program() -> Optional[str]:
    """The absolute path of the command that was called; for `python -m cronguard` that beside the interpreter; None if
    there is none. Symbolic links are kept: they may lead to the live release, whose own path does not live long."""
    places = (sys.argv[0], os.path.join(os.path.dirname(sys.executable), _NAME))
    for place in places:
        path = os.path.abspath(place)
        if os.path.basename(path) == _NAME and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def can_keep_runs(user: str) -> bool:
    """Whether `cronguard run`, started by cron as that user, can make its state directory in the home. True for users
    that this host does not know: the crontab is another host's."""
    import pwd

    try:
        account = pwd.getpwnam(user)
    except (KeyError, ValueError, UnicodeError):
        return True
    if account.pw_uid == 0:
        return True
    place = os.path.join(account.pw_dir, ".local", "state", _NAME)
    while place != "/" and not os.path.lexists(place):
        place = os.path.dirname(place)
    try:
        status = os.stat(place)
    except OSError:
        return False
    return bool(status.st_mode & 0o002) or (status.st_uid == account.pw_uid and bool(status.st_mode & 0o200))
