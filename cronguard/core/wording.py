"""A schedule in words, for people: `at 02:30 every day`. Never used to decide anything, never on the path of a run."""

from __future__ import annotations

from datetime import datetime

from cronguard.core.cron import NICKNAMES
from cronguard.core.model import ScheduleText

_ANY_TIME = datetime(2000, 1, 1)  # cronsim wants a start; its words do not depend on it


def in_words(schedule: ScheduleText) -> str:
    """The schedule as one would say it, or as it was written where nobody has words for it."""
    if schedule.kind == "every":
        return f"every {schedule.text}"
    if schedule.kind == "calendar":
        return f"at {schedule.text} (systemd calendar)"
    from cronsim import CronSim, CronSimError

    try:
        words = CronSim(NICKNAMES.get(schedule.text.strip().lower(), schedule.text), _ANY_TIME).explain()
    except CronSimError:  # valid for Debian's cron, not for it
        return f"at {schedule.text}"
    return words[:1].lower() + words[1:]
