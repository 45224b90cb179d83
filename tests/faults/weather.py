"""The faults of a storm: what is done to supervisors, keepers and stores, to whom, and how it is undone.

All chances come from one generator. Single faults: nothing is done to the store while a supervisor is stopped or
shortly after, they take turns at it; and nothing is done twice to one run. Double faults: anything, any time, within
what P1 promises: the child of a command does not outlive both of its run's guards by a lease.
"""

from __future__ import annotations

import heapq
import random
import signal
import time
from collections import Counter
from typing import Callable, Dict, List, Optional, TextIO, Tuple

from cronguard.system import processes
from tests.faults.ground import LEASE_S, Ground, Invocation

CALM_S = 2.0  # single faults: between the end of one and a fault of the store
TURN_S = 6.0  # single faults: so long supervisors are not stopped, then so long the store is left alone
SURVIVED_S = LEASE_S / 3 - 1.0  # an outage that nobody may notice


class Weather:
    """Strikes those in `active`, which its owner keeps up to date; `log` is told everything."""

    def __init__(self, ground: Ground, chance: random.Random, double: bool, log: List[TextIO]) -> None:
        self.active: List[Invocation] = []
        self.counted: Counter[str] = Counter()
        self.store_down = False
        self._ground = ground
        self._chance = chance
        self._double = double
        self._log = log
        self._began = time.monotonic()
        self._later: List[Tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._calm_at = 0.0
        self._faults = self._table()

    @property
    def now(self) -> float:
        """Seconds since the storm began."""
        return time.monotonic() - self._began

    @property
    def child_flags(self) -> str:
        """For commands with a child: nobody may keep it for long if both guards of its run may be struck."""
        return "c" if self._double else "ch"

    def note(self, text: str) -> None:
        for stream in self._log:
            stream.write(f"{self.now:8.3f} {text}\n")
            stream.flush()

    def strike(self) -> None:
        """One fault, if there is anybody to do it to."""
        names = list(self._faults)
        name = self._chance.choices(names, [self._faults[each][0] for each in names])[0]
        if self._faults[name][1]():
            self.counted[name] += 1

    def pass_on(self) -> None:
        """Do what is due."""
        while self._later and self._later[0][0] <= self.now:
            heapq.heappop(self._later)[2]()
        for each in self.active:
            if each.at_end is not None and each.trace is not None and not each.running:
                self._at_end(each, each.at_end)

    def clear_up(self) -> None:
        """Undo at once what is under way; whoever has not begun is sent home."""
        self.note("peace")
        while self._later:
            heapq.heappop(self._later)[2]()
        for each in self.active:
            each.at_end = None
            self._release(each)
            if each.trace is None and not each.over:
                each.struck.add("term")
                each.send(signal.SIGTERM)

    def _after(self, delay_s: float, act: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._later, (self.now + delay_s, self._scheduled, act))

    def _table(self) -> Dict[str, Tuple[int, Callable[[], bool]]]:
        """Weight and deed; a deed tells whether there was anything to do it to."""
        table: Dict[str, Tuple[int, Callable[[], bool]]] = {
            "kill supervisor": (5, self._kill_supervisor),
            "kill keeper": (3, self._kill_keeper),
            "kill both": (3, self._kill_both),
            "kill at the end": (3, lambda: self._doom(signal.SIGKILL)),
            "stop supervisor": (4, self._stop_briefly),
            "stop supervisor beyond the lease": (2, self._stop_beyond_lease),
            "stop at the end, beyond the lease": (1, lambda: self._doom(signal.SIGSTOP)),
            "stop keeper": (2, self._stop_keeper),
            "term": (3, self._term),
        }
        if self._ground.kind == "sqlite":
            table["lock database"] = (2, self._lock_database)
        else:
            table["terminate backends"] = (4, self._terminate)
            table["restart fast"] = (2, lambda: self._restart(signal.SIGINT, self._chance.uniform(0.0, SURVIVED_S)))
            table["restart immediate"] = (2, lambda: self._restart(signal.SIGQUIT, self._chance.uniform(0, SURVIVED_S)))
            table["outage beyond the lease"] = (1, self._long_outage)
        if self._ground.kind == "pgbouncer":
            table["kill pooler"] = (4, self._kill_pooler)
        return table

    def _target(self, kind: str, running: bool) -> Optional[Invocation]:
        """Somebody to do something of that kind to; mostly whoever runs its command."""
        if kind in ("stop", "hold") and self._stores_turn and not self._double:
            return None
        free = [each for each in self.active if not each.over and (self._double or not each.struck)]
        if running or self._chance.random() < 0.6:
            free = [each for each in free if each.running]
        if not free or (self.store_down and not self._double):
            return None
        target = self._chance.choice(free)
        target.struck.add(kind)
        return target

    @property
    def _stores_turn(self) -> bool:
        return self._ground.server is not None and self.now % (2 * TURN_S) < TURN_S

    def _store_may_suffer(self) -> bool:
        stopped = any(each.stopped or each.at_end == signal.SIGSTOP for each in self.active)
        return self._double or not (stopped or self.store_down or self.now < self._calm_at)

    def _kill_supervisor(self) -> bool:
        target = self._target("kill", running=False)
        if target is None:
            return False
        self.note(f"{target.name} kill supervisor")
        self._release(target)
        target.send(signal.SIGKILL)
        return True

    def _kill_keeper(self) -> bool:
        target = self._target("keeper", running=True)
        if target is None:
            return False
        self._release(target)
        self.note(f"{target.name} kill keeper")
        return target.send_keeper(signal.SIGKILL)

    def _kill_both(self) -> bool:
        target = self._target("kill", running=True)
        if target is None:
            return False
        self.note(f"{target.name} kill both")
        self._release(target)
        deeds = [lambda: target.send_keeper(signal.SIGKILL), lambda: target.send(signal.SIGKILL)]
        self._chance.shuffle(deeds)
        for deed in deeds:
            deed()
        return True

    def _doom(self, signum: signal.Signals) -> bool:
        target = self._target("kill" if signum == signal.SIGKILL else "stop", running=True)
        if target is not None:
            self.note(f"{target.name} will get {signum.name} at its end")
            target.at_end = signum
        return target is not None

    def _at_end(self, target: Invocation, signum: signal.Signals) -> None:
        target.at_end = None
        self.note(f"{target.name} {signum.name} at its end")
        if signum == signal.SIGSTOP:
            self._stop(target, self._too_long())
        else:
            target.send(signum)

    def _stop_briefly(self) -> bool:
        target = self._target("stop", running=False)
        if target is not None:
            self._stop(target, self._chance.uniform(0.1, 4.0))
        return target is not None

    def _stop_beyond_lease(self) -> bool:
        target = self._target("hold", running=True)
        if target is not None:
            self._ground.hold(target.name)
            self._stop(target, self._too_long())
        return target is not None

    def _too_long(self) -> float:
        """Beyond the lease; where there is none a stopped owner is just waited for."""
        lease_s = 3.0 if self._ground.kind == "sqlite" else LEASE_S
        return lease_s + self._chance.uniform(0.5, 5.0)

    def _stop(self, target: Invocation, seconds: float) -> None:
        self.note(f"{target.name} stop for {seconds:.1f} s")
        target.stopped = True
        target.send(signal.SIGSTOP)
        self._after(seconds, lambda: self._go_on(target))

    def _go_on(self, target: Invocation) -> None:
        self.note(f"{target.name} go on")
        target.stopped = False
        target.send(signal.SIGCONT)
        self._calm_at = self.now + CALM_S
        self._release(target)

    def _release(self, target: Invocation) -> None:
        (self._ground.folder / "holds" / target.name).unlink(missing_ok=True)

    def _stop_keeper(self) -> bool:
        target = self._target("keeper", running=True)
        if target is None or not target.send_keeper(signal.SIGSTOP):
            return False
        seconds = self._chance.uniform(0.1, 3.0)
        self.note(f"{target.name} stop keeper for {seconds:.1f} s")
        trace = target.trace
        assert trace is not None
        self._after(seconds, lambda: self._wake_keeper(trace.keeper_pid))
        return True

    def _wake_keeper(self, pid: int) -> None:
        """Its supervisor may have gone meanwhile; it is still ours by its tag."""
        if pid in self._ground.left():
            processes.send((pid,), signal.SIGCONT)

    def _term(self) -> bool:
        target = self._target("term", running=False)
        if target is not None:
            self.note(f"{target.name} TERM")
            target.send(signal.SIGTERM)
        return target is not None

    # Faults of the store.

    def _lock_database(self) -> bool:
        connection = self._ground.lock_database() if self._store_may_suffer() else None
        if connection is None:
            return False
        seconds = self._chance.uniform(0.2, 4.0)
        self.note(f"database locked for {seconds:.1f} s")
        self._after(seconds, connection.close)
        return True

    def _terminate(self) -> bool:
        if not self._store_may_suffer() or self.store_down:
            return False
        self.note(f"backends terminated: {self._ground.terminate_backends(self._chance.choice((0.5, 1.0)))}")
        return True

    def _restart(self, how: signal.Signals, gap_s: float) -> bool:
        server = self._ground.server
        if not self._store_may_suffer() or self.store_down or server is None:
            return False
        self.note(f"server gets {how.name}, back after {gap_s:.1f} s")
        server.stop(how)
        self.store_down = True
        self._after(gap_s, self._start_server)
        return True

    def _start_server(self) -> None:
        assert self._ground.server is not None
        self._ground.server.start()
        self.store_down = False
        self._calm_at = self.now + CALM_S
        self.note("server is back")

    def _long_outage(self) -> bool:
        seconds = self._chance.uniform(9.0, 14.0)
        if not self._restart(signal.SIGINT, seconds):
            return False
        for each in self.active:
            each.struck.add("outage")
            if each.running:
                self._ground.hold(each.name)
                self._after(seconds + 2.0, lambda each=each: self._release(each))
        return True

    def _kill_pooler(self) -> bool:
        pooler = self._ground.pooler
        if not self._store_may_suffer() or self.store_down or pooler is None:
            return False
        seconds = self._chance.uniform(0.0, SURVIVED_S)
        self.note(f"pooler killed, back after {seconds:.1f} s")
        pooler.stop()
        self.store_down = True
        self._after(seconds, self._start_pooler)
        return True

    def _start_pooler(self) -> None:
        self._ground.start_pooler()
        self.store_down = False
        self._calm_at = self.now + CALM_S
        self.note("pooler is back")
