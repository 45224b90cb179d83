"""Every command block of the README is run, as a reader would run it, on a machine to throw away.

A section has a machine of its own, on which its blocks run in order: `sh` blocks by sh, lines of a crontab as cron runs
them, SQL by psql, settings written where the text says. What is not ours there (the jobs' programs, an application's
tables, a monitoring service) is made before. What only stands for something (`hc-ping.com`, a run's id) is replaced.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from cronguard.cli.main import execute
from cronguard.core.crontab import parse_crontab
from tests.support.machine import ROOT, Machine, lacking
from tests.support.pingserver import CHECK, PingServer
from tests.support.postgres import server_binaries
from tests.support.readme import TEXT, Block, blocks, sections
from tests.support.stores import parts_of, unavailable

pytestmark = pytest.mark.usual  # what the README says does not depend on the Python

CHECKOUT = "/usr/src/cronguard"
CRON_PATH = "/opt/cronguard/bin:/usr/local/bin:/usr/bin:/bin"  # as in the first crontab of the README
LANGUAGES = {"", "sh", "sql", "python", "toml", "js", "yaml", "dockerfile"}
PROGRAMS = (
    "/srv/app/releases/7/bin/export", "/srv/app/releases/7/bin/sync", "/srv/app/releases/7/bin/remind",
    "/srv/app/releases/7/bin/send", "/srv/app/bin/export", "/srv/bin/backup.sh", "/usr/bin/node", "/usr/bin/mail",
    "/usr/bin/send-reminder",
)  # fmt: skip
CRONTAB = """\
PATH=/usr/local/bin:/usr/bin:/bin
MAILTO=ops@example.com
10 4 * * *  /srv/app/current/bin/export
20 4 * * *  flock -n /run/lock/sync timeout 1h /srv/app/current/bin/sync --all
"""
KEY = "reminder:2026-01-20:4711"
IN_DATABASE = {
    "Many machines: PostgreSQL", "Containers and Kubernetes", "Operations", "A queue: items", "In your own transaction",
    "What is promised and what is not",
}  # fmt: skip
Sql = Callable[..., Any]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    reason = lacking()
    if reason is not None:
        unavailable(reason)
    try:
        made = Machine(tmp_path)
    except OSError as error:
        unavailable(f"no overlay can be mounted here: {error}")
    with made:
        made.install()
        for program in PROGRAMS:
            made.program(program)
        made.path("/srv/app/current").symlink_to("releases/7")
        made.path("/usr/src").mkdir(exist_ok=True)
        made.path(CHECKOUT).symlink_to(ROOT)
        made.file("/etc/crontab", "# none\n")
        made.file(f"{ROOT}/deploy/crontab", CRONTAB)
        for place in made.path("/etc/cron.d").iterdir():
            place.unlink()
        made.file("/etc/cron.d/app", "5 4 * * *  root  /srv/app/current/bin/export\n")
        done = made.run(["crontab", "-"], stdin=CRONTAB)
        assert done.returncode == 0, done.stdout
        yield made


@pytest.fixture
def service() -> Iterator[PingServer]:
    with PingServer() as server:
        yield server


class Reader:
    """Runs one block after the other, and remembers nothing but what the machine does."""

    def __init__(self, machine: Machine, service: PingServer) -> None:
        self.machine = machine
        self.service = service
        self.replaced: Dict[str, str] = {
            r"https://hc-ping\.com/your-check": service.check_url,
            r"https://alerts\.example\.com": f"http://127.0.0.1:{service.port}",
            r"\bKEY\b": KEY,
        }

    def read(self, block: Block) -> None:
        text = block.text
        for what, by in self.replaced.items():
            text = re.sub(what, by, text)
        {"": self.crontab, "sh": self.shell, "sql": self.sql, "python": self.python, "toml": self.settings}[
            block.language
        ](block, text)

    def done(self, words: List[str], **more: Any) -> str:
        """What was printed by a command that must succeed."""
        done = self.machine.run(words, **{"cwd": CHECKOUT, **more})
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def cronguard(self, *words: str, **more: Any) -> str:
        return self.done(["cronguard", *words], **more)

    def shell(self, block: Block, text: str) -> None:
        inside = ["cronguard", "run", "reminders", "--"] if block.note == "test: inside a run" else []
        self.done([*inside, "sh", "-eu", "-c", text])

    def crontab(self, block: Block, text: str) -> None:
        """Linted, installed by crontab(1), then each command as do_command.c starts it."""
        text = text if text.startswith("PATH=") else f"PATH={CRON_PATH}\n{text}"
        said = self.machine.run(["cronguard", "lint", "-", "--json", "--cron", "debian"], stdin=text).stdout
        findings = [finding for finding in json.loads(said)["findings"] if finding["severity"] != "info"]
        assert findings == []
        self.done(["crontab", "-"], stdin=text)
        jobs = [line.job for line in parse_crontab(text.encode(), "user").lines if line.job is not None]
        assert jobs
        for job in jobs:
            env = {name.decode(): value.decode() for name, value in job.environment.items()}
            self.done(["/bin/sh", "-c", job.command.decode()], cwd="/root", env=env, stdin=(job.stdin or b"").decode())

    def sql(self, block: Block, text: str) -> None:
        """As a superuser, who has the rights that the text asks for. `:key` and the like are a program's parameters."""
        variables = [f"--set={name}={value}" for name, value in VALUES.items()]
        self.done(["psql", "-X", "--quiet", "-v", "ON_ERROR_STOP=1", *variables, "-U", "postgres"], stdin=text)

    def python(self, block: Block, text: str) -> None:
        prelude = f"import sys; sys.path.insert(0, {str(ROOT)!r})\ndef send(*of): pass\nsend_reminder = send\n"
        called = CHARGE if "def charge" in text else ""
        self.done(["cronguard", "run", "reminders", "--", sys.executable, "-c", prelude + text + called])

    def settings(self, block: Block, text: str) -> None:
        """tests/meta/test_options.py reads all of them; one that is said to be a file becomes it."""
        if block.note.startswith("test: file "):
            self.machine.file(block.note.split()[-1], text)


CHARGE = """
import psycopg
with psycopg.connect(autocommit=True) as connection:
    assert [charge(connection, 4713) for _ in range(2)] == [True, False]
"""
VALUES = {"key": "'welcome:4711'", "token": "0", "fence": "9"}


@pytest.fixture
def reader(machine: Machine, service: PingServer) -> Reader:
    return Reader(machine, service)


@pytest.fixture
def database(machine: Machine, request: pytest.FixtureRequest) -> Iterator[Sql]:
    """`db.example.com/app`, which belongs to the role `owner`; variables so that psql finds it."""
    import psycopg

    admin_dsn = request.getfixturevalue("admin_dsn")
    parts = parts_of(admin_dsn)
    binaries = server_binaries()
    for name in ("psql", "pg_dump", "pg_restore") if binaries is not None else ():
        machine.path(f"/opt/stand-ins/{name}").symlink_to(f"{binaries}/{name}")
    with machine.path("/etc/hosts").open("a") as hosts:
        hosts.write("\n127.0.0.1 db.example.com\n")
    machine.environment.update(PGHOST="db.example.com", PGPORT=parts["port"], PGDATABASE="app", PGUSER="owner")
    undo = ("drop database if exists app with (force)", "drop role if exists cronguard", "drop role if exists owner")
    with closing(psycopg.connect(admin_dsn, autocommit=True)) as admin:
        admin.execute("select pg_advisory_lock(20260120)")  # a server given by CRONGUARD_TEST_DSN is everybody's
        for statement in (*undo, "create role owner login createrole", "create database app owner owner"):
            admin.execute(statement)
        with closing(psycopg.connect(admin_dsn, dbname="app", autocommit=True)) as app:
            yield app.execute
        for statement in undo:
            admin.execute(statement)


# What there is before a section begins, that is not the reader's to make.


def _after_a_night(reader: Reader) -> None:
    reader.cronguard("run", "nightly-export", "--cron", "30 2 * * *", "--", "true")
    rows = json.loads(reader.cronguard("history", "nightly-export", "--json"))["runs"]
    reader.replaced["0197f3a2"] = rows[0]["run_id"][:13]
    # It stays until somebody presses q.
    reader.replaced["status --watch .*"] = "status"


def _with_config(reader: Reader) -> None:
    config = next(block for block in sections()["Config file"] if block.language == "toml").text
    reader.machine.file("/etc/cronguard/config.toml", config.replace("file:/etc/cronguard/store", "sqlite:/srv/cg.db"))
    reader.machine.file("/etc/cronguard/ping/billing-sync", reader.service.check_url + "\n", 0o600)


def _with_heartbeat(reader: Reader) -> None:
    reader.machine.file("/etc/cronguard/ping/nightly-export", reader.service.check_url + "\n", 0o600)


def _while_running(reader: Reader) -> None:
    _after_a_night(reader)
    running = reader.machine.start(["cronguard", "run", "nightly-export", "--", "sh", "-c", "echo up; exec sleep 60"])
    assert running.stdout is not None
    while running.stdout.readline() not in ("up\n", ""):
        pass


def _on_january_20(reader: Reader) -> None:
    reader.machine.environment.update(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW="2027-01-09T03:00Z", TZ="UTC")
    reader.cronguard("run", "nightly-export", "--cron", "30 2 * * *", "--", "/srv/app/current/bin/export")
    reader.machine.environment["CRONGUARD_TEST_NOW"] = "2027-01-20T12:00Z"


def _with_an_unknown_effect(reader: Reader) -> None:
    reader.machine.program("/usr/bin/people-to-remind", "#!/bin/sh\necho 4710 4712\n")
    reader.cronguard("init")
    mark = f"insert into ledger (job, effect_key, status) values ('reminders', '{KEY}', 'started')"
    reader.done(["sqlite3", "/var/lib/cronguard/cronguard.db", mark])


def _with_rows_to_copy(reader: Reader) -> None:
    reader.machine.program("/usr/bin/copy-rows", '#!/bin/sh\n[ "$1 $2" = "--after 0" ] && echo 418\n')


def _with_an_outbox(reader: Reader) -> None:
    reader.done(["psql", "-qc", "create table outbox as select generate_series(4711, 4713) as id"])
    reader.machine.program(f"{ROOT}/send")


def _with_balances(reader: Reader) -> None:
    machine = reader.machine
    dsn = "postgresql://owner@db.example.com/app"
    machine.environment.update(CRONGUARD_STORE=dsn, DATABASE_URL=dsn, invoice="4712")
    reader.cronguard("init")
    reader.done(["psql", "-qc", "create table balances as select 7 as id, 500 as amount, 1 as fence"])


def _with_two_stores(reader: Reader) -> None:
    machine = reader.machine
    machine.path("/var/backups").mkdir(exist_ok=True)
    for store in ("", "postgresql://owner@db.example.com/app"):
        env = {"CRONGUARD_STORE": store} if store else {}
        reader.cronguard("run", "nightly-export", "--cron", "30 2 * * *", "--", "true", env=env)
    reader.cronguard("once", "invoice:4711", "--job", "billing", "--", "true")
    reader.done(["psql", "-qU", "postgres", "-c", "create role cronguard login"])
    machine.file("/etc/cronguard/owner", "postgresql://owner@db.example.com/app\n", 0o600)


def _with_pages(reader: Reader) -> None:
    for place in ("/var/www/html", "/var/lib/prometheus/node-exporter"):
        reader.machine.path(place).mkdir(parents=True, exist_ok=True)


def _with_a_timer(reader: Reader) -> None:
    reader.machine.file("/etc/systemd/system/export.timer", "[Timer]\nOnCalendar=*-*-* 04:05:00\n")
    service = "[Service]\nType=oneshot\nExecStart=/srv/app/bin/export --all\n"
    reader.machine.file("/etc/systemd/system/export.service", service)


def _with_places_for_completion(reader: Reader) -> None:
    for place in ("/etc/bash_completion.d", "/usr/local/share/zsh/site-functions", "/etc/fish/completions"):
        reader.machine.path(place).mkdir(parents=True, exist_ok=True)


def _with_secrets(reader: Reader) -> None:
    _with_heartbeat(reader)
    reader.done(["psql", "-qU", "postgres", "-c", "create role cronguard login"])
    reader.machine.file("/etc/cronguard/store", "postgresql://cronguard@db.example.com/app\n", 0o600)


def _with_nightly_export(reader: Reader) -> None:
    _with_heartbeat(reader)
    url, ping = f"http://127.0.0.1:{reader.service.port}/alerts", "file:/etc/cronguard/ping/nightly-export"
    text = f'[jobs.nightly-export]\nping = "{ping}"\n[notify]\nurls = ["{url}"]\n'
    reader.machine.file("/etc/cronguard/config.toml", text)


BEFORE: Dict[str, Callable[[Reader], None]] = {
    "Try it": _with_places_for_completion,
    "Containers and Kubernetes": _with_secrets,
    "Recipes": _with_heartbeat,
    "Operations": _with_two_stores,
    "What happened last night?": _after_a_night,
    "Before you go live": _with_config,
    "Pause, cancel, prune": _while_running,
    "Missed slots: backfill and catch-up": _on_january_20,
    "Things that happen once: once": _with_an_unknown_effect,
    "Where a job got to: checkpoint": _with_rows_to_copy,
    "A queue: items": _with_an_outbox,
    "In your own transaction": _with_balances,
    "What is promised and what is not": _with_balances,
    "Nothing fails silently: check": _after_a_night,
    "A page to look at, and metrics": _with_pages,
    "Move a crontab over": _with_a_timer,
    "Try the guards: drill": _with_nightly_export,
}

# And what must be so afterwards.


def _afternoon_over(reader: Reader) -> None:
    """The check alerts before the first run, and no more once the wrapped lines have run."""
    crontab = parse_crontab(reader.done(["crontab", "-l"]).encode(), "user")
    *runs, check = [["sh", "-c", line.job.command.decode()] for line in crontab.lines if line.job is not None]
    assert reader.machine.run(check).returncode == 3
    assert len(runs) == 2
    for command in (*runs, check):
        reader.done(command)
    told = [request.path for request in reader.service.received]
    assert told.count("/cronguard") >= 2
    assert f"/ping/{CHECK}" in told


def _backed_up(reader: Reader) -> None:
    count = "select count(*) from runs where status = 'success'"
    assert reader.done(["sqlite3", "/var/backups/cronguard.db", count]) == "1\n"
    assert "success" in reader.cronguard("history", "nightly-export", "--store", "file:/etc/cronguard/owner")
    marks = reader.done(["psql", "-Atc", "select job, effect_key, status from cronguard.ledger"])
    assert marks == "billing|invoice:4711|done\n"


def _charged_once_each(reader: Reader) -> None:
    """By shell and Python; the SQL alone finds the mark that the statement before it has made."""
    assert reader.done(["psql", "-Atc", "select amount from balances"]) == "300\n"


def _timers_written(reader: Reader) -> None:
    assert list(reader.machine.path(str(ROOT)).glob("cronguard-*.timer"))


AFTER: Dict[str, Callable[[Reader], None]] = {
    "Adopt it in an afternoon": _afternoon_over,
    "Operations": _backed_up,
    "In your own transaction": _charged_once_each,
    "Move a crontab over": _timers_written,
}


@pytest.mark.parametrize("section", [name for name, of in sections().items() if not all(b.left_out for b in of)])
def test_blocks_of_the_section_run(section: str, reader: Reader, request: pytest.FixtureRequest) -> None:
    if section in IN_DATABASE:
        request.getfixturevalue("database")
    BEFORE.get(section, lambda _: None)(reader)
    for block in sections()[section]:
        if not block.left_out and block.language not in ("yaml", "dockerfile"):
            reader.read(block)
    AFTER.get(section, lambda _: None)(reader)


def test_blocks_that_are_not_run_are_these_few() -> None:
    assert {block.language for block in blocks()} == LANGUAGES
    left_out = [(block.section, block.note.split(":")[0]) for block in blocks() if block.left_out]
    assert left_out == [
        ("Try it", "ci"), ("Try it", "ci"), ("In your own transaction", "not run"), ("Development", "not run")
    ]  # fmt: skip


def _block(note: str) -> str:
    return next(block.text for block in blocks() if block.note == f"test: {note}")


def _yaml(note: str) -> Any:
    try:
        import yaml
    except ImportError:
        unavailable("no PyYAML, which apprise brings")
    return yaml.safe_load(_block(note))


def test_image_can_be_built(reader: Reader) -> None:
    reader.machine.path("/opt/cronguard/bin/cronguard").unlink()
    steps = [line.partition(" ") for line in _block("dockerfile").splitlines()]
    assert [name for name, _, _ in steps] == ["FROM", "COPY", "RUN", "ENV"]
    reader.done(["sh", "-eu", "-c", steps[2][2]])
    name, _, value = steps[3][2].partition("=")
    reader.done(["sh", "-c", f"{name}={value} cronguard --version"])


def test_pods_of_one_time_run_the_slot_once_if_they_share_the_store(
    reader: Reader, database: Sql, service: PingServer
) -> None:
    """FR-85: two Jobs for one time, with a database, and with a file each."""
    job = _yaml("cronjob")["spec"]
    pod = job["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command, env = container["command"], {each["name"]: each["value"] for each in container["env"]}
    assert (command[command.index("--cron") + 1], env["CRONGUARD_TIMEZONE"]) == (job["schedule"], job["timeZone"])
    assert (job["jobTemplate"]["spec"]["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert pod["terminationGracePeriodSeconds"] > 10 + 12 + 10
    reader.done(["psql", "-qU", "postgres", "-c", "create role cronguard login"])
    reader.cronguard("init", "--store", "postgresql://owner@db.example.com/app", "--grant", "cronguard")
    secret = {"store": "postgresql://cronguard@db.example.com/app", "ping": service.check_url}
    for name, text in secret.items():
        reader.machine.file(f"/etc/cronguard/{name}", text, 0o440)
        reader.done(["chgrp", "1000", f"/etc/cronguard/{name}"])
    said = [_pod(reader, command, {**env, "CRONGUARD_STATE_DIR": f"/tmp/cg-readme-{n}"}) for n in range(2)]
    assert ["did export" in text for text in said] == [True, False]
    assert len(service.wait_for(2)) == 2
    alone = [{**env, "CRONGUARD_STORE": f"sqlite:/tmp/cg-readme-{n}/cg.db"} for n in range(2)]
    assert ["did export" in _pod(reader, command, each) for each in alone] == [True, True]


def _pod(reader: Reader, command: List[str], env: Dict[str, str]) -> str:
    return reader.done(command, cwd="/", env={**env, "HOME": "/"}, user="1000")


def test_steps_of_the_workflow_run(reader: Reader) -> None:
    workflow = _yaml("workflow")
    (job,) = workflow["jobs"].values()
    assert re.search(r"cron: (\".*\")", _block("workflow")).group(1) in job["steps"][-1]["run"]  # type: ignore[union-attr]
    machine = reader.machine
    machine.program("/home/runner/work/report")
    machine.path("/home/runner/work/cronguard").symlink_to(ROOT)
    env = {**job["env"], "CRONGUARD_STORE": "sqlite:/srv/store.db"}
    said = [reader.done(["sh", "-eu", "-c", step["run"]], cwd="/home/runner/work", env=env)
            for step in job["steps"] if "run" in step]  # fmt: skip
    assert "did report" in said[-1]


def _what_you_write_now() -> List[str]:
    table = TEXT.partition("| you had | you write now |")[2].partition("\n\n")[0]
    cells = [row.replace("\\|", "\0").split("|")[2] for row in table.splitlines()[2:]]
    return [span for cell in cells for span in re.findall(r"`(--[a-z][^`]*)`", cell)]


@pytest.mark.parametrize("options", _what_you_write_now())
def test_what_you_write_now_is_understood(options: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app").mkdir()
    words = shlex.split(options.replace("/srv/app/current", f"{tmp_path}/app"))
    behind = [] if "--" in words else ["--", "echo"]
    assert execute(["run", "job", "--dry-run", "--cron", "30 2 * * *", *words, *behind]) == 0, capfd.readouterr().err


def test_wrap_makes_of_the_lines_before_the_lines_after(reader: Reader) -> None:
    before, after = [block.text for block in sections()["Move a crontab over"] if block.language == ""]
    words = ["/opt/cronguard/bin/cronguard", "wrap", "-"]
    assert reader.done(words, stdin=before).startswith(after)  # on stderr there is a word behind it
