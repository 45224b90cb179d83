"""Values for tests of stores: a request, a finish, a skip, with what the test cares about and sensible rest."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Tuple

from cronguard.core.model import (
    Claimed,
    ClaimRequest,
    Finish,
    JobFacts,
    Outcome,
    Owner,
    Process,
    Report,
    ScheduleText,
    Skip,
    Verdict,
)
from cronguard.store.backend import SqlStore

WITHIN_S = 10.0
OWNER = Owner("machine", "web-1", "boot", "pid:[1]", 4711, 100, 4712, 101)


def judge_as(state: str, pids: Tuple[int, ...] = ()) -> Callable[[Owner, str], Verdict]:
    """Everybody is in that state."""
    return lambda _owner, _run_id: Verdict(state, pids)


ALIVE = judge_as("alive")
DEAD = judge_as("dead")
UNKNOWN = judge_as("unknown")


def now() -> datetime:
    return datetime.now(timezone.utc)


def new_id() -> str:
    return uuid.uuid4().hex


def facts(job: str = "job", **changes: Any) -> JobFacts:
    schedule = ScheduleText("cron", "0 2 * * *")
    plain = JobFacts(job, schedule, "Europe/Rome", "slot", 3600.0, 10.0, None, 604800.0, "failed")
    return plain._replace(**changes)


def request(run_key: str = "2026-01-20T02:00", job: str = "job", **changes: Any) -> ClaimRequest:
    plain = ClaimRequest(
        run_id=new_id(), facts=facts(job), lock=job, run_key=run_key, keyed=True, slot=None, zone="Europe/Rome",
        tzdata="2026a", trigger="schedule", force=False, redo="failed", lease_s=30.0, owner=OWNER, user="deploy",
        version="0.1.0", argv=("true",), directory="/srv/app", release=None, now_utc=now(), lateness_s=0.5,
    )
    return plain._replace(**changes)


def finish(status: str = "success", **changes: Any) -> Finish:
    code = 0 if status == "success" else 1
    plain = Finish(
        outcome=Outcome(status, None, code, None, code, status), finished_at_utc=now(), duration_s=2.0, attempts=1,
        cpu_s=0.1, peak_rss_bytes=1024, items=None, errors=None, tail="", cut_bytes=0, leftovers=(), orphans=(),
        stdin_unread=False, message="",
    )
    return plain._replace(**changes)


def skip(reason: str = "lock_held", job: str = "job", **changes: Any) -> Skip:
    plain = Skip(
        run_id=new_id(), status="skipped", reason=reason, holder=None, facts=facts(job), lock=job, run_key="k",
        slot=None, zone="Europe/Rome", tzdata="2026a", trigger="schedule", host="web-2", user="deploy",
        version="0.1.0", at_utc=now(), lateness_s=None, message="",
    )
    return plain._replace(**changes)


def report(of: ClaimRequest, end: Finish, claim: Any = None) -> Report:
    """A spooled finish; without a claim an unguarded one."""
    if claim is None:
        return Report(of, None, None, end, unguarded=True)
    return Report(of, claim.fence, claim.claim_no, end, unguarded=False)


def claimed(store: SqlStore, of: ClaimRequest, judge: Any = ALIVE) -> Claimed:
    """The claim, which nobody may refuse."""
    answer = store.claim(of, judge, WITHIN_S)
    assert isinstance(answer, Claimed), answer
    return answer


def row_of(store: SqlStore, run_id: str) -> Any:
    (row,) = store.find_runs(run_id, WITHIN_S)
    return row


def summary_of(store: SqlStore, job: str = "job") -> Any:
    (summary,) = store.jobs([job], WITHIN_S)
    return summary


def nasty() -> Dict[str, Any]:
    """Values that a database does not take as they are."""
    return {
        "argv": ("sh", "-c", "caf\udce9 \x00"), "directory": "/srv/\udcff", "release": "a\x00b",
        "leftovers": (Process(7, "sleep \udc80"),),
    }
