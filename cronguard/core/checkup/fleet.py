"""All hosts that ran lately, by what their rows say: zones, time zone data, versions, and who starts what."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from cronguard.core.checkup.facts import Entry, Here, Plan, Starts, Tally
from cronguard.core.checkup.item import FAILURE, OK, SKIPPED, WARNING, Item, counted, listed

LATELY_DAYS = 7
_UPDATE = "pip install -U tzdata, or the system's package"
_UNTOLD = ("", "unknown", "none")
Pairs = Mapping[str, Set[str]]


def tzdata_items(here: Here, tallies: Optional[Sequence[Tally]]) -> List[Item]:
    """Two releases may place the same slot differently. `tallies`: None when the store does not tell."""
    if here.tzdata == "none":
        return [Item("tzdata", WARNING, "there is no time zone database", f"install one: {_UPDATE}")]
    if tallies is None:
        return [Item("tzdata", SKIPPED, f"{here.tzdata} here; what other hosts have could not be asked of the store")]
    by_release = _hosts_by(tallies, "tzdata", here.tzdata, here.host)
    known = {release: hosts for release, hosts in by_release.items() if release not in _UNTOLD}
    if len(known) > 1:
        text = f"hosts that ran in the last {LATELY_DAYS} days differ: {_told(known)}"
        return [Item("tzdata", WARNING, text, f"bring them to one: {_UPDATE}")]
    if here.tzdata == "unknown":
        return [Item("tzdata", SKIPPED, "this system's time zone database does not say its release")]
    hosts = counted(len({host for hosts in known.values() for host in hosts}), "host")
    return [Item("tzdata", OK, f"{here.tzdata} on {hosts} that ran lately, this one included")]


def version_items(here: Here, tallies: Sequence[Tally]) -> List[Item]:
    """Different versions understand each other or say that they do not: nothing to warn of."""
    own = f"cronguard {here.version}, Python {here.python}, as {here.user} on {here.host}"
    by_version = _hosts_by(tallies, "version", here.version, here.host)
    others = {version: hosts for version, hosts in by_version.items() if version != here.version}
    return [Item("version", OK, f"{own}; lately also {_told(others)}" if others else own)]


def scheduler_items(starts: Starts, entries: Sequence[Entry], leased: bool, chosen: Sequence[str]) -> List[Item]:
    """Who starts a job more often than once a slot: two processes after a deploy, two crontabs, two hosts."""
    items = [item for job in chosen for item in _schedulers_of(job, starts, entries, leased)]
    quiet = [job for job in chosen if not any(item.job == job for item in items)]
    if quiet:
        items.append(Item("schedulers", OK, f"{counted(len(quiet), 'job')}: no more than one clock seen for each"))
    return items


def _schedulers_of(job: str, starts: Starts, entries: Sequence[Entry], leased: bool) -> List[Item]:
    items = []
    places = [entry.place for entry in entries if entry.job == job and not entry.problem]
    if len(places) > 1:
        text = f"{job} is started by several lines here: {listed(places)}"
        items.append(Item("schedulers", WARNING, text, "keep one of them, unless they are different slots", job))
    for twice in starts.twice:
        if twice.job == job:
            users = sorted({tally.user for tally in starts.tallies if (tally.job, tally.host) == (job, twice.host)})
            text = f"{twice.host} started {counted(twice.slots, 'slot')} of {job} more than once within a minute"
            text += f", as {listed(users)}"
            hint = f"look on {twice.host} for a second crontab, timer, container or process left by a deploy"
            items.append(Item("schedulers", WARNING, text, hint, job))
    hosts = sorted({tally.host for tally in starts.tallies if tally.job == job and tally.scheduled_utc is not None})
    if len(hosts) > 1:
        items.append(_several_hosts(job, hosts, leased))
    return items


def _several_hosts(job: str, hosts: Sequence[str], leased: bool) -> Item:
    text = f"{job} is started on {listed(hosts)}"
    if leased:
        return Item("schedulers", OK, f"{text}: the first one there does the slot, the others skip it", "", job)
    hint = "several hosts share a store only in PostgreSQL; a container gets a lasting name by its hostname setting"
    return Item("schedulers", WARNING, f"{text}, and the store is a file", hint, job)


def zone_items(plans: Sequence[Plan], here: Here, problems: Mapping[str, str]) -> List[Item]:
    """Whose clock names the slots. `problems`: jobs whose zone or schedule cannot be understood, and why."""
    items = [Item("zone", FAILURE, why, "see `cronguard config`", job) for job, why in problems.items()]
    by_zone: Dict[Tuple[str, str], List[str]] = {}
    for plan in plans:
        by_zone.setdefault((plan.zone, plan.zone_source), []).append(plan.job)
    for (zone, source), jobs in by_zone.items():
        whose = f"{zone or 'no zone'} for {listed(jobs)}"
        if source == "host":
            text = f"{whose}: this host's, for nobody set one; another host's may differ"
            items.append(Item("zone", WARNING, text, "set timezone in [defaults] of the config file"))
        else:
            items.append(Item("zone", OK, f"{whose}, by {source}"))
    if not plans and not items:
        items.append(Item("zone", SKIPPED, f"no job yet; this host's zone is {here.zone or 'unknown'}"))
    return items


def cron_zone_items(
    plans: Sequence[Plan], entries: Sequence[Entry], here: Here, is_utc: Callable[[str], bool]
) -> List[Item]:
    """cron fires by the host's clock: a fixed hour in another zone is early or late."""
    off = []
    for plan in plans:
        zone_differs = plan.zone != here.zone and not (is_utc(plan.zone) and is_utc(here.zone or ""))
        lines = [each for each in entries if each.job == plan.job and each.kind == "cron" and not each.has_zone]
        schedule = plan.spec.schedule if plan.spec else None
        if zone_differs and lines and schedule is not None and _has_hour(schedule.kind, schedule.text):
            off.append(plan.job)
    if not off or here.zone is None:
        return []
    text = f"cron fires by this host's zone {here.zone}, but the slots of {listed(off)} are another zone's hours"
    hint = "set the host's zone, or start the job more often than it is due: a slot that is done is not done again"
    return [Item("zone", WARNING, text, hint)]


def _has_hour(kind: str, text: str) -> bool:
    fields = text.split()
    return kind == "cron" and len(fields) == 5 and not fields[1].startswith("*")


def _hosts_by(tallies: Sequence[Tally], field: str, own: str, host: str) -> Dict[str, Set[str]]:
    """Values of a field and the hosts that had them, each host by its latest row; this host as it is now."""
    latest: Dict[str, Tally] = {}
    for tally in sorted(tallies, key=lambda each: each.latest_utc):
        latest[tally.host] = tally
    found: Dict[str, Set[str]] = {own: {host}}
    for name, tally in latest.items():
        if name != host:
            found.setdefault(getattr(tally, field), set()).add(name)
    return found


def _told(found: Pairs) -> str:
    return "; ".join(f"{value} on {listed(sorted(hosts))}" for value, hosts in sorted(found.items()))
