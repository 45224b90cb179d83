"""A pass over the queue: reserve, start, settle, go on, until nothing is ready, the budget is spent, or it must end.

Any number of threads ask `next` for an item, each in turn for itself; what their last one came to is settled in the
same transaction in which the next begins. What was reserved and never begun is given back whatever ends the pass. An
outage in the middle is waited for, as long as the reservation of what is to be settled is good and no longer.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from math import inf
from typing import Callable, Deque, Dict, List, NamedTuple, Optional, TypeVar, Union

from cronguard.core import turns
from cronguard.core.durations import format_duration
from cronguard.core.item_settings import ItemsSpec
from cronguard.core.ledger import Fence, Fenced
from cronguard.core.model import Event, Say
from cronguard.core.names import shown
from cronguard.core.queue import Reserved, Settlement, Start, Steps, Take
from cronguard.errors import CronguardError, StoreDown, StoreError
from cronguard.store.contract import Store
from cronguard.store.worker import StoreWorker
from cronguard.system.clock import boot_s
from cronguard.system.identity import new_run_id

T = TypeVar("T")

WITHIN_S = 5.0
# For what loses nothing when it is given up: reservations end by themselves.
_PATIENCE_S = 10.0
_SHORTEST_S = 1.0  # for a try whose time is over
_RETRY_S = 0.25
_LONGEST_RETRY_S = 2.0

# Hears, in the store's thread, of a reservation: boot-time seconds when an acknowledged renewal was sent, or `lost`.
Tell = Callable[[Reserved, Union[float, str]], None]


class Handed(NamedTuple):
    """An item to be handled now. `sent_at`: boot-time seconds from which its reservation counts."""

    item: Reserved
    sent_at: float


class Handled(NamedTuple):
    """How it ended. `ending`: `done`, `failed`, or `interrupted`: ended by ourselves, not the item's fault.

    `settle_until`: boot time until which that is worth a try; an interrupted one comes back without it as well."""

    item: Reserved
    ending: str
    message: str
    settle_until: float


class Tally(NamedTuple):
    """What came of the pass. `failed`: tries that failed, of which `dead` were the last of their items; `lost`: items
    that somebody else got meanwhile; `left`: waiting or reserved at the end, None: the store did not say.
    `ended_by`: empty, budget, starved (there was work, and never time for it), signal, fenced or fault."""

    done: int = 0
    failed: int = 0
    dead: int = 0
    lost: int = 0
    left: Optional[int] = None
    left_alone: int = 0
    ended_by: str = "empty"


class _Hand(NamedTuple):
    """`until`: boot time until which its reservation is renewed."""

    item: Reserved
    tell: Tell
    until: float


class Pass:
    """One worker's pass. `end_at`: boot time at which it must be over."""

    def __init__(
        self,
        store: StoreWorker,
        spec: ItemsSpec,
        fence: Optional[Fence],
        end_at: float,
        say: Say,
        progress: Callable[[Tally], None],
        handler_until_s: float = inf,
    ) -> None:
        """`handler_until_s`: a handler that nobody can stop loses its item after so long."""
        self.fault: Optional[CronguardError] = None
        self._store = store
        self._spec = spec
        self._fence = fence
        self._end_at = end_at
        self._say = say
        self._progress = progress
        self._handler_until_s = handler_until_s
        self._worker = new_run_id()
        self._turns = turns.Turns(spec.batch, spec.per_group, spec.group_failures)
        self._tries = turns.Tries(spec.attempts, spec.backoff_s)
        self._pool: Deque[Reserved] = deque()
        self._after: Optional[str] = None
        self._tally = Tally()
        self._ended_by: Optional[str] = None
        self._began = False
        self._lock = threading.Lock()
        # Touched only in the store's thread: a renewal must not take an item that is just being settled for lost.
        self._hands: Dict[str, _Hand] = {}

    def begin(self) -> None:
        """From now on reservations are renewed. Raises StoreError when descriptors run out."""
        self._store.keep_renewed(self._renew, self._spec.reserve_s)

    def stop(self, why: str, fault: Optional[CronguardError] = None) -> None:
        """Hand out nothing more; the first reason counts. From any thread, waits for nothing."""
        self._ended_by = self._ended_by or why
        self.fault = self.fault or fault

    def next(self, handled: Optional[Handled], tell: Tell) -> Optional[Handed]:
        """Settle that one and hand out another; None: no more of them. A store that fails ends the pass."""
        with self._lock:
            try:
                return self._next(handled, tell)
            except StoreError as error:
                self.stop("fault", error)
                return None

    def finish(self) -> Tally:
        """Give back what is left in hand, and count. Never raises for the store's sake."""
        with self._lock:
            self._store.stop_renewing()
            tally = self._tally._replace(left_alone=len(self._turns.left))
            if isinstance(self.fault, StoreError):
                return tally._replace(ended_by="fault")
            try:
                self._give_back_all()
                job = self._spec.job
                counts = self._store.call(lambda store: store.count_items(job, WITHIN_S), WITHIN_S)
            except StoreError as error:
                self.stop("fault", error)
                return tally._replace(ended_by="fault")
            ended_by = self._ended_by or "empty"
            if ended_by == "budget" and not self._began and counts.ready:
                ended_by = "starved"
            return tally._replace(left=counts.waiting + counts.reserved, ended_by=ended_by)

    # --- one turn ---

    def _next(self, handled: Optional[Handled], tell: Tell) -> Optional[Handed]:
        settled = [] if handled is None else [self._settlement(handled)]
        while True:
            item = self._pick(settled)
            if settled or item is not None:
                steps = self._step(settled, item, tell, handled)
                settled, handled = [], None
                if item is not None and item.key not in steps.unstarted:
                    self._began = True
                    return Handed(item, steps.sent_at)
            elif self._over() or not self._refill():
                return None

    def _over(self) -> bool:
        """Whether nothing more is to begin."""
        if self._ended_by is None and boot_s() + self._spec.longest_s > self._end_at:
            self._ended_by = "budget"
        return self._ended_by is not None

    def _pick(self, settled: List[Settlement]) -> Optional[Reserved]:
        """The next item of the pool that is to begin, if any still is; what is not goes to `settled`."""
        while self._pool:
            item = self._pool.popleft()
            if item.group in self._turns.left or self._over():
                settled.append(turns.given_back(item))
            elif item.attempts >= self._tries.attempts:
                settled.append(self._worn_out(item))
            else:
                return item
        return None

    def _worn_out(self, item: Reserved) -> Settlement:
        end = turns.worn_out(item)
        fields = {"job": self._spec.job, "item": item.key, "attempt": item.attempts}
        self._say(Event("item_dead", "warning", fields, end.message or ""))
        self._tally = self._tally._replace(dead=self._tally.dead + 1)
        return end

    def _settlement(self, handled: Handled) -> Settlement:
        """What becomes of the item; its group may be left alone from now on."""
        item = handled.item
        if handled.ending == "interrupted":
            return turns.given_back(item)
        well = handled.ending == "done"
        if self._turns.ended(item.group, well):
            fields = {"job": self._spec.job, "group": item.group, "failures": self._spec.group_failures}
            text = f"its items are left for another pass; the last one, {shown(item.key)}: {handled.message}"
            self._say(Event("group_left", "warning", fields, text))
        return turns.done(item) if well else turns.failed(item, handled.message, self._tries)

    def _step(
        self, settled: List[Settlement], item: Optional[Reserved], tell: Tell, handled: Optional[Handled]
    ) -> Steps:
        job, reserve_s = self._spec.job, self._spec.reserve_s
        starting = [] if item is None else [Start(item.key, item.token, item.attempts + 1)]

        def work(store: Store, within_s: float) -> Steps:
            steps = store.step_items(job, settled, starting, reserve_s, within_s)
            for end in settled:
                self._hands.pop(end.key, None)
            if item is not None and not steps.unstarted:
                self._hands[item.key] = _Hand(item, tell, boot_s() + self._handler_until_s)
            return steps

        steps = self._patiently(work, boot_s() + _PATIENCE_S if handled is None else handled.settle_until)
        if handled is not None:
            self._count(handled, settled[0], handled.item.key in steps.unsettled)
        return steps

    def _count(self, handled: Handled, end: Settlement, refused: bool) -> None:
        tally = self._tally
        fields = {"job": self._spec.job, "item": end.key, "attempt": end.attempts}
        if refused:
            text = f"its reservation was lost meanwhile; that it ended as {handled.ending} here was not recorded"
            self._say(Event("item_lost", "warning", fields, text))
            tally = tally._replace(lost=tally.lost + 1)
        elif handled.ending == "done":
            tally = tally._replace(done=tally.done + 1)
        elif handled.ending == "failed":
            tally = tally._replace(failed=tally.failed + 1, dead=tally.dead + (end.status == "dead"))
            if end.status == "dead":
                self._say(Event("item_dead", "warning", fields, handled.message))
            else:
                fields["again_in"] = format_duration(end.delay_s)
                self._say(Event("item_failed", "info", fields, handled.message))
        self._tally = tally
        self._progress(tally)

    # --- reserving ---

    def _refill(self) -> bool:
        """Once around all groups that have something ready, from where the last time ended."""
        whole = self._after is None
        while True:
            offer = self._turns.offer(self._page())
            if offer.groups:
                if self._take(offer):
                    return True
                if self._ended_by is not None:
                    return False
            if self._after is None:
                if whole:
                    return False
                whole = True

    def _page(self) -> List[str]:
        if self._spec.group is not None:
            return [self._spec.group]
        job, after, most = self._spec.job, self._after, self._spec.batch
        page = self._patiently(
            lambda store, within_s: store.ready_groups(job, after, most, within_s), boot_s() + _PATIENCE_S
        )
        self._after = page[-1] if len(page) == most else None
        return page

    def _take(self, offer: turns.Offer) -> bool:
        spec = self._spec
        take = Take(
            spec.job, offer.groups, spec.batch, offer.per_group, self._worker, new_run_id(), self._fence, spec.reserve_s
        )
        answer = self._patiently(lambda store, within_s: store.take_items(take, within_s), boot_s() + _PATIENCE_S)
        if isinstance(answer, Fenced):
            self._ended_by = "fenced"
            return False
        for item in answer.items:
            self._turns.took(item.group)
        self._pool.extend(turns.in_turns(answer.items))
        return bool(answer.items)

    def _give_back_all(self) -> None:
        """What nobody began. A reservation that cannot be given back ends by itself."""
        unbegun = [turns.given_back(item) for item in self._pool]
        self._pool.clear()
        if unbegun:
            job, reserve_s = self._spec.job, self._spec.reserve_s
            self._store.call(lambda store: store.step_items(job, unbegun, (), reserve_s, WITHIN_S), WITHIN_S)

    def _renew(self, store: Store, within_s: float) -> str:
        """In the store's thread. Once a handler has overstayed, nothing is renewed any more."""
        sent_at = boot_s()
        overstayed = [hand for hand in self._hands.values() if hand.until < sent_at]
        for hand in overstayed:
            hand.tell(hand.item, "lost")
        if overstayed:
            return "ours"
        held = store.renew_items(self._spec.job, self._worker, self._spec.reserve_s, within_s)
        for key, hand in self._hands.items():
            hand.tell(hand.item, sent_at if held.get(key) == hand.item.token else "lost")
        return "ours"

    def _patiently(self, work: Callable[[Store, float], T], until: float) -> T:
        """Try until then, once at least: after a failure that was final, or a signal, not for long."""
        pause_s, began_at = _RETRY_S, boot_s()
        while True:
            within_s = min(WITHIN_S, max(_SHORTEST_S, until - boot_s()))
            try:
                return self._store.call(partial(_within, work, within_s), within_s)
            except StoreDown:
                last = until if self._ended_by != "signal" else min(until, began_at + _PATIENCE_S)
                if self.fault is not None or boot_s() + pause_s > last:
                    raise
            threading.Event().wait(pause_s)
            pause_s = min(_LONGEST_RETRY_S, pause_s * 2)


def _within(work: Callable[[Store, float], T], within_s: float, store: Store) -> T:
    return work(store, within_s)
