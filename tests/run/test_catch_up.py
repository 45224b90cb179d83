"""`run --catch-up oldest`: look for the oldest missing slot, run it, stop (article 3)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from tests.support.cronguard import Started, cronguard, environment, history

LINE = ("run", "j", "--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "60s", "--catch-up", "oldest")
At = Callable[..., Dict[str, str]]


@pytest.fixture
def at(sqlite_url: str) -> At:
    def make(now: str, **more: str) -> Dict[str, str]:
        present = f"2026-01-20T{now}Z"
        return environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=present, CRONGUARD_STORE=sqlite_url, **more)

    return make


def slot_of(env: Dict[str, str], *more: str, code: int = 0) -> str:
    """Start it once; the hour of the slot that it ran for."""
    ended = cronguard(*LINE, *more, "--", "sh", "-c", "echo $CRONGUARD_SLOT; exit ${FAIL:-0}", env=env)
    assert ended.returncode == code, ended.stderr
    return ended.stdout[11:13]


def test_each_start_makes_up_one_slot_and_then_takes_its_own(at: At) -> None:
    assert slot_of(at("01:00:01")) == "01"
    assert [slot_of(at(f"05:0{minute}:01")) for minute in range(5)] == ["02", "03", "04", "05", ""]
    assert [row["lateness_s"] >= 3600 for row in history("j", at("05:30:00"))[1:5]] == [False, True, True, True]


def test_slot_that_failed_three_times_is_passed_over(at: At) -> None:
    """A poisoned slot wedges nobody."""
    assert slot_of(at("01:00:01")) == "01"
    failing = at("03:00:01", FAIL="3")
    assert [slot_of(failing, code=3) for _ in range(3)] == ["02", "02", "02"]
    assert slot_of(at("03:01:01")) == "03"
    assert slot_of(at("03:02:01")) == ""
    assert slot_of(at("04:00:01")) == "04"


def test_look_back_bounds_it(at: At) -> None:
    slot_of(at("01:00:01"))
    assert slot_of(at("09:00:01"), "--look-back", "2h30m") == "07"


def test_pause_and_a_new_job_owe_nothing(at: At) -> None:
    """FR-82."""
    assert slot_of(at("05:00:01")) == "05"
    cronguard("pause", "j", env=at("05:30:00"))
    cronguard("resume", "j", env=at("08:30:00"))
    assert slot_of(at("09:00:01")) == "09"


def test_lateness_is_judged_by_the_invocations_own_slot(at: At) -> None:
    slot_of(at("01:00:01"))
    assert slot_of(at("05:00:01"), "--max-late", "10m") == "02"
    assert slot_of(at("05:30:00"), "--max-late", "10m", code=75) == ""


def test_dry_run_says_which_and_why_and_touches_nothing(at: At) -> None:
    slot_of(at("01:00:01"))
    said: List[str] = [cronguard(*LINE, "--dry-run", "--", "true", env=at("05:00:01")).stdout for _ in range(2)]
    assert said[0] == said[1]
    assert "2026-01-20T02:00Z" in said[0]
    assert "the oldest missing slot" in said[0]


def test_without_keys_nothing_is_ever_missing(at: At) -> None:
    ended = cronguard(*LINE, "--key", "none", "--", "true", env=at("01:00:01"))
    assert ended.returncode == 125
    assert "no slot is ever missing" in ended.stderr


def test_thousands_of_missed_slots_cost_nothing_and_wedge_nobody(sqlite_url: str) -> None:
    """FR-80: three weeks of a minutely job; the plain line takes the current one, the other the oldest."""
    line = ("run", "j", "--cron", "* * * * *", "--timezone", "UTC", "--timeout", "60s", "--look-back", "30d")
    for now in ("2026-01-01T00:00:01Z", "2026-01-22T00:00:01Z"):
        env = environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=now, CRONGUARD_STORE=sqlite_url)
        assert cronguard(*line, "--", "true", env=env).returncode == 0
    assert cronguard(*line, "--catch-up", "oldest", "--", "true", env=env).returncode == 0
    assert [row["run_key"] for row in history("j", env)][:2] == ["2026-01-01T00:01Z", "2026-01-22T00:00Z"]


@pytest.mark.parametrize("more", [(), ("--on-conflict", "wait", "--wait", "20s")])
def test_nested_run_of_the_same_job_skips_inside_its_own_run(at: At, more: Any, tmp_path: Path) -> None:
    inner = " ".join(("$PYTHON", "-m", "cronguard", "run", "j", *more, "--", "true"))
    with Started("run", "j", "--", "sh", "-c", f"{inner}; echo $?", env=at("01:00:01", PYTHON=sys.executable)) as outer:
        assert outer.line() == "75"
    assert any("inside its own run" in row["message"] for row in history("j", at("01:00:01")))
