"""Every command block of the README is run as a reader would: on real stores, with real shells, below a private /etc.

What a machine under test cannot have (systemctl, useradd, a registry, the programs that are guarded) is a stub on PATH
that leaves with 0. A block that is run by another test, or cannot be run, is named below with the reason.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple

import pytest

from cronguard.core.crontab import parse_crontab
from tests.support.cronguard import cronguard, environment, history
from tests.support.processes import ROOT
from tests.support.stores import parts_of, unavailable

pytestmark = pytest.mark.usual
README = (ROOT / "README.md").read_text(encoding="utf-8")
# By a text that stands in the block.
ELSEWHERE = {
    "pip install -q -e": "`.ci/run` runs it on every Python",
    ".venv/bin/pytest\n": "`.ci/run` runs it on every Python",
    "python -m tests.faults.storm": "the commands of this test suite itself",
}
STUBS = (
    "systemctl", "people-to-remind", "send-reminder", "copy-rows", "send", "migrate", "export", "sync",
    "remind", "backup.sh", "mail", "psql",
)  # fmt: skip
GUARDED = ("/srv/app/current/bin", "/srv/app/bin", "/srv/bin")
SANDBOX = """
set -eu
mkdir -p "$BOX/etc" "$BOX/srv" "$BOX/state" "$BOX/zsh" "$BOX/backups" "$BOX/html" "$BOX/prom" "$BOX/spool"
cp -a /etc/. "$BOX/etc/"
mount --bind "$BOX/etc" /etc
for folder in /srv /var/lib/cronguard /usr/local/share/zsh/site-functions /var/backups /var/www/html \\
    /var/lib/prometheus/node-exporter /var/spool/cron/crontabs; do mkdir -p "$folder"; done
mount --bind "$BOX/srv" /srv
mount --bind "$BOX/state" /var/lib/cronguard
mount --bind "$BOX/zsh" /usr/local/share/zsh/site-functions
mount --bind "$BOX/backups" /var/backups
mount --bind "$BOX/html" /var/www/html
mount --bind "$BOX/prom" /var/lib/prometheus/node-exporter
mount --bind "$BOX/spool" /var/spool/cron/crontabs
for folder in $GUARDED; do mkdir -p "$folder"; cp "$STUBS"/* "$folder/"; done
mkdir -p /etc/cronguard/ping /etc/bash_completion.d /etc/fish/completions /etc/cron.d deploy contrib/timers
mkdir -p /etc/systemd/system; cp "$ROOT"/contrib/timers/* contrib/timers/; cp "$STUBS"/send "$STUBS"/migrate .
cp "$BOX/config.toml" /etc/cronguard/config.toml
echo 'http://127.0.0.1:9/ping' > /etc/cronguard/ping/billing-sync
printf '*/7 * * * * root /srv/bin/backup.sh\\n' > /etc/cron.d/app
printf '30 2 * * * /srv/bin/backup.sh\\n' > deploy/crontab
printf '45 4 * * * /srv/bin/backup.sh\\n' > "$BOX/own"; crontab "$BOX/own"
printf '[Service]\\nType=oneshot\\nExecStart=/srv/app/bin/export\\n' > /etc/systemd/system/export.service
exec bash -euo pipefail "$BOX/block"
"""
CONFIG = """
[defaults]
timezone = "Europe/Rome"
[jobs.nightly-export]
cron = "30 2 * * *"
timeout = "2h"
command = ["/srv/app/current/bin/export"]
[jobs.billing-sync]
cron = "0 * * * *"
timeout = "20m"
command = ["/srv/app/current/bin/sync"]
"""


class Block(NamedTuple):
    """`language` as behind the fence."""

    language: str
    text: str

    @property
    def name(self) -> str:
        return self.text.strip().splitlines()[0][:60]


def blocks(*languages: str) -> List[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [Block(language, text) for language, text in found if language in languages]


def is_crontab(block: Block) -> bool:
    """Whether each line is one of a crontab, and some line is a job."""
    return not block.text.startswith("cronguard ")


COMMANDS = [block for block in blocks("sh", "") if block.language == "sh" or not is_crontab(block)]
COMMANDS = [block for block in COMMANDS if not any(text in block.text for text in ELSEWHERE)]
CRONTABS = [block for block in blocks("") if is_crontab(block)]


def test_only_those_that_are_named_are_run_elsewhere() -> None:
    for text in ELSEWHERE:
        assert sum(text in block.text for block in blocks("sh")) == 1, text
    assert {language for language, _ in blocks(*set(re.findall(r"^```(\w+)$", README, re.MULTILINE)))} <= {
        "sh", "toml", "sql", "python", "js", "yaml",
    }  # fmt: skip


@pytest.fixture
def box(tmp_path: Path, admin_dsn: str, schema_name: str) -> Dict[str, str]:
    """A folder that becomes /etc and others, with stubs, a store that knows some jobs, and the database of the text."""
    if os.geteuid() != 0:
        unavailable("only root has a private /etc")
    box, stubs = tmp_path / "box", tmp_path / "stubs"
    for folder in (box, stubs, tmp_path / "here"):
        folder.mkdir()
    for name in STUBS:
        (stubs / name).write_text("#!/bin/sh\necho 4711\n")
        (stubs / name).chmod(0o755)
    guard = stubs / "cronguard"
    guard.write_text(f'#!/bin/sh\nexec {sys.executable} -m cronguard "$@"\n')
    guard.chmod(0o755)
    (box / "config.toml").write_text(CONFIG)
    parts = parts_of(admin_dsn)
    return environment(
        BOX=str(box), STUBS=str(stubs), ROOT=str(ROOT), GUARDED=" ".join(GUARDED), GIT_COMMIT="4f2a", HOME=str(box),
        PATH=f"{stubs}:{os.environ['PATH']}:/usr/sbin:/sbin", PYTHONPATH=str(ROOT), CRONGUARD_STATE_DIR=None,
        DB=f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{parts['dbname']}?schema={schema_name}",
        HERE=str(tmp_path / "here"), XDG_CONFIG_HOME=None,
    )  # fmt: skip


# Done before a block: what its reader would have done long ago.
BEFORE = """
cronguard run nightly-export -- true
cronguard run billing-sync -- true
cronguard items add mails 4711; cronguard items add campaign 1
cronguard once KEY --job reminders --effect at-least-once -- false || true
export CRONGUARD_JOB=nightly-export CRONGUARD_DAY=2027-01-20
"""
# A command that is right and still has nothing to say yes to, with the code that it then leaves with.
TOLERATED = {
    "cronguard cancel": "1", "cronguard lint": "[01]", "cronguard doctor": "[01]", "cronguard items settle": "[01]",
    "cronguard items retry": "[01]", "cronguard status --watch": "0",
}  # fmt: skip


def as_script(block: Block, env: Dict[str, str]) -> str:
    """The block, with the names of the text in place of those of the world."""
    text = block.text.replace("postgresql://owner@db.example.com/app", env["DB"])
    text = text.replace("postgresql://cronguard:...@db.example.com/app", env["DB"])
    run_id = "$(cronguard history nightly-export --json | sed -n 's/.*\"run_id\": \"\\(.*\\)\".*/\\1/p')"
    text = text.replace("show 0197f3a2", f'show "{run_id}"')
    lines = []
    for line in text.splitlines():
        command = next((start for start in TOLERATED if start in line.partition("#")[0]), None)
        code = TOLERATED.get(command or "")
        plain = line.partition("   #")[0]
        lines.append(f"{plain} || [[ $? == {code} ]]" if command else line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("block", COMMANDS, ids=lambda block: block.name)
def test_commands_do_what_they_say_without_a_complaint(block: Block, box: Dict[str, str]) -> None:
    script = Path(box["BOX"]) / "block"
    if "--grant" in block.text:
        _make_role(box["DB"])
    if "psql -" in block.text and "--no-psqlrc" in block.text:
        _make_balances(box)
    script.write_text(f"exec 2>&1\n{BEFORE}\nset -x\n{as_script(block, box)}\necho all of it\n")
    ended = subprocess.run(
        ["unshare", "-m", "sh", "-c", SANDBOX], env=box, cwd=box["HERE"], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-500:]
    assert ended.stdout.endswith("all of it\n")
    assert "Traceback" not in ended.stdout
    assert "internal error" not in ended.stdout


def _make_role(dsn: str) -> None:
    import psycopg

    with psycopg.connect(dsn.partition("?")[0], autocommit=True) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE cronguard LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")


def _make_balances(box: Dict[str, str]) -> None:
    """A database with the tables that the block names, and the real client."""
    import psycopg

    (Path(box["STUBS"]) / "psql").unlink()
    plain = box["DB"].partition("?")[0]
    name = f"own_{os.getpid()}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    own = f"{plain.rpartition('/')[0]}/{name}"
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute("CREATE TABLE balances (id int PRIMARY KEY, amount int)")
    assert cronguard("init", "--store", own).returncode == 0
    box.update(DATABASE_URL=own, invoice="7")


@pytest.mark.parametrize("block", CRONTABS, ids=lambda block: block.name)
def test_crontab_lines_are_read_and_run_as_cron_would(block: Block, tmp_path: Path) -> None:
    """Each line's command goes through /bin/sh; what it guards is there, as a stub."""
    text = block.text.encode()
    crontab = parse_crontab(text, "user")
    assert b"".join(line.raw for line in crontab.lines) == text
    jobs = [line.job for line in crontab.lines if line.job is not None]
    assert jobs
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "cronguard").write_text(f'#!/bin/sh\nexec {sys.executable} -m cronguard "$@"\n')
    (bin_ / "cronguard").chmod(0o755)
    env = environment(PATH=f"{bin_}:/usr/bin:/bin", PYTHONPATH=str(ROOT))
    for job in jobs:
        command = job.command.decode()
        if "cronguard run" not in command or "/opt/" in command:
            continue
        shown = re.sub(r" -- .*", " --dry-run -- true", command, count=1)
        ended = subprocess.run(["/bin/sh", "-c", shown], env=env, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert "would run" in ended.stdout


def test_cron_job_of_kubernetes_is_a_line_that_cronguard_takes() -> None:
    (block,) = blocks("yaml")
    assert "\t" not in block.text
    args = json.loads(re.search(r"args: (\[.*\])", block.text)[1])  # type: ignore[index]
    name, schedule, zone = (re.search(f"{key}: \"?([^\"#{{}}\n]+)", block.text)[1].strip() for key in (  # type: ignore[index]
        "name", "schedule", "timeZone"))  # fmt: skip
    assert args[args.index("--cron") + 1] == schedule
    assert args[args.index("--timezone") + 1] == zone
    assert args[1] == name
    at = args.index("--")
    ended = cronguard(*args[:at], "--", "true")
    assert ended.returncode == 0, ended.stderr
    again = cronguard(*args[:at], "--", "true")
    assert again.returncode == 0
    assert {row["status"] for row in history(name, environment())} == {"success", "skipped"}
