"""Article 1's crash: a hundred reminders, killed on the way and started again. Nobody gets two."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Dict, List

import pytest

from tests.support.cronguard import Started, cronguard, environment, gone, history, until
from tests.support.processes import ROOT
from tests.support.reminders import MOMENTS, REMINDERS, moment_of

pytestmark = pytest.mark.usual

# The handler's parent is the keeper of `once`, whose parent is `once`.
KILL_ONCE = "kill -9 $(ps -o ppid= -p $PPID); sleep 60"
SLOT = ("--cron", "0 9 * * *", "--timezone", "Europe/Rome", "--timeout", "60s")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.usual)])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found


def copies(sent: Path) -> Dict[int, int]:
    """How often each was sent."""
    return Counter(int(line) for line in sent.read_text().splitlines())


@pytest.mark.usual
@pytest.mark.parametrize(
    ("effect", "expected"),
    [("at-most-once", dict(zip(MOMENTS, (1, 0, 1)))), ("at-least-once", dict(zip(MOMENTS, (1, 1, 2))))],
)
def test_killed_at_each_of_a_hundred_places(url: str, tmp_path: Path, effect: str, expected: Dict[str, int]) -> None:
    """FR-71: what was in flight is the only one that may be missing, or double, as was chosen."""
    sent = tmp_path / "sent"
    program = [sys.executable, "-m", "tests.support.reminders", url, str(sent), effect]
    subprocess.run(program, check=True, cwd=ROOT, stderr=subprocess.DEVNULL, timeout=300)
    found = copies(sent)
    assert [found[place] for place in range(REMINDERS)] == [expected[moment_of(place)] for place in range(REMINDERS)]


def reminders(tmp_path: Path, once: str, hanging: str, number: int = 12) -> List[str]:
    """The job as a shell script. At the sixth it does that before it sends, as long as there is no file `go`."""
    hang = f"test $1 != 5 || test -e {tmp_path}/go || {{ {hanging}; }}"
    call = f"$PYTHON -m cronguard once reminder:$n {once} -- sh -c '{hang}; echo $1 >> {tmp_path}/sent' sh $n"
    return ["sh", "-c", f"n=0; while [ $n -lt {number} ]; do {call} || exit; n=$((n+1)); done"]


@pytest.fixture
def env(url: str) -> Dict[str, str]:
    return on(url)


def on(url: str) -> Dict[str, str]:
    present = {"CRONGUARD_TEST": "1", "CRONGUARD_TEST_NOW": "2026-01-20T08:00:01Z"}
    return environment(CRONGUARD_STORE=url, PYTHON=sys.executable, **present)


def states(env: Dict[str, str]) -> Dict[str, str]:
    """The ledger's marks that are not done."""
    listed = json.loads(cronguard("items", "list", "reminders", "--ledger", "--json", env=env).stdout)
    return {mark["key"]: mark["state"] for mark in listed["marks"] if mark["state"] != "done"}


def test_killed_job_goes_on_with_those_who_got_nothing(env: Dict[str, str], tmp_path: Path) -> None:
    """At most once: the one that was in flight is not sent, and that is said and shown."""
    script = reminders(tmp_path, "", f"echo $$ > {tmp_path}/pid; sleep 60")
    with Started("run", "reminders", *SLOT, "--", *script, env=env) as killed:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the sixth")
        killed.process.kill()
        killed.process.wait(20)
    until(lambda: gone(int((tmp_path / "pid").read_text())), "the whole tree to end")
    (tmp_path / "go").touch()
    again = cronguard("run", "reminders", *SLOT, "--", *script, env=env)
    assert again.returncode == 0, again.stderr
    assert copies(tmp_path / "sent") == dict.fromkeys({*range(12)} - {5}, 1)
    assert "reminder:5" in again.stderr
    assert "may not have happened" in again.stderr
    assert states(env) == {"reminder:5": "failed"}
    assert [row["status"] for row in history("reminders", env)] == ["success", "lost"]


def test_unknown_is_asked_about_until_somebody_decides(sqlite_url: str, tmp_path: Path) -> None:
    """FR-71, at least once: `once` itself is killed; neither done again nor left out in silence."""
    env = on(sqlite_url)
    script = reminders(tmp_path, "--effect at-least-once", KILL_ONCE)
    assert cronguard("run", "reminders", *SLOT, "--", *script, env=env).returncode == 137
    (tmp_path / "go").touch()
    asked = cronguard("run", "reminders", *SLOT, "--", *script, env=env)
    assert asked.returncode == 75
    assert copies(tmp_path / "sent") == dict.fromkeys(range(5), 1)
    assert states(env) == {"reminder:5": "unknown"}
    assert cronguard("items", "forget", "reminders", "--ledger", "reminder:5", env=env).returncode == 0
    assert cronguard("run", "reminders", *SLOT, "--", *script, env=env).returncode == 0
    assert copies(tmp_path / "sent") == dict.fromkeys(range(12), 1)
