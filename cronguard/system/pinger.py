"""Sends heartbeats by courier, so that they can neither hang nor bloat the supervisor (P7).

Nothing here raises, retries on its own or outlasts its budget, and no result contains the URL. Whoever makes a `Pinger`
has loaded all that `finish` needs, because the installation may be replaced while the command runs (FR-34); then the
result says so. Importing this module loads next to nothing.
"""

from __future__ import annotations

import sys
import time
from typing import List, Optional, Union

from cronguard.core.heartbeat import Ping, PingRequest, guess_style, request_for, tail_within, url_problem
from cronguard.system.courier import Answer, Courier, answer_of, send

__all__ = ["Ping", "Pinger", "guess_style", "once", "request_for"]

BUDGET_S = 10.0
# What a finished command still waits for its start ping, so that the service hears of them in order.
START_PATIENCE_S = 2.0
# Healthchecks as people host it keeps the first 10 kB of a body unless it says otherwise (Ping-Body-Limit).
BODY_LIMIT_BYTES = 10_000
LARGEST_BODY_BYTES = 1_000_000


class Pinger:
    """The heartbeats of one run: at most one start ping, then exactly one terminal ping."""

    def __init__(self, url: str, style: str, run_id: str, python: str = sys.executable) -> None:
        """`url`: the secret itself, resolved; `style`: one of heartbeat.STYLES or `auto`; `run_id` becomes the rid."""
        import json  # noqa: F401 - for `finish`; so is urllib.parse, which url_problem loads

        self._url = url
        self._problem = url_problem(url)
        self._style = guess_style(url) if style == "auto" and not self._problem else style
        self._run_id = run_id
        self._python = python
        self._body_limit_bytes = BODY_LIMIT_BYTES
        self._started: Union[Courier, Answer, None] = None

    def start(self) -> None:
        """Sends the start ping on its way and waits for nothing."""
        request = self._request(Ping("start"), b"", None)
        if request is not None:
            self._started = self._sent(request, time.monotonic() + BUDGET_S)

    def finish(self, ping: Ping, body: bytes, duration_s: Optional[float], cut_bytes: int = 0) -> str:
        """Sends the terminal ping and says in plain words what became of both; takes 12 s at the very most.

        `body` is the output's tail and `cut_bytes` what came before it; what the service would not keep is cut from its
        beginning.
        """
        if self._problem:
            return f"{ping.name} not delivered: {self._problem}"
        results = self._start_result()
        request = self._request(ping, body, duration_s, cut_bytes)
        if request is None:
            return "; ".join([*results, f"{ping.name} not sent: a {self._style} URL has no word for it"])
        deadline = time.monotonic() + BUDGET_S
        answer = answer_of(self._sent(request, deadline), deadline)
        return "; ".join([*results, _told(answer, ping)])

    def _start_result(self) -> List[str]:
        if self._started is None:
            return []
        answer = answer_of(self._started, time.monotonic() + START_PATIENCE_S)
        self._started = None
        if answer.limit_bytes is not None:
            self._body_limit_bytes = min(answer.limit_bytes, LARGEST_BODY_BYTES)
        return [_told(answer, Ping("start"))]

    def _sent(self, request: PingRequest, deadline: float) -> Union[Courier, Answer]:
        order = {"method": request.method, "url": request.url, "type": "text/plain; charset=utf-8"}
        return send(self._python, order, request.body, deadline)

    def _request(
        self, ping: Ping, body: bytes, duration_s: Optional[float], cut_bytes: int = 0
    ) -> Optional[PingRequest]:
        if self._problem:
            return None
        limit_bytes = self._body_limit_bytes
        kept = tail_within(body, limit_bytes - len(ping.reason), cut_bytes)
        request = request_for(self._style, self._url, ping, self._run_id, body=kept, duration_s=duration_s)
        return request and request._replace(body=request.body[:limit_bytes])


def once(url: str, style: str, ping: Ping, body: bytes = b"", *, run_id: str = "") -> str:
    """Sends one ping where there was no run (125-127); the result as of `Pinger.finish`, within 10 s."""
    return Pinger(url, style, run_id).finish(ping, body, None)


def _told(answer: Answer, ping: Ping) -> str:
    return f"{ping.name} delivered" if answer.delivered else f"{ping.name} not delivered: {answer.detail}"
