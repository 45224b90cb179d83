"""The exit codes of `run` (design, section 8). The command's own code passes through unchanged, 0 to 255."""

from __future__ import annotations

DONE = 0
NOT_STARTED = 75  # EX_TEMPFAIL of sysexits.h: try again later; `--skip-exit-code` maps it
TIMED_OUT = 124  # as timeout(1) says it
OUR_FAULT = 125  # usage, config, store, `--on-conflict fail`: the command was not started
CANNOT_EXECUTE = 126
NOT_FOUND = 127


def for_signal(number: int) -> int:
    """128+n, as every shell reports a death by signal."""
    return 128 + number


def for_skip(reason: str, skip_exit_code: int) -> int:
    """0 when the slot's work is done, by whomever; otherwise the code the user chose for `not started`."""
    return DONE if reason == "already_done" else skip_exit_code
