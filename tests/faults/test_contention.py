"""Many at once: P1 and P2 by constraint, never by timing."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from tests.support.cronguard import command, environment, history

pytestmark = pytest.mark.usual

HERD = 200


def all_at_once(argvs: List[List[str]], env: Dict[str, str]) -> List[Tuple[int, str]]:
    """Start every command behind one gate (a pipe whose end of file releases them all); exit codes and stderr."""
    gate, key = os.pipe()
    wait = 'read _; exec "$@" < /dev/null'
    started = [
        subprocess.Popen(
            ["sh", "-c", wait, "sh", *argv],
            env=env,
            stdin=gate,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for argv in argvs
    ]
    os.close(gate)
    os.close(key)
    said = [process.communicate()[1] for process in started]
    return [(process.returncode, text) for process, text in zip(started, said)]


@pytest.fixture(params=["sqlite", "postgres"])
def herd_url(request: pytest.FixtureRequest) -> str:
    """Each store; that a pool of two serves twenty at once is a test of its own."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.mark.herd
@pytest.mark.usual
def test_two_hundred_at_once_run_the_slot_exactly_once(herd_url: str, tmp_path: Path) -> None:
    """The command runs once; everybody else leaves with 75 (busy) or 0 (done meanwhile), without a word of trouble."""
    env = environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW="2026-01-20T02:00:01Z", CRONGUARD_STORE=herd_url)
    mark = tmp_path / "mark"
    slot = ["--cron", "0 2 * * *", "--timezone", "UTC", "--timeout", "60s"]
    argv = command("run", "herd", *slot, "--", "sh", "-c", f"echo ran >> {mark}; sleep 0.5")
    ended = all_at_once([argv] * HERD, env)
    assert mark.read_text() == "ran\n"
    troubles = [text for _, text in ended if "Traceback" in text or "locked" in text or "could not" in text]
    assert troubles == []
    assert set(Counter(code for code, _ in ended)) <= {0, 75}
    rows = history("herd", env)
    assert [row["status"] for row in rows].count("success") == 1
    assert {row["status"] for row in rows} <= {"success", "skipped"}
    assert sum(row["times"] for row in rows) == HERD


def test_twelve_first_starts_on_an_empty_database_all_succeed(store_url: str) -> None:
    """FR-62: CREATE ... IF NOT EXISTS is not atomic; ours is."""
    env = environment(CRONGUARD_STORE=store_url)
    ended = all_at_once([command("run", f"job{n}", "--timeout", "60s", "--", "true") for n in range(12)], env)
    assert [code for code, _ in ended] == [0] * 12, ended
    assert [row["status"] for number in range(12) for row in history(f"job{number}", env)] == ["success"] * 12
