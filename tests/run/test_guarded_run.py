"""The guarded run, whole: real processes, every store. What each option promises, seen from outside."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Callable, Dict

import pytest

from tests.support.cronguard import Started, command, cronguard, environment, history, show

AT = "2026-01-20T02:00:03Z"
SLOT = ["--cron", "0 2 * * *", "--timezone", "UTC", "--timeout", "60s"]


@pytest.fixture
def at(store_url: str) -> Callable[..., Dict[str, str]]:
    """An environment in which it is that instant (default: three seconds after 02:00 UTC) on that store."""

    def make(instant: str = AT, **more: str) -> Dict[str, str]:
        return environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=instant, CRONGUARD_STORE=store_url, **more)

    return make


def touch(path: Path) -> list:
    """A command that adds a line to a file each time it runs."""
    return ["--", "sh", "-c", f"echo ran >> {path}"]


def runs_of(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_run_leaves_its_output_its_code_and_a_row(at: Callable[..., Dict[str, str]]) -> None:
    done = cronguard("run", "hello", *SLOT, "--", "echo", "it works", env=at())
    assert (done.returncode, done.stdout) == (0, "it works\n")
    (row,) = history("hello", at())
    assert row["status"] == "success"
    assert row["run_key"] == "2026-01-20T02:00Z"
    assert row["exit_code"] == 0
    assert row["claim_no"] == 1
    assert row["trigger"] == "schedule"
    assert row["argv"] == ["echo", "it works"]
    assert show(row["run_id"], at())["tail"] == "it works\n"
    assert row["lateness_s"] == pytest.approx(3.0, abs=2.0)


def test_a_done_slot_is_not_run_again_and_leaves_zero(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert cronguard("run", "j", *SLOT, *touch(mark), env=at()).returncode == 0
    again = cronguard("run", "j", *SLOT, *touch(mark), env=at())
    assert (again.returncode, runs_of(mark)) == (0, 1)
    assert [(row["status"], row["reason"]) for row in history("j", at())] == [
        ("skipped", "already_done"),
        ("success", None),
    ]
    assert cronguard("run", "j", *SLOT, *touch(mark), env=at("2026-01-21T02:00:00Z")).returncode == 0
    assert runs_of(mark) == 2


def test_force_runs_a_done_slot_again(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for _ in range(2):
        cronguard("run", "j", *SLOT, *touch(mark), env=at())
    assert cronguard("run", "j", *SLOT, "--force", *touch(mark), env=at()).returncode == 0
    assert runs_of(mark) == 2
    newest = history("j", at())[0]
    assert (newest["forced"], newest["trigger"]) == (True, "manual")


def test_a_failed_slot_may_be_redone_and_is_a_retry(at: Callable[..., Dict[str, str]]) -> None:
    assert cronguard("run", "j", *SLOT, "--", "sh", "-c", "exit 3", env=at()).returncode == 3
    assert cronguard("run", "j", *SLOT, "--", "true", env=at()).returncode == 0
    rows = history("j", at())
    assert [(row["claim_no"], row["status"], row["trigger"]) for row in rows] == [
        (2, "success", "retry"),
        (1, "failed", "schedule"),
    ]


def test_redo_never_tries_a_slot_once(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    never = [*SLOT, "--redo", "never"]
    assert cronguard("run", "j", *never, "--", "false", env=at()).returncode == 1
    mark = tmp_path / "mark"
    assert cronguard("run", "j", *never, *touch(mark), env=at()).returncode == 75
    assert not mark.exists()
    assert history("j", at())[0]["reason"] == "attempts_used"


def test_without_a_schedule_every_run_is_its_own(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for _ in range(2):
        assert cronguard("run", "j", "--timeout", "9s", *touch(mark), env=at()).returncode == 0
    assert runs_of(mark) == 2


@pytest.mark.parametrize(
    ("options", "code"), [([], 75), (["--skip-exit-code", "0"], 0), (["--on-conflict", "fail"], 125)]
)
def test_a_held_lock_is_told_with_its_owner(
    at: Callable[..., Dict[str, str]], tmp_path: Path, options: list, code: int
) -> None:
    """FR-08."""
    mark = tmp_path / "mark"
    with Started("run", "j", *SLOT, "--", "sh", "-c", "echo up; exec sleep 60", env=at()) as first:
        assert first.line() == "up"
        second = cronguard("-v", "run", "j", "--timeout", "9s", *options, *touch(mark), env=at("2026-01-21T02:00:00Z"))
        owner = history("j", at())[-1]["run_id"]
    assert second.returncode == code
    assert owner[:8] in second.stderr
    assert "Traceback" not in second.stderr
    assert not mark.exists()
    rows = [row for row in history("j", at()) if row["reason"] == "lock_held"]
    assert [row["holder"] for row in rows] == [owner]
    assert rows[0]["status"] == ("failed" if code == 125 else "skipped")


def test_skips_for_one_reason_and_holder_are_one_row(at: Callable[..., Dict[str, str]]) -> None:
    with Started("run", "j", *SLOT, "--", "sh", "-c", "echo up; exec sleep 60", env=at()) as first:
        assert first.line() == "up"
        for minute in range(3):
            assert cronguard("run", "j", *SLOT, "--", "true", env=at(f"2026-01-20T02:0{minute}:30Z")).returncode == 75
        rows = history("j", at())
    assert [(row["status"], row["times"]) for row in rows] == [("skipped", 3), ("running", 1)]


def test_wait_runs_when_the_lock_is_free(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    gate, mark = tmp_path / "gate", tmp_path / "mark"
    hold = f"echo up; while ! [ -e {gate} ]; do sleep 0.05; done"
    with Started("run", "j", "--timeout", "60s", "--", "sh", "-c", hold, env=at()) as first:
        assert first.line() == "up"
        waiting = ["--timeout", "60s", "--on-conflict", "wait", "--wait", "50s"]
        with Started("-v", "run", "j", *waiting, *touch(mark), env=at()) as second:
            gate.touch()
            assert first.end().returncode == 0
            assert second.end().returncode == 0
    assert runs_of(mark) == 1


@pytest.mark.parametrize("second_says", ["fail", "run"])
def test_a_job_that_may_run_unguarded_waits_like_any_other(
    at: Callable[..., Dict[str, str]], tmp_path: Path, second_says: str
) -> None:
    gate, mark = tmp_path / "gate", tmp_path / "mark"
    hold = f"echo up; while ! [ -e {gate} ]; do sleep 0.05; done"
    options = ["--timeout", "60s", "--on-store-error", "run"]
    with Started("run", "j", *options, "--", "sh", "-c", hold, env=at()) as first:
        assert first.line() == "up"
        assert cronguard("run", "j", *options, *touch(mark), env=at()).returncode == 75
        waiting = ["--timeout", "60s", "--on-store-error", second_says, "--on-conflict", "wait", "--wait", "50s"]
        with Started("run", "j", *waiting, *touch(mark), env=at()) as second:
            gate.touch()
            assert first.end().returncode == 0
            assert second.end().returncode == 0
    assert runs_of(mark) == 1


def test_a_job_runs_without_its_results_file_rather_than_not_at_all(at: Callable[..., Dict[str, str]]) -> None:
    """P7, FR-35: the directory for results is a file."""
    env = at()
    (Path(env["CRONGUARD_STATE_DIR"]) / "results").write_text("in the way")
    done = cronguard("run", "j", "--timeout", "9s", "--", "sh", "-c", "echo ${CRONGUARD_OUTPUT-none}", env=env)
    assert (done.returncode, done.stdout) == (0, "none\n")
    assert "results" in done.stderr
    assert [row["status"] for row in history("j", env)] == ["success"]


@pytest.mark.parametrize("spoil", ["rm -f $0*", "cp $0 $0.new; mv $0.new $0", "rm -rf $(dirname $0)"])
def test_a_run_whose_database_goes_away_under_it_is_not_lost(spoil: str) -> None:
    """P3: SQLite would write the outcome into a file that has no name any more. The next run brings the row in."""
    env = environment()
    assert cronguard("run", "other", "--timeout", "9s", "--", "true", env=env).returncode == 0
    database = str(Path(env["CRONGUARD_STATE_DIR"]) / "cronguard.db")
    done = cronguard("run", "j", "--timeout", "9s", "--", "sh", "-c", f"{spoil}; exit 4", database, env=env)
    assert done.returncode == 4
    assert "removed or replaced" in done.stderr
    assert cronguard("run", "other", "--timeout", "9s", "--", "true", env=env).returncode == 0
    assert [(row["status"], row["exit_code"]) for row in history("j", env)] == [("failed", 4)]


def test_with_too_few_descriptors_a_run_that_claimed_is_on_record(at: Callable[..., Dict[str, str]]) -> None:
    """FR-17, P3: wherever they run out, there is one line and no row that stays `running`."""
    env = at()
    assert cronguard("run", "j", "--timeout", "9s", "--", "true", env=env).returncode == 0
    codes = set()
    for limit in range(10, 24):
        limited = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"]
        done = subprocess.run(
            [*limited, *command("run", "j", "--timeout", "9s", "--", "echo", "ran")],
            env=env, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (done.returncode, done.stdout) in ((0, "ran\n"), (125, "")), done
        assert "internal error" not in done.stderr
        codes.add(done.returncode)
    assert codes == {0, 125}
    assert {row["status"] for row in history("j", env)} == {"success", "failed"}


def test_a_retry_does_not_trip_over_what_the_attempt_before_made_of_its_results_file(
    at: Callable[..., Dict[str, str]],
) -> None:
    odd = 'rm "$CRONGUARD_OUTPUT"; mkdir "$CRONGUARD_OUTPUT"; exit 3'
    again = ["--timeout", "60s", "--retries", "1", "--retry-delay", "0.05s"]
    assert cronguard("run", "j", *again, "--", "sh", "-c", odd, env=at()).returncode == 3
    (row,) = history("j", at())
    assert (row["status"], row["attempts"]) == ("failed", 2)


def test_jobs_may_share_a_lock(at: Callable[..., Dict[str, str]]) -> None:
    hold = ["sh", "-c", "echo up; exec sleep 60"]
    with Started("run", "a", "--lock", "db", "--timeout", "60s", "--", *hold, env=at()) as a:
        assert a.line() == "up"
        assert cronguard("run", "b", "--lock", "db", "--timeout", "9s", "--", "true", env=at()).returncode == 75
        assert cronguard("run", "c", "--timeout", "9s", "--", "true", env=at()).returncode == 0


def test_a_slot_too_late_is_not_started(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """FR-76: late over midnight the slot is still yesterday's; with --max-late it is given up."""
    late = ["--cron", "30 23 * * *", "--timezone", "UTC", "--timeout", "9s"]
    env = at("2026-01-21T00:10:00Z")
    assert cronguard("run", "j", *late, "--max-late", "30m", "--", "true", env=env).returncode == 75
    assert history("j", env)[0]["reason"] == "too_late"
    done = cronguard("run", "j", *late, "--", "sh", "-c", "echo $CRONGUARD_SLOT $CRONGUARD_DAY", env=env)
    assert done.stdout == "2026-01-20T23:30Z 2026-01-20\n"


def test_early_and_late_fires_of_one_slot_run_once(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """FR-74."""
    mark = tmp_path / "mark"
    hourly = ["--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "9s"]
    for instant in ("2026-01-20T12:59:59.500Z", "2026-01-20T13:00:00.5Z"):
        assert cronguard("run", "j", *hourly, *touch(mark), env=at(instant)).returncode == 0
    assert runs_of(mark) == 1


def test_the_command_knows_its_run(at: Callable[..., Dict[str, str]]) -> None:
    """Every variable of the design, and none of an outer run's."""
    outer = at(CRONGUARD_RUN_KEY="outer", CRONGUARD_SLOT="outer", CRONGUARD_FENCE="1", MARK="kept")
    done = cronguard("run", "j", "--timeout", "60s", "--", "env", env=outer)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    (row,) = history("j", at())
    assert seen["MARK"] == "kept"
    assert seen["CRONGUARD_SLOT"] == ""
    assert seen["CRONGUARD_JOB"] == "j"
    assert seen["CRONGUARD_RUN_ID"] == seen["CRONGUARD_RUN_KEY"] == row["run_id"]
    assert int(seen["CRONGUARD_FENCE"]) > 1
    assert seen["CRONGUARD_ATTEMPT"] == "1"
    assert seen["CRONGUARD_TRIGGER"] == "schedule"
    assert seen["CRONGUARD_DEADLINE"].startswith("2026-01-20T02:01:")
    assert {"CRONGUARD_DAY", "CRONGUARD_ZONE", "CRONGUARD_OUTPUT"} <= set(seen)


def test_what_the_command_reports_lands_in_its_row(at: Callable[..., Dict[str, str]]) -> None:
    say = 'printf "items=418\\nerrors=2\\nmessage=two bounced\\n" >> "$CRONGUARD_OUTPUT"'
    assert cronguard("run", "j", "--timeout", "9s", "--", "sh", "-c", say, env=at()).returncode == 0
    (row,) = history("j", at())
    assert (row["items"], row["errors"], row["message"]) == (418, 2, "two bounced")


def test_retries_are_one_run_with_its_attempts_counted(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    flaky = f"echo $CRONGUARD_ATTEMPT >> {mark}; [ $(wc -l < {mark}) -ge 3 ]"
    done = cronguard(
        "run", "j", *SLOT, "--retries", "3", "--retry-delay", "0.05s", "--", "sh", "-c", flaky, env=at()
    )
    assert done.returncode == 0
    assert mark.read_text().split() == ["1", "2", "3"]
    (row,) = history("j", at())
    assert (row["status"], row["attempts"]) == ("success", 3)


def test_a_timeout_is_its_own_status_and_code(at: Callable[..., Dict[str, str]]) -> None:
    done = cronguard("run", "j", *SLOT[:4], "--timeout", "0.3s", "--grace", "0.2s", "--", "sleep", "60", env=at())
    assert done.returncode == 124
    (row,) = history("j", at())
    assert (row["status"], row["exit_code"]) == ("timeout", None)
    assert "timeout" in done.stderr


@pytest.mark.parametrize(
    ("argv", "code", "row_code", "row_signal"),
    [
        (["sh", "-c", "exit 137"], 137, 137, None),
        (["sh", "-c", "kill -9 $$"], 137, None, 9),
        (["/no/such"], 127, None, None),
        (["/etc/passwd"], 126, None, None),
    ],
)
def test_codes_and_signals_are_told_apart(
    at: Callable[..., Dict[str, str]], argv: list, code: int, row_code: object, row_signal: object
) -> None:
    """FR-22, FR-27."""
    assert cronguard("run", "j", "--timeout", "9s", "--", *argv, env=at()).returncode == code
    (row,) = history("j", at())
    assert (row["status"], row["exit_code"], row["signal"]) == ("failed", row_code, row_signal)
    assert cronguard("run", "j", "--timeout", "9s", "--", "true", env=at()).returncode == 0


def test_dry_run_tells_and_touches_nothing(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    shown = cronguard("run", "j", *SLOT, "--dry-run", *touch(mark), env=at())
    assert shown.returncode == 0, shown.stderr
    assert "2026-01-20T02:00Z" in shown.stdout
    assert "would run" in shown.stdout
    assert not mark.exists()
    assert history("j", at()) == []
    cronguard("run", "j", *SLOT, *touch(mark), env=at())
    shown = cronguard("run", "j", *SLOT, "--dry-run", *touch(mark), env=at())
    assert (shown.returncode, runs_of(mark)) == (0, 1)
    assert "already_done" in shown.stdout


def test_quiet_shows_output_only_after_a_failure(at: Callable[..., Dict[str, str]]) -> None:
    good = cronguard("run", "j", "--timeout", "9s", "--quiet", "--", "echo", "fine", env=at())
    assert (good.stdout, "fine" in good.stderr) == ("", False)
    bad = cronguard("run", "j", "--timeout", "9s", "--quiet", "--", "sh", "-c", "echo why; exit 4", env=at())
    assert bad.returncode == 4
    assert "why" in bad.stdout + bad.stderr
    long = ["--quiet", "--tail", "10", "--", "sh", "-c", "seq 1 999; exit 4"]
    cut = cronguard("run", "j", "--timeout", "9s", *long, env=at())
    assert cut.stderr.endswith("... 3878 bytes cut\n7\n998\n999\n")


def test_a_scheduled_success_says_nothing_of_its_own(store_url: str) -> None:
    env = environment(CRONGUARD_STORE=store_url)
    cronguard("run", "j", "--timeout", "9s", "--", "true", env=env)
    done = cronguard("run", "j", "--timeout", "9s", "--", "true", env=env)
    assert (done.stdout, done.stderr) == ("", "")


def test_secrets_stay_out_of_the_row(at: Callable[..., Dict[str, str]]) -> None:
    """P9."""
    cronguard("run", "j", "--timeout", "9s", "--", "true", "--password=hunter2", env=at())
    assert "hunter2" not in json.dumps(history("j", at()))


def test_dst_gap_and_fold_run_once_each(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """FR-86: 02:30 in Europe/Rome on both days of 2026, whichever cron fires how often."""
    mark = tmp_path / "mark"
    rome = ["--cron", "30 2 * * *", "--timezone", "Europe/Rome", "--timeout", "9s"]
    fires = ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
    keys = set()  # noted on the way: seven months later a run may prune the rows of March
    for instant in fires:
        assert cronguard("run", "j", *rome, *touch(mark), env=at(instant)).returncode == 0
        keys.update(row["run_key"] for row in history("j", at()) if row["status"] == "success")
    assert runs_of(mark) == 2
    assert keys == {"2026-10-25T02:30", "2026-03-29T02:30"}


def test_a_run_without_it_does_not_forget_the_jobs_schedule(at: Callable[..., Dict[str, str]]) -> None:
    """`cronguard run backup --force -- ...` leaves away what the crontab line says; `status` must still know it."""
    assert cronguard("run", "j", *SLOT, "--", "true", env=at()).returncode == 0
    assert cronguard("run", "j", "--force", "--timeout", "9s", "--", "true", env=at()).returncode == 0
    assert cronguard("run", "j", "--timeout", "9s", "--", "true", env=at()).returncode == 0
    (job,) = json.loads(cronguard("status", "--json", env=at()).stdout)["jobs"]
    assert job["schedule"] == {"cron": "0 2 * * *"}


def test_weeks_of_missed_slots_never_wedge_the_current_one(at: Callable[..., Dict[str, str]], tmp_path: Path) -> None:
    """FR-80: every minute, last success three weeks ago."""
    mark = tmp_path / "mark"
    each_minute = ["--cron", "* * * * *", "--timezone", "Europe/Rome", "--timeout", "9s"]
    for instant in ("2026-01-01T00:00:01Z", "2026-01-22T00:00:01Z"):
        assert cronguard("run", "j", *each_minute, *touch(mark), env=at(instant)).returncode == 0
    assert runs_of(mark) == 2
    assert history("j", at())[0]["run_key"] == "2026-01-22T01:00+01:00"


def test_two_hosts_that_share_a_store_run_a_slot_once(postgres_url: str, tmp_path: Path) -> None:
    """FR-85, and the two processes after a deployment: each has its own state directory, the database is common."""
    mark = tmp_path / "mark"
    for name in ("web-1", "web-2"):
        env = environment(
            CRONGUARD_TEST="1",
            CRONGUARD_TEST_NOW=AT,
            CRONGUARD_TEST_HOST=name,
            CRONGUARD_STORE=postgres_url,
            CRONGUARD_STATE_DIR=str(tmp_path / name),
        )
        assert cronguard("run", "j", *SLOT, *touch(mark), env=env).returncode == 0
    assert runs_of(mark) == 1
    done, skipped = sorted(history("j", env), key=lambda row: str(row["run_id"]))
    assert (done["host"], skipped["host"], skipped["reason"]) == ("web-1", "web-2", "already_done")
