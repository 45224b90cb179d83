"""The ledger of external effects: an effect is keyed, marked before it begins, and happens once.

At most once: whatever mark is found, the effect is not repeated. At least once: a mark `started` that nobody will
turn into `done` any more is a state of its own, `unknown`, which is shown and decided by the job's policy, never
guessed (FR-71).
Pure: rows and verdicts are arguments.
"""

from __future__ import annotations

from datetime import datetime
from typing import Mapping, NamedTuple, Optional, Union

from cronguard.core import exitcodes
from cronguard.core.model import Owner, Verdict
from cronguard.core.names import check_job_name
from cronguard.errors import UsageError

# What a row says by itself; whether a `started` one is under way or unknown depends on who started it.
MARKS = ("started", "done", "failed")


class Fence(NamedTuple):
    """The run that an effect, item or checkpoint belongs to, by `CRONGUARD_RUN_ID` and `CRONGUARD_FENCE`."""

    run_id: str
    fence: int


class Effect(NamedTuple):
    """What is to happen once. Keys are compared byte for byte; `run_key` is empty unless each slot has its own."""

    job: str
    key: str
    run_key: str = ""


class EffectRequest(NamedTuple):
    """The wish to begin it. `token` is made by the client before the first try: an unknown COMMIT is settled by it.

    `replaces`: the token of the mark that may be replaced (a failed or unknown one), None: there must be none.
    """

    effect: Effect
    token: str
    replaces: Optional[str]
    owner: Owner
    fence: Optional[Fence]  # None outside a run
    lease_s: float


class Begun(NamedTuple):
    """The mark is ours, the effect may begin. `sent_at`: boot-time seconds when the acknowledged statement was sent."""

    effect: Effect
    token: str
    attempts: int
    sent_at: float


class Mark(NamedTuple):
    """A row of the ledger. `lease_live`: by the store's clock whoever started it may still be at it."""

    effect: Effect
    status: str
    token: str
    attempts: int
    run_id: Optional[str]
    owner: Optional[Owner]  # None: written by a job's own SQL
    lease_live: bool
    started_at_utc: datetime
    finished_at_utc: Optional[datetime]
    message: str


class Fenced(NamedTuple):
    """The run that asked no longer holds its lock: it must not do anything more."""

    run_id: str


EffectAnswer = Union[Begun, Mark, Fenced]

# --- what a mark means, and what follows ---


class Again(NamedTuple):
    """Begin it once more, over the mark with this token."""

    replaces: str


class Leave(NamedTuple):
    """Do not begin it. `leave_with`: 0 for what is not to be done any more, 75 for what is not done yet.

    `doubtful`: it may never have happened, and nobody will try it again unless told to."""

    leave_with: int
    doubtful: bool = False


def state_of(mark: Mark, verdict: Optional[Verdict]) -> str:
    """`done`, `failed`, `under_way`, or `unknown`: it was begun, and nobody can say any more how it ended.

    `verdict` on the mark's owner; None for one that names none, written by a job's own SQL. A process that was left
    over still is at it. Where death cannot be proved the lease decides."""
    if mark.status != "started":
        return mark.status
    if verdict is not None and verdict.state != "unknown":
        return "under_way" if verdict.state == "alive" or verdict.pids else "unknown"
    return "under_way" if mark.lease_live else "unknown"


def decide(effect: str, on_unknown: str, mark: Mark, state: str) -> Union[Again, Leave]:
    """What to do about an effect whose mark is there. `effect` and `on_unknown` as in core.settings."""
    if state == "done":
        return Leave(exitcodes.DONE)
    if effect == "at-most-once":
        return Leave(exitcodes.DONE, doubtful=state != "under_way")
    if state == "under_way":
        return Leave(exitcodes.NOT_STARTED)
    if state == "failed" or on_unknown == "redo":
        return Again(mark.token)
    return Leave(exitcodes.DONE, doubtful=True) if on_unknown == "skip" else Leave(exitcodes.NOT_STARTED)


# --- by the environment ---


def job_from(given: Optional[str], environ: Mapping[str, str]) -> str:
    """The job that something belongs to: as named, else that of the surrounding run. UsageError without either."""
    job = given or environ.get("CRONGUARD_JOB")
    if not job:
        problem = "JOB: none named, and no run around us whose CRONGUARD_JOB would say it"
        raise UsageError(problem, "name it: --job JOB, in Python job=...")
    wrong = check_job_name(job)
    if wrong is not None:
        raise UsageError(f"{'--job' if given else 'CRONGUARD_JOB'}: {wrong}")
    return job


def run_key_from(environ: Mapping[str, str]) -> str:
    """What the surrounding run does once. UsageError outside one."""
    run_key = environ.get("CRONGUARD_RUN_KEY")
    if not run_key:
        raise UsageError("--per-slot: no run around us whose CRONGUARD_RUN_KEY would say which slot it is")
    return run_key


def fence_from(environ: Mapping[str, str]) -> Optional[Fence]:
    """The run that this process is part of, by its environment; None outside one, or in one that goes unguarded.

    UsageError for a fence that is no number: better not to begin than to go on without the protection."""
    run_id, text = environ.get("CRONGUARD_RUN_ID"), environ.get("CRONGUARD_FENCE")
    if not run_id or not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"CRONGUARD_FENCE: {text!r}: not a number", "leave it as the run has set it")
    return Fence(run_id, int(text))


def idempotency_key(kind: str, *parts: str) -> str:
    """For a service that takes such a key: the same whenever the same thing is tried again, and nothing but ASCII.

    `parts`: the job, then what tells the thing from others of its kind (`item`, `effect`)."""
    from hashlib import sha256  # loads OpenSSL, 9 ms that a run shall not pay

    named = "\0".join((kind, *parts)).encode("utf-8", "surrogatepass")
    return f"{kind}-{sha256(named).hexdigest()[:40]}"
