"""`cronguard run` as typer knows it: help, and what is wrong with a line that `lean` did not understand.

What stands behind the first `--` is the command, word for word: typer never sees it,
so no option of the command's can be mistaken for one of ours.
"""

from __future__ import annotations

from typing import Any, List

from typer.core import TyperCommand

from cronguard.cli.parameters import argument, command, option, option_for
from cronguard.cli.request import carry_out, request_from, split_at_dashes
from cronguard.core.model import Invocation
from cronguard.core.settings import SETTINGS

_BEHIND_DASHES = "cronguard.behind_dashes"


class CommandBehindDashes(TyperCommand):
    """Keeps everything behind the first `--` from typer."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        own, ctx.meta[_BEHIND_DASHES] = split_at_dashes(args)
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: Any) -> List[str]:
        return ["JOB", "[OPTIONS]", "[-- CMD [ARG]...]"]


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
    request = request_from(job, ctx.meta[_BEHIND_DASHES], given, force, dry_run)
    ctx.obj.job = job
    return carry_out(request, invocation)


run.parser = CommandBehindDashes  # type: ignore[attr-defined]
