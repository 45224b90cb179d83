"""`drill`: a table of what was tried and seen."""

from __future__ import annotations

from typing import Any, Optional

from cronguard.cli.edge import print_lines
from cronguard.cli.parameters import command, option
from cronguard.cli.render import Table, duration, print_json, print_table
from cronguard.cli.talk import Talk
from cronguard.commands import drill as drill_of
from cronguard.core.drill import Drilled
from cronguard.core.model import Invocation

NOT_HELD = 1
_COLOURS = {"ok": "green", "failed": "bold red", "skipped": "yellow"}


@command(
    option("job", "--job", "take the store, heartbeat and channels that this job has", "NAME"),
    option("as_json", "--json", "print one JSON object"),
)
def drill(invocation: Invocation, ctx: Any, job: Optional[str], as_json: bool) -> int:
    """Prove the guards on the real store and heartbeat, under a throwaway job name, in under a minute.

    A heartbeat that is configured goes red and green again, and people are alerted: tell them before. Leaves with 1
    when a guard did not hold. Example: cronguard drill --job nightly-export
    """
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    result = drill_of.drill(job, invocation, talk)
    if as_json:
        print_json(drill_of.as_json(result))
    else:
        rows = tuple((step.guard, step.state, step.expected, step.seen) for step in result.steps)
        headers = ("guard", "state", "expected", "seen")
        print_table(Table(headers, rows, _COLOURS, elastic=("expected", "seen")), invocation.environ)
        print_lines([_summary(result), *([result.left] if result.left else [])])
    return 0 if result.held else NOT_HELD


def _summary(result: Drilled) -> str:
    held = sum(step.state == "ok" for step in result.steps)
    return f"{held} of {len(result.steps)} guards held on {result.store}, in {duration(result.took_s)}"
