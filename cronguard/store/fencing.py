"""Whether a run may still act: it must hold its lock, with its fence, until the transaction that asks has ended.

The row of `locks` is held FOR KEY SHARE meanwhile. Claims and finishes take it FOR UPDATE, so no takeover slips in
between the question and what is written on the strength of it; renewals and other workers of the same run go on.
"""

from __future__ import annotations

from typing import Optional

from cronguard.core.ledger import Fence
from cronguard.store.dialect import Dialect, Session, Statement


def is_fenced_off(session: Session, dialect: Dialect, fence: Optional[Fence]) -> bool:
    """Whether that run has lost its lock. Outside a run (None) there is nothing to lose."""
    if fence is None:
        return False
    (held,) = session.run([
        Statement(
            "SELECT fence FROM locks WHERE lock = (SELECT lock FROM runs WHERE run_id = ?)"
            f" AND owner_run = ? AND fence = ? {dialect.for_key_share}",
            (fence.run_id, fence.run_id, fence.fence),
        )
    ])
    return not held.rows
