"""The spool: kept whole, delivered once, never in the way."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, List

import pytest

from cronguard.core.model import (
    ClaimRequest,
    Finish,
    JobFacts,
    Outcome,
    Owner,
    Process,
    Report,
    ScheduleText,
    Slot,
)  # fmt: skip
from cronguard.errors import StoreDown, StoreError
from cronguard.store.spool import Spool

AT = datetime(2026, 3, 29, 1, 0, tzinfo=timezone.utc)


def report(run_id: str = "0197f3a2-0000", **changes: Any) -> Report:
    """A report with something in every field that needs care: a gap slot, bytes cut, processes, text beyond ASCII."""
    cron = ScheduleText("cron", "30 2 * * *")
    facts = JobFacts("nightly", cron, "Europe/Rome", "slot", 60.0, 10.0, None, 6e5, "failed")
    local = AT.astimezone(timezone(timedelta(hours=2)))
    slot = Slot("2026-03-29T02:30", AT, datetime(2026, 3, 29, 2, 30), local, "gap")
    owner = Owner("machine", "web-1", "boot", "4026531836", 42, 1000, 43, 1001)
    request = ClaimRequest(
        run_id, facts, "nightly", "2026-03-29T02:30", True, slot, "Europe/Rome", "2025b", "schedule", False, "failed",
        120.0, owner, "root", "0.1.0", ("sh", "-c", "true"), "/srv", None, AT, 0.0,
    )  # fmt: skip
    finish = Finish(
        Outcome("success", None, 0, None, 0, ""), "perché no €", AT, 1.5, 1, 0.1, 1024, 418, None, "tail\n", 7,
        (Process(99, "sleep 60"),), (), False,
    )  # fmt: skip
    return Report(request, 5, 1, finish, False)._replace(**changes)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(str(tmp_path / "spool" / "abc"))


def test_a_report_comes_back_as_it_was(spool: Spool) -> None:
    spool.save(report())
    assert spool.reports() == [report()]
    assert os.stat(spool.directory).st_mode & 0o777 == 0o700


def test_delivered_reports_are_gone_oldest_first(spool: Spool) -> None:
    for run_id in ("b", "a", "c"):
        spool.save(report(report().request._replace(run_id=run_id).run_id))
    taken: List[str] = []
    assert spool.deliver(lambda one: taken.append(one.request.run_id), 2, lambda: 1.0) == (2, 0)
    assert taken == ["a", "b"]
    assert [one.request.run_id for one in spool.reports()] == ["c"]


def test_nothing_is_taken_when_the_time_is_spent(spool: Spool) -> None:
    spool.save(report())
    assert spool.deliver(lambda one: None, 20, lambda: 0.0) == (0, 0)
    assert len(spool.reports()) == 1


def test_a_store_that_is_down_leaves_the_spool_as_it_was(spool: Spool) -> None:
    spool.save(report())

    def down(_: Report) -> None:
        raise StoreDown("down")

    with pytest.raises(StoreDown):
        spool.deliver(down, 20, lambda: 1.0)
    assert spool.reports() == [report()]


def test_what_a_healthy_store_refuses_and_what_cannot_be_read_is_set_aside(spool: Spool) -> None:
    spool.save(report("a"))
    (Path(spool.directory) / "b.json").write_text('{"type": "Rep')

    def refuse(_: Report) -> None:
        raise StoreError("no")

    assert spool.deliver(refuse, 20, lambda: 1.0) == (0, 2)
    assert spool.pending() == []
    assert sorted(os.listdir(spool.directory)) == ["a.json.bad", "b.json.bad"]


def test_fields_of_a_newer_version_are_passed_over(spool: Spool) -> None:
    path = Path(spool.save(report()))
    path.write_text(path.read_text().replace('"fence": 5', '"fence": 5, "novelty": 1'))
    assert spool.reports() == [report()]
