"""Who holds a claim, and whether that owner is provably dead (design, section 5, "Taking over").

A proof of death lets somebody else run the job, so every doubt is `unknown`: another machine, boot or pid namespace, or
a process that exists but cannot be seen. A dead owner's processes are found by three trails, each of which a command
may lose but seldom all: below the keeper, in the command's session, and by the run id in the environment.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Dict, Mapping, Optional, Set

from cronguard.core.model import Judge, Owner, Verdict
from cronguard.system import processes
from cronguard.system.host import host_name
from cronguard.system.processes import Stat, read_file, read_stat

RUN_ID = "CRONGUARD_RUN_ID"
_ENVIRON_BYTES = 1 << 21  # ARG_MAX of most systems


def new_run_id() -> str:
    """A UUID of version 7 (RFC 9562): ordered by time, unique without asking anybody."""
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def own_identity(keeper_pid: int, environ: Mapping[str, str]) -> Owner:
    """This process and its keeper. Parts that the system does not tell are empty or 0, and prove nothing."""
    return Owner(
        machine_id=_machine_id(),
        host=host_name(environ),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        pid_ns=_pid_namespace(),
        pid=os.getpid(),
        pid_start=_start_of(os.getpid()),
        keeper_pid=keeper_pid,
        keeper_start=_start_of(keeper_pid),
    )


def make_judge(state_dir: str, environ: Mapping[str, str], variable: str = RUN_ID) -> Judge:
    """A judge for the runs of this host whose sessions are noted below `state_dir`.

    `variable`: where the processes of whatever is judged have its id in their environment."""
    here = own_identity(os.getpid(), environ)
    return lambda owner, run_id: _judge(owner, f"{variable}={run_id}", here, noted_session(state_dir, run_id))


def judge(owner: Owner, run_id: str) -> Verdict:
    """As `make_judge`'s, by the process environment and without noted sessions."""
    return _judge(owner, f"{RUN_ID}={run_id}", own_identity(os.getpid(), os.environ), None)


def _judge(owner: Owner, mark: str, here: Owner, session: Optional[Stat]) -> Verdict:
    # Without a boot id or pid namespace on both sides, equal numbers say nothing.
    if owner[:4] != here[:4] or not owner.boot_id or not owner.pid_ns:
        return Verdict("unknown")
    fates = {_fate(owner.pid, owner.pid_start), _fate(owner.keeper_pid, owner.keeper_start)}
    for state in ("alive", "unknown"):
        if state in fates:
            return Verdict(state)
    return Verdict("dead", tuple(sorted(_left_of(mark, session))))


def stop_owner(owner: Owner, environ: Mapping[str, str]) -> str:
    """Send TERM to the supervisor of a run, and CONT, without which a stopped one would not act on it.

    `sent`; `gone`: it is proved to have ended; `elsewhere`: another host, boot or pid namespace, or nobody shows us
    that it is the same process; `forbidden`: it is another user's. A number used again is never signalled: the process
    is pinned (pidfd_open(2)) before its start time is compared; on Python 3.8 a moment is left between the two.
    """
    here = own_identity(os.getpid(), environ)
    if owner[:4] != here[:4] or not owner.boot_id or not owner.pid_ns or not owner.pid_start:
        return "elsewhere"
    pinned = None
    try:
        pinned = _pin(owner.pid)
        fate = _fate(owner.pid, owner.pid_start)
        if fate != "alive":
            return "gone" if fate == "dead" else "elsewhere"
        for signum in (signal.SIGTERM, signal.SIGCONT):
            _send(owner.pid, pinned, signum)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "forbidden"
    finally:
        if pinned is not None:
            os.close(pinned)
    return "sent"


def _pin(pid: int) -> Optional[int]:
    """A descriptor that means this process for ever; None where there is no such thing, before Linux 5.3 and
    Python 3.9. ProcessLookupError: there is no such process."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # ENOSYS, or a sandbox that forbids it
        return None


def _send(pid: int, pinned: Optional[int], signum: int) -> None:
    if pinned is None:
        os.kill(pid, signum)
    else:
        signal.pidfd_send_signal(pinned, signum)


def _fate(pid: int, start: int) -> str:
    """alive, dead, or unknown: it exists, but nobody shows us when it started."""
    stat = read_stat(pid)
    if stat is not None:
        return "alive" if stat.alive and start in (stat.start, 0) else "dead"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "dead"
    except OSError:
        pass
    # It may have ended between the two looks; whoever asks again will know.
    return "unknown"


def _left_of(mark: str, session: Optional[Stat]) -> Set[int]:
    seen = processes.table()
    marked = {pid for pid, stat in seen.items() if stat.alive and _is_marked(pid, mark)}
    found = marked | _members(session, seen)
    for pid in marked:  # what they started belongs to the run too, whatever became of its environment
        found |= {child for child in processes.descendants(pid, seen) if seen[child].alive}
    # Started from within that run, this process is a witness, not a suspect; nor is its own keeper.
    return found - {os.getpid()} - processes.descendants(os.getpid(), seen)


def _is_marked(pid: int, mark: str) -> bool:
    block = read_file(f"/proc/{pid}/environ", _ENVIRON_BYTES)
    return block is not None and b"\0" + os.fsencode(mark) + b"\0" in b"\0" + block + b"\0"


def _members(session: Optional[Stat], seen: Dict[int, Stat]) -> Set[int]:
    """Who is in the session. Its number is free again once the last member is gone: another leader, another session."""
    if session is None:
        return set()
    leader = seen.get(session.pid)
    if leader is not None and leader.start != session.start:
        return set()
    return {pid for pid, stat in seen.items() if stat.session == session.pid and stat.alive}


def note_session(state_dir: str, run_id: str, pid: int) -> None:
    """Remember the session of a command that has just started, by its leader. Best effort: one trail of three."""
    path = _note_path(state_dir, run_id)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, f"{pid} {_start_of(pid)}\n".encode())
        finally:
            os.close(fd)
    except OSError:
        pass


def forget_session(state_dir: str, run_id: str) -> None:
    """The run has ended and is on record. Never raises."""
    try:
        os.unlink(_note_path(state_dir, run_id))
    except OSError:
        pass


def noted_session(state_dir: str, run_id: str) -> Optional[Stat]:
    """The leader of a run's session as it was noted; None when nothing (readable) was."""
    numbers = (read_file(_note_path(state_dir, run_id), 64) or b"").split()
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return None
    pid, start = map(int, numbers)
    return Stat(pid, "?", 0, pid, start)


def _note_path(state_dir: str, run_id: str) -> str:
    return os.path.join(state_dir, "runs", run_id.replace("/", "_"))


def _start_of(pid: int) -> int:
    stat = read_stat(pid) if processes.proc_is_ours() else None
    return 0 if stat is None else stat.start


def _machine_id() -> str:
    return _text("/etc/machine-id") or _text("/var/lib/dbus/machine-id")


def _pid_namespace() -> str:
    """The inode of the pid namespace; empty when /proc is missing or shows another one's processes."""
    if not processes.proc_is_ours():
        return ""
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return ""


def _text(path: str) -> str:
    return (read_file(path, 256) or b"").decode("ascii", "replace").strip()
