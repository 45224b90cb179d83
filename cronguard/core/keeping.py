"""How much history is kept unless somebody says otherwise."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

OLDEST_S = 90 * 86400.0
MOST_ROWS = 10_000
MOST_SKIPS = 1_000
MOST_EVER = 10**9
ROWS_A_STEP = 500  # short enough that whoever waits for the same rows does not notice


class Limits(NamedTuple):
    """Of one job: rows from before then may go, and of the others all but the newest `keep`, `keep_skips` of them
    skips."""

    before_utc: datetime
    keep: int
    keep_skips: int
