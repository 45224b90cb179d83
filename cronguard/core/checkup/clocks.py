"""Is there a clock at all: does a crontab line or timer of this host start each job, and does anything follow them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import List, Optional, Sequence

from cronguard.core.checkup.facts import Clocks, Entry, Here, Plan, Starts, Tally
from cronguard.core.checkup.item import OK, SKIPPED, WARNING, Item, counted, listed
from cronguard.core.durations import in_hours

# Beyond so many distances of slots without a start, whatever started the job before has stopped.
ALIVE_GAPS = 2
_UNPLANNED_S = 86400.0


def clock_items(plans: Sequence[Plan], clocks: Clocks, starts: Starts, here: Here) -> List[Item]:
    """Daemons first, then jobs that nothing here starts."""
    findings = [item for plan in plans for item in _clock_of(plan, clocks, starts, here)]
    if not plans:
        findings = [Item("scheduled", SKIPPED, "no job yet")]
    elif not findings:
        text = f"{counted(len(plans), 'job')}: each has its line or timer here, or needs none"
        findings = [Item("scheduled", OK, text)]
    return [*_daemons(clocks, here), *findings, *_unread(clocks)]


def unseen() -> List[Item]:
    """When the host did not let anybody look in time."""
    return [Item("scheduled", SKIPPED, "crontabs and timers could not be read in time")]


def _daemons(clocks: Clocks, here: Here) -> List[Item]:
    wanted = {"cron": "cron", "timer": "systemd"}
    active = [entry for entry in clocks.entries if not entry.problem]
    lacking = {entry.kind for entry in active if not _runs(wanted[entry.kind], clocks.daemons)}
    if "cron" in lacking:
        relying = listed(entry.place for entry in active if entry.kind == "cron")
        text = f"no cron daemon runs here, but {relying} rely on it"
        return [Item("clock daemon", WARNING, text, "start it (systemctl enable --now cron), also in a container")]
    if "timer" in lacking:
        text = "systemd does not run here, but timers rely on it"
        return [Item("clock daemon", WARNING, text, "start the jobs by cron, or boot with systemd")]
    if not clocks.daemons:
        inside = "container" if here.is_container else "host"
        text = f"neither cron nor systemd runs in this {inside}: jobs are started from elsewhere, or not at all"
        return [Item("clock daemon", WARNING, text, "make sure that something outside starts them (Kubernetes, CI)")]
    return [Item("clock daemon", OK, f"{listed(clocks.daemons)} runs")]


def _runs(kind: str, daemons: Sequence[str]) -> bool:
    return any((name == "systemd") == (kind == "systemd") for name in daemons)


def _clock_of(plan: Plan, clocks: Clocks, starts: Starts, here: Here) -> List[Item]:
    lines = [entry for entry in clocks.entries if entry.job == plan.job]
    if any(not entry.problem for entry in lines):
        return []
    tallies = [each for each in starts.tallies if each.job == plan.job and each.scheduled_utc is not None]
    if not _is_planned(plan) and not tallies and not lines:
        return []  # started by hand
    latest = max(tallies, key=_scheduled_at, default=None)
    text = f"{plan.job}: {_what_is_wrong(lines)}; {_who_started(latest, plan, here)}"
    if latest is not None and latest.host != here.host and _is_alive(latest, plan, here):
        return [Item("scheduled", OK, text, "", plan.job)]
    hint = "uncomment, enable or correct it" if lines else "add the line, unless another host or service starts it"
    return [Item("scheduled", WARNING, text, hint, plan.job)]


def _is_planned(plan: Plan) -> bool:
    schedule = plan.spec.schedule if plan.spec is not None else None
    return schedule is not None or (plan.row is not None and plan.row.facts.schedule is not None)


def _what_is_wrong(lines: Sequence[Entry]) -> str:
    if not lines:
        return "no crontab line or timer of this host starts it"
    return listed(f"{entry.place}: {entry.problem}" for entry in lines)


def _who_started(latest: Optional[Tally], plan: Plan, here: Here) -> str:
    if latest is not None and latest.scheduled_utc is not None:
        ago = in_hours((here.now_utc - latest.scheduled_utc).total_seconds())
        where = "this host" if latest.host == here.host else latest.host
        return f"a clock on {where} last started it {ago} ago"
    last = plan.row.last_run if plan.row is not None else None
    return f"no clock started it lately, the last run was on {last.host}" if last is not None else "it has never run"


def _is_alive(latest: Tally, plan: Plan, here: Here) -> bool:
    gap_s = plan.gap_s if plan.gap_s is not None else _UNPLANNED_S
    return here.now_utc - _scheduled_at(latest) < timedelta(seconds=max(60.0, gap_s * ALIVE_GAPS))


def _scheduled_at(tally: Tally) -> datetime:
    return tally.scheduled_utc or tally.latest_utc


def _unread(clocks: Clocks) -> List[Item]:
    if not clocks.unread:
        return []
    text = f"not ours to read: {listed(clocks.unread)}; lines in there were not seen"
    return [Item("scheduled", SKIPPED, text, "run doctor as root too, to have every crontab looked at")]

