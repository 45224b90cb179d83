"""Heartbeats against a real server that behaves, fails, hangs and lies (P7, P9; FR-42, 44, 47, 48)."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Iterator, List

import pytest

from cronguard.system import courier, pinger
from cronguard.system.pinger import Ping, Pinger, once
from tests.support.pingserver import CHECK, PingServer

RUN = "0197f3a2-1b2c-7d3e-8f40-5a6b7c8d9e0f"
SLACK_S = 4.0  # of a loaded machine; without a limit these tests would take for ever


@pytest.fixture
def short_budget(monkeypatch: pytest.MonkeyPatch) -> float:
    """The same limits, in less of a test's time."""
    monkeypatch.setattr(courier, "TRY_S", 1.5)
    monkeypatch.setattr(pinger, "BUDGET_S", 4.0)
    monkeypatch.setattr(pinger, "START_PATIENCE_S", 0.5)
    return 4.5 + SLACK_S


def children() -> List[Path]:
    """The processes that we started, as directories of /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.append(stat.parent)
    return found


@pytest.fixture(autouse=True)
def pingers() -> Iterator[Callable[[], List[Path]]]:
    """The pinger processes of this test; whatever happened in it, in the end every one was reaped."""
    others = children()

    def ours() -> List[Path]:
        return [process for process in children() if process not in others]

    yield ours
    assert ours() == []


def refused_url() -> str:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unheard.getsockname()[1]}/ping/{CHECK}"


@pytest.mark.parametrize(
    ("ping", "path"), [(Ping("success"), ""), (Ping("exit", 3), "/3"), (Ping("fail"), "/fail"), (Ping("log"), "/log")]
)
def test_start_and_one_terminal_ping_with_one_rid(ping: Ping, path: str) -> None:
    """FR-47, FR-48."""
    with PingServer() as server:
        beats = Pinger(server.check_url, "auto", RUN)
        beats.start()
        assert beats.finish(ping, b"tail\n", 1.5) == f"start delivered; {ping.name} delivered"
    assert server.paths == ["/start", path]
    assert [request.query["rid"] for request in server.received] == [RUN, RUN]
    assert [request.body for request in server.received] == [b"", b"tail\n"]
    assert {request.method for request in server.received} == {"POST"}


def test_kuma_is_told_how_it_ended_and_how_long_it_took() -> None:
    with PingServer() as server:
        beats = Pinger(f"http://127.0.0.1:{server.port}/api/push/aB3?status=up&msg=OK&ping=", "auto", RUN)
        beats.start()
        assert beats.finish(Ping("exit", 3), b"secret output", 1.5) == "exit 3 delivered"
    (request,) = server.received
    assert request.query == {"status": "down", "msg": "exit 3", "ping": "1500"}
    assert (request.method, request.path, request.body) == ("GET", "/api/push/aB3", b"")


def test_plain_url_hears_of_success_only() -> None:
    """FR-48: an address that knows one word must not hear it after a failure."""
    with PingServer() as server:
        url = f"http://127.0.0.1:{server.port}/snitch"
        assert once(url, "auto", Ping("fail")) == "fail not sent: a plain URL has no word for it"
        assert once(url, "auto", Ping("exit", 1)) == "exit 1 not sent: a plain URL has no word for it"
        assert once(url, "auto", Ping("success")) == "success delivered"
    assert len(server.received) == 1


def test_transient_refusals_are_tried_again_with_the_same_rid() -> None:
    """FR-47: a retried request is the same request."""
    with PingServer(statuses=[503, 429]) as server:
        assert once(server.check_url, "auto", Ping("success"), b"tail", run_id=RUN) == "success delivered"
    assert [(request.query["rid"], request.body) for request in server.received] == [(RUN, b"tail")] * 3


@pytest.mark.parametrize(("status", "requests"), [(500, 3), (408, 3), (404, 1), (400, 1), (401, 1)])
def test_only_what_may_pass_is_tried_again(status: int, requests: int) -> None:
    with PingServer(statuses=[status] * 9) as server:
        assert once(server.check_url, "auto", Ping("fail")) == f"fail not delivered: HTTP {status}"
    assert len(server.received) == requests


@pytest.mark.parametrize(
    ("answer", "told"), [(b"OK (not found)", "no such check"), (b"OK (rate limited)", "rate limited")]
)
def test_polite_refusal_of_healthchecks_is_no_delivery(answer: bytes, told: str) -> None:
    """hc-ping.com answers 200 to pings that it drops (bdd/runitor#66)."""
    with PingServer(answer=answer) as server:
        assert once(server.check_url, "auto", Ping("success")) == f"success not delivered: {told}"


def test_refused_connection_is_told_in_plain_words() -> None:
    beats = Pinger(refused_url(), "auto", RUN)
    beats.start()
    told = beats.finish(Ping("success"), b"", 1.0)
    assert told == "start not delivered: connection refused; success not delivered: connection refused"
    assert CHECK not in told


@pytest.mark.parametrize("misbehave", ["silent", "drip_head", "drip_body", "redirects", "garbage"])
def test_hostile_server_costs_no_more_than_the_budget(misbehave: str, short_budget: float) -> None:
    """FR-44."""
    with PingServer(misbehave=misbehave) as server:
        beats = Pinger(server.check_url, "auto", RUN)
        began = time.monotonic()
        beats.start()
        assert time.monotonic() - began < 2
        told = beats.finish(Ping("success"), b"x" * 100_000, 1.0)
        assert time.monotonic() - began < short_budget
    # A body that never ends after a 200 is nobody's concern: the ping has arrived.
    assert ("success delivered" in told) == (misbehave == "drip_body")
    assert CHECK not in told


def test_silent_server_costs_ten_seconds_and_not_more() -> None:
    """FR-44, with the real limits: 5 s a try, 10 s in all."""
    with PingServer(misbehave="silent") as server:
        began = time.monotonic()
        assert once(server.check_url, "auto", Ping("fail")) == "fail not delivered: no answer in time"
        assert 8 < time.monotonic() - began < 10 + SLACK_S


def test_answer_that_is_not_tls_is_told(short_budget: float) -> None:
    with PingServer(misbehave="garbage") as server:
        url = server.check_url.replace("http:", "https:")
        assert once(url, "auto", Ping("success")) == "success not delivered: TLS failed"


HANGING_DNS = """
import fcntl, socket, struct, subprocess, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
    fcntl.ioctl(link, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 53))
subprocess.run(["mount", "--bind", sys.argv[1], "/etc/resolv.conf"], check=True)
sys.path[:0] = sys.argv[2:]
from cronguard.system import courier, pinger
courier.TRY_S, pinger.BUDGET_S = 1.0, 2.5
began = time.monotonic()
print(pinger.once("http://checks.example.com/ping/x", "healthchecks", pinger.Ping("fail")), time.monotonic() - began)
"""


def test_name_server_that_never_answers_costs_no_more_than_the_budget(tmp_path: Path) -> None:
    """FR-44: getaddrinfo has no time limit that a program can set, so the process that is in it is ended."""
    apart = ["unshare", "--map-root-user", "--mount", "--net"]
    if subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        if os.environ.get("CI") == "true" and os.geteuid() == 0:
            pytest.fail("CI runs as root and must be able to unshare")
        pytest.skip("no right to unshare namespaces")
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
    paths = [folder for folder in sys.path if folder]
    done = subprocess.run(
        [*apart, sys.executable, "-c", HANGING_DNS, str(tmp_path / "resolv.conf"), *paths],
        stdout=subprocess.PIPE, timeout=30, check=True, text=True,
    )  # fmt: skip
    told, _, took = done.stdout.strip().rpartition(" ")
    assert told == "fail not delivered: no answer in time"
    assert float(took) < 2.5 + SLACK_S


def test_tail_of_the_output_is_sent_within_the_usual_limit() -> None:
    """FR-42: the end arrives, and the marker says what did not."""
    output = b"noise\n" * 200_000 + b"LAST\n"
    with PingServer() as server:
        once(server.check_url, "auto", Ping("fail"), output)
    body = server.received[0].body
    assert len(body) <= 10_000
    assert body.endswith(b"LAST\n")
    assert body.startswith(b"... ")


def test_reason_stays_when_the_output_is_cut_and_the_marker_counts_what_a_run_had_cut_before() -> None:
    """FR-42."""
    with PingServer() as server:
        ping = Ping("exit", 3, "the command left with exit code 3")
        Pinger(server.check_url, "auto", RUN).finish(ping, b"x" * 20_000, 1.0, cut_bytes=980_000)
    reason, marker, output = server.received[0].body.split(b"\n")
    assert reason == b"the command left with exit code 3"
    assert marker == b"... %d bytes cut" % (1_000_000 - len(output))
    assert 9_990 <= len(server.received[0].body) <= 10_000


@pytest.mark.parametrize(("announced", "kept"), [("100000", 100_000), ("100", 100), ("0", 0), ("lots", 10_000)])
def test_limit_that_the_server_announces_is_kept(announced: str, kept: int) -> None:
    """FR-42: `Ping-Body-Limit` of the reply to the start ping."""
    with PingServer(headers={"Ping-Body-Limit": announced}) as server:
        beats = Pinger(server.check_url, "auto", RUN)
        beats.start()
        server.wait_for(1)
        beats.finish(Ping("success"), b"x" * 300_000, 1.0)
    assert len(server.received[1].body) == kept


def test_secrets_are_in_no_argument_and_no_environment(
    monkeypatch: pytest.MonkeyPatch, short_budget: float, pingers: Callable[[], List[Path]]
) -> None:
    """P9; and nothing that the pinger inherits makes it look like a process of the run."""
    monkeypatch.setenv("CRONGUARD_PING", "http://secret.example.com")
    monkeypatch.setenv("CRONGUARD_RUN_ID", RUN)
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    with PingServer(delay_s=5) as server:
        beats = Pinger(server.check_url, "auto", RUN)
        beats.start()
        server.wait_for(1)
        (process,) = pingers()
        arguments, surroundings = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        descriptors = [os.readlink(str(link)) for link in (process / "fd").iterdir()]
        assert os.getsid(int(process.name)) == os.getsid(0), "in another session it would pass for a command's"
        beats.finish(Ping("success"), b"", 1.0)
    pipe = os.readlink(f"/proc/self/fd/{write_end}")
    os.close(read_end)
    os.close(write_end)
    for secret in (CHECK.encode(), b"secret.example.com", RUN.encode()):
        assert secret not in arguments + surroundings
    assert pipe not in descriptors


def test_interrupt_from_the_terminal_ends_the_job_and_not_the_ping(pingers: Callable[[], List[Path]]) -> None:
    with PingServer(delay_s=0.3) as server:
        beats = Pinger(server.check_url, "auto", RUN)
        beats.start()
        for process in pingers():
            os.kill(int(process.name), signal.SIGINT)
        server.wait_for(1)
        assert beats.finish(Ping("exit", 130), b"", 1.0) == "start delivered; exit 130 delivered"


def test_interpreter_that_vanished_during_the_run_is_told(tmp_path: Path) -> None:
    """FR-34: a deployment replaced the virtual environment."""
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    with PingServer() as server:
        beats = Pinger(server.check_url, "auto", RUN, str(python))
        beats.start()
        server.wait_for(1)
        python.unlink()
        told = beats.finish(Ping("success"), b"", 1.0)
    assert told == "start delivered; success not delivered: the pinger could not be started: no such file or directory"


def test_packages_that_vanished_during_the_run_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """FR-34: and `finish` itself imports nothing that is not loaded."""
    with PingServer() as server:
        beats = Pinger(server.check_url, "auto", RUN)
        monkeypatch.setattr(sys, "path", [])
        assert "httpx cannot be loaded" in beats.finish(Ping("success"), b"", 1.0)


def test_unusable_url_is_told_without_being_shown() -> None:
    beats = Pinger("ftp://hidden.example.com/x", "auto", RUN)
    beats.start()
    told = beats.finish(Ping("success"), b"", 1.0)
    assert told == "success not delivered: the ping URL does not start with http:// or https://"


def test_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with PingServer() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert once("http://checks.example.com/ping/x", "healthchecks", Ping("success")) == "success delivered"
    assert proxy.received[0].headers["Host"] == "checks.example.com"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    certificate, key = str(tmp_path / "c.pem"), str(tmp_path / "k.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-out", certificate, "-keyout", key],
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with PingServer(tls=context) as server:
        told = once(f"https://127.0.0.1:{server.port}/ping/{CHECK}", "auto", Ping("success"))
    assert told.startswith("success not delivered: TLS certificate not accepted")
    assert server.received == []
