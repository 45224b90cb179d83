"""`cronguard backfill`, whole: what is missing, made up oldest first, each slot once, whoever else is at it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from tests.support.cronguard import Started, command, cronguard, environment, history, until
from tests.support.pingserver import PingServer

pytestmark = pytest.mark.usual

ROME = ("--timezone", "Europe/Rome", "--timeout", "60s")
HOURLY = ("--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "60s")
FIRST = "2026-01-20T00:00:03Z"  # when the job was first seen, by its run for 00:00
NOW = "2026-01-20T05:30:00Z"  # five hourly slots later
MISSED = [f"2026-01-20T0{hour}:00Z" for hour in range(1, 6)]
At = Callable[..., Dict[str, str]]


def at(instant: str = NOW, **more: str) -> Dict[str, str]:
    return environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=instant, **more)


def once(job: str, *schedule: str, instant: str = FIRST, env: Any = None) -> None:
    """The job becomes known by a run that succeeds."""
    assert cronguard("run", job, *schedule, "--", "true", env=env or at(instant)).returncode == 0


def missing(job: str, start: str, *options: str, env: Any = None) -> List[str]:
    """The keys that a dry run lists."""
    done = cronguard("backfill", job, "--from", start, *options, "--dry-run", "--json", env=env or at())
    assert done.returncode == 0, done.stderr
    return [slot["key"] for slot in json.loads(done.stdout)["slots"]]


def noting(path: Path, *variables: str) -> List[str]:
    """A command that adds a line with these variables to a file."""
    return ["--", "sh", "-c", f"echo {' '.join('$CRONGUARD_' + name for name in variables)} >> {path}"]


def lines(path: Path) -> List[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(params=["sqlite", "postgres"])
def on_store(request: pytest.FixtureRequest) -> At:
    url = request.getfixturevalue(f"{request.param}_url")
    return lambda instant=NOW, **more: at(instant, CRONGUARD_STORE=url, **more)


def test_each_missing_slot_is_run_once_oldest_first_as_itself(on_store: At, tmp_path: Path) -> None:
    """FR-76, FR-82: schedule, zone and key as the store remembers them; the slot's day, never today."""
    nightly = ("--cron", "30 23 * * *", *ROME)
    once("j", *nightly, env=on_store("2026-03-26T22:30:03Z"))
    marks = tmp_path / "marks"
    now = on_store("2026-03-31T00:10:00Z")
    what = noting(marks, "RUN_KEY", "SLOT", "DAY", "TRIGGER", "JOB")
    done = cronguard("backfill", "j", "--from", "2026-03-20", *what, env=now)
    assert (done.returncode, done.stdout) == (0, "backfilled=4 already_done=0 failed=0 left=0\n")
    assert "6 slots before 2026-03-26T22:30:" in done.stderr
    assert lines(marks) == [
        "2026-03-27T23:30 2026-03-27T22:30Z 2026-03-27 backfill j",
        "2026-03-28T23:30 2026-03-28T22:30Z 2026-03-28 backfill j",
        "2026-03-29T23:30 2026-03-29T21:30Z 2026-03-29 backfill j",
        "2026-03-30T23:30 2026-03-30T21:30Z 2026-03-30 backfill j",
    ]
    assert missing("j", "2026-03-20", env=now) == []
    again = cronguard("backfill", "j", "--from", "2026-03-20", *what, env=now)
    assert (again.returncode, len(lines(marks))) == (0, 4)
    rows = history("j", now)
    assert {(row["trigger"], row["status"]) for row in rows[:4]} == {("backfill", "success")}
    assert rows[3]["lateness_s"] > 3 * 86400


# --- what is missing ---


def test_a_gap_of_ten_with_a_failed_one_is_exactly_these_in_order() -> None:
    """FR-82, its second recipe."""
    once("j", *HOURLY)
    assert cronguard("run", "j", *HOURLY, "--", "false", env=at("2026-01-20T04:00:01Z")).returncode == 1
    once("j", *HOURLY, instant="2026-01-20T11:00:01Z")
    now = at("2026-01-20T11:30:00Z")
    assert missing("j", "2026-01-19", env=now) == [f"2026-01-20T{hour:02}:00Z" for hour in range(1, 11)]
    assert missing("j", "2026-01-20T03:00Z", "--to", "2026-01-20T06:00Z", env=now) == MISSED[2:5]


def test_nothing_before_the_job_was_known_unless_told_so() -> None:
    """FR-82, its first recipe: registered today."""
    once("j", "--cron", "@daily", *ROME, instant="2026-01-20T12:00:00Z")
    now = at("2026-01-20T18:00:00Z")
    assert missing("j", "2026-01-01", env=now) == []
    assert len(missing("j", "2026-01-01", "--all", env=now)) == 19


def test_what_the_very_first_run_failed_at_is_missing() -> None:
    assert cronguard("run", "j", *HOURLY, "--", "false", env=at(FIRST)).returncode == 1
    assert missing("j", "1d") == ["2026-01-20T00:00Z", *MISSED]


def test_another_schedule_makes_no_old_slots_missing() -> None:
    """Their keys would be others, and days that were done would be done again."""
    once("j", *HOURLY)
    half_past = ("--cron", "30 * * * *", *HOURLY[2:])
    assert missing("j", "1d", *half_past[:2]) == []
    once("j", *half_past, instant="2026-01-20T03:40:00Z")
    assert missing("j", "1d") == ["2026-01-20T04:30Z", "2026-01-20T05:30Z"]


def test_a_job_that_never_ran_is_taken_at_its_word() -> None:
    """The user named the time, and nobody can know better."""
    dry = ("--from", "2026-01-20T03:00Z", *HOURLY, "--dry-run")
    done = cronguard("backfill", "new", *dry, env=at())
    assert [line.split()[0] for line in done.stdout.splitlines()[1:-1]] == MISSED[2:]
    assert done.stdout.endswith("new: 3 missing\n")
    assert "add --all" in done.stderr
    assert not Path(os.environ["CRONGUARD_STATE_DIR"], "cronguard.db").exists()


@pytest.mark.parametrize(
    ("known", "now", "keys"),
    [
        ("2026-03-27T01:30:01Z", "2026-03-30T12:00:00Z", ["2026-03-28", "2026-03-29", "2026-03-30"]),
        ("2026-10-23T00:30:01Z", "2026-10-26T12:00:00Z", ["2026-10-24", "2026-10-25", "2026-10-26"]),
        ("2027-10-29T00:30:01Z", "2027-11-01T12:00:00Z", ["2027-10-30", "2027-10-31", "2027-11-01"]),
    ],
)
def test_weeks_of_clock_changes_have_the_right_days(known: str, now: str, keys: List[str]) -> None:
    once("j", "--cron", "30 2 * * *", *ROME, instant=known)
    assert missing("j", "10d", env=at(now)) == [f"{key}T02:30" for key in keys]
    once("d", "--cron", "0 2,3,4 * * *", "--key", "day", *ROME, instant=known.replace("30:01", "00:00"))
    assert missing("d", "10d", env=at(now)) == keys


def test_slots_whose_rows_were_pruned_need_force(tmp_path: Path) -> None:
    nightly = ("--cron", "0 2 * * *", "--timezone", "UTC", "--timeout", "60s")
    for day in ("05", "06"):
        once("j", *nightly, instant=f"2020-01-{day}T02:00:03Z")
    once("j", *nightly, instant="2020-03-01T02:00:03Z")
    assert cronguard("prune", "--older-than", "1d", env=at("2020-03-02T00:00:00Z")).returncode == 0
    span = ("--from", "2020-01-05", "--to", "2020-01-08")
    marks = tmp_path / "marks"
    done = cronguard("backfill", "j", *span, *noting(marks, "DAY"), env=at("2020-03-02T00:00:00Z"))
    assert (done.returncode, lines(marks)) == (0, ["2020-01-07"])
    assert "without 2 slots of before rows were pruned" in done.stderr
    forced = cronguard("backfill", "j", *span, "--force", *noting(marks, "DAY"), env=at("2020-03-02T00:00:00Z"))
    assert (forced.returncode, lines(marks)[1:]) == (0, ["2020-01-05", "2020-01-06"])


def test_a_slot_that_may_be_tried_once_only_is_left_to_people(tmp_path: Path) -> None:
    """The store remembers `--redo never`; nobody has to say it again."""
    never = (*HOURLY, "--redo", "never")
    once("j", *never)
    assert cronguard("run", "j", *never, "--", "false", env=at("2026-01-20T02:00:01Z")).returncode == 1
    done = cronguard("backfill", "j", "--from", "1d", "--dry-run", env=at())
    assert ("2026-01-20T02:00Z" in done.stdout, "2026-01-20T03:00Z" in done.stdout) == (False, True)
    assert "1 slot that were tried" in done.stderr
    assert missing("j", "1d", "--force")[1] == "2026-01-20T02:00Z"


# --- how it goes ---


def test_it_stops_at_the_first_failure_and_goes_on_there(tmp_path: Path) -> None:
    """FR-49: five missed slots of which the second fails; the last ping says so, and none was green."""
    once("j", *HOURLY)
    marks = tmp_path / "marks"
    broken = f"[ -e {tmp_path}/mended ] || [ $CRONGUARD_RUN_KEY != {MISSED[1]} ] || exit 7"
    script = f"echo $CRONGUARD_RUN_KEY >> {marks}; echo at work; {broken}"
    with PingServer() as server:
        line = ("backfill", "j", "--from", "1d", "--ping", server.check_url, "--", "sh", "-c", script)
        done = cronguard(*line, env=at())
        assert (done.returncode, lines(marks)) == (7, MISSED[:2])
        assert done.stdout.splitlines()[-1] == "backfilled=1 already_done=0 failed=1 left=3"
        assert server.paths == ["/start", "/fail"]
        sent = server.wait_for(2)
        assert MISSED[1].encode() in sent[1].body.splitlines()[0]
        assert len({request.query["rid"] for request in sent}) == 1
        (tmp_path / "mended").touch()
        done = cronguard(*line, env=at())
        assert (done.returncode, lines(marks)[2:]) == (0, MISSED[1:])
        assert server.paths[2:] == ["/start", ""]
        assert cronguard(*line, env=at()).returncode == 0
        assert len(server.paths) == 4


def test_at_most_so_many_and_the_rest_the_next_time(tmp_path: Path) -> None:
    """FR-80: bounded, clear, resumable."""
    once("j", *HOURLY)
    marks = tmp_path / "marks"
    for number, more in ((2, " more=yes"), (2, " more=yes"), (1, "")):
        done = cronguard("backfill", "j", "--from", "1d", "--max", "2", *noting(marks, "RUN_KEY"), env=at())
        assert done.stdout == f"backfilled={number} already_done=0 failed=0 left=0{more}\n"
    assert lines(marks) == MISSED
    result = cronguard("backfill", "j", "--from", "1d", "--json", "--", "true", env=at())
    assert json.loads(result.stdout) == {
        "version": 1, "backfilled": 0, "already_done": 0, "failed": 0, "left": 0, "more": False, "exit_code": 0,
    }  # fmt: skip


def test_two_at_once_run_no_slot_twice(on_store: At, tmp_path: Path) -> None:
    once("j", *HOURLY, env=on_store(FIRST))
    marks = tmp_path / "marks"
    slow = ("--", "sh", "-c", f"echo $CRONGUARD_RUN_KEY >> {marks}; sleep 0.3")
    waiting = ("backfill", "j", "--from", "1d", "--on-conflict", "wait")
    with Started(*waiting, *slow, env=on_store()) as first, Started(*waiting, *slow, env=on_store()) as second:
        ends = [first.end(), second.end()]
    assert [end.returncode for end in ends] == [0, 0], [end.stderr for end in ends]
    assert sorted(lines(marks)) == MISSED
    counts = [dict(word.split("=") for word in end.stdout.split()) for end in ends]
    assert sum(int(count["backfilled"]) for count in counts) == 5
    assert sum(int(count["already_done"]) for count in counts) <= 5  # less if one was done before the other looked


def test_a_second_one_that_does_not_wait_leaves_with_75_and_pings_nothing(tmp_path: Path) -> None:
    once("j", *HOURLY)
    span = ("backfill", "j", "--from", "1d")
    with PingServer() as server, Started(*span, "--", "sh", "-c", "echo up; exec sleep 60", env=at()) as first:
        assert first.line() == "up"
        second = cronguard(*span, "--ping", server.check_url, "--", "true", env=at())
        assert server.paths == []
    assert (second.returncode, second.stdout) == (75, "backfilled=0 already_done=0 failed=0 left=5\n")
    assert "the same command goes on" in second.stderr


def test_a_scheduled_run_is_waited_for(tmp_path: Path) -> None:
    once("j", *HOURLY)
    gate = tmp_path / "gate"
    hold = ("--", "sh", "-c", f"echo up; while ! [ -e {gate} ]; do sleep 0.05; done")
    with Started("run", "j", *HOURLY, *hold, env=at("2026-01-20T05:00:01Z")) as scheduled:
        assert scheduled.line() == "up"
        with Started("-v", "backfill", "j", "--from", "1d", "--", "true", env=at()) as filling:
            assert filling.process.stderr is not None
            until(lambda: "waits for the run" in filling.process.stderr.readline(), "it waits")
            gate.touch()
            done = filling.end()
        assert scheduled.end().returncode == 0
    assert (done.returncode, done.stdout) == (0, "backfilled=4 already_done=1 failed=0 left=0\n")


def test_a_slot_that_becomes_due_meanwhile_goes_first(tmp_path: Path) -> None:
    """Its own start met our claim and left; a thousand old slots must not make it wait."""
    every = ("--every", "1s", "--timezone", "UTC", "--timeout", "60s")
    once("j", *every, instant="2026-01-20T05:00:00Z")
    marks = tmp_path / "marks"
    slow = ("--", "sh", "-c", f"echo $CRONGUARD_SLOT >> {marks}; sleep 0.4")
    now = at("2026-01-20T05:01:00.500Z")
    done = cronguard("backfill", "j", "--from", "2026-01-20T05:00Z", "--max", "4", *slow, env=now)
    assert done.returncode == 0, done.stderr
    took = lines(marks)
    old = [slot for slot in took if slot.startswith("2026-01-20T05:00:")]
    assert old == [f"2026-01-20T05:00:{second:02}Z" for second in (1, 2, 3, 4)]
    assert took[0] == old[0]
    assert took[-1] == old[-1]
    assert len(took) > len(old)
    assert len(took) == len(set(took))


def test_paused_leaves_with_75_and_runs_nothing(tmp_path: Path) -> None:
    once("j", *HOURLY)
    assert cronguard("pause", "j").returncode == 0
    mark = tmp_path / "mark"
    done = cronguard("backfill", "j", "--from", "1d", "--", "touch", str(mark), env=at())
    assert (done.returncode, mark.exists()) == (75, False)
    assert "paused" in done.stderr


def test_a_signal_stops_all_of_it(tmp_path: Path) -> None:
    once("j", *HOURLY)
    with PingServer() as server:
        line = ("backfill", "j", "--from", "1d", "--ping", server.check_url)
        with Started(*line, "--", "sh", "-c", "echo up; exec sleep 60", env=at()) as filling:
            assert filling.line() == "up"
            filling.process.send_signal(signal.SIGTERM)
            done = filling.end()
        assert server.paths == ["/start", "/fail"]
    assert done.returncode == 143
    assert done.stdout.splitlines()[-1] == "backfilled=0 already_done=0 failed=1 left=4"
    assert missing("j", "1d") == MISSED


def test_command_and_schedule_come_from_the_file(tmp_path: Path) -> None:
    marks, file = tmp_path / "marks", tmp_path / "config.toml"
    file.write_text(
        f'[jobs.j]\ncommand = ["sh", "-c", "echo $CRONGUARD_RUN_KEY >> {marks}"]\ncron = "0 * * * *"\n'
        'timezone = "UTC"\ncatch_up = "oldest"\nmax_late = "5m"\njitter = "1h"\n'
    )
    done = cronguard("backfill", "j", "--from", "2026-01-20T01:00Z", env=at(CRONGUARD_CONFIG=str(file)))
    assert (done.returncode, lines(marks)) == (0, MISSED)


def test_a_store_that_cannot_be_had_is_said_with_125_and_one_fail_ping(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with PingServer() as server:
        away = at(CRONGUARD_STORE=f"sqlite:{tmp_path}/file/cronguard.db")
        line = ("backfill", "j", "--from", "1d", *HOURLY, "--ping", server.check_url, "--", "true")
        done = cronguard(*line, env=away)
        assert (done.returncode, server.paths) == (125, ["/fail"])


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "--from"),
        (("--from", "soon"), "--from"),
        (("--from", "2027-01-01"), "--from"),
        (("--from", "1d", "--to", "2d"), "--to"),
        (("--from", "1d", "--max", "0"), "--max"),
        (("--from", "1d", "--key", "none"), "--key"),
        (("--from", "1d", "--run-key", "x"), "--run-key"),
        (("--from", "1d", "--catch-up", "oldest"), "--catch-up"),
        (("--from", "1d", "--max-late=5m"), "--max-late"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_125(words: Any, named: str) -> None:
    done = cronguard("backfill", "j", *HOURLY, *words, "--", "true", env=environment())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (125, "", 1)
    assert named in done.stderr


def test_a_job_without_a_schedule_is_one_clear_line() -> None:
    assert cronguard("run", "plain", "--timeout", "9s", "--", "true").returncode == 0
    done = cronguard("backfill", "plain", "--from", "1d", "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (125, 1)
    assert "no schedule: plain" in done.stderr


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    once("j", *HOURLY)
    ours, theirs = pty.openpty()
    try:
        with open(tmp_path / "out", "wb") as out:
            line = ("backfill", "j", "--from", "1d", "--quiet", "--", "sleep", "0.2")
            env = {**at(), "TERM": "xterm"}
            with subprocess.Popen(command(*line), env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs) as run:
                assert run.wait(60) == 0
        os.set_blocking(ours, False)
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "/5" in shown
    assert "lock_acquired" not in shown
    assert (tmp_path / "out").read_text() == "backfilled=5 already_done=0 failed=0 left=0\n"
