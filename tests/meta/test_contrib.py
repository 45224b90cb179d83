"""What people copy from contrib/ must be right: they will not read it again until it fails."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path
from typing import List

import pytest

from cronguard.core.settings import SETTINGS

CONTRIB = Path(__file__).resolve().parents[2] / "contrib"
CRONTAB = (CONTRIB / "crontab.example").read_text()
FIELDS = 5


def crontab_lines() -> List[str]:
    return [line for line in CRONTAB.splitlines() if line and not line.startswith("#")]


def job_lines() -> List[str]:
    return [line for line in crontab_lines() if not re.match(r"[A-Z_]+=", line)]


def unit(name: str) -> RawConfigParser:
    parser = RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((CONTRIB / "timers" / name).read_text())
    return parser


def test_crontab_ends_with_a_newline_and_sets_mail_and_path_before_the_first_job() -> None:
    lines = crontab_lines()
    first_job = lines.index(job_lines()[0])
    assert CRONTAB.endswith("\n")
    assert {"MAILTO", "PATH"} <= {line.split("=")[0] for line in lines[:first_job]}
    assert "$" not in next(line for line in lines if line.startswith("PATH="))


@pytest.mark.parametrize("line", job_lines())
def test_crontab_job_is_one_that_cronguard_understands(line: str) -> None:
    """Known options, a `--` before the command, the schedule said twice said alike, no bare percent sign."""
    assert not re.search(r"(?<!\\)%", line)
    schedule, command = " ".join(line.split()[:FIELDS]), line.split(None, FIELDS)[FIELDS]
    words = shlex.split(command.replace("\\%", "%"))
    assert words[:2] == ["cronguard", "run"]
    options = words[3 : words.index("--")] if "--" in words else words[3:]
    known = {setting.option for setting in SETTINGS}
    assert {option for option in options if option.startswith("--")} <= known
    if "--cron" in options:
        assert options[options.index("--cron") + 1] == schedule


def test_service_stops_after_the_grace_and_takes_a_skip_for_a_success() -> None:
    service = unit("cronguard@.service")["Service"]
    assert service["SuccessExitStatus"] == "75"
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) > 10 + 12 + 10  # grace, pings, record
    assert "--store file:%d/store" in service["ExecStart"]
    assert service["LoadCredential"].startswith("store:/")


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """`systemd-analyze verify`, with the interpreter under test in place of an installation in /opt."""
    if shutil.which("systemd-analyze") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI installs systemd: systemd-analyze must be there")
        pytest.skip("systemd-analyze is not installed")
    for name in ("cronguard@.service", "cronguard@.timer"):
        text = (CONTRIB / "timers" / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/cronguard/bin/cronguard", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "cronguard@.service", "cronguard@.timer"],
        cwd=str(tmp_path), env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}, timeout=60, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
