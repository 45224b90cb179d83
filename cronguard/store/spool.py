"""Finishes that the store did not take in time, kept on this host until it does.

A report is one file, written whole (fsync, rename, fsync of the directory), named by its run id, so that delivering
twice or spooling twice is harmless. The next `run`, `check` or `doctor` on this host delivers them, a few at a time.
It never decides anything: what a late report may change is the store's rule.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any, Callable, Dict, List, Tuple, Type

from cronguard.core.model import (
    Alerts,
    ClaimRequest,
    Finish,
    JobFacts,
    Outcome,
    Owner,
    Process,
    Report,
    ScheduleText,
    Slot,
)
from cronguard.errors import StoreError

_TYPES: Dict[str, Type[Any]] = {
    kind.__name__: kind
    for kind in (Alerts, ClaimRequest, Finish, JobFacts, Outcome, Owner, Process, Report, ScheduleText, Slot)
}


class Spool:
    """The reports of one store on this host. `directory` is created (0700) with the first report."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def save(self, report: Report) -> str:
        """Keep the report durably; returns its path. OSError when this host cannot keep it either."""
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        path = os.path.join(self.directory, f"{report.request.run_id}.json")
        draft = f"{path}.{os.getpid()}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(_plain(report), file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, path)
        _sync_directory(self.directory)
        return path

    def pending(self) -> List[str]:
        """Paths of undelivered reports, oldest run first (run ids are ordered by time); empty without a spool."""
        try:
            names = os.listdir(self.directory)
        except OSError:
            return []
        return [os.path.join(self.directory, name) for name in sorted(names) if name.endswith(".json")]

    def reports(self) -> List[Report]:
        """The undelivered reports that can be read."""
        found = []
        for path in self.pending():
            try:
                found.append(_load(path))
            except (OSError, ValueError, TypeError, KeyError):
                continue
        return found

    def deliver(self, take: Callable[[Report], None], limit: int, time_left: Callable[[], float]) -> Tuple[int, int]:
        """Hand pending reports to `take`, at most `limit` and while `time_left()` is positive; (delivered, set aside).

        What cannot be read, or what a healthy store refuses for good (StoreError), is set aside as `*.bad`: kept, but
        no longer in the way. StoreDown passes to the caller and leaves everything as it was.
        """
        delivered = aside = 0
        for path in self.pending()[:limit]:
            if time_left() <= 0:
                break
            try:
                report = _load(path)
            except FileNotFoundError:
                continue  # another invocation delivered it
            except (OSError, ValueError, TypeError, KeyError):
                aside += _set_aside(path)
                continue
            try:
                take(report)
            except StoreError as error:
                if type(error) is not StoreError:
                    raise
                aside += _set_aside(path)
                continue
            _remove(path)
            delivered += 1
        return delivered, aside


def _load(path: str) -> Report:
    with open(path, encoding="utf-8") as file:
        value = _value(json.load(file))
    if not isinstance(value, Report):
        raise TypeError(f"not a report: {path}")
    return value


def _plain(value: Any) -> Any:
    """JSON with the type's name beside the fields: a version that knows other fields can still read it."""
    if hasattr(value, "_fields"):
        fields = {name: _plain(getattr(value, name)) for name in value._fields}
        return {"type": type(value).__name__, "fields": fields}
    if isinstance(value, datetime):
        return {"type": "datetime", "iso": value.isoformat()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_value(item) for item in plain)
    if not isinstance(plain, dict):
        return plain
    if plain["type"] == "datetime":
        return datetime.fromisoformat(plain["iso"])
    kind = _TYPES[plain["type"]]
    return kind(**{name: _value(item) for name, item in plain["fields"].items() if name in kind._fields})


def _set_aside(path: str) -> int:
    try:
        os.rename(path, f"{path}.bad")
    except OSError:
        return 0
    return 1


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
