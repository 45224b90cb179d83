"""What jobs lean on outside the store: their heartbeat's host, their program, the release that it belongs to."""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence

from cronguard.core.checkup.facts import Beat, Clocks, Plan, Program
from cronguard.core.checkup.item import FAILURE, OK, SKIPPED, WARNING, Item, listed
from cronguard.core.model import JobRow


def heartbeat_items(beats: Sequence[Beat], plans: Sequence[Plan]) -> List[Item]:
    """Reachable or not; nothing was pinged."""
    items = []
    for beat in beats:
        whose = f"{beat.endpoint} of {listed(beat.jobs)}"
        job = beat.jobs[0] if len(beat.jobs) == 1 else None
        if beat.problem:
            hint = "correct the URL, or let this host reach it (firewall, proxy, certificates)"
            items.append(Item("heartbeat", FAILURE, f"{whose}: {beat.problem}", hint, job))
        else:
            text = f"{whose} answers ({max(1, round(beat.took_s * 1000))} ms); it was not pinged"
            items.append(Item("heartbeat", OK, text, "", job))
    none = "no job whose settings are known on this host has one" if plans else "no job yet"
    return items or [Item("heartbeat", SKIPPED, none)]


def alert_items(clocks: Clocks, has_channels: bool, beats: Sequence[Beat]) -> List[Item]:
    """Would anybody hear of a job that does not start? Either a monitor expects its ping, or somebody looks."""
    if clocks.checks:
        channels = "[notify] urls" if has_channels else "cron's mail or the unit's log alone: no [notify] urls"
        return [Item("alerts", OK, f"`cronguard check` is started on this host; it tells people by {channels}")]
    if beats:
        text = "no line here starts `cronguard check`; what has no heartbeat fails in silence"
        return [Item("alerts", OK, text)]
    text = "nobody would hear of a job that does not start: no heartbeat, and no line here runs `cronguard check`"
    return [Item("alerts", WARNING, text, "put `*/5 * * * * cronguard check --notify` into the crontab of one host")]


def release_items(programs: Optional[Sequence[Program]], rows: Mapping[str, JobRow], host: str) -> List[Item]:
    """Is what a job starts there, and the live release?"""
    if programs is None:
        return [Item("program", SKIPPED, "the programs of jobs could not be looked at in time")]
    items: List[Item] = []
    well = []
    for program in programs:
        if program.problem:
            items.append(Item("program", FAILURE, f"{program.job}: {program.problem}",
                              "correct the path, or finish the deploy that makes it", program.job))
            continue
        moved = _moved(program, rows.get(program.job), host)
        if moved:
            items.append(Item("program", OK, moved, "", program.job))
        else:
            well.append(program.job)
    if well:
        items.append(Item("program", OK, f"{listed(well)}: there and executable"))
    return items or [Item("program", SKIPPED, "no job's command is known on this host")]


def _moved(program: Program, row: Optional[JobRow], host: str) -> str:
    last = row.last_run if row is not None else None
    if last is None or last.host != host or not program.links or not last.directory:
        return ""
    if last.directory == program.folder:
        return f"{program.job}: {listed(program.links)} leads to {program.folder}, where the last run was"
    return f"{program.job}: {listed(program.links)} leads to {program.folder} now; the last run was in {last.directory}"
