"""What people are told of an incident, as text and as the JSON that a webhook gets."""

from __future__ import annotations

from datetime import datetime
from typing import Dict, NamedTuple

from cronguard.core.durations import in_hours
from cronguard.core.model import Notice
from cronguard.core.records import instant_as_json, unicode_text


class Message(NamedTuple):
    """`title` and `text` for channels that show text, `document` for those that read."""

    title: str
    text: str
    document: Dict[str, object]


def message_of(notice: Notice, at_utc: datetime) -> Message:
    """The keys are fixed: job kind state summary details at; further ones are only ever added."""
    incident = notice.incident
    over = notice.what == "recovered"
    lasted = in_hours((at_utc - incident.opened_at_utc).total_seconds())
    summary = unicode_text(incident.summary)
    if over:
        over_text = f"{incident.job or 'cronguard'} is no longer {words_for(incident.kind)}, after {lasted}"
        summary = f"{over_text}. it was: {summary}"
    details = "" if over else "\n".join(f"check first: {unicode_text(line)}" for line in incident.check_first)
    state = "ok" if over else incident.state
    mark = {"opened": "ALERT", "reminder": f"STILL after {lasted}", "recovered": "RECOVERED"}[notice.what]
    return Message(
        title=f"{mark}: {incident.job or 'cronguard'} {words_for(incident.kind)}",
        text=f"{summary}\n{details}".rstrip("\n"),
        document={
            "job": incident.job,
            "kind": incident.kind,
            "state": state,
            "summary": summary,
            "details": details,
            "at": instant_as_json(at_utc),
            "what": notice.what,
            "since": instant_as_json(incident.since_utc),
        },
    )


def words_for(kind: str) -> str:
    """`never_ran` as one says it."""
    return kind.replace("_", " ")
