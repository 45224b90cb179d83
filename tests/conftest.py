"""What every test gets: a clean environment, its own state directory, and a default one that cannot be touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Generator

import pytest

from tests.support.quiet import a_turn

pytest_plugins = ["tests.support.stores"]

KEPT = {"PATH", "LANG", "CRONGUARD_TEST_DSN", "CRONGUARD_TEST_PG_BIN", "CI", "PYTHONPATH", "VIRTUAL_ENV"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests marked `herd` have the machine to themselves."""
    with a_turn(alone=item.get_closest_marker("herd") is not None):
        return (yield)


@pytest.fixture(autouse=True)
def clean_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No variable of the developer's, no home, a private state directory (0700), a work directory of its own."""
    for name in list(os.environ):
        if name not in KEPT and not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    monkeypatch.setenv("CRONGUARD_STATE_DIR", str(state))
    # A config file that does not exist where it would be looked for: /etc and the home stay out of every test.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    monkeypatch.setenv("HOME", str(tmp_path / "no-home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work
