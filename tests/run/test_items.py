"""A pass over the queue by the real command: handlers, budget, groups, signals, what is said and how it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

from cronguard.core.item_texts import item_environment
from cronguard.core.queue import Reserved
from tests.support.cronguard import command, cronguard, gone, history, until
from tests.support.queues import JOB, Queue, sh

QUICK = ("--timeout", "10s", "--grace", "1s")


@pytest.fixture
def queue(sqlite_url: str) -> Iterator[Queue]:
    opened = Queue(sqlite_url)
    yield opened
    opened.store.close()


def test_each_item_is_handled_once_with_its_own_words_and_output_goes_through(queue: Queue) -> None:
    queue.add("a 1", "b$HOME", group="g", payload="{key}")
    done = queue.work("--", "printf", "%s|%s\\n", "{key}-{group}", "{payload}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "a 1-g|{key}\nb$HOME-g|{key}\ndone=2 failed=0 left=0\n"
    assert [(item.status, item.attempts) for item in queue.items()] == [("done", 1)] * 2
    assert queue.work("--", "false").stdout == "done=0 failed=0 left=0\n"


def test_handler_is_told_of_its_item_and_of_the_job(queue: Queue) -> None:
    """FR-71: the idempotency key is among it."""
    queue.add("k", group="g", payload="p")
    told = dict(line.partition("=")[::2] for line in queue.work("--", "env").stdout.splitlines())
    expected = item_environment(JOB, Reserved("k", "g", "p", queue.item("k").token, 0))
    assert {name: told[name] for name in expected} == expected
    assert told["CRONGUARD_JOB"] == JOB


def test_failure_is_tried_again_after_a_pause_until_it_is_dead(queue: Queue) -> None:
    queue.add("k")
    failing = ("--attempts", "2", "--backoff", "1h", *sh("echo so; echo why >&2; exit 3"))
    first = queue.work(*failing)
    assert (first.returncode, first.stdout) == (0, "so\ndone=0 failed=1 left=1\n")
    item = queue.item("k")
    assert (item.status, item.attempts) == ("waiting", 1)
    assert item.message in ("the command left with exit code 3: why", "the command left with exit code 3: so")
    assert queue.work(*failing).stdout == "done=0 failed=0 left=1\n"  # not before its time
    queue.store.retry_items(JOB, ["k"], 5)
    again = queue.work(*failing[:2], "--backoff", "0", *failing[4:])
    assert (again.returncode, again.stdout) == (1, "so\nso\ndone=0 failed=2 left=0 dead=1\n")
    assert "item_dead job=mails item=k attempt=2" in again.stderr


def test_command_that_does_not_exist_costs_no_item_an_attempt(queue: Queue) -> None:
    queue.add("a", "b")
    done = queue.work("--", "no-such-command")
    assert (done.returncode, done.stdout) == (125, "done=0 failed=0 left=2\n")
    assert "no-such-command: not found" in done.stderr
    assert {(item.status, item.attempts) for item in queue.items()} == {("waiting", 0)}


def test_item_is_only_begun_if_it_fits_and_the_rest_is_given_back(queue: Queue) -> None:
    """Article 4: the pass must be over before the next minute's."""
    queue.add(*map(str, range(10)))
    began = time.monotonic()
    done = queue.work("--budget", "1s", "--timeout", "400ms", "--grace", "100ms", *sh("sleep 60"))
    assert time.monotonic() - began < 5
    tried = [item for item in queue.items() if item.attempts]
    assert len(tried) in (1, 2)  # none begins after half a second
    assert all("timeout" in item.message for item in tried)
    assert queue.counts().reserved == 0
    assert done.stdout == f"done=0 failed={len(tried)} left=10\n"


def test_time_that_is_left_of_the_surrounding_run_is_the_budget(queue: Queue) -> None:
    queue.add("a")
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 20))
    env = {**queue.env, "CRONGUARD_RUN_ID": "r", "CRONGUARD_DEADLINE": soon}
    starved = queue.work("--", "true", env=env)
    assert (starved.returncode, starved.stdout) == (1, "done=0 failed=0 left=1\n")
    assert "nothing was begun" in starved.stderr
    assert queue.work("--timeout", "2s", "--", "true", env=env).returncode == 0


def test_group_that_only_fails_does_not_hold_up_the_others(queue: Queue) -> None:
    """Article 4: a business with wrong credentials."""
    for group in ("a", "bad", "c"):
        queue.add(*(f"{group}{number}" for number in range(8)), group=group)
    words = ("--group-failures", "3", "--budget", "50s", "--timeout", "5s")
    done = queue.work(*words, *sh('[ "$CRONGUARD_ITEM_GROUP" != bad ]'))
    assert (done.returncode, done.stdout) == (1, "done=16 failed=3 left=8\n")
    assert done.stderr.count("group_left job=mails group=bad failures=3") == 1
    assert {item.status for item in queue.items() if item.group != "bad"} == {"done"}
    assert sorted(item.attempts for item in queue.items("waiting")) == [0] * 5 + [1] * 3


def test_each_group_has_its_bound_and_its_turn(queue: Queue) -> None:
    for group in ("a", "b", "c"):
        queue.add(*(f"{group}{number}" for number in range(4)), group=group)
    done = queue.work("--batch", "3", "--per-group", "3", "--", "echo", "{group}")
    assert done.stdout == "a\nb\nc\n" * 3 + "done=9 failed=0 left=3\n"
    assert queue.work("--group", "b", "--", "echo", "{key}").stdout.startswith("b3\ndone=1")


def test_signal_ends_the_handler_and_gives_back_all_without_counting(queue: Queue) -> None:
    queue.add(*"abcde")
    with queue.working(*sh("echo $$; sleep 60; true")) as working:
        pid = int(working.line())
        working.process.send_signal(signal.SIGTERM)
        done = working.end()
    assert (done.returncode, done.stdout) == (143, "done=0 failed=0 left=5\n")
    assert gone(pid)
    assert queue.counts().ready == 5
    assert {item.attempts for item in queue.items()} == {0}


def test_handlers_run_beside_each_other_and_a_signal_reaches_all(queue: Queue, tmp_path: Path) -> None:
    queue.add(*"abc")
    meet = f"touch {tmp_path}/{{key}}; while [ $(ls {tmp_path} | grep -c '^.$') -lt 3 ]; do sleep 0.02; done"
    done = queue.work("--parallel", "3", *QUICK, *sh(meet))
    assert (done.returncode, done.stdout) == (0, "done=3 failed=0 left=0\n")
    queue.add(*"def")
    with queue.working("--parallel", "3", *sh("echo $$; sleep 60; true")) as working:
        pids = [int(working.line()) for _ in range(3)]
        working.process.send_signal(signal.SIGINT)
        assert working.end().returncode == 130
    assert all(gone(pid) for pid in pids)
    assert queue.counts().ready == 3


def test_keeper_that_dies_takes_nobody_else_with_it(queue: Queue, tmp_path: Path) -> None:
    queue.add(*"ab")
    handler = f"echo $PPID {{key}}; while ! [ -e {tmp_path}/go ]; do sleep 0.02; done"
    with queue.working("--parallel", "2", *QUICK, *sh(handler)) as working:
        keepers = dict(reversed(working.line().split()) for _ in range(2))
        os.kill(int(keepers["a"]), signal.SIGKILL)
        until(lambda: gone(int(keepers["a"])), "the keeper to end")
        time.sleep(0.3)  # what is taken for its strays would be ended now
        (tmp_path / "go").touch()
        done = working.end()
    assert (done.returncode, done.stdout) == (125, "done=1 failed=0 left=1\n")
    assert "keeper" in done.stderr
    assert (queue.item("a").status, queue.item("a").attempts, queue.item("b").status) == ("waiting", 0, "done")


def test_inside_a_run_the_sums_land_in_its_row_and_the_fence_is_asked(queue: Queue) -> None:
    queue.add(*"abc")
    nested = f"{' '.join(command())} items work {JOB} -- sh -c '[ $0 != b ]' {{key}}"
    run = cronguard("run", "outer", "--timeout", "1m", *sh(nested), env=queue.env)
    assert run.returncode == 0, run.stderr
    (row,) = history("outer", queue.env)
    assert (row["items"], row["errors"]) == (2, 1)
    assert queue.item("a").run_id == row["run_id"]
    lost = {**queue.env, "CRONGUARD_RUN_ID": str(row["run_id"]), "CRONGUARD_FENCE": "1"}
    queue.store.retry_items(JOB, ["b"], 5)
    refused = queue.work("--", "true", env=lost)
    assert (refused.returncode, refused.stdout) == (75, "done=0 failed=0 left=1\n")
    assert "no longer holds its lock" in refused.stderr
    assert queue.work("--", "true", env={**lost, "CRONGUARD_FENCE": "x"}).returncode == 125


def test_item_whose_workers_all_died_is_dead_and_not_begun_again(queue: Queue) -> None:
    """A message that kills whoever touches it must not do so for ever."""
    queue.add("poison")
    words = ("--reserve", "1s", "--attempts", "1")
    with queue.working(*words, *sh("echo $$; sleep 60")) as working:
        working.line()
        working.process.kill()
    until(lambda: queue.counts().reserved == 1 and queue.item("poison").attempts == 1, "the start to be counted")
    until(lambda: "dead=1" in queue.work(*words, "--", "true").stdout, "the reservation to end")
    item = queue.item("poison")
    assert (item.status, item.attempts) == ("dead", 1)
    assert "did not live" in item.message


def test_table_of_the_job_may_say_it_all(queue: Queue, tmp_path: Path) -> None:
    queue.add(*"ab")
    config = tmp_path / "c.toml"
    config.write_text(
        f'[jobs.{JOB}]\nenv = {{ WHERE = "here" }}\n[jobs.{JOB}.items]\nbatch = 1\nper_group = 1\n'
        'command = ["sh", "-c", "echo $WHERE {key}"]\n'
    )
    env = {**queue.env, "CRONGUARD_CONFIG": str(config)}
    assert queue.work(env=env).stdout == "here a\ndone=1 failed=0 left=1\n"
    shown = cronguard("config", JOB, "--json", env=env).stdout
    settings = {each["name"]: each["value"] for each in json.loads(shown)["jobs"][0]["settings"]}
    assert (settings["items.per_group"], settings["items.reserve"]) == ("1", "2m")
    assert settings["items.command"] == "sh -c 'echo $WHERE {key}'"
    without = cronguard("items", "work", "other", env=env)
    assert (without.returncode, "no command" in without.stderr) == (125, True)


def test_pass_loads_neither_typer_nor_rich(queue: Queue) -> None:
    queue.add("a")
    probe = (
        "import sys; from cronguard.cli.main import execute\n"
        f"code = execute(['items', 'work', '{JOB}', '--budget', '50s', '--', 'true'])\n"
        "print(code, sorted({'typer', 'rich', 'psycopg', 'tomllib', 'dataclasses', 'logging'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], env=queue.env, capture_output=True, text=True, check=True)
    assert done.stdout == "done=1 failed=0 left=0\n0 []\n"


def test_second_signal_hastens(queue: Queue) -> None:
    queue.add("a")
    with queue.working("--grace", "60s", *sh("trap '' TERM; echo $$; while :; do sleep 0.05; done")) as working:
        pid = int(working.line())
        working.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)  # two at the same instant are one
        working.process.send_signal(signal.SIGTERM)
        assert working.end().returncode == 143
    assert gone(pid)
