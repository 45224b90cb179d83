"""The keys of the JSON that the looking commands print: scripts rely on every one. Keys are only ever added."""

from __future__ import annotations

import json
from typing import Any, Dict

import pytest

from cronguard.cli.main import execute
from tests.support.cronguard import Started, cronguard

RUN = {
    "run_id", "job", "lock", "run_key", "claim_no", "status", "reason", "forced", "unguarded", "slot_at", "slot_local",
    "zone", "tzdata", "trigger", "attempts", "fence", "machine_id", "host", "boot_id", "pid_ns", "pid", "pid_start",
    "keeper_pid", "keeper_start", "user_name", "version", "argv", "directory", "release", "started_at", "finished_at",
    "lateness_s", "duration_s", "exit_code", "signal", "cpu_s", "peak_rss_bytes", "items", "errors", "message",
    "cut_bytes", "leftovers", "orphans", "stdin_unread", "holder", "times", "pings", "late_status", "late_exit_code",
    "late_finished_at",
}  # fmt: skip
JOB = {
    "job", "state", "next_due", "schedule", "key", "zone", "first_seen", "last_success", "last_success_key", "last_run",
    "running", "running_lease", "progress", "usual_duration_s", "failures_in_row", "skips_in_row", "last_skip_reason",
    "last_skip_holder", "strip", "paused", "pruned_before",
}  # fmt: skip
SLOT = {"key", "local", "utc", "note"}
SCHEDULED = ("--every", "12h", "--timezone", "UTC", "--timeout", "5m", "--")


@pytest.fixture
def document(capfd: pytest.CaptureFixture[str]) -> Any:
    def printed(*words: str) -> Dict[str, Any]:
        capfd.readouterr()
        assert execute([*words, "--json"]) == 0
        found: Dict[str, Any] = json.loads(capfd.readouterr().out)
        assert found["version"] == 1
        return found

    return printed


def test_keys_of_status(document: Any) -> None:
    assert cronguard("run", "j", *SCHEDULED, "true").returncode == 0
    assert cronguard("pause", "j", "--for", "1h", "--reason", "why").returncode == 0
    found = document("status")
    assert set(found) >= {"version", "now", "jobs"}
    (job,) = found["jobs"]
    assert set(job) >= JOB
    assert set(job["last_run"]) >= RUN
    assert set(job["paused"]) >= {"since", "until", "reason"}
    assert job["progress"] is None


def test_keys_of_status_while_a_job_runs(document: Any) -> None:
    assert cronguard("run", "j", "--timeout", "5m", "--", "sleep", "0.2").returncode == 0
    with Started("run", "j", "--timeout", "5m", "--", "sh", "-c", "echo up; exec sleep 60") as run:
        assert run.line() == "up"
        (job,) = document("status", "j")["jobs"]
    assert set(job["running"]) >= RUN
    assert set(job["progress"]) >= {"elapsed_s", "usual_s", "share"}
    assert job["progress"]["share"] == pytest.approx(job["progress"]["elapsed_s"] / job["usual_duration_s"])
    assert (job["running"]["host"], job["running"]["pid"]) == (job["last_run"]["host"], run.pid)


def test_keys_of_history_and_show(document: Any) -> None:
    assert cronguard("run", "j", *SCHEDULED, "true").returncode == 0
    found = document("history", "j")
    assert set(found) >= {"version", "job", "runs"}
    (run,) = found["runs"]
    assert set(run) >= RUN
    assert set(document("show", run["run_id"])["run"]) >= RUN | {"tail"}


def test_keys_of_next_and_config(document: Any) -> None:
    (slot,) = document("next", "--every", "5m", "--timezone", "UTC", "--count", "1")["slots"]
    assert set(slot) >= SLOT
    assert set(document("config")) >= {"version", "file", "shared", "jobs"}
