"""Which schedule and zone `next` is asked about: one given in the line, or those of jobs.

A job's schedule is that of the config file, else the one it last ran with: most crontab lines give it as an option,
and then only the store knows it. The store is not opened when the line itself has the answer.
"""

from __future__ import annotations

from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.config import resolve_settings
from cronguard.core.model import Invocation, JobRow, JobSpec, RunRequest, ScheduleText
from cronguard.errors import ConfigError, NotFound, UsageError
from cronguard.overview import judged_workspace, overview
from cronguard.system import host
from cronguard.system.config_file import load_config

_NOBODY = "next"  # the name under which a schedule without a job is judged


class Asked(NamedTuple):
    """`job` is None for a schedule from the command line."""

    job: Optional[str]
    schedule: ScheduleText
    zone: str


def schedule_given(options: Mapping[str, str], invocation: Invocation) -> Asked:
    """The schedule of the command line, in the zone that a run with these options would take."""
    document, file_name = load_config(invocation.config, invocation.environ)
    without_jobs = {name: table for name, table in document.items() if name != "jobs"}
    spec = resolve_settings(RunRequest(_NOBODY, (), options), without_jobs, file_name, invocation.environ).spec
    if spec.schedule is None:
        raise UsageError("no schedule: give a JOB, or --cron, --calendar or --every")
    return Asked(None, spec.schedule, _zone_of(spec))


def schedules_of(jobs: Sequence[str], timezone: Optional[str], invocation: Invocation) -> Tuple[Asked, ...]:
    """The schedules of these jobs, or of all that have one. NotFound for a job that nobody knows, or without one."""
    workspace = judged_workspace(invocation)
    with overview(workspace) as known:
        chosen = known.chosen(jobs)
    options = {"timezone": timezone} if timezone else {}
    found: List[Asked] = []
    for job in chosen:
        request = RunRequest(job, (), options)
        spec = resolve_settings(request, workspace.document, workspace.file_name, invocation.environ).spec
        asked = _asked(spec, known.rows.get(job), timezone)
        if asked is not None:
            found.append(asked)
        elif jobs:
            raise NotFound(f"no schedule: {job}: neither the config file nor its last run has one")
    return tuple(found)


def _asked(spec: JobSpec, row: Optional[JobRow], timezone: Optional[str]) -> Optional[Asked]:
    if spec.schedule is not None:
        return Asked(spec.job, spec.schedule, _zone_of(spec))
    if row is not None and row.facts.schedule is not None:
        return Asked(spec.job, row.facts.schedule, timezone or row.facts.zone)
    return None


def _zone_of(spec: JobSpec) -> str:
    name = spec.timezone or host.host_zone()
    if name is None:
        raise ConfigError(["--timezone: not set, and this host's zone is unknown"], "set timezone in the config")
    return name
