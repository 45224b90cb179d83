"""The connection is cut around the message that matters (lock-protocol, section 6): nothing doubled, nothing lost."""

from __future__ import annotations

import time
from typing import Callable, Iterator

import pytest

from cronguard.core.checkpoints import CheckpointSet, WasSet
from cronguard.core.ledger import Begun, Effect, EffectRequest
from cronguard.core.model import Claimed, Finding, Held
from cronguard.core.queue import NewItem, Settlement, Start, Take, Taken
from cronguard.errors import StoreDown
from cronguard.store.backend import SqlStore
from tests.support.claims import OWNER, UNKNOWN, WITHIN_S, claimed, finish, now, request, row_of, skip, summary_of
from tests.support.proxy import AFTER, BEFORE, LATE, SWALLOWED, Proxy
from tests.support.stores import parts_of

Opened = Callable[[str], SqlStore]
WHERE = pytest.mark.parametrize("where", [BEFORE, AFTER, LATE])
LATE_S = 0.7
# The message of its own that ends a writing transaction: type Q, length 11. Reads carry their COMMIT with them.
BARE_COMMIT = b"Q\0\0\0\x0bCOMMIT\0"


@pytest.fixture
def proxy(admin_dsn: str) -> Iterator[Proxy]:
    parts = parts_of(admin_dsn)
    between = Proxy(parts["host"], int(parts["port"]))
    yield between
    between.close()


@pytest.fixture
def direct(postgres_url: str, opened: Opened) -> SqlStore:
    """The store without the proxy."""
    return opened(postgres_url)


@pytest.fixture
def store(direct: SqlStore, admin_dsn: str, schema_name: str, proxy: Proxy, opened: Opened) -> SqlStore:
    """The same store through the proxy."""
    parts = parts_of(admin_dsn)
    url = f"postgresql://{parts['user']}@127.0.0.1:{proxy.port}/{parts['dbname']}?schema={schema_name}&sslmode=disable"
    return opened(url)


@WHERE
def test_claim_cut_in_its_commit_is_one_claim(store: SqlStore, direct: SqlStore, proxy: Proxy, where: str) -> None:
    wish = request()
    proxy.cut(where, BARE_COMMIT, LATE_S)
    claim = claimed(store, wish)
    assert proxy.cuts == 1
    row = row_of(direct, wish.run_id)
    assert (row.status, row.fence, row.claim_no) == ("running", claim.fence, 1)
    assert len(direct.history("job", 9, (), None, WITHIN_S)) == 1
    assert store.renew(claim, 30.0, WITHIN_S) == "ours"
    answer = direct.claim(request(), UNKNOWN, WITHIN_S)
    assert isinstance(answer, Held)
    assert answer.holder.run_id == wish.run_id


@WHERE
@pytest.mark.parametrize("status", ["success", "failed"])
def test_finish_cut_in_its_commit_is_one_finish(
    store: SqlStore, direct: SqlStore, proxy: Proxy, where: str, status: str
) -> None:
    claim = claimed(store, request())
    proxy.cut(where, BARE_COMMIT, LATE_S)
    assert store.finish(claim, finish(status), WITHIN_S)
    assert proxy.cuts == 1
    assert row_of(direct, claim.run_id).status == status
    assert summary_of(direct).strip == status[0]
    assert isinstance(direct.claim(request("next"), UNKNOWN, WITHIN_S), Claimed)


@WHERE
def test_renewal_cut_on_its_way_is_repeated(store: SqlStore, proxy: Proxy, where: str) -> None:
    claim = claimed(store, request())
    proxy.cut(where, b"UPDATE locks", LATE_S)
    assert store.renew(claim, 30.0, WITHIN_S) == "ours"
    assert proxy.cuts == 1


@WHERE
def test_first_skip_cut_in_its_commit_is_one_row(store: SqlStore, direct: SqlStore, proxy: Proxy, where: str) -> None:
    one = skip()
    proxy.cut(where, BARE_COMMIT, LATE_S)
    store.record_skip(one, WITHIN_S)
    assert proxy.cuts == 1
    assert row_of(direct, one.run_id).times == 1
    assert summary_of(direct).skips_in_row == 1


@WHERE
def test_check_cut_in_its_commit_gets_its_notices_all_the_same(store: SqlStore, proxy: Proxy, where: str) -> None:
    """FR-102: what the lost first try took for itself would be told by nobody for a minute."""
    found = Finding("job", "missed", "critical", "late", now(), ())
    proxy.cut(where, b"INSERT INTO incidents", LATE_S)
    notices = store.sync_incidents(["job"], [found], now(), 60.0, WITHIN_S)
    assert proxy.cuts == 1
    assert [notice.what for notice in notices] == ["opened"]
    assert store.incidents(WITHIN_S) == [notices[0].incident]


@WHERE
def test_take_cut_on_its_way_is_one_take(store: SqlStore, direct: SqlStore, proxy: Proxy, where: str) -> None:
    direct.add_items("job", [NewItem(f"k{number}") for number in range(9)], WITHIN_S)
    proxy.cut(where, b"SKIP LOCKED", LATE_S)
    answer = store.take_items(Take("job", ("",), 4, 9, "worker", "take", None, 30.0), WITHIN_S)
    assert proxy.cuts == 1
    assert isinstance(answer, Taken)
    held = direct.renew_items("job", "worker", 30.0, WITHIN_S)
    assert held == {item.key: item.token for item in answer.items}
    assert sorted(held) == ["k0", "k1", "k2", "k3"]


@pytest.mark.parametrize("where", [BEFORE, AFTER])
def test_what_is_done_to_effects_and_items_may_be_cut_and_says_the_same(
    store: SqlStore, proxy: Proxy, where: str
) -> None:
    begin = EffectRequest(Effect("job", "mail"), "token", None, OWNER, None, 30.0)
    proxy.cut(where, b"INSERT INTO ledger")
    begun = store.begin_effect(begin, WITHIN_S)
    assert isinstance(begun, Begun)
    proxy.cut(where, b"UPDATE ledger")
    assert store.settle_effect(begun, "done", "", WITHIN_S)
    proxy.cut(where, BARE_COMMIT)
    assert store.forget_effects([begin.effect], WITHIN_S) == [begin.effect]
    proxy.cut(where, BARE_COMMIT)
    assert store.add_items("job", [NewItem("a"), NewItem("b")], WITHIN_S) == 2
    store.take_items(Take("job", ("",), 2, 2, "worker", "take", None, 30.0), WITHIN_S)
    proxy.cut(where, b"UPDATE items")
    steps = store.step_items("job", [Settlement("a", 1, "done", 1)], [Start("b", 1, 1)], 30.0, WITHIN_S)
    assert (steps.unsettled, steps.unstarted) == ((), ())
    proxy.cut(where, BARE_COMMIT)
    assert store.forget_items("job", ["a", "b"], WITHIN_S) == ["a", "b"]
    assert proxy.cuts == 6


@WHERE
def test_checkpoint_cut_on_its_way_is_set_once(store: SqlStore, proxy: Proxy, where: str) -> None:
    """The second try finds the value of the first, which is not the one expected."""
    proxy.cut(where, b"INSERT INTO checkpoints", LATE_S)
    assert store.set_checkpoint(CheckpointSet("job", "page", "1", None, expected=""), WITHIN_S) == WasSet(None)
    assert proxy.cuts == 1


@pytest.mark.parametrize("text", [b"pg_advisory_xact_lock", b"INSERT INTO runs", b"SELECT CASE WHEN"])
@pytest.mark.parametrize("where", [BEFORE, AFTER])
def test_claim_cut_before_its_commit_is_tried_again(
    store: SqlStore, direct: SqlStore, proxy: Proxy, where: str, text: bytes
) -> None:
    proxy.cut(where, text)
    claim = claimed(store, request())
    assert proxy.cuts == 1
    assert [row.run_id for row in direct.history("job", 9, (), None, WITHIN_S)] == [claim.run_id]


def test_silence_ends_at_the_deadline_and_not_with_the_connection(store: SqlStore, proxy: Proxy) -> None:
    """FR-56: a path that swallows packets, a frozen server. psycopg alone would wait for ever."""
    claim = claimed(store, request())
    proxy.cut(SWALLOWED, b"UPDATE locks")
    began = time.monotonic()
    with pytest.raises(StoreDown, match="no answer"):
        store.renew(claim, 30.0, 1.0)
    assert 0.9 < time.monotonic() - began < 3.0
    assert store.renew(claim, 30.0, WITHIN_S) == "ours"
