"""`status`, `history`, `show` and `next` over rows that real runs have left."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any, Dict, List

import pytest

from cronguard.cli.main import execute
from tests.support.cronguard import command, cronguard, environment

CONFIG = """
[defaults]
timezone = "Europe/Rome"
[jobs.nightly]
cron = "30 2 * * *"
command = ["true"]
[jobs.planned]
every = "5m"
"""


@pytest.fixture
def three_runs() -> None:
    """`good` succeeded with a loud tail, `bad` failed twice in a row."""
    scheduled = ("--every", "12h", "--timezone", "UTC", "--timeout", "5m")
    assert cronguard("run", "good", *scheduled, "--", *LOUD).returncode == 0
    for _ in range(2):
        assert cronguard("run", "bad", "--timeout", "5m", "--", "sh", "-c", "exit 3").returncode == 3


LOUD = ("sh", "-c", "printf 'caf\\303\\251 \\033[31mred\\007\\tend\\r\\nlast line\\n'", "\x1b[2J", "--token", "s3cret")


def looked(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    capfd.readouterr()
    assert execute(list(words)) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


def as_json(capfd: pytest.CaptureFixture[str], *words: str) -> Dict[str, Any]:
    document: Dict[str, Any] = json.loads(looked(capfd, *words, "--json"))
    assert document["version"] == 1
    return document


@pytest.mark.usefixtures("three_runs")
def test_status_is_a_line_a_job(capfd: pytest.CaptureFixture[str]) -> None:
    lines = looked(capfd, "status").splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["bad", "failed"], ["good", "ok"]]
    assert "2 failed" in lines[1]
    assert lines[1].endswith("ff")
    assert looked(capfd, "status", "good").splitlines()[1].startswith("good")


@pytest.mark.usefixtures("three_runs")
def test_status_as_json_has_summaries_and_next_due(capfd: pytest.CaptureFixture[str]) -> None:
    bad, good = as_json(capfd, "status")["jobs"]
    assert (bad["state"], bad["failures_in_row"], bad["next_due"], bad["last_success"]) == ("failed", 2, None, None)
    assert bad["last_run"]["exit_code"] == 3
    assert (good["state"], good["schedule"], good["zone"]) == ("ok", {"every": "12h"}, "UTC")
    assert good["next_due"].endswith(("T00:00:00.000Z", "T12:00:00.000Z"))
    assert good["last_run"]["status"] == "success"
    assert good["running"] is None


def test_status_of_nothing_is_empty(capfd: pytest.CaptureFixture[str]) -> None:
    assert as_json(capfd, "status")["jobs"] == []
    assert len(looked(capfd, "status").splitlines()) == 1


def test_job_that_only_the_file_knows_never_ran(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A job that nobody starts is what somebody looks for."""
    file = config_file(tmp_path)
    jobs = as_json(capfd, "status", "--config", file)["jobs"]
    assert [(job["job"], job["state"]) for job in jobs] == [("nightly", "never_ran"), ("planned", "never_ran")]
    assert all(job["next_due"] for job in jobs)
    assert "never_ran" in looked(capfd, "status", "nightly", "--config", file)


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize("words", [("status", "goood"), ("history", "goood"), ("next", "goood")])
def test_unknown_job_is_1_with_a_suggestion(words: List[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(list(words)) == 1
    assert "did you mean good?" in capfd.readouterr().err


@pytest.mark.usefixtures("three_runs")
def test_history_is_newest_first_and_filtered(capfd: pytest.CaptureFixture[str]) -> None:
    runs = as_json(capfd, "history", "bad")["runs"]
    assert [run["exit_code"] for run in runs] == [3, 3]
    assert runs[0]["started_at"] > runs[1]["started_at"]
    assert "tail" not in runs[0]
    assert as_json(capfd, "history", "bad", "--limit", "1")["runs"] == runs[:1]
    assert as_json(capfd, "history", "bad", "--status", "success")["runs"] == []
    assert len(as_json(capfd, "history", "bad", "--status", "failed", "--since", "1h")["runs"]) == 2
    assert as_json(capfd, "history", "bad", "--since", "0")["runs"] == []
    assert len(looked(capfd, "history", "bad").splitlines()) == 3


@pytest.mark.usefixtures("three_runs")
def test_show_takes_a_unique_beginning_and_has_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    (run,) = as_json(capfd, "history", "good")["runs"]
    shown = as_json(capfd, "show", run["run_id"][:-4])["run"]
    assert shown["tail"] == "café \x1b[31mred\x07\tend\r\nlast line\n"
    assert shown["argv"][-1] == "***"
    text = looked(capfd, "show", run["run_id"])
    assert text.endswith("end of the output:\ncafé \\x1b[31mred\\x07    end\\r\nlast line\n")
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
    assert "s3cret" not in text


@pytest.mark.usefixtures("three_runs")
def test_ambiguous_and_unknown_runs_are_1(capfd: pytest.CaptureFixture[str]) -> None:
    ids = [run["run_id"] for run in as_json(capfd, "history", "bad")["runs"]]
    common = next(ids[0][:length] for length in range(len(ids[0]), -1, -1) if ids[1].startswith(ids[0][:length]))
    assert execute(["show", common]) == 1
    err = capfd.readouterr().err
    assert all(each in err for each in ids)
    for prefix in ("ffff", "", "%", "_", "x' OR 1=1", "\udcff"):
        assert execute(["show", prefix]) == 1
    assert capfd.readouterr().err.count("\n") == 6


def test_store_that_is_down_is_125_and_one_line(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "not.db"
    file.write_bytes(b"this is no database, " * 100)
    for words in (["status"], ["history", "x"], ["show", "x"]):
        assert execute([*words, "--store", f"sqlite:{file}"]) == 125
        err = capfd.readouterr().err
        assert err.count("\n") == 1
        assert "not.db" in err


@pytest.mark.usefixtures("three_runs")
def test_reader_that_goes_away_and_a_full_disk_are_told_apart() -> None:
    line = " ".join(command("history", "bad"))
    gone = subprocess.run(
        ["/bin/bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}"],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (gone.stdout.strip() in ("0", "141"), gone.stderr) == (True, "")
    with open("/dev/full", "w") as full:
        line_of = command("history", "bad")
        done = subprocess.run(line_of, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"cronguard: cannot write: stdout: no space left on device\n"


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize(("changes", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_table_is_coloured_on_a_terminal_unless_told_not_to(changes: Dict[str, str], coloured: bool) -> None:
    master, slave = pty.openpty()
    env = environment(**{"TERM": "xterm-256color", "COLUMNS": "200", **changes})
    done = subprocess.run(command("status"), env=env, stdout=slave, stdin=subprocess.DEVNULL, check=False)
    os.close(slave)
    out = b""
    try:
        while True:
            out += os.read(master, 65536)
    except OSError:  # EIO: all of it was read
        os.close(master)
    assert done.returncode == 0
    assert b"good" in out
    assert (b"\x1b[32m" in out) == coloured


def test_next_marks_the_gap(capfd: pytest.CaptureFixture[str]) -> None:
    words = ("next", "--cron", "30 2 * * *", "--timezone", "Europe/Rome", "--from", "2026-03-28", "--count", "2")
    assert as_json(capfd, *words)["slots"][1] == {
        "key": "2026-03-29T02:30", "local": "2026-03-29T03:00+02:00", "utc": "2026-03-29T01:00Z", "note": "gap",
    }  # fmt: skip
    assert looked(capfd, *words).splitlines()[3].split()[-1] == "gap"


def test_next_takes_zone_and_schedule_of_a_job_from_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = config_file(tmp_path)
    words = ("next", "nightly", "--config", file, "--from", "2026-01-20T00:00Z", "--count", "1")
    assert as_json(capfd, *words)["slots"] == [
        {"key": "2026-01-20T02:30", "local": "2026-01-20T02:30+01:00", "utc": "2026-01-20T01:30Z", "note": None,
         "job": "nightly"}
    ]  # fmt: skip
    assert {slot["job"] for slot in as_json(capfd, "next", "--config", file)["slots"]} == {"nightly", "planned"}


@pytest.mark.usefixtures("three_runs")
def test_next_knows_the_schedule_that_a_job_last_ran_with(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(as_json(capfd, "next", "good", "--count", "3")["slots"]) == 3
    assert execute(["next", "bad"]) == 1


def config_file(folder: Path) -> str:
    file = folder / "config.toml"
    file.write_text(CONFIG)
    return str(file)


def test_bytes_that_are_no_text_are_escaped_in_json_and_text(capfd: pytest.CaptureFixture[str]) -> None:
    """FR-38: half surrogates are no JSON."""
    assert cronguard("run", "odd", "--timeout", "5m", "--", "true", "\udcff").returncode == 0
    (run,) = as_json(capfd, "history", "odd")["runs"]
    assert run["argv"] == ["true", "\\udcff"]
    assert "true '\\udcff'" in looked(capfd, "show", run["run_id"])
