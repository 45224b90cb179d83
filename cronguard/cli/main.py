"""The entry point: runs a command, and turns whatever happens into one exit code and at most a few lines.

The only place that exits. Typer is loaded inside, so that even a broken installation ends in a line and not in a
traceback.
"""

from __future__ import annotations

import io
import sys
from typing import Optional, Sequence

from cronguard.cli import edge
from cronguard.cli.lean import SHARED_WITH_VALUE, Line, line_of
from cronguard.cli.registry import command_in
from cronguard.cli.request import carry_out, invocation_from, request_from
from cronguard.system.host import own_environment


def main(argv: Optional[Sequence[str]] = None) -> None:
    """The `cronguard` command. Does not return."""
    edge.open_standard_descriptors()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    edge.leave(execute(sys.argv[1:] if argv is None else argv))


def execute(words: Sequence[str]) -> int:
    """Carry out the command that the words name and return the exit code."""
    progress = edge.Progress()
    try:
        line = line_of(words)
        if line is not None:
            return _run(line, progress)
        from cronguard.cli.app import invoke

        return invoke(list(words), progress)
    except KeyboardInterrupt:
        return edge.INTERRUPTED
    except edge.PipeClosed:
        return edge.PIPE_CLOSED
    except SystemExit as leaving:  # typer's, when the reader of a help text has gone
        return leaving.code if isinstance(leaving.code, int) else edge.OUR_FAULT
    except Exception as error:  # noqa: BLE001  # what gets here unforeseen is a bug, and still a line and a code
        edge.show(edge.lines_for(error, progress.job))
        return edge.exit_code_for(command_in(words), error)


def _run(line: Line, progress: edge.Progress) -> int:
    given = dict(line.given)
    shared = {name: given.pop(name) for name in (*SHARED_WITH_VALUE, "verbose") if name in given}
    invocation = invocation_from(shared, own_environment())
    if line.command == "items work":
        from cronguard.cli.item_work import carry_out as work

        progress.job = line.subject
        return work(line.subject, line.words, given, invocation)
    if line.command == "once":
        from cronguard.cli.effect import carry_out as do_once

        return do_once(line.subject, line.words, given, invocation, progress)
    force, dry_run = bool(given.pop("force", False)), bool(given.pop("dry_run", False))
    request = request_from(line.subject, line.words, given, force, dry_run)
    progress.job = request.job
    return carry_out(request, invocation)
