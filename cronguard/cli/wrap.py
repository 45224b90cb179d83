"""`wrap`: the new crontab on stdout, what is to be said about it on stderr."""

from __future__ import annotations

import difflib
import re
from typing import Any, List, Optional

from cronguard.cli.edge import one_line, print_bytes, show
from cronguard.cli.parameters import command, option, optional_argument
from cronguard.commands import wrap as wrap_of
from cronguard.core.crons import KINDS
from cronguard.core.crontab import SYSTEM
from cronguard.core.model import Invocation
from cronguard.errors import CronguardError, UsageError

_NO_NEWLINE = b"\n\\ No newline at end of file\n"


@command(
    optional_argument("file", "[FILE]", "a crontab, - for stdin; without it this user's, by crontab -l"),
    option("diff", "--diff", "print what would change, as a unified diff"),
    option("write", "--write", "save it, with the old text beside it; without FILE: by crontab -"),
    option("timezone", "--timezone", "the zone that the times are meant in, for each line", "ZONE"),
    option("timeout", "--timeout", "hard limit, for each line [run has 24h]", "DUR"),
    option("user_field", "--user-field", "a user's name stands before each command, as in /etc/crontab"),
    option("cron", "--cron", f"what reads it: {', '.join(KINDS)} [this host's]", "KIND"),
    option("program", "--cronguard", "the command's path in the lines [this one's]", "PATH"),
    option("systemd", "--systemd", "print systemd units instead; for a .service a drop-in"),
    option("unwrap", "--unwrap", "take the guards away again that wrap has put there"),
)
def wrap(
    invocation: Invocation,
    ctx: Any,
    file: Optional[str],
    diff: bool,
    write: bool,
    systemd: bool,
    unwrap: bool,
    **given: Any,
) -> int:
    """Print a crontab with a guard before each command; nothing else about it changes.

    Lines that cannot be guarded without changing what they do are left as they are, and named on stderr.

    Example: cronguard wrap /etc/cron.d/backup --timezone Europe/Rome --diff
    """
    if diff + write + systemd > 1 or systemd + unwrap > 1:
        raise UsageError("--diff, --write, --systemd: only one of them, and no --unwrap with --systemd")
    if systemd:
        _print_units(wrap_of.WrapRequest(file, **given), invocation)
        return 0
    result = wrap_of.wrapped(wrap_of.WrapRequest(file, unwrap, write, **given), invocation)
    new = result.wrapped.data
    if diff:
        print_bytes(_diff(result.name, result.old, new))
    elif not write:
        print_bytes(new)
    show([one_line(line) for line in _said(result, unwrap, write, given["timeout"])])
    return 0


def _print_units(request: wrap_of.WrapRequest, invocation: Invocation) -> None:
    if (request.file or "").endswith(".service"):
        _print_drop_in(wrap_of.drop_in_for(request))
        return
    result = wrap_of.as_units(request, invocation)
    for unit in result.units.units:
        print_bytes(f"# {unit.name}\n{unit.text}\n".encode())
    said = [f"cronguard: {result.name}:{remark.line}: {remark.text}" for remark in result.units.remarks]
    counts = f"{result.units.guarded} with a service and a timer, {result.units.left} without"
    said.append(f"cronguard: {result.name}: {counts}; cron mailed output, systemd logs it")
    show([one_line(line) for line in said])


def _print_drop_in(result: wrap_of.DropInResult) -> None:
    place, found = result.place, result.drop_in
    if result.refused:
        raise CronguardError(f"no drop-in: {place}: {result.refused}")
    print_bytes((f"# {place}\n" + found.text).encode("utf-8", "surrogateescape") if found.text else b"")
    said = [f"cronguard: {remark}" for remark in found.remarks]
    show([one_line(line) for line in said or ([] if found.text else [f"cronguard: {place}: guarded already"])])


def _diff(name: str, old: bytes, new: bytes) -> bytes:
    label = name.encode("utf-8", "surrogateescape")
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(old), _lines(new), label, label + b" (new)")
    return b"".join(line if line.endswith(b"\n") else line + _NO_NEWLINE for line in lines)


def _lines(data: bytes) -> List[bytes]:
    """By newlines only: a carriage return ends no line of a crontab."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def _said(result: wrap_of.WrapResult, unwrap: bool, write: bool, timeout: Optional[str]) -> List[str]:
    done = result.wrapped
    lines = [f"cronguard: {result.name}:{remark.line}: {remark.text}" for remark in done.remarks]
    if result.guessed and result.flavour == SYSTEM:
        lines.append(f"cronguard: {result.name}: read with a user's name before each command, as it looks like that")
    if unwrap:
        lines.append(f"cronguard: {result.name}: {done.guarded} unguarded again")
    else:
        limit = "" if timeout or not done.guarded else "; without --timeout a run may take 24h, the default of run"
        lines.append(
            f"cronguard: {result.name}: {done.guarded} guarded, {done.already} had a guard, {done.left} left{limit}"
        )
    if write:
        lines.append(_saved(result))
    return lines


def _saved(result: wrap_of.WrapResult) -> str:
    if result.backup is None:
        return f"cronguard: {result.name}: nothing to change, not written"
    return f"cronguard: {result.name}: written; as it was: {result.backup}"
