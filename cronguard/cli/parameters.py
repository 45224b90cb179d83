"""What a command takes, as values that typer is given: no signature is written twice.

A command is a function `(invocation, ctx, **own)`; `@command(...)` notes its own parameters, `for_typer` adds the
options that all commands share and hands on an Invocation in their place. Annotations are types and not text, so
that Python 3.8 has nothing to evaluate.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import typer

from cronguard.cli.request import invocation_from
from cronguard.core.settings import Setting
from cronguard.errors import CronguardError
from cronguard.system.host import own_environment

Command = Callable[..., Optional[int]]

_EXAMPLE = "Example: "


class Family(NamedTuple):
    """A command that is several: `cronguard items add`. `verbs`: what may stand behind its name."""

    summary: str
    verbs: Mapping[str, Command]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def option(name: str, flags: str, help_: str, metavar: str = "") -> inspect.Parameter:
    """An option with a text value; without a metavar a flag, off unless given. `flags`: `--verbose -v`."""
    if metavar:
        return _parameter(name, Optional[str], typer.Option(None, *flags.split(), metavar=metavar, help=help_))
    return _parameter(name, bool, typer.Option(False, *flags.split(), help=help_, show_default=False))


def hidden_flag(name: str, flag: str) -> inspect.Parameter:
    """A flag for programs of ours: neither in the help nor in the manual."""
    return _parameter(name, bool, typer.Option(False, flag, hidden=True))


def repeatable(name: str, flags: str, help_: str, metavar: str) -> inspect.Parameter:
    """An option that may be given several times: all its values."""
    found = typer.Option(None, *flags.split(), metavar=metavar, help=help_, show_default=False)
    return _parameter(name, Optional[List[str]], found)


def option_for(setting: Setting) -> inspect.Parameter:
    """The option of a setting. Its value stays text: core.config judges it, whatever source it came from."""
    help_ = setting.help if setting.kind == "flag" else f"{setting.help} [{setting.shown_default}]"
    return option(setting.name, setting.option, help_, setting.metavar)


def argument(name: str, metavar: str, help_: str) -> inspect.Parameter:
    """A word that must be given."""
    return _parameter(name, str, typer.Argument(..., metavar=metavar, help=help_, show_default=False))


def optional_argument(name: str, metavar: str, help_: str) -> inspect.Parameter:
    """A word that may be left away."""
    return _parameter(name, Optional[str], typer.Argument(None, metavar=metavar, help=help_, show_default=False))


def arguments(name: str, metavar: str, help_: str) -> inspect.Parameter:
    """Any number of words, none included."""
    return _parameter(name, Optional[List[str]], typer.Argument(None, metavar=metavar, help=help_, show_default=False))


SHARED: Tuple[inspect.Parameter, ...] = (
    option("store", "--store", "where runs are kept: sqlite:PATH, postgresql://..., file:PATH or env:NAME", "URL"),
    option("config", "--config", "the config file", "FILE"),
    option("log_format", "--log-format", "how cronguard talks on stderr", "text|json"),
    option("verbose", "--verbose -v", "say more"),
)


def help_of(function: Command) -> str:
    """What the command's docstring says, without the examples."""
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    return "\n".join(line.partition(_EXAMPLE)[0].rstrip() for line in lines).strip()


def examples_of(function: Command) -> Tuple[str, ...]:
    """The command lines in its docstring: what stands behind `Example: `, to the end of the line."""
    lines = (function.__doc__ or "").splitlines()
    return tuple(line.partition(_EXAMPLE)[2].strip() for line in lines if _EXAMPLE in line)


def epilog_of(function: Command) -> Optional[str]:
    """The examples as the end of a help text; `\\b` keeps click from wrapping them."""
    if not examples_of(function):
        return None
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in examples_of(function))])


def command(*parameters: inspect.Parameter) -> Callable[[Command], Command]:
    """Note a command's own parameters."""

    def noted(function: Command) -> Command:
        function.parameters = parameters  # type: ignore[attr-defined]
        return function

    return noted


def for_typer(function: Command) -> Command:
    """The function that typer gets to see."""

    def call(ctx: Any, **given: Any) -> Optional[int]:
        take_shared(ctx, given)
        try:
            return function(invocation_from(ctx.obj.shared, own_environment()), ctx, **given)
        except BrokenPipeError as error:  # typer would take it for a closed stdout and leave with 1
            raise CronguardError(f"a connection between processes broke: {error}") from error

    return with_signature(call, function.parameters, help_of(function))  # type: ignore[attr-defined]


def with_signature(function: Command, own: Tuple[inspect.Parameter, ...], doc: Optional[str]) -> Command:
    """Show typer the context, the own parameters and the shared ones."""
    parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    parameters += [*own, *SHARED]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    function.__doc__ = doc
    return function


def take_shared(ctx: Any, given: Dict[str, Any]) -> None:
    """Move the shared options to where they wait for the command; what stands later in the line counts."""
    for parameter in SHARED:
        value = given.pop(parameter.name)
        if value not in (None, False):
            ctx.obj.shared[parameter.name] = value
