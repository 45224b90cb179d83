"""Rules on a crontab's text: what cron cannot read, reads as something else, or loses; secrets that stand in it."""

from __future__ import annotations

import re
from typing import Iterator, List, Optional

from cronguard.core.crontab import Line, Setting, command_places
from cronguard.core.lint_model import Case, Remark, Tab, shown, text_of
from cronguard.core.masking import mask_argv, mask_text

_DATE_FORMAT = re.compile(rb"\+[^ \t]*$")  # `date +%F`: what stands before the `%`
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")


def ignored_file(tab: Tab) -> Iterator[Remark]:
    """A name in cron.d that Debian's cron passes over, as run-parts(8) does: one with a dot, such as `backup.cron`.
    What package managers and editors leave behind is passed over on purpose."""
    folder, _, name = (tab.path or "").rpartition("/")
    is_left_behind = name.startswith(".") or name.endswith("~") or ".dpkg-" in name
    is_ignored = tab.judge.cron.kind == "debian" and not _PLAIN_NAME.fullmatch(name)
    if folder.endswith("/cron.d") and is_ignored and not is_left_behind:
        yield Remark(
            "ignored-file", 1, 1, f"Debian's cron ignores a file of that name in cron.d: {name}",
            "letters, digits, underscores and hyphens only",
        )  # fmt: skip


def unparsable_lines(tab: Tab) -> Iterator[Remark]:
    """Lines that no cron reads, those apart that only have a carriage return too many (see `carriage_returns`)."""
    cron = tab.judge.cron
    for line in tab.crontab.lines:
        if line.kind != "unparsable" or not line.raw.strip(b" \t\r\n"):
            continue
        column = len(line.raw) - len(line.raw.lstrip(b" \t")) + 1
        yield Remark(
            "unparsable-line", line.number, column, f"{line.problem}: {cron.name} {cron.bad_line}", _fix_of(line)
        )


def dash(case: Case) -> Iterator[Remark]:
    """A `-` before the schedule, which keeps cronie and SUSE's cron from logging the job, and is an error to others."""
    cron = case.judge.cron
    if case.job.flags and not cron.takes_dash:
        yield case.remark(
            "unparsable-line", case.job.schedule_at,
            f"a - before the schedule is for cronie: {cron.name} {cron.bad_line}", "take it away",
        )  # fmt: skip


def too_long(case: Case) -> Iterator[Remark]:
    """A command of more bytes than the cron has room for; a guard put in front of it makes it longer still."""
    cron = case.judge.cron
    length = len(case.job.written)
    if cron.longest_command and length > cron.longest_command:
        yield case.remark(
            "command-too-long", case.job.written_at + 1,
            f"{length} bytes of command, {cron.longest_command} at most: {cron.name} {cron.bad_line}",
            "put it into a script",
        )  # fmt: skip


def _fix_of(line: Line) -> str:
    if "user" in line.problem:
        return "in a system crontab the user's name stands between schedule and command"
    if re.match(rb"[ \t]*[A-Za-z_]\w*[ \t]*=[ \t\r]*$", line.raw.rstrip(b"\n")):
        return 'an empty value needs quotes: NAME=""'
    return "write five fields or a nickname such as @daily, then the command; or make it a comment"


def missing_newline(tab: Tab) -> Iterator[Remark]:
    """A last line without its newline (FR-32)."""
    cron = tab.judge.cron
    last = tab.crontab.lines[-1] if tab.crontab.lines else None
    if last is None or last.raw.endswith(b"\n") or not cron.needs_newline:
        return
    if last.kind in ("comment", "blank") and cron.kind == "debian":
        return  # its last line that matters has a newline; tried with crontab -n
    yield Remark(
        "missing-newline", last.number, len(last.raw) + 1,
        f"no newline at the end of the file: {cron.name} {cron.bad_line}", "end the file with a newline",
    )  # fmt: skip


def carriage_returns(tab: Tab) -> Iterator[Remark]:
    """Lines that end as on Windows: the command gets the carriage return as its last character (FR-32)."""
    lines = [line for line in tab.crontab.lines if line.raw.rstrip(b"\n").endswith(b"\r") and line.kind != "comment"]
    if not lines:
        return
    first = lines[0]
    blank = any(line.kind == "unparsable" and not line.raw.strip() for line in lines)
    cron = tab.judge.cron
    others = f" and on {len(lines) - 1} other lines" if len(lines) > 1 else ""
    worst = f", and {cron.name}, for an empty one, {cron.bad_line}" if blank else ""
    yield Remark(
        "carriage-return", first.number, len(first.raw.rstrip(b"\n")),
        f"CR before the newline, here{others}: command or value end in it then{worst}",
        "take them away: sed -i 's/\\r$//' FILE",
    )  # fmt: skip


def percent(case: Case) -> Iterator[Remark]:
    """A bare `%`, which ends the command (FR-31). An error where the command cannot have been meant to end there."""
    if not case.judge.cron.splits_percent or case.job.stdin is None:
        return
    _, end = command_places(case.job.written, case.judge.cron.kind)
    column = case.job.written_at + end + 1
    before = case.job.written[:end]
    if _DATE_FORMAT.search(before) or _is_open(shown(case.text)):
        yield case.remark(
            "unescaped-percent", column, "an unescaped % ends the command; the rest becomes its standard input",
            "write \\% for a percent sign",
        )  # fmt: skip
    else:
        yield case.remark(
            "percent-stdin", column, "everything behind the % is standard input of the command",
            "fine if that is meant; else write \\%",
        )  # fmt: skip


def _is_open(text: str) -> bool:
    """Is a quote, a backquote or a bracket still open at the end?"""
    quote = ""
    opened = 0
    escaped = False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        else:
            opened += (letter == "(") - (letter == ")")
    return bool(quote) or opened > 0


def secrets(case: Case) -> Iterator[Remark]:
    """A secret in the command or its standard input: anybody may read it in `ps`, mails and logs."""
    at = _secret_in(case)
    if at is not None:
        yield case.remark(
            "secret-on-line", case.column(at), "a secret stands on the line: ps, cron's log and its mails show it",
            "keep it in a file that only this user can read, and let the command read it from there",
        )  # fmt: skip


def _secret_in(case: Case) -> Optional[int]:
    """Where the first secret begins, roughly: the offset at which masking first changes something."""
    masked = mask_text(case.text)
    if masked != case.text:
        return _first_difference(case.text, masked)
    if case.job.stdin is not None:
        stdin = case.job.stdin.decode("latin-1")
        if mask_text(stdin) != stdin:
            return len(case.text)
    for command in case.commands:
        words = [word.text for word in command.words]
        for word, hidden in zip(command.words, mask_argv(words) if words else ()):
            if word.text != hidden and not word.text.startswith("$"):
                return word.at
    return None


def _first_difference(text: str, other: str) -> int:
    return next((at for at, (one, two) in enumerate(zip(text, other)) if one != two), min(len(text), len(other)))


def secret_settings(tab: Tab) -> Iterator[Remark]:
    """A secret in an environment line: every job below it, and each of its mails (X-Cron-Env), has it."""
    for line in tab.crontab.lines:
        if line.setting is not None and _is_secret(line.setting):
            column = len(line.raw) - len(line.raw.lstrip(b" \t")) + 1
            yield Remark(
                "secret-on-line", line.number, column,
                f"{text_of(line.setting.name)} looks like a secret: every job below gets it, and cron's mails show it",
                "let the one command that needs it read it from a file that only this user can read",
            )  # fmt: skip


def _is_secret(setting: Setting) -> bool:
    whole: List[str] = [f"{text_of(setting.name)}={text_of(setting.value)}"]
    return bool(setting.value) and list(mask_argv(["env", *whole]))[1:] != whole
