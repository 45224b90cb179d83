"""`drill`: what it proves, that it can fail, and that nothing is left of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.support.cronguard import cronguard, environment
from tests.support.pingserver import PingServer

pytestmark = pytest.mark.usual

GUARDS = ["double slot", "overlap", "timeout", "killed supervisor", "failure", "recovery"]
WEAK = """
from cronguard.store import claiming
from cronguard.store.flock import HostLock
claiming.obstacle = lambda *_: None
HostLock.try_acquire = lambda *_: True
"""


def drilled(*args: str, env: Dict[str, str], code: int = 0) -> Dict[str, Any]:
    ended = cronguard("drill", "--json", *args, env=env)
    assert ended.returncode == code, ended.stderr + ended.stdout
    result: Dict[str, Any] = json.loads(ended.stdout)
    assert [step["guard"] for step in result["steps"]] == GUARDS
    return result


def failed(result: Dict[str, Any]) -> List[str]:
    return [step["guard"] for step in result["steps"] if step["state"] == "failed"]


def test_every_guard_holds_and_nothing_is_left(store_url: str, opened: Any) -> None:
    result = drilled(env=environment(CRONGUARD_STORE=store_url))
    assert failed(result) == []
    assert result["left"] == ""
    assert result["took_s"] < 60
    store = opened(store_url)
    assert store.jobs((), 10) == []
    assert store.history(result["job"], 10, (), None, 10) == []
    assert store.incidents(10) == []
    if store_url.startswith("sqlite:"):
        path = Path(store_url.partition(":")[2])
        assert list(path.with_name("cronguard.db.locks").iterdir()) == []
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT count(*) FROM locks").fetchall() == [(0,)]


def test_heartbeat_goes_red_and_green_and_people_are_told(sqlite_url: str, tmp_path: Path) -> None:
    """FR-48: through the very channels that the config file names, for the job that was asked for."""
    with PingServer() as server, PingServer() as hook:
        config = tmp_path / "config.toml"
        config.write_text(
            f'[defaults]\nquiet = true\n[notify]\nurls = ["http://127.0.0.1:{hook.port}/hook"]\n'
            f'[jobs.billing]\nping = "{server.check_url}"\nping_style = "healthchecks"\n'
        )
        env = environment(CRONGUARD_STORE=sqlite_url, CRONGUARD_CONFIG=str(config))
        assert failed(drilled("--job", "billing", env=env)) == []
        paths = [request.path for request in server.received]
        assert any(path.endswith("/3") for path in paths)
        assert not paths[-1].endswith(("/3", "/fail", "/start"))
        assert [json.loads(request.body)["what"] for request in hook.received] == ["opened", "recovered"]


@pytest.mark.usual
def test_heartbeat_that_is_refused_is_a_failed_guard(sqlite_url: str) -> None:
    with PingServer(statuses=[400] * 100) as server:
        env = environment(CRONGUARD_STORE=sqlite_url, CRONGUARD_PING=server.check_url)
        assert failed(drilled(env=env, code=1)) == ["failure", "recovery"]


@pytest.mark.usual
def test_claim_that_guards_nothing_is_seen(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WEAK)
    path = environment().get("PYTHONPATH", "")
    env = environment(CRONGUARD_STORE=sqlite_url, PYTHONPATH=f"{tmp_path}:{path}".rstrip(":"))
    assert "overlap" in failed(drilled(env=env, code=1))


def test_job_that_the_config_file_lacks_is_one_line(sqlite_url: str) -> None:
    ended = cronguard("drill", "--job", "nobody", env=environment(CRONGUARD_STORE=sqlite_url))
    assert ended.returncode == 2
    assert ended.stderr.startswith("cronguard: --job: nobody: not in the config file")
    assert ended.stderr.count("\n") == 1


def test_store_that_is_down_is_one_line(tmp_path: Path) -> None:
    ended = cronguard("drill", "--store", f"sqlite:{tmp_path}")
    assert ended.returncode == 125
    assert ended.stderr.count("\n") == 1
