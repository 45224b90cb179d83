"""From findings to people: incidents in the store, notices for this invocation, deliveries, and what became of them.

The store decides who tells what, so that of many hosts one does. A notice that no channel took is settled as not
delivered, and the next check, wherever it runs, tries again; nothing here can lose an incident. What one channel took
and another did not waits for the latter on this host, so that the former hears it once. Without channels a notice
counts as delivered when it is printed: cron mails it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Sequence, Tuple

from cronguard.core.alerting import message_of
from cronguard.core.model import Event, Finding, Notice, Say
from cronguard.errors import StoreError
from cronguard.store.worker import StoreWorker
from cronguard.system.notifier import Notifier

WITHIN_S = 10.0


class Alarm(NamedTuple):
    """With what people are told, how often they are reminded, and as of when."""

    worker: StoreWorker
    notifier: Notifier
    remind_s: float
    at_utc: datetime


def tell_people(alarm: Alarm, jobs: Sequence[str], findings: Sequence[Finding], say: Say) -> Tuple[Notice, ...]:
    """Bring incidents in line with the findings and send what is to be told. StoreError when the store cannot."""
    alarm.worker.call(lambda store: store.prepare(WITHIN_S), WITHIN_S)
    alarm.notifier.retry()
    notices = alarm.worker.call(
        lambda store: store.sync_incidents(jobs, findings, alarm.at_utc, alarm.remind_s, WITHIN_S), WITHIN_S
    )
    for notice in notices:
        _settle(alarm, notice, alarm.notifier.tell(message_of(notice, alarm.at_utc)), say)
    for failure in alarm.notifier.failures:
        text = f"{failure.why}; the next check --notify tries again"
        say(Event("not_told", "error", {"channel": failure.channel}, text))
    return tuple(notices)


def _settle(alarm: Alarm, notice: Notice, delivered: bool, say: Say) -> None:
    """When the store is gone by now the notice is free again in a minute, and people may be told twice."""
    try:
        alarm.worker.call(lambda store: store.settle_notice(notice, delivered, alarm.at_utc, WITHIN_S), WITHIN_S)
    except StoreError as error:
        fields = {"job": notice.incident.job or None, "kind": notice.incident.kind}
        say(Event("not_settled", "warning", fields, f"that this was told could not be noted: {error}"))
