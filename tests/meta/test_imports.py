"""What a plain `run` or `once` on SQLite loads, and when: start-up weight is a promise, and so is a replaced venv."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Tuple

import pytest

from tests.support.cronguard import environment

# Design, section 10: none of these unless this very run needs it.
HEAVY = {
    "typer", "rich", "httpx", "psycopg", "asyncio", "logging", "importlib.metadata", "tomllib", "tomli", "dataclasses",
    "pydantic", "http.client", "urllib.request", "cronsim", "oncalendar", "json.tool", "ssl",
}  # fmt: skip

# Notes what is loaded at the moment when the keeper is about to be asked for the command, and at the end.
PROBE = """
import json, sys
from importlib import import_module
from cronguard.cli.main import execute

supervisor = import_module({"run": "cronguard.pipeline.running", "once": "cronguard.commands.once"}[sys.argv[1]])
at_start = []
begin = supervisor.supervise
def noting(*args, **kwargs):
    at_start.extend(sys.modules)
    return begin(*args, **kwargs)
supervisor.supervise = noting

code = execute(sys.argv[1:])
print(json.dumps({"code": code, "start": at_start, "end": list(sys.modules)}))
"""


@pytest.mark.parametrize(
    "words",
    [
        ("run", "job", "--", "true"),
        ("run", "job", "--quiet", "--", "sh", "-c", "echo tail; exit 3"),
        ("run", "job", "--log-format", "json", "-v", "--", "sh", "-c", "exit 3"),
        ("run", "job", "--timeout", "100ms", "--grace", "0", "--", "sleep", "60"),
        ("run", "job", "--", "/no/such/command"),
        ("once", "a key", "--job", "job", "-v", "--", "true"),
        ("once", "a key", "--job", "job", "--", "sh", "-c", "exit 3"),
        ("once", "a key", "--job", "job", "--effect", "at-least-once", "--", "/no/such/command"),
    ],
)
def test_plain_line_loads_nothing_heavy_and_nothing_late(words: Tuple[str, ...]) -> None:
    """FR-34: what is needed after the command must be loaded before it."""
    line = [sys.executable, "-c", PROBE, *words]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["start"], done.stderr
    assert HEAVY.isdisjoint(seen["end"])
    assert set(seen["end"]) == set(seen["start"])
