"""Taking the claim: look, decide, claim, and wait when told to."""

from __future__ import annotations

import os
from typing import NamedTuple, Union

from cronguard.core import policy
from cronguard.core.model import Claimed, ClaimRequest, Event, Holder
from cronguard.pipeline.passage import Budget, Place, Surroundings
from cronguard.pipeline.telling import say_no_timeout
from cronguard.store.flock import holder_of, note_of
from cronguard.system.clock import boot_s
from cronguard.system.supervisor import pause

START_S = 30.0  # connect, look and claim together: 200 at once on two cores are slow, not down (FR-19, FR-63, FR-64)


class Interrupted(NamedTuple):
    """A signal came before the claim."""

    signal: int


Taken = Union[Claimed, policy.SkipIt, policy.Refuse, Interrupted]


def request_for(s: Surroundings, place: Place, run_id: str) -> ClaimRequest:
    lateness = None if place.slot is None else (place.at_utc - place.slot.at_utc).total_seconds()
    return ClaimRequest(
        run_id=run_id,
        facts=s.facts,
        lock=s.spec.lock,
        run_key=run_id if place.run_key is None else place.run_key,
        keyed=place.run_key is not None,
        slot=place.slot,
        zone=s.zone,
        tzdata=s.tzdata,
        trigger=s.trigger,
        force=s.force,
        redo=s.spec.redo,
        lease_s=s.spec.lease_s,
        owner=s.owner,
        user=s.user,
        version=s.version,
        argv=s.masked_argv,
        directory=s.directory,
        release=s.spec.release,
        now_utc=place.at_utc,
        lateness_s=lateness,
        named=s.spec.run_key is not None,
    )


def take(s: Surroundings, place: Place, request: ClaimRequest) -> Taken:
    """Look, decide, claim; with `--on-conflict wait` again every second or so, deciding all but the slot anew."""
    for warning in s.store.warnings:
        s.say(Event("store_warning", "warning", {"job": s.spec.job}, warning))
    began = boot_s()
    while True:
        question = question_for(s, place, boot_s() - began)
        decision = _look_and_claim(s, request, question)
        if isinstance(decision, Claimed):
            return decision
        if isinstance(decision, (policy.SkipIt, policy.Refuse)):
            return decision
        if pause(_about_a_second(), s.signals, None) is not None:
            return Interrupted(s.signals.first or 15)


def _look_and_claim(
    s: Surroundings, request: ClaimRequest, question: policy.Question
) -> Union[policy.Decision, Claimed]:
    """One try. `Go` never comes back: a claim refused for a reason that --force overrides would be a fault."""
    budget = Budget(START_S)
    began = boot_s()
    facts, lock, key = request.facts, request.lock, request.run_key
    s.store.call(lambda store: store.prepare(budget.left()), budget.left())
    sight = s.store.call(lambda store: store.look(facts.job, lock, key, s.judge, budget.left()), budget.left())
    decision = policy.decide(question, sight)
    if isinstance(decision, policy.Go):
        decision = decide_on_this_host(s, request, question)
    if not isinstance(decision, policy.Go):
        return decision
    if not sight.known and not s.spec.timeout_given:
        say_no_timeout(s)
    fresh = request._replace(now_utc=s.now())
    answer = s.store.call(lambda store: store.claim(fresh, s.judge, budget.left()), budget.left())
    if isinstance(answer, Claimed):
        return answer._replace(took_s=round(boot_s() - began, 6))
    return policy.decide(question, policy.sight_of(answer))


def decide_on_this_host(s: Surroundings, request: ClaimRequest, question: policy.Question) -> policy.Decision:
    """Where a run may do without the store, it needs this host's lock as well, guarded or not; else always `Go`."""
    if s.host_lock is None or s.host_lock.try_acquire(note_of(request)):
        return policy.Go()
    nameless = Holder("?", s.spec.job, request.owner.host, 0, request.now_utc)
    holder = holder_of(s.host_lock.holder_text()) or nameless
    return policy.decide(question, policy.NOTHING._replace(holder=holder))


def question_for(s: Surroundings, place: Place, waited_s: float) -> policy.Question:
    return policy.Question(s.spec, s.force, place.late_s(s.now()), waited_s, s.environ.get("CRONGUARD_RUN_ID"))


def _about_a_second() -> float:
    """0.8 to 1.2 s, so that waiters do not march in step."""
    return 0.8 + 0.4 * os.urandom(1)[0] / 255
