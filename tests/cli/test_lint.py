"""`lint` as people and CI call it: files, stdin, exit codes, JSON, and nothing that steers a terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cronguard.cli.main import execute
from tests.support.cronguard import cronguard
from tests.support.crontabs import SAMPLES

CLEAN = b"@reboot true\n"
INFO = b"0 12 * * * true\n"
WARNING = b"0 12 * * * cat /dev/null || true\n"
ERROR = b"0 12 31 2 * true\n"


def lint(tmp_path: Path, data: bytes, *options: str) -> int:
    file = tmp_path / "crontab.txt"
    file.write_bytes(data)
    return execute(["lint", str(file), *options])


@pytest.mark.parametrize(
    ("data", "plain", "strict"), [(CLEAN, 0, 0), (b"", 0, 0), (INFO, 0, 1), (WARNING, 1, 1), (ERROR, 1, 1)]
)
def test_exit_code_tells_ci(
    tmp_path: Path, data: bytes, plain: int, strict: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lint(tmp_path, data) == plain
    assert lint(tmp_path, data, "--strict") == strict
    assert capfd.readouterr().err == ""


def test_finding_is_a_line_with_its_place_and_the_summary_counts_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lint(tmp_path, WARNING, "--timezone", "UTC") == 1
    out = capfd.readouterr().out
    assert f"{tmp_path}/crontab.txt:1:29 warning masked-exit a failure becomes a success here: || true; " in out
    header, row, by = out.splitlines()[-3:]
    assert header.split() == ["FILE", "JOBS", "ERRORS", "WARNINGS", "INFOS"]
    assert row.split()[1:] == ["1", "0", "1", "1"]
    assert by.endswith("times in UTC")


@pytest.mark.parametrize(
    ("cron", "severity", "what"),
    [("busybox", "warning", ("skipped", "doubled")), ("debian", "info", ("moved", "once"))],
)
def test_clock_changes_are_in_the_json_with_their_dates(
    tmp_path: Path,
    cron: str,
    severity: str,
    what: Any,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FR-86."""
    monkeypatch.setenv("CRONGUARD_TEST", "1")
    monkeypatch.setenv("CRONGUARD_TEST_NOW", "2026-12-01T00:00:00Z")
    lint(tmp_path, b"30 2 * * * true\n", "--timezone", "Europe/Rome", "--cron", cron, "--json")
    document = json.loads(capfd.readouterr().out)
    assert set(document) == {"version", "cron", "zone", "findings", "files"}
    assert (document["version"], document["zone"]) == (1, "Europe/Rome")
    assert document["cron"] == {"kind": cron, "why": "asked for"}
    (finding,) = [each for each in document["findings"] if each["dates"]]
    assert set(finding) == {"file", "line", "column", "rule", "severity", "message", "fix", "dates"}
    assert finding["severity"] == severity
    dates = {each["local"]: each["what"] for each in finding["dates"]}
    assert (dates["2027-03-28T02:30"], dates["2027-10-31T02:30"]) == what
    assert document["files"][0]["jobs"] == 1


def test_reads_stdin_and_guesses_the_flavour() -> None:
    done = cronguard("lint", "-", "--json", input="0 12 * * * root true\n0 13 * * * root true\n")
    assert json.loads(done.stdout)["files"][0]["flavour"] == "system"
    assert json.loads(done.stdout)["files"][0]["file"] == "stdin"


@pytest.mark.parametrize("file", ["missing", "folder", "fifo", "nul\0"])
def test_file_that_cannot_be_read_is_two(tmp_path: Path, file: str, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    assert execute(["lint", str(tmp_path / file)]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "cannot read" in err


@pytest.mark.parametrize("options", [("--cron", "debain"), ("--timezone", "Europe/Roma")])
def test_bad_option_is_two(tmp_path: Path, options: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert lint(tmp_path, CLEAN, *options) == 2
    assert "did you mean" in capfd.readouterr().err


def test_system_flavour_comes_from_the_place(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "cron.d"
    folder.mkdir()
    (folder / "job.conf").write_bytes(b"0 12 * * * nobody-we-know true\n")
    assert execute(["lint", str(folder / "job.conf"), "--cron", "debian"]) == 1
    out = capfd.readouterr().out
    assert "unknown-user no such user here: nobody-we-know" in out
    assert "ignored-file" in out


def test_without_files_the_hosts_crontabs_are_read(capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever there is on this host: it must not fail, and must not be silent."""
    assert execute(["lint"]) in (0, 1)
    out, err = capfd.readouterr()
    assert "no crontab here" in err or "times in" in out


def test_nothing_steers_the_terminal_and_no_secret_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    odd = b"".join(sample.data for sample in SAMPLES if sample.name in ("escape-sequences", "latin-1", "secrets"))
    odd += b"\x1b[2J\n0 1 * * * \x1b[31m/no/x > /no/\a\x1b]0;x\n"
    for options in ((), ("--json",)):
        assert lint(tmp_path, odd, *options) == 1
        out = capfd.readouterr().out
        assert "secret-on-line" in out
        assert all(letter.isprintable() or letter == "\n" for letter in out)
        assert not any(secret in out for secret in ("hunter2", "S3cr3t", "passw0rd", "0123456789abcdef"))


def test_all_samples_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for sample in SAMPLES:
        folder = tmp_path / ("cron.d" if sample.flavour == "system" else "own")
        folder.mkdir(exist_ok=True)
        (folder / sample.name).write_bytes(sample.data)
    assert execute(["lint", *map(str, sorted(tmp_path.glob("*/*")))]) == 1
    out, err = capfd.readouterr()
    assert err == ""
    assert out.splitlines()[-2].startswith("all ")
