"""Debian's cron itself runs wrapped lines, and the same lines unwrapped beside them.

In a mount namespace of its own, so that no crontab of the machine is read or written: a spool, a cron.d and a /run that
are gone afterwards. libfaketime puts cron shortly before a full minute; jobs do not see it, for cron gives them an
environment of its own. Without that library the full minute is waited for.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

from tests.run.test_wrapped_lines import GUARD
from tests.support.cronguard import history
from tests.support.probe import make_probe

pytestmark = pytest.mark.usual  # cron's doing, not Python's

FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
SHORTLY_BEFORE = "@2026-01-20 01:59:57"
COMMANDS = (
    rb"""probe "it's" 'a "b"' \\ "$X" $(date +\%s | tr -d '0-9')x > $OUT-0""",
    rb"""probe > $OUT-1%first \% line%%third $X ' " \\""",
    rb"""( cd / && probe a | cat ) > $OUT-2 2>&1; false # a comment""",
    rb"""probe "\%d" > $OUT-3%""",
    rb"""probe \\\\\% '\\' a\b > $OUT-4""",
)
IN_BASH = rb"""probe <(echo) > /dev/null; probe $'a\tb' {c,d} > $OUT-5"""
LINES = len(COMMANDS) + 1

# Arguments: the folder for cron.d, an empty file, the crontab, where to look for the end, how often, cronguard, and
# how many files the lines write.
SCRIPT = """
set -e
mount -t tmpfs none /var/spool/cron
mkdir /var/spool/cron/crontabs && chgrp crontab /var/spool/cron/crontabs && chmod 1730 /var/spool/cron/crontabs
mount -t tmpfs none /run
mount --bind "$1" /etc/cron.d
mount --bind "$2" /etc/crontab
crontab "$3"
"$6" wrap --write --cronguard "$6" 2>&1
crontab -l > "$3"
env $FAKING cron -f &
cron=$!
at=0
while [ $at -lt $5 ] && [ "$(find "$4" -type f -size +0 | wc -l)" -lt $7 ]; do at=$((at + 1)); sleep 0.2; done
kill $cron
wait $cron || true
"""


def needs_cron() -> None:
    lacking = None if os.geteuid() == 0 else "only root can start cron"
    if shutil.which("cron", path="/usr/sbin") is None:
        lacking = "no cron here: apt-get install cron"
    if lacking and os.environ.get("CI"):
        pytest.fail(lacking)
    if lacking:
        pytest.skip(lacking)


def crontab(out: Path, user: bytes, state: str, folder: Path) -> bytes:
    settings = f"""PATH={folder}:/usr/bin:/bin\nX=a  'b'\nCRONGUARD_STATE_DIR={state}\nOUT={out}\n""".encode()
    lines = [b"* * * * * " + user + command + b"\n" for command in COMMANDS]
    return b"".join((b'MAILTO=""\n', settings, *lines, b"SHELL=/bin/bash\n* * * * *\t" + user + IN_BASH + b"\n"))


def read(folder: Path, name: str) -> Dict[int, bytes]:
    found = {int(path.name.rpartition("-")[2]): path.read_bytes() for path in folder.glob(f"{name}-*")}
    return {place: text.replace(bytes(folder / name), b"OUT") for place, text in found.items()}


def test_real_cron_runs_wrapped_lines_as_it_runs_the_lines(tmp_path: Path) -> None:
    """FR-31. Beside it `wrap --write` without a file, with the real crontab(1)."""
    needs_cron()
    make_probe(tmp_path)
    guard = tmp_path / "cronguard"
    guard.write_text(GUARD)
    guard.chmod(0o755)
    places = {name: tmp_path / name for name in ("cron.d", "out", "home")}
    for place in places.values():
        place.mkdir()
    (tmp_path / "empty").touch()
    state = os.environ["CRONGUARD_STATE_DIR"]
    (places["cron.d"] / "before").write_bytes(crontab(places["out"] / "before", b"root ", state, tmp_path))
    (tmp_path / "tab").write_bytes(crontab(places["out"] / "after", b"", state, tmp_path))
    faking = f"LD_PRELOAD={FAKETIME[0]} FAKETIME_DONT_FAKE_MONOTONIC=1" if FAKETIME else ""
    looks = 150 if FAKETIME else 400
    words = [places["cron.d"], tmp_path / "empty", tmp_path / "tab", places["out"], looks, guard, 2 * LINES]
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh", *map(str, words)],
        env={
            "PATH": f"{os.path.dirname(sys.executable)}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(places["home"]),
            "FAKING": faking, **({"FAKETIME": SHORTLY_BEFORE} if FAKETIME else {}), "CRONGUARD_STATE_DIR": state,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip
    assert f"{LINES} guarded" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "tab").read_bytes().count(b"cronguard run probe") == LINES
    assert [path.read_bytes() for path in places["home"].glob("crontab.bak-*")] == [
        crontab(places["out"] / "after", b"", state, tmp_path)
    ]
    before, after = read(places["out"], "before"), read(places["out"], "after")
    assert sorted(before) == list(range(LINES)), done.stdout + done.stderr
    assert after == before
    names = {name for line in (tmp_path / "tab").read_text().splitlines() for name in line.split() if "probe-" in name}
    assert {history(name)[0]["trigger"] for name in names} == {"schedule"}
