"""What the store knows of each job, in Prometheus' text format, version 0.0.4.

https://prometheus.io/docs/instrumenting/exposition_formats: a HELP and a TYPE line a family, families in one piece,
backslash, quote and line feed escaped in values, a line feed at the end. Names and units by
https://prometheus.io/docs/practices/naming. What is not known has no sample, rather than a zero that looks like one.
No timestamps of samples: node_exporter's textfile collector refuses them. `cronguard_collected_timestamp_seconds`
tells when it was so.
"""

from __future__ import annotations

from datetime import datetime
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.model import Incident, JobRow
from cronguard.core.overdue import is_paused
from cronguard.core.records import unicode_text
from cronguard.core.standing import JobStatus

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
Value = Optional[float]


class Facts(NamedTuple):
    """`missed`: due slots that are owed, by job; a job without a schedule is not in it."""

    jobs: Tuple[JobStatus, ...]
    missed: Mapping[str, int]
    incidents: Tuple[Incident, ...]
    now_utc: datetime


class _Family(NamedTuple):
    """One number a job. `value` gets the job, its row and the facts; None: no sample."""

    name: str
    help: str
    value: Callable[[JobStatus, JobRow, Facts], Value]
    type: str = "gauge"


def _seconds(at_utc: Optional[datetime]) -> Value:
    return None if at_utc is None else at_utc.timestamp()


_FAMILIES = (
    _Family(
        "last_success_timestamp_seconds", "When the job last ended with success.",
        lambda status, row, facts: _seconds(row.last_success_utc),
    ),
    _Family(
        "last_start_timestamp_seconds", "When the job was last started.",
        lambda status, row, facts: _seconds(row.last_run.started_at_utc) if row.last_run else None,
    ),
    _Family(
        "last_duration_seconds", "How long the last finished run took, if no other has begun since.",
        lambda status, row, facts: row.last_run.duration_s if row.last_run else None,
    ),
    _Family(
        "last_lateness_seconds", "How long after its slot the last run claimed it.",
        lambda status, row, facts: row.last_run.lateness_s if row.last_run else None,
    ),
    _Family(
        "last_run_success", "Whether the last finished run was a success: 1 or 0.",
        lambda status, row, facts: _last_success(row),
    ),
    _Family(
        "usual_duration_seconds", "Median duration of the latest successes.",
        lambda status, row, facts: row.usual_duration_s,
    ),
    _Family(
        "running", "Whether a run is under way: 1 or 0.",
        lambda status, row, facts: float(row.running is not None),
    ),
    _Family(
        "slots_missed", "Due slots since the last success that nobody has done, their allowance over; at most 1000.",
        lambda status, row, facts: facts.missed.get(status.job),
    ),
    _Family(
        "failures_in_row", "Runs since the last success that did not succeed.",
        lambda status, row, facts: row.failures_in_row,
    ),
    _Family(
        "skips_in_row", "Invocations since the last start that started nothing.",
        lambda status, row, facts: row.skips_in_row,
    ),
    _Family(
        "runs_total", "Runs that were started, since the job was first seen.",
        lambda status, row, facts: row.runs_total, "counter",
    ),
    _Family(
        "failures_total", "Runs that did not end well, and starts refused by --on-conflict fail.",
        lambda status, row, facts: row.failures_total, "counter",
    ),
    _Family(
        "skips_total", "Invocations that started nothing, those for a slot already done included.",
        lambda status, row, facts: row.skips_total, "counter",
    ),
    _Family(
        "last_claim_seconds", "How long the latest finished run waited for its claim: the store's latency.",
        lambda status, row, facts: row.last_claim_s,
    ),
    _Family(
        "paused", "Whether the job is paused: 1 or 0.",
        lambda status, row, facts: float(is_paused(row, facts.now_utc)),
    ),
)  # fmt: skip


def exposition(facts: Facts) -> str:
    """The whole text."""
    lines = _head("cronguard_collected_timestamp_seconds", "When these numbers were read from the store.")
    lines.append(_sample("cronguard_collected_timestamp_seconds", (), facts.now_utc.timestamp()))
    for family in _FAMILIES:
        lines += _family(family, facts)
    lines += _next_due(facts)
    lines += _incidents(facts)
    return "".join(line + "\n" for line in lines)


def _family(family: _Family, facts: Facts) -> List[str]:
    name = f"cronguard_job_{family.name}"
    lines = _head(name, family.help, family.type)
    for status in facts.jobs:
        value = family.value(status, status.row, facts) if status.row else None
        if value is not None:
            lines.append(_sample(name, (("job", status.job),), value))
    return lines


def _next_due(facts: Facts) -> List[str]:
    """Known of jobs, too, that have never run."""
    name = "cronguard_job_next_due_timestamp_seconds"
    due = [(status.job, status.next_due.at_utc) for status in facts.jobs if status.next_due]
    return [
        *_head(name, "When the job's next slot is due."),
        *[_sample(name, (("job", job),), at_utc.timestamp()) for job, at_utc in due],
    ]


def _incidents(facts: Facts) -> List[str]:
    name = "cronguard_job_incident_open"
    return [
        *_head(name, "An incident that check has opened and not closed yet: 1."),
        *[
            _sample(name, (("job", each.job), ("kind", each.kind), ("state", each.state)), 1.0)
            for each in facts.incidents
        ],
    ]


def _last_success(row: JobRow) -> Value:
    """The strip knows it while the next run is under way."""
    return float(row.strip[-1] == "s") if row.strip else None


def _head(name: str, help_: str, type_: str = "gauge") -> List[str]:
    return [f"# HELP {name} {help_}", f"# TYPE {name} {type_}"]


def _sample(name: str, labels: Sequence[Tuple[str, str]], value: float) -> str:
    told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    number = repr(float(value))
    return f"{name}{{{told}}} {number}" if told else f"{name} {number}"


def _escaped(text: str) -> str:
    return unicode_text(text).translate(_ESCAPES)
