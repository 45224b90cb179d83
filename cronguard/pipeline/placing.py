"""Where an invocation belongs: the zone, the slot, the run key. Fixed once, before jitter, waiting and claiming."""

from __future__ import annotations

from datetime import datetime
from typing import Optional

from cronguard.core.model import Event, JobFacts, JobSpec, Say
from cronguard.core.runkey import key_for
from cronguard.core.schedule import parse_schedule
from cronguard.core.zones import load_zone
from cronguard.errors import ConfigError, ScheduleError
from cronguard.pipeline.passage import Place
from cronguard.system import host


def zone_for(spec: JobSpec, say: Say) -> str:
    """The company's zone; the host's only when nobody configured one, and said; never a silent UTC (FR-94, FR-97)."""
    needed = spec.schedule is not None or (spec.key != "none" and spec.run_key is None)
    name = spec.timezone or host.host_zone()
    if name is None:
        if needed:
            raise ConfigError(("--timezone: not set, and this host's zone is unknown",), "set timezone in the config")
        return _unneeded_zone(spec, "this host's zone is unknown", say)
    try:
        load_zone(name)
    except ScheduleError as error:
        if spec.timezone:
            raise
        if needed:
            why = error.message.partition(": ")[2]
            raise ScheduleError(f"this host's time zone: {why}", "set timezone in the config") from error
        return _unneeded_zone(spec, str(error), say)
    if needed and not spec.timezone:
        text = f"{spec.job} uses this host's time zone {name}; set timezone in the config"
        say(Event("host_zone", "info", {"job": spec.job, "zone": name}, text))
    return name


def _unneeded_zone(spec: JobSpec, why: str, say: Say) -> str:
    text = f"{spec.job} has no schedule and no zone, CRONGUARD_DAY is that of UTC: {why}"
    say(Event("no_zone", "info", {"job": spec.job, "zone": "UTC"}, text))
    return "UTC"


def facts_of(spec: JobSpec, zone: str) -> JobFacts:
    """What the store is to remember of the job."""
    return JobFacts(
        job=spec.job,
        schedule=spec.schedule,
        zone=zone,
        key=spec.key,
        timeout_s=spec.timeout_s,
        grace_s=spec.grace_s,
        max_late_s=spec.max_late_s,
        look_back_s=spec.look_back_s,
        redo=spec.redo,
        alerts=spec.alerts,
        limit_s=_limit_s(spec),
    )


def _limit_s(spec: JobSpec) -> Optional[float]:
    """The longest that a whole run may take: every attempt to its limit and killed, and the doubling pauses between."""
    if spec.timeout_s is None:
        return None
    pauses_s = spec.retry_delay_s * (2.0**spec.retries - 1)
    return (spec.retries + 1) * (spec.timeout_s + spec.grace_s) + pauses_s


def place_at(spec: JobSpec, zone: str, now: datetime) -> Place:
    slot = None
    if spec.schedule is not None:
        slot = parse_schedule(spec.schedule, zone).latest(now)
        if slot is None:
            raise ScheduleError(f"--{spec.schedule.kind}: {spec.schedule.text!r}: never occurred before now")
    late_from = None if slot is None else slot.at_utc
    if spec.run_key is not None:
        return Place(slot, spec.run_key, now, late_from)
    return Place(slot, None if spec.key == "none" else key_for(spec.key, slot, now, zone), now, late_from)
