"""A TCP proxy that loses a connection exactly where it hurts: around the message that carries a given text.

It knows as much of PostgreSQL's protocol as that takes: a message of the client begins with a type and a length, and a
simple query ('Q') holds its SQL in plain text (protocol-message-formats in the manual).
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Callable, List, Optional

BEFORE = "before"  # the server never sees it
AFTER = "after"  # the server has executed it, the client sees no answer
SWALLOWED = "swallowed"  # the server never sees it, and the connection stays open: silence
LATE = "late"  # the client is cut off first, the server gets the message after a while


class Proxy:
    """Between clients and a server. `cut` arms it for one message; afterwards it only forwards."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._armed: Optional[_Cut] = None
        self._lock = threading.Lock()
        self._open: List[socket.socket] = []
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, where: str, text: bytes, late_s: float = 0.0) -> None:
        """At the next simple query that contains `text`."""
        self._armed = _Cut(where, text, late_s)

    def close(self) -> None:
        self._listener.close()
        for each in self._open:
            _end(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._open += [client, server]
            _in_thread(lambda c=client, s=server: self._forward_queries(c, s))
            _in_thread(lambda c=client, s=server: _copy(s, c))

    def _forward_queries(self, client: socket.socket, server: socket.socket) -> None:
        stream = client.makefile("rb")
        try:
            start = stream.read(4)
            while start:
                length = struct.unpack("!I", start)[0]
                message = start + stream.read(length - 4)
                # An SSLRequest (8 bytes) is answered before the start-up message proper.
                server.sendall(message)
                if length != 8:
                    break
                start = stream.read(4)
            while True:
                head = stream.read(5)
                if len(head) < 5:
                    break
                message = head + stream.read(struct.unpack("!I", head[1:])[0] - 4)
                cut = self._take_cut(message)
                if cut is None:
                    server.sendall(message)
                elif cut.where != SWALLOWED:
                    cut.apply(client, server, message)
                    return
        except OSError:
            pass
        finally:
            _end(client)
            _end(server)

    def _take_cut(self, message: bytes) -> Optional[_Cut]:
        with self._lock:
            armed = self._armed
            if armed is None or message[:1] != b"Q" or armed.text not in message:
                return None
            self._armed = None
            self.cuts += 1
            return armed


class _Cut:
    def __init__(self, where: str, text: bytes, late_s: float) -> None:
        self.text = text
        self.where = where
        self._late_s = late_s

    def apply(self, client: socket.socket, server: socket.socket, message: bytes) -> None:
        if self.where == BEFORE:
            return
        _end(client)
        if self.where == LATE:
            threading.Event().wait(self._late_s)
        server.sendall(message)
        # The other thread reads the answer too; the server closing after Terminate proves that it was executed.
        server.sendall(b"X\x00\x00\x00\x04")
        threading.Event().wait(0.2)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
    except OSError:
        pass
    finally:
        _end(sink)


def _end(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()


def _in_thread(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True).start()
