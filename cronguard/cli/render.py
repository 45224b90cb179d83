"""Results as text: a rich table on a terminal, aligned columns otherwise. Data goes to stdout, whole or not at all.

Whatever came from outside (argument lists, output, messages) is shown without its control characters: a terminal must
not obey them. rich is loaded only when there is a terminal to draw on. A narrow terminal gets fewer columns, not
unreadable ones; a file or pipe always gets all of them.
"""

from __future__ import annotations

import sys
from datetime import datetime, tzinfo
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from cronguard.cli.edge import one_line, print_lines
from cronguard.core.durations import format_duration
from cronguard.core.zones import load_zone
from cronguard.errors import ScheduleError

_ELASTIC_CHARS = 18  # of a column that may be wrapped, before others are left out for it
_GAP = 2


class Span(NamedTuple):
    """A part of a cell with a style of its own, for terminals only."""

    text: str
    style: str = ""


Cell = Union[str, Tuple[Span, ...]]


class Table(NamedTuple):
    """`colours`: a style by the text of a cell. `optional`: columns that a narrow terminal may do without, those that
    are missed least first; empty ones go before all others. `elastic`: columns that may be wrapped."""

    headers: Tuple[str, ...]
    rows: Tuple[Tuple[Cell, ...], ...]
    colours: Mapping[str, str] = {}
    optional: Tuple[str, ...] = ()
    elastic: Tuple[str, ...] = ()


def print_json(document: Mapping[str, object]) -> None:
    """One object, indented for people, stable for scripts."""
    import json

    print_lines([json.dumps(document, indent=2)])


def print_table(table: Table, environ: Mapping[str, str]) -> None:
    """The table as the place that stdout leads to can show it."""
    if is_terminal(environ):
        _print_rich(table)
    else:
        print_lines(plain_lines(table))


def is_terminal(environ: Mapping[str, str]) -> bool:
    """Is stdout a terminal that can do more than print?"""
    return sys.stdout is not None and sys.stdout.isatty() and environ.get("TERM", "dumb") != "dumb"


def plain_lines(table: Table) -> List[str]:
    """Headers and rows in columns as wide as their widest cell, two spaces apart."""
    rows = [tuple(header.upper() for header in table.headers), *[_texts(row) for row in table.rows]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.headers))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def local(at_utc: Optional[datetime], zone: tzinfo) -> str:
    """`2026-01-20 02:00:01`, empty for none."""
    return at_utc.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S") if at_utc else ""


def offset_local(at_utc: Optional[datetime], zone: tzinfo, timespec: str = "seconds") -> str:
    """`2026-01-20 02:00:01+01:00`, in UTC `2026-01-20 01:00:01Z`; empty for none. `timespec` as isoformat's."""
    if at_utc is None:
        return ""
    at = at_utc.astimezone(zone)
    text = at.isoformat(" ", timespec)
    return text[: -len("+00:00")] + "Z" if at.tzname() == "UTC" else text


def zone_or_utc(name: str) -> Tuple[tzinfo, str]:
    """The zone to show times in, and what to call it: a host that lacks a stored zone shows UTC and says so."""
    try:
        return load_zone(name), name
    except ScheduleError:
        return load_zone("UTC"), "UTC"


def common_zone(names: Sequence[str]) -> Tuple[tzinfo, str]:
    """One zone for a whole table: the one that all its rows have, else UTC."""
    return zone_or_utc(names[0] if len(set(names)) == 1 else "UTC")


def duration(seconds: Optional[float]) -> str:
    return "" if seconds is None else format_duration(seconds)


def fitted(table: Table, width: int) -> Tuple[Table, Tuple[str, ...]]:
    """The table with as many of its optional columns as there is room for, and those that were left out for it."""
    kept = [name for name in table.headers if name not in table.optional or _has_text(table, name)]
    left_out: List[str] = []
    for name in table.optional:
        if _natural_width(table, kept) <= width:
            break
        if name in kept:
            kept.remove(name)
            left_out.append(name)
    places = [table.headers.index(name) for name in kept]
    rows = tuple(tuple(row[place] for place in places) for row in table.rows)
    return table._replace(headers=tuple(kept), rows=rows), tuple(left_out)


def drawn(table: Table, width: int) -> Any:
    """The table for rich, with a note on what there was no room for."""
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    fits, left_out = fitted(table, width)
    result = RichTable(box=None, pad_edge=False, header_style="bold")
    for header in fits.headers:
        result.add_column(header, overflow="fold", no_wrap=header not in fits.elastic and bool(fits.elastic))
    for row in fits.rows:
        result.add_row(*[_rich_cell(cell, fits.colours) for cell in row])
    return Group(result, Text(f"no room for: {', '.join(left_out)}", style="dim")) if left_out else result


def tail_lines(tail: str) -> Sequence[str]:
    """Captured output for a person's eyes: its lines, without what would steer the terminal."""
    return [one_line(line.replace("\t", "    ")) for line in tail.rstrip("\n").split("\n")]


def _print_rich(table: Table) -> None:
    from rich.console import Console

    console: Any = Console(highlight=False)
    with console.capture() as captured:
        console.print(drawn(table, console.width))
    print_lines(captured.get().rstrip("\n").split("\n"))


def _rich_cell(cell: Cell, colours: Mapping[str, str]) -> Any:
    from rich.text import Text

    if isinstance(cell, str):
        return Text(one_line(cell), style=colours.get(cell, ""))
    return Text.assemble(*[(one_line(span.text), span.style) for span in cell])


def _texts(row: Tuple[Cell, ...]) -> Tuple[str, ...]:
    return tuple(one_line(cell if isinstance(cell, str) else "".join(span.text for span in cell)) for cell in row)


def _has_text(table: Table, name: str) -> bool:
    place = table.headers.index(name)
    return any(row[place] for row in table.rows)


def _natural_width(table: Table, names: Sequence[str]) -> int:
    total = -_GAP
    for name in names:
        place = table.headers.index(name)
        widest = max([len(name), *(len(_texts(row)[place]) for row in table.rows)])
        total += _GAP + (min(widest, _ELASTIC_CHARS) if name in table.elastic else widest)
    return total
