"""The thread that owns the store: nobody waits for it without a deadline (P5)."""

from __future__ import annotations

import fcntl
import select
import threading
import time
from typing import Any, Callable, Iterator, List

import pytest

from cronguard.core.model import Claimed
from cronguard.errors import StoreDown, StoreError
from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store
from cronguard.store.waiting import boot_time_s
from cronguard.store.worker import StoreWorker
from tests.support.claims import ALIVE, UNKNOWN, WITHIN_S, claimed, finish, request, row_of

CLAIM = Claimed("run", "job", 1, 1, 0.0, "schedule")


class Scripted:
    """A store whose renewals go as told, later ones `ours`; `down` is a store that does not answer."""

    name = "scripted"
    leased = True
    warnings = ()

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.renewals = 0
        self.threads: List[int] = []
        self.closed = threading.Event()

    def renew(self, _claim: Claimed, _lease_s: float, _within_s: float) -> str:
        self.renewals += 1
        answer = self._answers.pop(0) if self._answers else "ours"
        if answer == "down":
            raise StoreDown("down")
        return answer

    def note(self) -> int:
        self.threads.append(threading.get_ident())
        return 7

    def close(self) -> None:
        self.threads.append(threading.get_ident())
        self.closed.set()


def renewing(claim: Claimed, lease_s: float) -> Any:
    """What a worker renews for a run."""
    return lambda store, within_s: store.renew(claim, lease_s, within_s), lease_s


@pytest.fixture
def serve() -> Iterator[Callable[..., StoreWorker]]:
    """Makes workers that are closed at the end."""
    workers: List[StoreWorker] = []

    def make(store: Any, *rest: Any) -> StoreWorker:
        workers.append(StoreWorker(store, *rest))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close(1.0)


def readable(lease: Any, within_s: float) -> bool:
    poller = select.poll()
    poller.register(lease, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


def test_calls_answer_from_a_thread_of_their_own(serve: Callable[..., StoreWorker]) -> None:
    store = Scripted()
    worker = serve(store)
    assert (worker.name, worker.leased) == ("scripted", True)
    assert [worker.call(lambda _store: store.note(), 1.0) for _ in range(2)] == [7, 7]
    worker.close(1.0)
    assert store.closed.is_set()
    assert len(set(store.threads)) == 1
    assert threading.get_ident() not in store.threads


def test_errors_come_out_where_the_call_was_made(serve: Callable[..., StoreWorker]) -> None:
    def fail(_store: object) -> None:
        raise StoreError("no rights")

    worker = serve(Scripted())
    with pytest.raises(StoreError, match="no rights"):
        worker.call(fail, 1.0)
    assert worker.call(lambda _store: 1, 1.0) == 1


def test_thread_that_hangs_is_given_up_in_time(serve: Callable[..., StoreWorker]) -> None:
    """A name server that never answers (getaddrinfo(3) has no deadline), a flock that blocks (FR-07), FR-19."""
    release = threading.Event()
    store = Scripted()
    worker = serve(store)
    began = time.monotonic()
    with pytest.raises(StoreDown, match="scripted"):
        worker.call(lambda _store: release.wait(60), 0.2)
    assert time.monotonic() - began < 2.0
    began = time.monotonic()
    with pytest.raises(StoreDown):
        worker.call(lambda _store: 1, 60.0)
    assert time.monotonic() - began < 1.0
    release.set()
    assert store.closed.wait(WITHIN_S)


def test_fresh_thread_and_store_take_over_from_one_that_hangs(serve: Callable[..., StoreWorker]) -> None:
    release = threading.Event()
    second = Scripted()
    worker = serve(Scripted(), lambda: second)
    with pytest.raises(StoreDown):
        worker.call(lambda _store: release.wait(60), 0.1)
    assert worker.call(lambda store: store, 1.0) is second
    release.set()


def test_renewals_are_told_with_the_time_they_were_sent(serve: Callable[..., StoreWorker]) -> None:
    worker = serve(Scripted())
    before = boot_time_s()
    lease = worker.keep_renewed(*renewing(CLAIM, 0.6))
    told: List[Any] = []
    while len(told) < 3:
        assert readable(lease, WITHIN_S)
        told += lease.news()
    times = [sent_at for sent_at in told if isinstance(sent_at, float)]
    assert len(times) == len(told)
    assert before < times[0] < times[1] < times[2] <= boot_time_s()
    worker.stop_renewing()


def test_news_are_told_once_and_never_block(serve: Callable[..., StoreWorker]) -> None:
    lease = serve(Scripted()).keep_renewed(*renewing(CLAIM, 60.0))
    assert lease.news() == []
    assert not readable(lease, 0.0)
    assert fcntl.fcntl(lease.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_renewal_that_was_refused_is_told_as_lost_and_not_tried_again(serve: Callable[..., StoreWorker]) -> None:
    store = Scripted("lost")
    lease = serve(store).keep_renewed(*renewing(CLAIM, 0.3))
    assert readable(lease, WITHIN_S)
    assert lease.news() == ["lost"]
    assert not readable(lease, 0.3)
    assert store.renewals == 1


def test_wish_to_cancel_is_told_once_and_the_claim_is_renewed_all_the_same(serve: Callable[..., StoreWorker]) -> None:
    store = Scripted("ours", "cancelled", "cancelled", "cancelled")
    lease = serve(store).keep_renewed(*renewing(CLAIM, 0.3))
    told: List[Any] = []
    while store.renewals < 5:
        assert readable(lease, WITHIN_S)
        told += lease.news()
    assert told.count("cancelled") == 1
    assert isinstance(told[told.index("cancelled") - 1], float)
    assert len([news for news in told if isinstance(news, float)]) >= 4


def test_renewal_without_an_answer_is_tried_again_soon_and_not_told(serve: Callable[..., StoreWorker]) -> None:
    store = Scripted("down", "down", "ours")
    began = time.monotonic()
    lease = serve(store).keep_renewed(*renewing(CLAIM, 6.0))
    assert readable(lease, WITHIN_S)
    assert len(lease.news()) == 1
    assert store.renewals == 3
    assert time.monotonic() - began < 3.0


def test_nothing_is_renewed_after_the_stop(serve: Callable[..., StoreWorker]) -> None:
    store = Scripted()
    worker = serve(store)
    lease = worker.keep_renewed(*renewing(CLAIM, 0.3))
    assert readable(lease, WITHIN_S)
    worker.stop_renewing()
    worker.call(lambda _store: None, 1.0)
    count = store.renewals
    assert not readable(lease, 0.2) or lease.news()
    assert store.renewals == count


def test_whole_run_goes_through_a_worker(store_url: str, serve: Callable[..., StoreWorker], opened: Any) -> None:
    worker = serve(open_store(store_url), lambda: open_store(store_url))
    worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
    claim = worker.call(lambda store: claimed(store, request(lease_s=2.0)), WITHIN_S)
    lease = worker.keep_renewed(*renewing(claim, 2.0))
    assert readable(lease, WITHIN_S)
    (sent_at,) = lease.news()
    assert isinstance(sent_at, float)
    assert sent_at > claim.sent_at
    worker.stop_renewing()
    assert worker.call(lambda store: store.finish(claim, finish(), WITHIN_S), WITHIN_S)
    other: SqlStore = opened(store_url)
    assert row_of(other, claim.run_id).status == "success"


def test_lease_outlives_its_first_term_while_it_is_renewed(
    postgres_url: str, serve: Callable[..., StoreWorker], opened: Any
) -> None:
    worker = serve(open_store(postgres_url))
    worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
    claim = worker.call(lambda store: claimed(store, request(lease_s=1.5)), WITHIN_S)
    lease = worker.keep_renewed(*renewing(claim, 1.5))
    end = time.monotonic() + 2.0
    other: SqlStore = opened(postgres_url)
    while time.monotonic() < end:
        assert not isinstance(other.claim(request("next"), UNKNOWN, WITHIN_S), Claimed)
        time.sleep(0.1)
    assert "lost" not in lease.news()
    worker.stop_renewing()


def test_closing_never_raises_and_ends_the_thread(serve: Callable[..., StoreWorker]) -> None:
    store = Scripted()
    worker = serve(store)
    worker.call(lambda _store: 1, 1.0)
    for _ in range(2):
        worker.close(1.0)
    assert store.closed.is_set()
    with pytest.raises(StoreDown):
        worker.call(lambda _store: 1, 1.0)


def test_worker_of_a_store_nobody_asked_starts_no_thread(serve: Callable[..., StoreWorker], sqlite_url: str) -> None:
    count = threading.active_count()
    serve(open_store(sqlite_url)).close(1.0)
    assert threading.active_count() == count


def test_unreachable_store_is_down_for_each_call(serve: Callable[..., StoreWorker]) -> None:
    worker = serve(open_store("postgresql://app@127.0.0.1:9/app"))
    for _ in range(2):
        with pytest.raises(StoreDown):
            worker.call(lambda store: store.look("job", "job", "k", ALIVE, 0.2), 0.2)
