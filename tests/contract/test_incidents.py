"""One memory of what is wrong for all who check, on every kind of store (FR-100, FR-102)."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from typing import Any, List, Sequence

import pytest

from cronguard.core.model import Finding, Notice
from cronguard.store.backend import SqlStore
from cronguard.store.opening import open_store
from tests.support.claims import WITHIN_S

AT = datetime(2026, 1, 20, 1, 15, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY_S = 86400.0


def found(job: str = "job", kind: str = "missed", **changes: Any) -> Finding:
    plain = Finding(job, kind, "critical", f"{job} is late", AT - HOUR, ("the scheduler", "the host"))
    return plain._replace(**changes)


FOUND = (found(),)


def check(store: SqlStore, at: datetime, findings: Sequence[Finding] = FOUND, remind_s: float = DAY_S) -> List[Notice]:
    """What a check of `job` and `other` would have to tell."""
    return store.sync_incidents(["job", "other"], findings, at, remind_s, WITHIN_S)


def told(store: SqlStore, at: datetime, findings: Sequence[Finding] = FOUND, remind_s: float = DAY_S) -> List[str]:
    """The same, told."""
    notices = check(store, at, findings, remind_s)
    for notice in notices:
        store.settle_notice(notice, True, at, WITHIN_S)
    return [notice.what for notice in notices]


def test_finding_becomes_an_incident_with_everything_that_was_found(store: SqlStore) -> None:
    (notice,) = check(store, AT)
    (incident,) = store.incidents(WITHIN_S)
    assert notice == ("opened", incident)
    assert {name: getattr(incident, name) for name in Finding._fields} == found()._asdict()
    assert (incident.opened_at_utc, incident.told_at_utc, incident.closed_at_utc) == (AT, None, None)
    store.settle_notice(notice, True, AT + MINUTE, WITHIN_S)
    assert store.incidents(WITHIN_S) == [incident._replace(told_at_utc=AT + MINUTE)]


def test_incident_is_told_once_and_its_recovery_once(store: SqlStore) -> None:
    """FR-100: one alert, then 60 more checks without."""
    assert told(store, AT) == ["opened"]
    for minutes in range(1, 61):
        assert told(store, AT + minutes * MINUTE) == []
    assert told(store, AT + 2 * HOUR, ()) == ["recovered"]
    assert told(store, AT + 3 * HOUR, ()) == []
    assert store.incidents(WITHIN_S) == []


def test_reminders_come_at_their_interval(store: SqlStore) -> None:
    """FR-102: a job that fails for three hours, checked every minute on two hosts."""
    whats: List[str] = []
    for minutes in range(181):
        for _host in range(2):
            whats += told(store, AT + minutes * MINUTE, FOUND, 3600.0)
    assert whats == ["opened", "reminder", "reminder", "reminder"]


def test_findings_of_one_job_are_incidents_apart(store: SqlStore) -> None:
    notices = check(store, AT, [found(kind="failing"), found(), found("other")])
    assert [(notice.incident.job, notice.incident.kind) for notice in notices] == [
        ("job", "failing"), ("job", "missed"), ("other", "missed"),
    ]
    assert len(store.incidents(WITHIN_S)) == 3


def test_what_is_found_now_is_what_the_incident_says(store: SqlStore) -> None:
    told(store, AT)
    worse = found(summary="25 h late", state="warning", since_utc=AT, check_first=("x",))
    assert told(store, AT + HOUR, [worse]) == []
    (incident,) = store.incidents(WITHIN_S)
    assert (incident.summary, incident.state, incident.since_utc, incident.check_first) == (
        "25 h late", "warning", AT, ("x",),
    )
    assert (incident.opened_at_utc, incident.told_at_utc) == (AT, AT)


def test_jobs_that_were_not_checked_keep_their_incidents(store: SqlStore) -> None:
    told(store, AT)
    assert store.sync_incidents(["other"], [], AT + HOUR, DAY_S, WITHIN_S) == []
    assert len(store.incidents(WITHIN_S)) == 1


def test_finding_about_no_job_recovers_when_it_is_asked_for(store: SqlStore) -> None:
    nothing = found("", "nothing_to_check")
    assert [notice.what for notice in store.sync_incidents([], [nothing], AT, DAY_S, WITHIN_S)] == ["opened"]
    store.settle_notice(Notice("opened", store.incidents(WITHIN_S)[0]), True, AT, WITHIN_S)
    assert [notice.what for notice in store.sync_incidents([""], [], AT + HOUR, DAY_S, WITHIN_S)] == ["recovered"]


def test_notice_belongs_to_its_caller_for_a_minute_and_then_to_the_next(store: SqlStore) -> None:
    """Somebody was killed before it had told."""
    assert len(check(store, AT)) == 1
    assert check(store, AT + timedelta(seconds=59)) == []
    assert [notice.what for notice in check(store, AT + MINUTE)] == ["opened"]


@pytest.mark.parametrize("what", ["opened", "reminder", "recovered"])
def test_notice_that_was_not_delivered_is_given_to_the_next_check_at_once(store: SqlStore, what: str) -> None:
    """FR-102: the alert command exits 1 the first time; sent on the next check."""
    findings, at = FOUND, AT
    if what != "opened":
        told(store, AT)
        findings, at = (FOUND if what == "reminder" else ()), AT + HOUR
    (notice,) = check(store, at, findings, 3600.0)
    assert notice.what == what
    store.settle_notice(notice, False, at, WITHIN_S)
    (again,) = check(store, at, findings, 3600.0)
    assert (again.what, again.incident.incident_id) == (what, notice.incident.incident_id)


def test_incident_that_nobody_heard_of_recovers_in_silence(store: SqlStore) -> None:
    (notice,) = check(store, AT)
    store.settle_notice(notice, False, AT, WITHIN_S)
    assert check(store, AT + HOUR, ()) == []


def test_incident_that_was_over_before_it_was_told_is_told_to_be_over(store: SqlStore) -> None:
    (notice,) = check(store, AT)
    assert check(store, AT + timedelta(seconds=5), ()) == []
    store.settle_notice(notice, True, AT + timedelta(seconds=6), WITHIN_S)
    assert told(store, AT + timedelta(seconds=7), ()) == ["recovered"]


def test_trouble_that_comes_back_after_a_while_is_a_new_incident(store: SqlStore) -> None:
    told(store, AT)
    (first,) = store.incidents(WITHIN_S)
    told(store, AT + MINUTE, ())
    assert told(store, AT + 11 * MINUTE) == ["opened"]
    (second,) = store.incidents(WITHIN_S)
    assert second.incident_id != first.incident_id


def test_trouble_that_comes_back_at_once_is_the_same_and_told_only_if_it_stays(store: SqlStore) -> None:
    told(store, AT)
    (first,) = store.incidents(WITHIN_S)
    assert told(store, AT + 5 * MINUTE, ()) == ["recovered"]
    assert told(store, AT + 6 * MINUTE) == []
    (again,) = store.incidents(WITHIN_S)
    assert (again.incident_id, again.opened_at_utc) == (first.incident_id, AT)
    assert told(store, AT + 14 * MINUTE) == []
    assert told(store, AT + 15 * MINUTE) == ["opened"]
    assert told(store, AT + 16 * MINUTE) == []


def test_blip_after_a_recovery_is_not_told(store: SqlStore) -> None:
    told(store, AT)
    assert told(store, AT + 5 * MINUTE, ()) == ["recovered"]
    assert told(store, AT + 6 * MINUTE) == []
    assert told(store, AT + 7 * MINUTE, ()) == []
    assert told(store, AT + HOUR, ()) == []


def test_flapping_is_told_rarely_and_the_last_word_is_true(store: SqlStore) -> None:
    """On and off each minute for three hours, then off."""
    whats: List[str] = []
    for minutes in range(180):
        whats += told(store, AT + minutes * MINUTE, FOUND if minutes % 2 == 0 else ())
    assert whats == ["opened", "recovered", "opened"]
    assert told(store, AT + 185 * MINUTE, ()) == []
    assert told(store, AT + 190 * MINUTE, ()) == ["recovered"]
    assert told(store, AT + 250 * MINUTE, ()) == []


def test_checks_at_once_on_several_hosts_give_one_notice(store: SqlStore, store_url: str) -> None:
    findings = [found(f"job-{number}") for number in range(20)]
    gate = threading.Barrier(4)
    given: List[str] = []

    def one_host() -> None:
        mine = open_store(store_url)
        gate.wait(WITHIN_S)
        given.extend(notice.incident.job for notice in check(mine, AT, findings))
        mine.close()

    hosts = [threading.Thread(target=one_host) for _ in range(gate.parties)]
    for host in hosts:
        host.start()
    for host in hosts:
        host.join(2 * WITHIN_S)
    assert sorted(given) == sorted(finding.job for finding in findings)
    assert len(store.incidents(WITHIN_S)) == 20
