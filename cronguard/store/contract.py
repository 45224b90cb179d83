"""What a store must do, in domain operations; nobody above ever sees SQL.

Both backends pass one contract suite (tests/contract). Every call is one short transaction or one read, bounded by
`within_s`, and raises `StoreDown` when the store cannot be reached or does not answer in that time (a read-only server
counts as down), `StoreError` when it answers but cannot serve (no rights, newer schema). Refusals are values.
"""

from __future__ import annotations

from datetime import datetime
from typing import List, Optional, Protocol, Sequence

from cronguard.core.model import (
    ClaimAnswer,
    Claimed,
    ClaimRequest,
    Finding,
    Finish,
    Incident,
    JobFacts,
    JobRow,
    Judge,
    Notice,
    Report,
    RunRow,
    Sight,
    Skip,
)


class Store(Protocol):
    """One open connection to a store. Used by one thread."""

    name: str  # for messages, secrets masked: `sqlite:/var/lib/cronguard/cronguard.db`, `postgresql://db.example/app`
    warnings: List[str]  # what the user should be told once: a network file system
    leased: bool  # True: claims end by themselves unless renewed (PostgreSQL); False: the owner's life decides (SQLite)

    def prepare(self, within_s: float) -> None:
        """Create or migrate the schema if need be; safe for many processes at once on an empty database."""

    def look(self, job: str, lock: str, run_key: str, judge: Judge, within_s: float) -> Sight:
        """See who holds the lock and whether the key is done, without touching any lock."""

    def claim(self, request: ClaimRequest, judge: Judge, within_s: float) -> ClaimAnswer:
        """Take the claim or say why not. Decides in this order: done, paused, held (orphans), used, pruned.

        An unknown outcome of the COMMIT is settled by run id before this returns. Closes a dead owner's row as
        `lost`. Calling it again with a run id that already holds the claim answers the same `Claimed`.
        """

    def renew(self, claim: Claimed, lease_s: float, within_s: float) -> str:
        """Extend the lease: `ours`, `lost` (it is no longer), or `cancelled` (extended, but it is to be ended)."""

    def finish(self, claim: Claimed, finish: Finish, within_s: float) -> bool:
        """Write the outcome and drop the lease in one transaction; False: no longer ours, nothing was overwritten.

        Repeating a finish that had happened answers True. A row that was closed as `lost` meanwhile gets `late_*`.
        """

    def note_pings(self, run_id: str, pings: str, within_s: float) -> None:
        """Keep what became of the heartbeats, after the fact."""

    def record_skip(self, skip: Skip, within_s: float) -> None:
        """A row for an invocation that started nothing; a consecutive one alike counts the same row up."""

    def deliver(self, report: Report, within_s: float) -> None:
        """Bring in a spooled finish; never takes a row away, harmless when repeated."""

    def history(
        self, job: str, limit: int, statuses: Sequence[str], since_utc: Optional[datetime], within_s: float
    ) -> List[RunRow]:
        """Runs of a job, newest first. Empty `statuses`: all."""

    def find_runs(self, prefix: str, within_s: float) -> List[RunRow]:
        """Runs whose id starts with that (at most 10)."""

    def jobs(self, names: Sequence[str], within_s: float) -> List[JobRow]:
        """Summaries by job name, in order of name; empty `names`: all. Unknown names are absent."""

    def undone(self, job: str, run_keys: Sequence[str], within_s: float) -> List[str]:
        """Those of `run_keys`, in the given order, for which no run succeeded."""

    def runs_since(self, since_utc: datetime, limit: int, within_s: float) -> List[RunRow]:
        """Runs of all jobs that started since then, newest first, without their output."""

    def remember(self, facts: JobFacts, now_utc: datetime, within_s: float) -> None:
        """Know the job as a run of it would make it known, without a run: it can be paused before its first."""

    def pause(self, job: str, reason: str, until_utc: Optional[datetime], now_utc: datetime, within_s: float) -> bool:
        """Let nobody start the job until then, or until resumed; False: no such job."""

    def resume(self, job: str, now_utc: datetime, within_s: float) -> bool:
        """End a pause; slots that were due in it are not missed. False: no such job."""

    def request_cancel(self, job: str, within_s: float) -> Optional[RunRow]:
        """Mark the running run, if any, as to be ended; answers its row.

        Its renewals are answered `cancelled` from then on, and an `aborted` row gets the reason.
        """

    def prune(
        self, job: str, before_utc: datetime, keep: int, keep_skips: int, limit: int, within_s: float
    ) -> int:
        """Delete at most `limit` rows of the job in small transactions, and say how many went; 0: nothing left to do.

        Rows go that began before then, or beyond the newest `keep` (skips: `keep_skips`), but never what is still
        needed: see store.pruning. Stops early, with what is done, when the time is over.
        """

    def sync_incidents(
        self, jobs: Sequence[str], findings: Sequence[Finding], now_utc: datetime, remind_s: float, within_s: float
    ) -> List[Notice]:
        """Bring the incidents of these jobs in line with what was found; answers what this caller is to tell.

        Nobody else is given the same for a minute, or until `settle_notice`. A finding that is about no job
        (`nothing_to_check`) has one as well (say `""`), to be among `jobs` whenever it might be over.
        """

    def settle_notice(self, notice: Notice, delivered: bool, now_utc: datetime, within_s: float) -> None:
        """Delivered: not again until it is time for a reminder. Otherwise the next check tries again."""

    def incidents(self, within_s: float) -> List[Incident]:
        """The open ones, oldest first."""

    def close(self) -> None:
        """Let go of everything; never raises."""
