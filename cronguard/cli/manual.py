"""The manual page cronguard(1), written from the command line itself.

`python -m cronguard.cli.manual > contrib/cronguard.1` after a change. The page is checked in and goes into the wheel
(share/man/man1); a test compares the two, so that no option is missing there. man(7) macros only, so that groff and
mandoc both read it. No date: the same source gives the same page.
"""

from __future__ import annotations

from typing import Iterator, List, Sequence, Tuple

from cronguard import __version__
from cronguard.cli.edge import print_lines
from cronguard.cli.tree import Node, Option, command_line
from cronguard.core.settings import SETTINGS

_Entries = Sequence[Tuple[str, str]]

EXIT_STATUS: _Entries = (
    ("0", "the slot's work is done, by this run or by an earlier one"),
    ("1-123", "the command's own code, which always passes through unchanged"),
    ("75", "the command was not started and the slot is not done: locked, leftover processes, paused, too late,"
           " attempts used up"),
    ("124", "the command was stopped at its timeout"),
    ("125", "cronguard could not do its part (usage, config, store, --on-conflict fail): the command was not started;"
            " or its output could not be passed on"),
    ("126, 127", "the command could not be executed, was not found"),
    ("128+n", "the command or cronguard ended by signal n; also when the lock was lost"),
)  # fmt: skip

_READ: _Entries = (
    ("CRONGUARD_STORE", "--store"),
    ("CRONGUARD_CONFIG", "--config"),
    ("CRONGUARD_STATE_DIR", "where SQLite, locks and undelivered rows are kept"),
    ("CRONGUARD_LOG_FORMAT", "--log-format"),
    *((setting.environment, setting.option) for setting in SETTINGS if setting.environment),
)

_GIVEN: _Entries = (
    ("CRONGUARD_JOB, CRONGUARD_RUN_ID, CRONGUARD_RUN_KEY", "the job, this run, what is done once"),
    ("CRONGUARD_SLOT, CRONGUARD_SLOT_LOCAL, CRONGUARD_DAY, CRONGUARD_ZONE",
     "the slot in UTC and local, its day in the company's zone, that zone"),
    ("CRONGUARD_ATTEMPT, CRONGUARD_TRIGGER, CRONGUARD_DEADLINE",
     "which attempt, why it was started, when it will be stopped"),
    ("CRONGUARD_FENCE", "a number that grows with every claim"),
    ("CRONGUARD_OUTPUT", "a file for items=418, errors=2, message=...: they land in the row"),
)  # fmt: skip

_FILES: _Entries = (
    ("$XDG_CONFIG_HOME/cronguard/config.toml, /etc/cronguard/config.toml", "the config file; the first that there is"),
    ("/var/lib/cronguard, $XDG_STATE_HOME/cronguard", "the state directory of root and of others; mode 0700"),
    ("cronguard.db, cronguard.db.locks/, spool/", "in it: runs, locks, rows that wait to be delivered"),
)


def manual() -> List[str]:
    """The lines of the page."""
    root = command_line()
    shared = [option for option in root.options if option.shared]
    own = [option for option in root.options if not option.shared]
    leaves = [node for node in root.walk() if not node.verbs]
    return [
        f'.TH CRONGUARD 1 "" "cronguard {__version__}" "User Commands"',
        ".SH NAME",
        "cronguard \\- puts a guard in front of cron jobs",
        ".SH SYNOPSIS",
        *[line for node in leaves for line in (_synopsis(node), ".br")][:-1],
        ".SH DESCRIPTION",
        *_paragraphs(root.help),
        *_paragraphs("The README has the whole story; cronguard COMMAND --help has what follows, command by command."),
        ".SH COMMANDS",
        *[line for node in leaves for line in _command(node)],
        ".SH OPTIONS OF ALL COMMANDS",
        *_options(shared),
        *_entry("-h, --help", "explain a command, and leave"),
        ".SH OPTIONS WITHOUT A COMMAND",
        *_options(own),
        ".SH EXIT STATUS",
        *_paragraphs("Of run:"),
        *_entries(EXIT_STATUS),
        *_paragraphs(
            "check leaves with 0 ok, 1 warning, 2 critical, 3 unknown. The others leave with 0, with 1 for a job or run"
            " that does not exist, with 2 for a mistake in the line or the config file, with 125 when the store cannot"
            " be reached."
        ),
        ".SH ENVIRONMENT",
        *_paragraphs("Read, where neither the command line nor the job's table says otherwise:"),
        *_entries(_READ),
        *_paragraphs("Given to the command:"),
        *_entries(_GIVEN),
        ".SH FILES",
        *_entries(_FILES),
        ".SH EXAMPLES",
        *_examples([example for node in leaves for example in node.examples]),
        ".SH SEE ALSO",
        "\\fBcrontab\\fR(5), \\fBcron\\fR(8), \\fBsystemd.timer\\fR(5), \\fBflock\\fR(1), \\fBtimeout\\fR(1)",
    ]


def _synopsis(node: Node) -> str:
    words = [f"\\fI{_escaped(each.metavar)}\\fR" for each in node.arguments]
    behind = ["[\\-\\- \\fICMD\\fR [\\fIARG\\fR]...]"] if node.before_a_command else []
    return " ".join([f"\\fBcronguard {_escaped(' '.join(node.path))}\\fR", *words, "[\\fIOPTIONS\\fR]", *behind])


def _command(node: Node) -> Iterator[str]:
    yield f".SS cronguard {_escaped(' '.join(node.path))}"
    yield _synopsis(node)
    yield from _paragraphs(node.help)
    for argument in node.arguments:
        yield from _entry(argument.metavar, argument.help)
    yield from _options([option for option in node.options if not option.shared])
    yield from _examples(node.examples)


def _options(options: Sequence[Option]) -> Iterator[str]:
    for option in options:
        value = f" \\fI{_escaped(option.metavar)}\\fR" if option.metavar else ""
        flags = ", ".join(f"\\fB{_escaped(flag)}\\fR" for flag in option.flags)
        yield from (".TP", f"{flags}{value}", _escaped(option.help))


def _entries(entries: _Entries) -> Iterator[str]:
    for name, text in entries:
        yield from _entry(name, text)


def _entry(name: str, text: str) -> Iterator[str]:
    yield from (".TP", f"\\fB{_escaped(name)}\\fR", _escaped(text))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (".PP", _escaped(" ".join(paragraph.split())))


def _examples(examples: Sequence[str]) -> Iterator[str]:
    """Each as it is typed."""
    if examples:
        yield from (".PP", ".nf", ".RS", *map(_escaped, examples), ".RE", ".fi")


def _escaped(text: str) -> str:
    """Text that roff takes for nothing else, with dashes and quotes that can be copied into a shell."""
    for sign, name in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")):
        text = text.replace(sign, name)
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    print_lines(manual())
