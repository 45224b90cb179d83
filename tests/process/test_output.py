"""Output passes byte for byte, memory stays flat, and nobody who holds or closes a pipe can hold us up."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronguard.system.output import Tail, tail_text
from tests.support.children import HOLDS_PIPE
from tests.support.processes import Guarded, run_driver, sh, wait_until

MIB = 1 << 20


def test_bytes_pass_unchanged_and_streams_stay_apart(tmp_path: Path) -> None:
    """FR-38: whatever the bytes are."""
    script = r"printf '\342\202'; head -c 300000 /dev/urandom | tee /dev/fd/3 >&2; printf '\000\377tail'"
    copy = tmp_path / "copy"
    facts = run_driver(tmp_path, sh(f"exec 3>{copy}; {script}"))
    assert facts["out"] == b"\xe2\x82\0\xfftail"
    assert facts["err"] == copy.read_bytes()


def test_order_is_kept_within_a_stream(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, sh("seq 1 200000; seq 200001 200100 >&2"))
    assert facts["out"].split() == [b"%d" % number for number in range(1, 200_001)]
    assert facts["err"].split() == [b"%d" % number for number in range(200_001, 200_101)]


def test_300_megabytes_pass_in_flat_memory(tmp_path: Path) -> None:
    """FR-40: one line of 300 MB, nothing kept but the tail."""
    size = 300 * MIB
    run = Guarded(tmp_path, sh(f"openssl enc -aes-128-ctr -K 0 -iv 0 -in /dev/zero 2>/dev/null | head -c {size}"))
    try:
        stdout = run.process.stdout
        assert stdout is not None
        digest, count = hashlib.sha256(), 0
        supervisor = run.started()["supervisor"]
        peak_kib = 0
        for chunk in iter(lambda: stdout.read1(MIB), b""):
            digest.update(chunk)
            count += len(chunk)
            if count > size // 2 and not peak_kib:
                peak_kib = _peak_kib(supervisor)
        facts = run.finish(30)
    finally:
        run.clean_up()
    reference = subprocess.run(
        sh(f"openssl enc -aes-128-ctr -K 0 -iv 0 -in /dev/zero 2>/dev/null | head -c {size} | sha256sum"),
        stdout=subprocess.PIPE,
        check=True,
    )
    assert count == size
    assert digest.hexdigest() == reference.stdout.decode().split()[0]
    assert (len(facts["tail"]), facts["cut_bytes"]) == (1 << 16, size - (1 << 16))
    assert 0 < peak_kib < 40 * 1024


def _peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_tail_has_both_streams_in_order_of_arrival(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, sh("echo one; sleep .05; echo two >&2; sleep .05; echo three"), tail_bytes=100)
    assert (facts["tail"], facts["cut_bytes"]) == ("one\ntwo\nthree\n", 0)


def test_quiet_keeps_the_tail_and_passes_nothing(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, sh("echo out; echo err >&2"), echo=False)
    assert (facts["out"], facts["err"]) == (b"", b"")
    assert sorted(facts["tail"].split()) == ["err", "out"]


def test_without_capture_the_command_has_our_own_descriptors(tmp_path: Path) -> None:
    target = tmp_path / "target"
    with open(target, "wb") as file:
        facts = run_driver(tmp_path, sh("readlink /proc/$$/fd/1; echo more"), capture=False, fd_out=file)
    assert target.read_text() == f"{target}\nmore\n"
    assert facts["tail"] == ""


def test_reader_that_leaves_does_not_stop_the_command(tmp_path: Path) -> None:
    """EPIPE on our own stdout: the command is drained to its end."""
    read, write = os.pipe()
    run = Guarded(tmp_path, sh("echo first; sleep .1; head -c 3000000 /dev/zero; exit 9"), fd_out=write)
    os.close(write)
    assert os.read(read, 6) == b"first\n"
    os.close(read)
    facts = run.finish()
    assert (facts["exit_code"], facts["output_error"]) == (9, None)
    assert facts["cut_bytes"] == 6 + 3_000_000 - (1 << 16)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_disk_is_told_and_does_not_stop_the_command(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        facts = run_driver(tmp_path, sh("echo lost; exit 0"), fd_out=full)
    assert facts["exit_code"] == 0
    assert facts["output_error"] == "stdout: no space left on device"


def test_daemon_that_holds_the_pipe_costs_two_seconds_at_most(tmp_path: Path) -> None:
    """FR-10, FR-107: the end is that of the command, not that of the pipe."""
    facts = run_driver(tmp_path, sh(HOLDS_PIPE))
    assert (facts["exit_code"], facts["out"]) == (5, b"before\n")
    assert facts["took_s"] < 4


def test_slow_reader_gets_everything(tmp_path: Path) -> None:
    """What the command wrote before its end passes, even if that takes longer than a daemon would be waited for."""
    run = Guarded(tmp_path, sh("head -c 900000 /dev/zero; (setsid sleep 60 &); exit 0"))
    try:
        stdout = run.process.stdout
        assert stdout is not None
        command = run.started()["command"]
        wait_until(lambda: not os.path.exists(f"/proc/{command}"))
        time.sleep(2.3)
        count = 0
        for chunk in iter(lambda: stdout.read1(100_000), b""):
            count += len(chunk)
        assert count == 900_000
        run.finish()
    finally:
        run.clean_up()


def test_signal_ends_the_wait_for_a_slow_reader(tmp_path: Path) -> None:
    """FR-20: a signal during the drain."""
    run = Guarded(tmp_path, sh("head -c 900000 /dev/zero; exit 0"))
    try:
        pids = run.started()
        wait_until(lambda: not os.path.exists(f"/proc/{pids['command']}"))
        run.send(signal.SIGTERM)
        wait_until(lambda: run.process.poll() is not None)
        assert run.finish()["first"] == signal.SIGTERM
    finally:
        run.clean_up()


def test_non_blocking_stdout_loses_nothing(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    run = Guarded(tmp_path, sh("head -c 1000000 /dev/zero"), fd_out=write)
    os.close(write)
    time.sleep(0.3)
    count = 0
    for chunk in iter(lambda: os.read(read, 50_000), b""):
        count += len(chunk)
    os.close(read)
    run.finish()
    assert count == 1_000_000


@given(st.lists(st.binary(max_size=9000), max_size=30), st.integers(0, 20_000))
def test_tail_is_the_last_bytes(chunks: List[bytes], limit: int) -> None:
    tail = Tail(limit)
    for chunk in chunks:
        tail.add(chunk)
    whole = b"".join(chunks)
    kept = whole[max(0, len(whole) - limit) :]
    assert tail.snapshot() == (kept, len(whole) - len(kept))


def test_tail_of_single_bytes_is_small() -> None:
    """FR-40: a program that writes byte by byte."""
    tail = Tail(MIB)
    for _ in range(300_000):
        tail.add(b"x")
    assert sum(sys.getsizeof(piece) for piece in tail._pieces) < MIB


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (("€€€€".encode()[1:], 1), "€€€"),
        (("€€€€".encode()[2:], 2), "€€€"),
        (("€".encode(), 0), "€"),
        ((b"\x80\x80\x80\x80x", 5), "\ufffdx"),
        ((b"\x80x", 0), "\ufffdx"),
        ((b"a\0b\xff\xe2\x82", 0), "ab\ufffd\ufffd"),
        ((b"", 7), ""),
    ],
)
def test_tail_text_is_valid_and_cut_between_characters(case: Tuple[bytes, int], text: str) -> None:
    """FR-38."""
    assert tail_text(*case) == text


STDIN_CASES: Dict[str, Tuple[str, bool]] = {
    "a closed empty pipe": ("true |", False),
    "data in a pipe": ("echo data |", True),
    "data that comes later": ("(sleep 0.4; echo late) |", True),
    "a pipe that stays silent": ("sleep 2 |", False),
    "null": ("</dev/null", False),
    "a file": ("<{file}", True),
    "an empty file": ("<{empty}", False),
}


@pytest.mark.parametrize("case", sorted(STDIN_CASES))
def test_unread_stdin_is_noticed(tmp_path: Path, case: str) -> None:
    """`pg_dump | cronguard run x -- gzip` must not make an empty backup in silence."""
    (tmp_path / "file").write_text("data\n")
    (tmp_path / "empty").touch()
    text, unread = STDIN_CASES[case]
    text = text.format(file=tmp_path / "file", empty=tmp_path / "empty")
    before, after = (text, "") if text.endswith("|") else ("", text)
    facts = run_driver(tmp_path, ["true"], wrap=["bash", "-c", f'{before} "$@" {after}', "bash"])
    assert facts["stdin_unread"] is unread
    assert facts["took_s"] < 4


def test_stdin_is_null_unless_passed_on(tmp_path: Path) -> None:
    """FR-18."""
    wrap = ["bash", "-c", 'echo data | "$@"', "bash"]
    null = run_driver(tmp_path, ["cat"], wrap=wrap, timeout_s=5)
    inherited = run_driver(tmp_path, ["cat"], wrap=wrap, timeout_s=5, stdin="inherit")
    assert (null["out"], null["stdin_unread"]) == (b"", True)
    assert (inherited["out"], inherited["stdin_unread"]) == (b"data\n", False)


def test_works_with_closed_standard_descriptors(tmp_path: Path) -> None:
    facts = run_driver(tmp_path, sh("echo out; exit 8"), wrap=["bash", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "bash"])
    assert facts["exit_code"] == 8
    assert facts["tail"] == "out\n"
