"""`cronguard run` as typer knows it: help, and what is wrong with a line that `lean` did not understand."""

from __future__ import annotations

from typing import Any

from cronguard.cli.behind import CommandBehindDashes, words_behind
from cronguard.cli.parameters import argument, command, option, option_for
from cronguard.cli.request import carry_out, request_from
from cronguard.core.model import Invocation
from cronguard.core.settings import SETTINGS


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

    Example: cronguard run nightly-export --cron "30 2 * * *" --timeout 2h -- /srv/app/bin/export

    Example: cronguard run nightly-export --dry-run -- true
    """
    request = request_from(job, words_behind(ctx), given, force, dry_run)
    ctx.obj.job = job
    return carry_out(request, invocation)


run.parser = CommandBehindDashes  # type: ignore[attr-defined]
