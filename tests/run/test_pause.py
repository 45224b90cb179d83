"""`pause` and `resume`, whole: nobody starts the job, whoever asks, and everybody learns why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from tests.support.cronguard import Started, cronguard, environment, history, until

pytestmark = pytest.mark.usual

RUN = ("--timeout", "60s", "--")
CONFIG = """
[jobs.planned]
command = ["true"]
cron = "30 2 * * *"
timezone = "Europe/Rome"
"""


@pytest.fixture(params=["sqlite", "postgres"])
def env(request: pytest.FixtureRequest) -> Dict[str, str]:
    return environment(CRONGUARD_STORE=request.getfixturevalue(f"{request.param}_url"))


def status_of(job: str, env: Dict[str, str]) -> Dict[str, Any]:
    (found,) = json.loads(cronguard("status", job, "--json", env=env).stdout)["jobs"]
    return dict(found)


def test_a_paused_job_is_skipped_with_75_and_its_reason(env: Dict[str, str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert cronguard("run", "j", *RUN, "true", env=env).returncode == 0
    paused = cronguard("pause", "j", "--reason", "migration 42", env=env)
    assert (paused.returncode, paused.stderr) == (0, "")
    assert paused.stdout == "j is paused until `cronguard resume` ends it: migration 42\n"
    for force in ((), ("--force",)):
        skipped = cronguard("-v", "run", "j", *force, *RUN, "touch", str(mark), env=env)
        assert (skipped.returncode, mark.exists()) == (75, False)
        assert "reason=paused" in skipped.stderr
        assert "migration 42" in skipped.stderr
    row = history("j", env)[0]
    assert (row["status"], row["reason"]) == ("skipped", "paused")
    assert "migration 42" in row["message"]
    job = status_of("j", env)
    assert (job["state"], job["paused"]["reason"], job["paused"]["until"]) == ("paused", "migration 42", None)
    assert "paused: migration 42" in cronguard("status", "j", env=env).stdout
    assert cronguard("resume", "j", env=env).stdout == "j is resumed\n"
    assert cronguard("resume", "j", env=env).stdout == "j was not paused\n"
    assert cronguard("run", "j", *RUN, "true", env=env).returncode == 0
    assert status_of("j", env)["paused"] is None


def test_a_pause_with_an_end_ends_by_itself(env: Dict[str, str]) -> None:
    assert cronguard("run", "j", *RUN, "true", env=env).returncode == 0
    assert "until 20" in cronguard("pause", "j", "--for", "4s", env=env).stdout
    assert status_of("j", env)["paused"]["until"] is not None
    assert cronguard("run", "j", *RUN, "true", env=env).returncode == 75
    until(lambda: cronguard("run", "j", *RUN, "true", env=env).returncode == 0, "the pause is over")
    assert status_of("j", env)["state"] == "ok"
    assert cronguard("resume", "j", env=env).stdout == "j was not paused\n"


def test_a_run_under_way_goes_on(env: Dict[str, str], tmp_path: Path) -> None:
    end = tmp_path / "end"
    script = f"echo up; while [ ! -e {end} ]; do sleep 0.05; done"
    with Started("run", "j", *RUN, "sh", "-c", script, env=env) as run:
        assert run.line() == "up"
        paused = cronguard("pause", "j", env=env)
        assert "is running at this moment and goes on" in paused.stdout
        end.touch()
        assert run.end().returncode == 0


def test_a_job_that_only_the_file_knows_can_be_paused_before_its_first_run(env: Dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    env = {**env, "CRONGUARD_CONFIG": str(file)}
    assert cronguard("pause", "planned", "--for", "1d", env=env).returncode == 0
    job = status_of("planned", env)
    assert (job["state"], job["zone"], job["schedule"]) == ("paused", "Europe/Rome", {"cron": "30 2 * * *"})
    assert history("planned", env) == []
    assert cronguard("run", "planned", env=env).returncode == 75
    assert cronguard("resume", "planned", env=env).returncode == 0
    assert cronguard("run", "planned", env=env).returncode == 0


@pytest.mark.parametrize("word", ["pause", "resume"])
def test_a_job_that_nobody_knows_is_1_with_a_suggestion(env: Dict[str, str], word: str) -> None:
    assert cronguard("run", "nightly", *RUN, "true", env=env).returncode == 0
    done = cronguard(word, "nightli", env=env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "did you mean nightly?" in done.stderr


@pytest.mark.parametrize("option", [("--for", "soon"), ("--for", "0"), ("--reason", "two\nlines"), ("--reason", "")])
def test_options_that_make_no_sense_are_2_and_named(run_once: Callable[[], None], option: tuple) -> None:
    run_once()
    done = cronguard("pause", "j", *option)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert option[0] in done.stderr


@pytest.fixture
def run_once() -> Callable[[], None]:
    return lambda: None if cronguard("run", "j", *RUN, "true").returncode == 0 else pytest.fail("it did not run")
