"""A real HTTP server on a free local port that remembers what it was sent, and can misbehave in the ways that hurt."""

from __future__ import annotations

import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Dict, List, Mapping, NamedTuple, Optional, Type
from urllib.parse import parse_qs, urlsplit

CHECK = "2f9c5e0a-7d1b-4c3e-9a55-0123456789ab"


class Received(NamedTuple):
    """A request as it came in. `query` has the first value of each name."""

    at_s: float
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class PingServer:
    """`with PingServer() as server:`; `misbehave` is one of None, drip_head, drip_body, redirects, silent, garbage."""

    def __init__(
        self,
        *,
        statuses: Optional[List[int]] = None,
        answer: bytes = b"OK",
        delay_s: float = 0,
        headers: Optional[Dict[str, str]] = None,
        misbehave: Optional[str] = None,
        tls: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.statuses = list(statuses or [])  # used up one a request, then 200
        self.answer = answer
        self.delay_s = delay_s
        self.headers = dict(headers or {})
        self.misbehave = misbehave
        self.received: List[Received] = []
        self.closing = threading.Event()
        self._news = threading.Condition()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def check_url(self) -> str:
        """An address as Healthchecks gives them out."""
        return f"http://127.0.0.1:{self.port}/ping/{CHECK}"

    @property
    def paths(self) -> List[str]:
        """What came after the check's address, in order: `/start`, an empty text for success, `/3`."""
        return [request.path.replace(f"/ping/{CHECK}", "") for request in self.received]

    def note(self, request: Received) -> None:
        with self._news:
            self.received.append(request)
            self._news.notify_all()

    def wait_for(self, count: int, within_s: float = 30) -> List[Received]:
        """The first `count` requests; AssertionError if they do not come in time."""
        with self._news:
            arrived = self._news.wait_for(lambda: len(self.received) >= count, within_s)
        assert arrived, f"{len(self.received)} of {count} requests came within {within_s} s"
        return self.received[:count]

    def __enter__(self) -> PingServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: PingServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what half of these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Listener

    def handle_one_request(self) -> None:
        # These two say nothing that a client could answer to, so there is no request to read.
        if self.server.owner.misbehave == "silent":
            self._until_the_end(b"")
        elif self.server.owner.misbehave == "garbage":
            self.connection.recv(1)
            self.wfile.write(b"\x00\xff not HTTP, and not TLS\r\n\r\n" * 20)
            self.close_connection = True
        else:
            super().handle_one_request()

    def do_POST(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        owner = self.server.owner
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        owner.note(Received(time.monotonic(), self.command, parts.path, query, dict(self.headers), body))
        owner.closing.wait(owner.delay_s)
        if owner.misbehave == "drip_head":
            self._until_the_end(b"H")
        elif owner.misbehave == "redirects":
            self._reply(302, {"Location": f"/again/{len(owner.received)}"}, b"")
        else:
            self._reply(owner.statuses.pop(0) if owner.statuses else 200, owner.headers, owner.answer)

    def _reply(self, status: int, headers: Mapping[str, str], answer: bytes) -> None:
        dripping = self.server.owner.misbehave == "drip_body"
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", "1000000" if dripping else str(len(answer)))
        self.end_headers()
        if dripping:
            self._until_the_end(b"x")
        self.wfile.write(answer)

    def _until_the_end(self, drop: bytes) -> None:
        """A byte a second (or none) until the client hangs up or the server ends."""
        while not self.server.owner.closing.wait(1 if drop else 0.1):
            self.wfile.write(drop)
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Requests are kept, not printed."""
