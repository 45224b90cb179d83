"""`cancel`, whole: a run comes to its end wherever it runs, is on record as cancelled, and is not tried again."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Callable, Dict

import pytest

from tests.support.children import STUBBORN
from tests.support.cronguard import Started, cronguard, environment, gone, history, show, until

pytestmark = pytest.mark.usual

Env = Callable[..., Dict[str, str]]
# With the shortest lease a renewal comes every 2.5 s.
LEASE = ("--lease", "15s", "--timeout", "60s")


@pytest.fixture(params=["sqlite", "postgres"])
def at(request: pytest.FixtureRequest) -> Env:
    """An environment on that kind of store, for a host of a given name."""
    url = request.getfixturevalue(f"{request.param}_url")
    return lambda host="": _environment(url, host)


@pytest.fixture
def on_postgres(postgres_url: str) -> Env:
    return lambda host="": _environment(postgres_url, host)


@pytest.fixture
def on_sqlite(sqlite_url: str) -> Env:
    return lambda host="": _environment(sqlite_url, host)


def _environment(url: str, host: str) -> Dict[str, str]:
    env = environment(CRONGUARD_STORE=url)
    return {**env, "CRONGUARD_TEST": "1", "CRONGUARD_TEST_HOST": host} if host else env


def test_a_run_on_this_host_ends_at_once_and_is_not_tried_again(at: Env) -> None:
    loop = 'echo "up $$"; exec sleep 60'
    with Started("run", "j", *LEASE, "--retries", "3", "--retry-delay", "1s", "--", "sh", "-c", loop, env=at()) as run:
        pid = int(run.line().split()[1])
        done = cronguard("cancel", "j", "--wait", "30s", env=at())
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("j: run ")
        assert "has ended: aborted (cancelled)" in done.stdout
        assert run.end().returncode == 143
    assert gone(pid)
    (row,) = history("j", at())
    assert (row["status"], row["reason"], row["signal"], row["attempts"]) == ("aborted", "cancelled", signal.SIGTERM, 1)


def test_a_run_on_another_host_ends_with_its_next_renewal(on_postgres: Env, tmp_path: Path) -> None:
    """Nothing is signalled: the owner learns of it from the store, stops the command with its grace, and says 143."""
    said = tmp_path / "said"
    script = f'trap "echo told > {said}; exit 9" TERM; echo up; while :; do sleep 0.05; done'
    with Started("run", "j", *LEASE, "--retries", "3", "--", "sh", "-c", script, env=on_postgres("web-2")) as run:
        assert run.line() == "up"
        began = time.monotonic()
        done = cronguard("cancel", "j", env=on_postgres("web-1"))
        assert done.returncode == 0
        assert "on web-2 ends with its next renewal" in done.stdout
        ended = run.end()
        assert time.monotonic() - began < 10
        assert ended.returncode == 143
    assert said.read_text() == "told\n"
    (row,) = history("j", on_postgres())
    assert (row["status"], row["reason"], row["exit_code"], row["attempts"]) == ("aborted", "cancelled", 9, 1)
    assert "cancelled" in row["message"]


def test_a_cancelled_run_keeps_its_claim_until_the_grace_is_over(on_postgres: Env) -> None:
    """P1."""
    options = (*LEASE, "--grace", "6s")
    with Started("run", "j", *options, "--", "sh", "-c", STUBBORN, env=on_postgres("web-2")) as run:
        assert run.line().startswith("ready")
        assert cronguard("cancel", "j", env=on_postgres("web-1")).returncode == 0
        waited = cronguard("cancel", "j", "--wait", "4s", env=on_postgres("web-1"))
        assert (waited.returncode, "is still running on web-2" in waited.stdout) == (1, True)
        other = cronguard("run", "j", *LEASE, "--", "true", env=on_postgres("web-1"))
        assert other.returncode == 75
        assert run.end().returncode == 143
    row = next(row for row in history("j", on_postgres()) if row["status"] != "skipped")
    assert (row["status"], row["reason"], row["signal"]) == ("aborted", "cancelled", signal.SIGKILL)


def test_between_attempts_a_run_is_cancelled_too(on_postgres: Env) -> None:
    retry = (*LEASE, "--retries", "3", "--retry-delay", "60s")
    with Started("-v", "run", "j", *retry, "--", "sh", "-c", "echo up; exit 1", env=on_postgres("web-2")) as run:
        assert run.line() == "up"
        assert cronguard("cancel", "j", env=on_postgres("web-1")).returncode == 0
        assert run.end().returncode == 143
    (row,) = history("j", on_postgres())
    assert (row["status"], row["reason"], row["attempts"]) == ("aborted", "cancelled", 1)


def test_on_sqlite_a_run_that_cannot_be_proved_to_be_here_is_left_alone(on_sqlite: Env) -> None:
    """A shared directory seen from another host or container: its pids mean nothing here."""
    with Started("run", "j", *LEASE, "--", "sh", "-c", "echo up; exec sleep 60", env=on_sqlite("web-2")) as run:
        assert run.line() == "up"
        done = cronguard("cancel", "j", env=on_sqlite("web-1"))
        assert (done.returncode, "cancel it on web-2" in done.stdout) == (1, True)
        assert run.process.poll() is None
        assert cronguard("cancel", "j", "--wait", "20s", env=on_sqlite("web-2")).returncode == 0


def test_a_dead_owner_is_told_as_dead_and_nobody_is_signalled(at: Env) -> None:
    with Started("run", "j", *LEASE, "--", "sh", "-c", 'echo "$$"; exec sleep 60', env=at()) as run:
        pid = int(run.line())
        run.process.kill()
        run.end()
        until(lambda: gone(pid), "the keeper ends the command")
        done = cronguard("cancel", "j", env=at())
    assert (done.returncode, "has no cronguard any more" in done.stdout) == (1, True)


def test_what_succeeds_in_spite_of_it_is_a_success(on_postgres: Env) -> None:
    """Cancelled and done before the renewal told so: the truth is what happened."""
    with Started("run", "j", *LEASE, "--", "sh", "-c", "echo up; sleep 0.5", env=on_postgres("web-2")) as run:
        assert run.line() == "up"
        cronguard("cancel", "j", env=on_postgres("web-1"))
        code = run.end().returncode
    (row,) = history("j", on_postgres())
    assert (code, row["status"], row["reason"]) in [(0, "success", None), (143, "aborted", "cancelled")]


def test_nobody_running_and_unknown_jobs_are_1_and_one_line(at: Env) -> None:
    assert cronguard("cancel", "nightly", env=at()).returncode == 1
    assert cronguard("run", "nightly", "--timeout", "9s", "--", "true", env=at()).returncode == 0
    idle = cronguard("cancel", "nightly", env=at())
    assert (idle.returncode, idle.stdout) == (1, "")
    assert idle.stderr == "cronguard: nightly: not running: there is nothing to cancel\n"
    slip = cronguard("cancel", "nightli", env=at())
    assert (slip.returncode, slip.stdout) == (1, "")
    assert "did you mean nightly?" in slip.stderr
    bad = cronguard("cancel", "nightly", "--wait", "soon", env=at())
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)


def test_the_next_run_is_not_cancelled_by_what_ended_the_last(at: Env) -> None:
    with Started("run", "j", *LEASE, "--", "sh", "-c", "echo up; exec sleep 60", env=at()) as run:
        assert run.line() == "up"
        assert cronguard("cancel", "j", "--wait", "20s", env=at()).returncode == 0
        run.end()
    after = cronguard("run", "j", *LEASE, "--", "sleep", "3.5", env=at())
    assert after.returncode == 0
    assert show(history("j", at())[0]["run_id"], at())["reason"] is None
