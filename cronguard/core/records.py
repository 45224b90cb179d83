"""Rows as the JSON of `status`, `history` and `show` has them. Version 1: keys are only ever added.

Instants are ISO 8601 in UTC with `Z`, durations seconds, sizes bytes; what is not known is null.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Dict, Optional

from cronguard.core.model import Process, RunRow

_TOO_LONG_FOR_LISTS = ("tail",)
_SUFFIX = "_utc"


def run_as_json(row: RunRow) -> Dict[str, object]:
    """A run with everything but its output."""
    fields = whole_run_as_json(row)
    for name in _TOO_LONG_FOR_LISTS:
        del fields[name]
    return fields


def whole_run_as_json(row: RunRow) -> Dict[str, object]:
    """A run with the end of its output. Keys are those of the row, instants without `_utc`."""
    return {_key(name): _plain(value) for name, value in row._asdict().items()}


def instant_as_json(at_utc: Optional[datetime]) -> Optional[str]:
    """`2026-01-20T01:00:00.000Z`."""
    if at_utc is None:
        return None
    return at_utc.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def unicode_text(text: str) -> str:
    """Bytes that were no UTF-8 (an argument, a path) as visible escapes; half surrogates are no JSON (RFC 8259)."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _key(name: str) -> str:
    return name[: -len(_SUFFIX)] if name.endswith(_SUFFIX) else name


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return instant_as_json(value)
    if isinstance(value, Process):
        return dict(value._asdict())
    if isinstance(value, str):
        return unicode_text(value)
    return [_plain(part) for part in value] if isinstance(value, tuple) else value
