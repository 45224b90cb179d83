"""`items add`, `list`, `show`, `retry` and `forget` in the shell, and `items` in Python."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from typing import Any, Dict

import pytest

from cronguard.api import items
from cronguard.errors import CronguardError, RunLost
from tests.support.cronguard import cronguard

JOB = "mails"


def listing(*words: str) -> Dict[str, Any]:
    done = cronguard("items", "list", JOB, "--json", "--limit", "100000", *words)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def keys_of(document: Dict[str, Any]) -> list:
    return [item["key"] for item in document["items"]]


def test_keys_come_from_the_line_or_from_stdin_and_count_once() -> None:
    assert cronguard("items", "add", JOB, "b", "a", "b").stdout == "added=2 known=1\n"
    assert cronguard("items", "add", JOB, input="a\n\nc d\n").stdout == "added=1 known=1\n"
    one = cronguard("items", "add", JOB, "-", "--group", "g", "--payload", "p", input="e")
    assert one.stdout == "added=1 known=0\n"
    assert cronguard("items", "add", JOB).stdout == "added=0 known=0\n"  # an empty stdin
    assert keys_of(listing()) == ["b", "a", "c d", "e"]
    (item,) = listing("--group", "g")["items"]
    assert (item["group"], item["payload"], item["status"], item["attempts"]) == ("g", "p", "waiting", 0)


def test_many_lines_go_in_by_the_thousand_and_a_bad_one_loses_nothing() -> None:
    lines = [*map(str, range(1500)), "bad\tkey", "late"]
    done = cronguard("items", "add", JOB, "-", input="\n".join(lines))
    assert (done.returncode, done.stdout) == (125, "")
    assert "line 1501: contains control characters (before that: added=1500 known=0)" in done.stderr
    assert listing("--limit", "1")["counts"]["waiting"] == 1500


def test_lines_of_json_bring_everything_with_them() -> None:
    lines = [
        '{"key": "a", "group": "g", "payload": {"to": "ä"}}',
        '{"key": "b", "not_before": "2099-01-01T12:00Z"}',
        '{"key": "c", "not_before": "2h"}',
    ]
    now = datetime.now(timezone.utc)
    assert cronguard("items", "add", JOB, "--json-lines", input="\n".join(lines)).stdout == "added=3 known=0\n"
    a, c, b = listing()["items"]
    assert (a["group"], a["payload"]) == ("g", '{"to":"ä"}')
    assert b["available_at_utc"] == "2099-01-01T12:00:00+00:00"
    assert timedelta(hours=1.9) < datetime.fromisoformat(c["available_at_utc"]) - now < timedelta(hours=2.1)
    assert listing()["counts"] == {"waiting": 3, "ready": 1, "reserved": 0, "done": 0, "dead": 0}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "no job", "k"], "JOB: 'no job': not a job name"),
        (["add", JOB, ""], "KEY: '': not 1 to 500 characters"),
        (["add", JOB, "k", "--not-before", "20270101"], "neither a date and time nor a duration"),
        (["add", JOB, "k", "--json-lines"], "--json-lines: goes without keys"),
        (["list", JOB, "--status", "ded"], "did you mean dead"),
        (["retry", JOB], "KEY: either name items"),
        (["forget", JOB, "k", "--done"], "KEY: either name items"),
        (["forget", JOB, "k", "--older-than", "1d"], "--older-than: goes without keys"),
        (["work", JOB, "--budgt", "3"], "did you mean --budget"),
        (["work", JOB, "x"], "the command goes behind --, as in cronguard items work JOB -- CMD"),
        (["work", JOB, "--"], "CMD: empty"),
        (["drop", JOB], "no such command 'drop'"),
    ],
)
def test_what_is_asked_wrongly_is_one_line_and_125(words: list, why: str) -> None:
    done = cronguard("items", *words)
    assert (done.returncode, done.stdout) == (125, "")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_not_there_is_one_line_and_1() -> None:
    """README, exit codes: as for a run that does not exist."""
    cronguard("items", "add", JOB, "k")
    for more, said in (((), "no such item: 'nope'"), (("--ledger",), "no such effect: 'nope'")):
        done = cronguard("items", "show", JOB, "nope", *more)
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr


def test_dead_letters_are_listed_shown_retried_and_forgotten() -> None:
    cronguard("items", "add", JOB, "a", "b", "c")
    cronguard("items", "work", JOB, "--attempts", "1", "--", "sh", "-c", "echo no such user; [ $0 = c ]", "{key}")
    assert keys_of(listing("--status", "dead")) == ["a", "b"]
    shown = cronguard("items", "show", JOB, "a").stdout
    assert "the command left with exit code 1: no such user" in shown
    item = json.loads(cronguard("items", "show", JOB, "a", "--json").stdout)["item"]
    assert (item["status"], item["attempts"]) == ("dead", 1)
    some = cronguard("items", "retry", JOB, "a", "nope")
    assert (some.returncode, some.stdout) == (1, "retried=1\n")
    assert "'nope': not there" in some.stderr
    assert cronguard("items", "retry", JOB, "--dead").stdout == "retried=1\n"
    assert [(item["key"], item["attempts"]) for item in listing("--status", "waiting")["items"]] == [("a", 0), ("b", 0)]
    assert cronguard("items", "forget", JOB, "--done", "--older-than", "1d").stdout == "forgotten=0\n"
    assert cronguard("items", "forget", JOB, "--done").stdout == "forgotten=1\n"
    assert cronguard("items", "forget", JOB, "a").stdout == "forgotten=1\n"
    assert keys_of(listing()) == ["b"]


def test_table_counts_below_and_hides_no_control_characters() -> None:
    cronguard("items", "add", JOB, "a", "--payload", "x\x1b[2J\n" + "y" * 100)
    text = cronguard("items", "list", JOB).stdout
    assert "\\x1b[2J" in text
    assert text.endswith("waiting=1 ready=1 reserved=0 done=0 dead=0\n")
    assert cronguard("items", "list", "other").stdout == "waiting=0 ready=0 reserved=0 done=0 dead=0\n"


# --- in Python ---


def test_python_adds_and_drains_the_same_queue() -> None:
    later = items.NewItem("later", "", "", datetime.now(timezone.utc) + timedelta(hours=1))
    assert items.add(["a", "b", later], job=JOB, payload="p") == (3, 0)
    assert items.add(["a"], job=JOB, not_before=timedelta(hours=1)) == (0, 1)
    seen = []

    def handler(work: items.Work) -> None:
        seen.append((work.key, work.payload, work.attempt))
        if work.key == "b":
            raise ValueError("no")

    tally = items.drain(handler, job=JOB, batch=1)
    assert (tally.done, tally.failed, tally.left) == (1, 1, 2)
    assert seen == [("a", "p", 1), ("b", "p", 1)]
    by_key = {item["key"]: item for item in listing()["items"]}
    assert (by_key["b"]["status"], by_key["b"]["message"]) == ("waiting", "ValueError: no")
    assert by_key["a"]["status"] == "done"


def test_interrupted_function_gives_its_item_back() -> None:
    items.add(["a", "b"], job=JOB)

    def handler(_work: items.Work) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        items.drain(handler, job=JOB)
    assert [(item["status"], item["attempts"]) for item in listing()["items"]] == [("waiting", 0)] * 2
    assert listing()["counts"]["ready"] == 2


def test_python_is_refused_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (
        lambda: items.add(["a"]),
        lambda: items.add(["a\n"], job=JOB),
        lambda: items.add(["a"], job=JOB, not_before=datetime(2099, 1, 1)),
        lambda: items.drain(print, job=JOB, batsch=3),
        lambda: items.drain(print, job=JOB, parallel=3),
        lambda: items.drain(print, job=JOB, budget=1, timeout=2),
    ):
        with pytest.raises(CronguardError):
            wrong()
    items.add(["a"], job=JOB)
    monkeypatch.setenv("CRONGUARD_RUN_ID", "gone")
    monkeypatch.setenv("CRONGUARD_FENCE", "1")
    with pytest.raises(RunLost):
        items.drain(print, job=JOB)


def test_budget_bounds_when_the_last_item_begins() -> None:
    items.add(map(str, range(100)), job=JOB)
    began: list = []
    start = time.monotonic()

    def handler(_work: items.Work) -> None:
        began.append(time.monotonic() - start)
        time.sleep(0.05)

    tally = items.drain(handler, job=JOB, budget=1, timeout="600ms", batch=5)
    assert tally.ended_by == "budget"
    assert tally.done == len(began)
    assert max(began) < 0.4 + 0.3  # to begin with, the settings and the store want some time themselves
    assert listing("--limit", "1")["counts"]["ready"] == 100 - tally.done
