"""What cronguard says on stderr while a command runs: one line an event, plain words, stable keys.

Warnings and errors always; other news on a terminal, with `-v`, and in the journal, where each line carries its
priority (sd-daemon(3)). Never raises and never waits for long: a stderr that is closed, full or not read must do
nothing to the job (P7). Everything that is needed is loaded at the start.
"""

from __future__ import annotations

import os
import select
import time
from datetime import datetime, timezone
from typing import Callable, Dict, Mapping, Optional

from cronguard.cli.edge import one_line
from cronguard.core.masking import mask_text
from cronguard.core.model import Event
from cronguard.core.names import short_id
from cronguard.core.records import unicode_text

_PRIORITIES = {"error": "<3>", "warning": "<4>", "info": "<6>", "debug": "<7>"}
_PATIENCE_S = 1.0  # for a reader that is slow; after one that is stuck nobody waits again


class Talk:
    """Renders events (it is a `Say`)."""

    def __init__(self, log_format: Optional[str], verbose: bool, environ: Mapping[str, str], fd: int = 2) -> None:
        self._fd = fd
        self._as_json: Optional[Callable[[Event, datetime], str]] = json_renderer() if log_format == "json" else None
        self._in_journal = _is_journal(fd, environ.get("JOURNAL_STREAM", ""))
        self._levels = {"error", "warning"}
        if verbose or self._in_journal or _is_terminal(fd):
            self._levels.add("info")
        if verbose:
            self._levels.add("debug")
        self._patience_s = _PATIENCE_S

    def __call__(self, event: Event) -> None:
        if event.level in self._levels:
            line = self._as_json(event, _now()) if self._as_json else self._line(event)
            self.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def write(self, data: bytes) -> None:
        """Bytes as they are; what cannot be written is lost."""
        left = memoryview(data)
        try:
            while left and select.select([], [self._fd], [], self._patience_s)[1]:
                left = left[os.write(self._fd, left[:4096]) :]
        except (OSError, ValueError):
            return
        if left:
            self._patience_s = 0.0

    def _line(self, event: Event) -> str:
        if self._in_journal:
            return _PRIORITIES.get(event.level, "<6>") + as_text(event)
        return f"{_clock(event)} {as_text(event)}"


def as_text(event: Event) -> str:
    """`lock_acquired job=nightly key=2026-01-20T02:00Z`, the text behind it if there is one."""
    words = [event.name]
    shown = {name: value for name, value in event.fields.items() if value is not None and name != "at"}
    if isinstance(shown.get("run"), str):
        shown["run"] = short_id(str(shown["run"]))
    words += [f"{name}={_value(value)}" for name, value in shown.items()]
    line = " ".join(words)
    return f"{line}: {one_line(mask_text(event.text))}" if event.text else line


def json_renderer() -> Callable[[Event, datetime], str]:
    """One object a line with `ts`, `event`, `level`, the fields, and `text` if there is one."""
    import json  # only for who asks for it, but at the start: at the end its file may be gone

    def as_json(event: Event, now_utc: datetime) -> str:
        at = event.fields.get("at")
        moment = at if isinstance(at, datetime) else now_utc
        record: Dict[str, object] = {"ts": _iso_utc(moment), "event": event.name, "level": event.level}
        for name, value in event.fields.items():
            if name not in record and name != "at":
                record[name] = _plain(value)
        if event.text:
            record["text"] = unicode_text(mask_text(event.text))
        return json.dumps(record, default=str)

    return as_json


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _iso_utc(value)
    return unicode_text(mask_text(value)) if isinstance(value, str) else value


def _value(value: object) -> str:
    if isinstance(value, datetime):
        return value.strftime("%H:%M:%S")
    if isinstance(value, (list, tuple)):
        return ",".join(_value(part) for part in value)
    text = mask_text(str(value))
    if text and text.isprintable() and not any(letter in " \"'=" for letter in text):
        return text
    return '"' + one_line(text).replace('"', '\\"') + '"'


def _clock(event: Event) -> str:
    at = event.fields.get("at")
    return at.strftime("%H:%M:%S") if isinstance(at, datetime) else time.strftime("%H:%M:%S")


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _iso_utc(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _is_journal(fd: int, journal_stream: str) -> bool:
    """systemd.exec(5): the variable names the stream by device and inode; it may be inherited past a redirection."""
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return journal_stream == f"{found.st_dev}:{found.st_ino}"
