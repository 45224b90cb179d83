"""The values of the queue: items, reservations, and what becomes of them.

An item is `waiting` until it is taken, `reserved` while a worker has it, and ends as `done` or, after its last attempt,
as `dead`. A reservation is a lease by the store's clock; each one has a token, greater than the last, and only its
holder may settle the item (FR-69). `available_at` says from when an item may be taken: not before that time when it
waits, or the end of the reservation.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Optional, Tuple, Union

from cronguard.core.ledger import Fence, Fenced

STATUSES = ("waiting", "reserved", "done", "dead")


class NewItem(NamedTuple):
    """An item to be added. `not_before_utc` None: at once."""

    key: str
    group: str = ""
    payload: str = ""
    not_before_utc: Optional[datetime] = None


class Take(NamedTuple):
    """The wish for at most `most` items, taken in turns from these groups, the oldest of each first.

    `take_id` is new for every take, so that one whose COMMIT had no answer is found again and not repeated; `worker`
    is the same for all takes of one worker, whose reservations are renewed together."""

    job: str
    groups: Tuple[str, ...]
    most: int
    per_group: int  # at most so many of each group in this take
    worker: str
    take_id: str
    fence: Optional[Fence]
    reserve_s: float


class Reserved(NamedTuple):
    """An item in this worker's hand. `attempts`: how often it was started before."""

    key: str
    group: str
    payload: str
    token: int
    attempts: int


class Taken(NamedTuple):
    """What a take gave. `sent_at`: boot-time seconds when the acknowledged statement was sent."""

    items: Tuple[Reserved, ...]
    sent_at: float


class Start(NamedTuple):
    """An item that a handler is about to be started for, the `attempt`-th time (1 the first)."""

    key: str
    token: int
    attempt: int


class Settlement(NamedTuple):
    """What became of a reserved item: `done`, `dead`, or `waiting` again after `delay_s`.

    `attempts`: how often it has been started so far, those not counted that we ended ourselves. `message` None: what
    the row says of an earlier failure stays."""

    key: str
    token: int
    status: str
    attempts: int
    delay_s: float = 0.0
    message: Optional[str] = ""


class Steps(NamedTuple):
    """Keys whose settlement, and whose start, the store refused: somebody else has the item, or it is gone."""

    unsettled: Tuple[str, ...]
    unstarted: Tuple[str, ...]
    sent_at: float


class Counts(NamedTuple):
    """How many items of a job there are. `ready` of the waiting ones may be taken now."""

    waiting: int
    ready: int
    reserved: int
    done: int
    dead: int


class Item(NamedTuple):
    """A row of the queue."""

    job: str
    key: str
    group: str
    payload: str
    status: str
    token: int
    attempts: int
    available_at_utc: datetime
    worker: Optional[str]
    run_id: Optional[str]
    added_at_utc: datetime
    started_at_utc: Optional[datetime]
    finished_at_utc: Optional[datetime]
    message: str


TakeAnswer = Union[Taken, Fenced]
