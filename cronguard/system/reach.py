"""Can this host reach a heartbeat's server? Name, connection and certificate are tried; nothing is asked of it.

A request would be a ping: a HEAD counts as success at Healthchecks, a start ping begins a run that never ends. A proxy
that the environment names, as the pinger would use it, is asked for a tunnel. Answers never contain the URL.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Tuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from cronguard.core.heartbeat import url_problem

TRY_S = 4.0


def reach(url: str) -> Tuple[str, float]:
    """What is in the way, empty for nothing, and how long it took. Name resolution has no deadline of its own."""
    problem = url_problem(url)
    if problem:
        return problem, 0.0
    began = time.monotonic()
    try:
        _connect(url)
    except ssl.SSLCertVerificationError as error:
        return f"TLS certificate not accepted: {error.verify_message}", 0.0
    except ssl.SSLError:
        return "TLS failed", 0.0
    except socket.gaierror:
        return "host name not resolved", 0.0
    except socket.timeout:
        return f"no answer within {TRY_S:.0f} s", 0.0
    except OSError as error:
        return (error.strerror or "cannot be reached").lower(), 0.0
    return "", time.monotonic() - began


def _connect(url: str) -> None:
    from http.client import HTTPConnection, HTTPSConnection

    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    through = None if proxy_bypass(host) else getproxies().get(parts.scheme, getproxies().get("all"))
    at = urlsplit(through if "://" in through else f"http://{through}") if through else None
    place, door = (at.hostname or "", at.port or 80) if at is not None else (host, port)
    connection = (
        HTTPSConnection(place, door, timeout=TRY_S, context=_trust()) if secure
        else HTTPConnection(place, door, timeout=TRY_S)
    )
    if at is not None and secure:
        connection.set_tunnel(host, port)
    try:
        connection.connect()
    finally:
        connection.close()


def _trust() -> ssl.SSLContext:
    """What the pinger trusts: httpx's own choice."""
    import httpx

    context: ssl.SSLContext = httpx.create_ssl_context()
    return context
