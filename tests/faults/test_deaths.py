"""kill -9 of the supervisor, of the keeper, of both; a supervisor that is stopped for too long."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.support.cronguard import Started, command, cronguard, environment, gone, history, until

pytestmark = pytest.mark.usual

SLOT = ["--cron", "0 2 * * *", "--timezone", "UTC", "--timeout", "300s"]
# Ignores TERM, and has a grandchild in a session of its own that ignores it too.
STUBBORN = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & echo $$; wait; wait"


@pytest.fixture
def env(store_url: str) -> Dict[str, str]:
    return environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW="2026-01-20T02:00:01Z", CRONGUARD_STORE=store_url)


def pids_said(run: Started, number: int) -> List[int]:
    return [int(run.line()) for _ in range(number)]


def running(job: str, env: Dict[str, str]) -> Dict[str, Any]:
    (row,) = [row for row in history(job, env) if row["status"] == "running"]
    return row


def test_killed_supervisor_leaves_no_process_and_the_slot_runs_again(env: Dict[str, str]) -> None:
    """P1, P3, FR-05, FR-68."""
    with Started("run", "j", *SLOT, "--", "sh", "-c", STUBBORN, env=env) as run:
        pids = pids_said(run, 2)
        run.process.kill()
        until(lambda: all(gone(pid) for pid in pids), "the keeper to end the tree", 2.0 + 8.0)
    keeper = int(history("j", env)[0]["keeper_pid"])
    until(lambda: gone(keeper), "the keeper to end")
    again = cronguard("run", "j", *SLOT, "--", "true", env=env)
    assert again.returncode == 0, again.stderr
    assert [row["status"] for row in history("j", env)] == ["success", "lost"]


def test_killed_supervisor_blocks_another_host_until_its_lease_has_ended(postgres_url: str) -> None:
    """Nobody on another host can prove a death; the lease can."""
    here = environment(CRONGUARD_STORE=postgres_url, CRONGUARD_TEST="1", CRONGUARD_TEST_HOST="web-1")
    there = environment(CRONGUARD_STORE=postgres_url, CRONGUARD_TEST="1", CRONGUARD_TEST_HOST="web-2")
    options = ["--timeout", "300s", "--lease", "15s"]
    with Started("run", "j", *options, "--", "sh", "-c", "echo $$; exec sleep 300", env=here) as run:
        pids = pids_said(run, 1)
        run.process.kill()
        until(lambda: gone(pids[0]), "the keeper to end the command")
    assert cronguard("run", "j", *options, "--", "true", env=there).returncode == 75
    waited = cronguard("run", "j", *options, "--on-conflict", "wait", "--wait", "60s", "--", "true", env=there)
    assert waited.returncode == 0, waited.stderr
    assert [row["status"] for row in history("j", here) if row["status"] != "skipped"] == ["success", "lost"]


def test_killed_keeper_takes_the_command_along_and_is_recorded(env: Dict[str, str]) -> None:
    with Started("run", "j", *SLOT, "--", "sh", "-c", STUBBORN, env=env) as run:
        pids = pids_said(run, 2)
        os.kill(running("j", env)["keeper_pid"], signal.SIGKILL)
        done = run.end()
    assert all(gone(pid) for pid in pids)
    assert done.returncode == 137
    assert "Traceback" not in done.stderr
    (row,) = history("j", env)
    assert row["status"] == "aborted"


def test_orphans_of_a_run_whose_both_guards_died_hold_the_claim_here(env: Dict[str, str], tmp_path: Path) -> None:
    """What survives both is named, and nothing starts beside it on this host until it is gone."""
    mark = tmp_path / "mark"
    with Started("run", "j", *SLOT, "--", "sh", "-c", STUBBORN, env=env) as run:
        pids = pids_said(run, 2)
        keeper = running("j", env)["keeper_pid"]
        for pid in (run.pid, keeper):
            os.kill(pid, signal.SIGSTOP)  # so that neither sees the other's end
        for pid in (run.pid, keeper):
            os.kill(pid, signal.SIGKILL)
        run.process.wait()
        until(lambda: gone(keeper), "the keeper to die")
        survivors = [pid for pid in pids if not gone(pid)]
        try:
            assert survivors, "nothing survived; the test shows nothing"
            blocked = cronguard("run", "j", *SLOT, "--", "sh", "-c", f"echo ran >> {mark}", env=env)
            assert (blocked.returncode, mark.exists()) == (75, False)
            assert any(str(pid) in blocked.stderr for pid in survivors)
            assert history("j", env)[0]["reason"] == "orphans"
        finally:
            for pid in survivors:
                os.kill(pid, signal.SIGKILL)
    # A child of a survivor may outlive it by a second, and is an orphan as well.
    until(lambda: cronguard("run", "j", *SLOT, "--", "true", env=env).returncode == 0, "the claim to be free")


def test_supervisor_stopped_beyond_its_lease_gives_way_and_overwrites_nothing(postgres_url: str) -> None:
    """The keeper ends the command before the lease does; another host runs; the first leaves with 128+n."""
    here = environment(CRONGUARD_STORE=postgres_url, CRONGUARD_TEST="1", CRONGUARD_TEST_HOST="web-1")
    there = environment(CRONGUARD_STORE=postgres_url, CRONGUARD_TEST="1", CRONGUARD_TEST_HOST="web-2")
    options = ["--timeout", "300s", "--lease", "15s"]
    with Started("run", "j", *options, "--", "sh", "-c", "echo $$; exec sleep 300", env=here) as run:
        pids = pids_said(run, 1)
        os.kill(run.pid, signal.SIGSTOP)
        second = ["--on-conflict", "wait", "--wait", "60s", "--", "sh", "-c", f"kill -0 {pids[0]} 2>&1; echo $?"]
        waited = cronguard("run", "j", *options, *second, env=there)
        assert waited.returncode == 0, waited.stderr
        assert waited.stdout.strip().endswith("1"), "the first command was still there when the second began"
        os.kill(run.pid, signal.SIGCONT)
        first = run.end()
    assert first.returncode in (143, 137), first.stderr
    newest, lost = history("j", here)
    assert (newest["status"], newest["host"]) == ("success", "web-2")
    assert (lost["status"], lost["host"]) == ("lost", "web-1")
    assert lost["late_status"] == "aborted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_the_tree_and_is_recorded(env: Dict[str, str], number: signal.Signals) -> None:
    """FR-20."""
    with Started("run", "j", *SLOT, "--grace", "0.3s", "--", "sh", "-c", STUBBORN, env=env) as run:
        pids = pids_said(run, 2)
        run.process.send_signal(number)
        done = run.end()
    assert done.returncode == 128 + number
    assert all(gone(pid) for pid in pids)
    (row,) = history("j", env)
    assert row["status"] == "aborted"
    assert cronguard("run", "j", *SLOT, "--", "true", env=env).returncode == 0


def test_a_timeout_leaves_nothing_in_the_process_table(env: Dict[str, str]) -> None:
    """The issue's own example: a setsid grandchild, TERM ignored."""
    short = [*SLOT[:4], "--timeout", "0.5s", "--grace", "0.3s"]
    done = cronguard("run", "j", *short, "--", "sh", "-c", "trap '' TERM; setsid sleep 600.25 & sleep 600.25", env=env)
    assert done.returncode == 124
    left = subprocess.run(["pgrep", "-f", "sleep 600.25"], stdout=subprocess.PIPE, text=True, check=False)
    assert left.stdout == ""


def test_an_orphan_that_cleared_its_environment_is_known_by_its_session(env: Dict[str, str]) -> None:
    """The second trail: the session noted when the command started."""
    with Started("run", "j", *SLOT, "--", "sh", "-c", "env -i sleep 300 & echo $!; wait", env=env) as run:
        (pid,) = pids_said(run, 1)
        keeper = running("j", env)["keeper_pid"]
        for each in (run.pid, keeper):
            os.kill(each, signal.SIGSTOP)
        for each in (run.pid, keeper):
            os.kill(each, signal.SIGKILL)
        run.process.wait()
        until(lambda: gone(keeper), "the keeper to die")
        try:
            blocked = cronguard("run", "j", *SLOT, "--", "true", env=env)
            assert blocked.returncode == 75
            assert str(pid) in blocked.stderr
        finally:
            os.kill(pid, signal.SIGKILL)
    until(lambda: cronguard("run", "j", *SLOT, "--", "true", env=env).returncode == 0, "the claim to be free")


def test_output_that_does_not_fit_the_disk_is_no_success(env: Dict[str, str]) -> None:
    with open("/dev/full", "wb") as full, Started("run", "j", *SLOT, "--", "echo", "dump", env=env) as other:
        assert other.end().returncode == 0
        done = subprocess.run(
            command("run", "k", *SLOT, "--", "echo", "dump"), env=env, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 125
    assert b"No space left" in done.stderr or b"no space left" in done.stderr
    assert history("k", env)[0]["status"] == "failed"
