"""`cronguard backfill`: what is missing is data, on stdout; how it goes is shown on stderr."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, Optional

from cronguard.cli.bar import CLEARED, progress_bar
from cronguard.cli.behind import CommandBehindDashes, words_behind
from cronguard.cli.edge import lines_for, print_lines, show
from cronguard.cli.parameters import argument, command, option, option_for
from cronguard.cli.render import Table, print_json, print_table
from cronguard.cli.request import request_from, split_at_dashes
from cronguard.cli.talk import Talk
from cronguard.commands import backfill as backfill_of
from cronguard.commands.backfill import Backfilled, BackfillRequest, Found, texts_of
from cronguard.core.model import Event, Invocation
from cronguard.core.settings import SETTINGS
from cronguard.errors import UsageError
from cronguard.pipeline.backfilling import Tally, Watch

# Options of `run` that mean nothing here, and why: whoever copies a crontab line shall read more than `no such option`.
_SENSELESS = {
    "--run-key": "keys are worked out from the schedule",
    "--catch-up": "everything that is missing is caught up with, oldest first",
    "--look-back": "--from says how far back",
    "--max-late": "what is made up is late by nature",
    "--jitter": "a backfill begins at once",
    "--on-store-error": "without the store nobody knows what is missing",
}
_OPTIONS = tuple(setting for setting in SETTINGS if setting.option not in _SENSELESS)
_HEADERS = ("key", "local", "utc", "note", "tries")


class BackfillLine(CommandBehindDashes):
    """Says of options that only `run` has why this command has not."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        for word in split_at_dashes(args)[0]:
            name = word.partition("=")[0]
            if name in _SENSELESS:
                raise UsageError(f"{name}: not an option of backfill: {_SENSELESS[name]}", "leave it away")
        return super().parse_args(ctx, args)


@command(
    argument("job", "JOB", "the job's name"),
    option("start", "--from", "slots from then on: a date, an instant, or so long ago (36h)", "WHEN"),
    option("end", "--to", "and before then [now]", "WHEN"),
    option("most", "--max", "at most so many of them", "N"),
    option("whole", "--all", "also slots of before the job was known with this schedule, zone and key"),
    option("force", "--force", "also slots whose rows were pruned, and with --redo never those that were tried"),
    option("dry_run", "--dry-run", "list what is missing; touch nothing"),
    option("as_json", "--json", "print one JSON object"),
    *[option_for(setting) for setting in _OPTIONS],
)
def backfill(
    invocation: Invocation,
    ctx: Any,
    job: str,
    start: Optional[str],
    end: Optional[str],
    most: Optional[str],
    whole: bool,
    force: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Make up missing slots, oldest first, one at a time, until one fails.

    Each gets a run of its own, with its own key, CRONGUARD_SLOT and CRONGUARD_DAY. What is not said is as the job last
    ran. Example: cronguard backfill nightly-export --from 2026-01-20 --dry-run
    """
    request = BackfillRequest(request_from(job, words_behind(ctx), given, force, dry_run), start, end, most, whole)
    ctx.obj.job = job
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    if dry_run:
        _print_found(backfill_of.find(request, invocation, talk), as_json, invocation.environ)
        return 0
    with progress_bar(job, invocation.environ) as progress:
        bar = None if progress is None or invocation.verbose else _Bar(progress, talk)
        result = backfill_of.backfill(request, invocation, talk if bar is None else bar.say, bar or Watch())
    _print_result(result, as_json, job)
    talk.write(result.tail)
    return result.exit_code


backfill.parser = BackfillLine  # type: ignore[attr-defined]


class _Bar(Watch):
    """What a bar shows of it; of the news only warnings and errors, on lines of their own."""

    def __init__(self, progress: Any, talk: Talk) -> None:
        self._progress = progress
        self._talk = talk
        self._task = progress.add_task("", total=None)

    def began(self, total: int) -> None:
        self._progress.update(self._task, total=total)
        self._progress.start()

    def moved(self, tally: Tally, key: str) -> None:
        self._progress.update(self._task, completed=tally.done + tally.already_done, description=key)

    def say(self, event: Event) -> None:
        if event.level in ("warning", "error"):
            if os.isatty(2):
                self._talk.write(CLEARED)
            self._talk(event)


def _print_found(found: Found, as_json: bool, environ: Mapping[str, str]) -> None:
    if as_json:
        print_json(backfill_of.found_as_json(found))
        return
    missing = found.gaps.missing
    if missing:
        rows = tuple((*texts_of(unit, found.zone), str(unit.claims or "")) for unit in missing)
        print_table(Table(_HEADERS, rows, optional=("note", "tries")), environ)
    more = ", and more" if found.gaps.more else ""
    print_lines([f"{found.spec.job}: {len(missing)} missing{more}"])


def _print_result(result: Backfilled, as_json: bool, job: str) -> None:
    if as_json:
        print_json(backfill_of.result_as_json(result))
    else:
        print_lines([backfill_of.summary(result)])
    if result.trouble is not None:
        show(lines_for(result.trouble, job))
