"""The typer application: which commands there are, and how their mistakes are explained.

A command's module is loaded when the command is called; listing them in the help loads none. `--store`, `--config`,
`--log-format` and `-v` may stand before or after the command's name; the later one counts.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, List, Optional, Tuple

import typer
from typer.core import TyperGroup

from cronguard import __version__
from cronguard.cli import edge
from cronguard.cli.parameters import (
    Command,
    Family,
    epilog_of,
    for_typer,
    hidden_flag,
    option,
    take_shared,
    with_signature,
)
from cronguard.cli.registry import COMMANDS, command_in
from cronguard.cli.request import invocation_from
from cronguard.core.names import did_you_mean
from cronguard.errors import UsageError
from cronguard.system.host import own_environment

_IN_FRONT = {"run": "run JOB", "once": "once KEY", "backfill": "backfill JOB", "items": "items work JOB"}


def invoke(words: List[str], progress: edge.Progress) -> int:
    """Parse and carry out; returns the exit code. Raises CronguardError, also for what typer finds wrong."""
    group = commands()
    try:
        code = group.main(args=words or ["--help"], prog_name="cronguard", standalone_mode=False, obj=progress)
    except typer.Abort:  # click's word for a KeyboardInterrupt
        return edge.INTERRUPTED
    except _click_errors().ClickException as error:
        raise _explained(error, words) from None
    return code if isinstance(code, int) else 0


def commands() -> Any:
    """The whole command line, as click's group."""
    return typer.main.get_command(_app())


class LazyCommands(TyperGroup):
    """Finds commands by their table instead of having all of them loaded."""

    def list_commands(self, ctx: Any) -> List[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            hint = did_you_mean(cmd_name, COMMANDS).lstrip("; ") or "cronguard --help lists them"
            raise UsageError(f"no such command: {cmd_name}", hint)
        entry = COMMANDS[cmd_name]
        found = getattr(import_module(f"cronguard.cli.{entry.module}"), entry.function)
        return _family(found) if isinstance(found, Family) else _single(cmd_name, found)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _typer() -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


def _single(name: str, function: Command) -> Any:
    app = _typer()
    _add(app, name, function)
    return typer.main.get_command(app)


def _family(family: Family) -> Any:
    def before_the_verb(ctx: Any, **given: Any) -> None:
        take_shared(ctx, given)

    app = _typer()
    app.callback()(with_signature(before_the_verb, (), family.summary))
    for name, function in family.verbs.items():
        _add(app, name, function)
    return typer.main.get_command(app)


def _add(app: typer.Typer, name: str, function: Command) -> None:
    parser = getattr(function, "parser", None)
    app.command(name, cls=parser, epilog=epilog_of(function))(for_typer(function))


def _app() -> typer.Typer:
    app = _typer()
    own = (
        option("version", "--version", "print the version and leave"),
        option("show_completion", "--show-completion", "print what a shell loads to complete this", "bash|zsh|fish"),
        hidden_flag("list_jobs", "--list-jobs"),
    )
    callback = with_signature(_before_the_command, own, _before_the_command.__doc__)
    app.callback(cls=LazyCommands, invoke_without_command=True)(callback)
    return app


def _before_the_command(
    ctx: Any, version: bool, show_completion: Optional[str], list_jobs: bool, **given: Any
) -> None:
    """Puts a guard in front of cron jobs: once, in time, never twice, never silently not at all."""
    take_shared(ctx, given)
    if version:
        edge.print_lines([f"cronguard {__version__}"])
        raise typer.Exit(0)
    if show_completion is not None:
        from cronguard.cli.completion import completion

        edge.print_lines(completion(show_completion))
        raise typer.Exit(0)
    if list_jobs:
        from cronguard.commands.jobs import job_names

        edge.print_lines(job_names(invocation_from(ctx.obj.shared, own_environment())))
        raise typer.Exit(0)
    if ctx.invoked_subcommand is None:
        raise UsageError("no command given", "cronguard --help lists them")


def _click_errors() -> Any:
    """Typer brings its own click from some version on; the module of an exception that it exports is the right one."""
    return sys.modules[typer.BadParameter.__module__]


def _explained(error: Any, words: List[str]) -> UsageError:
    line = _line_in_front(words)
    message = error.format_message().rstrip(".")
    message, hint = message[:1].lower() + message[1:], ""
    if isinstance(error, _click_errors().NoSuchOption):
        message = f"no such option: {error.option_name}"
        hint = _place_of(error, words) or did_you_mean(error.option_name, _options_of(error)).lstrip("; ")
        if not hint and command_in(words) == "checkpoint":
            hint = "a name or value that begins with - goes behind --"
    if line is not None and "--" not in words and not hint:
        hint = f"the command goes behind --, as in cronguard {line} -- CMD"
    return UsageError(message, hint)


def _line_in_front(words: List[str]) -> Optional[str]:
    """How these words would go on in front of a command; None where there is none."""
    name = command_in(words)
    return None if name == "items" and "work" not in words else _IN_FRONT.get(name or "")


def _place_of(error: Any, words: List[str]) -> str:
    """Where an option belongs that stands before its command's name."""
    name = command_in(words)
    if name is None or error.ctx is None or error.ctx.parent is not None:
        return ""
    known = {flag for parameter in commands().get_command(error.ctx, name).params for flag in parameter.opts}
    belongs = error.option_name in known
    return f"it goes behind the command's name: cronguard {name} {error.option_name}" if belongs else ""


def _options_of(error: Any) -> Tuple[str, ...]:
    parameters = error.ctx.command.params if error.ctx is not None else []
    return tuple(name for parameter in parameters for name in parameter.opts if name.startswith("--"))
