"""Messages and descriptors between supervisor and keeper, over one socket pair.

Both ends are one interpreter, forked: `marshal` is enough, needs no import and takes no message from anybody else.
A closed socket is news, not an error. A peer that takes nothing for ten seconds counts as gone.
"""

from __future__ import annotations

import array
import marshal
import os
import select
import socket
from typing import Any, List, NamedTuple, Sequence, Tuple

from cronguard.system.clock import boot_s

_HEAD_BYTES = 4
_CHUNK_BYTES = 1 << 16
_SEND_WITHIN_S = 10.0
_MOST_FDS = 3


class News(NamedTuple):
    """What has arrived. `closed`: nothing more will."""

    messages: Tuple[Tuple[Any, ...], ...]
    closed: bool


class Channel:
    """One end. `fds` are the descriptors received and not yet taken, in order; whoever takes them closes them."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._buffer = bytearray()
        self.fds: List[int] = []

    def fileno(self) -> int:
        """Readable when `receive` has something."""
        return self._sock.fileno()

    def send(self, *message: Any, fds: Sequence[int] = ()) -> bool:
        """Deliver it whole; False: the peer is gone."""
        body = marshal.dumps(message)
        frame = len(body).to_bytes(_HEAD_BYTES, "big") + body
        rest = memoryview(frame)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        until_s = boot_s() + _SEND_WITHIN_S
        while rest:
            try:
                sent = self._sock.sendmsg([rest], rights, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                if not self._room(until_s):
                    return False
            except OSError:
                return False
            else:
                rest, rights = rest[sent:], []
        return True

    def receive(self) -> News:
        """Everything that is there, without waiting for more."""
        closed = False
        while not closed:
            try:
                data, ancillary, _, _ = self._sock.recvmsg(
                    _CHUNK_BYTES, socket.CMSG_SPACE(_MOST_FDS * 4), socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                break
            except OSError:
                data, ancillary = b"", []
            for _, _, rights in ancillary:
                numbers = array.array("i")
                numbers.frombytes(rights[: len(rights) - len(rights) % numbers.itemsize])
                self.fds.extend(numbers)
            self._buffer += data
            closed = not data
        return News(tuple(self._messages()), closed)

    def take_fds(self) -> List[int]:
        """The descriptors received so far; fewer than were sent when this process may open no more."""
        taken, self.fds = self.fds, []
        return taken

    def close(self) -> None:
        """Tell the peer, by the end of the stream, that this end is gone."""
        self._sock.close()
        for fd in self.take_fds():
            os.close(fd)

    def _room(self, until_s: float) -> bool:
        waiting = select.poll()
        waiting.register(self._sock, select.POLLOUT)
        return bool(waiting.poll(max(0.0, until_s - boot_s()) * 1000))

    def _messages(self) -> List[Tuple[Any, ...]]:
        found = []
        while len(self._buffer) >= _HEAD_BYTES:
            end = _HEAD_BYTES + int.from_bytes(self._buffer[:_HEAD_BYTES], "big")
            if len(self._buffer) < end:
                break
            found.append(marshal.loads(bytes(self._buffer[_HEAD_BYTES:end])))
            del self._buffer[:end]
        return found
