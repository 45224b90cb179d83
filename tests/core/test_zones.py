"""Zone names: which are taken, which are refused, and what is said (FR-94, FR-97, FR-98)."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import List

import pytest
import tzdata

from cronguard.core.model import ScheduleText
from cronguard.core.schedule import parse_schedule
from cronguard.core.wallclock import _CELL
from cronguard.core.zones import is_utc, load_zone, tzdata_version
from cronguard.errors import ScheduleError

ROOT = Path(__file__).parents[2]
# Runs with tzdata made impossible to import, as if it were not installed.
WITHOUT_TZDATA = "import sys; sys.modules['tzdata'] = None\n"


def python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", code], env={**kept, "PYTHONPATH": str(ROOT), **environ},
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "hours"),
    [("Europe/Rome", 1), ("CET", 1), ("Etc/GMT-5", 5), ("EST5EDT", -5), ("GMT", 0), ("America/Indiana/Knox", -6)],
)
def test_name_of_the_database_is_a_zone(name: str, hours: int) -> None:
    assert datetime(2026, 1, 20, tzinfo=load_zone(name)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize("name", ["UTC", "Etc/UTC", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT", "Universal", "Etc/Universal"])
def test_aliases_of_utc_are_utc(name: str) -> None:
    assert is_utc(name)
    assert load_zone(name) is timezone.utc


@pytest.mark.parametrize("name", ["GMT", "Etc/GMT", "Africa/Abidjan", "utc", "Z", ""])
def test_other_names_are_not_utc(name: str) -> None:
    assert not is_utc(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Roma", "did you mean Europe/Rome?"),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ('"Europe/Berlin"', "did you mean Europe/Berlin?"),
        ("'Europe/Berlin'", "did you mean Europe/Berlin?"),
        ("America/New York", "did you mean America/New_York?"),
        (" Europe/Rome", "did you mean Europe/Rome?"),
        ("Europe/Rome\n", "did you mean Europe/Rome?"),
        (":Europe/Berlin", "did you mean Europe/Berlin?"),
        ("Z", "did you mean UTC?"),
        ("utc", "did you mean UTC?"),
        ("Europe/Rome/", "did you mean Europe/Rome?"),
        ("Europe//Rome", "did you mean Europe/Rome?"),
        ("./Europe/Rome", "did you mean Europe/Rome?"),
        ("posix/Europe/Rome", "did you mean Europe/Rome?"),
        ("right/Europe/Rome", "did you mean Europe/Rome?"),
        ("", "such as Europe/Rome"),
        (" ", "such as Europe/Rome"),
        ("Mars/Olympus", "such as Europe/Rome"),
        (":/etc/localtime", ""),
        ("../../etc/passwd", "such as Europe/Rome"),
        ("/usr/share/zoneinfo/Europe/Rome", ""),
        ("CET-1CEST,M3.5.0,M10.5.0/3", ""),
        ("+01:00", ""),
        ("Europe", ""),
        ("America/Indiana", ""),
        ("zone.tab", ""),
        ("leapseconds", ""),
        ("SECURITY", ""),
        ("localtime", ""),
        ("posixrules", ""),
        ("Factory", ""),
        ("Europe/Rom\u0435", ""),
        ("Europe/Rome\0", "did you mean Europe/Rome?"),
        ("\udcff", ""),
        ("x" * 5000, ""),
    ],
)
def test_anything_else_is_refused_by_name_never_taken_for_utc(name: str, hint: str) -> None:
    """FR-98."""
    with pytest.raises(ScheduleError) as caught:
        load_zone(name)
    assert caught.value.message == f"--timezone: unknown time zone: {name!r}"
    assert hint in caught.value.hint


def test_version_is_that_of_the_data_in_use(tmp_path: Path) -> None:
    tell = "from cronguard.core.zones import tzdata_version as tell; print(tell())"
    (tmp_path / "Europe").mkdir()
    assert python(tell, PYTHONTZPATH=str(tmp_path)).stdout == "unknown\n"
    (tmp_path / "tzdata.zi").write_text("# version 2031x\n")
    assert python(tell, PYTHONTZPATH=str(tmp_path)).stdout == "2031x\n"
    packaged = python("import tzdata; print(tzdata.IANA_VERSION)").stdout
    assert python(tell, PYTHONTZPATH="").stdout == packaged != ""
    assert python(WITHOUT_TZDATA + tell, PYTHONTZPATH="").stdout == "none\n"
    assert tzdata_version() not in ("", "none")


def test_zone_comes_from_the_package_where_the_system_has_no_database() -> None:
    """FR-94."""
    done = python("from cronguard.core.zones import load_zone; print(load_zone('Europe/Berlin'))", PYTHONTZPATH="")
    assert (done.stdout, done.stderr) == ("Europe/Berlin\n", "")


def test_missing_database_is_a_clear_error_but_utc_needs_none() -> None:
    """FR-94."""
    code = (
        "from cronguard.core.zones import load_zone\nfrom cronguard.errors import ScheduleError\n"
        "print(load_zone('UTC'))\n"
        "try:\n    load_zone('Europe/Berlin')\nexcept ScheduleError as error:\n    print(error)"
    )
    done = python(WITHOUT_TZDATA + code, PYTHONTZPATH="")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "UTC",
        "--timezone: no time zone database: 'Europe/Berlin': neither the system nor Python has one; "
        "install the package tzdata, the system's or Python's",
    ]


@pytest.mark.parametrize("host_zone", ["Asia/Tokyo", "America/New_York", ":nonsense"])
def test_zone_of_the_host_has_no_say(host_zone: str) -> None:
    """FR-97."""
    code = (
        "from datetime import datetime, timezone\n"
        "from cronguard.core.model import ScheduleText\nfrom cronguard.core.schedule import parse_schedule\n"
        "at = datetime(2026, 1, 20, 12, tzinfo=timezone.utc)\n"
        "print(parse_schedule(ScheduleText('cron', '0 2 * * *'), 'America/New_York').latest(at))"
    )
    assert python(code, TZ=host_zone).stdout == python(code).stdout != ""


def offset_changes(tzif: bytes) -> List[int]:
    """Epoch seconds at which the UTC offset changes, from the second block of a TZif file (RFC 8536)."""
    at = 44 + sum(count * size for count, size in zip(struct.unpack(">6l", tzif[20:44]), (1, 1, 8, 5, 6, 1)))
    times, kinds = struct.unpack(">2l", tzif[at + 32 : at + 40])
    at += 44
    instants = struct.unpack(f">{times}q", tzif[at : at + 8 * times])
    indices = tzif[at + 8 * times : at + 9 * times]
    at += 9 * times
    offsets = [struct.unpack(">l", tzif[at + 6 * kind : at + 6 * kind + 4])[0] for kind in range(kinds)]
    pairs = zip(instants[1:], indices, indices[1:])
    return [instant for instant, before, after in pairs if offsets[before] != offsets[after]]


def test_no_zone_changes_its_offset_twice_within_one_cell_of_the_search() -> None:
    """What `wallclock` relies on, for every zone and all times that there are data of."""
    data = Path(tzdata.__file__).parent
    for name in (data / "zones").read_text().split():
        changes = offset_changes((data / "zoneinfo" / name).read_bytes())
        assert all(later - earlier > _CELL.total_seconds() for earlier, later in zip(changes, changes[1:])), name


def test_schedule_in_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone: 'Europe/Roma'"):
        parse_schedule(ScheduleText("cron", "0 2 * * *"), "Europe/Roma")
