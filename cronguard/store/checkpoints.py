"""Setting a checkpoint: who may, and what never happens to it (core.checkpoints).

Writers of one checkpoint come one after another. The fence in the row never gets lower, also not by a set from outside
a run, which leaves no run behind it.
"""

from __future__ import annotations

from typing import Optional

from cronguard.core.checkpoints import (
    Checkpoint,
    CheckpointSet,
    Differs,
    NewerFence,
    RunUnderWay,
    SetAnswer,
    WasSet,
)
from cronguard.core.ledger import Fenced
from cronguard.store import rows
from cronguard.store.dialect import Dialect, Session, Statement, Values
from cronguard.store.fencing import is_fenced_off

_COLUMNS = "job, name, value, run_id, fence, set_at"


class Setting:
    """One set. It remembers what an earlier try wrote whose COMMIT had no answer, so as not to trip over itself."""

    def __init__(self, wish: CheckpointSet, dialect: Dialect, leased: bool) -> None:
        self._wish = wish._replace(name=rows.clean(wish.name), value=rows.clean(wish.value))
        self._dialect = dialect
        self._leased = leased
        self._written: Optional[WasSet] = None

    def run(self, session: Session) -> SetAnswer:
        present = self._read(session)
        if self._written is not None and present is not None and self._is_ours(present):
            return self._written
        refusal = self._refused(session, present)
        if refusal is not None:
            return refusal
        self._written = WasSet(_shown(present) if present else None)
        session.run([self._write(present)], last=True)
        return self._written

    def _read(self, session: Session) -> Optional[Checkpoint]:
        (found,) = session.run([
            Statement(
                f"SELECT {_COLUMNS} FROM checkpoints WHERE job = ? AND name = ? {self._dialect.for_update}",
                (self._wish.job, self._wish.name),
            )
        ])
        return _stored(found.rows[0]) if found.rows else None

    def _is_ours(self, present: Checkpoint) -> bool:
        fence = self._wish.fence
        return present.value == self._wish.value and present.run_id == (fence.run_id if fence else None)

    def _refused(self, session: Session, present: Optional[Checkpoint]) -> Optional[SetAnswer]:
        wish = self._wish
        if wish.fence is not None and is_fenced_off(session, self._dialect, wish.fence):
            return Fenced(wish.fence.run_id)
        if wish.fence is not None and present is not None and (present.fence or 0) > wish.fence.fence:
            return NewerFence(present)
        if wish.fence is None and not wish.force:
            running = self._run_under_way(session)
            if running is not None:
                return RunUnderWay(running)
        if wish.expected is not None and wish.expected != (present.value if present else ""):
            return Differs(_shown(present) if present else None)
        return None

    def _run_under_way(self, session: Session) -> Optional[str]:
        lease = f" AND l.lease_until > {self._dialect.now}" if self._leased else ""
        (found,) = session.run([
            Statement(
                "SELECT r.run_id FROM runs r JOIN locks l ON l.lock = r.lock AND l.owner_run = r.run_id"
                f" WHERE r.job = ? AND r.status = 'running'{lease}",
                (self._wish.job,),
            )
        ])
        return str(found.rows[0][0]) if found.rows else None

    def _write(self, present: Optional[Checkpoint]) -> Statement:
        wish = self._wish
        fences = [wish.fence.fence if wish.fence else None, present.fence if present else None]
        highest = max((fence for fence in fences if fence is not None), default=None)
        return Statement(
            f"INSERT INTO checkpoints ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, {self._dialect.now})"
            " ON CONFLICT (job, name) DO UPDATE SET value = excluded.value, run_id = excluded.run_id,"
            " fence = excluded.fence, set_at = excluded.set_at",
            (wish.job, wish.name, wish.value, wish.fence.run_id if wish.fence else None, highest),
        )


def selection(job: str) -> Statement:
    return Statement(f"SELECT {_COLUMNS} FROM checkpoints WHERE job = ? ORDER BY name", (job,))


def checkpoint_of(values: Values) -> Checkpoint:
    """A row of that, as people see it."""
    return _shown(_stored(values))


def deletion(job: str, name: str) -> Statement:
    return Statement("DELETE FROM checkpoints WHERE job = ? AND name = ?", (job, rows.clean(name)))


def _stored(values: Values) -> Checkpoint:
    job, name, value, run_id, fence, set_at = values
    return Checkpoint(job, name, value, run_id, fence, rows.known_instant(set_at))


def _shown(checkpoint: Checkpoint) -> Checkpoint:
    """Without a run, the fence is only a floor."""
    return checkpoint if checkpoint.run_id is not None else checkpoint._replace(fence=None)
