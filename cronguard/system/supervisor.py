"""One attempt, seen from cronguard's own process: hand the command to the keeper, wait, gather the facts.

The loop waits on the keeper, on signals, on news of the lease and on the clock, and blocks on nothing else. It decides
nothing about the run: it returns an `Exit` of raw facts. If the keeper dies, or does not act when it must, what was
below it is ended from here. All waits count on the boot-time clock, in slices, by poll (select sleeps on after a stop).
"""

from __future__ import annotations

import os
import select
import signal
from math import inf
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Set, Tuple, Union

from cronguard.core.model import Exit, Lease, Process
from cronguard.errors import CronguardError
from cronguard.system import processes
from cronguard.system.attempt import KILL_FOR_S, Ended, plain
from cronguard.system.clock import boot_s
from cronguard.system.keeper import SLICE_S, Keeper
from cronguard.system.launch import NOT_STARTED
from cronguard.system.output import Streams
from cronguard.system.results import read_results
from cronguard.system.signals import SignalNews
from cronguard.system.stdin import StdinWatch

_KEEPER_LATE_S = 5.0
_LEASE_LATE_S = 0.5
_STRAYS_GRACE_S = 2.0
# What news of the lease makes of a run, as `Exit.stopped_by` has it.
_CAUSES = {"lost": "lease", "cancelled": "cancelled"}


class Command(NamedTuple):
    """What to run. `directory` None: where we are. `stdin`: null or inherit. `results_path`: `$CRONGUARD_OUTPUT`."""

    argv: Tuple[str, ...]
    env: Mapping[str, str]
    directory: Optional[str]
    stdin: str
    capture: bool
    echo: bool
    tail_bytes: int
    results_path: Optional[str]


class Limits(NamedTuple):
    """`timeout_s` None: no limit. `leftovers`: `leave` or `kill`."""

    timeout_s: Optional[float]
    grace_s: float
    leftovers: str


class KeptLease(Lease):
    """A lease that remembers, whoever read the news, supervise or pause: `sent_at` of the newest renewal, and
    `over`, why the run must end: `lease` or `cancelled`, whichever was told first; None: it need not."""

    def __init__(self, lease: Lease, sent_at: float) -> None:
        self.sent_at = sent_at
        self.over: Optional[str] = None
        self._lease = lease

    def fileno(self) -> int:
        """As the lease's."""
        return self._lease.fileno()

    def news(self) -> List[Union[float, str]]:
        """As the lease's."""
        fresh = self._lease.news()
        for item in fresh:
            if isinstance(item, str):
                self.over = self.over or _CAUSES[item]
            else:
                self.sent_at = max(self.sent_at, item)
        return fresh


def supervise(
    keeper: Keeper,
    command: Command,
    limits: Limits,
    signals: SignalNews,
    lease: Optional[KeptLease],
    lease_s: float,
    lease_sent_at: float,
    on_started: Callable[[int], None],
) -> Exit:
    """Run it once, to the end of its last descendant or (`leave`) its own. `on_started` gets its pid, must not block.

    The command is not started when a signal came before, when it was cancelled, or when the lease is lost or its
    deadline has passed.
    Raises CronguardError when descriptors or threads run out before the start."""
    if signals.first is not None:
        return not_run(stopped_by="signal", stop_signal=signals.first)
    if lease is not None and (lease.over is not None or boot_s() >= lease_sent_at + lease_s / 2):
        return not_run(stopped_by=lease.over or "lease")
    attempt = _Supervision(keeper, command, limits, signals, lease, lease_s, on_started)
    return attempt.run(lease_sent_at)


def pause(seconds: float, signals: SignalNews, lease: Optional[KeptLease]) -> Optional[str]:
    """Wait between attempts. None: waited in full; else why there must be no more of them: `signal`, now or before,
    `lease`: it is lost, or `cancelled`."""
    until_s = boot_s() + seconds
    while True:
        if signals.first is not None:
            return "signal"
        if lease is not None:
            lease.news()
            if lease.over is not None:
                return lease.over
        if boot_s() >= until_s:
            return None
        _wait([signals, lease], until_s)


def _wait(sources: List[Any], until_s: float) -> None:
    waiting = select.poll()
    for source in sources:
        if source is not None:
            waiting.register(source, select.POLLIN)
    waiting.poll(int(min(SLICE_S, max(0.0, until_s - boot_s())) * 1000) + 1)


class _Supervision:
    """The state of one attempt in the supervisor."""

    def __init__(
        self,
        keeper: Keeper,
        command: Command,
        limits: Limits,
        signals: SignalNews,
        lease: Optional[KeptLease],
        lease_s: float,
        on_started: Callable[[int], None],
    ) -> None:
        self._keeper = keeper
        self._command = command
        self._limits = limits
        self._signals = signals
        self._lease = lease
        self._lease_s = lease_s
        self._on_started = on_started
        self._stdin = StdinWatch(passed_on=command.stdin == "inherit")
        self._streams = _open_streams(command)
        self._started_at = boot_s()
        self._pid: Optional[int] = None
        self._ended: Optional[Ended] = None
        self._refused: Optional[Tuple[int, str]] = None
        self._lost = False
        self._stop_signal: Optional[int] = None
        self._told_over = False
        # When the keeper must have reported, or it is stuck itself: because of a stop, because of the lease.
        self._overdue_at = self._lease_over_at = inf
        if limits.timeout_s is not None:
            self._overdue_at = self._started_at + limits.timeout_s + self._patience_s

    @property
    def _patience_s(self) -> float:
        return self._limits.grace_s + KILL_FOR_S + _KEEPER_LATE_S

    def run(self, lease_sent_at: float) -> Exit:
        """From start to facts."""
        refused = self._order(lease_sent_at)
        if refused:
            return not_run(start_error=refused, start_code=NOT_STARTED)
        while self._ended is None and self._refused is None and not self._lost:
            _wait([self._keeper.channel, self._signals, self._lease], min(self._overdue_at, self._lease_over_at))
            self._heed_signals()
            self._heed_lease()
            self._stdin.look()
            self._heed_keeper()
        ended = self._end_strays() if self._lost else self._ended
        self._finish_streams(patient=ended is not None and ended.cause is None and self._signals.first is None)
        if self._refused is not None:
            return not_run(start_code=self._refused[0], start_error=self._refused[1])
        assert ended is not None
        return self._exit(ended)

    def _order(self, lease_sent_at: float) -> Optional[str]:
        """Send the keeper the command; why that cannot be, otherwise."""
        command, limits = self._command, self._limits
        try:
            null = os.open(os.devnull, os.O_RDONLY)
        except OSError as error:
            self._streams.handed_over()
            raise _exhausted(os.strerror(error.errno or 0).lower()) from error
        try:
            words = (
                tuple(os.fsencode(word) for word in command.argv),
                {os.fsencode(name): os.fsencode(value) for name, value in command.env.items()},
                None if command.directory is None else os.fsencode(command.directory),
            )
            stdin = 0 if command.stdin == "inherit" else null
            sent = self._keeper.channel.send(
                "start",
                *words,
                limits.timeout_s,
                limits.grace_s,
                limits.leftovers,
                *self._deadlines(lease_sent_at),
                fds=[stdin, *self._streams.ends],
            )
        except UnicodeEncodeError as error:
            return f"arguments or environment: a character does not fit {error.encoding}, the locale's encoding"
        finally:
            os.close(null)
            self._streams.handed_over()
        self._lost = not sent
        return None

    def _deadlines(self, sent_at: float) -> Tuple[float, float]:
        if self._lease is None:
            return inf, inf
        kill_at = sent_at + self._lease_s * 3 / 4
        self._lease_over_at = kill_at + KILL_FOR_S + _LEASE_LATE_S
        return sent_at + self._lease_s / 2, kill_at

    def _heed_signals(self) -> None:
        for signum in self._signals.take():
            if self._stop_signal is None:
                self._stop_signal = signum
                if self._told_over and signum == signal.SIGTERM:
                    continue  # the tree has had its TERM: whoever cancels on this host tells us both ways
                self._keeper.channel.send("stop", "signal", signum)
                self._expect_end()
            else:
                self._keeper.channel.send("hasten")

    def _heed_lease(self) -> None:
        if self._lease is None:
            return
        for item in self._lease.news():
            if not isinstance(item, str):
                self._keeper.channel.send("lease", *self._deadlines(item))
        if self._lease.over is not None and not self._told_over and self._stop_signal is None:
            # Once: every renewal of a cancelled run says so again, and one TERM has to do.
            self._told_over = True
            self._keeper.channel.send("stop", self._lease.over, int(signal.SIGTERM))
            self._expect_end()

    def _expect_end(self) -> None:
        self._overdue_at = min(self._overdue_at, boot_s() + self._patience_s)

    def _heed_keeper(self) -> None:
        news = self._keeper.channel.receive()
        for name, *values in news.messages:
            if name == "started":
                self._pid = values[0]
                self._on_started(values[0])
            elif name == "refused":
                self._refused = (values[0], values[1])
            elif name == "ended":
                self._ended = Ended(*values)
            else:
                self._streams.note(f"cronguard: the keeper failed: {values[0]}\n")
        # Its word counts whenever it is read: stopped for long ourselves, we would take the keeper for late.
        answered = self._ended is not None or self._refused is not None
        self._lost = not answered and (news.closed or boot_s() >= min(self._overdue_at, self._lease_over_at))

    def _end_strays(self) -> Ended:
        """The keeper is no more: the command died with it, what else was below it has come to us."""
        self._keeper.bury()
        ended_at = boot_s()
        left = processes.end_all(self._strays, min(self._limits.grace_s, _STRAYS_GRACE_S), KILL_FOR_S)
        return Ended(None, None, None, "keeper_lost", ended_at, (), plain(processes.describe(left)))

    def _strays(self) -> Set[int]:
        # Children of our own making (the pinger) share our session; nothing that was below the keeper can.
        seen = processes.table()
        ours = os.getsid(0)
        below = processes.descendants(os.getpid(), seen)
        for keeper in self._keeper.siblings:
            below -= {keeper} | processes.descendants(keeper, seen)
        return {
            pid
            for pid, stat in seen.items()
            if stat.alive and (stat.session == self._pid or (pid in below and stat.session != ours))
        }

    def _finish_streams(self, patient: bool) -> None:
        self._streams.drain(patient, hurry=lambda: bool(self._signals.take()))
        self._stdin.look()
        while self._stdin.wait_s(boot_s() - self._started_at) > 0 and not self._signals.take():
            _wait([self._signals], boot_s() + min(0.05, self._stdin.wait_s(boot_s() - self._started_at)))
            self._stdin.look()

    def _exit(self, ended: Ended) -> Exit:
        tail, cut = self._streams.tail()
        status = ended.status
        return Exit(
            exit_code=os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
            start_error=None,
            start_code=None,
            stopped_by=ended.cause,
            stop_signal=self._stop_signal if ended.cause == "signal" else None,
            duration_s=ended.ended_at - self._started_at,
            cpu_s=ended.cpu_s,
            peak_rss_bytes=ended.peak_rss_bytes,
            leftovers=tuple(Process(*each) for each in ended.leftovers),
            survivors=tuple(Process(*each) for each in ended.survivors),
            tail=tail,
            cut_bytes=cut,
            results=read_results(self._command.results_path),
            stdin_unread=self._stdin.unread,
            output_error=self._streams.error(),
        )


def _open_streams(command: Command) -> Streams:
    try:
        return Streams(command.capture, command.echo, command.tail_bytes)
    except (OSError, RuntimeError) as error:
        why = os.strerror(error.errno or 0).lower() if isinstance(error, OSError) else str(error)
        raise _exhausted(why) from error


def _exhausted(why: str) -> CronguardError:
    return CronguardError(f"output: pipes and threads for it: {why}", "raise `ulimit -n` or `-u`")


def not_run(
    start_code: Optional[int] = None,
    start_error: Optional[str] = None,
    stopped_by: Optional[str] = None,
    stop_signal: Optional[int] = None,
) -> Exit:
    """The facts of an attempt that never began. `start_code`: 125 to 127, with `start_error`."""
    return Exit(
        exit_code=None,
        signal=None,
        start_error=start_error,
        start_code=start_code,
        stopped_by=stopped_by,
        stop_signal=stop_signal,
        duration_s=0.0,
        cpu_s=None,
        peak_rss_bytes=None,
        leftovers=(),
        survivors=(),
        tail=b"",
        cut_bytes=0,
        results={},
        stdin_unread=False,
    )
