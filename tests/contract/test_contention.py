"""Many processes at once on one store: what holds in one process must hold between them (P1, P2)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Callable

import pytest

from cronguard.core.model import Held
from cronguard.store.backend import SqlStore
from tests.support.claims import WITHIN_S, claimed, request, row_of
from tests.support.contender import TURNS, judge

ROOT = Path(__file__).parents[2]
PATIENCE_S = 90


def contenders(mode: str, number: int, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.contender", mode, str(number), *words], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def race(mode: str, number: int, *words: str) -> Counter[str]:
    """That many at the same instant; how often each outcome."""
    process = contenders(mode, number, *words)
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    return Counter(out.split())


def test_twelve_first_starts_at_once_on_an_empty_store_all_succeed(store_url: str) -> None:
    """FR-62: CREATE ... IF NOT EXISTS is not atomic, and SQLite's change to WAL asks no busy handler."""
    assert race("prepare", 12, store_url) == {"prepared": 12}


def test_of_many_starts_for_one_slot_exactly_one_claims(store_url: str) -> None:
    """On a store that none of them has seen before."""
    outcomes = race("once", 12, store_url)
    assert outcomes["Claimed"] == 1
    assert set(outcomes) <= {"Claimed", "Held", "Done"}
    assert sum(outcomes.values()) == 12


def test_lock_names_that_differ_by_mistake_do_not_let_a_slot_run_twice(store_url: str) -> None:
    """A host with an older config: no lock keeps them apart, only the constraints do (P2)."""
    outcomes = race("alone", 12, store_url)
    assert outcomes["Claimed"] == 1
    assert set(outcomes) <= {"Claimed", "Held", "Done"}


def test_counter_that_only_claims_guard_loses_no_count(store_url: str, tmp_path: Path) -> None:
    """FR-03."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    assert race("count", 6, store_url, str(counter)) == {"counted": 6}
    assert counter.read_text() == str(6 * TURNS)


@pytest.mark.parametrize("gone", [True, False])
def test_killed_owner_is_replaced_at_once_and_a_stopped_one_never(
    store_url: str, opened: Callable[[str], SqlStore], gone: bool
) -> None:
    """FR-05, FR-68: everything that it held in the file system is left in place."""
    owner = contenders("hold", 0, store_url)
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == "Claimed\n"
        owner.send_signal(signal.SIGKILL if gone else signal.SIGSTOP)
        if gone:
            owner.wait()
        store = opened(store_url)
        if gone:
            (lost,) = claimed(store, request("next"), judge).took_over
            assert row_of(store, lost).status == "lost"
        else:
            answer = store.claim(request("next"), judge, WITHIN_S)
            assert isinstance(answer, Held)
            assert answer.holder.pid == owner.pid
    finally:
        owner.kill()
        owner.communicate()
