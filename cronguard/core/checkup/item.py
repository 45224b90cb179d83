"""One point of the checklist, and how bad a list of them is."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional

OK, SKIPPED, WARNING, FAILURE = "ok", "skipped", "warning", "failure"
STATES = (OK, SKIPPED, WARNING, FAILURE)  # from good to bad; what cannot be known is no fault
NAMED_AT_MOST = 5


class Item(NamedTuple):
    """`name`: the point, which several items may be about; `text`: what was found; `what_to_do`: empty if nothing;
    `job`: the one that it is about, None for the whole host or store."""

    name: str
    state: str
    text: str
    what_to_do: str = ""
    job: Optional[str] = None


def worst_of(items: Iterable[Item]) -> str:
    """`ok`, `warning` or `failure`."""
    state = max((item.state for item in items), key=STATES.index, default=OK)
    return OK if state == SKIPPED else state


def listed(names: Iterable[str]) -> str:
    """`a, b, c and 4 more`."""
    known = list(names)
    more = f" and {len(known) - NAMED_AT_MOST} more" if len(known) > NAMED_AT_MOST else ""
    return ", ".join(known[:NAMED_AT_MOST]) + more


def counted(number: int, what: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
