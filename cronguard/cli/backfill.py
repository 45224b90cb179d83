"""`backfill`: a slot a line, a bar on a terminal, one line at the end."""

from __future__ import annotations

from typing import Any, Optional

from cronguard.cli.bar import Bar, bar_for
from cronguard.cli.behind import CommandBehindDashes, words_behind
from cronguard.cli.edge import one_line, print_lines
from cronguard.cli.parameters import argument, command, option, option_for
from cronguard.cli.render import Table, print_json, print_table
from cronguard.cli.request import request_from
from cronguard.cli.talk import Talk
from cronguard.commands import backfill as backfill_of
from cronguard.commands.backfill import BackfillRequest, Plan
from cronguard.core.instants import local_text, utc_text
from cronguard.core.model import Invocation
from cronguard.core.settings import SETTINGS
from cronguard.errors import UsageError
from cronguard.pipeline.backfilling import Made

_HEADERS = ("key", "local", "utc", "note", "tried")


@command(
    argument("job", "JOB", "the job's name"),
    option("begin", "--from", "since when: an instant, a date, or a duration ago", "WHEN"),
    option("end", "--to", "until when, exclusive [now]", "WHEN"),
    option("most", "--max", "at most so many slots, the oldest [all]", "N"),
    option("everything", "--all", "also slots from before the job was known"),
    option("force", "--force", "every slot, done or not"),
    option("dry_run", "--dry-run", "list the slots; touch nothing"),
    option("as_json", "--json", "with --dry-run: print one JSON object"),
    *[option_for(setting) for setting in SETTINGS],
)
def backfill(
    invocation: Invocation,
    ctx: Any,
    job: str,
    begin: Optional[str],
    end: Optional[str],
    most: Optional[str],
    everything: bool,
    force: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Run a job for the slots that it missed, oldest first, one at a time, until one fails.

    Each slot has its own key, row and CRONGUARD_SLOT, as if it had been started in time. The options of run and the
    job's table apply, but for those on lateness, keys and catching up. Leaves with 0 when nothing is missing any more,
    75 when it could not go on, else with the code of the slot that failed; the same line goes on from there.

    Example: cronguard backfill nightly-export --from 2027-01-10 --dry-run

    Example: cronguard backfill nightly-export --from 36h --max 10 -- /srv/app/current/bin/export
    """
    if as_json and not dry_run:
        raise UsageError("--json: only with --dry-run")
    run = request_from(job, words_behind(ctx), given, force, dry_run)
    ctx.obj.job = job
    talk = Talk(invocation.log_format, invocation.verbose, invocation.environ)
    request = BackfillRequest(run, begin, end, most, everything)
    with bar_for(job, invocation.environ) as bar:
        result = backfill_of.run_backfill(request, invocation, talk, lambda made: _moved(bar, made))
    if result.made is None:
        _show(result.plan, as_json, invocation)
        return 0
    talk.write(result.made.tail if result.made.failed and _is_on(given, "quiet") else b"")
    print_lines([*map(one_line, result.plan.notes), _summary(result.plan, result.made)])
    return result.made.exit_code


backfill.parser = CommandBehindDashes  # type: ignore[attr-defined]


def _is_on(given: Any, name: str) -> bool:
    return bool(given.get(name))


def _moved(bar: Optional[Bar], made: Made) -> None:
    if bar is not None:
        gone_through = made.backfilled + made.already_done + made.given_up + made.failed
        if gone_through == 0:
            bar.begin(made.left)
        bar.move(gone_through, f"{made.left} left")


def _summary(plan: Plan, made: Made) -> str:
    counts = f"backfilled={made.backfilled} already_done={made.already_done} failed={made.failed}"
    given_up = f" given_up={made.given_up}" if made.given_up else ""
    stop = f" stopped_at={made.stopped_at} ({made.why}); the same line goes on from there" if made.stopped_at else ""
    return one_line(f"{counts}{given_up} left={made.left + plan.more}{stop}")


def _show(plan: Plan, as_json: bool, invocation: Invocation) -> None:
    if as_json:
        print_json(backfill_of.as_json(plan))
        return
    rows = tuple(
        (unit.key, local_text(unit.slot.local, False), utc_text(unit.slot.at_utc), unit.slot.note or "",
         f"{unit.claims}x" if unit.claims else "")
        for unit in plan.missing
    )  # fmt: skip
    more = f", {plan.more} more behind --max" if plan.more else ""
    print_lines([f"{plan.job}: {len(plan.missing)} slots are missing{more}, {plan.zone}", *map(one_line, plan.notes)])
    if rows:
        print_table(Table(_HEADERS, rows, optional=("note", "tried")), invocation.environ)
