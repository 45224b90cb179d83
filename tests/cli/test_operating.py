"""`prune` by hand and after runs; what a row's age and number decide is the store's (tests/contract)."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Callable, Dict

import pytest

from cronguard.cli.main import execute
from cronguard.pipeline import tidying
from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store
from cronguard.store.worker import StoreWorker
from tests.support import claims
from tests.support.cronguard import environment, history

ONCE = ("--timeout", "60s", "--", "true")
LONG_AGO = datetime(2020, 1, 1, tzinfo=timezone.utc)
# Every run tidies; what is loaded when the command is over must have been loaded before it.
TIDY_ALWAYS = """
import json, sys
from cronguard.cli.main import execute
from cronguard.pipeline import running, tidying

tidying.ONE_IN = 1
at_start = []
begin = running.supervise
def noting(*args, **kwargs):
    at_start.extend(sys.modules)
    return begin(*args, **kwargs)
running.supervise = noting
code = execute(sys.argv[1:])
print(json.dumps({"code": code, "late": sorted(set(sys.modules) - set(at_start))}))
"""


def fill(store: SqlStore, job: str, rows: int) -> None:
    """So many runs of a job long ago, without a key that anybody could ask for again."""
    for number in range(rows):
        request = claims.request(
            f"k{number}", job, facts=claims.facts(job, key="none", schedule=None), lock=job, keyed=False,
            now_utc=LONG_AGO + timedelta(hours=number),
        )  # fmt: skip
        claim = claims.claimed(store, request)
        assert store.finish(claim, claims.finish(finished_at_utc=LONG_AGO + timedelta(hours=number, minutes=1)), 10)


@pytest.fixture
def old_runs(sqlite_url: str, opened: Callable[[str], SqlStore], monkeypatch: pytest.MonkeyPatch) -> str:
    """Five old runs of `j`, two of `k`."""
    monkeypatch.setenv("CRONGUARD_STORE", sqlite_url)
    store = opened(sqlite_url)
    fill(store, "j", 5)
    fill(store, "k", 2)
    return sqlite_url


@pytest.mark.usefixtures("old_runs")
def test_prune_says_how_many_and_keeps_the_last_success(capfd: pytest.CaptureFixture[str]) -> None:
    """FR-67: two years old, and still what `check` and `status` go by."""
    assert execute(["prune"]) == 0
    assert capfd.readouterr().out == "j: 4 rows\nk: 1 rows\npruned 5 rows of 2 jobs\n"
    assert [row["status"] for row in history("j")] == ["success"]
    assert execute(["prune"]) == 0
    assert capfd.readouterr().out == "pruned 0 rows of 2 jobs\n"


@pytest.mark.usefixtures("old_runs")
def test_prune_by_job_age_and_number(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["prune", "j", "--older-than", "36500d", "--keep", "3"]) == 0
    assert capfd.readouterr().out == "j: 2 rows\npruned 2 rows of 1 jobs\n"
    assert len(history("k")) == 2
    assert execute(["prune", "j", "--older-than", "1h"]) == 0
    assert len(history("j")) == 1


@pytest.mark.usefixtures("old_runs")
@pytest.mark.parametrize(
    ("words", "code", "named"),
    [(["x"], 1, "no such job: x"), (["--older-than", "soon"], 2, "--older-than"), (["--keep", "-1"], 2, "--keep")],
)
def test_prune_of_nonsense_is_one_line_and_nothing_goes(
    words: list, code: int, named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(["prune", *words]) == code
    err = capfd.readouterr().err
    assert (err.count("\n"), named in err) == (1, True)
    assert len(history("j")) == 5


def test_prune_of_an_empty_store_is_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["prune"]) == 0
    assert capfd.readouterr().out == "pruned 0 rows of 0 jobs\n"


def test_runs_tidy_up_after_themselves(old_runs: str) -> None:
    """FR-67: a bounded step, after which the code is the command's and nothing was said. FR-34: nothing loaded late."""
    line = [sys.executable, "-c", TIDY_ALWAYS, "run", "j", "--store", old_runs, "--timeout", "60s", "--", "sh", "-c"]
    done = subprocess.run([*line, "exit 3"], env=environment(), capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["code"], told["late"]) == (3, [])
    assert "prune" not in done.stderr
    assert sorted(row["status"] for row in history("j")) == ["failed", "success"]
    assert len(history("k")) == 2


def test_skips_tidy_up_too(old_runs: str) -> None:
    """A job that only ever skips grows as well."""
    assert execute(["pause", "j"]) == 0
    line = [sys.executable, "-c", TIDY_ALWAYS, "run", "j", "--store", old_runs, *ONCE]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["code"] == 75
    assert sorted(row["status"] for row in history("j")) == ["skipped", "success"]


@pytest.mark.parametrize("chance", [b"\x00", b"\x01"])
def test_tidying_is_left_to_chance_and_bounded(chance: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Dict[str, object] = {}

    class Noting:
        """Of a store only what tidying may use."""

        name, leased, warnings = "noting", False, ()

        def prune(self, *what: object) -> int:
            asked.update(zip(("job", "before", "keep", "keep_skips", "limit", "within_s"), what))
            return 0

        def close(self) -> None:
            pass

    monkeypatch.setattr(tidying.os, "urandom", lambda _: chance)
    worker = StoreWorker(Noting())  # type: ignore[arg-type]
    now_utc = datetime(2026, 1, 20, tzinfo=timezone.utc)
    s = SimpleNamespace(spec=SimpleNamespace(job="j"), store=worker, now=lambda: now_utc)
    tidying.tidy(s)  # type: ignore[arg-type]
    worker.close(1.0)
    expected = {
        "job": "j", "before": now_utc - timedelta(days=90), "keep": 10_000, "keep_skips": 1_000, "limit": 500,
        "within_s": 0.2,
    }  # fmt: skip
    assert asked == ({} if chance[0] % tidying.ONE_IN else expected)


def test_store_that_is_down_does_not_matter_to_tidying(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """P7."""
    monkeypatch.setattr(tidying, "ONE_IN", 1)
    worker = StoreWorker(open_store(f"sqlite:{tmp_path}/no/such/cronguard.db"))
    s = SimpleNamespace(spec=SimpleNamespace(job="j"), store=worker, now=lambda: LONG_AGO)
    tidying.tidy(s)  # type: ignore[arg-type]
    worker.close(1.0)
