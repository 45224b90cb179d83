"""Every setting of a job, in one table: the command line, TOML, the environment, help and README all follow it.

A setting that is not in the table does not exist anywhere. Values are judged by one parser whatever source they came
from. From the environment only the variables named here are read, never the key, redo, lock or conflict policy: a
nested `cronguard run` would inherit those from the outer one. An empty variable counts as not set.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

from cronguard.core import values
from cronguard.core.values import Parser


class Setting(NamedTuple):
    """`name` as in TOML; `kind` is `text`, `duration`, `size`, `number`, `factor` or `flag`: which TOML types it takes;
    `default` as the user would write it, None if there is no value to fall back on and `absent` describes what happens
    then; `environment` a variable's name; `secret`: masked when shown."""

    name: str
    kind: str
    parse: Parser
    default: Optional[str]
    metavar: str
    help: str
    environment: Optional[str] = None
    absent: str = "none"
    secret: bool = False

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def shown_default(self) -> str:
        return self.absent if self.default is None else self.default


def _text(name: str, parse: Parser, metavar: str, help_: str, environment: str = "", absent: str = "none") -> Setting:
    return Setting(name, "text", parse, None, metavar, help_, environment or None, absent)


def _choice(name: str, choices: Tuple[str, ...], help_: str, environment: str = "") -> Setting:
    return Setting(name, "text", values.one_of(*choices), choices[0], "|".join(choices), help_, environment or None)


def _duration(name: str, parse: Parser, default: Optional[str], help_: str, environment: str = "") -> Setting:
    return Setting(name, "duration", parse, default, "DUR", help_, environment or None)


def _flag(name: str, help_: str) -> Setting:
    return Setting(name, "flag", values.flag, "false", "", help_)


_ANY_DURATION = values.duration()
_COUNT = values.whole_number(1, 1_000_000)
_KEYS = ("slot", "day", "hour", "week", "month", "none")

SETTINGS: Tuple[Setting, ...] = (
    _text("cron", values.any_text, "EXPR", "the schedule it is started by: five fields, as Debian's cron reads them"),
    _text("calendar", values.any_text, "EXPR", "the schedule, as systemd's OnCalendar (Python 3.10 or newer)"),
    _duration("every", values.period, None, "the schedule: every so often, 1s to 12h"),
    _text("timezone", values.any_text, "ZONE", "the company's time zone", "CRONGUARD_TIMEZONE", absent="the host's"),
    Setting(
        "key",
        "text",
        values.one_of(*_KEYS),
        None,
        "|".join(_KEYS),
        "what `once` means: once a slot, a day ...; none: only the lock protects",
        absent="slot with a schedule, else none",
    ),
    _text("run_key", values.run_key, "TEXT", "the key itself, instead of one worked out from the time"),
    _duration("timeout", values.no_limit_or_duration, "24h", "hard limit; 0: none", "CRONGUARD_TIMEOUT"),
    _duration("grace", _ANY_DURATION, "10s", "from TERM to KILL", "CRONGUARD_GRACE"),
    _choice("on_conflict", ("skip", "wait", "fail"), "when somebody else holds the lock"),
    _duration("wait", _ANY_DURATION, "10m", "how long `--on-conflict wait` waits"),
    _text("lock", values.lock_name, "NAME", "the lock's name; jobs may share one", absent="the job's name"),
    _duration("lease", values.duration(15, 86400), "120s", "how long a claim outlives a dead host; at least 15s"),
    _choice("redo", ("failed", "never"), "may a slot that was tried without success be run again"),
    _choice("catch_up", ("latest", "oldest"), "which due slot to take: the latest, or the oldest missing one"),
    _duration("look_back", values.duration(1), "7d", "how far back `--catch-up oldest` looks"),
    _duration("max_late", values.none_or(_ANY_DURATION), None, "skip when the slot is older than that"),
    _duration("jitter", _ANY_DURATION, "0", "delay the start by up to that: stable per job and host"),
    Setting("retries", "number", values.whole_number(0, 1000), "0", "N", "further attempts within this run"),
    _duration("retry_delay", _ANY_DURATION, "30s", "pause before the first retry; doubles each time"),
    Setting(
        "ping",
        "text",
        values.none_or(values.endpoint),
        None,
        "URL",
        "heartbeat URL, or file:PATH or env:NAME holding it",
        "CRONGUARD_PING",
        secret=True,
    ),
    _choice(
        "ping_style",
        ("auto", "healthchecks", "uptime-kuma", "plain"),
        "what the heartbeat service understands",
        "CRONGUARD_PING_STYLE",
    ),
    _flag("quiet", "print nothing on success, the tail of the output on failure"),
    _flag("no_capture", "let the command inherit stdout and stderr; no tail is kept"),
    Setting("tail", "size", values.size(16 << 20), "64k", "SIZE", "how much of the end of the output is kept"),
    _flag("shell", "CMD is one string for /bin/sh -c"),
    _text("chdir", values.any_text, "DIR", "where the command runs; a symlink is resolved at the start", absent="."),
    _choice("stdin", ("null", "inherit"), "what the command reads from"),
    _choice("leftovers", ("leave", "kill"), "what becomes of descendants that outlive the command"),
    _text("release", values.any_text, "TEXT", "version or commit, for the record", "CRONGUARD_RELEASE"),
    _choice(
        "on_store_error",
        ("fail", "run"),
        "when the store cannot be reached: do not run, or run under the local lock only",
        "CRONGUARD_ON_STORE_ERROR",
    ),
    Setting(
        "skip_exit_code",
        "number",
        values.whole_number(0, 255),
        "75",
        "N",
        "exit code when the command was not started and the slot is not done",
    ),
)

# When silence or trouble is worth an alert. Settings of a job like the others, but options of `check` and not of `run`.
ALERTS: Tuple[Setting, ...] = (
    _choice("slots", ("latest", "each"), "does a later success excuse a missed slot, or must each slot have its own"),
    _duration("allow_late", _ANY_DURATION, "15m", "how long after a slot it may still have no success or running run"),
    Setting(
        "allow_long",
        "duration",
        values.none_or(values.duration(1)),
        None,
        "DUR",
        "how long a run may take",
        absent="its timeouts, graces and pauses",
    ),
    Setting(
        "max_age",
        "duration",
        values.none_or(values.duration(1)),
        None,
        "DUR",
        "how old the last success may be",
        absent="without a schedule twice the usual interval",
    ),
    Setting("max_failures", "number", _COUNT, "3", "N", "so many failures in a row are too many"),
    Setting("max_skips", "number", _COUNT, "5", "N", "so many skips in a row are too many"),
    Setting("slow_factor", "factor", values.factor, "3", "X", "a run is slow beyond so many times the usual duration"),
)

# How effects are treated that happen once. Settings of a job like the others, but options of `once` and not of `run`.
EFFECTS: Tuple[Setting, ...] = (
    _choice("effect", ("at-most-once", "at-least-once"), "when it may not have happened: leave it, or do it again"),
    _choice("on_unknown", ("ask", "redo", "skip"), "at least once, and nobody knows whether it happened: what then"),
)

# Of `once`: options. No variable sets any of them, or a `once` within another would inherit them.
ONCE: Tuple[Setting, ...] = (
    *EFFECTS,
    _text("job", values.job_name, "JOB", "the job whose effect it is", absent="the surrounding run's"),
    _flag("per_slot", "once for each run key of the job, and not once for ever"),
    _duration("timeout", values.no_limit_or_duration, "24h", "hard limit; 0: none"),
    _duration("grace", _ANY_DURATION, "10s", "from TERM to KILL"),
)

# Of `items work`: options, and what [jobs.JOB.items] may hold besides `command`. No variable sets any of them.
ITEMS: Tuple[Setting, ...] = (
    Setting("batch", "number", values.whole_number(1, 1000), "10", "N", "so many items are reserved at a time"),
    Setting(
        "budget",
        "duration",
        values.none_or(values.duration(1)),
        None,
        "DUR",
        "how long the pass may take; no item is started that might not end within it",
        absent="the time that a surrounding run has left",
    ),
    _duration("reserve", values.duration(1, 86400), "2m", "how long items stay reserved for a worker that died"),
    Setting(
        "per_group",
        "number",
        values.none_or(_COUNT),
        None,
        "N",
        "at most so many items of each group in this pass",
    ),
    Setting("attempts", "number", values.whole_number(1, 1000), "5", "N", "after so many failures an item is dead"),
    Setting("parallel", "number", values.whole_number(1, 64), "1", "N", "so many handlers at the same time"),
    _duration("timeout", values.duration(0.001, 86400), "30s", "hard limit for each handler"),
    _duration("grace", _ANY_DURATION, "5s", "from TERM to KILL"),
    _duration("backoff", _ANY_DURATION, "30s", "pause before an item's second attempt; doubles each time, up to 1h"),
    Setting(
        "group_failures",
        "number",
        _COUNT,
        "5",
        "N",
        "after so many failures in a row a group is left alone for this pass",
    ),
    _text("group", values.any_text, "G", "only items of this group", absent="all groups"),
)

# Of these only one can be meant: a source that sets one overrules the others in lesser sources.
RIVALS: Tuple[Tuple[str, ...], ...] = (("cron", "calendar", "every"), ("key", "run_key"))

# What a table of the file may hold besides settings: name to what must stand there.
EXTRAS: Dict[str, str] = {
    "store": "text",
    "command": "a list of strings",
    "env": "a table of strings",
    "items": "a table of settings for `items work`",
}

# Of [notify], beside `urls`.
NOTIFY: Dict[str, Setting] = {
    setting.name: setting
    for setting in (
        _duration("remind", values.duration(1), "24h", "how often people are reminded of what is still wrong"),
        Setting(
            "ping",
            "text",
            values.none_or(values.endpoint),
            None,
            "URL",
            "heartbeat of check itself, sent when it got to its end, whatever it found",
            secret=True,
        ),
    )
}

# Options of `run` that a file or variable must never switch on for good.
COMMAND_LINE_ONLY = ("force", "dry_run", "config", "log_format", "state_dir")

BY_NAME: Dict[str, Setting] = {setting.name: setting for setting in (*SETTINGS, *ALERTS, *EFFECTS)}


def rivals_of(name: str) -> Tuple[str, ...]:
    """The settings of which `name` is one alternative, itself included; only itself if it has no rivals."""
    return next((group for group in RIVALS if name in group), (name,))
