"""`doctor`: a line an item, what to do below it, one line to sum up. Colours on a terminal only."""

from __future__ import annotations

import shutil
import textwrap
from typing import Any, List, Optional

from cronguard.cli.edge import one_line, print_lines
from cronguard.cli.parameters import arguments, command, option
from cronguard.cli.render import is_terminal, print_json
from cronguard.cli.talk import Talk
from cronguard.commands import doctor as doctor_of
from cronguard.core.checkup.item import FAILURE, OK, SKIPPED, WARNING, Item, counted
from cronguard.core.model import Invocation

FAILED = 1
_WORDS = {OK: "ok", SKIPPED: "skipped", WARNING: "WARNING", FAILURE: "FAILURE"}
_COLOURS = {OK: "32", SKIPPED: "2", WARNING: "33", FAILURE: "1;31"}  # ECMA-48, SGR
_WIDEST = max(len(word) for word in _WORDS.values())
_NARROWEST = 60


@command(arguments("names", "[JOB]...", "only these"), option("as_json", "--json", "print one JSON object"))
def doctor(invocation: Invocation, ctx: Any, names: Optional[List[str]], as_json: bool) -> int:
    """Go through the checklist before going live: store, locks, clocks, zones, files, schedules, heartbeats.

    Starts and pings nothing and undoes what it tries. Run it on each host, as the user that runs the jobs. Leaves with
    0 when nothing failed (warnings are no failures), else with 1.

    Example: cronguard doctor
    """
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    result = doctor_of.doctor(names or [], invocation, talk)
    if as_json:
        print_json(doctor_of.as_json(result))
    else:
        print_lines(_lines(result, invocation))
    return FAILED if result.state == FAILURE else 0


def _lines(result: doctor_of.Checkup, invocation: Invocation) -> List[str]:
    on_terminal = is_terminal(invocation.environ)
    coloured = on_terminal and not invocation.environ.get("NO_COLOR")
    width = max(_NARROWEST, shutil.get_terminal_size().columns) if on_terminal else 0
    names = max(len(item.name) for item in result.items)
    lines = [line for item in result.items for line in _of_item(item, names, width, coloured)]
    return [*lines, "", _summary(result)]


def _of_item(item: Item, names: int, width: int, coloured: bool) -> List[str]:
    word = _WORDS[item.state].ljust(_WIDEST)
    if coloured:
        word = f"\x1b[{_COLOURS[item.state]}m{word}\x1b[0m"
    indent = " " * (_WIDEST + names + 4)
    first, *others = _wrapped(item.text, width - len(indent))
    lines = [f"{word}  {item.name.ljust(names)}  {first}", *(indent + line for line in others)]
    todo = _wrapped(f"-> {item.what_to_do}", width - len(indent)) if item.what_to_do else []
    return [*lines, *(indent + line for line in todo)]


def _wrapped(text: str, width: int) -> List[str]:
    """For a file or pipe whole lines, which can be searched."""
    text = one_line(text)
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""] if width > 0 else [text]


def _summary(result: doctor_of.Checkup) -> str:
    count = {state: sum(item.state == state for item in result.items) for state in _WORDS}
    parts = [counted(count[state], state) for state in (FAILURE, WARNING) if count[state]]
    parts += [f"{count[state]} {state}" for state in (OK, SKIPPED) if count[state]]
    return f"{counted(result.jobs, 'job')}: {', '.join(parts)}"
