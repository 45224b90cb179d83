"""Completion in real shells: commands, options, choices, jobs; and that a TAB never waits nor says anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, List

import pytest

from cronguard.cli.completion import SHELLS
from cronguard.cli.main import execute
from cronguard.cli.registry import COMMANDS
from cronguard.store.backend import SqlStore
from tests.support.claims import claimed, finish, request
from tests.support.cronguard import cronguard
from tests.support.postgres import free_port
from tests.support.stores import unavailable

# What bash does at a TAB: split the line, call the function, show COMPREPLY. `=` and `:` are words of their own there.
_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_cronguard cronguard "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
Tab = Callable[..., List[str]]


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`cronguard` as a command, which writes down that it was started."""
    folder = tmp_path / "bin"
    folder.mkdir()
    started = tmp_path / "started"
    (folder / "cronguard").write_text(f'#!/bin/sh\necho x >>{started}\nexec {sys.executable} -m cronguard "$@"\n')
    (folder / "cronguard").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return started


@pytest.fixture
def script(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[[str], Path]:
    def printed(shell: str) -> Path:
        assert execute(["--show-completion", shell]) == 0
        out, err = capfd.readouterr()
        assert err == ""
        path = tmp_path / f"cronguard.{shell}"
        path.write_text(out)
        return path

    return printed


@pytest.fixture
def tab(script: Callable[[str], Path], on_path: Path) -> Tab:
    bash = shutil.which("bash")
    if bash is None:
        unavailable("no bash")
    path = script("bash")

    def pressed(*words: str) -> List[str]:
        line = [bash, "--norc", "-c", _BASH, "bash", str(path), "cronguard", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=20)
        assert done.stderr.replace("bash: line 1: compopt: not currently executing completion function\n", "") == ""
        return done.stdout.split()

    return pressed


@pytest.fixture
def job(sqlite_url: str, opened: Callable[[str], SqlStore], monkeypatch: pytest.MonkeyPatch) -> str:
    store = opened(sqlite_url)
    store.finish(claimed(store, request(job="nightly-export")), finish(), 10)
    monkeypatch.setenv("CRONGUARD_STORE", sqlite_url)
    return "nightly-export"


def test_commands_options_and_choices_come_without_starting_anything(tab: Tab, on_path: Path) -> None:
    assert tab("") == list(COMMANDS)
    assert tab("hist") == ["history"]
    assert tab("--log-format", "json", "hist") == ["history"]
    assert tab("run", "j", "--time") == ["--timezone", "--timeout"]
    assert tab("run", "j", "--on-conflict", "") == ["skip", "wait", "fail"]
    assert tab("run", "j", "--on-conflict", "=", "w") == ["wait"]
    assert tab("run", "j", "--on-conflict", "=") == ["skip", "wait", "fail"]
    assert tab("--log-format", "") == ["text", "json"]
    assert tab("status", "--log-format", "t") == ["text"]
    assert tab("run", "j", "--timeout", "") == []
    assert "--help" in tab("prune", "-")
    assert tab("--show-completion", "") == list(SHELLS)
    assert not on_path.exists()


def test_jobs_come_from_the_store_where_a_command_takes_one(tab: Tab, job: str) -> None:
    assert tab("history", "") == [job]
    assert tab("status", "other", "--json", "night") == [job]
    assert tab("run", "x") == []


def test_command_behind_dashes_is_completed_as_a_command(tab: Tab, on_path: Path) -> None:
    assert "cronguard" in tab("run", "j", "--timeout", "5s", "--", "cronguar")
    assert tab("run", "j", "--", "ls", "--time") == []
    assert not on_path.exists()


def test_jobs_of_the_config_file_come_also_without_a_store(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[jobs.billing]\ncommand = ["true"]\n[jobs.audit]\ncommand = ["true"]\n')
    nowhere = f"postgresql://127.0.0.1:{free_port()}/x"
    assert execute(["--list-jobs", "--config", str(file), "--store", nowhere]) == 0
    assert capfd.readouterr() == ("audit\nbilling\n", "")


@pytest.mark.parametrize("store", ["nonsense", "file:/no/such/file", "sqlite:/dev/null/x", "postgresql://%zz"])
def test_listing_jobs_is_silent_whatever_is_wrong(store: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["--list-jobs", "--store", store]) == 0
    assert capfd.readouterr() == ("", "")


def test_listing_jobs_does_not_wait_for_a_store_that_is_silent() -> None:
    """Half a second, and what it takes to start."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        done = cronguard("--list-jobs", "--store", f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x")
        took = time.monotonic() - began
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert took < 5.0


def test_name_that_a_shell_would_carry_out_is_not_listed(
    sqlite_url: str, opened: Callable[[str], SqlStore], capfd: pytest.CaptureFixture[str]
) -> None:
    """`compgen -W` expands its words, and a table can be written by others."""
    store = opened(sqlite_url)
    for name in ("$(touch x)", "plain"):
        store.finish(claimed(store, request(job=name, lock=name)), finish(), 10)
    assert execute(["--list-jobs", "--store", sqlite_url]) == 0
    assert capfd.readouterr().out == "plain\n"


def test_unknown_shell_gets_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["--show-completion", "bahs"]) == 2
    assert "did you mean bash?" in capfd.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_text_is_one_that_the_shell_reads(shell: str, script: Callable[[str], Path]) -> None:
    if shutil.which(shell) is None:
        unavailable(f"no {shell}")
    subprocess.run([shell, "-n", str(script(shell))], check=True, timeout=20)


def test_fish_completes_commands_options_choices_and_jobs(
    script: Callable[[str], Path], on_path: Path, job: str
) -> None:
    if shutil.which("fish") is None:
        unavailable("no fish")
    path = script("fish")

    def pressed(line: str) -> List[str]:
        code = f"source {path}; complete -C '{line}'"
        shell = ["fish", "--no-config", "-c", code]
        done = subprocess.run(shell, capture_output=True, text=True, check=True, timeout=20)
        assert done.stderr == ""
        return [each.split("\t")[0] for each in done.stdout.splitlines()]

    assert set(pressed("cronguard ")) == set(COMMANDS)
    assert pressed("cronguard hist") == ["history"]
    assert set(pressed("cronguard run j --on-conflict ")) == {"skip", "wait", "fail"}
    assert "--timeout" in pressed("cronguard run j --time")
    assert pressed("cronguard history ") == [job]
