"""What a heartbeat says, in the dialect of the service that listens; pure, so that it can be read as a table.

Sources: the Healthchecks pinging API (`/start`, `/fail`, `/log`, `/<exit status>`, `rid`, a body that the server cuts
at the *end*) and Uptime Kuma's push route (`status`, `msg`, `ping` in the query). Nothing here sends anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from urllib.parse import SplitResult

STYLES = ("healthchecks", "uptime-kuma", "plain")
KINDS = ("start", "success", "fail", "exit", "log")
# Kuma answers 400 to a longer `ping` than a day, and the whole beat is lost (server/routers/api-router.js).
KUMA_LONGEST_MS = 86_400_000
HEX_DIGITS = frozenset("0123456789abcdef")


class Ping(NamedTuple):
    """One thing to tell. `code` belongs to kind `exit`. `message` is cronguard's own one-line reason, no output."""

    kind: str
    code: Optional[int] = None
    message: str = ""

    @property
    def good(self) -> bool:
        """True for the news that the work is done."""
        return self.kind == "success" or (self.kind == "exit" and self.code == 0)

    @property
    def reason(self) -> bytes:
        """The message as the first line of a body; empty without one."""
        return self.message.encode("utf-8", "replace") + b"\n" if self.message else b""

    @property
    def name(self) -> str:
        """How results and rows call it: `success`, `exit 3`."""
        return f"exit {self.code}" if self.kind == "exit" else self.kind


class PingRequest(NamedTuple):
    """An HTTP request to make. `url` is a secret."""

    method: str
    url: str
    body: bytes


def url_problem(url: str) -> Optional[str]:
    """Why no ping can be sent to this URL, in words that do not contain it; None if one can."""
    from urllib.parse import urlsplit

    if not url.isascii() or not url.isprintable() or " " in url:
        return "the ping URL has characters that no URL has"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "the ping URL cannot be understood"
    if parts.scheme not in ("http", "https"):
        return "the ping URL does not start with http:// or https://"
    if not parts.hostname or port == 0:
        return "the ping URL names no host"
    return None


def guess_style(url: str) -> str:
    """The dialect of the service behind the URL, from the shape of its address; `plain` when in doubt."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    folders = [folder for folder in parts.path.split("/") if folder]
    after_ping = folders[folders.index("ping") + 1 :] if "ping" in folders else []
    if parts.hostname == "hc-ping.com" or _names_a_check(after_ping):
        return "healthchecks"
    return "uptime-kuma" if "/api/push/" in parts.path else "plain"


def request_for(
    style: str, url: str, ping: Ping, run_id: str, *, body: bytes = b"", duration_s: Optional[float] = None
) -> Optional[PingRequest]:
    """The request that tells `ping`, or None if the service has no word for it (plain ones know only success)."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if style == "healthchecks":
        return _to_healthchecks(parts, ping, run_id, body)
    if style == "uptime-kuma":
        return _to_kuma(parts, ping, duration_s)
    return PingRequest("GET", _with(parts, parts.path, parts.query), b"") if ping.good else None


def tail_within(body: bytes, limit_bytes: int, missing_bytes: int = 0) -> bytes:
    """The end of `body`, at most `limit_bytes` long, with a first line that says how much is missing (FR-42).

    The useful part of an output is its end, and servers keep the head. A UTF-8 character is never cut in two.
    `missing_bytes` came before `body` and are gone already.
    """
    if not missing_bytes and len(body) <= limit_bytes:
        return body
    room = limit_bytes - len(cut_note(missing_bytes + len(body)))
    if room <= 0:
        return b""
    tail = body[-room:]
    whole = next((at for at, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
    return cut_note(missing_bytes + len(body) - len(tail) + whole) + tail[whole:]


def cut_note(missing_bytes: int) -> bytes:
    """The line that stands where so much output was left out."""
    return b"... %d bytes cut\n" % missing_bytes


def _to_healthchecks(parts: SplitResult, ping: Ping, run_id: str, body: bytes) -> PingRequest:
    """POST always: a check may be set to count nothing else. A retry is the same request, so it has the same rid."""
    word = {"success": "", "exit": f"/{ping.code}"}.get(ping.kind, f"/{ping.kind}")
    query = parts.query
    rid = _uuid_text(run_id)
    if rid is not None:
        query = f"{query}&rid={rid}" if query else f"rid={rid}"
    return PingRequest("POST", _with(parts, parts.path.rstrip("/") + word, query), ping.reason + body)


def _to_kuma(parts: SplitResult, ping: Ping, duration_s: Optional[float]) -> Optional[PingRequest]:
    """Output stays out of it: a query string ends up in the logs of every proxy on the way."""
    from urllib.parse import parse_qsl, quote, urlencode

    if ping.kind in ("start", "log"):
        return None
    # The URL that Kuma shows for copying ends in `?status=up&msg=OK&ping=`.
    query: List[Tuple[str, str]] = [
        pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in ("status", "msg", "ping")
    ]
    query += [("status", "up" if ping.good else "down"), ("msg", ping.message or _kuma_words(ping))]
    if duration_s is not None and 0 <= duration_s * 1000 <= KUMA_LONGEST_MS:
        query.append(("ping", str(round(duration_s * 1000))))
    return PingRequest("GET", _with(parts, parts.path, urlencode(query, quote_via=quote, errors="replace")), b"")


def _kuma_words(ping: Ping) -> str:
    return "OK" if ping.good else ping.name


def _with(parts: SplitResult, path: str, query: str) -> str:
    return parts._replace(path=path, query=query, fragment="").geturl()


def _names_a_check(folders: List[str]) -> bool:
    """`<uuid>`, or `<ping key of 22 characters>/<slug>`, as Healthchecks has them after `/ping/`."""
    if len(folders) == 1:
        return _uuid_text(folders[0]) is not None
    return len(folders) == 2 and len(folders[0]) == 22


def _uuid_text(text: str) -> Optional[str]:
    """The canonical form of a UUID; None for anything else (the server answers 400 to any other rid)."""
    digits = text.replace("-", "").lower()
    if len(digits) != 32 or not HEX_DIGITS.issuperset(digits):
        return None
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
