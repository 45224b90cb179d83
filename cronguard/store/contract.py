"""What a store must do, in domain operations; nobody above ever sees SQL.

Both backends pass one contract suite (tests/contract). Every call is one short transaction or one read, bounded by
`within_s`, and raises `StoreDown` when the store cannot be reached or does not answer in that time (a read-only server
counts as down), `StoreError` when it answers but cannot serve (no rights, newer schema). Refusals are values.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Dict, List, Optional, Protocol, Sequence

from cronguard.core.checkpoints import Checkpoint, CheckpointSet, SetAnswer
from cronguard.core.ledger import Begun, Effect, EffectAnswer, EffectRequest, Mark
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
from cronguard.core.queue import Counts, Item, NewItem, Settlement, Start, Steps, Take, TakeAnswer

if TYPE_CHECKING:  # not on the path of a run
    from cronguard.store.installing import Installed


class Store(Protocol):
    """One open connection to a store. Used by one thread."""

    name: str  # for messages, secrets masked: `sqlite:/var/lib/cronguard/cronguard.db`, `postgresql://db.example/app`
    warnings: List[str]  # what the user should be told once: a network file system
    leased: bool  # True: claims end by themselves unless renewed (PostgreSQL); False: the owner's life decides (SQLite)

    def prepare(self, within_s: float) -> None:
        """Create or migrate the schema if need be; safe for many processes at once on an empty database."""

    def install(self, roles: Sequence[str], within_s: float) -> Installed:
        """The same, said: what was done. Gives these roles a runner's rights; UsageError where there are no such roles.

        NoRights for whoever may not do that."""

    def script(self, roles: Sequence[str], within_s: float) -> List[str]:
        """Lines of SQL that would do the same, for an owner to feed to the database's own shell. Writes nothing."""

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

    def forget_job(self, job: str, within_s: float) -> bool:
        """Delete everything about a job, as if it had never been there; False: it is running, and nothing was."""

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

    # Which slots were tried.

    def claims(self, job: str, run_keys: Sequence[str], within_s: float) -> Dict[str, int]:
        """How many claims each of `run_keys` has had without success so far; keys without any are absent."""

    def note_settled(self, job: str, from_utc: datetime, until_utc: datetime, within_s: float) -> None:
        """Remember that `--catch-up oldest` found nothing left to do in [from, until); see JobRow."""

    # The ledger: effects that happen once (core.ledger).

    def begin_effect(self, request: EffectRequest, within_s: float) -> EffectAnswer:
        """Mark the effect `started` before it begins, or answer the mark that is there and was not to be replaced.

        `Fenced` when the run of `request.fence` does not hold its lock with that fence any more. Calling it again with
        the same token answers `Begun` again."""

    def renew_effect(self, begun: Begun, lease_s: float, within_s: float) -> str:
        """`ours`, or `lost`: the mark is no longer this token's."""

    def settle_effect(self, begun: Begun, status: str, message: str, within_s: float) -> bool:
        """`done` or `failed`; False: the mark is no longer this token's. Repeating what had happened answers True."""

    def withdraw_effect(self, begun: Begun, within_s: float) -> None:
        """The effect was never begun: put back what was there before, as far as nothing else happened since."""

    def marks(self, job: Optional[str], statuses: Sequence[str], limit: int, within_s: float) -> List[Mark]:
        """Rows of the ledger, newest start first; all jobs for None, all statuses when empty."""

    def find_marks(self, job: str, keys: Sequence[str], within_s: float) -> List[Mark]:
        """Those of these keys that are there, of every run key."""

    def forget_effects(self, effects: Sequence[Effect], within_s: float) -> List[Effect]:
        """Delete these marks, whatever they say, so that the effects may happen again; answers those there were."""

    def resolve_effects(self, effects: Sequence[Effect], within_s: float) -> List[Effect]:
        """Somebody has found out that these happened: mark those that are there `done`, and answer them."""

    # The queue (core.queue).

    def add_items(self, job: str, items: Sequence[NewItem], within_s: float) -> int:
        """Add what is not there yet (whatever its status), in one statement; how many that were. At most 1000 items."""

    def ready_groups(self, job: str, after: Optional[str], limit: int, within_s: float) -> List[str]:
        """Names of groups that have an item to take now, in order of name, beginning after that one (None: the first).

        Costs a look-up for each group, not for each item."""

    def take_items(self, take: Take, within_s: float) -> TakeAnswer:
        """Reserve items. Two workers never get the same one, and neither waits for the other."""

    def step_items(
        self, job: str, settled: Sequence[Settlement], starting: Sequence[Start], reserve_s: float, within_s: float
    ) -> Steps:
        """Settle and start in one transaction; each by its token, repeating is harmless. A start renews."""

    def renew_items(self, job: str, worker: str, reserve_s: float, within_s: float) -> Dict[str, int]:
        """Extend everything that this worker has reserved, and answer it: key to token. What is absent was lost."""

    def count_items(self, job: str, within_s: float) -> Counts:
        """How many there are of each status."""

    def items(
        self, job: str, statuses: Sequence[str], group: Optional[str], limit: int, within_s: float
    ) -> List[Item]:
        """Items, those that may be taken soonest first; all statuses when empty, all groups for None."""

    def find_items(self, job: str, keys: Sequence[str], within_s: float) -> List[Item]:
        """Those of these keys that are there."""

    def retry_items(self, job: str, keys: Sequence[str], within_s: float) -> List[str]:
        """Let them be taken at once with all their attempts before them: dead, waiting or done ones, not reserved ones.

        Answers the keys that were changed."""

    def forget_items(self, job: str, keys: Sequence[str], within_s: float) -> List[str]:
        """Delete them, reserved ones too (their worker's settlement is refused); answers those that were there."""

    def clear_items(self, job: str, status: str, before_utc: Optional[datetime], limit: int, within_s: float) -> int:
        """Delete at most so many items of one status (`done`, `dead` or `waiting`) that were added before then."""

    # Checkpoints (core.checkpoints).

    def set_checkpoint(self, wish: CheckpointSet, within_s: float) -> SetAnswer:
        """Set it, unless that would undo what a newer run did."""

    def checkpoints(self, job: str, within_s: float) -> List[Checkpoint]:
        """All of a job, in order of name."""

    def clear_checkpoint(self, job: str, name: str, within_s: float) -> bool:
        """Forget it; False: there was none."""

    def close(self) -> None:
        """Let go of everything; never raises."""
