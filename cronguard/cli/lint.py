"""`lint`: findings a line each, as compilers print them, then one table; or JSON."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from cronguard.cli.edge import one_line, print_lines, show
from cronguard.cli.parameters import arguments, command, option
from cronguard.cli.render import Table, print_json, print_table
from cronguard.commands import lint as lint_of
from cronguard.core.crons import KINDS
from cronguard.core.lint_model import ERROR, INFO, SEVERITIES, WARNING, Remark
from cronguard.core.model import Invocation

_HEADERS = ("file", "jobs", "errors", "warnings", "infos")


@command(
    arguments("files", "[FILE]...", "crontabs, - for stdin; without any this user's, /etc/crontab and /etc/cron.d"),
    option("timezone", "--timezone", "the zone that the times are meant in [config, else host]", "ZONE"),
    option("cron", "--cron", f"what reads them: {', '.join(KINDS)} [this host's]", "KIND"),
    option("strict", "--strict", "exit 1 for infos, too"),
    option("as_json", "--json", "print one JSON object"),
)
def lint(
    invocation: Invocation,
    ctx: Any,
    files: Optional[List[str]],
    timezone: Optional[str],
    cron: Optional[str],
    strict: bool,
    as_json: bool,
) -> int:
    """Find what is wrong with crontabs, with file, line, column and a fix.

    Exits 0 with nothing above info, 1 with warnings or errors, 2 if a file cannot be read.

    Example: crontab -l | cronguard lint - --timezone Europe/Rome
    """
    result = lint_of.lint(lint_of.LintRequest(files or [], timezone, cron), invocation)
    if as_json:
        print_json(lint_of.as_json(result))
    elif not result.files:
        show(["cronguard: lint: no crontab here that this user may read; name a file, or - for stdin"])
    else:
        print_lines([_line(file.name, remark) for file in result.files for remark in file.remarks])
        print_table(_summary(result), invocation.environ)
        print_lines([_by(result)])
    counted = SEVERITIES if strict else (ERROR, WARNING)
    return 1 if any(result.count(severity) for severity in counted) else 0


def _line(file: str, remark: Remark) -> str:
    place = f"{file}:{remark.line}:{remark.column}"
    return one_line(f"{place} {remark.severity} {remark.rule} {remark.message}; {remark.fix}")


def _summary(result: lint_of.LintResult) -> Table:
    rows = [_row(file.name, file.jobs, [file.count(severity) for severity in SEVERITIES]) for file in result.files]
    if len(rows) > 1:
        jobs = sum(file.jobs for file in result.files)
        rows.append(_row("all", jobs, [result.count(severity) for severity in SEVERITIES]))
    return Table(_HEADERS, tuple(rows), {ERROR: "red", WARNING: "yellow", INFO: "dim"}, elastic=("file",))


def _row(name: str, jobs: int, counts: List[int]) -> Tuple[str, ...]:
    return (name, str(jobs), *map(str, counts))


def _by(result: lint_of.LintResult) -> str:
    return f"judged as {result.cron.name} would read it ({result.why}), times in {result.zone}"
