"""A published file is the old one or the new one, whole; others can read it; what is no file is not replaced."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from cronguard.errors import CronguardError
from cronguard.system.publishing import publish


@pytest.fixture
def folder(clean_surroundings: Path) -> Path:
    """An empty one."""
    return clean_surroundings


def test_reader_never_sees_a_part(folder: Path) -> None:
    file = folder / "page.html"
    texts = {letter * 300_000 for letter in "ab"}
    file.write_text("a" * 300_000)
    done = threading.Event()

    def write() -> None:
        for _ in range(40):
            for text in texts:
                publish(str(file), text)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    reads = 0
    while not done.is_set():
        assert file.read_text() in texts
        reads += 1
    writer.join()
    assert reads > 1
    assert os.listdir(folder) == ["page.html"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o644)])
def test_mode_is_0644_less_the_umask_whatever_it_was(folder: Path, umask: int, mode: int) -> None:
    file = folder / "page.html"
    file.touch(0o600)
    before = os.umask(umask)
    try:
        publish(str(file), "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_link_stays_and_its_target_is_replaced(folder: Path) -> None:
    (folder / "www").mkdir()
    (folder / "link").symlink_to("www/page.html")
    publish(str(folder / "link"), "new")
    assert (folder / "link").is_symlink()
    assert (folder / "www" / "page.html").read_text() == "new"


def test_fifo_is_written_to_and_stays_one(folder: Path) -> None:
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    publish(str(fifo), "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize("place", ["missing/page.html", "directory", "nul\0"])
def test_place_that_cannot_be_written_is_an_error_and_leaves_nothing(folder: Path, place: str) -> None:
    (folder / "directory").mkdir()
    with pytest.raises(CronguardError, match="cannot write"):
        publish(f"{folder}/{place}", "text")
    assert os.listdir(folder) == ["directory"]


def test_old_file_stays_when_the_disk_is_full(folder: Path) -> None:
    """A limit on the size of files fails in the same way, at the write."""
    import resource
    import signal

    file = folder / "page.html"
    file.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(CronguardError, match="cannot write"):
            publish(str(file), "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert file.read_text() == "old"
    assert os.listdir(folder) == ["page.html"]
