"""What a backend has to know: read, transact, create the tables. Everything else is the same SQL on both."""

from __future__ import annotations

from typing import Callable, List, Sequence, TypeVar

from cronguard.store.dialect import Dialect, Result, Session, Statement
from cronguard.store.waiting import Deadline

T = TypeVar("T")


class Database:
    """Some SQL database. What a transaction does may be done again from its start when the connection broke under it:
    whatever is written must be found again by an id that was made before the first try."""

    name: str
    leased: bool
    dialect: Dialect
    warnings: List[str]  # what the user should be told, once, about this store

    def prepare(self, within_s: float) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _read(self, statements: Sequence[Statement], deadline: Deadline) -> List[Result]:
        """Read consistently, touching no lock; every result is empty while there are no tables."""
        raise NotImplementedError

    def _transact(self, work: Callable[[Session], T], deadline: Deadline) -> T:
        """Run `work` in a writing transaction; rolled back if it raises, repeated if the store was lost under it."""
        raise NotImplementedError

    def _send(self, statements: Sequence[Statement], within_s: float) -> List[Result]:
        """These statements as a transaction, in one message where there is a wire."""
        return self._transact(lambda session: session.run(statements, last=True), Deadline(within_s))

    def _changed(self, statement: Statement, within_s: float) -> bool:
        """One statement as a transaction; whether it found a row to change."""
        return self._send([statement], within_s)[0].changed > 0
