"""`run --catch-up oldest`: one missing slot a start, the oldest first, and never in the way of the current one."""

from __future__ import annotations

import sqlite3
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from cronguard.core.config import resolve_job
from cronguard.core.model import Event, RunRequest
from cronguard.errors import StoreDown
from cronguard.pipeline.catching_up import choose_or_latest
from cronguard.pipeline.placing import place_at
from cronguard.store.worker import StoreWorker
from tests.support.cronguard import Started, cronguard, environment, history

HOURLY = ("--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "60s")
OLDEST = (*HOURLY, "--catch-up", "oldest")
At = Callable[..., Dict[str, str]]


def at(instant: str, **more: str) -> Dict[str, str]:
    return environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=f"2026-01-20T{instant}Z", **more)


@pytest.fixture(params=["sqlite", "postgres"])
def on_store(request: pytest.FixtureRequest) -> At:
    url = request.getfixturevalue(f"{request.param}_url")
    return lambda instant, **more: at(instant, CRONGUARD_STORE=url, **more)


def start(env: Dict[str, str], *options: str, script: str = "echo $CRONGUARD_RUN_KEY $CRONGUARD_DAY") -> Any:
    return cronguard("run", "j", *(options or OLDEST), "--", "sh", "-c", script, env=env)


def took(env: Dict[str, str], *options: str) -> str:
    """The hour of the slot that a start runs; `-` if it runs none."""
    done = start(env, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout[11:13] or "-"


def test_each_start_takes_the_oldest_missing_slot_and_stops(on_store: At) -> None:
    """Article 3: look for the oldest missing window and stop."""
    assert took(on_store("00:00:03")) == "00"
    assert start(on_store("01:00:03"), script="exit 3").returncode == 3
    assert [took(on_store(f"04:{minute}0:03")) for minute in range(6)] == ["01", "02", "03", "04", "-", "-"]
    rows = [row for row in history("j", on_store("05:00:00")) if row["status"] == "success"]
    assert [row["run_key"][11:13] for row in rows] == ["04", "03", "02", "01", "00"]
    assert [row["trigger"] for row in rows] == ["schedule", "schedule", "schedule", "retry", "schedule"]
    assert rows[2]["lateness_s"] == pytest.approx(2 * 3600 + 603, abs=60)


def test_a_job_is_not_caught_up_with_from_before_it_was_known() -> None:
    """FR-82."""
    assert took(at("06:00:03")) == "06"
    assert took(at("06:30:00")) == "-"


def test_the_slot_of_the_first_start_is_caught_up_with_if_it_failed() -> None:
    assert start(at("00:00:03"), script="false").returncode == 1
    assert [took(at("02:00:03")) for _ in range(3)] == ["00", "01", "02"]


def test_no_further_back_than_the_look_back() -> None:
    assert took(at("00:00:03")) == "00"
    assert took(at("06:30:00"), *OLDEST, "--look-back", "2h") == "05"


def test_slots_of_a_pause_and_of_another_schedule_are_not_missing() -> None:
    assert took(at("00:00:03")) == "00"
    assert cronguard("pause", "j", env=at("01:30:00")).returncode == 0
    assert start(at("02:00:03")).returncode == 75
    assert cronguard("resume", "j", env=at("04:30:00")).returncode == 0
    assert took(at("05:00:03")) == "05"
    every = ("--cron", "*/30 * * * *", *OLDEST[2:])
    assert took(at("08:00:03"), *every) == "08"
    assert took(at("08:30:03"), *every) == "08"


def test_a_slot_that_failed_three_times_is_passed_over(on_store: At) -> None:
    """FR-80: nothing wedges."""
    assert took(on_store("00:00:03")) == "00"
    poisoned = "[ $CRONGUARD_RUN_KEY != 2026-01-20T01:00Z ] || exit 9; echo $CRONGUARD_RUN_KEY"
    codes = [start(on_store("03:00:03"), script=poisoned) for _ in range(5)]
    assert [done.returncode for done in codes] == [9, 9, 9, 0, 0]
    assert [done.stdout[11:13] for done in codes[3:]] == ["02", "03"]
    filled = cronguard("backfill", "j", "--from", "1d", "--", "true", env=on_store("03:30:00"))
    assert filled.stdout == "backfilled=1 already_done=0 failed=0 left=0\n"


def test_what_may_be_tried_once_only_is_passed_over_at_once() -> None:
    never = (*OLDEST, "--redo", "never")
    assert took(at("00:00:03"), *never) == "00"
    assert start(at("01:00:03"), *never, script="false").returncode == 1
    assert took(at("02:00:03"), *never) == "02"


def test_too_late_is_the_start_and_not_what_it_catches_up_with() -> None:
    """FR-76: `--max-late` counts from the own slot of the start."""
    limited = (*OLDEST, "--max-late", "10m")
    assert took(at("00:00:03"), *limited) == "00"
    assert took(at("05:05:00"), *limited) == "01"
    late = start(at("06:30:00"), *limited)
    assert (late.returncode, late.stdout) == (75, "")
    assert history("j", at("06:30:00"))[0]["reason"] == "too_late"
    assert took(at("07:05:00"), *limited) == "02"


def test_a_dry_run_says_which_slot_and_why() -> None:
    assert took(at("00:00:03")) == "00"
    shown = start(at("03:00:03"), *OLDEST, "--dry-run").stdout
    assert "slot   2026-01-20T01:00Z = 2026-01-20T01:00:00Z (the oldest missing slot of the last 7d" in shown
    assert "the own slot of this start is 2026-01-20T03:00Z" in shown
    assert shown.endswith("would run\n")
    assert "(nothing older is missing)" in start(at("00:30:00"), *OLDEST, "--dry-run").stdout


class Down:
    """A store that does not answer."""

    name, leased, warnings = "postgresql://db.example/app", True, ()

    def prepare(self, within_s: float) -> None:
        raise StoreDown(f"store: {self.name}: connection refused")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("policy", ["run", "fail"])
def test_without_the_store_the_latest_slot_is_taken_if_the_job_may_and_said(policy: str) -> None:
    options = {"cron": "0 * * * *", "timezone": "UTC", "catch_up": "oldest", "on_store_error": policy}
    spec = resolve_job(RunRequest("j", ("true",), options), {}, "", {}).spec
    own = place_at(spec, "UTC", datetime(2026, 1, 20, 3, tzinfo=timezone.utc))
    said: List[Event] = []
    worker: Any = StoreWorker(Down())  # type: ignore[arg-type]
    try:
        if policy == "fail":
            with pytest.raises(StoreDown):
                choose_or_latest(spec, "UTC", own, worker, said.append)
        else:
            assert choose_or_latest(spec, "UTC", own, worker, said.append) == own
            assert [event.name for event in said] == ["not_caught_up"]
            assert "takes its latest slot" in said[0].text
    finally:
        worker.close(1.0)


@pytest.mark.parametrize("option", [("--key", "none"), ("--run-key", "x")])
def test_without_slots_there_is_nothing_to_catch_up_with(option: Any) -> None:
    done = cronguard("run", "j", *OLDEST, *option, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (125, 1)
    assert "--catch-up: oldest" in done.stderr
    assert option[0] in done.stderr


def test_a_thousand_slots_are_searched_once(tmp_path: Path) -> None:
    """FR-80: where all is done, and where a poisoned slot is among it, no start looks at all of it again."""
    minutely = ("--cron", "* * * * *", "--timezone", "UTC", "--timeout", "60s", "--catch-up", "oldest")
    env = at("00:00:03", CRONGUARD_STORE=f"sqlite:{tmp_path}/cronguard.db")
    assert start(env, *minutely).returncode == 0
    done = [f"2026-01-20T{minute // 60:02}:{minute % 60:02}Z" for minute in range(1, 1200) if minute not in (7, 1190)]
    copy_success(tmp_path / "cronguard.db", done)
    later = at("20:00:03", CRONGUARD_STORE=env["CRONGUARD_STORE"])
    failing = [start(later, *minutely, script="echo $CRONGUARD_RUN_KEY; exit 1").stdout[11:16] for _ in range(4)]
    assert failing == ["00:07"] * 3 + ["19:50"]
    with sqlite3.connect(str(tmp_path / "cronguard.db")) as database:
        ((settled,),) = database.execute("SELECT settled_until_at FROM jobs").fetchall()
    database.close()
    assert settled > "2026-01-20T16:00"
    assert [start(later, *minutely).stdout[11:16] for _ in range(2)] == ["19:50", "20:00"]
    assert start(later, *minutely, "--dry-run").stdout.count("nothing older is missing") == 1


def copy_success(path: Path, keys: List[str]) -> None:
    """Rows as that of the first run, for other keys."""
    database = sqlite3.connect(str(path))
    with database:
        cursor = database.execute("SELECT * FROM runs WHERE status = 'success'")
        names = [column[0] for column in cursor.description]
        row = dict(zip(names, cursor.fetchone()))
        marks = ", ".join("?" * len(names))
        for number, key in enumerate(keys):
            row.update(run_id=f"{number:036x}", run_key=key, slot_at_utc=f"{key[:-1]}:00.000000+00:00")
            database.execute(f"INSERT INTO runs ({', '.join(names)}) VALUES ({marks})", list(row.values()))
    database.close()


# --- inside its own run ---


@pytest.mark.parametrize("options", [(), ("--on-conflict", "wait")])
def test_a_run_inside_a_run_of_its_job_is_skipped_with_75(options: Any) -> None:
    """It would wait for itself."""
    nested = ("run", "j", "--timeout", "60s", *options, "--", "true")
    script = 'python="$1"; shift; "$python" -m cronguard -v "$@"; echo left=$?'
    with Started("run", "j", "--timeout", "60s", "--", "sh", "-c", script, "sh", sys.executable, *nested) as outer:
        done = outer.end()
    assert (done.returncode, done.stdout) == (0, "left=75\n")
    assert "inside its own run" in done.stderr
