"""A little pruning after a run, so that nobody has to think of it (FR-67). It never matters to the run (P7).

Not after every one: where nothing is to do even a look costs something. Which ones is decided by chance and by nothing
that would have to be kept.
"""

from __future__ import annotations

import os
from datetime import timedelta

from cronguard.core import keeping
from cronguard.errors import StoreError
from cronguard.pipeline.passage import Surroundings

WITHIN_S = 0.2
ONE_IN = 16


def tidy(s: Surroundings) -> None:
    """After one run or skip in 16: at most 500 rows of the job, within 200 ms. Never raises for the store's sake."""
    if os.urandom(1)[0] % ONE_IN:
        return
    before_utc = s.now() - timedelta(seconds=keeping.OLDEST_S)
    limits = keeping.Limits(before_utc, keeping.MOST_ROWS, keeping.MOST_SKIPS)
    try:
        s.store.call(lambda store: store.prune(s.spec.job, *limits, keeping.ROWS_A_STEP, WITHIN_S), WITHIN_S)
    except StoreError:
        pass  # there will be other runs
