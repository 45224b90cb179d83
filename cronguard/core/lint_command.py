"""Rules on a job's command: exit codes that nobody sees, things that are not there, runs without a guard."""

from __future__ import annotations

import re
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple

from cronguard.core.lint_model import Case, Remark, shown
from cronguard.core.shell import Redirection, Simple, Word, is_assignment

_SILENT = frozenset(("true", ":", "echo", "printf", "logger"))  # exit 0, whatever came before them
_PRODUCERS = frozenset(("echo", "printf", "yes", "true"))  # whose own failure is none of the job's
_BUILTIN_NAMES = """
. : [ [[ alias bg break builtin case cd command continue declare echo enable eval exec exit export false fg for function
getopts hash in jobs kill let local popd printf pushd pwd read readonly return select set shift shopt source test times
trap true type typeset ulimit umask unalias unset wait
"""
_BUILTINS = frozenset(_BUILTIN_NAMES.split())
# Programs that run another one: name, and the options of theirs that take a value of their own.
_WRAPPERS: Mapping[str, str] = {
    "env": "uCS", "nice": "n", "ionice": "cn", "nohup": "", "setsid": "", "stdbuf": "ioe", "chronic": "", "time": "fo",
    "sudo": "ugpChT", "exec": "", "command": "",
}  # fmt: skip
_WRITING = frozenset((">", ">>", ">|", "&>", "&>>"))
_GUARD_TAIL = re.compile(r"(^|/)cronguard$")
_COMMANDS = frozenset(("run", "once", "backfill", "items", "check", "report", "metrics", "prune", "status"))
_NAME = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")


def is_guarded(case: Case) -> bool:
    """Does a `cronguard run`, or another of our commands, stand in the line, in whatever place?"""
    return _guard(case) is not None


def guard_words(case: Case) -> Tuple[Word, ...]:
    """The words of the guard's own command line; empty without one."""
    found = _guard(case)
    return () if found is None else found


def _guard(case: Case) -> Optional[Tuple[Word, ...]]:
    for command in case.commands:
        for place, word in enumerate(command.words):
            follows = {behind.text for behind in command.words[place + 1 : place + 9]}  # behind some shared options
            if _GUARD_TAIL.search(word.text) and follows & _COMMANDS:
                return command.words[place:]
    return None


def unguarded(case: Case) -> Iterator[Remark]:
    """A job that may run twice, for ever, or not at all, without anybody knowing."""
    if case.job.schedule != "@reboot" and not is_guarded(case):
        yield case.remark(
            "unguarded", case.job.written_at + 1, "no cronguard in front: no lock, no record, nobody is told",
            "cronguard wrap writes the line",
        )  # fmt: skip


def pipelines(case: Case) -> Iterator[Remark]:
    """A pipeline's exit code is that of its last command: a dump that fails is a success (FR-28)."""
    if "pipefail" in case.text:
        return
    for command in case.commands:
        if command.after == "|" and command.before != "|" and _matters(case.commands, command):
            yield case.remark(
                "pipeline-status", case.column(command.after_at),
                f"only the last command of the pipeline decides the exit code: {_name(command)} may fail unnoticed",
                "let bash run it with set -o pipefail, as in: bash -o pipefail -c '...'",
            )  # fmt: skip
            return


def _matters(commands: Sequence[Simple], first: Simple) -> bool:
    """Is anything that can fail in front of the last command of the pipeline?"""
    for command in commands[commands.index(first) :]:
        if command.after != "|":
            return False
        if _name(command) not in _PRODUCERS:
            return True
    return False


def masked_exits(case: Case) -> Iterator[Remark]:
    """A failure that is turned into a success: `|| true`, `; exit 0` (FR-28)."""
    for place, command in enumerate(case.commands):
        if not place or not _succeeds_always(command):
            continue
        if command.before == "||":
            yield _masked(case, command, f"a failure becomes a success here: || {_words(command)}")
            return
        if command.before == ";" and command.after == "":
            yield _masked(case, command, f"the line ends with {_words(command)}, so it never fails")
            return


def _masked(case: Case, command: Simple, message: str) -> Remark:
    return case.remark(
        "masked-exit", case.column(command.words[0].at), message,
        "let the command's own exit code out; cronguard run has --skip-exit-code for a code that means nothing to do",
    )  # fmt: skip


def _succeeds_always(command: Simple) -> bool:
    words = [word.text for word in command.words]
    return bool(words) and (words[0] in _SILENT or words == ["exit", "0"]) and command.after != "|"


def background(case: Case) -> Iterator[Remark]:
    """A job that is left behind at once: its exit code, its end and its overlap are nobody's business (FR-28)."""
    last = max(case.commands, key=lambda command: command.after_at, default=None)
    if last is not None and last.after == "&":
        yield case.remark(
            "background-job", case.column(last.after_at),
            "the & leaves the command behind: its exit code is lost, and runs may pile up", "take the & away",
        )  # fmt: skip


def missing_directories(case: Case) -> Iterator[Remark]:
    """A redirection into, or a `cd` to, a directory that is not there: the command never starts (FR-35)."""
    if any(_name(command) in ("mkdir", "install") for command in case.commands):
        return
    environment = case.environment()
    here = environment.get("HOME")
    for command in case.commands:
        for redirection in command.redirections:
            yield from _missing_target(case, redirection, here, environment)
        if _name(command) == "cd":
            target = _path(command.words[1], here, environment) if len(command.words) > 1 else here
            if target is not None and not case.judge.host.is_directory(target):
                yield _not_there(case, command.words[1] if len(command.words) > 1 else command.words[0], target)
            here = target


def _missing_target(
    case: Case, redirection: Redirection, here: Optional[str], environment: Mapping[str, str]
) -> Iterator[Remark]:
    if redirection.operator not in _WRITING:
        return
    path = _path(_certain(redirection.target), here, environment)
    folder = None if path is None else path.rpartition("/")[0] or "/"
    if folder is not None and not case.judge.host.is_directory(folder):
        yield _not_there(case, redirection.target, folder)


def _certain(word: Word) -> Word:
    """A target without its name, if only the name is for the shell to make: `/var/log/x-$(date +%F).log`."""
    folder, slash, _ = word.text.rpartition("/")
    only_name = word.expands and bool(slash) and not any(letter in folder for letter in "`*?[(")
    return word._replace(text=folder + slash, expands="$" in folder) if only_name else word


def _not_there(case: Case, word: Word, folder: str) -> Remark:
    return case.remark(
        "missing-directory", case.column(word.at),
        f"no such directory here: {shown(folder)}: the command would not even start", f"mkdir -p {shown(folder)}",
    )  # fmt: skip


def _path(word: Word, here: Optional[str], environment: Mapping[str, str]) -> Optional[str]:
    """The absolute path that a word is; None if only the shell at its time could tell."""
    text = _filled(word, environment)
    if text is None or not text:
        return None
    if text == "~" or text.startswith("~/"):
        home = environment.get("HOME")
        return None if home is None else home + text[1:]
    if text.startswith("/"):
        return text
    return None if here is None or text.startswith("~") else f"{here.rstrip('/')}/{text}"


def _filled(word: Word, environment: Mapping[str, str]) -> Optional[str]:
    if not word.expands:
        return word.text
    text = _NAME.sub(lambda found: environment.get(found.group(1) or found.group(2), "$"), word.text)
    return None if any(letter in text for letter in "$`*?[") else text


def missing_commands(case: Case) -> Iterator[Remark]:
    """A command that cron's short PATH does not lead to: the classic of a job that works in a shell (FR-29)."""
    if any(mark in case.text for mark in ("command -v", "which ", "type ", "PATH=", " -x ", "()")):
        return  # it looks for itself, sets its own PATH, or defines functions
    environment = case.environment()
    path = environment["PATH"]
    here = environment.get("HOME")
    for command in case.commands:
        if _name(command) == "cd" and len(command.words) > 1:
            here = _path(command.words[1], here, environment)
        for word in _programs(command):
            if not _is_there(case, word, here, environment, path):
                yield case.remark(
                    "command-not-found", case.column(word.at),
                    f"{shown(word.text)}: not found here with PATH={path}",
                    "write its absolute path, or set PATH in the crontab",
                )  # fmt: skip
                return


def _is_there(
    case: Case, word: Word, here: Optional[str], environment: Mapping[str, str], path: str
) -> bool:
    name = _filled(word, environment)
    if name is None or not name or name in _BUILTINS or any(letter in name for letter in "{}=();\"'"):
        return True
    if "/" in name or name.startswith("~"):
        found = _path(word, here, environment)
        return found is None or case.judge.host.has_command(found, path)
    return case.judge.host.has_command(name, path)


def _programs(command: Simple) -> Iterator[Word]:
    """The program of a command, and those that it runs in turn (`nice`, `timeout`, `env`, the guard)."""
    words = list(command.words)
    while words:
        while words and is_assignment(words[0]):
            words.pop(0)
        if not words:
            return
        program = words.pop(0)
        yield program
        inner = _inner(program, words)
        if inner is None:
            return
        words = inner


def _inner(program: Word, words: List[Word]) -> Optional[List[Word]]:
    name = program.text.rpartition("/")[2]
    if name == "cronguard":
        texts = [word.text for word in words]
        at = texts.index("--") if "--" in texts else len(texts)
        return None if "--shell" in texts[:at] else words[at + 1 :]  # a shell line's commands are the case's own
    if name == "timeout":
        rest = _without_options(words, "ks")
        return rest[1:] if rest else None
    return _without_options(words, _WRAPPERS[name]) if name in _WRAPPERS else None


def _without_options(words: List[Word], with_value: str) -> List[Word]:
    rest = list(words)
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option == "--":
            break
        if len(option) == 2 and option[1] in with_value and rest:
            rest.pop(0)
    return rest


def program_words(case: Case, name: str) -> Optional[List[Word]]:
    """The words behind the first program of that name, wherever it stands in front of another."""
    for command in case.commands:
        for word in _programs(command):
            if word.text.rpartition("/")[2] == name:
                return list(command.words[command.words.index(word) + 1 :])
    return None


def _name(command: Simple) -> str:
    words = [word for word in command.words if not is_assignment(word)]
    return shown(words[0].text.rpartition("/")[2]) if words else ""


def _words(command: Simple) -> str:
    texts = [shown(word.text) for word in command.words]
    return texts[0] if texts[0] not in ("exit", "true", ":") else " ".join(texts)
