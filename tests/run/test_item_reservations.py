"""Who may settle an item: reservations that are kept, lost and come back; a store that goes away in the middle."""

from __future__ import annotations

import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Iterator, List, Sequence

import pytest

from cronguard.api import items
from tests.support.cronguard import gone, until
from tests.support.postgres import Server, server_binaries
from tests.support.proxy import AFTER, Proxy
from tests.support.queues import JOB, Queue, sh
from tests.support.stores import parts_of, unavailable

QUICK = ("--timeout", "20s", "--grace", "1s")


@pytest.fixture
def queues() -> Iterator[List[Queue]]:
    opened: List[Queue] = []
    yield opened
    for each in opened:
        each.store.close()


@pytest.fixture
def queue(sqlite_url: str, queues: List[Queue]) -> Queue:
    queues.append(Queue(sqlite_url))
    return queues[-1]


def until_gate(gate: Path) -> Sequence[str]:
    return sh(f"echo in; while ! [ -e {gate} ]; do sleep 0.02; done")


def test_reservation_shorter_than_the_work_is_renewed(queue: Queue, tmp_path: Path) -> None:
    """FR-69: handled once, whoever else looks for work meanwhile."""
    queue.add("k")
    gate = tmp_path / "gate"
    with queue.working("--reserve", "1s", *QUICK, *until_gate(gate)) as working:
        assert working.line() == "in"
        first_end = queue.item("k").available_at_utc
        until(lambda: queue.item("k").available_at_utc - first_end > timedelta(seconds=1), "it to be renewed for long")
        assert queue.work("--", "echo", "twice").stdout == "done=0 failed=0 left=1\n"
        gate.touch()
        assert working.end().stdout == "done=1 failed=0 left=0\n"


def test_late_finisher_is_refused_and_told(queue: Queue, tmp_path: Path) -> None:
    """FR-69: stopped for longer than its reservation, it comes back to an item that somebody else has done."""
    queue.add("k")
    gate = tmp_path / "gate"
    with queue.working("--reserve", "2s", *QUICK, *until_gate(gate)) as working:
        assert working.line() == "in"
        working.process.send_signal(signal.SIGSTOP)
        gate.touch()  # the handler ends well, but nobody is there to say so
        until(lambda: queue.work("--", "true").stdout.startswith("done=1"), "the reservation to end")
        working.process.send_signal(signal.SIGCONT)
        late = working.end()
    assert (late.returncode, late.stdout) == (1, "done=0 failed=0 left=0 lost=1\n")
    assert "item_lost job=mails item=k" in late.stderr
    assert queue.item("k").attempts == 2


def test_handler_ends_when_its_item_is_taken_away(queue: Queue) -> None:
    queue.add("k")
    with queue.working("--reserve", "1s", *QUICK, *sh("echo $$; sleep 60; true")) as working:
        pid = int(working.line())
        queue.store.forget_items(JOB, ["k"], 5)
        done = working.end()
    assert gone(pid)
    assert (done.returncode, done.stdout) == (1, "done=0 failed=0 left=0 lost=1\n")


def test_items_of_a_worker_that_was_killed_come_back_and_its_handler_ends(queue: Queue) -> None:
    queue.add(*"abc")
    with queue.working("--reserve", "1s", *sh("echo $$; sleep 60; true")) as working:
        pid = int(working.line())
        working.process.send_signal(signal.SIGKILL)
        until(lambda: gone(pid), "the handler to be ended by its keeper")
    assert queue.counts().reserved == 3
    until(lambda: queue.counts().ready + _due(queue) == 3, "the reservation to end")
    assert queue.work("--", "true").stdout == "done=3 failed=0 left=0\n"


def _due(queue: Queue) -> int:
    return sum(item.available_at_utc.timestamp() <= time.time() for item in queue.items("reserved"))


def test_answer_that_is_lost_with_its_connection_settles_nothing_twice(
    admin_dsn: str, schema_name: str, queues: List[Queue]
) -> None:
    parts = parts_of(admin_dsn)
    proxy = Proxy(parts["host"], int(parts["port"]))
    through = admin_dsn.replace(f":{parts['port']}", f":{proxy.port}")
    queues.append(Queue(f"{admin_dsn}?schema={schema_name}"))
    queue = queues[-1]
    queue.add(*"abc")
    proxy.cut(AFTER, b"started_at")  # of the first step, which settles nothing and starts a
    env = {**queue.env, "CRONGUARD_STORE": f"{through}?schema={schema_name}"}
    done = queue.work("--", "echo", "{key}", env=env)
    assert proxy.cuts == 1
    assert (done.returncode, done.stdout) == (0, "a\nb\nc\ndone=3 failed=0 left=0\n")
    assert [item.attempts for item in queue.items()] == [1, 1, 1]
    proxy.close()


def test_outage_is_waited_for_while_the_reservation_lasts_and_no_longer(
    tmp_path: Path, queues: List[Queue]
) -> None:
    if server_binaries() is None:
        unavailable("no PostgreSQL of our own to stop and start")
    server = Server()
    try:
        server.start()
        queues.append(Queue(server.dsn))
        queue = queues[-1]
        queue.add(*"ab")
        gate = tmp_path / "gate"
        handler = f"echo $$; [ {{key}} = b ] && sleep 60; while ! [ -e {gate} ]; do sleep 0.02; done; :"
        with queue.working("--reserve", "6s", *QUICK, *sh(handler)) as working:
            working.line()
            server.stop()
            gate.touch()  # a ends well while there is nobody to tell
            time.sleep(0.5)
            server.start()
            pid = int(working.line())  # b has begun: a was settled
            server.stop()
            done = working.end()
        assert gone(pid)
        assert (done.returncode, done.stdout) == (125, "done=1 failed=0 left=unknown\n")
        assert "Traceback" not in done.stderr
        server.start()
        assert (queue.item("a").status, queue.item("b").status) == ("done", "reserved")
    finally:
        server.remove()


@pytest.mark.usual
def test_two_hundred_items_through_a_pooler(pgbouncer_url: str, queues: List[Queue]) -> None:
    """FR-60: no statement is prepared that another backend would have to know."""
    queues.append(Queue(pgbouncer_url))
    queues[-1].add(*map(str, range(200)))
    seen: List[str] = []
    tally = items.drain(lambda work: seen.append(work.key), job=JOB, store=pgbouncer_url)
    assert (tally.done, tally.failed, tally.left) == (200, 0, 0)
    assert sorted(seen, key=int) == list(map(str, range(200)))


def test_function_that_overstays_loses_its_item_and_is_refused(queue: Queue, sqlite_url: str) -> None:
    """Nobody can stop it; its reservation is renewed no longer than it may take."""
    queue.add("k")
    seen: List[bool] = []

    def handler(work: items.Work) -> None:
        until(lambda: queue.work("--", "true").stdout.startswith("done=1"), "somebody else to get it")
        seen.append(work.lost)

    tally = items.drain(handler, job=JOB, store=sqlite_url, reserve=1, timeout=1)
    assert (tally.done, tally.lost, seen) == (0, 1, [True])
    assert queue.item("k").attempts == 2
