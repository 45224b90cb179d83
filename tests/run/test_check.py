"""`check` over what real runs have left: exit codes, JSON, thresholds, first sights, dead owners, streaks."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from tests.support.cronguard import Started, cronguard, environment, gone, until

pytestmark = pytest.mark.usual

NIGHTLY = ("--cron", "0 2 * * *", "--timezone", "Europe/Rome", "--timeout", "1h")


def clock(at: str) -> Dict[str, str]:
    return environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=at)


def run(job: str, *words: str, at: str, code: int = 0) -> None:
    done = cronguard("run", job, *words, env=clock(at))
    assert done.returncode == code, done.stderr


def check(*words: str, env: Optional[Dict[str, str]] = None) -> Tuple[int, Dict[str, Any]]:
    """Exit code and JSON."""
    done = cronguard("check", "--json", *words, env=env)
    assert done.stderr == "" or env is not None, done.stderr
    return done.returncode, json.loads(done.stdout)


def kinds(*words: str, env: Optional[Dict[str, str]] = None) -> List[str]:
    return [incident["kind"] for incident in check(*words, env=env)[1]["incidents"]]


def test_article_example_is_critical_at_quarter_past_and_not_before() -> None:
    run("nightly-export", *NIGHTLY, "--", "true", at="2026-01-19T01:00:01Z")
    assert check("--at", "2026-01-20T02:14+01:00")[0] == 0
    code, document = check("--at", "2026-01-20T02:15+01:00")
    assert code == 2
    assert set(document) == {"version", "state", "incidents", "jobs", "paused", "unjudged"}
    assert (document["version"], document["state"]) == (1, "critical")
    (incident,) = document["incidents"]
    assert set(incident) == {"job", "kind", "state", "summary", "since", "check_first"}
    assert (incident["kind"], incident["since"]) == ("missed", "2026-01-20T01:00:00.000Z")
    done = cronguard("check", "--at", "2026-01-20T03:06+01:00")
    first, line = done.stdout.splitlines()
    assert first == "CRITICAL: 1 of 1 job: nightly-export missed"
    assert line.startswith("ALERT nightly-export has not succeeded for 25h (expected at 02:00 every day, Europe/Rome).")


def test_empty_store_is_unknown() -> None:
    code, document = check()
    assert (code, document["state"]) == (3, "unknown")
    assert [incident["kind"] for incident in document["incidents"]] == ["nothing_to_check"]


@pytest.mark.parametrize("words", [["--nonsense"], ["nobody"], ["--at", "x"], ["--max-age", "x"], ["--ping", "x"]])
def test_what_cannot_be_done_is_unknown(words: List[str]) -> None:
    done = cronguard("check", *words)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr


def test_store_that_is_down_is_unknown(tmp_path: Path) -> None:
    file = tmp_path / "not.db"
    file.write_bytes(b"this is no database, " * 100)
    assert cronguard("check", "--store", f"sqlite:{file}").returncode == 3


def test_three_failed_nights_are_another_alert_than_a_missed_one() -> None:
    """FR-106: failures, skips in between, a success, and the streak begins anew; exactly the third failure tells."""
    days = iter(range(10, 28))

    def night(*command: str, code: int = 0) -> List[str]:
        at = f"2026-01-{next(days)}T01:00:01Z"
        run("j", *NIGHTLY, "--", *command, at=at, code=code)
        return [kind for kind in kinds("--at", at.replace("01:00", "01:01")) if kind != "missed"]

    bad = ("sh", "-c", "exit 3")
    assert night(*bad, code=3) == []
    assert night(*bad, code=3) == []
    assert night("true") == []
    assert night(*bad, code=3) == []
    assert night(*bad, code=3) == []
    assert night(*bad, code=3) == ["failing"]
    assert "failing" not in kinds("--at", "2026-01-15T01:02Z", "--max-failures", "4")
    for incident in check("--at", "2026-01-15T01:02Z")[1]["incidents"]:
        assert "failed, exit 3" in incident["check_first"][0]
    assert night("true") == []


def test_changed_schedule_does_not_make_old_slots_missed() -> None:
    run("j", *NIGHTLY, "--", "true", at="2026-01-19T01:00:01Z")
    later = ("--cron", "0 5 * * *", *NIGHTLY[2:])
    run("j", *later, "--", "true", at="2026-01-22T12:00:00Z")
    assert kinds("--at", "2026-01-22T12:01Z") == []
    assert kinds("--at", "2026-01-23T04:14Z") == []
    assert kinds("--at", "2026-01-23T04:15Z") == ["missed"]


def test_each_slot_is_asked_for_where_the_job_wants_it() -> None:
    run("j", *NIGHTLY, "--", "true", at="2026-01-18T01:00:01Z")
    run("j", *NIGHTLY, "--", "true", at="2026-01-20T01:00:01Z")
    assert kinds("--at", "2026-01-20T12:00Z") == []
    _, document = check("--at", "2026-01-20T12:00Z", "--slots", "each")
    (incident,) = document["incidents"]
    assert incident["since"] == "2026-01-19T01:00:00.000Z"


def config(tmp_path: Path, text: str) -> Tuple[str, str]:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return "--config", str(file)


def test_thresholds_come_from_job_table_defaults_and_stored_facts(tmp_path: Path) -> None:
    wide = config(tmp_path, '[defaults]\nallow_late = "2h"\n')
    run("j", *NIGHTLY, *wide, "--", "true", at="2026-01-19T01:00:01Z")
    assert kinds("--at", "2026-01-20T02:59Z") == []
    assert kinds("--at", "2026-01-20T03:00Z") == ["missed"]
    assert kinds("--at", "2026-01-20T01:10Z", "--allow-late", "10m") == ["missed"]
    own = config(tmp_path, '[jobs.j]\nallow_late = "5m"\n')
    assert kinds("--at", "2026-01-20T01:05Z", *own) == ["missed"]
    slow = config(tmp_path, "[jobs.j]\nslow_factor = 1.5\nmax_failures = 0\n")
    assert "max_failures" in cronguard("check", *slow).stderr


def test_configured_job_that_nobody_starts_is_found_once_it_was_seen(tmp_path: Path) -> None:
    """FR-100: from the first check on; never for slots of before."""
    file = config(tmp_path, '[jobs.j]\ncron = "0 1 * * *"\ntimezone = "UTC"\ncommand = ["true"]\n')
    assert kinds(*file, env=clock("2026-01-19T17:00:00Z")) == []
    assert kinds(*file, env=clock("2026-01-20T01:14:00Z")) == []
    assert kinds(*file, env=clock("2026-01-20T01:15:00Z")) == ["never_ran"]
    assert kinds(env=clock("2026-01-20T01:15:00Z")) == ["never_ran"]  # any host can tell


def test_paused_job_is_named_and_not_alerted() -> None:
    run("j", *NIGHTLY, "--", "true", at="2026-01-19T01:00:01Z")
    assert cronguard("pause", "j", "--reason", "move", env=clock("2026-01-19T12:00:00Z")).returncode == 0
    done = cronguard("check", "--at", "2026-03-01")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "OK: 1 job (1 paused)")
    assert "j is paused since 2026-01-19 12:00Z: move" in done.stdout
    assert cronguard("resume", "j", env=clock("2026-03-01T12:00:00Z")).returncode == 0
    assert kinds("--at", "2026-03-02T01:14Z") == []
    assert kinds("--at", "2026-03-02T01:15Z") == ["missed"]


def test_run_whose_cronguard_was_killed_is_stuck_at_once_and_then_lost() -> None:
    with Started("run", "j", "--timeout", "60s", "--", "sh", "-c", "echo $$; exec sleep 60") as started:
        pid = int(started.line())
        assert kinds() == []
        os.kill(started.pid, signal.SIGKILL)
        until(lambda: gone(pid), "the keeper ends the command")
        until(lambda: kinds() == ["stuck"], "the keeper is gone too")
    assert check()[0] == 2


def test_claim_that_is_no_longer_renewed_is_stuck(postgres_url: str) -> None:
    """PostgreSQL, from another host: the lease is all there is to see."""
    store = ("--store", postgres_url)
    words = ("--lease", "15s", "--timeout", "60s", "--", "sh", "-c", "echo up; sleep 60")
    with Started("run", "j", *store, *words) as run_:
        assert run_.line() == "up"
        other = environment(CRONGUARD_TEST="1", CRONGUARD_TEST_HOST="web-9")
        assert kinds(*store, env=other) == []
        os.kill(run_.pid, signal.SIGKILL)
        until(lambda: kinds(*store, env=other) == ["stuck"], "the lease ends")
