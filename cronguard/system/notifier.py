"""Tells people of incidents through the channels of `[notify] urls`, each delivery bounded and none able to hurt.

An `http(s)://` URL gets a JSON POST, any other is apprise's; both by courier, with its one or two quick retries. A
channel that failed is not tried again in this invocation, so that a dead one costs its ten seconds once and not for
every incident. What some channel took is told; for the others it waits in the outbox. Errors name a channel by scheme
and host, never by its secret.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Dict, List, Mapping, NamedTuple, Sequence, Set

from cronguard.core.alerting import Message
from cronguard.core.masking import mask_endpoint
from cronguard.errors import ConfigError
from cronguard.system.courier import answer_of, send
from cronguard.system.outbox import Outbox
from cronguard.system.secrets import resolve

DELIVERY_S = 10.0
# A notice is one invocation's for a minute; what has not been tried by then is left to the next check.
ALL_S = 45.0
_WHAT = "[notify] urls"


class Failure(NamedTuple):
    """A delivery that did not happen; `channel` may be shown."""

    channel: str
    why: str


class Notifier:
    """The channels of one invocation, known by their text in the config file. `failures` are for the caller to say."""

    def __init__(self, urls: Sequence[str], environ: Mapping[str, str], outbox: Outbox) -> None:
        """`urls` as configured: a URL, `file:PATH` or `env:NAME`. One that cannot be read is a channel that fails."""
        self.failures: List[Failure] = []
        self._urls: Dict[str, str] = {}
        self._outbox = outbox
        self._given_up: Set[str] = set()
        self._end = time.monotonic() + ALL_S
        for text in urls:
            try:
                self._urls[text] = resolve(text, environ, _WHAT)
            except ConfigError as error:
                self._urls[text] = ""
                self._given_up.add(text)
                self.failures.append(Failure(text, str(error)))

    def retry(self) -> None:
        """Deliver what was left from earlier checks on this host."""
        self._outbox.deliver(self._urls, self._takes)

    def tell(self, message: Message) -> bool:
        """Through every channel; whether people were told: by one of them, or, without any, by what is printed."""
        taken = {channel: self._takes(channel, message) for channel in self._urls}
        told = any(taken.values()) or not taken
        if told:
            for channel in (channel for channel, took_it in taken.items() if not took_it):
                self._outbox.keep(channel, message)
        return told

    def _takes(self, channel: str, message: Message) -> bool:
        if channel in self._given_up or time.monotonic() > self._end:
            return False
        url = self._urls[channel]
        why = _deliver(url, message)
        if why:
            self._given_up.add(channel)
            self.failures.append(Failure(mask_endpoint(url) if "://" in url else "a URL without ://", why))
        return not why


def _deliver(url: str, message: Message) -> str:
    """Why it was not delivered; empty if it was."""
    deadline = time.monotonic() + DELIVERY_S
    if url.startswith(("http://", "https://")):
        order = {"method": "POST", "url": url, "type": "application/json"}
        body = json.dumps(message.document).encode()
    else:
        order = {"apprise": "yes", "url": url, "title": message.title}
        body = message.text.encode()
    answer = answer_of(send(sys.executable, order, body, deadline), deadline)
    return "" if answer.delivered else answer.detail
