"""`cronguard checkpoint`: values go forward, and nobody is told 0 for what was not set."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict

import pytest

from tests.support.cronguard import cronguard, environment

OURS = f"{sys.executable} -m cronguard checkpoint"


def checkpoint(*words: str, **more: Any) -> Any:
    return cronguard("checkpoint", *words, "--job", "sync", **more)


def in_a_run(script: str, env: Dict[str, str]) -> Any:
    return cronguard("run", "sync", "--timeout", "1m", "--shell", "--", script, env=env)


def test_value_is_set_read_listed_and_cleared() -> None:
    unset = checkpoint("get", "cursor")
    assert (unset.returncode, unset.stdout, unset.stderr) == (1, "", "cronguard: checkpoint cursor: not set\n")
    assert checkpoint("get", "cursor", "--default", "0").stdout == "0\n"
    assert checkpoint("set", "cursor", "418").returncode == 0
    assert checkpoint("get", "cursor", "--default", "0").stdout == "418\n"
    assert json.loads(checkpoint("get", "cursor", "--json").stdout)["value"] == "418"
    (listed,) = json.loads(checkpoint("list", "--json").stdout)["checkpoints"]
    assert (listed["name"], listed["value"], listed["run_id"]) == ("cursor", "418", None)
    assert "418" in checkpoint("list").stdout
    assert [checkpoint("clear", "cursor").returncode for _ in range(2)] == [0, 1]


def test_value_comes_from_stdin_as_it_is_up_to_64_kib() -> None:
    text = "é\n" + "x" * (65536 - 3)
    assert checkpoint("set", "page", "-", input=text + "\n").returncode == 0
    assert checkpoint("get", "page").stdout == text + "\n"
    for bad in (text + "yy", "a\0b"):
        refused = checkpoint("set", "page", "-", input=bad)
        assert refused.returncode == 2
        assert refused.stderr.startswith("cronguard: VALUE: ")
    assert checkpoint("get", "page").stdout == text + "\n"


def test_expected_value_decides_and_the_present_one_is_told() -> None:
    assert checkpoint("set", "cursor", "1", "--expect", "").returncode == 0
    assert checkpoint("set", "cursor", "2", "--expect", "1").returncode == 0
    refused = checkpoint("set", "cursor", "3", "--expect", "1")
    assert refused.returncode == 75
    assert "it is '2', set " in refused.stderr
    assert checkpoint("get", "cursor").stdout == "2\n"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_runs_never_go_back_and_outsiders_do_not_interfere(kind: str, request: pytest.FixtureRequest) -> None:
    env = environment(CRONGUARD_STORE=request.getfixturevalue(f"{kind}_url"))
    outside = f"env -u CRONGUARD_JOB -u CRONGUARD_FENCE {OURS} set cursor 0 --job sync; echo $?"
    first = in_a_run(f"env > first; {OURS} set cursor 1; {outside}", env)
    assert first.stdout == "75\n"
    assert "of the job is under way" in first.stderr
    with open("first", encoding="utf-8") as lines:
        old = dict(line.rstrip("\n").split("=", 1) for line in lines if line.startswith("CRONGUARD_"))
    assert in_a_run(f"{OURS} set cursor 2", env).returncode == 0
    late = cronguard("checkpoint", "set", "cursor", "1", env={**env, **old})
    assert late.returncode == 75
    assert "no longer holds the lock" in late.stderr
    assert checkpoint("get", "cursor", env=env).stdout == "2\n"
    by_hand = checkpoint("set", "cursor", "1", env=env)
    assert by_hand.returncode == 0
    assert "checkpoint cursor: was '2', set " in by_hand.stderr, "a person is told what a run had set"


def test_value_that_looks_like_an_option_goes_behind_dashes() -> None:
    mistaken = checkpoint("set", "cursor", "-x7")
    assert mistaken.returncode == 2
    assert "a name or value that begins with - goes behind --" in mistaken.stderr
    assert cronguard("checkpoint", "set", "--job", "sync", "cursor", "--", "-x7").returncode == 0
    assert checkpoint("get", "cursor").stdout == "-x7\n"


def test_what_makes_no_sense_is_one_line() -> None:
    for words, code, said in (
        (("get", "a\nb", "--job", "sync"), 2, "NAME: 'a\\nb'"),
        (("get", "a"), 2, "JOB: none named"),
        (("get", "a", "--job", "sync", "--store", "sqlite:/dev/null/x"), 125, "/dev/null"),
    ):
        done = cronguard("checkpoint", *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
        assert said in done.stderr
