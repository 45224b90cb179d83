"""`cronguard checkpoint`: values that a job keeps from one run to the next."""

from __future__ import annotations

import sys
from datetime import timezone
from typing import Any, Optional, Tuple

from cronguard.cli.edge import one_line, print_lines, show
from cronguard.cli.parameters import Family, argument, command, option
from cronguard.cli.render import Cell, Table, offset_local, print_json, print_table
from cronguard.commands import checkpoint as checkpoints
from cronguard.core import exitcodes
from cronguard.core.checkpoints import Checkpoint
from cronguard.core.item_texts import LARGEST_PAYLOAD_BYTES
from cronguard.core.model import Invocation
from cronguard.errors import UsageError

NOT_SET = 1
_JOB = option("job", "--job", "the job [the surrounding run's]", "JOB")
_JSON = option("as_json", "--json", "print one JSON object")
_NAME = argument("name", "NAME", "the checkpoint's name")


@command(_NAME, option("default", "--default", "print that when it is not set", "V"), _JOB, _JSON)
def get(
    invocation: Invocation, ctx: Any, name: str, default: Optional[str], job: Optional[str], as_json: bool
) -> int:
    """Print a value. Exit code 1: it is not set, and there is no default.

    Example: since=$(cronguard checkpoint get cursor --default 0)
    """
    found = checkpoints.get_checkpoint(job, name, invocation)
    if as_json:
        value = default if found is None else found.value
        print_json({"version": 1, "value": value, "checkpoint": None if found is None else checkpoints.as_json(found)})
        return NOT_SET if value is None else 0
    if found is None and default is None:
        show([f"cronguard: checkpoint {one_line(name)}: not set"])
        return NOT_SET
    print_lines([str(default) if found is None else found.value])
    return 0


@command(
    _NAME,
    argument("value", "VALUE", "its new value, at most 64 KiB; -: what is on stdin"),
    option("expected", "--expect", "only if that is its present value; empty: only if it is not set", "V"),
    option("force", "--force", "from outside, although a run of the job is under way"),
    _JOB,
)
def set_(
    invocation: Invocation,
    ctx: Any,
    name: str,
    value: str,
    expected: Optional[str],
    force: bool,
    job: Optional[str],
) -> int:
    """Set a value. Exit code 75: refused, for this run has lost its lock, or a newer one has set it.

    Example: cronguard checkpoint set cursor 418
    """
    text = _from_stdin() if value == "-" else value
    result = checkpoints.set_checkpoint(checkpoints.SetRequest(job, name, text, expected, force), invocation)
    told = result.refusal or result.notice
    if told:
        show([one_line(f"cronguard: {result.job}: {told}")])
    return exitcodes.NOT_STARTED if result.refusal else 0


@command(_JOB, _JSON)
def list_(invocation: Invocation, ctx: Any, job: Optional[str], as_json: bool) -> int:
    """List the checkpoints of a job.

    Example: cronguard checkpoint list --job sync
    """
    found = checkpoints.list_checkpoints(job, invocation)
    if as_json:
        print_json({"version": 1, "checkpoints": [checkpoints.as_json(each) for each in found]})
    elif found:
        rows = tuple(_row(each) for each in found)
        print_table(Table(("name", "value", "set", "run"), rows, elastic=("value",)), invocation.environ)
    return 0


@command(_NAME, _JOB)
def clear(invocation: Invocation, ctx: Any, name: str, job: Optional[str]) -> int:
    """Forget a value. Exit code 1: it was not set.

    Example: cronguard checkpoint clear cursor --job sync
    """
    if checkpoints.clear_checkpoint(job, name, invocation):
        return 0
    show([f"cronguard: checkpoint {one_line(name)}: not set"])
    return NOT_SET


checkpoint = Family(
    "Keep where a job got to, from one run to the next: no older run, and none that lost its lock, puts it back.",
    {"get": get, "set": set_, "list": list_, "clear": clear},
)


def _row(each: Checkpoint) -> Tuple[Cell, ...]:
    return each.name, each.value, offset_local(each.set_at_utc, timezone.utc), each.run_id or ""


def _from_stdin() -> str:
    """One newline at the end is the shell's, not the value's."""
    if sys.stdin is None:
        raise UsageError("VALUE: -: there is no stdin")
    data = sys.stdin.buffer.read(LARGEST_PAYLOAD_BYTES + 2)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("VALUE: -: not UTF-8 text") from None
    return text[:-1] if text.endswith("\n") else text
