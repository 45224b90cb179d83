"""A short storm for each store, and proof that the checker can fail. Long ones: `python -m tests.faults.storm`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from tests.faults.storm import storm
from tests.faults.verdict import complaints_about, read_traces
from tests.support.pgbouncer import pgbouncer_binary
from tests.support.postgres import server_binaries
from tests.support.processes import ROOT
from tests.support.stores import KINDS, unavailable

SEED = 20260120
pytestmark = pytest.mark.usual

STORM_S = 12.0
CONTROL_S = 6.0


def need(kind: str) -> None:
    if kind == "sqlite":
        return
    if server_binaries() is None:
        if os.environ.get("CRONGUARD_TEST_DSN"):
            pytest.skip("a storm needs a server of its own; this Python has none")
        unavailable("no PostgreSQL of our own to stop and start")
    if kind == "pgbouncer" and pgbouncer_binary() is None:
        unavailable("no pgbouncer: install the Debian package")


@pytest.mark.parametrize("kind", KINDS)
def test_promises_hold_in_a_storm_of_faults(kind: str, tmp_path: Path) -> None:
    """P1, P3: nobody overlaps, fences increase, every row ends, no success without proof, no process is left."""
    need(kind)
    report = storm(tmp_path, kind, STORM_S, SEED)
    assert report.complaints == [], report.summary


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_checker_sees_what_happens_without_the_claim(kind: str, tmp_path: Path) -> None:
    need(kind)
    report = storm(tmp_path, kind, CONTROL_S, SEED, without="claim")
    assert any("overlapped" in complaint for complaint in report.complaints), report.summary
    assert any("met somebody" in complaint for complaint in report.complaints), report.summary


def beaten(folder: Path, fences: List[str]) -> List[str]:
    """Complaints about unguarded commands that were all started at once under these fences."""
    for name in ("traces", "holds"):
        (folder / name).mkdir()
    beater = [sys.executable, "-I", "-S", str(ROOT / "tests" / "support" / "beater.py"), str(folder)]
    started = [
        subprocess.Popen(
            [*beater, f"{number}", "0.5", "0"],
            env={"CRONGUARD_RUN_ID": f"run-{number}", "CRONGUARD_FENCE": fence},
        )
        for number, fence in enumerate(fences)
    ]
    assert [process.wait() for process in started] == [0] * len(fences)
    return complaints_about(read_traces(folder / "traces"), [], [])


def test_checker_sees_unguarded_commands_that_overlap(tmp_path: Path) -> None:
    complaints = beaten(tmp_path, ["5", "5"])
    for words in ("overlapped", "met somebody", "with fence 5 after", "has no row"):
        assert any(words in complaint for complaint in complaints), complaints


def test_checker_has_nothing_to_say_about_one_alone_but_its_missing_row(tmp_path: Path) -> None:
    assert beaten(tmp_path, ["5"]) == ["run 0 began and has no row"]
