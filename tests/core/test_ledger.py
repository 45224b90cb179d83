"""What a mark means and what follows from it: no effect is ever repeated or given up by a guess."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Optional

import pytest

from cronguard.core.effect_texts import effect_of, idempotency_of, standing, what_to_do
from cronguard.core.ledger import Again, Effect, Leave, Mark, decide, fence_from, job_from, state_of
from cronguard.core.model import Verdict
from cronguard.errors import UsageError
from tests.support.claims import OWNER

AT = datetime(2026, 1, 20, 8, 0, 5, tzinfo=timezone.utc)
DEAD, LEFTOVER, ALIVE, ELSEWHERE = Verdict("dead"), Verdict("dead", (7,)), Verdict("alive"), Verdict("unknown")


def mark(status: str = "started", lease_live: bool = False, **changes: Any) -> Mark:
    plain = Mark(Effect("job", "mail:7"), status, "token", 1, "0197f3a2-1111-7", OWNER, lease_live, AT, None, "")
    return plain._replace(**changes)


@pytest.mark.parametrize(
    ("status", "lease_live", "verdict", "state"),
    [
        ("done", False, DEAD, "done"),
        ("failed", False, ALIVE, "failed"),
        ("started", False, ALIVE, "under_way"),
        ("started", True, DEAD, "unknown"),
        ("started", True, LEFTOVER, "under_way"),
        ("started", True, ELSEWHERE, "under_way"),
        ("started", False, ELSEWHERE, "unknown"),
        ("started", False, None, "unknown"),
        ("started", True, None, "under_way"),
    ],
)
def test_a_started_mark_is_unknown_once_nobody_can_be_at_it(
    status: str, lease_live: bool, verdict: Optional[Verdict], state: str
) -> None:
    """FR-71. None: written by a job's own SQL, which names no owner."""
    assert state_of(mark(status, lease_live), verdict) == state


@pytest.mark.parametrize(
    ("effect", "on_unknown", "state", "decision"),
    [
        ("at-most-once", "redo", "done", Leave(0)),
        ("at-most-once", "redo", "failed", Leave(0, doubtful=True)),
        ("at-most-once", "redo", "under_way", Leave(0)),
        ("at-most-once", "redo", "unknown", Leave(0, doubtful=True)),
        ("at-least-once", "ask", "done", Leave(0)),
        ("at-least-once", "ask", "failed", Again("token")),
        ("at-least-once", "redo", "under_way", Leave(75)),
        ("at-least-once", "ask", "unknown", Leave(75)),
        ("at-least-once", "redo", "unknown", Again("token")),
        ("at-least-once", "skip", "unknown", Leave(0, doubtful=True)),
    ],
)
def test_policy_decides(effect: str, on_unknown: str, state: str, decision: object) -> None:
    """FR-71: at most once nothing is repeated whatever `on_unknown` says."""
    assert decide(effect, on_unknown, mark(), state) == decision


def test_what_is_unknown_is_said_with_since_when_by_whom_and_what_to_do() -> None:
    said = standing(mark(), "unknown")
    assert "2026-01-20T08:00:05Z by run 0197f3a2-1111 on web-1, pid 4711" in said
    effect = Effect("job", "it's", "2026-01-20")
    assert "items settle --run-key 2026-01-20 job 'it'\\''s'" in what_to_do(effect)
    assert "items forget --ledger --run-key 2026-01-20 job" in what_to_do(effect)


def test_idempotency_key_tells_effects_apart_and_is_stable() -> None:
    """FR-71."""
    effects = [Effect("job", "a"), Effect("job", "a", "b"), Effect("job", "b", "a"), Effect("joba", "")]
    effects.append(Effect("j", "oba"))
    keys = {idempotency_of(effect) for effect in effects}
    assert len(keys) == len(effects)
    assert idempotency_of(Effect("job", "a")) == idempotency_of(Effect("job", "a"))
    assert all(key.isascii() and len(key) <= 255 for key in keys)


def test_job_is_the_one_named_or_the_surrounding_runs() -> None:
    assert job_from("a", {"CRONGUARD_JOB": "b"}) == "a"
    assert job_from(None, {"CRONGUARD_JOB": "b"}) == "b"
    with pytest.raises(UsageError, match="--job JOB"):
        job_from(None, {})
    with pytest.raises(UsageError, match="CRONGUARD_JOB: 'b b'"):
        job_from(None, {"CRONGUARD_JOB": "b b"})


@pytest.mark.parametrize("key", ["", "x" * 501, "a\nb", "a\0", "a\x85b", "\udcff"])
def test_a_bad_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="KEY: "):
        effect_of("job", key, False, {})


def test_per_slot_needs_a_run_around_it() -> None:
    assert effect_of("job", "k", True, {"CRONGUARD_RUN_KEY": "2026"}) == Effect("job", "k", "2026")
    with pytest.raises(UsageError, match="--per-slot"):
        effect_of("job", "k", True, {})


def test_fence_that_is_no_number_is_no_reason_to_go_without() -> None:
    with pytest.raises(UsageError, match="CRONGUARD_FENCE"):
        fence_from({"CRONGUARD_RUN_ID": "x", "CRONGUARD_FENCE": "-1"})
    assert fence_from({"CRONGUARD_RUN_ID": "x"}) is None
