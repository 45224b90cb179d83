"""Prometheus' own parser reads what we write."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Tuple

from prometheus_client.parser import text_string_to_metric_families

from cronguard.core.metrics import Facts, exposition
from cronguard.core.model import Incident, ScheduleText
from cronguard.core.standing import standing_of
from tests.support.rows import job_row, run_row

NOW = datetime(2026, 1, 20, 9, 30, tzinfo=timezone.utc)
COUNTERS = {f"cronguard_job_{name}" for name in ("runs", "failures", "skips")}
HOSTILE = 'back\\slash "quoted"\nnext line \u00e9 \\n'


def parsed(facts: Facts) -> Dict[Tuple[str, ...], float]:
    """Name and label values to value, after looking at every family."""
    found: Dict[Tuple[str, ...], float] = {}
    families: Any = list(text_string_to_metric_families(exposition(facts)))
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert re.fullmatch(r"cronguard_[a-z_]+", family.name)
        assert family.documentation
        # The parser takes `_total` off a counter's name.
        assert family.type == ("counter" if family.name in COUNTERS else "gauge")
        if "timestamp" in family.name or "duration" in family.name or "lateness" in family.name:
            assert family.name.endswith("_seconds")
        for sample in family.samples:
            found[(sample.name.replace("cronguard_job_", ""), *sample.labels.values())] = sample.value
    return found


def facts(*rows: Any, **more: Any) -> Facts:
    jobs = tuple(standing_of(row.facts.job, row, None, NOW) for row in rows)
    return Facts(jobs, **{"missed": {}, "incidents": (), "now_utc": NOW, **more})


def test_numbers_of_a_job() -> None:
    last = run_row("nightly", NOW - timedelta(hours=1), "failed", 12.5, lateness_s=3.0)
    row = job_row(
        "nightly", ScheduleText("every", "1h"), last_success_utc=NOW - timedelta(days=1), last_run=last, strip="sf",
        usual_duration_s=10.0, failures_in_row=1, skips_in_row=2, paused_since_utc=NOW - timedelta(minutes=1),
        runs_total=9, failures_total=4, skips_total=30, last_claim_s=0.25,
    )  # fmt: skip
    numbers = parsed(facts(row, missed={"nightly": 7}))
    assert numbers == {
        ("cronguard_collected_timestamp_seconds",): NOW.timestamp(),
        ("last_success_timestamp_seconds", "nightly"): NOW.timestamp() - 86400,
        ("last_start_timestamp_seconds", "nightly"): NOW.timestamp() - 3600,
        ("last_duration_seconds", "nightly"): 12.5,
        ("last_lateness_seconds", "nightly"): 3.0,
        ("last_run_success", "nightly"): 0.0,
        ("usual_duration_seconds", "nightly"): 10.0,
        ("running", "nightly"): 0.0,
        ("slots_missed", "nightly"): 7.0,
        ("failures_in_row", "nightly"): 1.0,
        ("skips_in_row", "nightly"): 2.0,
        ("runs_total", "nightly"): 9.0,
        ("failures_total", "nightly"): 4.0,
        ("skips_total", "nightly"): 30.0,
        ("last_claim_seconds", "nightly"): 0.25,
        ("paused", "nightly"): 1.0,
        ("next_due_timestamp_seconds", "nightly"): datetime(2026, 1, 20, 10, tzinfo=timezone.utc).timestamp(),
    }


def test_unknown_has_no_sample() -> None:
    """A zero would look like 1970, or like a run that took no time."""
    numbers = parsed(facts(job_row("new")))
    assert {name for name, *labels in numbers if labels == ["new"]} == {
        "running", "failures_in_row", "skips_in_row", "paused", "runs_total", "failures_total", "skips_total",
    }  # fmt: skip


def test_running_job_and_open_incidents() -> None:
    going = run_row("busy", NOW - timedelta(minutes=5), "running")
    incident = Incident("i", "busy", "stuck", "critical", "", (), NOW, NOW, None, None)
    numbers = parsed(facts(job_row("busy", running=going, last_run=going, strip="fs"), incidents=(incident,)))
    assert numbers["running", "busy"] == 1.0
    assert numbers["last_run_success", "busy"] == 1.0
    assert ("last_duration_seconds", "busy") not in numbers
    assert numbers["incident_open", "busy", "stuck", "critical"] == 1.0


def test_label_values_survive_whatever_they_contain() -> None:
    """Job names are checked when they run; a store may hold others."""
    assert ("running", HOSTILE) in parsed(facts(job_row(HOSTILE)))
    assert ("running", "\\udcff") in parsed(facts(job_row("\udcff")))


def test_text_of_no_jobs_is_whole() -> None:
    text = exposition(facts())
    assert text.endswith("\n")
    assert list(parsed(facts())) == [("cronguard_collected_timestamp_seconds",)]
