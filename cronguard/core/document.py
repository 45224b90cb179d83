"""The config file's content, checked as a whole: every mistake at once, each with its place and, if near, a suggestion.

A key that is not known is a mistake and never ignored: a `timout` that silently means nothing is how a job runs for
days. A mistake in one job's table is reported to whoever reads the file, not only to that job's next run. Pure: the
document was read elsewhere, and nothing is looked up (`file:` and `env:` stay as they are).
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from cronguard.core import names
from cronguard.core.masking import MASK, mask_text
from cronguard.core.settings import BY_NAME, COMMAND_LINE_ONLY, EXTRAS, ITEMS, NOTIFY, RIVALS, Setting
from cronguard.core.values import is_reference

_WANTED = {
    "text": "a string",
    "duration": "a string such as \"5m\", or whole seconds",
    "size": "a string such as \"64k\", or bytes",
    "number": "a whole number",
    "factor": "a number",
    "flag": "true or false",
}
_NUMERIC = ("duration", "size", "number", "factor")
Table = Mapping[str, object]


def check_document(document: Table, file_name: str) -> Tuple[str, ...]:
    """Every mistake of structure, name, type and single value in the file; empty if there is none."""
    return tuple(f"{file_name}: {problem}" for problem in _problems(document))


def text_of(setting: Setting, raw: object) -> str:
    """A raw value as the user would type it; ValueError for a type that the setting does not take."""
    if isinstance(raw, str) and setting.kind not in ("number", "factor", "flag"):
        return raw
    if isinstance(raw, bool):
        if setting.kind == "flag":
            return "true" if raw else "false"
    elif isinstance(raw, int) and setting.kind in _NUMERIC:
        return str(raw)
    elif isinstance(raw, float) and setting.kind == "factor":
        return repr(raw)
    raise ValueError(f"{type_name(raw)}, not {_WANTED[setting.kind]}")


def type_name(raw: object) -> str:
    """What TOML calls it."""
    for kind, name in ((bool, "a boolean"), (str, "a string"), (int, "an integer"), (float, "a float")):
        if isinstance(raw, kind):
            return name
    return "an array" if isinstance(raw, list) else "a table" if isinstance(raw, Mapping) else "a date or time"


def table_of(document: Table, *path: str) -> Table:
    """The table at that path, empty if there is none."""
    found: object = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _problems(document: Table) -> Iterator[str]:
    checks: Dict[str, Callable[[Table], Iterator[str]]] = {
        "defaults": lambda table: _check_settings("[defaults]", table, ("store", "env")),
        "jobs": _check_jobs,
        "notify": _check_notify,
    }
    for name, table in document.items():
        if name not in checks:
            hint = names.did_you_mean(name, checks) or f"; a job's settings belong in [jobs.{name}]"
            yield f"{name}: unknown table{hint}"
        elif not isinstance(table, Mapping):
            yield f"{name}: {type_name(table)}, not a table"
        else:
            yield from checks[name](table)


def _check_jobs(jobs: Table) -> Iterator[str]:
    for job, table in jobs.items():
        where = f"[jobs.{job}]"
        problem = names.check_job_name(job)
        if problem is not None:
            yield f"[jobs]: {problem}"
        elif not isinstance(table, Mapping):
            yield f"{where}: {type_name(table)}, not a table"
        else:
            yield from _check_settings(where, table, tuple(EXTRAS))
            yield from _check_items(f"[jobs.{job}.items]", table_of(table, "items"))


def _check_settings(where: str, table: Table, extras: Tuple[str, ...]) -> Iterator[str]:
    for name, raw in table.items():
        reason = _reason_against(name, raw, extras)
        if reason is not None:
            yield f"{where} {name}: {reason}"
    for group in RIVALS:
        given = [name for name in group if name in table]
        if len(given) > 1:
            yield f"{where} {' and '.join(given)}: only one of them can be meant"


def _reason_against(name: str, raw: object, extras: Tuple[str, ...]) -> Optional[str]:
    if name in COMMAND_LINE_ONLY:
        return "not a setting for a file; give it on the command line"
    if name in BY_NAME:
        return reason_against(BY_NAME[name], raw)
    if name in extras:
        return _EXTRA_CHECKS[name](raw)
    known = (*BY_NAME, *extras)
    hint = names.did_you_mean(name.replace("-", "_"), known)
    if not hint and isinstance(raw, Mapping):
        hint = "; a job's name that contains a dot needs quotes"
    return f"unknown setting{hint}"


def reason_against(setting: Setting, raw: object) -> Optional[str]:
    """Why that cannot be the setting's value in a file, with the value; None if it can."""
    try:
        text = text_of(setting, raw)
    except ValueError as error:
        return str(error)
    return reason_against_text(setting, text)


def reason_against_text(setting: Setting, text: str) -> Optional[str]:
    """The same for what was typed or stands in a variable, which is text whatever the setting is."""
    try:
        setting.parse(text)
    except ValueError as error:
        return f"{names.shown(mask_text(text) if not setting.secret or is_reference(text) else MASK)}: {error}"
    return None


def _check_store(raw: object) -> Optional[str]:
    if not isinstance(raw, str):
        return f"{type_name(raw)}, not {_WANTED['text']}"
    return None if raw else "empty"


def _check_command(raw: object) -> Optional[str]:
    words = [raw] if isinstance(raw, str) else raw
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "not a list of strings (or, with shell = true, one string)"
    if not words or not words[0]:
        return "empty"
    return "contains a NUL character" if any("\0" in word for word in words) else None


def _check_env(raw: object) -> Optional[str]:
    if not isinstance(raw, Mapping):
        return f"{type_name(raw)}, not a table of strings"
    for name, value in raw.items():
        if not name or "=" in name or "\0" in name:
            return f"{names.shown(name)}: not a variable's name"
        if not isinstance(value, str):
            return f"{name}: {type_name(value)}, not a string"
        if "\0" in value:
            return f"{name}: contains a NUL character"
    return None


def _check_is_table(raw: object) -> Optional[str]:
    return None if isinstance(raw, Mapping) else f"{type_name(raw)}, not a table"


_EXTRA_CHECKS: Dict[str, Callable[[object], Optional[str]]] = {
    "store": _check_store,
    "command": _check_command,
    "env": _check_env,
    "items": _check_is_table,
}


def _check_items(where: str, table: Table) -> Iterator[str]:
    known = {setting.name: setting for setting in ITEMS}
    for name, raw in table.items():
        if name == "command":
            reason = "one string, not a list of strings" if isinstance(raw, str) else _check_command(raw)
        elif name in known:
            reason = reason_against(known[name], raw)
        else:
            reason = f"unknown setting{names.did_you_mean(name.replace('-', '_'), ('command', *known))}"
        if reason is not None:
            yield f"{where} {name}: {reason}"


def _check_urls(raw: object) -> Optional[str]:
    urls: List[object] = raw if isinstance(raw, list) else [None]
    return None if all(isinstance(url, str) and url for url in urls) else "not a list of strings"


def _check_notify(table: Table) -> Iterator[str]:
    for name, raw in table.items():
        if name == "urls":
            reason = _check_urls(raw)
        elif name in NOTIFY:
            reason = reason_against(NOTIFY[name], raw)
        else:
            reason = f"unknown setting{names.did_you_mean(name, ('urls', *NOTIFY))}"
        if reason is not None:
            yield f"[notify] {name}: {reason}"
