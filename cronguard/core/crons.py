"""The crons that may read a crontab, and in what they differ as far as a crontab's author must know.

Sources: for Debian's cron 3.0pl1 cron(8), "Special considerations exist when the clock is changed by less than 3
hours", and trials with its programs; for cronie crontab(5) and its source; for busybox crond.c; for supercronic its
pull request 80 (CRON_TZ) and the cronexpr library; systemd-cron makes timers of the lines (systemd.time(7)), and takes
TZ since its pull request 110 and `%` since its issue 146 (2.4).
"""

from __future__ import annotations

from typing import NamedTuple, Tuple


class Cron(NamedTuple):
    """One cron. `name` is what people call it.

    `in_gap`: what becomes of a fixed time that the clock jumps over: `after` (run at once behind the jump) or `never`.
    `in_fold`: what becomes of one that the clock shows `once` or `twice`. Wildcard jobs follow the clock everywhere,
    and so do all jobs of a crontab with a zone of its own.
    `zone_variable`: the setting that gives schedules their zone, empty for none. `splits_percent`: `%` ends a command.
    `takes_dash`: a `-` before the schedule is a flag. `bad_line`: what comes of a line that it cannot read.
    `needs_newline`: a last line without one is lost like a bad line. `longest_command`: bytes that a command may have,
    `%` and standard input included; 0 for no limit to speak of.
    """

    kind: str
    name: str
    in_gap: str
    in_fold: str
    zone_variable: str
    splits_percent: bool
    takes_dash: bool
    bad_line: str
    needs_newline: bool
    longest_command: int


_WHOLE_FILE = "ignores the whole file for it"
_LINE = "ignores the line"
_START = "does not start with it"

CRONS = {
    cron.kind: cron
    for cron in (
        Cron("debian", "Debian's cron", "after", "once", "", True, False, _WHOLE_FILE, True, 998),
        Cron("cronie", "cronie", "after", "once", "CRON_TZ", True, True, _LINE, True, 0),
        Cron("busybox", "busybox crond", "never", "twice", "", False, False, _LINE, False, 0),
        Cron("supercronic", "supercronic", "never", "twice", "CRON_TZ", False, False, _START, False, 0),
        Cron("systemd", "systemd-cron", "never", "once", "TZ", True, True, _LINE, False, 0),
    )
}
KINDS: Tuple[str, ...] = tuple(CRONS)
