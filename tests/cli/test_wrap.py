"""`cronguard wrap` as people call it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import List, Tuple

import pytest

from cronguard.commands.wrap import WrapRequest, wrapped
from cronguard.core.model import Invocation
from cronguard.system import crontabs
from tests.support.cronguard import command, environment

PROGRAM = "/opt/cronguard/bin/cronguard"
LINE = b"30 2 * * * /srv/bin/export\n"
GUARDED = f'30 2 * * * {PROGRAM} run export --cron "30 2 * * *" --shell -- \'/srv/bin/export\'\n'.encode()


@pytest.fixture
def tab(tmp_path: Path) -> Path:
    file = tmp_path / "tab"
    file.write_bytes(LINE)
    return file


def wrap(*args: object, given: bytes = b"") -> Tuple[int, bytes, str]:
    done = subprocess.run(
        command("wrap", "--cron", "debian", "--cronguard", PROGRAM, *map(str, args)),
        input=given, env=environment(), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.decode()


def test_crontab_from_stdin_comes_out_guarded() -> None:
    code, out, err = wrap("-", given=LINE)
    assert (code, out) == (0, GUARDED)
    assert "1 guarded, 0 had a guard, 0 left; without --timeout a run may take 24h" in err


def test_bytes_go_through_whatever_the_encoding_is() -> None:
    comment = b"# gr\xf6\xdfe \x1b[31m\n"
    assert wrap("-", given=comment)[:2] == (0, comment)


def test_lines_that_are_left_are_named(tab: Path) -> None:
    tab.write_bytes(b"@reboot a\n61 0 0 0 0 0\n* * * * * b \x07 &")
    code, out, err = wrap(tab)
    assert (code, out) == (0, tab.read_bytes() + b"\n")
    assert f"cronguard: {tab}:1: left as it is: @reboot" in err
    assert f"cronguard: {tab}:2: not understood" in err
    assert f"cronguard: {tab}:3: left as it is" in err
    assert "0 guarded, 0 had a guard, 2 left\n" in err


def test_diff_shows_what_would_change_and_changes_nothing(tab: Path) -> None:
    tab.write_bytes(LINE + b"# end\r\n# no newline")
    code, out, _ = wrap(tab, "--diff")
    assert code == 0
    assert out.splitlines(keepends=True)[3:] == [
        b"-" + LINE, b"+" + GUARDED, b" # end\r\n", b"-# no newline\n", b"\\ No newline at end of file\n",
        b"+# no newline\n",
    ]  # fmt: skip
    assert tab.read_bytes() == LINE + b"# end\r\n# no newline"
    assert wrap("-", "--diff", given=GUARDED)[:2] == (0, b"")


def test_write_saves_with_a_backup_and_unwrap_gives_it_back(tab: Path) -> None:
    """FR-31."""
    code, out, err = wrap(tab, "--write", "--timeout", "2h", "--timezone", "Europe/Rome")
    assert (code, out) == (0, b"")
    assert b" --timezone Europe/Rome --timeout 2h --shell -- " in tab.read_bytes()
    [backup] = tab.parent.glob("tab.bak-*")
    assert str(backup) in err
    assert "24h" not in err
    assert backup.read_bytes() == LINE
    assert "nothing to change" in wrap(tab, "--write")[2]
    assert wrap(tab, "--unwrap")[:2] == (0, LINE)
    assert wrap(tab, "--unwrap", "--write")[0] == 0
    assert tab.read_bytes() == LINE


def test_user_column_is_told_or_seen(tab: Path) -> None:
    tab.write_bytes(b"* * * * * app x\n")
    assert b"* * * * * app /opt" in wrap(tab, "--user-field")[1]
    assert b"* * * * * /opt" in wrap(tab)[1]
    tab.write_bytes(b"* * * * * root x\n")
    _, out, err = wrap(tab)
    assert b"* * * * * root /opt" in out
    assert "user's name" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--diff", "--write"], "only one of them"),
        (["--systemd", "--unwrap"], "only one of them"),
        (["--timezone", "Europe/Room"], "Europe/Rome"),
        (["--timeout", "soon"], "not a duration"),
        (["--cron", "dcron"], "--cron"),
        (["--cronguard", "cronguard"], "not an absolute path"),
        (["--cronguard", "/a b/cronguard"], "quotes"),
    ],
)
def test_mistakes_are_usage_errors(tab: Path, args: List[str], said: str) -> None:
    code, out, err = wrap(tab, *args)
    assert (code, out) == (2, b"")
    assert said in err
    assert tab.read_bytes() == LINE


def test_stdin_cannot_be_written_and_a_missing_file_not_read(tmp_path: Path) -> None:
    assert wrap("-", "--write", given=LINE)[0] == 2
    assert "no such file" in wrap(tmp_path / "none")[2]


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crontab(1) that keeps its text in a file; the real one is asked in tests/run/test_cron_daemon.py."""
    spool = tmp_path / "spool"
    program = tmp_path / "bin" / "crontab"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
case $1 in
-l) [ -e {spool} ] || {{ echo "no crontab for me" >&2; exit 1; }}; cat {spool} ;;
-) cat > {spool}.new; if grep -q refuse {spool}.new; then echo "errors in crontab file" >&2; exit 1; fi
   mv {spool}.new {spool} ;;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return spool


def test_own_crontab_is_read_and_installed_by_crontab(crontab: Path, tmp_path: Path) -> None:
    crontab.write_bytes(LINE)
    assert wrap()[:2] == (0, GUARDED)
    assert crontab.read_bytes() == LINE
    code, out, err = wrap("--write")
    assert (code, out, crontab.read_bytes()) == (0, b"", GUARDED)
    [backup] = (tmp_path / "home").glob("crontab.bak-*")
    assert backup.read_bytes() == LINE
    assert str(backup) in err


def test_crontab_without_text_and_crontab_that_refuses_are_told(crontab: Path) -> None:
    assert "no crontab for me" in wrap()[2]
    crontab.write_bytes(b"* * * * * refuse\n")
    code, _, err = wrap("--write")
    assert code == 2
    assert "errors in crontab file" in err
    assert crontab.read_bytes() == b"* * * * * refuse\n"


def test_names_of_other_crontabs_are_avoided(tab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two jobs would share lock and slots, and one of them would not run."""
    folder = tmp_path / "cron.d"
    folder.mkdir()
    monkeypatch.setattr(crontabs, "DROP_INS", str(folder))
    request = WrapRequest(str(tab), program=PROGRAM, cron="debian")
    invocation = Invocation(None, None, None, False, environment())
    (folder / "same").write_bytes(GUARDED.replace(b"* * * ", b"* * * root ", 1))
    assert b" run export " in wrapped(request, invocation).wrapped.data
    (folder / "other").write_bytes(GUARDED.replace(b"30 2 * * * ", b"30 2 * * * root ").replace(b"/srv", b"/other"))
    assert b" run export-0230 " in wrapped(request, invocation).wrapped.data


def test_systemd_prints_units_with_their_names(tab: Path) -> None:
    code, out, err = wrap(tab, "--systemd")
    assert code == 0
    assert [line for line in out.decode().splitlines() if line.startswith("# cronguard-")] == [
        "# cronguard-export.service",
        "# cronguard-export.timer",
    ]
    assert b"OnCalendar=*-*-* 2:30:00\n" in out
    assert "1 with a service and a timer" in err


def test_service_file_gives_a_drop_in_once(tmp_path: Path) -> None:
    service = tmp_path / "export.service"
    service.write_text("[Service]\nType=oneshot\nExecStart=-/srv/bin/export --to %H\n")
    code, out, _ = wrap(service, "--systemd", "--timeout", "1h")
    assert code == 0
    assert f"ExecStart=\nExecStart=-{PROGRAM} run export --timeout 1h -- /srv/bin/export --to %H\n" in out.decode()
    (tmp_path / "export.service.d").mkdir()
    (tmp_path / "export.service.d" / "cronguard.conf").write_bytes(out)
    code, out, err = wrap(service, "--systemd")
    assert (code, out) == (0, b"")
    assert "guarded already" in err
    service.write_text("[Service]\nType=forking\nExecStart=/x\n")
    assert wrap(service, "--systemd")[:2] == (2, b"")
