"""`cronguard run`: from the argument list to a RunRequest, and from its result to an exit code.

All decisions are commands.run's. What stands behind the first `--` is the command, word for word: typer never sees it,
so no option of the command's can be mistaken for one of ours.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from typer.core import TyperCommand

from cronguard.cli.edge import print_lines
from cronguard.cli.parameters import argument, command, option, option_for
from cronguard.cli.talk import Talk
from cronguard.core import names
from cronguard.core.model import Invocation, RunRequest
from cronguard.core.settings import SETTINGS
from cronguard.errors import UsageError

_BEHIND_DASHES = "cronguard.behind_dashes"


class CommandBehindDashes(TyperCommand):
    """Keeps everything behind the first `--` from typer."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        own, ctx.meta[_BEHIND_DASHES] = split_at_dashes(args)
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: Any) -> List[str]:
        return ["JOB", "[OPTIONS]", "[-- CMD [ARG]...]"]


def split_at_dashes(words: Sequence[str]) -> Tuple[List[str], Optional[Tuple[str, ...]]]:
    """Our own words, and the command's; None for a command that was not given."""
    if "--" not in words:
        return list(words), None
    at = list(words).index("--")
    return list(words[:at]), tuple(words[at + 1 :])


@command(
    argument("job", "JOB", "the job's name"),
    *[option_for(setting) for setting in SETTINGS],
    option("force", "--force", "run whatever the slot's state is; never overrides a lock or a pause"),
    option("dry_run", "--dry-run", "say what would happen and why; touch nothing"),
)
def run(invocation: Invocation, ctx: Any, job: str, force: bool, dry_run: bool, **given: Any) -> int:
    """Run a job's command once, alone and in time, and keep a record of it.

    Every option can also stand in the job's table of the config file. Exit codes: the command's own; 75 not started
    and not done; 124 stopped at its timeout; 125 cronguard could not do its part; 126, 127 not executable, not found.
    """
    request = request_from(job, ctx.meta[_BEHIND_DASHES], given, force, dry_run, os.isatty(2))
    ctx.obj.job = job
    from cronguard.commands.run import run as run_job

    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    result = run_job(request, invocation, talk)
    print_lines(result.lines)
    talk.write(result.tail)
    return result.exit_code


run.parser = CommandBehindDashes  # type: ignore[attr-defined]


def request_from(
    job: str,
    words: Optional[Tuple[str, ...]],
    given: Dict[str, Any],
    force: bool,
    dry_run: bool,
    on_terminal: bool,
) -> RunRequest:
    """The request that a command line stands for: only what was given, as text. UsageError for what is none."""
    problem = names.check_job_name(job)
    if problem is not None:
        raise UsageError(f"JOB: {problem}")
    if words == ():
        raise UsageError("CMD: empty: nothing behind --", f"write cronguard run {job} -- CMD, or leave the -- away")
    options = {name: "true" if value is True else value for name, value in given.items() if value not in (None, False)}
    return RunRequest(job, words or (), options, force, dry_run, on_terminal)
