"""Which jobs crontab lines and units start through cronguard, and with which options.

Reads what stands there, as core.shell does: a script that calls cronguard inside is not looked into.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.checkup.facts import Entry
from cronguard.core.crontab import Line, parse_crontab
from cronguard.core.names import check_job_name
from cronguard.core.settings import ALERTS, SETTINGS
from cronguard.core.shell import nested_line, simple_commands

_PROGRAM = "cronguard"
_WITH_VALUE = frozenset(("--store", "--config", "--log-format"))
_SETTINGS = {setting.option: setting for setting in (*SETTINGS, *ALERTS)}
_DEEPEST = 3


class CronFile(NamedTuple):
    """A crontab as it was read. `ignored`: why cron passes it over as a whole, empty if it does not."""

    place: str
    flavour: str
    data: bytes
    ignored: str = ""


class Timer(NamedTuple):
    """A systemd timer and the commands of its service. `problem`: why it does not fire."""

    name: str
    commands: Tuple[str, ...]
    problem: str = ""


class Guarded(NamedTuple):
    """One `cronguard` in a command line. `command`: what it guards; `job` empty for a subcommand without one."""

    subcommand: str
    job: str
    options: Mapping[str, str]
    command: Tuple[str, ...]


def entries_of(files: Sequence[CronFile], timers: Sequence[Timer]) -> Tuple[Tuple[Entry, ...], bool]:
    """Everything that starts a job, and whether anything starts `check`."""
    entries: List[Entry] = []
    checks = False
    for file in files:
        for line in parse_crontab(file.data, file.flavour).lines:
            for guarded, entry in _of_line(file, line):
                checks = checks or (guarded.subcommand == "check" and not entry.problem)
                entries += [entry] if entry.job else []
    for timer in timers:
        for guarded in (found for command in timer.commands for found in guarded_in(command)):
            checks = checks or (guarded.subcommand == "check" and not timer.problem)
            if guarded.job:
                entries.append(Entry(guarded.job, timer.name, "timer", timer.problem, guarded.options, guarded.command))
    return tuple(entries), checks


def _of_line(file: CronFile, line: Line) -> List[Tuple[Guarded, Entry]]:
    problem = file.ignored
    if line.kind == "comment":
        uncommented = line.raw.lstrip(b" \t#")
        for found in parse_crontab(uncommented, file.flavour).lines:
            line = found._replace(number=line.number)
        problem = "commented out"
    if line.job is None:
        return []
    environment = line.job.environment
    path = environment.get(b"PATH")
    place = f"{file.place} line {line.number}"
    return [
        (
            guarded,
            Entry(
                guarded.job, place, "cron", problem, guarded.options, guarded.command,
                path.decode("utf-8", "surrogateescape") if path is not None else None, b"CRON_TZ" in environment,
            ),
        )
        for guarded in guarded_in(line.job.command.decode("utf-8", "surrogateescape"))
    ]


def guarded_in(text: str, depth: int = 0) -> Tuple[Guarded, ...]:
    """Every `cronguard ...` that a shell line starts, also within `sh -c '...'`."""
    found: List[Guarded] = []
    for simple in simple_commands(text):
        words = [word.text for word in simple.words]
        guarded = _guarded(words)
        if guarded is not None:
            found.append(guarded)
            continue
        nested = nested_line(simple.words)
        if nested is not None and depth < _DEEPEST:
            found += guarded_in(nested.text, depth + 1)
    return tuple(found)


def _guarded(words: Sequence[str]) -> Optional[Guarded]:
    at = next((at for at, word in enumerate(words) if word.rsplit("/", 1)[-1] == _PROGRAM), None)
    if at is None:
        return None
    rest = list(words[at + 1 :])
    end = rest.index("--") if "--" in rest else len(rest)
    plain, options = _split(rest[:end])
    subcommand = plain[0] if plain else ""
    job = plain[1] if subcommand == "run" and len(plain) > 1 and check_job_name(plain[1]) is None else ""
    return Guarded(subcommand, job, options, tuple(rest[end + 1 :]))


def _split(words: Sequence[str]) -> Tuple[List[str], Dict[str, str]]:
    """Plain words, and the settings that are given as options, by their names."""
    plain: List[str] = []
    options: Dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        option, equals, value = word.partition("=")
        if not word.startswith("-"):
            plain.append(word)
        elif option in _SETTINGS and _SETTINGS[option].kind == "flag":
            options[_SETTINGS[option].name] = "true"
        elif option in _SETTINGS or option in _WITH_VALUE:
            value = value if equals else (left.pop(0) if left else "")
            if option in _SETTINGS:
                options[_SETTINGS[option].name] = value
    return plain, options
