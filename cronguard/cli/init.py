"""`init`: says what it did to the store, or with `--sql` what an owner could do by hand."""

from __future__ import annotations

import shlex
from typing import Any, List, Optional

from cronguard.cli.edge import one_line, print_lines
from cronguard.cli.parameters import command, option, repeatable
from cronguard.commands import init as init_of
from cronguard.core.model import Invocation


@command(
    repeatable("grant", "--grant", "a PostgreSQL role that is to run jobs; may be given again", "ROLE"),
    option("sql", "--sql", "print the SQL instead, for what is missing; touch nothing"),
)
def init(invocation: Invocation, ctx: Any, grant: Optional[List[str]], sql: bool) -> int:
    """Make the store's tables or bring them up to date, and say which.

    Any run does that too if it may. With --grant a role gets the least that a runner needs: to read all tables and
    write all but the version, to delete items, effects and checkpoints; no DDL, no deleting of history.

    Example: cronguard init --store file:/etc/cronguard/owner --grant cronguard

    Example: cronguard init --sql --grant cronguard | psql -v ON_ERROR_STOP=1 app
    """
    if sql:
        print_lines(init_of.script(grant or (), invocation))
        return 0
    result = init_of.init(grant or (), invocation)
    print_lines([f"{result.store}: {_what_happened(result)}"])
    if result.roles:
        print_lines([one_line(f"granted what a runner needs to {', '.join(result.roles)}")])
    if result.short:
        options = " ".join(f"--grant {shlex.quote(role)}" for role in result.short)
        print_lines([one_line(f"not all of it may be used by {', '.join(result.short)}: cronguard init {options}")])
    return 0


def _what_happened(result: init_of.Initialised) -> str:
    if result.before == result.after:
        return f"the schema is current (version {result.after})"
    if result.before:
        return f"upgraded the schema from version {result.before} to {result.after}"
    return f"created the schema (version {result.after})"
