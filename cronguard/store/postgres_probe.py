"""A PostgreSQL store looked over: see store.probing.

The trial of locks uses the two that a claim uses, the advisory one and the row of `locks`, from two connections, while
the first one's transaction is open; it is over within a second or given up. Through a pooler that leads to two
databases, or to a standby that was promoted, the second connection would get what the first one holds.
"""

from __future__ import annotations

from datetime import datetime
from typing import List, Tuple

import psycopg

from cronguard.core.advisory import advisory_key
from cronguard.core.checkup.facts import Starts, StoreFacts
from cronguard.errors import StoreError
from cronguard.store import schema, tally
from cronguard.store.dialect import NoSchema, Session, Statement
from cronguard.store.postgres import PostgresStore
from cronguard.store.postgres_connection import TimeIsUp
from cronguard.store.probing import Clock, Undo, trial_name, trial_row
from cronguard.store.waiting import Deadline, boot_time_s

_LOOKS = 3
# The first transaction is open meanwhile; the server ends it after 2 s of silence (postgres.IDLE_MS).
_SECOND_S = 1.2
_LOCK_WAIT_MS = 250


class PostgresProbe(PostgresStore):
    """See store.probing.Probe."""

    def __init__(self, conninfo: str, schema_name: str, name: str) -> None:
        super().__init__(conninfo, schema_name, name)
        self._conninfo = conninfo

    def starts(self, since_utc: datetime, within_s: float) -> Starts:
        return tally.starts_of(self._read(tally.statements(since_utc), Deadline(within_s)))

    def examine(self, now_utc: Clock, within_s: float) -> StoreFacts:
        deadline = Deadline(within_s)
        pooler, ahead_s, round_trip_s = self._surroundings(now_utc, deadline)
        facts = StoreFacts(
            self.name, self.leased, newest=schema.VERSION, pooler=pooler, ahead_s=ahead_s, round_trip_s=round_trip_s
        )
        (result,) = self._read([Statement(schema.VERSION_SQL)], deadline)
        facts = facts._replace(version=schema.version_of(result))
        try:
            schema.is_current(facts.version, self.name)
        except StoreError as problem:
            return facts._replace(refused=problem.message, hint=problem.hint)
        problem_, hint = self._write_problem(facts.version, deadline)
        held = self._held(deadline, facts.version > 0) if not problem_ else ""
        return facts._replace(write_problem=problem_, hint=hint, held=held)

    def _surroundings(self, now_utc: Clock, deadline: Deadline) -> Tuple[bool, float, float]:
        """Is there a pooler, and the server's clock against ours in the quickest of a few looks."""
        look = [Statement("SELECT pg_backend_pid(), clock_timestamp()")]
        self._repeat(lambda session: session.run(look, last=True), deadline)  # connects, which is no round trip
        pids, best_s, ahead_s = {self._link.told_pid}, float("inf"), 0.0
        for _ in range(_LOOKS):
            sent_at, sent_utc = boot_time_s(), now_utc()
            (result,) = self._repeat(lambda session: session.run(look, last=True), deadline)
            took_s = boot_time_s() - sent_at
            pid, at = result.rows[0]
            pids.add(pid)
            if took_s < best_s:
                best_s, ahead_s = took_s, (at - sent_utc).total_seconds() - took_s / 2
        return len(pids) > 1, ahead_s, best_s

    def _write_problem(self, version: int, deadline: Deadline) -> Tuple[str, str]:
        """Write what a first run would write, and take it back. The DDL is tried only where there is nothing yet: an
        upgrade would lock tables that are in use."""

        def work(session: Session) -> None:
            if version == 0:
                self._migrate(session)
            session.run([trial_row(trial_name())])
            raise Undo("")

        try:
            self._repeat(work, deadline)
        except Undo:
            return "", ""
        except StoreError as problem:
            return problem.message.replace(f"store: {self.name}: ", "", 1), problem.hint
        except NoSchema:
            return "", ""  # somebody made or dropped the tables this moment
        return "", ""

    def _held(self, deadline: Deadline, has_tables: bool) -> str:
        name = trial_name()
        second = PostgresProbe(self._conninfo, self._schema, self.name)
        tries = [Statement("SELECT pg_try_advisory_xact_lock(?)", (advisory_key(self._schema, name),))]
        rows = [trial_row(name)] if has_tables else []

        def first(session: Session) -> None:
            session.run([*tries, *rows])
            raise Undo(second._met(tries, rows))

        try:
            second._repeat(lambda session: session.run([Statement("SELECT 1")], last=True), deadline)
            self._repeat(first, deadline)
        except Undo as end:
            if end.found != "held":
                return end.found
            return "held" if second._met(tries, rows) == "free" else "stuck"
        except StoreError as problem:
            return problem.message
        finally:
            second.close()
        return "it could not be undone"

    def _met(self, tries: List[Statement], rows: List[Statement]) -> str:
        """What this connection meets when it wants the same lock: `held`, `free`, or why it cannot be told."""

        def work(session: Session) -> None:
            (answer,) = session.run(tries)
            taken = bool(answer.rows[0][0])
            if not rows:
                raise Undo("free" if taken else "held")
            session.run(rows)  # waits for the first one's row, and not for long
            raise Undo("free" if taken else "only its row, not its advisory lock, was free")

        try:
            self._once(work, Deadline(_SECOND_S), _LOCK_WAIT_MS)
        except Undo as end:
            return end.found
        except psycopg.Error as problem:
            return "held" if problem.sqlstate == "55P03" else f"the second connection failed: {self._told(problem)}"
        except TimeIsUp:
            return f"the second connection got no answer within {_SECOND_S:.0f} s"
        finally:
            self._link.roll_back()
        return "it could not be undone"
