"""Missing slots one after the other, each a passage of its own; the first failure ends it.

The lock is free between two slots, so a start by the schedule can get in, and is waited for. One that came while a slot
of ours was running was turned away: the slot that is current then goes before all others, so that making up a thousand
never costs the newest. One start and one terminal ping for the whole (FR-49).
"""

from __future__ import annotations

from datetime import datetime
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence

from cronguard.core import exitcodes
from cronguard.core.missing import Missing, Timetable
from cronguard.core.model import Event
from cronguard.errors import CronguardError, StoreError
from cronguard.pipeline.catching_up import place_of
from cronguard.pipeline.passage import Passage, Surroundings
from cronguard.pipeline.slot import run_slot
from cronguard.system.identity import new_run_id
from cronguard.system.pinger import Ping, Pinger

LOOK_S = 10.0
# Passed over: the slot is done, or what it may be tried is used up. Anything else that was not started ends the whole.
_PASSED_OVER = {"already_done": "done", "attempts_used": "given up"}


class Made(NamedTuple):
    """What came of it. `already_done` by somebody else meanwhile; `given_up`: tried before as often as it may be.

    `stopped_at`: the key of the slot that failed or could not be started, and `why`; None when all were gone through.
    `tail` of the last command, for `--quiet`."""

    backfilled: int = 0
    already_done: int = 0
    given_up: int = 0
    failed: int = 0
    left: int = 0
    stopped_at: Optional[str] = None
    why: str = ""
    exit_code: int = exitcodes.DONE
    tail: bytes = b""


Progress = Callable[[Made], None]


def backfill(s: Surroundings, times: Timetable, missing: Sequence[Missing], progress: Progress) -> Made:
    """Go through them, oldest first; `progress` is told before the first and after each. StoreDown when a slot finds
    the store down."""
    heartbeat = _Heartbeat(s)
    silent = s._replace(ping_url=None, on_started=heartbeat.started)
    waiting: List[Missing] = list(reversed(missing))
    seen: Dict[str, Missing] = {unit.key: unit for unit in missing}
    made = Made(left=len(waiting))
    progress(made)
    try:
        while waiting and made.stopped_at is None:
            unit = waiting.pop()
            began = s.now()
            made = _counted(made, unit, run_slot(silent, place_of(unit, began, None)), len(waiting))
            current = _turned_away(s, times, began) if made.stopped_at is None else None
            if current is not None and current.key not in seen:
                seen[current.key] = current
                waiting.append(current)
                made = made._replace(left=len(waiting))
            progress(made)
    except CronguardError as error:
        heartbeat.end(Ping("fail", message=f"{unit.key}: {error}"), b"")
        raise
    heartbeat.end(_ping_for(made), made.tail)
    return made


def _counted(made: Made, unit: Missing, passage: Passage, left: int) -> Made:
    made = made._replace(left=left, tail=passage.tail)
    if passage.status == "success":
        return made._replace(backfilled=made.backfilled + 1)
    passed_over = _PASSED_OVER.get(passage.reason or "") if passage.status == "skipped" else None
    if passed_over == "done":
        return made._replace(already_done=made.already_done + 1)
    if passed_over is not None:
        return made._replace(given_up=made.given_up + 1)
    why = passage.reason or passage.status
    if passage.status == "skipped":  # not even tried
        return made._replace(left=left + 1, stopped_at=unit.key, why=why, exit_code=passage.leave_with)
    code = passage.leave_with or exitcodes.OUR_FAULT
    return made._replace(failed=1, stopped_at=unit.key, why=why, exit_code=code)


def _turned_away(s: Surroundings, times: Timetable, since: datetime) -> Optional[Missing]:
    """The current unit, if a start by the schedule found the lock taken since then. A store that does not say costs
    nothing: what is not done now is missing later."""
    job = s.spec.job
    try:
        skips = s.store.call(lambda store: store.history(job, 5, ("skipped",), since, LOOK_S), LOOK_S)
        slot = times.schedule.latest(s.now())
        if slot is None or not any(row.reason == "lock_held" and row.trigger == "schedule" for row in skips):
            return None
        unit = times.unit_of(slot)
        undone = s.store.call(lambda store: store.undone(job, [unit.key], LOOK_S), LOOK_S)
    except StoreError:
        return None
    if not undone:
        return None
    s.say(Event("current_first", "info", {"job": job, "key": unit.key}, "its start found the lock taken"))
    return Missing(unit.key, unit.slot, 0)


def _ping_for(made: Made) -> Ping:
    if made.failed:
        code = made.exit_code
        return Ping("fail", message=f"slot {made.stopped_at}: {made.why} ({code}); {made.left} more are left")
    return Ping("success")


class _Heartbeat:
    """One for the whole. Without a command that was started there is nothing to tell."""

    def __init__(self, s: Surroundings) -> None:
        self._s = s
        self._pinger = None if s.ping_url is None else Pinger(s.ping_url, s.spec.ping_style, new_run_id())
        self._started = False

    def started(self) -> None:
        """A command was started; the first one is told."""
        if not self._started and self._pinger is not None:
            self._pinger.start()
        self._started = True

    def end(self, ping: Ping, body: bytes) -> None:
        """Tell the end, if a beginning was told."""
        if self._pinger is None or not self._started:
            return
        told = self._pinger.finish(ping, body, None)
        if "not delivered" in told:
            job = self._s.spec.job
            self._s.say(Event("ping_failed", "warning", {"job": job}, f"heartbeat of {job}: {told}"))
