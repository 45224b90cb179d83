"""The short way into what cron and scripts start all day, `run`, `items work` and `once`: a line that needs neither
help nor advice does not load typer, which is half of a start.

Understands only what is right beyond doubt; everything else (`--help`, a misspelt option, a missing value, another
command) is None here and goes to typer, whose words the user then gets. A test holds the two to the same result.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cronguard.cli.request import split_at_dashes
from cronguard.core.settings import ITEMS, ONCE, SETTINGS, Setting

SHARED_WITH_VALUE = ("store", "config", "log_format")
FLAGS = ("force", "dry_run", "verbose")
# The command's words, its settings, its flags.
_COMMANDS: Sequence[Tuple[Tuple[str, ...], Sequence[Setting], Sequence[str]]] = (
    (("run",), SETTINGS, FLAGS),
    (("items", "work"), ITEMS, ("verbose",)),
    (("once",), ONCE, ("verbose",)),
)


class Line(NamedTuple):
    """A command line. `command`: `run`, `items work` or `once`; `subject`: the job, or the key of what happens once;
    `words`: what stands behind `--`; `given`: option names (`dry_run`) to texts, flags to True."""

    command: str
    subject: str
    words: Optional[Tuple[str, ...]]
    given: Dict[str, object]


def line_of(words: Sequence[str]) -> Optional[Line]:
    """The line if it is a plain one of these commands, else None."""
    found = (_line_of(words, *each) for each in _COMMANDS if each[0][0] in words)
    return next((line for line in found if line is not None), None)


def _line_of(
    words: Sequence[str], command: Tuple[str, ...], settings: Sequence[Setting], flags: Sequence[str]
) -> Optional[Line]:
    own, behind = split_at_dashes(words)
    takes_value = _options(settings, flags)
    given: Dict[str, object] = {}
    plain: List[str] = []
    rest = iter(own)
    for word in rest:
        if not word.startswith("-"):
            plain.append(word)
            continue
        flag, equals, value = ("--verbose", "", "") if word == "-v" else word.partition("=")
        if flag not in takes_value:
            return None
        name = flag[2:].replace("-", "_")
        text = _text_of(takes_value[flag], equals, value, rest)
        # Before the command's name only the shared options are known.
        if text is None or (len(plain) < len(command) and name not in (*SHARED_WITH_VALUE, "verbose")):
            return None
        given[name] = text
    if tuple(plain[:-1]) != command:
        return None
    return Line(" ".join(command), plain[-1], behind, given)


def _text_of(takes_value: bool, equals: str, value: str, rest: Iterator[str]) -> object:
    """An option's value, True for a flag; None where the line is wrong."""
    if takes_value:
        return value if equals else next(rest, None)
    return None if equals else True


def _options(settings: Sequence[Setting], flags: Sequence[str]) -> Dict[str, bool]:
    """Every option, and whether a value follows it."""
    known = {setting.option: setting.kind != "flag" for setting in settings}
    known.update({"--" + name.replace("_", "-"): True for name in SHARED_WITH_VALUE})
    known.update({"--" + name.replace("_", "-"): False for name in flags})
    return known
