"""What systemd itself makes of the units that wrap prints: by `systemd-analyze verify` and by a manager's test run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from cronguard.core.crons import CRONS
from cronguard.core.crontab import parse_crontab
from cronguard.core.guard_plans import Wishes
from cronguard.core.units import calendars, units_of
from cronguard.system.unit_files import drop_ins_of
from tests.support.crontabs import SAMPLES

pytestmark = pytest.mark.usual  # systemd's doing, not Python's

MANAGER = "/lib/systemd/systemd"
COMMANDS = (
    "x \"it's\" 'a \"b\"' $HOME ${A:-b} `c` $(d) \\\\ \\e %%f",
    "cd / && x | y > z 2>&1; exit 3 # 100\\%",
    "x ~ * ? [a] {b,c} !d ; & wait",
)
CRONS_OF_ALL_KINDS = (
    "*/15 2-4 1,15 * 5", "0 9 1-7 * 1", "0-59/7 8-18/2 1-10,20-30/5 */3 1-5", "0 0 29 2 *", "@hourly", "@yearly",
    "1,2,4,5,6,58 */5 * 2,11 0,6", "59 23 31 12 7",
)  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    """Readable for the user that a test run is made as."""
    path = Path(tempfile.mkdtemp(prefix="cronguard-units-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def write_units(folder: Path, data: bytes, flavour: str, program: str) -> List[str]:
    units = units_of(data, flavour, Wishes(program, CRONS["debian"], host_zone="UTC"), "root").units
    for unit in units:
        (folder / unit.name).write_text(unit.text)
    return [unit.name for unit in units]


def last_word(line: str) -> str:
    """Of a line quoted as for a shell, by one."""
    words = ["sh", "-c", f"printf '%s\\0' {line}"]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return shown.stdout.split("\0")[-2]


def test_systemd_finds_nothing_wrong_with_the_units_of_real_crontabs(folder: Path) -> None:
    jobs = b"".join(
        b"* * * * * %s\n" % line.job.written
        for sample in SAMPLES
        if sample.flavour == "user"
        for line in parse_crontab(sample.data, "user").lines
        if line.job is not None and len(line.raw) < 500
    )
    names = write_units(folder, jobs, "user", "/bin/true")
    assert len(names) > 100
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in names)],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_drop_in_for_a_package_s_unit_belongs_into_etc() -> None:
    assert drop_ins_of("/lib/systemd/system/a.service") == "/etc/systemd/system/a.service.d"
    assert drop_ins_of("/srv/a.service") == "/srv/a.service.d"
    assert drop_ins_of("a.service") == "a.service.d"


def test_systemd_reads_every_calendar() -> None:
    expressions = [calendar for cron in CRONS_OF_ALL_KINDS for calendar in calendars(cron)]
    done = subprocess.run(
        ["systemd-analyze", "calendar", *expressions], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Normalized form:") + done.stdout.count("Original form:") >= len(expressions)


def test_systemd_hands_on_the_very_command_and_settings(folder: Path) -> None:
    """Specifiers and quotes are resolved in what a test run shows; `$$` is only when the command is started."""
    data = "X=a  \"b\" 'c' 50% $d \\e\n" + "".join(f"0 {at} * * * {text}\n" for at, text in enumerate(COMMANDS))
    names = write_units(folder, data.encode(), "user", "/bin/true")
    services = sorted(name for name in names if name.endswith(".service"))
    (folder / "default.target").write_text(f"[Unit]\nDescription=x\nWants={' '.join(services)}\n")
    words = [MANAGER, "--test", "--user"]
    if os.geteuid() == 0:
        words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *words]
    environment: Dict[str, str] = {name: str(folder) for name in ("SYSTEMD_UNIT_PATH", "XDG_RUNTIME_DIR", "HOME")}
    environment["PATH"] = os.environ["PATH"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    lines = re.findall(r"Command Line: (/bin/true run .*)", done.stdout)
    found = sorted(last_word(line).replace("$$", "$") for line in lines)
    jobs = [line.job for line in parse_crontab(data.encode(), "user").lines if line.job is not None]
    assert found == sorted(job.command.decode() for job in jobs), done.stderr
    assert "Environment: X=a  \"b\" 'c' 50% $d \\e\n" in done.stdout
