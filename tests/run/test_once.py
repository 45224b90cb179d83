"""`cronguard once`: the mark before the effect, and what is made of it after every kind of end.

On SQLite: what stores do alike is shown by tests/contract. The few that need a lease are on PostgreSQL.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.support.cronguard import Started, command, cronguard, environment, gone, until

AT_LEAST = ("--effect", "at-least-once")
# A command that ends its cronguard, and the keeper in between, without a word: the effect has been, its record has not.
KILL_US = "echo sent >> sent; kill -9 $(sed -n 's/^PPid:\\t//p' /proc/$PPID/status) $PPID"


def once(key: str, *words: str, job: str = "mails", **more: Any) -> subprocess.CompletedProcess[str]:
    return cronguard("once", key, "--job", job, *words, **more)


def marks(job: str = "mails", *words: str) -> Dict[str, Dict[str, Any]]:
    """By key; those of slots by key and slot."""
    done = cronguard("items", "list", job, "--ledger", "--json", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["marks"]
    return {each["key"] + (f"/{each['run_key']}" if each["run_key"] else ""): each for each in found}


def lines(name: str) -> List[str]:
    return Path(name).read_text().split() if Path(name).exists() else []


@pytest.mark.parametrize(
    ("script", "options", "code", "state", "again"),
    [
        ("echo sent >> sent", (), 0, "done", 0),
        ("echo sent >> sent; exit 3", (), 3, "failed", 0),
        ("echo sent >> sent; kill -TERM $$", (), 143, "failed", 0),
        ("echo sent >> sent; exec sleep 60", ("--timeout", "300ms", "--grace", "0"), 124, "failed", 0),
    ],
)
def test_at_most_once_is_not_repeated_however_it_ended(
    script: str, options: List[str], code: int, state: str, again: int
) -> None:
    """FR-71."""
    assert once("k", *options, "--", "sh", "-c", script).returncode == code
    second = once("k", *options, "--", "sh", "-c", script)
    assert second.returncode == again
    assert lines("sent") == ["sent"]
    assert ("may not have happened" in second.stderr) == (state == "failed")
    assert marks()["k"]["state"] == state


def test_at_least_once_repeats_what_failed_until_it_is_done() -> None:
    """FR-71."""
    script = "echo $CRONGUARD_IDEMPOTENCY_KEY >> sent; test $(wc -l < sent) -ge 2"
    codes = [once("k", *AT_LEAST, "--", "sh", "-c", script).returncode for _ in range(3)]
    assert codes == [1, 0, 0]
    first, second = lines("sent")
    assert first == second, "a service that knows the key does it once all the same"
    assert marks()["k"]["attempts"] == 2


def test_command_that_could_not_be_started_leaves_no_mark() -> None:
    assert once("k", "--", "/no/such/command").returncode == 127
    assert once("k", *AT_LEAST, "--", "/").returncode == 126
    assert marks() == {}
    assert once("k", "--", "true").returncode == 0


def test_command_gets_stdin_and_key_and_its_output_is_ours() -> None:
    """FR-71: job, run, slot and key are there for whoever needs them."""
    script = 'cat; echo "$CRONGUARD_ONCE_KEY" "$CRONGUARD_JOB"; echo err >&2; echo $CRONGUARD_IDEMPOTENCY_KEY'
    done = once(" Ä k ", "--", "sh", "-c", script, input="the mail's body\n")
    body, key, idempotency = done.stdout.splitlines()
    assert (body, key, done.stderr) == ("the mail's body", " Ä k  mails", "err\n")
    assert idempotency.startswith("effect-")


def test_keys_are_compared_exactly_and_belong_to_a_job() -> None:
    for key, job in (("a", "x"), ("A", "x"), ("a ", "x"), ("a", "y")):
        assert once(key, "--", "sh", "-c", "echo sent >> sent", job=job).returncode == 0
    assert len(lines("sent")) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("once", "k", "--", "true"), "JOB: none named"),
        (("once", "a\nb", "--job", "j", "--", "true"), "KEY: 'a\\nb': contains control characters"),
        (("once", "k", "--job", "j"), "CMD: none"),
        (("once", "k", "--job", "j", "--per-slot", "--", "true"), "--per-slot: no run around us"),
        (("once", "k", "--job", "j", "--effect", "twice", "--", "true"), "--effect: 'twice'"),
        (("once", "k", "--job", "j", "--store", "sqlite:/dev/null/x", "--", "touch", "begun"), "/dev/null"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_125(words: List[str], said: str) -> None:
    done = cronguard(*words)
    assert (done.returncode, done.stdout) == (125, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("begun").exists()


def left_unknown(key: str = "k") -> None:
    assert once(key, *AT_LEAST, "--", "sh", "-c", KILL_US).returncode == -signal.SIGKILL


def test_killed_between_effect_and_record_is_unknown_and_asks() -> None:
    """FR-71: the handler kills its cronguard after the effect; it is listed, and a person decides."""
    left_unknown()
    found = marks("mails", "--unknown")["k"]
    assert (found["state"], found["host"]) == ("unknown", os.uname().nodename)
    assert found["started_at"]
    shown = cronguard("items", "list", "mails", "--unknown").stdout
    assert "items settle mails k" in shown
    asked = once("k", *AT_LEAST, "--", "sh", "-c", "echo sent >> sent")
    assert asked.returncode == 75
    assert "items settle mails k" in asked.stderr
    assert cronguard("items", "settle", "mails", "k").stdout == "settled=1\n"
    assert once("k", *AT_LEAST, "--", "sh", "-c", "echo sent >> sent").returncode == 0
    assert lines("sent") == ["sent"]
    assert cronguard("items", "forget", "mails", "--ledger", "k").stdout == "forgotten=1\n"
    assert once("k", *AT_LEAST, "--", "sh", "-c", "echo sent >> sent").returncode == 0
    assert lines("sent") == ["sent", "sent"]


@pytest.mark.parametrize(("policy", "code", "times"), [("ask", 75, 1), ("redo", 0, 2), ("skip", 0, 1)])
def test_unknown_follows_the_jobs_policy(policy: str, code: int, times: int) -> None:
    """FR-71: from the config file; the line would win."""
    Path("config.toml").write_text(f'[jobs.mails]\neffect = "at-least-once"\non_unknown = "{policy}"\n')
    left_unknown()
    done = once("k", "--config", "config.toml", "--", "sh", "-c", "echo sent >> sent")
    assert (done.returncode, len(lines("sent"))) == (code, times)
    assert ("nobody knows whether it happened" in done.stderr) == (policy != "redo")
    shown = json.loads(cronguard("config", "mails", "--config", "config.toml", "--json").stdout)["jobs"][0]["settings"]
    assert [each["value"] for each in shown if each["name"] == "on_unknown"] == [policy]


def test_process_that_is_left_over_is_still_at_it() -> None:
    """The command is dead with its keeper, but not what it started, wherever that hides."""
    away = "setsid sh -c 'echo $$ > pid; exec sleep 60' > /dev/null 2>&1 &"
    script = f"{away} until test -s pid; do sleep 0.01; done; {KILL_US}"
    assert once("k", *AT_LEAST, "--", "sh", "-c", script).returncode == -signal.SIGKILL
    pid = int(Path("pid").read_text())
    try:
        done = once("k", *AT_LEAST, "--on-unknown", "redo", "--", "true")
        assert done.returncode == 75
        assert "under way" in done.stderr
        refused = cronguard("items", "forget", "mails", "--ledger", "k")
        assert (refused.returncode, refused.stdout) == (1, "forgotten=0\n")
    finally:
        os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid), "the left-over process")
    assert once("k", *AT_LEAST, "--on-unknown", "redo", "--", "true").returncode == 0


def test_killed_once_takes_its_command_along_and_who_asks_meanwhile_is_told() -> None:
    with Started("once", "k", "--job", "mails", *AT_LEAST, "--", "sh", "-c", "echo $$; exec sleep 60") as started:
        pid = int(started.line())
        busy = once("k", *AT_LEAST, "--", "true")
        assert busy.returncode == 75
        assert f"pid {started.pid}" in busy.stderr
        assert once("k", "--", "true").returncode == 0, "at most once it is not ours to do in any case"
        started.process.kill()
        until(lambda: gone(pid), "the command")
    assert marks()["k"]["state"] == "unknown"


def test_signal_is_forwarded_and_the_effect_has_failed() -> None:
    script = "trap 'echo term > sent; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    with Started("once", "k", "--job", "mails", "--", "sh", "-c", script) as started:
        assert started.line() == "ready"
        started.process.terminate()
        assert started.end().returncode == 143
    assert lines("sent") == ["term"]
    assert marks()["k"]["state"] == "failed"


def test_many_at_once_do_it_once() -> None:
    words = command("once", "k", "--job", "mails", "--", "sh", "-c", "echo sent >> sent; sleep 0.1")
    crowd = [subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL) for _ in range(6)]
    assert {each.wait(60) for each in crowd} == {0}
    assert lines("sent") == ["sent"]


def test_in_a_run_it_is_that_runs_and_may_be_once_for_each_slot() -> None:
    script = f"{sys.executable} -m cronguard once k --per-slot -- sh -c 'echo $CRONGUARD_RUN_KEY >> sent'"
    for key in ("monday", "monday", "tuesday"):
        run = cronguard("run", "mails", "--timeout", "1m", "--force", "--run-key", key, "--shell", "--", script)
        assert run.returncode == 0, run.stderr
    assert lines("sent") == ["monday", "tuesday"]
    assert cronguard("items", "forget", "mails", "--ledger", "k").returncode == 1
    forgotten = cronguard("items", "forget", "mails", "--ledger", "k", "--run-key", "monday")
    assert forgotten.stdout == "forgotten=1\n"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_run_that_lost_its_lock_gets_no_effect(kind: str, request: pytest.FixtureRequest) -> None:
    env = environment(CRONGUARD_STORE=request.getfixturevalue(f"{kind}_url"))
    script = "env | grep -E 'CRONGUARD_(JOB|RUN_ID|FENCE)=' > run"
    assert cronguard("run", "mails", "--timeout", "1m", "--shell", "--", script, env=env).returncode == 0
    inside = dict(line.split("=", 1) for line in Path("run").read_text().splitlines())
    done = cronguard("once", "k", "--", "touch", "sent", env={**env, **inside})
    assert done.returncode == 75
    assert "no longer holds the lock" in done.stderr
    assert not Path("sent").exists()
    del inside["CRONGUARD_FENCE"]
    assert cronguard("once", "k", "--", "true", env={**env, **inside}).returncode == 0, "an unguarded run has no fence"


def test_store_that_goes_away_during_the_effect_changes_no_exit_code(postgres_url: str) -> None:
    """The mark stays as it is; from then on nobody knows, and that is said."""
    env = environment(CRONGUARD_STORE=postgres_url)
    script = "import os, sys, psycopg; c = psycopg.connect(sys.argv[1], autocommit=True);"
    script += f" c.execute('ALTER SCHEMA {postgres_url.rpartition('=')[2]} RENAME TO gone_{os.getpid()}')"
    dsn = postgres_url.partition("?")[0]
    done = once("k", *AT_LEAST, "--", sys.executable, "-c", script, dsn, env=env)
    assert done.returncode == 0, done.stderr
    assert "could not be recorded" in done.stderr
