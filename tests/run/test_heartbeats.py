"""Heartbeats of whole runs: which pings go out, in which order, and that they never hurt (P7)."""

from __future__ import annotations

from pathlib import Path
from typing import List, Tuple

import pytest

from tests.support.cronguard import Started, cronguard, environment, history, show
from tests.support.pingserver import PingServer

pytestmark = pytest.mark.usual

LIMITED = ["--timeout", "60s"]


def ends(server: PingServer) -> List[str]:
    """What follows the check's own path: '' for success."""
    return list(server.paths)


@pytest.mark.parametrize(
    ("argv", "code", "expected"),
    [
        (["true"], 0, ["/start", ""]),
        (["sh", "-c", "exit 3"], 3, ["/start", "/3"]),
        (["sh", "-c", "kill -9 $$"], 137, ["/start", "/137"]),
        (["/no/such"], 127, ["/fail"]),
    ],
)
def test_one_terminal_ping_from_the_recorded_outcome(argv: list, code: int, expected: list) -> None:
    """FR-22, FR-47, FR-48."""
    with PingServer() as server:
        done = cronguard("run", "j", *LIMITED, "--ping", server.check_url, "--", *argv)
        assert done.returncode == code
        assert ends(server) == expected
        rids = {request.query.get("rid") for request in server.wait_for(len(expected))}
    (row,) = history("j")
    assert rids == {row["run_id"]}
    assert "delivered" in show(row["run_id"])["pings"]


def test_the_body_is_the_tail_of_the_output() -> None:
    """FR-42."""
    with PingServer() as server:
        noisy = ["sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo LAST"]
        assert cronguard("run", "j", *LIMITED, "--ping", server.check_url, "--", *noisy).returncode == 0
        body = server.wait_for(2)[1].body
    assert body.rstrip().endswith(b"LAST")
    assert len(body) <= 10_000


def test_a_timeout_and_a_signal_send_fail() -> None:
    with PingServer() as server:
        options = ["--timeout", "0.3s", "--grace", "0.1s", "--ping", server.check_url]
        assert cronguard("run", "j", *options, "--", "sleep", "60").returncode == 124
        with Started("run", "k", *LIMITED, "--ping", server.check_url, "--", "sh", "-c", "echo up; sleep 60") as run:
            assert run.line() == "up"
            run.process.terminate()
            assert run.end().returncode == 143
        assert ends(server) == ["/start", "/fail", "/start", "/fail"]


def test_skips_ping_nothing_and_refusals_fail() -> None:
    """FR-08."""
    with PingServer() as server, Started("run", "j", *LIMITED, "--", "sh", "-c", "echo up; sleep 60") as run:
        assert run.line() == "up"
        ping = ["--ping", server.check_url]
        assert cronguard("run", "j", *LIMITED, *ping, "--", "true").returncode == 75
        assert cronguard("run", "j", *LIMITED, *ping, "--on-conflict", "fail", "--", "true").returncode == 125
        assert ends(server) == ["/fail"]


def test_wrong_settings_send_one_fail_ping() -> None:
    """FR-48: failures before the command starts are told as well, if the URL can be made out."""
    with PingServer() as server:
        wrong = ["--cron", "0 24 * * *", "--timezone", "UTC"]
        done = cronguard("run", "j", "--ping", server.check_url, *wrong, "--", "true")
        assert done.returncode == 125
        assert ends(server) == ["/fail"]


def test_wrong_settings_are_told_in_the_style_that_the_file_names(tmp_path: Path) -> None:
    """FR-48: a check with an address of one's own, whose style cannot be guessed."""
    with PingServer() as server:
        config = tmp_path / "config.toml"
        url = server.check_url.rpartition("/ping/")[0] + "/my-check"
        config.write_text(f'[jobs.j]\nping = "{url}"\ncron = "0 24 * * *"\n[defaults]\nping_style = "healthchecks"\n')
        assert cronguard("run", "j", "--config", str(config), "--", "true").returncode == 125
        assert [request.path for request in server.wait_for(1)] == ["/my-check/fail"]


@pytest.mark.parametrize("trouble", [{"statuses": [500] * 9}, {"statuses": [429] * 9}, {"misbehave": "garbage"}])
def test_a_failing_endpoint_changes_nothing_but_is_noted(trouble: dict) -> None:
    """FR-44."""
    with PingServer(**trouble) as server:
        done = cronguard("run", "j", *LIMITED, "--ping", server.check_url, "--", "sh", "-c", "echo out; exit 4")
    assert (done.returncode, done.stdout) == (4, "out\n")
    (row,) = history("j")
    assert row["status"] == "failed"
    assert "not delivered" in show(row["run_id"])["pings"]


def test_a_silent_endpoint_delays_neither_start_nor_exit_code() -> None:
    with PingServer(misbehave="silent") as server:
        args: Tuple[str, ...] = ("run", "j", *LIMITED, "--ping", server.check_url)
        with Started(*args, "--", "sh", "-c", "echo up; read _ || exit 5") as run:
            assert run.line() == "up"
            assert run.end(timeout=30).returncode == 5


def test_a_heartbeat_secret_that_cannot_be_read_does_not_stop_the_job() -> None:
    """P7."""
    done = cronguard("run", "j", *LIMITED, "--ping", "env:NOWHERE", "--", "echo", "ran", env=environment())
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "NOWHERE" in done.stderr


def test_a_command_that_prints_its_environment_tells_nobody_the_heartbeats_address() -> None:
    """P9: the command itself has it, as it has everything of our environment (P6)."""
    with PingServer() as server:
        env = environment(CRONGUARD_PING=server.check_url)
        done = cronguard("run", "j", *LIMITED, "--", "sh", "-c", "env; exit 3", env=env)
        body = server.wait_for(2)[1].body
    assert server.check_url in done.stdout
    assert b"CRONGUARD_PING=***" in body
    (row,) = history("j", env)
    assert "CRONGUARD_PING=***" in show(row["run_id"], env)["tail"]


def test_retries_send_one_start_and_one_terminal_ping() -> None:
    """FR-49: what was tried three times and failed is red once, not green in between."""
    with PingServer() as server:
        again = ["--retries", "2", "--retry-delay", "0.05s", "--ping", server.check_url]
        assert cronguard("run", "j", *LIMITED, *again, "--", "sh", "-c", "exit 9").returncode == 9
        assert ends(server) == ["/start", "/9"]
