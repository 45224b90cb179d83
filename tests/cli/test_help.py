"""Every command explains itself with an example that works, and every mistake gets the nearest right word."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Callable

import pytest

from cronguard.cli.main import execute
from cronguard.cli.registry import COMMANDS
from cronguard.cli.tree import Node, command_line
from cronguard.store.backend import SqlStore
from tests.support.claims import claimed, finish, request

LEAVES = [node for node in command_line().walk() if not node.verbs]
IDS = [" ".join(node.path) for node in LEAVES]


def test_every_command_of_the_registry_is_known() -> None:
    assert [node.name for node in command_line().verbs] == list(COMMANDS)


@pytest.mark.parametrize("node", LEAVES, ids=IDS)
def test_help_of_a_command_ends_with_its_examples(node: Node, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute([*node.path, "--help"]) == 0
    out = capfd.readouterr().out
    text, _, examples = out.partition("\n  Examples:\n")
    assert text.startswith(f"Usage: cronguard {' '.join(node.path)} ")
    assert examples.splitlines() == [f"    {line}" for line in node.examples]
    assert node.examples


@pytest.mark.parametrize("node", LEAVES, ids=IDS)
def test_example_of_a_command_is_a_line_that_it_takes(node: Node) -> None:
    """Every word with a dash in front is an option of that command, or stands behind `--`."""
    for example in node.examples:
        line = example[example.index("cronguard ") :]
        words = shlex.split(re.split(r" \| | > |\)", line)[0])[1:]
        assert tuple(words[: len(node.path)]) == node.path
        own = words[: words.index("--")] if "--" in words else words
        flags = {word.partition("=")[0] for word in own if word.startswith("-") and word != "-"}
        assert flags <= {flag for option in node.options for flag in option.flags}


@pytest.mark.parametrize("node", LEAVES, ids=IDS)
def test_slip_in_an_option_gets_the_right_one(node: Node, capfd: pytest.CaptureFixture[str]) -> None:
    for option in node.options:
        flag = option.flags[0]
        words = [*node.path, flag[:-1] + flag[-2:] + "q"]
        execute(words)
        (told,) = capfd.readouterr().err.splitlines()
        assert f"no such option: {words[-1]}" in told
        assert flag in told.partition("did you mean ")[2], told


@pytest.mark.parametrize("name", COMMANDS)
def test_slip_in_a_commands_name_gets_the_right_one(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    slip = name[:-1] + name[-2:]
    execute([slip])
    told = capfd.readouterr().err
    assert f"no such command: {slip}" in told
    assert name in told.partition("did you mean ")[2]


def test_option_before_the_commands_name_is_told_its_place(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["--json", "status"]) == 2
    assert "it goes behind the command's name: cronguard status --json" in capfd.readouterr().err


def test_job_that_is_nearly_in_the_config_file_is_doubted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is no mistake to ask for the settings of a job that the file does not have."""
    file = tmp_path / "c.toml"
    file.write_text('[jobs.nightly-export]\ncommand = ["true"]\n')
    for name, doubts in (("nightly-exprot", 1), ("other", 0), ("nightly-export", 0)):
        assert execute(["config", name, "--config", str(file)]) == 0
        err = capfd.readouterr().err
        assert err.count("did you mean nightly-export?\n") == err.count("\n") == doubts


TAKE_JOBS = [node for node in LEAVES if node.takes_job and node.name in COMMANDS]
# A name that is not known yet is no mistake to these.
MAY_BE_NEW = {"run", "config", "once", "backfill", "items", "checkpoint"}


@pytest.mark.parametrize(
    "node", [node for node in TAKE_JOBS if node.path[0] not in MAY_BE_NEW], ids=lambda node: " ".join(node.path)
)
def test_slip_in_a_jobs_name_gets_the_right_one(
    node: Node, sqlite_url: str, opened: Callable[[str], SqlStore], monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    store = opened(sqlite_url)
    store.finish(claimed(store, request(job="nightly-export")), finish(), 10)
    monkeypatch.setenv("CRONGUARD_STORE", sqlite_url)
    execute([*node.path, "nightly-exprot"])
    told = capfd.readouterr().err
    assert "no such job: nightly-exprot" in told
    assert "did you mean nightly-export?" in told
