"""`from cronguard import once, checkpoint, items`: the command line's rules, without its processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, List

import pytest

from cronguard import checkpoint, items, once
from cronguard.api import session
from cronguard.errors import ConfigError, CronguardError, Refused, RunLost, UsageError
from tests.support.cronguard import cronguard, environment

AT_LEAST = {"effect": "at-least-once"}


@pytest.fixture(autouse=True)
def in_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRONGUARD_JOB", "mails")


def state_of(key: str) -> str:
    with once(key) as begun:
        return begun.state


def test_importing_cronguard_costs_nothing_until_a_name_is_asked_for() -> None:
    script = "import sys, cronguard; print([m for m in sys.modules if m.startswith('cronguard.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(ImportError):
        from cronguard import nothing_of_ours  # type: ignore[attr-defined]  # noqa: F401


def test_block_is_entered_with_true_once() -> None:
    entered: List[bool] = []
    for _ in range(2):
        with once("mail:1") as begun:
            entered.append(bool(begun))
            assert begun.idempotency_key.startswith("effect-")
    assert entered == [True, False]
    assert state_of("mail:1") == "done"


def test_exception_makes_it_failed_and_goes_on_its_way() -> None:
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), once(error.__name__):
            raise error("the server said no")
        assert state_of(error.__name__) == "failed"
    shown = cronguard("items", "show", "mails", "ValueError", "--ledger").stdout
    assert "the server said no" in shown
    with once("ValueError", **AT_LEAST) as begun:
        assert begun.attempt == 2


def test_what_is_under_way_is_refused_at_least_once_and_left_at_most_once() -> None:
    with once("mail:1"):
        with pytest.raises(Refused, match=f"pid {os.getpid()}"), once("mail:1", **AT_LEAST):
            pass
        assert state_of("mail:1") == "under_way"


def test_several_are_kept_at_the_same_time_and_none_afterwards() -> None:
    both = threading.Barrier(2, timeout=30)

    def send(key: str) -> None:
        with once(key) as begun:
            assert begun
            both.wait()

    threads = [threading.Thread(target=send, args=(key,)) for key in ("a", "b")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (state_of("a"), state_of("b")) == ("done", "done")
    assert all(not each._under_way for each in session._sessions.values())


def test_settings_come_from_the_jobs_table(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[jobs.mails]\neffect = "at-least-once"\n')
    with pytest.raises(ValueError, match="no"), once("k", config=str(config)):
        raise ValueError("no")
    with once("k", config=str(config)) as begun:
        assert begun
    with pytest.raises(ConfigError, match="--effect: 'twice'"), once("k", effect="twice"):
        pass
    with pytest.raises(UsageError, match="--per-slot"), once("k", per_slot=True):
        pass


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: once(4711).__enter__(), "key: 4711: no str"),
        (lambda: checkpoint.set("cursor", 418), "value: 418: no str"),
        (lambda: checkpoint.set("cursor", "418", expect=417), "expect: 417: no str"),
        (lambda: checkpoint.get(None), "name: None: no str"),
        (lambda: items.add([4711]), "item: 4711: no str"),
        (lambda: items.add([items.NewItem("k", payload=b"x")]), "payload: b'x': no str"),
        (lambda: items.add("mail:4711"), "one text, and each of its letters"),
    ],
)
def test_what_is_no_text_is_told_apart(call: Callable[[], object], said: str) -> None:
    with pytest.raises(CronguardError, match=said):
        call()


def test_run_that_lost_its_lock_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRONGUARD_RUN_ID", "0197f3a2-0000-7000-8000-000000000000")
    monkeypatch.setenv("CRONGUARD_FENCE", "1")
    with pytest.raises(RunLost), once("k"):
        pytest.fail("it was begun")
    with pytest.raises(RunLost):
        checkpoint.set("cursor", "1")


def test_killed_in_the_block_is_unknown_to_the_next_process() -> None:
    """FR-71."""
    script = "import os; from cronguard import once\nwith once('k', effect='at-least-once'): os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", script], env=environment(), check=False)
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(Refused, match="nobody knows whether it happened"), once("k", **AT_LEAST):
        pass
    with once("k", **AT_LEAST, on_unknown="redo") as begun:
        assert begun.attempt == 2


def test_checkpoint_is_kept_and_compared() -> None:
    assert checkpoint.get("cursor") is None
    assert checkpoint.get("cursor", default="0") == "0"
    checkpoint.set("cursor", "418", expect="")
    with pytest.raises(Refused, match="it is '418'"):
        checkpoint.set("cursor", "419", expect="0")
    assert checkpoint.list() == {"cursor": "418"}
    assert checkpoint.list(job="other") == {}
    assert checkpoint.clear("cursor")
    assert not checkpoint.clear("cursor")
