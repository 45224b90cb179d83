"""Which commands there are. Typer-free, so that errors find a command's name even when nothing else works."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Sequence

GLOBAL_WITH_VALUE = ("--store", "--config", "--log-format")


class Entry(NamedTuple):
    """Where a command lives, and its line in the list of commands."""

    module: str
    function: str
    summary: str


COMMANDS: Dict[str, Entry] = {
    "run": Entry("run", "run", "Run a job's command: once, alone, in time, on record."),
    "next": Entry("coming", "coming", "Show the coming slots of a schedule, clock changes included."),
    "status": Entry("status", "status", "Show a line a job: state, last success, next due, failures."),
    "history": Entry("looking", "history", "List a job's runs, newest first."),
    "show": Entry("looking", "show", "Show everything about one run, with the end of its output."),
    "pause": Entry("operating", "pause", "Let nobody start a job for a while."),
    "resume": Entry("operating", "resume", "Let a paused job be started again."),
    "cancel": Entry("operating", "cancel", "End the running run of a job, on whatever host."),
    "prune": Entry("operating", "prune", "Delete old rows of the history."),
    "report": Entry("publishing", "report", "Write a page to look at: slots, durations, what is wrong."),
    "metrics": Entry("publishing", "metrics", "Write numbers of each job for Prometheus."),
    "check": Entry("check", "check", "Find what did not run, is stuck or keeps failing; tell people once."),
    "backfill": Entry("backfill", "backfill", "Make up missing slots, oldest first, one at a time."),
    "once": Entry("once", "once", "Do one thing once, however often it is tried: a mail, a payment, a call."),
    "checkpoint": Entry("checkpoint", "checkpoint", "Keep where a job got to, so that no older run puts it back."),
    "items": Entry("items", "items", "Work through a queue: each item once, failures again, groups apart."),
    "config": Entry("settings", "config", "Show effective settings and where each came from."),
}


def command_in(words: Sequence[str]) -> Optional[str]:
    """The command's name in an argument list that may be wrong; None if there is none that is known."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            return None
        if word in GLOBAL_WITH_VALUE:
            next(rest, None)
        elif word in COMMANDS:
            return word
    return None
