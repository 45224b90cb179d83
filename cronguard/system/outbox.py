"""Messages that one channel did not take while another did, kept on this host until its next check.

The incident is told, so the store's part is over; what is left is a delivery. A file a message, named by the channel
(never its URL) and in order of time. What nobody can want any more is dropped: a channel that is no longer configured,
a message of last week. Losing one is no harm to the incident, so nothing here raises.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from typing import Callable, Collection, List, Tuple

from cronguard.core.alerting import Message

KEPT_S = 7 * 86400
AT_ONCE = 100


class Outbox:
    """`directory` is made (0700) with the first message."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def keep(self, channel: str, message: Message) -> None:
        path = os.path.join(self._directory, f"{time.time_ns():020d}-{_mark(channel)}.json")
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump(message, file)
            os.rename(f"{path}.new", path)
        except OSError:
            pass  # that it was not delivered has been said

    def deliver(self, channels: Collection[str], take: Callable[[str, Message], bool]) -> None:
        """Offer what is kept for these channels, oldest first; `take` says whether it was taken."""
        by_mark = {_mark(channel): channel for channel in channels}
        for name, mark, age_s in self._kept():
            channel = by_mark.get(mark)
            if channel is None or age_s > KEPT_S or self._taken(name, channel, take):
                self._drop(name)

    def _kept(self) -> List[Tuple[str, str, float]]:
        """Names with channel and age in seconds; a message that is being written has no such name yet."""
        try:
            names = sorted(name for name in os.listdir(self._directory) if name.endswith(".json"))
        except OSError:
            return []
        parts = [(name, *name[: -len(".json")].partition("-")) for name in names[:AT_ONCE]]
        return [(name, mark, time.time() - int(at) / 1e9) for name, at, _, mark in parts if at.isdecimal()]

    def _taken(self, name: str, channel: str, take: Callable[[str, Message], bool]) -> bool:
        try:
            with open(os.path.join(self._directory, name), encoding="utf-8") as file:
                message = Message(*json.load(file))
        except (OSError, ValueError, TypeError):
            return True  # another check took it, or it cannot be read
        return take(channel, message)

    def _drop(self, name: str) -> None:
        try:
            os.unlink(os.path.join(self._directory, name))
        except OSError:
            pass


def _mark(channel: str) -> str:
    return f"{zlib.crc32(channel.encode('utf-8', 'surrogateescape')):08x}"
