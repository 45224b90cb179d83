"""What both front ends of `once` do alike: from given texts to a request, and to an exit code. Loads no typer."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

from cronguard.cli.edge import Progress
from cronguard.cli.talk import Talk
from cronguard.commands.once import OnceRequest
from cronguard.commands.once import once as do_once
from cronguard.core.model import Invocation
from cronguard.errors import UsageError


def carry_out(
    key: str,
    words: Optional[Tuple[str, ...]],
    given: Mapping[str, Any],
    invocation: Invocation,
    progress: Progress,
) -> int:
    """Do it once; returns the exit code. UsageError for what is no such line."""
    progress.job = given.get("job") or invocation.environ.get("CRONGUARD_JOB")
    if not words:
        raise UsageError("CMD: none: what is to happen once?", f"write cronguard once {key} -- CMD")
    options = {name: "true" if value is True else value for name, value in given.items() if value not in (None, False)}
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    return do_once(OnceRequest(key, words, options), invocation, talk)
