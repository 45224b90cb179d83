"""Host, user, places and clocks, with little around: no home, no directory, another owner, a test's clock."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Dict

import pytest

from cronguard.core.model import Exit
from cronguard.errors import ConfigError, CronguardError
from cronguard.system import clock, host, results
from tests.support.processes import ROOT


def test_host_name_is_the_node_name_unless_a_test_sets_it() -> None:
    assert host.host_name({"CRONGUARD_TEST_HOST": "web-2"}) == os.uname().nodename
    assert host.host_name({"CRONGUARD_TEST": "1", "CRONGUARD_TEST_HOST": "web-2"}) == "web-2"


def test_clock_of_a_test_runs_on_from_where_it_was_set() -> None:
    environ = {"CRONGUARD_TEST": "1", "CRONGUARD_TEST_NOW": "2026-03-29T01:30:00+02:00"}
    first = clock.now_utc(environ)
    time.sleep(0.01)
    assert timedelta(0) < clock.now_utc(environ) - first < timedelta(minutes=1)
    assert first.astimezone(timezone.utc).date().isoformat() == "2026-03-28"


@pytest.mark.parametrize("text", ["2026-01-20T13:00:00.5Z", "2026-01-20T14:00:00.50+01:00"])
def test_test_clock_takes_any_fraction_on_every_python(text: str) -> None:
    at = clock.now_utc({"CRONGUARD_TEST": "1", "CRONGUARD_TEST_NOW": text})
    started = datetime(2026, 1, 20, 13, 0, 0, 500_000, tzinfo=timezone.utc)
    assert timedelta(0) <= at - started < timedelta(minutes=30)


def test_clock_of_a_test_counts_only_when_announced() -> None:
    environ = {"CRONGUARD_TEST_NOW": "2001-01-01T00:00Z"}
    assert abs(clock.now_utc(environ) - datetime.now(timezone.utc)) < timedelta(minutes=1)
    assert clock.test_notice(environ) is None
    notice = clock.test_notice({**environ, "CRONGUARD_TEST": "1", "CRONGUARD_TEST_HOST": "web-2"})
    assert notice == "for a test, the time is 2001-01-01T00:00Z and the host is web-2 (CRONGUARD_TEST=1)"


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01T00:00"])
def test_clock_of_a_test_needs_an_instant(text: str) -> None:
    with pytest.raises(ConfigError, match="CRONGUARD_TEST_NOW"):
        clock.now_utc({"CRONGUARD_TEST": "1", "CRONGUARD_TEST_NOW": text})


def test_boot_clock_goes_forward() -> None:
    first = clock.boot_s()
    assert 0 < first <= clock.boot_s()


def test_state_directory_is_made_private(tmp_path: Path) -> None:
    path = host.state_dir({"CRONGUARD_STATE_DIR": str(tmp_path / "a" / "b")})
    assert path == str(tmp_path / "a" / "b")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_relative_state_directory_becomes_absolute(tmp_path: Path) -> None:
    assert host.state_dir({"CRONGUARD_STATE_DIR": "mine"}) == os.path.join(os.path.realpath("."), "mine")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_state_directory_of_another_user_is_refused_by_name(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(tmp_path, nobody.pw_uid, -1)
    with pytest.raises(ConfigError, match=r"belongs to nobody, not to root; run as nobody, or set CRONGUARD_STATE_DIR"):
        host.state_dir({"CRONGUARD_STATE_DIR": str(tmp_path)})


@pytest.mark.parametrize("path", ["/proc/none", "/dev/null", "/dev/null/below"])
def test_state_directory_that_cannot_be_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        host.state_dir({"CRONGUARD_STATE_DIR": path})


ANOTHER_USER = 54321


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "{tmp}/xdg", "HOME": "{tmp}/home"}, "{tmp}/xdg/cronguard"),
        ({"XDG_STATE_HOME": "relative", "HOME": "{tmp}/home"}, "{tmp}/home/.local/state/cronguard"),
        ({}, "state directory: neither HOME nor a password entry for user 54321 says where; set CRONGUARD_STATE_DIR"),
        ({"HOME": "/proc/none"}, "state directory: /proc/none/.local/state/cronguard: no such file or directory"),
    ],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes a user without a password entry")
def test_state_directory_of_a_user_without_much(tmp_path: Path, environ: Dict[str, str], expected: str) -> None:
    """FR-29: no home, no name."""
    place = Path("/tmp") / f"cronguard-{os.getpid()}-{tmp_path.name[-12:]}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    filled = {name: value.format(tmp=place) for name, value in environ.items()}
    script = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); from cronguard.system import host\n"
        f"os.setuid({ANOTHER_USER})\n"
        f"try: print(host.state_dir({filled!r}))\n"
        "except Exception as error: print(error)"
    )
    try:
        told = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, cwd="/")
        assert told.stdout.decode().startswith(expected.format(tmp=place))
    finally:
        subprocess.run(["rm", "-r", str(place)], check=True)


def test_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER_USER)
    assert host.user_name() == str(ANOTHER_USER)


@pytest.mark.parametrize(
    ("tz", "zone"),
    [
        ("Europe/Rome", "Europe/Rome"),
        (":Europe/Rome", "Europe/Rome"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("", "UTC"),
        ("/some/file", None),
    ],
)
def test_zone_of_the_host_comes_from_tz_first(monkeypatch: pytest.MonkeyPatch, tz: str, zone: str) -> None:
    monkeypatch.setenv("TZ", tz)
    assert host.host_zone() == zone


def test_directory_that_was_deleted_is_an_error_unless_another_is_given(tmp_path: Path) -> None:
    """FR-34."""
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="working directory: it has been deleted"):
        host.working_directory(None)
    assert host.working_directory(str(tmp_path)) == str(tmp_path.resolve())
    assert host.state_dir({"CRONGUARD_STATE_DIR": str(tmp_path)}) == str(tmp_path)


def test_directory_is_told_as_the_release_behind_the_link(tmp_path: Path) -> None:
    (tmp_path / "release-7").mkdir()
    (tmp_path / "current").symlink_to("release-7")
    assert host.working_directory(str(tmp_path / "current")) == str((tmp_path / "release-7").resolve())
    os.chdir(tmp_path)
    assert host.working_directory("current") == str((tmp_path / "release-7").resolve())
    assert host.working_directory(None) == str(tmp_path.resolve())


def test_file_system_is_told_by_its_type(tmp_path: Path) -> None:
    """FR-07."""
    assert host.file_system_kind("/proc/self") == ("proc", False)
    kind, shared = host.file_system_kind(str(tmp_path))
    assert kind != "unknown"
    assert shared is (kind.startswith("fuse") or kind in ("nfs", "nfs4", "9p", "virtiofs"))


def test_shared_file_systems_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """FR-07: the line is what the kernel writes for such a mount; a real one needs a server."""
    lines = (
        b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        b"36 21 0:45 / /mnt/my\\040share rw,relatime shared:1 - nfs4 server:/export rw\n"
        b"37 21 0:46 / /mnt/keys rw - fuse.sshfs host: rw\n"
    )
    monkeypatch.setattr(host, "_whole", lambda _: lines)
    assert host.file_system_kind("/mnt/my share/state") == ("nfs4", True)
    assert host.file_system_kind("/mnt/keys") == ("fuse.sshfs", True)
    assert host.file_system_kind("/mnt/my shares") == ("ext4", False)


def test_results_are_private_and_removed(tmp_path: Path) -> None:
    path = results.create_results(str(tmp_path), "run-1")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    results.remove_results(path)
    results.remove_results(path)
    assert not os.path.exists(path)
    with pytest.raises(CronguardError, match="results file"):
        results.create_results("/proc/none", "run-1")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"", {}),
        (b"items=1\nitems = 2 \n", {"items": "2"}),
        (b"\xff\xfe=\n=\nmessage=a=b\0c", {"message": "a=bc"}),
        (b"errors=1\n" + b"x" * (1 << 17) + b"\nitems=3", {"items": "3"}),
        (b"errors=2\r\n", {"errors": "2"}),
    ],
)
def test_results_are_read_whatever_is_in_the_file(tmp_path: Path, written: bytes, read: Dict[str, str]) -> None:
    path = tmp_path / "results"
    path.write_bytes(written)
    assert results.read_results(str(path)) == read


def test_results_file_that_became_something_else_is_passed_over(tmp_path: Path) -> None:
    """Neither a pipe that nobody writes to nor a link to somebody's file is read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real").write_text("items=1\n")
    (tmp_path / "link").symlink_to("real")
    for name in ("pipe", "link", "absent", "."):
        assert results.read_results(str(tmp_path / name)) == {}
    assert results.read_results(None) == {}


def test_facts_of_an_attempt_name_how_it_ended_only_once() -> None:
    assert Exit._fields[:4] == ("exit_code", "signal", "start_error", "start_code")
