"""An owner is dead only when that is proven, and what a dead run left behind is found."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from cronguard.core.model import Owner, Verdict
from cronguard.system import identity
from cronguard.system.processes import read_stat
from tests.support.processes import ROOT, alive, wait_until

RUN_ID = "0197f3a2-0000-7000-8000-000000000001"


@pytest.fixture
def children() -> Iterator[List[subprocess.Popen[bytes]]]:
    started: List[subprocess.Popen[bytes]] = []
    yield started
    for child in started:
        child.kill()
        child.wait()


def _adopted(script: str, env: Dict[str, str]) -> int:
    """A process in a session of its own that is nobody's child here, as an orphan is. Given the pid it prints."""
    told = subprocess.run(["setsid", "--fork", "sh", "-c", script], env=env, stdout=subprocess.PIPE, check=True)
    return int(told.stdout)


@pytest.fixture
def orphans() -> Iterator[List[int]]:
    pids: List[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def _sleeper(children: List[subprocess.Popen[bytes]], **words: object) -> int:
    children.append(subprocess.Popen(["sleep", "60"], **words))  # type: ignore[call-overload]
    return int(children[-1].pid)


def _owner(pid: int, keeper: int) -> Owner:
    """As that process would have described itself."""
    here = identity.own_identity(keeper, {})
    stat = read_stat(pid)
    return here._replace(pid=pid, pid_start=stat.start if stat else 1)


def _ended() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def _judged(owner: Owner, state: Path) -> Verdict:
    return identity.make_judge(str(state), {})(owner, RUN_ID)


def test_living_supervisor_or_keeper_is_alive(tmp_path: Path, children: List[subprocess.Popen[bytes]]) -> None:
    living, ended = _sleeper(children), _ended()
    assert _judged(_owner(living, ended), tmp_path).state == "alive"
    assert _judged(_owner(ended, living), tmp_path).state == "alive"
    assert _judged(_owner(ended, ended), tmp_path) == Verdict("dead")


def test_zombie_is_dead(tmp_path: Path) -> None:
    """A supervisor that was killed and not yet reaped has the same pid and start time (lock-protocol, section 7)."""
    child = subprocess.Popen(["sleep", "60"])
    owner = _owner(child.pid, child.pid)
    child.kill()
    wait_until(lambda: not alive(child.pid))
    assert os.path.exists(f"/proc/{child.pid}")
    assert _judged(owner, tmp_path).state == "dead"
    child.wait()


def test_number_used_again_is_another_process(tmp_path: Path, children: List[subprocess.Popen[bytes]]) -> None:
    owner = _owner(_sleeper(children), _ended())
    assert _judged(owner._replace(pid_start=owner.pid_start - 100), tmp_path).state == "dead"


@pytest.mark.parametrize("field", ["machine_id", "host", "boot_id", "pid_ns"])
def test_elsewhere_nothing_can_be_proved(tmp_path: Path, field: str) -> None:
    owner = _owner(_ended(), _ended())
    assert _judged(owner._replace(**{field: "other"}), tmp_path) == Verdict("unknown")


@pytest.mark.parametrize("field", ["boot_id", "pid_ns"])
def test_what_is_not_known_proves_nothing(
    tmp_path: Path, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = _owner(_ended(), _ended())._replace(**{field: ""})
    here = identity.own_identity(os.getpid(), {})._replace(**{field: ""})
    monkeypatch.setattr(identity, "own_identity", lambda *_: here)
    assert _judged(owner, tmp_path).state == "unknown"


def test_test_host_is_another_host(tmp_path: Path) -> None:
    owner = _owner(_ended(), _ended())
    judge = identity.make_judge(str(tmp_path), {"CRONGUARD_TEST": "1", "CRONGUARD_TEST_HOST": "other"})
    assert judge(owner, RUN_ID).state == "unknown"


SLEEP = "echo $$; exec >&-; exec sleep 60"
PLAIN = {"PATH": os.environ["PATH"]}


def test_orphan_is_found_by_the_run_id_in_its_environment(tmp_path: Path, orphans: List[int]) -> None:
    orphans.append(_adopted(SLEEP, {**PLAIN, "CRONGUARD_RUN_ID": RUN_ID}))
    orphans.append(_adopted(SLEEP, {**PLAIN, "CRONGUARD_RUN_ID": RUN_ID + "1", "XCRONGUARD_RUN_ID": RUN_ID}))
    assert _judged(_owner(_ended(), _ended()), tmp_path) == Verdict("dead", (orphans[0],))
    assert identity.judge(_owner(_ended(), _ended()), RUN_ID) == Verdict("dead", (orphans[0],))


def test_child_of_an_orphan_belongs_to_the_run(tmp_path: Path, orphans: List[int]) -> None:
    script = "env -i setsid sleep 60 >&- & echo $!; exec >&-; wait"
    child = _adopted(script, {**PLAIN, "CRONGUARD_RUN_ID": RUN_ID})
    orphans.append(child)
    pids = wait_until(lambda: _judged(_owner(_ended(), _ended()), tmp_path).pids)
    assert child in pids
    assert len(pids) == 2


def test_orphan_is_found_by_its_session_when_it_cleared_its_environment(tmp_path: Path, orphans: List[int]) -> None:
    orphans.append(_adopted("echo $$; exec >&-; exec env -i sleep 60", PLAIN))
    identity.note_session(str(tmp_path), RUN_ID, orphans[0])
    assert _judged(_owner(_ended(), _ended()), tmp_path).pids == (orphans[0],)
    identity.forget_session(str(tmp_path), RUN_ID)
    assert _judged(_owner(_ended(), _ended()), tmp_path).pids == ()


def test_session_whose_leader_is_gone_still_tells_its_members(tmp_path: Path, orphans: List[int]) -> None:
    member = _adopted("env -i sleep 60 >&- & echo $!", PLAIN)
    orphans.append(member)
    stat = read_stat(member)
    assert stat is not None
    wait_until(lambda: not alive(stat.session))
    leader = read_stat(stat.session) or stat  # not reaped yet, perhaps
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / RUN_ID).write_text(f"{stat.session} {leader.start}\n")
    assert _judged(_owner(_ended(), _ended()), tmp_path).pids == (member,)


def test_session_with_another_leader_is_another_session(tmp_path: Path, orphans: List[int]) -> None:
    """The number of a session is used again once its last member is gone."""
    orphans.append(_adopted(SLEEP, PLAIN))
    stat = read_stat(orphans[0])
    assert stat is not None
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / RUN_ID).write_text(f"{stat.pid} {stat.start - 50}\n")
    assert _judged(_owner(_ended(), _ended()), tmp_path).pids == ()


@pytest.mark.parametrize("text", ["", "x y", "12", "1 2 3", "-1 4"])
def test_unreadable_note_is_no_trail(tmp_path: Path, text: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / RUN_ID).write_text(text)
    assert _judged(_owner(_ended(), _ended()), tmp_path) == Verdict("dead")


def test_judge_inside_the_run_does_not_suspect_itself(tmp_path: Path) -> None:
    script = (
        "import sys; from cronguard.system import identity; from cronguard.core.model import Owner;"
        "here = identity.own_identity(1, {}); owner = here._replace(pid=int(sys.argv[1]), keeper_pid=int(sys.argv[1]));"
        "print(identity.make_judge(sys.argv[2], {})(owner, sys.argv[3]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(_ended()), str(tmp_path), RUN_ID],
        env={"CRONGUARD_RUN_ID": RUN_ID, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert told.stdout.decode().strip() == "Verdict(state='dead', pids=())"


def test_own_identity_is_complete() -> None:
    own = identity.own_identity(os.getpid(), {})
    assert (own.pid, own.keeper_pid, own.host) == (os.getpid(), os.getpid(), os.uname().nodename)
    assert own.pid_start == own.keeper_start > 0
    assert re.fullmatch(r"[0-9a-f-]{36}", own.boot_id)
    assert own.pid_ns.isdigit()


def test_run_ids_are_uuids_in_order_of_time() -> None:
    first = identity.new_run_id()
    time.sleep(0.002)
    second = identity.new_run_id()
    shape = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(shape, first)
    assert re.fullmatch(shape, second)
    assert first < second
    assert abs(int(first.replace("-", "")[:12], 16) / 1000 - time.time()) < 60


def test_owner_on_this_host_gets_term_and_wakes_up(children: List[subprocess.Popen[bytes]]) -> None:
    """A stopped supervisor would keep its TERM for later."""
    owner = _owner(_sleeper(children), _ended())
    os.kill(owner.pid, signal.SIGSTOP)
    assert identity.stop_owner(owner, {}) == "sent"
    assert children[-1].wait(10) == -signal.SIGTERM


def test_number_used_again_is_never_signalled(children: List[subprocess.Popen[bytes]]) -> None:
    owner = _owner(_sleeper(children), _ended())
    assert identity.stop_owner(owner._replace(pid_start=owner.pid_start - 100), {}) == "gone"
    assert identity.stop_owner(owner._replace(pid_start=0), {}) == "elsewhere"
    assert identity.stop_owner(_owner(_ended(), _ended()), {}) == "gone"
    assert children[-1].poll() is None


def test_process_that_ends_between_look_and_signal_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may be another's by then: the signal goes to the process that was looked at, or to nobody."""
    child = subprocess.Popen(["sleep", "60"])
    owner = _owner(child.pid, child.pid)
    look = identity._fate

    def ended_since(pid: int, start: int) -> str:
        fate = look(pid, start)
        child.kill()
        child.wait()
        return fate

    monkeypatch.setattr(identity, "_fate", ended_since)
    assert identity.stop_owner(owner, {}) == "gone"


@pytest.mark.parametrize("field", ["machine_id", "host", "boot_id", "pid_ns"])
def test_owner_elsewhere_is_never_signalled(field: str, children: List[subprocess.Popen[bytes]]) -> None:
    owner = _owner(_sleeper(children), _ended())
    assert identity.stop_owner(owner._replace(**{field: "other"}), {}) == "elsewhere"
    assert identity.stop_owner(owner, {"CRONGUARD_TEST": "1", "CRONGUARD_TEST_HOST": "other"}) == "elsewhere"
    assert children[-1].poll() is None


def test_without_pidfd_the_start_time_is_compared_all_the_same(
    children: List[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    owner = _owner(_sleeper(children), _ended())
    assert identity.stop_owner(owner._replace(pid_start=owner.pid_start - 100), {}) == "gone"
    assert identity.stop_owner(owner, {}) == "sent"
    assert children[-1].wait(10) == -signal.SIGTERM
