"""The command line as data, read off what typer was given: for the manual page, shell completion and their tests.

Whatever version of typer and click built it, the same comes out: names, metavars and texts are ours, nothing of theirs
is in it, not even `--help`.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Tuple

from cronguard.cli.parameters import SHARED

_SHARED = {parameter.name for parameter in SHARED}


class Option(NamedTuple):
    """`flags`: `--verbose`, `-v`. `metavar`: of its value, empty for one that takes none. `shared`: every command's."""

    flags: Tuple[str, ...]
    metavar: str
    help: str
    shared: bool

    @property
    def choices(self) -> Tuple[str, ...]:
        """What may stand there, if its metavar says so: `skip|wait|fail`."""
        return tuple(self.metavar.split("|")) if "|" in self.metavar and self.metavar.islower() else ()


class Argument(NamedTuple):
    """`metavar` as in the usage line: `JOB`, `[JOB]...`."""

    metavar: str
    help: str

    @property
    def kind(self) -> str:
        """What it is of: `JOB`, `FILE`."""
        return self.metavar.strip("[].")


class Node(NamedTuple):
    """A command, or one that is several: `verbs`. `path`: the words that call it, none for `cronguard` itself."""

    path: Tuple[str, ...]
    help: str
    options: Tuple[Option, ...]
    arguments: Tuple[Argument, ...]
    examples: Tuple[str, ...]
    before_a_command: bool  # it takes `-- CMD [ARG]...`
    verbs: Tuple[Any, ...]  # of Node; 3.8's typing has no recursive named tuples

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "cronguard"

    @property
    def takes_job(self) -> bool:
        return any(argument.kind == "JOB" for argument in self.arguments)

    def walk(self) -> Iterator[Node]:
        """This one and all below it."""
        yield self
        for verb in self.verbs:
            yield from verb.walk()


def command_line() -> Node:
    """All of it; loads every command's module."""
    from cronguard.cli.app import commands

    return _node((), commands())


def _node(path: Tuple[str, ...], command: Any) -> Node:
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return Node(
        path,
        (command.help or "").strip(),
        tuple(_option(each) for each in command.params if each.param_type_name == "option" and not each.hidden),
        tuple(_argument(each) for each in command.params if each.param_type_name == "argument"),
        tuple(line[2:] for line in (command.epilog or "").splitlines() if line.startswith("  ")),
        bool(path) and _stands_in_front(command),
        tuple(_node((*path, name), command.get_command(None, name)) for name in names),
    )


def _option(parameter: Any) -> Option:
    flags = tuple(sorted(parameter.opts, key=len, reverse=True))
    metavar = "" if parameter.is_flag else parameter.metavar or ""
    return Option(flags, metavar, parameter.help or "", parameter.name in _SHARED)


def _argument(parameter: Any) -> Argument:
    return Argument(parameter.metavar or "", parameter.help or "")


def _stands_in_front(command: Any) -> bool:
    """Does the usage line show a command behind `--`?"""
    return any("CMD" in piece for piece in command.collect_usage_pieces(command.context_class(command)))
