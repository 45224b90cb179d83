"""Judges raw facts. Success needs proof: only an exit status 0 that we saw ourselves, before any stop, is one.

(FR-12: a command that exits 0 from its TERM handler has not succeeded. FR-25: an unknown status is a failure.)
"""

from __future__ import annotations

import signal as signals
from typing import Optional

from cronguard.core import exitcodes
from cronguard.core.durations import format_duration
from cronguard.core.masking import mask_text
from cronguard.core.model import Exit, Outcome


def judge(exit_: Exit, timeout_s: Optional[float]) -> Outcome:
    """What one attempt came to. `timeout_s` is only for the message."""
    if exit_.start_error is not None:
        code = exit_.start_code or exitcodes.CANNOT_EXECUTE
        # It quotes the command: a whole shell line, where somebody forgot --shell (P9).
        return Outcome("failed", None, None, None, code, mask_text(exit_.start_error))
    if exit_.stopped_by is not None:
        return _stopped(exit_, timeout_s)
    if exit_.signal is not None:
        message = f"the command was ended by {signal_name(exit_.signal)}"
        return Outcome("failed", None, None, exit_.signal, exitcodes.for_signal(exit_.signal), message)
    if exit_.exit_code is None:
        return Outcome("failed", None, None, None, exitcodes.OUR_FAULT, "nobody saw how the command ended")
    if exit_.exit_code == 0 and exit_.output_error is not None:
        # Unwrapped, the command would have met this error itself: `... -- pg_dump > /full/disk/dump`.
        message = f"output was lost: {exit_.output_error}"
        return Outcome("failed", None, 0, None, exitcodes.OUR_FAULT, message)
    if exit_.exit_code != 0:
        code = exit_.exit_code
        return Outcome("failed", None, code, None, code, f"the command left with exit code {code}")
    return Outcome("success", None, 0, None, exitcodes.DONE, "")


def retryable(outcome: Outcome) -> bool:
    """Non-zero exits and timeouts may be tried again; a start error, a stop or a lost lock would only repeat."""
    if outcome.status == "timeout":
        return True
    return outcome.status == "failed" and (bool(outcome.exit_code) or outcome.signal is not None)


def signal_name(number: int) -> str:
    """`SIGTERM`, or `signal 63` for one without a name."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _stopped(exit_: Exit, timeout_s: Optional[float]) -> Outcome:
    if exit_.stopped_by == "timeout":
        limit = "" if timeout_s is None else f" of {format_duration(timeout_s)}"
        message = f"stopped at its timeout{limit}{_how(exit_)}"
        return Outcome("timeout", None, exit_.exit_code, exit_.signal, exitcodes.TIMED_OUT, message)
    if exit_.stopped_by == "signal":
        number = exit_.stop_signal or signals.SIGTERM
        message = f"cronguard got {signal_name(number)} and stopped the command{_how(exit_)}"
        return Outcome("aborted", None, exit_.exit_code, exit_.signal, exitcodes.for_signal(number), message)
    if exit_.stopped_by == "cancelled":
        message = f"cancelled: the command was stopped{_how(exit_)}"
        code = exitcodes.for_signal(signals.SIGTERM)
        return Outcome("aborted", "cancelled", exit_.exit_code, exit_.signal, code, message)
    number = exit_.signal or (signals.SIGTERM if exit_.stopped_by == "lease" else signals.SIGKILL)
    if exit_.stopped_by == "lease":
        message = f"the lease could not be renewed, the command was stopped before it ended{_how(exit_)}"
        return Outcome("aborted", "lock_lost", exit_.exit_code, exit_.signal, exitcodes.for_signal(number), message)
    message = f"the keeper process was killed, the command with it{_how(exit_)}"
    return Outcome("aborted", None, exit_.exit_code, exit_.signal, exitcodes.for_signal(number), message)


def _how(exit_: Exit) -> str:
    return " (it had to be killed)" if exit_.signal == signals.SIGKILL else ""
