"""The keeper: a process forked before anything else, parent of the command and sole master of its tree.

It outlives whatever happens to the supervisor, the store or the network, and needs none of them: when the supervisor
is killed (its socket closes without a goodbye) or stopped (the lease deadline passes), it ends the tree by itself. It
holds no descriptor of the supervisor's but that socket, writes nowhere, and knows nothing of jobs, slots or stores.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import socket
import time
from math import inf
from typing import Any, Callable, Dict, List, Optional, Tuple

from cronguard.errors import CronguardError
from cronguard.system import kernel, processes
from cronguard.system.attempt import Attempt, Terms, never_begun
from cronguard.system.channel import Channel
from cronguard.system.clock import boot_s
from cronguard.system.launch import NOT_STARTED, Order, launch

SLICE_S = 1.0  # poll does not count suspended time, the deadlines do
_ORPHAN_GRACE_S = 0.5
_ORPHAN_KILL_S = 1.5
_GOODBYE_S = 2.0
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP)


class Keeper:
    """The supervisor's handle. One keeper serves all attempts of an invocation, one after the other."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self.siblings: Tuple[int, ...] = ()  # pids of other keepers of this process, whose trees are not this one's
        self._reaped = False

    def goodbye(self) -> None:
        """End it in peace, whatever it leaves behind stays alive; killed when it does not end within two seconds."""
        if self._reaped:
            return
        self.channel.send("goodbye")
        waiting = select.poll()
        waiting.register(self.channel, select.POLLIN)
        until_s = boot_s() + _GOODBYE_S
        while boot_s() < until_s and not (waiting.poll(100) and self.channel.receive().closed):
            pass
        self.bury()

    def bury(self) -> None:
        """Make sure that it is dead, and reap it."""
        if self._reaped:
            return
        self._reaped = True
        if not self.channel.receive().closed:
            processes.send((self.pid,), signal.SIGKILL)
        self.channel.close()
        until_s = boot_s() + _GOODBYE_S
        try:
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0 and boot_s() < until_s:
                time.sleep(0.001)
        except ChildProcessError:  # SIGCHLD was ignored by whoever started us, and still is
            pass


def fork_keeper() -> Keeper:
    """Fork the keeper: before threads, connections and locks, none of which it may inherit.

    This process becomes a subreaper too: should the keeper die, what was below it comes here to be ended.
    Raises CronguardError when there can be no process or socket."""
    _open_standard()
    kernel.become_subreaper()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ours = theirs = None
    try:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            _keep(theirs)
        return Keeper(pid, Channel(ours))
    except OSError as error:
        if ours is not None:
            ours.close()
        raise CronguardError(f"keeper: cannot be started: {os.strerror(error.errno or 0).lower()}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if theirs is not None:
            theirs.close()


def fork_keepers(count: int) -> List[Keeper]:
    """Several, for commands that run at the same time. Raises as `fork_keeper`; then none is left."""
    keepers: List[Keeper] = []
    try:
        for _ in range(count):
            keepers.append(fork_keeper())
    except CronguardError:
        for keeper in keepers:
            keeper.goodbye()
        raise
    for keeper in keepers:
        keeper.siblings = tuple(other.pid for other in keepers if other is not keeper)
    return keepers


def _open_standard() -> None:
    """Started with 0, 1 or 2 closed, the next descriptor opened would become one of them."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        os.set_inheritable(fd, True)
        fd = os.dup(fd)
    os.close(fd)


def _keep(sock: socket.socket) -> None:
    """The keeper's life; never returns."""
    channel = None
    try:
        gc.freeze()  # pages shared with the supervisor stay shared
        wake = _settle_in(sock.fileno())
        channel = Channel(sock)
        _Loop(channel, wake, kernel.become_subreaper()).run()
    except Exception as error:  # noqa: BLE001  nobody above: the tree must end and the supervisor learn why, whatever it was
        processes.end_all(lambda: processes.living_below(os.getpid()), 0.0, _ORPHAN_KILL_S)
        if channel is not None:
            channel.send("fault", _told(error))
    finally:
        os._exit(0)


def _told(error: Exception) -> str:
    """Where and what, without importing `traceback` (5 ms at every start for what should never happen)."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__}: {error} ({' > '.join(places)})"


def _settle_in(sock: int) -> int:
    """Own session, own signals, no descriptors but the socket. Returns one that is readable after a SIGCHLD."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    _close_all_but(sock)
    wake, tell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for signum in _IGNORED:
        signal.signal(signum, signal.SIG_IGN)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # only signals with a handler reach the wake-up descriptor
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return wake


def _close_all_but(kept: int) -> None:
    """Close what is open, by name: RLIMIT_NOFILE may be a thousand million (FR-17)."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        numbers = list(range(256))
    for fd in numbers:
        if fd > 2 and fd != kept:
            try:
                os.close(fd)
            except OSError:  # the listing's own
                pass


class _Loop:
    """Reads the supervisor's wishes, keeps the present attempt moving, reports."""

    def __init__(self, channel: Channel, wake: int, subreaper: bool) -> None:
        self._channel = channel
        self._wake = wake
        self._subreaper = subreaper
        self._attempt: Optional[Attempt] = None
        self._leaving = False
        self._answers: Dict[str, Callable[..., None]] = {
            "start": self._start,
            "stop": self._stop,
            "hasten": self._hasten,
            "lease": self._lease,
            "goodbye": self._goodbye,
        }

    def run(self) -> None:
        """Until goodbye, or until the supervisor is gone and the tree with it."""
        while not (self._leaving and self._attempt is None):
            look_at = self._advance()
            if self._attempt is None and self._leaving:
                return
            for fd in self._wait(look_at):
                if fd == self._wake:
                    _drain(fd)
                elif fd == self._channel.fileno():
                    self._listen()
                elif self._attempt is not None:
                    self._read_report(self._attempt)

    def _advance(self) -> float:
        attempt = self._attempt
        if attempt is None:
            _reap_strays()
            return inf
        look_at = attempt.advance()
        if attempt.ended is not None:
            if attempt.report is not None:  # it ended, or was ended, before exec
                self._read_report(attempt)
            if self._attempt is not None:
                self._channel.send("ended", *attempt.ended)
            self._attempt = None
        return look_at

    def _wait(self, look_at: float) -> List[int]:
        waiting = select.poll()
        waiting.register(self._wake, select.POLLIN)
        if not self._leaving:
            waiting.register(self._channel, select.POLLIN)
        if self._attempt is not None and self._attempt.report is not None:
            waiting.register(self._attempt.report, select.POLLIN)
        # Rounded up: waking a moment before a deadline would only mean to come back for it.
        wait_s = min(SLICE_S, max(0.0, look_at - boot_s()))
        return [fd for fd, _ in waiting.poll(int(wait_s * 1000) + 1)]

    def _listen(self) -> None:
        news = self._channel.receive()
        for name, *values in news.messages:
            self._answers[name](*values)
        if news.closed and not self._leaving:
            self._leaving = True
            if self._attempt is None:
                processes.end_all(lambda: processes.living_below(os.getpid()), _ORPHAN_GRACE_S, _ORPHAN_KILL_S)
            else:
                self._attempt.stop("orphaned", signal.SIGTERM, boot_s() + _ORPHAN_GRACE_S)

    def _start(self, argv: Tuple[bytes, ...], env: Dict[bytes, bytes], directory: Optional[bytes], *terms: Any) -> None:
        order, limits = Order(argv, env, directory), Terms(*terms)
        standard = self._channel.take_fds()
        try:
            if boot_s() >= limits.lease_term_at:  # the supervisor was stopped after it had looked: P1
                self._channel.send("ended", *never_begun("lease"))
                return
            if len(standard) < 3:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            launched = launch(order, standard)
        except OSError as error:
            self._channel.send("refused", NOT_STARTED, f"new process: {(error.strerror or str(error)).lower()}")
            return
        finally:
            for fd in standard:
                os.close(fd)
        self._attempt = Attempt(launched, order, limits, self._subreaper)

    def _read_report(self, attempt: Attempt) -> None:
        if attempt.read_report():
            self._channel.send("started", attempt.pid)
            return
        self._channel.send("refused", *(attempt.refused or ()))
        self._attempt = None

    def _stop(self, cause: str, signum: int) -> None:
        if self._attempt is not None:
            self._attempt.stop(cause, signum)

    def _hasten(self) -> None:
        if self._attempt is not None:
            self._attempt.hasten()

    def _lease(self, term_at: float, kill_at: float) -> None:
        if self._attempt is not None:
            self._attempt.renewed(term_at, kill_at)

    def _goodbye(self) -> None:
        self._leaving = True
        if self._attempt is not None:  # the supervisor leaves through an error
            self._attempt.stop("orphaned", signal.SIGTERM, boot_s() + _ORPHAN_GRACE_S)


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def _reap_strays() -> None:
    """Between attempts: what an earlier one left has ended since."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
