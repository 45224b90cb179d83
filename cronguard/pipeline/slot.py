"""The whole way of one slot."""

from __future__ import annotations

from math import inf
from typing import Optional, Tuple

from cronguard.core import exitcodes, policy
from cronguard.core import outcome as judging
from cronguard.core.heartbeat import cut_note
from cronguard.core.masking import mask_known
from cronguard.core.model import Claimed, ClaimRequest, Event, Exit, Finish, Outcome
from cronguard.core.names import short_id
from cronguard.errors import StoreDown, StoreError
from cronguard.pipeline.claiming import Interrupted, decide_on_this_host, question_for, request_for, take
from cronguard.pipeline.passage import Passage, Place, Surroundings
from cronguard.pipeline.recording import NOTE_S, finish_of, record, record_skip
from cronguard.pipeline.running import attempts
from cronguard.pipeline.telling import say_claimed, say_finished
from cronguard.pipeline.tidying import tidy
from cronguard.system.clock import boot_s
from cronguard.system.identity import forget_session, new_run_id
from cronguard.system.pinger import Ping, Pinger
from cronguard.system.results import forget_results
from cronguard.system.supervisor import not_run


def run_slot(s: Surroundings, place: Place) -> Passage:
    """Take the slot through. StoreDown when the store is down at the start and the job may not run without it."""
    request = request_for(s, place, new_run_id())
    try:
        passage = _claimed_or_not(s, place, request)
    finally:
        if s.host_lock is not None:
            s.host_lock.release()
    tidy(s)
    return passage


def _claimed_or_not(s: Surroundings, place: Place, request: ClaimRequest) -> Passage:
    try:
        taken = take(s, place, request)
    except StoreDown as error:
        if s.spec.on_store_error != "run":
            raise
        return _unguarded(s, place, request, error)
    if isinstance(taken, Claimed):
        return _run(s, request, taken)
    if isinstance(taken, Interrupted):
        s.say(Event("interrupted", "info", {"job": s.spec.job, "signal": judging.signal_name(taken.signal)}))
        return Passage(exitcodes.for_signal(taken.signal), "aborted", None)
    if isinstance(taken, policy.Refuse):
        return _refused(s, request, taken)
    return _skipped(s, request, taken)


def _skipped(s: Surroundings, request: ClaimRequest, skip: policy.SkipIt) -> Passage:
    record_skip(s, request, "skipped", skip.reason, skip.holder.run_id if skip.holder else skip.done_run, skip.detail)
    fields = {"job": s.spec.job, "key": request.run_key, "reason": skip.reason}
    if skip.holder is not None:
        fields["owner"] = f"{short_id(skip.holder.run_id)}@{skip.holder.host}"
        fields["since"] = skip.holder.since_utc.strftime("%H:%M:%SZ")
    level = "warning" if skip.reason == "orphans" else "info"
    s.say(Event("skipped", level, fields, f"{s.spec.job} was not started: {skip.detail or skip.reason}"))
    return Passage(exitcodes.for_skip(skip.reason, s.spec.skip_exit_code), "skipped", skip.reason)


def _refused(s: Surroundings, request: ClaimRequest, refusal: policy.Refuse) -> Passage:
    """`--on-conflict fail`: loud, with a row and a fail ping."""
    record_skip(s, request, "failed", refusal.reason, refusal.holder.run_id, refusal.detail)
    fields = {"job": s.spec.job, "key": request.run_key, "reason": refusal.reason}
    s.say(Event("refused", "error", fields, f"{s.spec.job} was not started: {refusal.detail}"))
    if s.ping_url is not None:
        Pinger(s.ping_url, s.spec.ping_style, request.run_id).finish(Ping("fail", message=refusal.detail), b"", None)
    return Passage(exitcodes.OUR_FAULT, "failed", refusal.reason)


def _unguarded(s: Surroundings, place: Place, request: ClaimRequest, error: StoreDown) -> Passage:
    """`--on-store-error run`: under the host's lock only, loudly, with what this host itself knows to be done."""
    for report in s.spool.reports():
        same = report.request.facts.job == s.spec.job and report.request.run_key == request.run_key
        if same and report.finish.outcome.status == "success" and not s.force:
            done = policy.SkipIt("already_done", f"done by run {short_id(report.request.run_id)}", None)
            fields = {"job": s.spec.job, "key": request.run_key, "reason": "already_done"}
            s.say(Event("skipped", "warning", fields, f"{s.spec.job} was not started: {done.detail} ({error})"))
            return Passage(exitcodes.DONE, "skipped", "already_done")
    decision = decide_on_this_host(s, request, question_for(s, place, inf))
    if isinstance(decision, policy.SkipIt):
        return _skipped(s, request, decision)
    if isinstance(decision, policy.Refuse):
        return _refused(s, request, decision)
    text = f"{s.spec.job} runs UNGUARDED: the store is down and --on-store-error is run ({error})"
    s.say(Event("unguarded", "warning", {"job": s.spec.job, "key": request.run_key}, text))
    return _run(s, request, None)


def _run(s: Surroundings, request: ClaimRequest, claim: Optional[Claimed]) -> Passage:
    """Supervise, judge, record, announce; `claim` None is an unguarded run."""
    say_claimed(s, request, claim)
    for run_id in () if claim is None else claim.took_over:
        forget_session(s.state_dir, run_id)
        forget_results(s.state_dir, run_id)
    pinger = None if s.ping_url is None else Pinger(s.ping_url, s.spec.ping_style, request.run_id)
    began = boot_s()
    exit_, tries = _supervised(s, request, claim, pinger)
    exit_ = exit_._replace(tail=mask_known(exit_.tail, s.secrets))
    duration_s = boot_s() - began
    outcome = judging.judge(exit_, s.spec.timeout_s)
    finish = finish_of(s, exit_, outcome, duration_s, tries)._replace(claim_s=claim.took_s if claim else None)
    record(s, request, claim, finish)
    say_finished(s, request, finish)
    if pinger is not None:
        _announce(s, request, pinger, exit_, finish)
    note = cut_note(exit_.cut_bytes) if exit_.cut_bytes else b""
    return Passage(outcome.leave_with, outcome.status, outcome.reason, note + exit_.tail)


def _supervised(
    s: Surroundings, request: ClaimRequest, claim: Optional[Claimed], pinger: Optional[Pinger]
) -> Tuple[Exit, int]:
    """All attempts, while the claim is being renewed; a lease that cannot be is no reason to leave the row as it is."""
    if claim is None or not s.store.leased:
        return attempts(s, request, claim, pinger, None)
    lease_s = s.spec.lease_s
    try:
        lease = s.store.keep_renewed(lambda store, within_s: store.renew(claim, lease_s, within_s), lease_s)
    except StoreError as error:
        return not_run(start_error=str(error), start_code=exitcodes.OUR_FAULT), 1
    try:
        return attempts(s, request, claim, pinger, lease)
    finally:
        s.store.stop_renewing()


def _announce(s: Surroundings, request: ClaimRequest, pinger: Pinger, exit_: Exit, finish: Finish) -> None:
    told = pinger.finish(_ping_for(finish.outcome), exit_.tail, finish.duration_s, exit_.cut_bytes)
    if "not delivered" in told:
        s.say(Event("ping_failed", "warning", {"job": s.spec.job}, f"heartbeat of {s.spec.job}: {told}"))
    try:
        s.store.call(lambda store: store.note_pings(request.run_id, told, NOTE_S), NOTE_S)
    except StoreError:
        pass  # P7: a note about a helper is not worth a word more


def _ping_for(outcome: Outcome) -> Ping:
    """The command's own code or 128+n where it ended by itself; plain `fail` where we ended it or never began."""
    if outcome.status == "success":
        return Ping("success")
    if outcome.status == "failed" and (outcome.exit_code or outcome.signal is not None):
        return Ping("exit", outcome.leave_with, outcome.message)
    return Ping("fail", message=outcome.message)
