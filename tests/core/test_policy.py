"""Deciding on what the store shows."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from cronguard.core import exitcodes
from cronguard.core.model import Done, Held, Holder, JobSpec, Paused, Pruned, Used
from cronguard.core.policy import NOTHING, Go, Question, Refuse, SkipIt, Wait, decide, sight_of

HOLDER = Holder("0197f3a2-aaaa", "nightly", "web-2", 42, datetime(2026, 1, 20, 2, 0, 1, tzinfo=timezone.utc))


def question(force: bool = False, lateness_s: float = 0.0, waited_s: float = 0.0, **changes: Any) -> Question:
    spec = JobSpec(
        job="nightly", command=("true",), shell=False, schedule=None, timezone="UTC", key="slot", run_key=None,
        timeout_s=60.0, timeout_given=True, grace_s=10.0, on_conflict="skip", wait_s=600.0, lock="nightly",
        lease_s=120.0, redo="failed", catch_up="latest", look_back_s=604800.0, max_late_s=None, jitter_s=0.0,
        retries=0, retry_delay_s=30.0, ping=None, ping_style="auto", quiet=False, no_capture=False, tail_bytes=65536,
        chdir=None, stdin="null", leftovers="leave", release=None, on_store_error="fail", skip_exit_code=75, env={},
    )  # fmt: skip
    return Question(spec._replace(**changes), force, lateness_s, waited_s, None)


DONE = NOTHING._replace(done_run="0197f3a1-bbbb")
HELD = NOTHING._replace(holder=HOLDER)


def test_a_free_undone_slot_goes() -> None:
    assert decide(question(), NOTHING) == Go()


def test_a_done_slot_is_skipped_and_leaves_zero() -> None:
    decision = decide(question(), DONE)
    assert isinstance(decision, SkipIt)
    assert decision.reason == "already_done"
    assert exitcodes.for_skip("already_done", 75) == 0
    assert exitcodes.for_skip("lock_held", 3) == 3


@pytest.mark.parametrize(
    ("sight", "changes", "lateness_s"),
    [(DONE, {}, 0.0), (NOTHING, {"max_late_s": 10.0}, 11.0), (NOTHING._replace(claims=1), {"redo": "never"}, 0.0)],
)
def test_force_overrides_done_late_and_used(sight: Any, changes: dict, lateness_s: float) -> None:
    assert isinstance(decide(question(lateness_s=lateness_s, **changes), sight), SkipIt)
    assert decide(question(force=True, lateness_s=lateness_s, **changes), sight) == Go()


@pytest.mark.parametrize(
    ("sight", "reason"),
    [(HELD, "lock_held"), (HELD._replace(orphans=(7,)), "orphans"), (NOTHING._replace(paused="deploy"), "paused")],
)
def test_force_never_overrides_lock_orphans_or_pause(sight: Any, reason: str) -> None:
    decision = decide(question(force=True), sight)
    assert isinstance(decision, SkipIt)
    assert decision.reason == reason


def test_a_done_slot_is_done_even_while_it_is_late_paused_or_held() -> None:
    sight = DONE._replace(holder=HOLDER, paused="deploy")
    decision = decide(question(lateness_s=100.0, max_late_s=10.0), sight)
    assert isinstance(decision, SkipIt)
    assert decision.reason == "already_done"


def test_conflict_policies() -> None:
    assert isinstance(decide(question(on_conflict="fail"), HELD), Refuse)
    assert decide(question(on_conflict="wait", waited_s=599.0), HELD) == Wait(HOLDER)
    waited = decide(question(on_conflict="wait", waited_s=601.0), HELD)
    assert isinstance(waited, SkipIt)
    assert waited.reason == "lock_held"


def test_a_run_started_inside_its_own_run_does_not_wait_for_itself() -> None:
    inside = question(on_conflict="wait")._replace(own_run=HOLDER.run_id)
    decision = decide(inside, HELD)
    assert isinstance(decision, SkipIt)
    assert decision.detail == "inside its own run"


def test_a_run_started_inside_its_own_run_fails_when_told_to() -> None:
    assert isinstance(decide(question(on_conflict="fail")._replace(own_run=HOLDER.run_id), HELD), Refuse)


def test_without_a_key_nothing_is_too_late() -> None:
    assert decide(question(lateness_s=11.0, max_late_s=10.0, key="none"), NOTHING) == Go()
    named = decide(question(lateness_s=11.0, max_late_s=10.0, key="none", run_key="batch-7"), NOTHING)
    assert isinstance(named, SkipIt)
    assert named.reason == "too_late"


def test_a_refused_claim_is_decided_like_a_look() -> None:
    assert sight_of(Held(HOLDER, (7,))) == NOTHING._replace(holder=HOLDER, orphans=(7,), known=True)
    assert sight_of(Done("x")).done_run == "x"
    assert sight_of(Paused("deploy")).paused == "deploy"
    assert sight_of(Used("x")).claims == 1


def test_a_slot_whose_rows_were_pruned_is_refused_unless_forced() -> None:
    sight = sight_of(Pruned(datetime(2026, 1, 20, tzinfo=timezone.utc)))
    decision = decide(question(), sight)
    assert isinstance(decision, SkipIt)
    assert (decision.reason, "--force" in decision.detail) == ("attempts_used", True)
    assert decide(question(force=True), sight) == Go()


@pytest.mark.parametrize(("reason", "detail"), [("deploy", "it is paused: deploy"), ("", "it is paused")])
def test_a_paused_job_says_why(reason: str, detail: str) -> None:
    assert decide(question(), NOTHING._replace(paused=reason)) == SkipIt("paused", detail)
