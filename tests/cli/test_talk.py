"""What is said on stderr: forms, levels, and that nothing goes wrong by it."""

from __future__ import annotations

import json
import os
import pty
import re
import threading
import time
from datetime import datetime, timezone
from typing import Callable, Dict, Optional

import pytest

from cronguard.cli.talk import Talk, as_text
from cronguard.core.model import Event

AT = datetime(2026, 1, 20, 2, 0, 1, tzinfo=timezone.utc)


def said(
    event: Event, log_format: Optional[str] = None, verbose: bool = False, environ: Optional[Dict[str, str]] = None
) -> str:
    reader, writer = os.pipe()
    if environ is not None:
        status = os.fstat(writer)
        environ = {name: text.format(status.st_dev, status.st_ino) for name, text in environ.items()}
    Talk(log_format, verbose, environ or {}, writer)(event)
    os.close(writer)
    with os.fdopen(reader, "rb") as out:
        return out.read().decode()


def test_event_is_one_line_with_time_and_stable_keys() -> None:
    fields = {"at": AT, "job": "nightly", "key": "2026-01-20T02:00Z", "reason": None, "since": AT, "pids": (1, 2)}
    line = said(Event("lock_acquired", "warning", fields, "be quick"))
    assert line == "02:00:01 lock_acquired job=nightly key=2026-01-20T02:00Z since=02:00:01 pids=1,2: be quick\n"
    assert re.match(r"\d\d:\d\d:\d\d x\n", said(Event("x", "error", {})))


def test_values_cannot_pose_as_other_keys_or_lines() -> None:
    text = as_text(Event("x", "info", {"a": 'b c="d"\n\x1b[2J', "e": ""}, "two\nlines"))
    assert text == 'x a="b c=\\"d\\"\\n\\x1b[2J" e="": two\\nlines'


def test_secrets_are_masked() -> None:
    """Promise P9."""
    event = Event("x", "error", {"store": "postgresql://a:s3cret@h/d"}, "cannot reach postgresql://a:s3cret@h/d")
    assert "s3cret" not in said(event)
    assert "s3cret" not in said(event, "json")


def test_json_is_an_object_a_line_with_fields_as_they_are() -> None:
    fields = {"at": AT, "job": "a", "took_s": 1.5, "ts": "x", "since": AT}
    line = said(Event("completed", "warning", fields, "t\n"), "json")
    assert line.count("\n") == 1
    assert json.loads(line) == {
        "ts": "2026-01-20T02:00:01.000Z", "event": "completed", "level": "warning", "job": "a", "took_s": 1.5,
        "since": "2026-01-20T02:00:01.000Z", "text": "t\n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("level", "verbose", "heard"),
    [("error", False, True), ("warning", False, True), ("info", False, False), ("info", True, True),
     ("debug", False, False), ("debug", True, True)],
)  # fmt: skip
def test_scheduled_run_hears_warnings_and_errors_only(level: str, verbose: bool, heard: bool) -> None:
    assert bool(said(Event("x", level, {}), verbose=verbose)) == heard


def test_journal_gets_priorities_and_no_clock() -> None:
    environ = {"JOURNAL_STREAM": "{}:{}"}
    assert said(Event("x", "info", {}), environ=environ) == "<6>x\n"
    assert said(Event("x", "error", {}), environ=environ) == "<3>x\n"


def test_inherited_journal_variable_does_not_count_when_stderr_leads_elsewhere() -> None:
    """systemd.exec(5): the variable stays set when a shell redirects."""
    assert said(Event("x", "info", {}), environ={"JOURNAL_STREAM": "8:12345"}) == ""


def test_terminal_hears_news() -> None:
    master, slave = pty.openpty()
    Talk(None, False, {}, slave)(Event("x", "info", {"job": "a"}))
    assert b"x job=a" in os.read(master, 1000)
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize("where", ["closed", "no reader", "full disk"])
def test_broken_stderr_is_nobodys_trouble(where: str) -> None:
    """Promise P7."""
    reader, writer = os.pipe()
    fd = os.open("/dev/full", os.O_WRONLY) if where == "full disk" else writer
    talk = Talk(None, False, {}, fd)
    if where != "full disk":
        os.close(reader)
    if where == "closed":
        os.close(writer)
    talk(Event("x", "error", {"a": "\udcff"}))
    talk.write(b"tail")


def test_stuck_reader_is_waited_for_once_and_not_for_long() -> None:
    """Promise P5: a pipe that nobody empties."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    fill(lambda: os.write(writer, b"x" * 65536))
    os.set_blocking(writer, True)
    talk = Talk(None, False, {}, writer)
    begun = time.monotonic()
    for _ in range(100):
        talk(Event("x", "error", {}))
    assert time.monotonic() - begun < 5
    os.close(reader)
    os.close(writer)


def fill(write: Callable[[], int]) -> None:
    try:
        while True:
            write()
    except BlockingIOError:
        pass


def test_long_tail_goes_out_whole_to_a_slow_reader() -> None:
    reader, writer = os.pipe()
    got = bytearray()

    def read() -> None:
        while True:
            chunk = os.read(reader, 1000)
            if not chunk:
                return
            got.extend(chunk)

    thread = threading.Thread(target=read)
    thread.start()
    Talk(None, False, {}, writer).write(b"y" * 300_000)
    os.close(writer)
    thread.join(30)
    os.close(reader)
    assert len(got) == 300_000
