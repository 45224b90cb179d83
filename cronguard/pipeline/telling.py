"""What is said on the way, as events: plain words, stable keys. The command line decides what of it is shown."""

from __future__ import annotations

from typing import Dict, List, Optional

from cronguard.core.durations import format_duration
from cronguard.core.model import Claimed, ClaimRequest, Event, Finish
from cronguard.core.names import short_id
from cronguard.pipeline.passage import Surroundings


def say_no_timeout(s: Surroundings) -> None:
    limit = format_duration(s.spec.timeout_s or 0)
    text = f"{s.spec.job} has no --timeout of its own: it may run for {limit}; set one (0 means no limit)"
    s.say(Event("no_timeout", "warning", {"job": s.spec.job}, text))


def say_claimed(s: Surroundings, request: ClaimRequest, claim: Optional[Claimed]) -> None:
    if claim is None:
        return
    for run_id in claim.took_over:
        text = f"run {short_id(run_id)}, which held the lock of {s.spec.job}, is dead; it is recorded as lost"
        s.say(Event("lost", "warning", {"job": s.spec.job, "run": run_id}, text))
    fields = {
        "job": s.spec.job,
        "key": request.run_key,
        "run": request.run_id,
        "host": request.owner.host,
    }
    s.say(Event("lock_acquired", "info", fields))


def say_finished(s: Surroundings, request: ClaimRequest, finish: Finish) -> None:
    fields: Dict[str, object] = {
        "job": s.spec.job,
        "run": request.run_id,
        "took": format_duration(finish.duration_s),
    }
    if finish.items is not None:
        fields["items"] = finish.items
    if finish.errors is not None:
        fields["errors"] = finish.errors
    for warning in _warnings(s, finish):
        s.say(warning)
    if finish.outcome.status == "success":
        s.say(Event("completed", "info", fields))
        return
    fields["status"] = finish.outcome.status
    fields["exit"] = finish.outcome.leave_with
    if finish.attempts > 1:
        fields["attempts"] = finish.attempts
    s.say(Event("failed", "error", fields, finish.outcome.message))


def _leftovers(s: Surroundings, finish: Finish) -> Event:
    pids = " ".join(str(process.pid) for process in finish.leftovers)
    fate = "were ended" if s.spec.leftovers == "kill" else "are left running and hold no lock"
    text = f"processes that outlived the command of {s.spec.job} {fate}"
    return Event("leftovers", "info", {"job": s.spec.job, "pids": pids}, text)


def _warnings(s: Surroundings, finish: Finish) -> List[Event]:
    """What is odd about a run but not for its outcome to say."""
    found = []
    job = s.spec.job
    if finish.leftovers:
        found.append(_leftovers(s, finish))
    if finish.stdin_unread:
        text = f"{job} was given input on stdin that nobody read; to pass it to the command use --stdin inherit"
        found.append(Event("stdin_unread", "warning", {"job": job}, text))
    if finish.orphans:
        pids = " ".join(str(pid) for pid in finish.orphans)
        text = f"processes of {job} could not be ended and hold its lock on this host: {pids}"
        found.append(Event("orphans", "warning", {"job": job, "pids": pids}, text))
    return found
