"""Making up what is missing, unit after unit, each with a passage of its own.

The lock is free between two units, so that the current slot is never kept waiting by a thousand old ones: a unit that
has become due since the beginning goes first, one each before the next old one, for the start that its scheduler made
may have met our claim and left. And where a scheduled run of the job is met, it is waited for. Stops at the first
unit that fails or cannot be started; what others have done meanwhile is passed over.
"""

from __future__ import annotations

from datetime import datetime
from typing import FrozenSet, NamedTuple, Optional, Sequence

from cronguard.core import exitcodes
from cronguard.core.missing import Missing, Timetable
from cronguard.core.model import Event, Holder, Sight
from cronguard.core.names import short_id
from cronguard.errors import CronguardError
from cronguard.pipeline.catching_up import place_of
from cronguard.pipeline.passage import Passage, Surroundings
from cronguard.pipeline.slot import run_slot

LOOK_S = 10.0
_NOT_STARTED = ("lock_held", "orphans")  # reasons under which a passage was refused, although its status is `failed`


class Tally(NamedTuple):
    """`already_done`: by others, meanwhile. `left`: neither begun nor done."""

    done: int = 0
    already_done: int = 0
    failed: int = 0
    left: int = 0


class Plan(NamedTuple):
    """What is to be made up, oldest first, of what was due at `as_of_utc`. `forced`: keys to be run although nobody
    knows whether they were done."""

    times: Timetable
    missing: Sequence[Missing]
    as_of_utc: datetime
    forced: FrozenSet[str] = frozenset()


class Stop(NamedTuple):
    """What ended it before its time: at which key, in words, with the end of the output."""

    key: str
    why: str
    leave_with: int
    tail: bytes = b""
    trouble: Optional[CronguardError] = None


class Filled(NamedTuple):
    """What came of it."""

    tally: Tally
    stop: Optional[Stop]


class Watch:
    """Somebody who follows it."""

    def began(self, total: int) -> None:
        """So many units are to be made up."""

    def moved(self, tally: Tally, key: str) -> None:
        """So far that came of it, and that key is next."""


def fill(s: Surroundings, plan: Plan, watch: Watch) -> Filled:
    """Take the units through. Raises nothing: what went wrong is in the `Stop`."""
    filling = _Filling(s, plan)
    watch.began(len(plan.missing))
    for unit in plan.missing:
        current = filling.newly_due()
        for each in (unit,) if current is None else (current, unit):
            watch.moved(filling.tally, each.key)
            stop = filling.take(each)
            if stop is not None:
                return Filled(filling.tally, stop)
    return Filled(filling.tally, None)


class _Filling:
    """How far it is."""

    def __init__(self, s: Surroundings, plan: Plan) -> None:
        self.tally = Tally(left=len(plan.missing))
        self._s = s
        self._plan = plan
        self._planned = {unit.key for unit in plan.missing}
        self._current = ""  # the key that became due last

    def newly_due(self) -> Optional[Missing]:
        """The current unit, if it became due after the plan was made, once."""
        times = self._plan.times
        slot = times.schedule.latest_due(self._s.now())
        if slot is None or slot.at_utc <= self._plan.as_of_utc:
            return None
        unit = times.unit_of(slot)
        if unit.key in self._planned or unit.key == self._current:
            return None
        self._current = unit.key
        return Missing(unit.key, unit.slot, 0)

    def take(self, unit: Missing) -> Optional[Stop]:
        """Take it through and count it; why it must end here, None if it need not."""
        number = self._s.signals.first
        if number is not None:
            return Stop(unit.key, "interrupted", exitcodes.for_signal(number))
        try:
            passage = self._passage(unit)
        except CronguardError as error:
            return Stop(unit.key, str(error), exitcodes.OUR_FAULT, trouble=error)
        if passage is None or passage.reason == "already_done":
            self._count(unit, "already_done")
        elif passage.status == "success":
            self._count(unit, "done")
        elif passage.reason != "attempts_used":  # that one was tried by somebody else, and stays for people
            return self._stopped(unit, passage)
        return None

    def _stopped(self, unit: Missing, passage: Passage) -> Stop:
        if passage.status == "skipped" or passage.reason in _NOT_STARTED:
            return Stop(unit.key, f"not started: {passage.reason}", passage.leave_with)
        self._count(unit, "failed")
        return Stop(unit.key, f"{passage.status}, exit code {passage.leave_with}", passage.leave_with, passage.tail)

    def _count(self, unit: Missing, what: str) -> None:
        tally = self.tally
        if unit.key in self._planned:
            tally = tally._replace(left=tally.left - 1)
        elif what == "already_done":
            return
        self.tally = tally._replace(**{what: getattr(tally, what) + 1})

    def _passage(self, unit: Missing) -> Optional[Passage]:
        """None: it was done before we came to it. Looks first, so that nothing is recorded of what need not be; again
        if somebody came between look and claim, for it may be somebody to wait for."""
        s = self._s._replace(force=unit.key in self._plan.forced)
        passage = None
        for _ in range(2):
            sight = self._look(unit)
            if sight.done_run is not None:
                return None
            spec = s.spec._replace(on_conflict="wait") if self._waits_for(sight) else s.spec
            passage = run_slot(s._replace(spec=spec), place_of(unit, s.now(), None))
            if sight.holder is not None or passage.reason != "lock_held":
                break
        return passage

    def _look(self, unit: Missing) -> Sight:
        s = self._s
        job, lock = s.spec.job, s.spec.lock
        return s.store.call(lambda store: store.look(job, lock, unit.key, s.judge, LOOK_S), LOOK_S)

    def _waits_for(self, sight: Sight) -> bool:
        """Whether it is a run of this job that somebody else's clock started: the backfill goes on behind it."""
        holder = sight.holder
        if holder is None or sight.orphans or holder.job != self._s.spec.job or not self._is_scheduled(holder):
            return False
        text = f"waits for the run {short_id(holder.run_id)} that its scheduler started on {holder.host}"
        self._s.say(Event("waiting", "info", {"job": self._s.spec.job}, text))
        return True

    def _is_scheduled(self, holder: Holder) -> bool:
        rows = self._s.store.call(lambda store: store.find_runs(holder.run_id, LOOK_S), LOOK_S)
        return bool(rows) and rows[0].trigger != "backfill"
