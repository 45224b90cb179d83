"""What both front ends of `run` do alike: from given texts to a request, and from a result to an exit code.

Loads no typer: `lean` is for starting fast, `run` for explaining itself, and they must not differ in anything else.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from cronguard.cli.edge import print_lines
from cronguard.cli.talk import Talk
from cronguard.core import names
from cronguard.core.model import Invocation, RunRequest
from cronguard.errors import UsageError

LOG_FORMATS = ("text", "json")


def split_at_dashes(words: Sequence[str]) -> Tuple[List[str], Optional[Tuple[str, ...]]]:
    """Our own words, and the command's; None for a command that was not given."""
    if "--" not in words:
        return list(words), None
    at = list(words).index("--")
    return list(words[:at]), tuple(words[at + 1 :])


def request_from(
    job: str,
    words: Optional[Tuple[str, ...]],
    given: Dict[str, Any],
    force: bool,
    dry_run: bool,
) -> RunRequest:
    """The request that a command line stands for: only what was given, as text. UsageError for what is none."""
    problem = names.check_job_name(job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    if words == ():
        raise UsageError("CMD: empty: nothing behind --", f"write cronguard run {job} -- CMD, or leave the -- away")
    options = {name: "true" if value is True else value for name, value in given.items() if value not in (None, False)}
    return RunRequest(job, words or (), options, force, dry_run, os.isatty(2))


def invocation_from(shared: Mapping[str, Any], environ: Mapping[str, str]) -> Invocation:
    """The surroundings of a command; UsageError for a log format that there is none of."""
    log_format, blame = shared.get("log_format"), "--log-format"
    if log_format is None:
        log_format, blame = environ.get("CRONGUARD_LOG_FORMAT") or None, "CRONGUARD_LOG_FORMAT"
    if log_format not in (None, *LOG_FORMATS):
        hint = names.did_you_mean(log_format, LOG_FORMATS)
        raise UsageError(f"{blame}: {names.shown(log_format)}: not one of {', '.join(LOG_FORMATS)}{hint}")
    return Invocation(
        shared.get("store"), shared.get("config"), log_format, bool(shared.get("verbose")), dict(environ)
    )


def carry_out(request: RunRequest, invocation: Invocation) -> int:
    """Run it; what it has to say goes where it belongs. Returns the exit code."""
    from cronguard.commands.run import run as run_job

    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    result = run_job(request, invocation, talk)
    print_lines(result.lines)
    talk.write(result.tail)
    return result.exit_code
