"""Judging raw facts: success needs proof."""

from __future__ import annotations

import signal

import pytest

from cronguard.core import exitcodes
from cronguard.core.model import Exit
from cronguard.core.outcome import judge, retryable, signal_name

SEEN = Exit(0, None, None, None, None, None, 1.0, 0.1, 1024, (), (), b"", 0, {}, False)


def test_exit_status_zero_that_we_saw_is_success() -> None:
    outcome = judge(SEEN, 10.0)
    assert (outcome.status, outcome.leave_with, outcome.exit_code) == ("success", 0, 0)


@pytest.mark.parametrize("code", [1, 2, 75, 124, 125, 126, 127, 128, 137, 255])
def test_the_commands_own_code_passes_through(code: int) -> None:
    outcome = judge(SEEN._replace(exit_code=code), 10.0)
    assert (outcome.status, outcome.leave_with, outcome.exit_code, outcome.signal) == ("failed", code, code, None)


def test_a_death_by_signal_is_128_plus_n_and_not_an_exit_code() -> None:
    """FR-22: `exit 137` and a death by SIGKILL leave the same code but different rows."""
    outcome = judge(SEEN._replace(exit_code=None, signal=signal.SIGKILL), 10.0)
    assert (outcome.status, outcome.leave_with, outcome.exit_code, outcome.signal) == ("failed", 137, None, 9)


def test_exit_zero_from_a_term_handler_is_a_timeout_all_the_same() -> None:
    """FR-12."""
    outcome = judge(SEEN._replace(stopped_by="timeout"), 1.0)
    assert (outcome.status, outcome.leave_with) == ("timeout", exitcodes.TIMED_OUT)


def test_output_that_was_lost_is_a_failure_although_the_command_saw_none() -> None:
    """`... -- pg_dump > /full/disk/dump` must not be a good backup."""
    outcome = judge(SEEN._replace(output_error="stdout: no space left on device"), 1.0)
    assert (outcome.status, outcome.leave_with, outcome.exit_code) == ("failed", exitcodes.OUR_FAULT, 0)
    assert not retryable(outcome)


def test_an_end_that_nobody_saw_is_a_failure() -> None:
    """FR-25."""
    outcome = judge(SEEN._replace(exit_code=None), 1.0)
    assert (outcome.status, outcome.leave_with) == ("failed", exitcodes.OUR_FAULT)


@pytest.mark.parametrize(("ended_by", "leave_with"), [(None, 143), (signal.SIGTERM, 143), (signal.SIGKILL, 137)])
def test_a_lost_lease_is_aborted_with_its_reason(ended_by: object, leave_with: int) -> None:
    outcome = judge(SEEN._replace(exit_code=None, signal=ended_by, stopped_by="lease"), 1.0)
    assert (outcome.status, outcome.reason, outcome.leave_with) == ("aborted", "lock_lost", leave_with)


def test_our_own_stop_by_signal_leaves_with_that_signal() -> None:
    outcome = judge(SEEN._replace(exit_code=0, stopped_by="signal", stop_signal=signal.SIGINT), 1.0)
    assert (outcome.status, outcome.reason, outcome.leave_with) == ("aborted", None, 130)


def test_a_command_that_could_not_be_started_has_failed_with_its_code() -> None:
    """FR-27."""
    outcome = judge(SEEN._replace(exit_code=None, start_error="not found: nope", start_code=127), 1.0)
    assert (outcome.status, outcome.leave_with, outcome.exit_code) == ("failed", 127, None)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"exit_code": 3}, True),
        ({"exit_code": None, "signal": 11}, True),
        ({"stopped_by": "timeout"}, True),
        ({"exit_code": 0}, False),
        ({"exit_code": None, "start_error": "x", "start_code": 127}, False),
        ({"stopped_by": "signal", "stop_signal": 15}, False),
        ({"stopped_by": "lease"}, False),
        ({"stopped_by": "keeper_lost", "exit_code": None}, False),
    ],
)
def test_only_non_zero_exits_and_timeouts_are_tried_again(facts: dict, expected: bool) -> None:
    assert retryable(judge(SEEN._replace(**facts), 1.0)) is expected


def test_a_shell_line_that_was_no_program_is_told_without_its_secrets() -> None:
    """P9: the message goes into the row and into a ping's body."""
    line = "pg_dump postgresql://u:sesame@db/app | gzip: not found in PATH=/usr/bin:/bin"
    outcome = judge(SEEN._replace(exit_code=None, start_error=line, start_code=127), 10.0)
    assert outcome.message == line.replace("sesame", "***")


def test_signals_without_a_name_are_told_by_number() -> None:
    assert signal_name(15) == "SIGTERM"
    assert signal_name(49) == "signal 49"


@pytest.mark.parametrize(("code", "ended_by"), [(0, None), (None, signal.SIGTERM), (None, signal.SIGKILL)])
def test_a_cancelled_run_is_aborted_with_143_however_its_command_ended(code: object, ended_by: object) -> None:
    outcome = judge(SEEN._replace(exit_code=code, signal=ended_by, stopped_by="cancelled"), 1.0)
    assert (outcome.status, outcome.reason, outcome.leave_with) == ("aborted", "cancelled", 143)
    assert not retryable(outcome)
