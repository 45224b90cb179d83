"""The store's operations for work that can be redone, ledger, queue and checkpoints, in terms of `Database`.

What they mean stands in contract.py. Whatever may be done twice because an answer was lost gives the same answer twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Dict, List, Optional, Sequence, Set

from cronguard.core.checkpoints import Checkpoint, CheckpointSet, SetAnswer
from cronguard.core.ledger import Begun, Effect, EffectAnswer, EffectRequest, Fenced, Mark
from cronguard.core.queue import Counts, Item, NewItem, Reserved, Settlement, Start, Steps, Take, TakeAnswer, Taken
from cronguard.store import checkpoints, ledger, queue
from cronguard.store.database import Database
from cronguard.store.dialect import Session, Statement
from cronguard.store.fencing import is_fenced_off
from cronguard.store.waiting import Deadline, boot_time_s


class RedoingStore(Database):
    """This half of a `Store`."""

    # A backend answers these.

    def _take_in(self, session: Session, take: Take) -> List[Reserved]:
        """Reserve items in this transaction, or find what an earlier try of the same take has reserved."""
        raise NotImplementedError

    def _before_set(self, wish: CheckpointSet) -> List[Statement]:
        """Statements that let one writer at a time at the checkpoint, which need not be there."""
        return []

    # The ledger.

    def begin_effect(self, request: EffectRequest, within_s: float) -> EffectAnswer:
        return self._transact(lambda session: ledger.begin(session, self.dialect, request), Deadline(within_s))

    def renew_effect(self, begun: Begun, lease_s: float, within_s: float) -> str:
        return "ours" if self._changed(ledger.renewal(begun, lease_s, self.dialect), within_s) else "lost"

    def settle_effect(self, begun: Begun, status: str, message: str, within_s: float) -> bool:
        return bool(self._send(ledger.settlement(begun, status, message, self.dialect), within_s)[-1].rows)

    def withdraw_effect(self, begun: Begun, within_s: float) -> None:
        self._send(ledger.withdrawal(begun, self.dialect), within_s)

    def marks(self, job: Optional[str], statuses: Sequence[str], limit: int, within_s: float) -> List[Mark]:
        (result,) = self._read([ledger.selection(job, statuses, limit, self.dialect)], Deadline(within_s))
        return [ledger.mark_of(values) for values in result.rows]

    def find_marks(self, job: str, keys: Sequence[str], within_s: float) -> List[Mark]:
        (result,) = self._read([ledger.found(job, keys, self.dialect)], Deadline(within_s))
        return [ledger.mark_of(values) for values in result.rows]

    def forget_effects(self, effects: Sequence[Effect], within_s: float) -> List[Effect]:
        return self._changed_effects(effects, [ledger.deletion(effect) for effect in sorted(effects)], within_s)

    def resolve_effects(self, effects: Sequence[Effect], within_s: float) -> List[Effect]:
        changes = [ledger.resolution(effect, self.dialect) for effect in sorted(effects)]
        return self._changed_effects(effects, changes, within_s)

    def _changed_effects(
        self, effects: Sequence[Effect], statements: Sequence[Statement], within_s: float
    ) -> List[Effect]:
        """Those that their statement found. A deletion whose answer was lost counts: a second try finds nothing."""
        there: Set[Effect] = set()

        def work(session: Session) -> None:
            results = session.run(statements)
            there.update(effect for effect, result in zip(sorted(effects), results) if result.changed)

        if effects:
            self._transact(work, Deadline(within_s))
        return [effect for effect in effects if effect in there]

    # The queue.

    def add_items(self, job: str, items: Sequence[NewItem], within_s: float) -> int:
        added = [0]  # by every try: one whose answer was lost leaves nothing for the next

        def work(session: Session) -> None:
            added.append(queue.add(session, self.dialect, job, items))

        if items:
            self._transact(work, Deadline(within_s))
        return max(added)

    def ready_groups(self, job: str, after: Optional[str], limit: int, within_s: float) -> List[str]:
        (result,) = self._read([queue.ready_groups(job, after, limit, self.dialect)], Deadline(within_s))
        return [str(values[0]) for values in result.rows]

    def take_items(self, take: Take, within_s: float) -> TakeAnswer:
        def work(session: Session) -> TakeAnswer:
            if take.fence is not None and is_fenced_off(session, self.dialect, take.fence):
                return Fenced(take.fence.run_id)
            sent_at = boot_time_s()
            return Taken(tuple(self._take_in(session, take)), sent_at)

        if not take.groups or take.most < 1:
            return Taken((), boot_time_s())
        return self._transact(work, Deadline(within_s))

    def step_items(
        self, job: str, settled: Sequence[Settlement], starting: Sequence[Start], reserve_s: float, within_s: float
    ) -> Steps:
        def work(session: Session) -> Steps:
            return queue.step(session, self.dialect, job, settled, starting, reserve_s, boot_time_s())

        return self._transact(work, Deadline(within_s))

    def renew_items(self, job: str, worker: str, reserve_s: float, within_s: float) -> Dict[str, int]:
        _, held = self._send(queue.renewal(job, worker, reserve_s, self.dialect), within_s)
        return {str(key): int(token) for key, token in held.rows}

    def count_items(self, job: str, within_s: float) -> Counts:
        return queue.counts_of(self._read(queue.counting(job, self.dialect), Deadline(within_s)))

    def items(
        self, job: str, statuses: Sequence[str], group: Optional[str], limit: int, within_s: float
    ) -> List[Item]:
        results = self._read(queue.selections(job, statuses, group, limit), Deadline(within_s))
        found = [queue.item_of(values) for result in results for values in result.rows]
        return sorted(found, key=lambda item: (item.available_at_utc, item.key))[:limit]

    def find_items(self, job: str, keys: Sequence[str], within_s: float) -> List[Item]:
        (result,) = self._read([queue.found(job, keys, self.dialect)], Deadline(within_s))
        return [queue.item_of(values) for values in result.rows]

    def retry_items(self, job: str, keys: Sequence[str], within_s: float) -> List[str]:
        return self._transact(lambda session: queue.retry(session, self.dialect, job, keys), Deadline(within_s))

    def forget_items(self, job: str, keys: Sequence[str], within_s: float) -> List[str]:
        there: Set[str] = set()  # of every try: one whose answer was lost has deleted them

        def work(session: Session) -> None:
            there.update(queue.forget(session, self.dialect, job, keys))

        self._transact(work, Deadline(within_s))
        return sorted(there)

    def clear_items(self, job: str, status: str, before_utc: Optional[datetime], limit: int, within_s: float) -> int:
        return self._send([queue.clearing(job, status, before_utc, limit, self.dialect)], within_s)[0].changed

    # Checkpoints.

    def set_checkpoint(self, wish: CheckpointSet, within_s: float) -> SetAnswer:
        setting = checkpoints.Setting(wish, self.dialect, self.leased)

        def work(session: Session) -> SetAnswer:
            session.run(self._before_set(wish))
            return setting.run(session)

        return self._transact(work, Deadline(within_s))

    def checkpoints(self, job: str, within_s: float) -> List[Checkpoint]:
        (result,) = self._read([checkpoints.selection(job)], Deadline(within_s))
        return [checkpoints.checkpoint_of(values) for values in result.rows]

    def clear_checkpoint(self, job: str, name: str, within_s: float) -> bool:
        return self._changed(checkpoints.deletion(job, name), within_s)
