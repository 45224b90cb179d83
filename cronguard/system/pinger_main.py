"""The process that sends one ping or alert: `python -I pinger_main.py`, one order on stdin, one answer on stdout.

It stands alone, so that neither httpx nor a name server that never answers can weigh on the supervisor, and it
imports nothing of cronguard. An order is a JSON line followed by the body; an answer is a JSON line. Every word of an
answer is ours or an errno's: the text of an exception may contain the URL, which is a secret.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import sys
import threading
import time
from importlib import import_module
from typing import Any, List, NamedTuple, Optional, Tuple

TRIES = 3
PAUSES_S = (0.3, 1.0)
MOST_REDIRECTS = 5
RETRIED = frozenset({408, 429, *range(500, 600)})
# hc-ping.com answers 200 to a check's UUID whatever happens, and puts the truth into the body (bdd/runitor#66).
REFUSALS = {b"OK (not found)": "no such check", b"OK (rate limited)": "rate limited"}


class Answer(NamedTuple):
    """`again`: worth another try. `limit_bytes`: how much of a body the server keeps, if it said so."""

    delivered: bool
    detail: str = ""
    again: bool = False
    limit_bytes: Optional[int] = None


def main() -> None:
    """Reads the order, sends it, writes the answer and leaves without waiting for tries that were given up."""
    _stand_alone()
    head, _, body = sys.stdin.buffer.read().partition(b"\n")
    order = json.loads(head)
    # With SIGALRM's default action the kernel ends this process even when the one that would kill it is gone.
    signal.setitimer(signal.ITIMER_REAL, max(0.1, order["deadline"] + 1 - time.monotonic()))
    sys.path[:] = order["path"]
    try:
        answer = _through_apprise(order, body) if order.get("apprise") else _deliver(order, body)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a ping that was not delivered, and no more
        answer = Answer(False, f"the pinger failed: {type(error).__name__}")
    report = {"delivered": answer.delivered, "detail": answer.detail, "limit_bytes": answer.limit_bytes}
    os.write(1, json.dumps(report).encode() + b"\n")
    os._exit(0)


def _stand_alone() -> None:
    """No descriptors of others. Our session stays the supervisor's: what is in another one belongs to a command."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass  # the listing's own


def _deliver(order: Any, body: bytes) -> Answer:
    try:
        client = _client(order["agent"])
    except (ImportError, OSError):
        return Answer(False, "httpx cannot be loaded: was the installation replaced?")
    answer = Answer(False, "no time left")
    for number in range(TRIES):
        left_s = order["deadline"] - time.monotonic()
        if left_s <= 0:
            break
        answer = _within(min(order["try_s"], left_s), client, order, body)
        if not answer.again:
            break
        if number < len(PAUSES_S):
            time.sleep(max(0.0, min(PAUSES_S[number], order["deadline"] - time.monotonic())))
    return answer


def _through_apprise(order: Any, body: bytes) -> Answer:
    """Everything that is no plain HTTP: mail, chats, pagers. What apprise says of a failure may hold the URL."""
    try:
        apprise = import_module("apprise")
    except ImportError:
        return Answer(False, "apprise is not installed: pip install 'cronguard-cli[notify]'")
    channel = apprise.Apprise()
    if not channel.add(order["url"]):
        return Answer(False, "apprise does not know such a URL")
    for pause_s in (PAUSES_S[1], 0.0):
        if channel.notify(title=order["title"], body=body.decode()):
            return Answer(True)
        time.sleep(pause_s)
    return Answer(False, "apprise could not deliver it")


def _client(agent: str) -> Any:
    # httpx brings its command-line program along, which imports click, rich and pygments: half of the start. It is
    # written to do without where it cannot be imported.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    import httpx

    return httpx.Client(
        follow_redirects=True,
        max_redirects=MOST_REDIRECTS,
        headers={"User-Agent": agent, "Accept-Encoding": "identity"},
    )


def _within(seconds: float, client: Any, order: Any, body: bytes) -> Answer:
    """One try, given up when its time is over. Only a thread that is left behind bounds everything: httpx's time
    limits are per read, so a server that drips a byte a second never meets them, and name resolution has none."""
    answers: List[Answer] = []
    thread = threading.Thread(target=_try, args=(client, order, body, answers), daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[-1] if answers else Answer(False, "no answer in time", again=True)


def _try(client: Any, order: Any, body: bytes, answers: List[Answer]) -> None:
    """Appends what is known as soon as it is known: the status first, then what the body says."""
    import httpx

    headers = {"Content-Type": order["type"]} if body else {}
    try:
        with client.stream(order["method"], order["url"], content=body, headers=headers) as response:
            answers.append(_judged(response.status_code, response.headers.get("Ping-Body-Limit")))
            refusal = REFUSALS.get(_head(response)) if answers[-1].delivered else None
            if refusal:
                answers.append(answers[-1]._replace(delivered=False, detail=refusal))
    except httpx.TooManyRedirects:
        answers.append(Answer(False, "too many redirects"))
    except httpx.UnsupportedProtocol:
        answers.append(Answer(False, "redirected to something that is not HTTP"))
    except (httpx.TransportError, OSError) as error:
        if not answers:
            detail, again = _reason(error)
            answers.append(Answer(False, detail, again))
    except Exception as error:  # noqa: BLE001 - nobody would see a thread's traceback, and it could hold the URL
        answers.append(Answer(False, f"the request failed: {type(error).__name__}"))


def _judged(status: int, limit: Optional[str]) -> Answer:
    limit_bytes = int(limit) if limit and limit.isdecimal() and len(limit) < 10 else None
    if 200 <= status < 300:
        return Answer(True, "", False, limit_bytes)
    return Answer(False, f"HTTP {status}", status in RETRIED, limit_bytes)


def _head(response: Any) -> bytes:
    """The body's first piece: all of a short answer, and no reason to wait for a long one."""
    return next(response.iter_raw(), b"")


def _reason(error: BaseException) -> Tuple[str, bool]:
    """Plain words for a connection that failed, and whether another try may help."""
    cause: Optional[BaseException] = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"TLS certificate not accepted: {cause.verify_message}", False
        if isinstance(cause, ssl.SSLError):
            return "TLS failed", True
        if isinstance(cause, socket.gaierror):
            return "host name not resolved", True
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror.lower(), True
        cause = cause.__cause__ or cause.__context__
    return _NAMED.get(type(error).__name__, f"connection failed ({type(error).__name__})"), True


_NAMED = {
    "RemoteProtocolError": "the answer was not HTTP",
    "ConnectTimeout": "no connection in time",
    "ReadTimeout": "no answer in time",
    "ProxyError": "the proxy refused",
}


if __name__ == "__main__":
    main()
