"""A crontab as systemd units: for each job a service, guarded, and a timer that fires when cron would.

Exactly where the two can be brought together: a day-of-month *or* day-of-week is two OnCalendar lines, standard input
is StandardInputData=, cron's environment is spelt out. Not the same, and said where it matters: systemd fires nothing
in the hour that a clock change skips, and only once in one that it repeats; output goes to the journal and is not
mailed. The guard is told the schedule as `--cron`, so that keys and history go on where cron left off.
Sources: systemd.time(7), systemd.timer(5), systemd.exec(5), "Quoting" in systemd.syntax(7) and systemd.service(5).
"""

from __future__ import annotations

import base64
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from cronguard.core.cron import parse_cron
from cronguard.core.crontab import Job, Line, parse_crontab, split_percent
from cronguard.core.guard_plans import USUAL_SHELL, Plan, Remark, Wishes, named, plan_for
from cronguard.core.guards import guarding, one_blank, original
from cronguard.core.wrapping import guard_words, unwrap

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_PREFIX = "cronguard-"  # a logrotate.service in /etc would silently take the place of the system's own
# What cron sets, for a job that has no setting of that name.
_OF_CRON: Mapping[bytes, bytes] = {b"SHELL": USUAL_SHELL, b"PATH": b"/usr/bin:/bin"}


class Unit(NamedTuple):
    """A unit file."""

    name: str
    text: str


class Units(NamedTuple):
    """`guarded`: jobs with a service and a timer. `left`: jobs without."""

    units: Tuple[Unit, ...]
    remarks: Tuple[Remark, ...]
    guarded: int
    left: int


def calendars(schedule: str) -> Tuple[str, ...]:
    """The OnCalendar expressions that together name the times of a cron expression. ScheduleError for none."""
    pattern = parse_cron(schedule).pattern
    months = _numbers(pattern.months, 1, 12)
    days = _numbers(sorted(pattern.days), 1, 31)
    weekdays = "" if len(pattern.weekdays) == 7 else ",".join(_runs(sorted(pattern.weekdays), _DAYS.__getitem__)) + " "
    clock = f"{_numbers(pattern.hours, 0, 23)}:{_numbers(pattern.minutes, 0, 59)}:00"
    if not pattern.either:
        return (f"{weekdays}*-{months}-{days} {clock}",)
    if days == "*" or not weekdays:
        return (f"*-{months}-* {clock}",)
    return (f"*-{months}-{days} {clock}", f"{weekdays}*-{months}-* {clock}")


def units_of(data: bytes, flavour: Optional[str], wishes: Wishes, owner: str) -> Units:
    """Services and timers for a crontab's jobs, guarded or not yet. `owner`: as whom a user crontab's jobs run."""
    names = _names_given(data, flavour, wishes)
    plans: List[Plan] = []
    remarks: List[Remark] = []
    for line in parse_crontab(unwrap(data, flavour, wishes.cron).data, flavour, wishes.cron.kind).lines:
        if line.kind == "unparsable":
            remarks.append(Remark(line.number, f"no unit: not understood: {line.problem}"))
        elif line.job is not None:
            plan = _plan(line, line.job, names, wishes)
            if isinstance(plan, str):
                remarks.append(Remark(line.number, f"no unit: {plan}"))
            else:
                plans.append(plan)
    jobs = sum(line.job is not None for line in parse_crontab(data, flavour).lines)
    units = [unit for plan in named(plans, wishes.taken) for unit in (_service(plan, wishes, owner), _timer(plan))]
    return Units(tuple(units), tuple(sorted(remarks)), len(plans), jobs - len(plans))


def in_quotes(text: str) -> str:
    """A word of a unit file that stands for that text, `%` and `"` and all, but for `$`, which only commands expand."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in escaped) + '"'


def _names_given(data: bytes, flavour: Optional[str], wishes: Wishes) -> Dict[int, str]:
    """Of lines that wrap has guarded: unwrapping keeps the numbers of lines."""
    return {
        line.number: (guarding(line.job) or ("",))[0]
        for line in parse_crontab(data, flavour).lines
        if line.job is not None and original(line.job, wishes.cron) is not None
    }


def _plan(line: Line, job: Job, names: Mapping[int, str], wishes: Wishes) -> Union[Plan, str]:
    if guarding(job) is not None:
        return "guarded by hand: its command can stand behind ExecStart= as it is, with % written %% and $ written $$"
    plan = plan_for(line, job, wishes)
    if isinstance(plan, str):
        return plan
    for what in (job.written, job.user or b"", *job.environment.values()):
        if not _is_text(what):
            return "has bytes that are no UTF-8, which a unit file cannot have"
    odd = [name for name in job.environment if not (name.isascii() and name.decode("ascii").isidentifier())]
    if odd:
        return f"systemd takes no setting of the name {odd[0].decode('utf-8', 'backslashreplace')!r}"
    return plan._replace(name=names.get(line.number, ""))


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _service(plan: Plan, wishes: Wishes, owner: str) -> Unit:
    job = plan.job
    command, stdin = split_percent(job.written, wishes.cron.kind) if wishes.cron.splits_percent else (job.written, None)
    line = in_quotes(command.decode("utf-8")).replace("$", "$$")
    shell = "--shell --" if plan.shell == USUAL_SHELL else f"-- {plan.shell.decode('utf-8')} -c"
    from_stdin = " --stdin inherit" if stdin is not None else ""
    lines = [
        *_heading(plan, "service"),
        "[Service]",
        "Type=oneshot",
        f"User={(job.user or owner.encode()).decode('utf-8')}",
        "WorkingDirectory=~",
        *(f"Environment={in_quotes(pair)}" for pair in _environment(job)),
        *_input(stdin),
        f"ExecStart={guard_words(plan, wishes)}{from_stdin} {shell} {line}",
        "# 75: another start has the slot in hand; nothing was started and nothing is wrong.",
        "SuccessExitStatus=75",
        "# cronguard ends the command's tree by itself and records that.",
        "KillMode=mixed",
    ]
    return Unit(f"{_PREFIX}{plan.name}.service", "\n".join(lines) + "\n")


def _timer(plan: Plan) -> Unit:
    zone = f" {plan.zone}" if plan.zone else ""
    lines = [
        *_heading(plan, "timer"),
        "[Timer]",
        *(f"OnCalendar={calendar}{zone}" for calendar in calendars(plan.job.schedule)),
        "# systemd's default moves every start by up to a minute.",
        "AccuracySec=1s",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return Unit(f"{_PREFIX}{plan.name}.timer", "\n".join(lines) + "\n")


def _heading(plan: Plan, kind: str) -> Tuple[str, ...]:
    what = "Job" if kind == "service" else "Starts job"
    return ("[Unit]", f"Description={what} {plan.name}, in cron: {one_blank(plan.job.schedule)}", "")


def _environment(job: Job) -> List[str]:
    """Cron's and the crontab's; HOME, LOGNAME and USER are systemd's to set, from User=."""
    settings = {**_OF_CRON, **job.environment}
    return [f"{name.decode('ascii')}={value.decode('utf-8')}" for name, value in settings.items()]


def _input(stdin: Optional[bytes]) -> Tuple[str, ...]:
    if not stdin:
        return ()
    return ("StandardInput=data", f"StandardInputData={base64.b64encode(stdin).decode('ascii')}")


def _numbers(values: Sequence[int], low: int, high: int) -> str:
    """A field: `*` for all, `0/15` for steps up to the end, else a list with ranges."""
    if len(values) == high - low + 1:
        return "*"
    step = values[1] - values[0] if len(values) > 2 else 0
    if step > 1 and list(values) == list(range(values[0], high + 1, step)):
        return f"{values[0]}/{step}"
    return ",".join(_runs(values, str))


def _runs(values: Iterable[int], name: Callable[[int], str]) -> List[str]:
    """Neighbours as ranges, if there are three of them."""
    runs: List[List[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    found: List[str] = []
    for run in runs:
        found += [f"{name(run[0])}..{name(run[-1])}"] if len(run) > 2 else [name(value) for value in run]
    return found
