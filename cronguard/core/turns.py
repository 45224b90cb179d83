"""Whose turn it is in a pass over the queue, and what a handler's end makes of its item. Pure: no clock, no store.

Groups are islands (article 4: one business with wrong credentials must not hold up the others): taken in turns, bounded
one by one, and one that only fails is left alone until the next pass.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.queue import Reserved, Settlement

LONGEST_BACKOFF_S = 3600.0


class Tries(NamedTuple):
    """How often an item may be tried, and the pause after the first failure."""

    attempts: int
    backoff_s: float


class Offer(NamedTuple):
    """Groups to take from now, at most `per_group` items of each."""

    groups: Tuple[str, ...]
    per_group: int


class Turns:
    """The groups of one pass. `left`: those that failed too often in a row, in the order in which they did."""

    def __init__(self, most: int, per_group: Optional[int], failures: int) -> None:
        self.left: List[str] = []
        self._most = most
        self._per_group = per_group
        self._failures = failures
        self._taken: Dict[str, int] = {}
        self._failed: Dict[str, int] = {}

    def offer(self, groups: Sequence[str]) -> Offer:
        """Those of these groups that are still to be served, with what all of them have left."""
        open_ = [group for group in groups if group not in self.left and self._room(group) > 0]
        return Offer(tuple(open_), min((self._room(group) for group in open_), default=0))

    def took(self, group: str) -> None:
        """An item of it is in hand."""
        if self._per_group is not None:
            self._taken[group] = self._taken.get(group, 0) + 1

    def ended(self, group: str, well: bool) -> bool:
        """A handler for it has ended; True: that was one failure too many, it is left alone from now on."""
        if well:
            self._failed.pop(group, None)
            return False
        self._failed[group] = self._failed.get(group, 0) + 1
        if self._failed[group] < self._failures or group in self.left:
            return False
        self.left.append(group)
        return True

    def _room(self, group: str) -> int:
        return self._most if self._per_group is None else min(self._most, self._per_group - self._taken.get(group, 0))


def backoff_s(first_s: float, failures: int) -> float:
    """The pause after so many failures of an item: doubling, an hour at most."""
    return min(LONGEST_BACKOFF_S, first_s * 2.0 ** min(failures - 1, 32))


def done(item: Reserved) -> Settlement:
    """Its handler has ended well."""
    return Settlement(item.key, item.token, "done", item.attempts + 1)


def failed(item: Reserved, message: str, tries: Tries) -> Settlement:
    """Its handler failed: once more after a pause, or never again."""
    attempts = item.attempts + 1
    if attempts >= tries.attempts:
        return Settlement(item.key, item.token, "dead", attempts, 0.0, message)
    return Settlement(item.key, item.token, "waiting", attempts, backoff_s(tries.backoff_s, attempts), message)


def given_back(item: Reserved) -> Settlement:
    """Not begun, or ended by ourselves in the middle: as it was, for whoever comes next."""
    return Settlement(item.key, item.token, "waiting", item.attempts, 0.0, None)


def in_turns(items: Sequence[Reserved]) -> List[Reserved]:
    """One of each group, then the next of each, and so on; within a group the order stays."""
    places: Dict[str, int] = {}
    ranked = []
    for item in items:
        places[item.group] = places.get(item.group, -1) + 1
        ranked.append((places[item.group], item))
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]


def worn_out(item: Reserved) -> Settlement:
    """Begun as often as it may be, and nobody lived to tell how the last time ended."""
    message = "the worker that began its last attempt did not live to settle it"
    return Settlement(item.key, item.token, "dead", item.attempts, 0.0, message)
