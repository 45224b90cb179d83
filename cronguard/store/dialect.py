"""What SQLite and PostgreSQL say differently, and the narrow waist through which all SQL goes.

Every statement of the domain is written once, with `?` for parameters, in the subset that both understand (SQLite 3.24:
no RETURNING, no UPDATE FROM). The fragments that differ stand in `Dialect`. A `Session` is an open transaction.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Protocol, Sequence, Tuple

Values = Tuple[Any, ...]


class Statement(NamedTuple):
    """One SQL statement and its parameters, instants as aware datetimes."""

    sql: str
    values: Values = ()


class Result(NamedTuple):
    """What one statement gave: its rows, and how many rows it changed (or read)."""

    rows: List[Values]
    changed: int


class Dialect(NamedTuple):
    """SQL fragments. Lease times are the store's own clock: no client's wall clock ever gets into them (FR-78)."""

    now: str
    lease_end: str  # takes one parameter, seconds
    next_fence: str  # from the column `fence`: grows always, and over a lost database too, by the epoch in ms
    for_update: str
    for_key_share: str  # keeps others from `for_update`, but neither from renewing nor from the same
    among: str  # the column before it is one of what the sub-select {0} gives, looked up by key
    each: str  # FROM this, one parameter: the elements `value` of a JSON array of arrays
    cell: str  # text number {0} of `value`
    instant_cell: str  # the same as an instant

    @property
    def among_texts(self) -> str:
        """The column before it is one of the texts of a parameter made by `rows.texts_json`, however many there are."""
        return self.among.format(f"SELECT {self.cell.format(0)} FROM {self.each}")


class Session(Protocol):
    """An open transaction. `run` sends the statements together (PostgreSQL: one message) and answers for each."""

    def run(self, statements: Sequence[Statement], last: bool = False) -> List[Result]:
        """`last`: the transaction is committed behind these statements, in the same message."""


class Collision(Exception):
    """A uniqueness constraint refused the statement; the transaction was rolled back. Decide anew, never report it."""


class NoSchema(Exception):
    """The tables are not there (yet)."""
