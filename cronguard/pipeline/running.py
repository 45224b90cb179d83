"""Running the command: its attempts, its environment, its pings' beginning."""

from __future__ import annotations

from datetime import timedelta
from typing import Callable, Dict, Optional, Tuple

from cronguard.core import exitcodes
from cronguard.core import outcome as judging
from cronguard.core.durations import format_duration
from cronguard.core.model import Claimed, ClaimRequest, Event, Exit, Lease
from cronguard.core.runkey import environment_for
from cronguard.errors import CronguardError
from cronguard.pipeline.passage import Surroundings
from cronguard.system.identity import forget_session, note_session
from cronguard.system.pinger import Pinger
from cronguard.system.results import create_results, remove_results
from cronguard.system.supervisor import Command, KeptLease, Limits, not_run, pause, supervise

# What a run tells its command, each with the prefix CRONGUARD_; an outer run's are taken away first.
_NAMES = (
    "JOB", "RUN_ID", "RUN_KEY", "SLOT", "SLOT_LOCAL", "DAY", "ZONE",
    "ATTEMPT", "FENCE", "DEADLINE", "TRIGGER", "OUTPUT",
)


def attempts(
    s: Surroundings, request: ClaimRequest, claim: Optional[Claimed], pinger: Optional[Pinger], lease: Optional[Lease]
) -> Tuple[Exit, int]:
    """Run the command until it need not be run again; the facts of the last attempt, and how many there were."""
    kept = None if lease is None or claim is None else KeptLease(lease, claim.sent_at)
    attempt = 1
    while True:
        start = pinger.start if pinger is not None and attempt == 1 else None
        exit_ = _attempt(s, request, claim, attempt, start, kept)
        if attempt > s.spec.retries or not judging.retryable(judging.judge(exit_, s.spec.timeout_s)):
            return exit_, attempt
        delay_s = s.spec.retry_delay_s * 2 ** (attempt - 1)
        fields = {"job": s.spec.job, "run": request.run_id, "attempt": attempt, "delay": format_duration(delay_s)}
        s.say(Event("retrying", "info", fields, judging.judge(exit_, s.spec.timeout_s).message))
        interruption = pause(delay_s, s.signals, kept)
        if interruption is not None:
            return exit_._replace(stopped_by=interruption, stop_signal=s.signals.first), attempt
        attempt += 1


def _attempt(
    s: Surroundings,
    request: ClaimRequest,
    claim: Optional[Claimed],
    attempt: int,
    start_ping: Optional[Callable[[], None]],
    lease: Optional[KeptLease],
) -> Exit:
    spec = s.spec
    results_path = _results_file(s, request, attempt)
    command = Command(
        argv=s.argv,
        env=_environment(s, request, claim, attempt, results_path),
        directory=s.directory,
        stdin=spec.stdin,
        capture=not spec.no_capture,
        echo=not spec.quiet,
        tail_bytes=spec.tail_bytes,
        results_path=results_path,
    )
    limits = Limits(spec.timeout_s, spec.grace_s, spec.leftovers)
    sent_at = 0.0 if lease is None else lease.sent_at

    def started(pid: int) -> None:
        note_session(s.state_dir, request.run_id, pid)
        for tell in (start_ping, s.on_started):
            if tell is not None:
                tell()

    # The claim is ours already: what fails between it and the start (descriptors, threads) goes on record.
    try:
        return supervise(s.keeper, command, limits, s.signals, lease, spec.lease_s, sent_at, started)
    except CronguardError as error:
        return not_run(start_error=str(error), start_code=exitcodes.OUR_FAULT)
    finally:
        remove_results(results_path)
        forget_session(s.state_dir, request.run_id)


def _results_file(s: Surroundings, request: ClaimRequest, attempt: int) -> Optional[str]:
    """For `$CRONGUARD_OUTPUT`; a job runs without one rather than not at all (P7). Each attempt has its own: the one
    before may have left anything under its name."""
    try:
        return create_results(s.state_dir, f"{request.run_id}.{attempt}")
    except CronguardError as error:
        text = f"{s.spec.job} runs without CRONGUARD_OUTPUT: {error}"
        s.say(Event("no_results", "warning", {"job": s.spec.job}, text))
        return None


def _environment(
    s: Surroundings, request: ClaimRequest, claim: Optional[Claimed], attempt: int, results_path: Optional[str]
) -> Dict[str, str]:
    """The command's environment: ours, the job's `env`, and what this run is (never what an outer run was)."""
    now = s.now()
    own = {
        "CRONGUARD_JOB": s.spec.job,
        "CRONGUARD_RUN_ID": request.run_id,
        "CRONGUARD_RUN_KEY": request.run_key,
        "CRONGUARD_ATTEMPT": str(attempt),
        "CRONGUARD_TRIGGER": request.trigger if claim is None else claim.trigger,
    }
    if results_path is not None:
        own["CRONGUARD_OUTPUT"] = results_path
    if claim is not None:
        own["CRONGUARD_FENCE"] = str(claim.fence)
    if s.spec.timeout_s is not None:
        own["CRONGUARD_DEADLINE"] = (now + timedelta(seconds=s.spec.timeout_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
    own.update(environment_for(request.slot, now, s.zone))
    outer = {f"CRONGUARD_{name}" for name in _NAMES}
    environ = {name: value for name, value in s.environ.items() if name not in outer}
    environ.update(s.spec.env)
    environ.update(own)
    return environ
