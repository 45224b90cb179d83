"""One command in the keeper's hands, from its start to the end of the last process it left.

Knows the deadlines and the process tree and nothing of sockets: the keeper's loop calls `advance` whenever something
may have happened, and says `stop` or `hasten` when the supervisor does. The first cause of a stop stays the cause. The
main process's status is never lost: nobody else waits for children here.
"""

from __future__ import annotations

import os
import signal
from math import inf
from typing import Any, Iterable, NamedTuple, Optional, Set, Tuple

from cronguard.core.model import Process
from cronguard.system import processes
from cronguard.system.clock import boot_s
from cronguard.system.launch import Launch, Order, refusal

KILL_FOR_S = 1.5  # then what is left is reported as what cannot be killed
_ROUND_S = 0.02
_TREE_LOOK_S = 0.1  # only where orphans do not come to us: nobody tells when the last one ends


class Terms(NamedTuple):
    """Limits of one attempt. `leftovers`: `leave` or `kill`. Lease deadlines are boot times, inf without a lease."""

    timeout_s: Optional[float]
    grace_s: float
    leftovers: str
    lease_term_at: float
    lease_kill_at: float


class Ended(NamedTuple):
    """What the keeper reports. `status` as wait(2) gives it, None when nobody saw it; usage likewise.

    Linux keeps a process's peak memory across exec: it is never less than the keeper's own, about 14 MB."""

    status: Optional[int]
    cpu_s: Optional[float]
    peak_rss_bytes: Optional[int]
    cause: Optional[str]
    ended_at: float
    leftovers: Tuple[Tuple[int, str], ...]  # plain tuples, as they travel
    survivors: Tuple[Tuple[int, str], ...]


class Attempt:
    """The tree below the keeper and what is still to be done to it."""

    def __init__(self, launched: Launch, order: Order, terms: Terms, subreaper: bool) -> None:
        self.started_at = boot_s()
        self.report: Optional[int] = launched.report
        self.refused: Optional[Tuple[int, str]] = None
        self.ended: Optional[Ended] = None
        self._main = launched.pid
        self._order = order
        self._terms = terms
        self._subreaper = subreaper
        self._timeout_at = inf if terms.timeout_s is None else self.started_at + terms.timeout_s
        self._cause: Optional[str] = None
        self._kill_at = inf
        self._killing_since: Optional[float] = None
        self._status: Optional[int] = None
        self._usage: Optional[Any] = None
        self._ended_at: Optional[float] = None  # of the main process
        self._childless = False
        self._leftovers: Tuple[Process, ...] = ()

    @property
    def pid(self) -> int:
        """Of the command, which is its session's number as well."""
        return self._main

    def read_report(self) -> bool:
        """Take in what the child said about exec; True when the command now runs (or hangs before it)."""
        assert self.report is not None
        try:
            text = os.read(self.report, 1 << 16)
        except BlockingIOError:  # the attempt is over, yet the child hangs in exec or chdir on a dead mount
            text = b""
        os.close(self.report)
        self.report = None
        if text:
            self.refused = refusal(text, self._order)
        return not text

    def stop(self, cause: str, signum: int, kill_at: Optional[float] = None) -> None:
        """Signal the tree (and wake what was stopped: FR-15), KILL after the grace or at `kill_at` if sooner."""
        if self._cause is None and self._ended_at is None:
            self._cause = cause
        kill_at = min(boot_s() + self._terms.grace_s, inf if kill_at is None else kill_at)
        self._kill_at = min(self._kill_at, kill_at)
        self._signal(signum)

    def hasten(self) -> None:
        """KILL now."""
        self._kill_at = 0.0

    def renewed(self, term_at: float, kill_at: float) -> None:
        """The lease is good until later."""
        self._terms = self._terms._replace(lease_term_at=term_at, lease_kill_at=kill_at)

    def advance(self) -> float:
        """Reap, act on what is due, and tell the boot time at which to call again if nothing happens before."""
        self._reap()
        now = boot_s()
        if self._ended_at is None and self._kill_at == inf:
            if now >= self._terms.lease_term_at:
                self.stop("lease", signal.SIGTERM)
            elif now >= self._timeout_at:
                self.stop("timeout", signal.SIGTERM)
        if self._ended_at is not None:
            self._settle()
        if self.ended is None and now >= self._last_moment():
            self._kill(now)
        return self._next_look(now)

    def _last_moment(self) -> float:
        # A claim that is about to end leaves no time for anybody's grace.
        return min(self._kill_at, self._terms.lease_kill_at)

    def _next_look(self, now: float) -> float:
        if self._killing_since is not None:
            return now + _ROUND_S
        if self._kill_at < inf or self._ended_at is not None:
            look_at = inf if self._subreaper else now + _TREE_LOOK_S
            return min(self._last_moment(), look_at)
        return min(self._timeout_at, self._terms.lease_term_at, self._last_moment())

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._childless = True
                break
            if pid == 0:
                self._childless = False
                return
            if pid == self._main and self._ended_at is None:
                self._status, self._usage, self._ended_at = status, usage, boot_s()
        if self._ended_at is None:  # somebody took the status: success would need proof, so there is none
            self._ended_at = boot_s()

    def _settle(self) -> None:
        """The command is over: what of its descendants?"""
        left = self._living()
        if not left:
            self._end()
        elif self._kill_at == inf and not self._leftovers:
            self._leftovers = processes.describe(left)
            if self._terms.leftovers == "leave":
                self._end()
            else:
                self.stop("leftovers", signal.SIGTERM)

    def _kill(self, now: float) -> None:
        if self._killing_since is None:
            self._killing_since = now
        self._kill_at = 0.0
        self._signal(signal.SIGKILL)
        self._reap()
        if now >= self._killing_since + KILL_FOR_S:
            self._end(self._living())

    def _living(self) -> Set[int]:
        if self._childless and self._subreaper:
            return set()
        seen = processes.table()
        below = processes.descendants(os.getpid(), seen)
        return {pid for pid, stat in seen.items() if stat.alive and (pid in below or stat.session == self._main)}

    def _signal(self, signum: int) -> None:
        targets = self._living()
        signums = (signum,) if signum == signal.SIGKILL else (signum, signal.SIGCONT)
        processes.send(targets, *signums)
        if self._ended_at is None and self._main not in targets:
            # No /proc to go by, or the command is newer than the look: its own group is still known.
            for each in signums:
                processes.send((-self._main, self._main), each)

    def _end(self, survivors: Iterable[int] = ()) -> None:
        usage = self._usage
        self.ended = Ended(
            self._status,
            None if usage is None else usage.ru_utime + usage.ru_stime,
            None if usage is None else usage.ru_maxrss * 1024,  # kilobytes on Linux (getrusage(2))
            self._cause,
            boot_s() if self._ended_at is None else self._ended_at,
            plain(self._leftovers),
            plain(processes.describe(survivors)),
        )


def never_begun(cause: str) -> Ended:
    """The end of what was not started for that cause."""
    return Ended(None, None, None, cause, boot_s(), (), ())


def plain(found: Iterable[Process]) -> Tuple[Tuple[int, str], ...]:
    """As `Ended` has them."""
    return tuple((process.pid, process.command) for process in found)
