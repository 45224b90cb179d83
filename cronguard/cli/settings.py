"""`config`: effective settings and their sources, as text or JSON."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from cronguard.cli.edge import one_line, print_lines, show
from cronguard.cli.parameters import command, option, optional_argument
from cronguard.cli.render import Table, print_json, print_table
from cronguard.commands import config as config_of
from cronguard.core.config import Effective
from cronguard.core.model import Invocation

_HEADERS = ("setting", "value", "source")


@command(optional_argument("job", "[JOB]", "the job's name"), option("as_json", "--json", "print one JSON object"))
def config(invocation: Invocation, ctx: Any, job: Optional[str], as_json: bool) -> int:
    """Show what is in force for a job and where each setting came from, secrets masked.

    Without JOB: check the whole config file, and show for each job what it sets.

    Example: cronguard config nightly-export
    """
    result = config_of.config(job, invocation)
    if result.doubt:
        show([one_line(f"cronguard: {result.doubt}")])
    if as_json:
        print_json(config_of.as_json(result))
        return 0
    print_lines([f"config file: {result.file_name or 'none'}", ""])
    print_table(Table(_HEADERS, _rows(result.shared)), invocation.environ)
    for each in result.jobs:
        print_lines(["", f"job {each.job}:"])
        print_table(Table(_HEADERS, _rows(each.settings)), invocation.environ)
    return 0


def _rows(settings: Tuple[Effective, ...]) -> Tuple[Tuple[str, ...], ...]:
    return tuple((each.name, each.value_text, each.source) for each in settings)
