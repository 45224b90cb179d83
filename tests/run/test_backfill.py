"""`backfill`: what it proposes, runs, passes over and tells; seen from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import pytest

from tests.support.cronguard import Started, cronguard, environment, history, until
from tests.support.pingserver import PingServer

HOURLY = ("--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "60s")
NOW = "2026-01-20T11:30:00Z"
At = Callable[..., Dict[str, str]]


def instants(url: str) -> At:
    def make(now: str = NOW, **more: str) -> Dict[str, str]:
        return environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=now, CRONGUARD_STORE=url, **more)

    return make


@pytest.fixture
def at(sqlite_url: str) -> At:
    return instants(sqlite_url)


def known(at: At, now: str = "2026-01-20T01:00:01Z", *schedule: str) -> None:
    """Let the job be known since then."""
    assert cronguard("run", "j", *(schedule or HOURLY), "--", "true", env=at(now)).returncode == 0


def proposed(env: Dict[str, str], *args: str) -> List[str]:
    ended = cronguard("backfill", "j", "--dry-run", "--json", *args, env=env)
    assert ended.returncode == 0, ended.stderr
    return [slot["key"] for slot in json.loads(ended.stdout)["slots"]]


def hours(*numbers: int) -> List[str]:
    return [f"2026-01-20T{number:02}:00Z" for number in numbers]


def noting(path: Path, failing: str = "-") -> Tuple[str, ...]:
    """A command that writes down its slot, and fails for one of them."""
    return ("--", "sh", "-c", f'echo $CRONGUARD_SLOT $CRONGUARD_DAY >> {path}; test "$CRONGUARD_SLOT" != {failing}')


def noted(path: Path) -> List[str]:
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(params=["sqlite", "postgres"])
def both(request: pytest.FixtureRequest) -> At:
    return instants(request.getfixturevalue(f"{request.param}_url"))


def test_missing_slots_are_run_oldest_first_until_one_fails_and_the_same_line_goes_on(both: At, tmp_path: Path) -> None:
    """FR-76: each with its own slot and day. FR-82: ten hours down, one of them failed: exactly those."""
    known(both)
    note = tmp_path / "note"
    first = cronguard("backfill", "j", "--from", "2026-01-20", *noting(note, "2026-01-20T05:00Z"), env=both())
    assert first.returncode == 1
    assert noted(note) == hours(2, 3, 4, 5)
    expected = "backfilled=3 already_done=0 failed=1 left=6 stopped_at=2026-01-20T05:00Z (failed)"
    assert first.stdout.splitlines()[-1].startswith(expected)
    assert proposed(both(), "--from", "2026-01-20") == hours(*range(5, 12))
    again = cronguard("backfill", "j", "--from", "2026-01-20", *noting(note), env=both())
    assert (again.returncode, noted(note)) == (0, hours(2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11))
    rows = history("j", both())
    assert [row["run_key"] for row in rows if row["status"] == "success"] == hours(*range(11, 0, -1))
    assert {row["trigger"] for row in rows[:-1]} == {"backfill"}
    nothing = cronguard("backfill", "j", "--from", "2026-01-20", *noting(note), env=both())
    assert (nothing.returncode, nothing.stdout.splitlines()[-1]) == (
        0, "backfilled=0 already_done=0 failed=0 left=0",
    )  # fmt: skip


def test_nothing_is_proposed_from_before_the_job_was_known(at: At) -> None:
    """FR-82, and said; `--all` asks for it."""
    known(at, "2026-01-20T09:10:00Z", "--cron", "@daily", "--timezone", "UTC", "--timeout", "60s")
    ended = cronguard("backfill", "j", "--from", "2026-01-10", "--dry-run", env=at())
    assert ended.stdout.splitlines()[0] == "j: 0 slots are missing, UTC"
    assert "10 slots from before the job was known" in ended.stdout
    assert len(proposed(at(), "--from", "2026-01-10", "--all")) == 10


def test_job_that_nobody_knows_takes_the_whole_range_of_the_line(at: At, tmp_path: Path) -> None:
    note = tmp_path / "note"
    range_ = ("--from", "2026-03-27", "--to", "2026-03-31")
    rome = ("--cron", "30 2 * * *", "--timezone", "Europe/Rome")
    env = at("2026-04-02T10:00:00Z")
    ended = cronguard("backfill", "j", *range_, *rome, *noting(note), env=env)
    assert ended.returncode == 0, ended.stderr
    assert note.read_text().split() == [
        "2026-03-27T01:30Z", "2026-03-27", "2026-03-28T01:30Z", "2026-03-28",
        "2026-03-29T01:00Z", "2026-03-29", "2026-03-30T00:30Z", "2026-03-30",
    ]  # fmt: skip


def test_october_has_no_slot_twice(at: At, tmp_path: Path) -> None:
    note = tmp_path / "note"
    days = ("--from", "2026-10-23", "--to", "2026-10-27", "--cron", "30 2 * * *", "--timezone", "Europe/Rome")
    for _ in range(2):
        cronguard("backfill", "j", *days, *noting(note), env=at("2026-11-02T10:00:00Z"))
    assert noted(note) == ["2026-10-23T00:30Z", "2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"]


def test_most_and_end_bound_it(at: At, tmp_path: Path) -> None:
    """FR-80: thirty thousand are listed and bounded; the oldest ten are done."""
    known(at, "2026-01-01T00:00:01Z", "--cron", "* * * * *", "--timezone", "UTC", "--timeout", "60s")
    note = tmp_path / "note"
    few = ("--from", "2026-01-01", "--max", "3")
    ended = cronguard("backfill", "j", *few, *noting(note), env=at())
    assert noted(note) == ["2026-01-01T00:01Z", "2026-01-01T00:02Z", "2026-01-01T00:03Z"]
    assert "left=28047" in ended.stdout
    assert proposed(at(), *few, "--to", "2026-01-01T00:05Z") == ["2026-01-01T00:04Z"]


def test_one_start_and_one_terminal_ping_for_the_whole(at: At, tmp_path: Path) -> None:
    """FR-49: the last word is fail, and names the slot."""
    known(at, "2026-01-20T06:00:01Z")
    with PingServer() as server:
        ping = ("--ping", server.check_url)
        line = ("backfill", "j", "--from", "2026-01-20", *ping)
        cronguard(*line, *noting(tmp_path / "note", "2026-01-20T08:00Z"), env=at())
        assert [request.path.rpartition("/")[2] for request in server.received][1:] == ["fail"]
        assert len({request.query["rid"] for request in server.received}) == 1
        assert b"2026-01-20T08:00Z" in server.received[-1].body
        cronguard(*line, *noting(tmp_path / "note"), env=at())
        assert len(server.received) == 4
        assert server.received[-1].path == server.received[0].path.replace("/start", "")
        cronguard(*line, *noting(tmp_path / "note"), env=at())
        assert len(server.received) == 4


def test_two_at_once_run_no_slot_twice(at: At, tmp_path: Path) -> None:
    known(at)
    note = tmp_path / "note"
    line = ("backfill", "j", "--from", "2026-01-20", *noting(note))
    with Started(*line, env=at()) as one, Started(*line, env=at()) as two:
        codes = [one.process.wait(60), two.process.wait(60)]
    assert codes == [0, 0]
    assert noted(note) == hours(*range(2, 12))


def test_slot_whose_start_found_the_lock_taken_goes_first(at: At, tmp_path: Path) -> None:
    """A thousand missed slots never cost the current one."""
    known(at, "2026-01-20T08:00:01Z")
    gate, note = tmp_path / "gate", tmp_path / "note"
    wait = f"while [ $CRONGUARD_SLOT = 2026-01-20T09:00Z ] && ! [ -e {gate} ]; do sleep .05; done"
    held = f"echo $CRONGUARD_SLOT >> {note}; {wait}"
    with Started("backfill", "j", "--from", "2026-01-20", "--to", "2026-01-20T11:00Z", "--", "sh", "-c", held,
                 env=at("2026-01-20T11:59:59Z")) as filling:  # fmt: skip
        until(lambda: noted(note) == hours(9), "the first slot to run")
        turned_away = cronguard("run", "j", *HOURLY, "--", "true", env=at("2026-01-20T12:00:00Z"))
        assert turned_away.returncode == 75
        gate.touch()
        assert filling.process.wait(60) == 0
    assert noted(note) == hours(9, 12, 10)


def test_pause_and_a_lock_that_stays_end_it_with_75(at: At, tmp_path: Path) -> None:
    known(at)
    cronguard("pause", "j", env=at())
    line = ("backfill", "j", "--from", "2026-01-20", *HOURLY)
    paused = cronguard(*line, "--", "true", env=at())
    assert (paused.returncode, "left=10 stopped_at=2026-01-20T02:00Z (paused)" in paused.stdout) == (75, True)
    cronguard("resume", "j", env=at())
    with Started("run", "j", "--key", "none", "--stdin", "inherit", "--", "sh", "-c", "echo up; read _",
                 env=at(), stdin=-1) as holder:  # fmt: skip
        assert holder.line() == "up"
        held = cronguard(*line, "--wait", "1s", "--", "true", env=at())
    assert (held.returncode, "(lock_held)" in held.stdout) == (75, True)


def test_signal_ends_it_and_what_it_runs(at: At, tmp_path: Path) -> None:
    known(at)
    line = ("backfill", "j", "--from", "2026-01-20", "--", "sh", "-c", "echo up; exec sleep 60")
    with Started(*line, env=at()) as filling:
        assert filling.line() == "up"
        filling.process.terminate()
        assert filling.process.wait(30) == 143
    assert history("j", at())[0]["status"] == "aborted"


BAD: Any = [
    (("--from", "soon", *HOURLY), "--from: bad instant"),
    (("--from", "2026-01-21", *HOURLY), "--from: 2026-01-21: not before the end"),
    ((), "--from: missing"),
    (("--from", "1h", "--max", "0"), "--max"),
    (("--from", "1h", "--run-key", "x"), "--run-key: not for a backfill"),
    (("--from", "1h", "--max-late", "1h"), "--max-late: not for a backfill"),
    (("--from", "1h", "--key", "none", "--cron", "0 * * * *"), "--key: none"),
    (("--from", "1h"), "no schedule: j"),
    (("--from", "1h", "--json"), "--json: only with --dry-run"),
]


@pytest.mark.parametrize(("args", "said"), BAD)
def test_bad_line_is_one_line_and_125(at: At, args: Tuple[str, ...], said: str) -> None:
    ended = cronguard("backfill", "j", *args, "--", "true", env=at())
    lines = [line for line in ended.stderr.splitlines() if "test_mode" not in line]
    assert ended.returncode == 125
    assert len(lines) == 1
    assert said in lines[0]
