"""What is kept of an invocation: the finish row, the skip row, and the spool when the store does not take them."""

from __future__ import annotations

import json  # noqa: F401  (the spool needs it after the run, when the virtual environment may be gone: FR-34)
from typing import Optional

from cronguard.core.masking import mask_text
from cronguard.core.model import Claimed, ClaimRequest, Event, Exit, Finish, Outcome, Report, Skip
from cronguard.errors import StoreError
from cronguard.pipeline.passage import Budget, Surroundings
from cronguard.system.output import tail_text

FINISH_S = 30.0  # recording the outcome; then it is spooled
LEASE_LOST_S = 3.0  # the same, when the store has been silent for half a lease already
SKIP_S = 20.0  # recording that nothing was started: 200 at once on two cores take their time
NOTE_S = 2.0  # remembering what became of the pings


def record_skip(
    s: Surroundings, request: ClaimRequest, status: str, reason: str, holder: Optional[str], message: str
) -> None:
    skip = Skip(
        run_id=request.run_id,
        status=status,
        reason=reason,
        holder=holder,
        facts=request.facts,
        lock=request.lock,
        run_key=request.run_key,
        slot=request.slot,
        zone=request.zone,
        tzdata=request.tzdata,
        trigger=request.trigger,
        host=request.owner.host,
        user=request.user,
        version=request.version,
        at_utc=s.now(),
        lateness_s=request.lateness_s,
        message=message,
    )
    try:
        s.store.call(lambda store: store.record_skip(skip, SKIP_S), SKIP_S)
    except StoreError as error:
        fields = {"job": s.spec.job, "reason": reason}
        s.say(Event("skip_not_recorded", "warning", fields, f"the skip of {s.spec.job} could not be recorded: {error}"))


def finish_of(s: Surroundings, exit_: Exit, outcome: Outcome, duration_s: float, attempts: int) -> Finish:
    message = mask_text(exit_.results.get("message") or outcome.message)
    return Finish(
        outcome=outcome,
        finished_at_utc=s.now(),
        duration_s=duration_s,
        attempts=attempts,
        cpu_s=exit_.cpu_s,
        peak_rss_bytes=exit_.peak_rss_bytes,
        items=_count(exit_.results.get("items")),
        errors=_count(exit_.results.get("errors")),
        tail=tail_text(exit_.tail, exit_.cut_bytes),
        cut_bytes=exit_.cut_bytes,
        leftovers=tuple(each._replace(command=mask_text(each.command)) for each in exit_.leftovers),
        orphans=tuple(process.pid for process in exit_.survivors),
        stdin_unread=exit_.stdin_unread,
        message=message,
    )


def _count(text: Optional[str]) -> Optional[int]:
    """A number the command reported; None for what is none or would not fit a database's integer."""
    try:
        number = int(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 2**63 else None


def record(s: Surroundings, request: ClaimRequest, claim: Optional[Claimed], finish: Finish) -> None:
    """Into the store; when it does not answer, or there is no claim to finish, into the spool. Nothing is lost (P3)."""
    budget = Budget(LEASE_LOST_S if finish.outcome.reason == "lock_lost" else FINISH_S)
    why = "the run was unguarded"
    if claim is not None:
        mine = claim
        try:
            ours = s.store.call(lambda store: store.finish(mine, finish, budget.left()), budget.left())
        except StoreError as error:
            why = str(error)
        else:
            if not ours:
                text = f"{s.spec.job} had lost its claim before it ended; its row was left as it is"
                s.say(Event("lock_lost", "warning", {"job": s.spec.job, "run": request.run_id}, text))
            return
    report = Report(
        request=request,
        fence=None if claim is None else claim.fence,
        claim_no=None if claim is None else claim.claim_no,
        finish=finish,
        unguarded=claim is None,
    )
    fields = {"job": s.spec.job, "run": request.run_id, "status": finish.outcome.status}
    try:
        s.spool.save(report)
    except OSError as error:
        text = f"the outcome of {s.spec.job} ({finish.outcome.status}) could not be recorded ({why}) nor kept: {error}"
        s.say(Event("outcome_lost", "error", fields, text))
        return
    text = f"the outcome of {s.spec.job} is kept on this host and will be delivered later: {why}"
    s.say(Event("spooled", "warning", fields, text))
