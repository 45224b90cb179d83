"""Brings in what earlier runs on this host could not record, before anything is decided by what is stored."""

from __future__ import annotations

from typing import Mapping

from cronguard.core.model import Event, Say
from cronguard.errors import StoreError
from cronguard.pipeline.passage import Budget
from cronguard.store.spool import Spool
from cronguard.store.worker import StoreWorker

DELIVER_MOST = 20
DELIVER_S = 1.0


def deliver_spooled(worker: StoreWorker, spool: Spool, fields: Mapping[str, object], say: Say) -> None:
    """A success among them may be the very slot's that is asked for (P2, P3). A store that is still down gets none.

    `fields` are those of the events that tell of it."""
    if not spool.pending():
        return
    budget = Budget(DELIVER_S)
    try:
        worker.call(lambda store: store.prepare(DELIVER_S), DELIVER_S)
        done, aside = spool.deliver(
            lambda report: worker.call(lambda store: store.deliver(report, DELIVER_S), DELIVER_S),
            DELIVER_MOST,
            budget.left,
        )
    except StoreError:
        return  # the reports stay where they are, and whoever needs the store next will say it
    if done:
        say(Event("delivered", "info", {**fields, "reports": done}))
    if aside:
        text = f"{aside} spooled reports could not be delivered and were set aside as *.bad in {spool.directory}"
        say(Event("set_aside", "warning", {**fields, "reports": aside}, text))
