"""Tells people of incidents through the channels of `[notify] urls`, each delivery bounded and none able to hurt.

An `http(s)://` URL gets a JSON POST, any other is apprise's; both by courier, with its one or two quick retries. A
channel that failed is not tried again in this invocation, so that a dead one costs its ten seconds once and not for
every incident. Errors name a channel by scheme and host, never by its secret.
"""

from __future__ import annotations

import json
import sys
import time
from typing import List, Mapping, NamedTuple, Sequence, Tuple

from cronguard.core.alerting import Message
from cronguard.core.masking import mask_endpoint
from cronguard.errors import ConfigError
from cronguard.system.courier import answer_of, send
from cronguard.system.secrets import resolve

DELIVERY_S = 10.0
_WHAT = "[notify] urls"


class Failure(NamedTuple):
    """A delivery that did not happen; `channel` may be shown."""

    channel: str
    why: str


class Notifier:
    """The channels of one invocation."""

    def __init__(self, urls: Sequence[str], environ: Mapping[str, str]) -> None:
        """`urls` as configured: a URL, `file:PATH` or `env:NAME`. One that cannot be read is a channel that fails."""
        self._channels: List[str] = []
        self._unreadable: List[Failure] = []
        self._given_up: List[str] = []
        for text in urls:
            try:
                self._channels.append(resolve(text, environ, _WHAT))
            except ConfigError as error:
                self._unreadable.append(Failure(text, str(error)))

    def tell(self, message: Message) -> Tuple[Failure, ...]:
        """Through every channel; what failed. A channel that was given up before fails without being tried."""
        failures = list(self._unreadable)
        for url in self._channels:
            why = "it failed a moment ago" if url in self._given_up else _deliver(url, message)
            if why:
                self._given_up.append(url)
                failures.append(Failure(mask_endpoint(url) if "://" in url else "a URL without ://", why))
        return tuple(failures)


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
