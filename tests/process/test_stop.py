"""Timeouts, signals, lease deadlines and lost helpers end the whole tree, in time, and are told for what they are."""

from __future__ import annotations

import fcntl
import os
import signal
import termios
import time
from pathlib import Path
from typing import Iterator, List

import pytest

from cronguard.system import processes
from tests.support.children import DAEMON, DOUBLE_FORK, POLITE, SETSID_GRANDCHILD, STOPPED, STUBBORN
from tests.support.processes import Guarded, alive, run_driver, sh, wait_until

GRACE_S = 0.2


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    for each in starter.all:
        each.clean_up()


class Starter:
    """Starts runs that are cleaned up after the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: List[Guarded] = []

    def __call__(self, argv: List[str], **words: object) -> Guarded:
        self.all.append(Guarded(self.folder, argv, **words))
        return self.all[-1]

    def ready(self, script: str, **words: object) -> Guarded:
        """Started, and the script has said that it is ready."""
        run = self(sh(script), **words)
        run.started()
        run.expect(b"ready")
        return run


@pytest.mark.parametrize(
    "script", ["sleep 300 & wait", "sleep 300; true", "sleep 300 | cat", SETSID_GRANDCHILD, DOUBLE_FORK, STUBBORN]
)
def test_timeout_ends_the_whole_tree_in_time(tmp_path: Path, script: str) -> None:
    """FR-10, FR-12."""
    facts = run_driver(tmp_path, sh(script), timeout_s=0.3)
    assert facts["stopped_by"] == "timeout"
    assert facts["left"] == set()
    assert facts["survivors"] == []
    assert facts["duration_s"] < 0.3 + GRACE_S + 0.5


def test_timeout_stays_one_when_the_command_then_exits_with_success(tmp_path: Path) -> None:
    """FR-12: exit 0 in the TERM handler is no success."""
    facts = run_driver(tmp_path, sh(POLITE), timeout_s=0.3, grace_s=5)
    assert (facts["stopped_by"], facts["exit_code"]) == ("timeout", 0)
    assert facts["duration_s"] < 2


def test_script_is_signalled_before_its_present_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a shell would go on with its next line for a moment, and that line may be the mail."""
    signalled: List[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _signum: signalled.append(pid))
    processes.send({70_008, 70_001, 70_015, -70_000}, signal.SIGTERM)
    assert signalled == [-70_000, 70_001, 70_008, 70_015]


def test_stopped_command_is_woken_to_be_terminated(tmp_path: Path) -> None:
    """FR-15: gone soon after the timeout, not after the grace."""
    facts = run_driver(tmp_path, sh(STOPPED), timeout_s=0.3, grace_s=10)
    assert (facts["stopped_by"], facts["signal"]) == ("timeout", signal.SIGTERM)
    assert facts["duration_s"] < 2


def test_command_has_no_terminal_to_stop_for(tmp_path: Path) -> None:
    """FR-15: reading the terminal fails at once instead of stopping the job for ever."""
    terminal, ours = os.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(ours, termios.TIOCSCTTY, 0)

    try:
        script = "exec 2>&1; read x < /dev/tty; echo $?"
        facts = run_driver(tmp_path, sh(script), timeout_s=5, fd_in=ours, preexec=take_terminal)
    finally:
        os.close(terminal)
        os.close(ours)
    assert (facts["stopped_by"], facts["stdin_unread"]) == (None, False)
    assert b"/dev/tty" in facts["out"]


def test_exit_before_the_timeout_is_no_timeout(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, sh("exit 3"), timeout_s=30)
    assert (facts["stopped_by"], facts["exit_code"]) == (None, 3)
    assert facts["took_s"] < 5


def test_timeout_is_counted_for_each_attempt(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, ["sleep", "60"], timeout_s=0.15, attempts=3, pause_s=0.05)
    assert [each["stopped_by"] for each in facts["attempts"]] == ["timeout"] * 3


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_signal_is_forwarded_to_the_tree(guarded: Starter, signum: int) -> None:
    """FR-20."""
    run = guarded.ready("ulimit -c 0; (setsid sleep 300 &); echo ready; exec sleep 300")
    run.send(signum)
    facts = run.finish()
    assert (facts["stopped_by"], facts["stop_signal"], facts["signal"]) == ("signal", signum, signum)
    assert facts["first"] == signum
    assert run.left() == set()


def test_signal_is_followed_by_kill_after_the_grace(guarded: Starter) -> None:
    run = guarded.ready(STUBBORN)
    run.send(signal.SIGTERM)
    facts = run.finish()
    assert (facts["stopped_by"], facts["stop_signal"], facts["signal"]) == ("signal", signal.SIGTERM, signal.SIGKILL)


def test_second_signal_kills_at_once(guarded: Starter) -> None:
    """FR-20."""
    run = guarded.ready("trap 'echo told' TERM; trap '' INT; echo ready; while :; do sleep 0.05; done", grace_s=60)
    run.send(signal.SIGTERM)
    run.expect(b"told")
    run.send(signal.SIGINT)
    facts = run.finish()
    assert (facts["stop_signal"], facts["signal"]) == (signal.SIGTERM, signal.SIGKILL)


def test_term_works_although_it_was_ignored_at_the_start(guarded: Starter) -> None:
    """FR-26."""
    run = guarded.ready("echo ready; exec sleep 60", wrap=["bash", "-c", "trap '' PIPE TERM; exec \"$@\"", "bash"])
    run.send(signal.SIGTERM)
    assert run.finish()["stop_signal"] == signal.SIGTERM


def test_hangup_under_nohup_is_ignored(guarded: Starter) -> None:
    run = guarded.ready("echo ready; sleep 0.3; exit 6", wrap=["nohup"])
    run.send(signal.SIGHUP)
    facts = run.finish()
    assert (facts["exit_code"], facts["first"]) == (6, None)


def test_signal_between_attempts_ends_the_pause(guarded: Starter) -> None:
    run = guarded.ready("echo ready; exit 1", attempts=2, pause_s=60)
    run.send(signal.SIGTERM)
    facts = run.finish()
    assert (len(facts["attempts"]), facts["interrupted"], facts["first"]) == (1, "signal", signal.SIGTERM)


def test_killed_supervisor_takes_the_whole_tree_along(guarded: Starter) -> None:
    """kill -9 of the supervisor: gone within two seconds whatever the grace, setsid included."""
    run = guarded.ready(SETSID_GRANDCHILD, grace_s=60)
    pids = run.started()
    began = time.monotonic()
    os.kill(pids["supervisor"], signal.SIGKILL)
    wait_until(lambda: not run.left() and not alive(pids["keeper"]), 3)
    assert time.monotonic() - began < 2


def test_killed_supervisor_between_attempts_takes_leftovers_along(guarded: Starter) -> None:
    """The run is unfinished: what it left would be orphans that hold the claim."""
    run = guarded.ready("setsid sleep 60 >/dev/null 2>&1 & echo ready; exit 1", attempts=2, pause_s=60)
    pids = run.started()
    wait_until(lambda: not alive(pids["command"]))
    assert run.left()
    os.kill(pids["supervisor"], signal.SIGKILL)
    wait_until(lambda: not run.left() and not alive(pids["keeper"]), 3)


def test_killed_keeper_leaves_nothing_and_is_told(guarded: Starter) -> None:
    """kill -9 of the keeper: the command dies with it, the supervisor ends what else there was."""
    run = guarded.ready(SETSID_GRANDCHILD)
    os.kill(run.started()["keeper"], signal.SIGKILL)
    facts = run.finish()
    assert facts["stopped_by"] == "keeper_lost"
    assert (facts["exit_code"], facts["signal"], facts["survivors"]) == (None, None, [])
    assert run.left() == set()


def test_keeper_that_fails_ends_the_tree_and_says_why(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, sh(SETSID_GRANDCHILD), garble="nonsense")
    assert facts["stopped_by"] == "keeper_lost"
    assert "cronguard: the keeper failed: KeyError: 'nonsense'" in facts["tail"]
    assert facts["left"] == set()


def test_stopped_keeper_does_not_hold_up_a_signal_for_ever(guarded: Starter) -> None:
    """A keeper that does not act in time is ended, and the tree with it."""
    run = guarded.ready(SETSID_GRANDCHILD, grace_s=0)
    os.kill(run.started()["keeper"], signal.SIGSTOP)
    run.send(signal.SIGTERM)
    facts = run.finish(12)
    assert facts["stopped_by"] == "keeper_lost"
    assert run.left() == set()


def _lease(folder: Path) -> str:
    path = str(folder / "lease")
    os.mkfifo(path)
    return path


def test_lease_that_is_not_renewed_ends_the_command(tmp_path: Path, guarded: Starter) -> None:
    """TERM at half the lease, KILL at three quarters, whatever the grace."""
    run = guarded.ready(STUBBORN, lease=_lease(tmp_path), lease_s=2, grace_s=60)
    facts = run.finish()
    assert (facts["stopped_by"], facts["signal"]) == ("lease", signal.SIGKILL)
    assert facts["duration_s"] < 2
    assert run.left() == set()


def test_renewals_keep_the_command_running(tmp_path: Path, guarded: Starter) -> None:
    path = _lease(tmp_path)
    run = guarded.ready("echo ready; sleep 1.6; exit 7", lease=path, lease_s=1.6)
    news = os.open(path, os.O_WRONLY)
    while run.process.poll() is None:
        os.write(news, b"renewed\n")
        time.sleep(0.1)
    os.close(news)
    assert run.finish()["exit_code"] == 7


def test_lost_lease_stops_at_once(tmp_path: Path, guarded: Starter) -> None:
    path = _lease(tmp_path)
    run = guarded.ready("echo ready; exec sleep 60", lease=path, lease_s=600)
    Path(path).write_text("lost\n")
    facts = run.finish()
    assert (facts["stopped_by"], facts["signal"]) == ("lease", signal.SIGTERM)


def test_lost_lease_ends_the_pause(tmp_path: Path, guarded: Starter) -> None:
    path = _lease(tmp_path)
    run = guarded.ready("echo ready; exit 1", lease=path, lease_s=600, attempts=2, pause_s=60)
    wait_until(lambda: not alive(run.started()["command"]))
    Path(path).write_text("lost\n")
    facts = run.finish()
    assert (len(facts["attempts"]), facts["interrupted"]) == (1, "lease")


def test_attempt_is_not_started_past_the_lease_deadline(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, ["false"], lease=_lease(tmp_path), lease_s=1.0, attempts=2, pause_s=0.6)
    assert [each["stopped_by"] for each in facts["attempts"]] == [None, "lease"]
    assert facts["attempts"][1]["pid"] is None


def test_keeper_starts_nothing_whose_lease_has_ended_meanwhile(tmp_path: Path) -> None:
    """P1: the supervisor may be stopped between its own look at the deadline and the order that it sends."""
    mark = tmp_path / "mark"
    facts = run_driver(tmp_path, sh(f"echo ran > {mark}"), lease=_lease(tmp_path), lease_s=1.0, stall_s=0.6)
    assert (facts["stopped_by"], facts["exit_code"], facts["signal"]) == ("lease", None, None)
    assert not mark.exists()


def test_stopped_supervisor_does_not_outlive_its_lease(tmp_path: Path, guarded: Starter) -> None:
    """SIGSTOP of the supervisor beyond the deadline: the keeper ends the command; after SIGCONT that is told."""
    run = guarded.ready(SETSID_GRANDCHILD, lease=_lease(tmp_path), lease_s=2)
    pids = run.started()
    os.kill(pids["supervisor"], signal.SIGSTOP)
    stopped_at = time.monotonic()
    wait_until(lambda: run.left() <= {pids["supervisor"]}, 3)
    assert time.monotonic() - stopped_at < 2
    os.kill(pids["supervisor"], signal.SIGCONT)
    assert run.finish()["stopped_by"] == "lease"


def test_end_seen_by_the_keeper_is_told_by_a_supervisor_stopped_beyond_its_lease(
    tmp_path: Path, guarded: Starter
) -> None:
    """P3: the report waits in the socket; that the keeper would be overdue by now says nothing about it."""
    run = guarded.ready("echo ready; sleep .3; exit 7", lease=_lease(tmp_path), lease_s=1.2)
    pids = run.started()
    os.kill(pids["supervisor"], signal.SIGSTOP)
    time.sleep(3.2)  # past all of the lease, and past what the keeper may take to end a command
    os.kill(pids["supervisor"], signal.SIGCONT)
    facts = run.finish()
    assert (facts["exit_code"], facts["stopped_by"]) == (7, None)


def test_stopped_keeper_does_not_outlive_the_lease_either(tmp_path: Path, guarded: Starter) -> None:
    run = guarded.ready(SETSID_GRANDCHILD, lease=_lease(tmp_path), lease_s=1.6)
    os.kill(run.started()["keeper"], signal.SIGSTOP)
    assert run.finish(12)["stopped_by"] == "keeper_lost"
    assert run.left() == set()


def test_leftovers_are_left_and_listed(guarded: Starter) -> None:
    run = guarded(sh(DAEMON))
    facts = run.finish()
    assert facts["exit_code"] == 0
    assert [command for _, command in facts["leftovers"]] == ["sleep 60"]
    assert {pid for pid, _ in facts["leftovers"]} == run.left()


def test_leftovers_are_ended_when_asked(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, sh(DAEMON), leftovers="kill", grace_s=5)
    assert (facts["exit_code"], facts["stopped_by"]) == (0, None)
    assert [command for _, command in facts["leftovers"]] == ["sleep 60"]
    assert facts["left"] == set()
    assert facts["took_s"] < 4


def test_stubborn_leftovers_are_killed_after_the_grace(tmp_path: Path) -> None:
    script = "trap '' TERM; setsid sleep 60 >/dev/null 2>&1 & sleep .1; exit 2"
    facts = run_driver(tmp_path, sh(script), leftovers="kill")
    assert (facts["exit_code"], facts["left"], facts["survivors"]) == (2, set(), [])


def test_zombies_do_not_pile_up(guarded: Starter) -> None:
    """FR-107: orphans that come to the keeper are reaped while the command runs."""
    run = guarded.ready("for i in 1 2 3 4 5 6 7 8 9 10; do (true &); done; echo ready; sleep 4; exit 3")
    keeper = run.started()["keeper"]

    def children() -> List[str]:
        return Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()

    wait_until(lambda: len(children()) == 1)
    assert run.finish()["exit_code"] == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace needs root")
def test_works_as_first_process_of_a_pid_namespace(tmp_path: Path) -> None:
    """FR-107."""
    wrap = ["unshare", "-pf", "--mount-proc"]
    facts = run_driver(tmp_path, sh("(sleep .1 &) ; (sleep .2 &) ; sleep .3; exit 3"), wrap=wrap)
    assert facts["exit_code"] == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace needs root")
def test_signals_nobody_else_when_proc_shows_another_namespace(tmp_path: Path) -> None:
    """Without `--mount-proc` the numbers in /proc are others': the command's own group is all that may be signalled."""
    facts = run_driver(tmp_path, sh("sleep 60 & wait"), wrap=["unshare", "-pf"], timeout_s=0.3)
    assert facts["stopped_by"] == "timeout"
    assert facts["duration_s"] < 1.5


COUNT_TERMS = 'n=0; trap "n=$((n+1))" TERM; echo ready; for i in 1 2 3 4 5 6 7 8 9 10; do sleep .1; done; exit 4$n'


def test_cancelled_command_gets_its_grace_and_one_term(tmp_path: Path, guarded: Starter) -> None:
    """The news may come with every renewal; a command that takes a second TERM for `at once` must get only one."""
    path = _lease(tmp_path)
    run = guarded.ready(COUNT_TERMS, lease=path, lease_s=600, grace_s=30)
    Path(path).write_text("renewed\ncancelled\n")
    Path(path).write_text("renewed\ncancelled\n")
    facts = run.finish()
    assert (facts["stopped_by"], facts["exit_code"], facts["stop_signal"]) == ("cancelled", 41, None)


def test_term_from_whoever_cancelled_is_not_a_second_one(tmp_path: Path, guarded: Starter) -> None:
    """`cancel` on this host marks the run, which its renewal may see, and sends TERM: one wish, told twice."""
    path = _lease(tmp_path)
    script = f"{COUNT_TERMS.replace('n+1))', 'n+1)); echo told')}"
    run = guarded.ready(script, lease=path, lease_s=600, grace_s=30)
    Path(path).write_text("cancelled\n")
    run.expect(b"told")
    run.send(signal.SIGTERM)
    facts = run.finish()
    assert (facts["stopped_by"], facts["exit_code"], facts["first"]) == ("cancelled", 41, signal.SIGTERM)


def test_lease_is_renewed_while_a_cancelled_command_uses_its_grace(tmp_path: Path, guarded: Starter) -> None:
    path = _lease(tmp_path)
    run = guarded.ready('trap "" TERM; echo ready; sleep 1.6; exit 7', lease=path, lease_s=1.6, grace_s=30)
    news = os.open(path, os.O_WRONLY)
    os.write(news, b"cancelled\n")
    while run.process.poll() is None:
        os.write(news, b"renewed\n")
        time.sleep(0.1)
    os.close(news)
    facts = run.finish()
    assert (facts["stopped_by"], facts["exit_code"]) == ("cancelled", 7)


def test_stubborn_command_that_is_cancelled_is_killed_after_its_grace(tmp_path: Path, guarded: Starter) -> None:
    path = _lease(tmp_path)
    run = guarded.ready(STUBBORN, lease=path, lease_s=600, grace_s=0.3)
    Path(path).write_text("cancelled\n")
    facts = run.finish()
    assert (facts["stopped_by"], facts["signal"]) == ("cancelled", signal.SIGKILL)
    assert run.left() == set()


def test_cancelling_ends_the_pause(tmp_path: Path, guarded: Starter) -> None:
    path = _lease(tmp_path)
    run = guarded.ready("echo ready; exit 1", lease=path, lease_s=600, attempts=2, pause_s=60)
    wait_until(lambda: not alive(run.started()["command"]))
    Path(path).write_text("cancelled\n")
    facts = run.finish()
    assert (len(facts["attempts"]), facts["interrupted"]) == (1, "cancelled")
