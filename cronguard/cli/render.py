"""Results as text: a rich table on a terminal, aligned columns otherwise. Data goes to stdout, whole or not at all.

Whatever came from outside (argument lists, output, messages) is shown without its control characters: a terminal must
not obey them. rich is loaded only when there is a terminal to draw on.
"""

from __future__ import annotations

import sys
from datetime import datetime, tzinfo
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.cli.edge import one_line, print_lines
from cronguard.core.durations import format_duration
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError


class Table(NamedTuple):
    """`colours`: a style by the text of a cell, for terminals only."""

    headers: Tuple[str, ...]
    rows: Tuple[Tuple[str, ...], ...]
    colours: Mapping[str, str] = {}


def print_json(document: Mapping[str, object]) -> None:
    """One object, indented for people, stable for scripts."""
    import json

    print_lines([json.dumps(document, indent=2)])


def print_table(table: Table, environ: Mapping[str, str]) -> None:
    """The table as the place that stdout leads to can show it."""
    safe = table._replace(rows=tuple(tuple(one_line(cell) for cell in row) for row in table.rows))
    if is_terminal(environ):
        _print_rich(safe)
    else:
        print_lines(plain_lines(safe))


def is_terminal(environ: Mapping[str, str]) -> bool:
    """Is stdout a terminal that can do more than print?"""
    return sys.stdout is not None and sys.stdout.isatty() and environ.get("TERM", "dumb") != "dumb"


def plain_lines(table: Table) -> List[str]:
    """Headers and rows in columns as wide as their widest cell, two spaces apart."""
    rows = [tuple(header.upper() for header in table.headers), *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.headers))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def local(at_utc: Optional[datetime], zone: tzinfo) -> str:
    """`2026-01-20 02:00:01`, empty for none."""
    return at_utc.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S") if at_utc else ""


def zone_or_utc(name: str) -> Tuple[tzinfo, str]:
    """The zone to show times in, and what to call it: a host that lacks a stored zone shows UTC and says so."""
    try:
        return load_zone(name), name
    except ScheduleError:
        return load_zone("UTC"), "UTC"


def duration(seconds: Optional[float]) -> str:
    return "" if seconds is None else format_duration(seconds)


def _print_rich(table: Table) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=None, pad_edge=False, header_style="bold")
    for header in table.headers:
        drawn.add_column(header, overflow="fold")
    for row in table.rows:
        drawn.add_row(*[Text(cell, style=table.colours.get(cell, "")) for cell in row])
    console: Any = Console(highlight=False)
    with console.capture() as captured:
        console.print(drawn)
    print_lines(captured.get().rstrip("\n").split("\n"))


def tail_lines(tail: str) -> Sequence[str]:
    """Captured output for a person's eyes: its lines, without what would steer the terminal."""
    return [one_line(line.replace("\t", "    ")) for line in tail.rstrip("\n").split("\n")]
