"""Jobs as their next run on this host would find them: by crontab line, config file and what the store remembers."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.checkup.facts import Entry, Plan
from cronguard.core.config import resolve_settings
from cronguard.core.document import Table, table_of
from cronguard.core.model import JobRow, RunRequest, ScheduleText
from cronguard.core.schedule import parse_schedule
from cronguard.errors import ConfigError, ScheduleError

_AHEAD = timedelta(days=8)  # a week, and the day on which it begins again
_SLOTS_AT_MOST = 400


class Known(NamedTuple):
    """What plans are made of. `host_zone`: the fall-back, None if the host does not tell."""

    rows: Mapping[str, JobRow]
    document: Table
    file_name: str
    entries: Sequence[Entry]
    environ: Mapping[str, str]
    host_zone: Optional[str]
    now_utc: datetime

    def entry_of(self, job: str) -> Optional[Entry]:
        """The line that starts it, one that is followed before others."""
        lines = [entry for entry in self.entries if entry.job == job]
        return next((entry for entry in lines if not entry.problem), lines[0] if lines else None)


def plans_of(names: Sequence[str], known: Known) -> Tuple[Tuple[Plan, ...], Dict[str, str]]:
    """The plans, and for jobs that cannot be understood why not."""
    plans: List[Plan] = []
    problems: Dict[str, str] = {}
    for name in names:
        try:
            plans.append(_plan(name, known))
        except (ConfigError, ScheduleError) as error:
            problems[name] = f"{name}: {error}"
    return tuple(plans), problems


def _plan(name: str, known: Known) -> Plan:
    row, entry = known.rows.get(name), known.entry_of(name)
    if entry is None and name not in table_of(known.document, "jobs"):
        facts = row.facts if row is not None else None
        zone = facts.zone if facts is not None else ""
        schedule = facts.schedule if facts is not None else None
        return Plan(name, None, row, zone, "its last run", _gap_s(schedule, zone, known.now_utc))
    request = RunRequest(name, entry.command if entry else (), entry.options if entry else {})
    resolved = resolve_settings(request, known.document, known.file_name, known.environ)
    spec = resolved.spec
    source = next(each.source for each in resolved.settings if each.name == "timezone")
    zone = spec.timezone or known.host_zone or ""
    if entry is not None and source.startswith("command line"):
        source = entry.place
    return Plan(name, spec, row, zone, source if spec.timezone else "host", _gap_s(spec.schedule, zone, known.now_utc))


def _gap_s(schedule: Optional[ScheduleText], zone: str, now_utc: datetime) -> Optional[float]:
    """The shortest distance of two slots; ScheduleError for what has none."""
    if schedule is None:
        return None
    parsed = parse_schedule(schedule, zone)
    slots = list(islice(parsed.between(now_utc, now_utc + _AHEAD), _SLOTS_AT_MOST))
    if len(slots) < 2:
        slots = list(islice(parsed.slots_from(now_utc), 3))
    gaps = [(later.at_utc - slot.at_utc).total_seconds() for slot, later in zip(slots, slots[1:])]
    return min(gaps, default=None)
