"""The dialects of heartbeat services, as tables (design, section 7)."""

from __future__ import annotations

from typing import Optional, Tuple

import pytest

from cronguard.core.heartbeat import Ping, guess_style, request_for, tail_within, url_problem

UUID = "2f9c5e0a-7d1b-4c3e-9a55-0123456789ab"
RUN = "0197f3a2-1b2c-7d3e-8f40-5a6b7c8d9e0f"
HC = f"https://hc-ping.com/{UUID}"
KUMA = "https://kuma.example.com/api/push/aB3dE5"


@pytest.mark.parametrize(
    ("url", "style"),
    [
        (HC, "healthchecks"),
        ("https://hc-ping.com/abcdefghijklmnopqrstuv/nightly", "healthchecks"),
        (f"http://checks.example.com:8000/ping/{UUID}", "healthchecks"),
        (f"https://example.com/hc/ping/{UUID}/", "healthchecks"),
        ("https://checks.example.com/ping/abcdefghijklmnopqrstuv/nightly", "healthchecks"),
        (KUMA, "uptime-kuma"),
        (KUMA + "?status=up&msg=OK&ping=", "uptime-kuma"),
        ("https://nosnch.in/c2354d53d2", "plain"),
        ("https://example.com/ping", "plain"),
        ("https://example.com/ping/me", "plain"),
        ("https://example.com/ping/a/b/c", "plain"),
    ],
)
def test_style_is_guessed_from_the_shape_of_the_url(url: str, style: str) -> None:
    assert guess_style(url) == style


@pytest.mark.parametrize(
    ("style", "url", "ping", "expected"),
    [
        ("healthchecks", HC, Ping("start"), ("POST", f"{HC}/start?rid={RUN}")),
        ("healthchecks", HC, Ping("success"), ("POST", f"{HC}?rid={RUN}")),
        ("healthchecks", HC, Ping("fail"), ("POST", f"{HC}/fail?rid={RUN}")),
        ("healthchecks", HC, Ping("exit", 0), ("POST", f"{HC}/0?rid={RUN}")),
        ("healthchecks", HC, Ping("exit", 255), ("POST", f"{HC}/255?rid={RUN}")),
        ("healthchecks", HC, Ping("log"), ("POST", f"{HC}/log?rid={RUN}")),
        ("healthchecks", HC + "/", Ping("exit", 3), ("POST", f"{HC}/3?rid={RUN}")),
        ("healthchecks", HC + "?create=1#top", Ping("fail"), ("POST", f"{HC}/fail?create=1&rid={RUN}")),
        ("uptime-kuma", KUMA, Ping("start"), None),
        ("uptime-kuma", KUMA, Ping("log"), None),
        ("uptime-kuma", KUMA, Ping("success"), ("GET", f"{KUMA}?status=up&msg=OK&ping=1500")),
        ("uptime-kuma", KUMA, Ping("exit", 0), ("GET", f"{KUMA}?status=up&msg=OK&ping=1500")),
        ("uptime-kuma", KUMA, Ping("exit", 3), ("GET", f"{KUMA}?status=down&msg=exit%203&ping=1500")),
        ("uptime-kuma", KUMA, Ping("fail", None, "too long"), ("GET", f"{KUMA}?status=down&msg=too%20long&ping=1500")),
        (
            "uptime-kuma",
            KUMA + "?status=up&msg=OK&ping=&tenant=a%20b",
            Ping("fail"),
            ("GET", f"{KUMA}?tenant=a%20b&status=down&msg=fail&ping=1500"),
        ),
        ("plain", "https://nosnch.in/c23", Ping("success"), ("GET", "https://nosnch.in/c23")),
        ("plain", "https://nosnch.in/c23?m=1", Ping("exit", 0), ("GET", "https://nosnch.in/c23?m=1")),
        ("plain", "https://nosnch.in/c23", Ping("start"), None),
        ("plain", "https://nosnch.in/c23", Ping("exit", 1), None),
        ("plain", "https://nosnch.in/c23", Ping("fail"), None),
        ("plain", "https://nosnch.in/c23", Ping("log"), None),
    ],
)
def test_request_for_each_style_and_kind(style: str, url: str, ping: Ping, expected: Optional[Tuple[str, str]]) -> None:
    """FR-48: only a success reaches an address that knows nothing else."""
    request = request_for(style, url, ping, RUN, body=b"tail", duration_s=1.5)
    assert (request and (request.method, request.url)) == expected


def test_only_healthchecks_gets_output() -> None:
    bodies = {
        style: request.body
        for style, url in (("healthchecks", HC), ("uptime-kuma", KUMA), ("plain", "https://nosnch.in/c23"))
        for request in [request_for(style, url, Ping("success"), RUN, body=b"tail")]
        if request is not None
    }
    assert bodies == {"healthchecks": b"tail", "uptime-kuma": b"", "plain": b""}


def test_reason_comes_before_the_output() -> None:
    request = request_for("healthchecks", HC, Ping("fail", message="stopped at its timeout"), RUN, body=b"tail")
    assert request is not None
    assert request.body == b"stopped at its timeout\ntail"


@pytest.mark.parametrize(
    ("run_id", "rid"), [(RUN.replace("-", "").upper(), f"?rid={RUN}"), ("", ""), ("run-17", ""), (RUN + "0", "")]
)
def test_rid_is_a_canonical_uuid_or_absent(run_id: str, rid: str) -> None:
    """FR-47. Healthchecks answers 400 to a rid that is no UUID, and the ping would be lost."""
    request = request_for("healthchecks", HC, Ping("success"), run_id)
    assert request is not None
    assert request.url == HC + rid


@pytest.mark.parametrize(("duration_s", "ping"), [(86_400.0, "&ping=86400000"), (86_401.0, ""), (None, ""), (-1.0, "")])
def test_duration_that_kuma_refuses_is_left_out(duration_s: Optional[float], ping: str) -> None:
    request = request_for("uptime-kuma", KUMA, Ping("success"), RUN, duration_s=duration_s)
    assert request is not None
    assert request.url == f"{KUMA}?status=up&msg=OK{ping}"


def test_undecodable_reason_does_no_harm() -> None:
    for style, url in (("healthchecks", HC), ("uptime-kuma", KUMA)):
        request = request_for(style, url, Ping("fail", message="cannot execute '\udcff'"), RUN)
        assert request is not None
        assert request.url.isascii()


UNUSABLE = (
    "", "hc-ping.com/x", "ftp://example.com/x", "https://", "https://[::1/x", "https://h:0/", "https://h:x/",
    "http://h/a b", "http://h/\n", "http://h/\u20ac",
)  # fmt: skip


@pytest.mark.parametrize("url", UNUSABLE)
def test_unusable_url_is_named_without_being_shown(url: str) -> None:
    problem = url_problem(url)
    assert problem is not None
    assert not url or url not in problem


def test_usable_urls_have_no_problem() -> None:
    for url in (HC, KUMA, "http://127.0.0.1:8000/x", "https://user:word@[::1]:8443/x?y=z"):
        assert url_problem(url) is None


@pytest.mark.parametrize("limit", [40, 41, 42, 43, 44])
def test_tail_is_cut_on_a_character_boundary_and_says_so(limit: int) -> None:
    """FR-42: the end is what counts, and the first line says what is missing."""
    body = "€".encode() * 100 + b"LAST"
    tail = tail_within(body, limit)
    marker, _, rest = tail.partition(b"\n")
    assert len(tail) <= limit
    assert rest.decode().endswith("€LAST")
    assert marker == b"... %d bytes cut" % (len(body) - len(rest))


def test_bytes_that_were_cut_before_are_counted_too() -> None:
    """FR-42: the tail that a run keeps is an end already, whether it fits or not."""
    assert tail_within(b"LAST", 100, missing_bytes=996) == b"... 996 bytes cut\nLAST"
    assert tail_within("€".encode()[1:] + b"LAST", 100, missing_bytes=1) == b"... 3 bytes cut\nLAST"
    assert tail_within(b"x" * 50 + b"LAST", 22, missing_bytes=10) == b"... 59 bytes cut\nxLAST"


def test_tail_of_any_bytes_fits() -> None:
    body = bytes(range(256)) * 10
    for limit in range(2600):
        assert len(tail_within(body, limit)) <= limit
    assert tail_within(body, len(body)) == body
    assert tail_within(b"x" * 100, 0) == b""
