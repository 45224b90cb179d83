"""The values of checkpoints: where a job got to, kept so that an older run can never put it back."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Optional, Union

from cronguard.core.ledger import Fence, Fenced


class CheckpointSet(NamedTuple):
    """The wish to set one. Outside a run (`fence` None) it is refused while a run of the job holds its lock, unless
    `force`. `expected` None: whatever the value is now; otherwise only if it is that (the empty text: or if unset)."""

    job: str
    name: str
    value: str
    fence: Optional[Fence]
    expected: Optional[str] = None
    force: bool = False


class Checkpoint(NamedTuple):
    """A row of `checkpoints`. `run_id` and `fence` of the run that set it, None if none did."""

    job: str
    name: str
    value: str
    run_id: Optional[str]
    fence: Optional[int]
    set_at_utc: datetime


class WasSet(NamedTuple):
    """It is set; `before` is what it was, None if it was not set."""

    before: Optional[Checkpoint]


class NewerFence(NamedTuple):
    """A newer run has set it: ours must not."""

    present: Checkpoint


class Differs(NamedTuple):
    """It is not what was expected; `present` None: not set."""

    present: Optional[Checkpoint]


class RunUnderWay(NamedTuple):
    """A run of the job holds its lock, and the caller is not part of it."""

    run_id: str


SetAnswer = Union[WasSet, Fenced, NewerFence, Differs, RunUnderWay]
