"""Article 4's campaign: three hundred messages, workers that come and go, an inbox that only fails."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Dict, Iterator, List, Sequence

import pytest

from tests.support.cronguard import gone, until
from tests.support.queues import Queue

pytestmark = pytest.mark.usual

INBOXES = ("north", "south", "west")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.usual)])
def queue(request: pytest.FixtureRequest) -> Iterator[Queue]:
    made = Queue(request.getfixturevalue(f"{request.param}_url"))
    yield made
    made.store.close()


def campaign(queue: Queue, messages: int) -> List[str]:
    """Messages in turns over the inboxes; their keys."""
    keys = [f"{number:03}" for number in range(messages)]
    for place, inbox in enumerate(INBOXES):
        queue.add(*keys[place :: len(INBOXES)], group=inbox)
    return keys


def sending(sent: Path, first: str = "") -> Sequence[str]:
    """A handler that appends its key and the time, as one write."""
    return ("--", "sh", "-c", f"{first} echo {{key}} $(date +%s.%N) >> {sent}")


def times_of(sent: Path) -> Dict[str, List[float]]:
    times: Dict[str, List[float]] = {}
    for line in sent.read_text().splitlines():
        key, at = line.split()
        times.setdefault(key, []).append(float(at))
    return times


def test_each_message_is_sent_once_although_a_worker_is_killed_in_the_middle(queue: Queue, tmp_path: Path) -> None:
    """FR-68, FR-69: what the dead worker had reserved comes back after the reservation, and not before."""
    keys = campaign(queue, 300)
    sent, pid = tmp_path / "sent", tmp_path / "pid"
    hang = f"echo $$ > {pid}; sleep 60;"
    with queue.working("--reserve", "3s", *sending(sent, hang)) as killed:
        handler = int(until(lambda: pid.exists() and pid.read_text().strip(), "the handler to run"))
        killed.process.kill()
        killed.process.wait(20)
    until(lambda: gone(handler), "its keeper to end the handler")
    reserved = {item.key: item.available_at_utc.timestamp() for item in queue.items("reserved")}
    assert len(reserved) == 10
    with queue.working(*sending(sent)) as one, queue.working(*sending(sent)) as two:
        said = [each.process.communicate(timeout=60)[0].splitlines()[-1] for each in (one, two)]
    assert all("failed=0" in line for line in said)
    until(lambda: queue.work(*sending(sent)).returncode == 0 and not queue.items("reserved", "waiting"), "the rest")
    times = times_of(sent)
    assert sorted(times) == keys
    assert {len(each) for each in times.values()} == {1}
    assert all(times[key][0] >= until_s for key, until_s in reserved.items())


def test_inbox_that_only_fails_leaves_the_others_complete_within_the_budget(queue: Queue, tmp_path: Path) -> None:
    keys = campaign(queue, 45)
    queue.add(*(f"bad-{number}" for number in range(20)), group="broken")
    sent = tmp_path / "sent"
    failing = "case {group} in broken) exit 7;; esac;"
    limits = ("--budget", "30s", "--timeout", "5s", "--grace", "1s", "--group-failures", "3")
    ended = queue.work(*limits, *sending(sent, failing))
    assert (ended.returncode, ended.stdout) == (1, "done=45 failed=3 left=20\n")
    assert sorted(times_of(sent)) == keys
    assert Counter(item.group for item in queue.items("waiting", "reserved", "dead")) == {"broken": 20}


@pytest.mark.usual
def test_twenty_workers_lose_and_double_nothing(queue: Queue, tmp_path: Path) -> None:
    """The big one, on ten thousand items, is in `python -m tests.bench --only draining`."""
    keys = campaign(queue, 400)
    sent = tmp_path / "sent"
    handler = ("--", "/bin/sh", "-c", f"echo {{key}} 0 >> {sent}")
    with ExitStack() as stack:
        workers = [stack.enter_context(queue.working("--batch", "5", *handler)) for _ in range(20)]
        codes = [worker.process.wait(120) for worker in workers]
    assert codes == [0] * 20
    assert {key: len(each) for key, each in times_of(sent).items()} == dict.fromkeys(keys, 1)
