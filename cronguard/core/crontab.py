"""Crontabs as cron reads them: bytes in, lines out, nothing lost and nothing refused.

Each line keeps its raw bytes, so that joining them gives the file back; what a line means stands beside them. The
rules are those of load_env() and load_entry() (env.c, entry.c) and of child_process() for `%` (do_command.c), read in
cronie 1.7 and tried with the programs of Debian's cron 3.0pl1-162:

* A line ends at a newline only. Leading blanks and tabs are passed over, then `#` makes a comment. A carriage return
  is no blank: it belongs to the command or the value, and a "blank" line that has one is an error.
* `NAME = value` is tried before anything else. Name and value may stand in quotes, which must end where they end;
  nothing in them is expanded or unescaped. A bare value may hold quotes and blanks and loses the blanks behind it.
  `NAME=` with nothing behind it is no setting, but an error; `NAME=""` is one. A setting holds for the lines below it.
* A `-` at the very beginning keeps cronie and SUSE's cron from logging a job (root's and system crontabs only);
  Debian's cron refuses it.
* The first unescaped `%` ends the command. What follows is its standard input, each further `%` a newline, with one
  newline added unless it ends in one. In the command `\\%` is a `%`, and a backslash takes the next character with it.
  Debian's cron makes `\\\\` one backslash there, cronie leaves both; in the standard input neither changes it.
* One bad line, or a last line without its newline, makes Debian's cron ignore the whole file, and cronie that line.
  A last line is read here as if it had one, since that is what was meant; the raw bytes tell.

Neither knows `@every`, seconds or `L W # ?`, as other crons do: a line with one of these signs is a job here, whose
schedule `core.cron` refuses. A line is unparsable only if no cron could take it. Promises not to raise, whatever the
bytes; not to look at the host; not to change a byte.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

USER, SYSTEM = "user", "system"
DEBIAN, CRONIE = "debian", "cronie"

_BLANKS = b" \t"
_SPACE = b" \t\n\v\f\r"  # isspace(3) in the C locale
_NICKNAMES = frozenset(
    b"@reboot @yearly @annually @monthly @weekly @daily @midnight @hourly @every_minute @every_second".split()
)
_FIELD_NAMES = ("minute", "hour", "day-of-month", "month", "day-of-week")
_LARGEST = (59, 23, 31, 12, 7)
_TIME = re.compile(rb"[0-9*?~L][0-9*?~,/LW#-]*")
_NAMED_TIME = re.compile(rb"[0-9*?~A-Za-z][0-9*?~,/#A-Za-z-]*")
_PERIOD = re.compile(rb"@every[ \t]+([0-9][0-9a-z.]*)(?=[ \t])")
_ACCOUNTS = frozenset(b"root www-data nobody postgres apache ubuntu daemon".split())
_ACCOUNT = re.compile(rb"[A-Za-z_][A-Za-z0-9_.-]*\$?")


class Setting(NamedTuple):
    """An environment setting, as the jobs below it get it."""

    name: bytes
    value: bytes


class Job(NamedTuple):
    """A line that runs something. Offsets count bytes from the line's beginning; a column is one more.

    `flags`: `-` or nothing. `schedule`: five fields as written, blanks included, or a nickname. `user`: of a system
    crontab, else None. `written`: the command as it stands in the line, up to the line's end, `%` and all. `command`:
    what the shell is given. `stdin`: what it reads; None without a `%`, for which cron gives an empty pipe.
    `environment`: what the settings above the line have set, not what cron adds (SHELL, HOME, PATH, LOGNAME).
    """

    flags: bytes
    schedule: str
    schedule_at: int
    user: Optional[bytes]
    user_at: Optional[int]
    written: bytes
    written_at: int
    command: bytes
    stdin: Optional[bytes]
    environment: Mapping[bytes, bytes]


class Line(NamedTuple):
    """One line. `kind`: job, environment, comment, blank or unparsable. `raw` includes the line's end, if it has one.

    `job` and `setting` are there for their kinds; `problem` says why an unparsable one is that.
    """

    kind: str
    number: int
    raw: bytes
    job: Optional[Job] = None
    setting: Optional[Setting] = None
    problem: str = ""


class Crontab(NamedTuple):
    """A file's lines. `flavour`: `user` or `system`, the latter with a user's name before each command."""

    flavour: str
    lines: Tuple[Line, ...]


def parse_crontab(data: bytes, flavour: Optional[str] = None, cron: str = DEBIAN) -> Crontab:
    """The lines of a crontab; without a flavour, `guessed_flavour` decides. `cron`: whose rule for `\\\\` counts."""
    flavour = flavour or guessed_flavour(data)
    environment: Dict[bytes, bytes] = {}
    lines: List[Line] = []
    for number, raw in enumerate(_raw_lines(data), 1):
        line = _line(number, raw, flavour, environment, cron)
        if line.setting is not None:
            environment = {**environment, line.setting.name: line.setting.value}
        lines.append(line)
    return Crontab(flavour, tuple(lines))


def flavour_of_path(path: str) -> Optional[str]:
    """The flavour that a file's place decides: cron(8) reads a user from /etc/crontab and cron.d, and not from the
    spool. None for any other place."""
    folder = path.rpartition("/")[0]
    if path == "/etc/crontab" or folder.endswith("/cron.d"):
        return SYSTEM
    return USER if "/spool/cron" in folder else None


def guessed_flavour(data: bytes) -> str:
    """`system` if every job has a word that can be a user's name between its schedule and a further word, and one of
    them is an account that systems come with (root, www-data, ...); else `user`. A guess, for text without a place."""
    jobs = [line.job for line in parse_crontab(data, SYSTEM).lines if line.job is not None]
    with_command = sum(line.kind == "job" for line in parse_crontab(data, USER).lines)
    names = {job.user or b"" for job in jobs}
    if len(jobs) < with_command or not all(_ACCOUNT.fullmatch(name) for name in names):
        return USER
    return SYSTEM if names & _ACCOUNTS else USER


def split_percent(written: bytes, cron: str = DEBIAN) -> Tuple[bytes, Optional[bytes]]:
    """The command and its standard input, by cron's rule for `%`; None for no `%` at all."""
    places, end = command_places(written, cron)
    command = bytes(written[at] for at in places)
    return command, _stdin(written[end + 1 :]) if end < len(written) else None


def command_places(written: bytes, cron: str = DEBIAN) -> Tuple[List[int], int]:
    """Where each byte of the command stands in what was written, and where the command ends."""
    dropped = b"%\\" if cron == DEBIAN else b"%"
    places: List[int] = []
    at = 0
    while at < len(written) and written[at : at + 1] != b"%":
        if written[at : at + 1] == b"\\" and at + 1 < len(written):
            if written[at + 1 : at + 2] not in dropped:
                places.append(at)
            at += 1
        places.append(at)
        at += 1
    return places, at


def _stdin(text: bytes) -> bytes:
    if not text:
        return b""
    data = bytearray()
    at = 0
    while at < len(text):
        letter = text[at : at + 1]
        if text[at : at + 2] == b"\\%":
            data += b"%"
            at += 2
            continue
        data += b"\n" if letter == b"%" else letter
        at += 1
    return bytes(data) if data.endswith(b"\n") else bytes(data) + b"\n"


def _raw_lines(data: bytes) -> List[bytes]:
    pieces = [piece + b"\n" for piece in data.split(b"\n")]
    pieces[-1] = pieces[-1][:-1]
    return pieces if pieces[-1] else pieces[:-1]


def _line(number: int, raw: bytes, flavour: str, environment: Mapping[bytes, bytes], cron: str) -> Line:
    text = raw[:-1] if raw.endswith(b"\n") else raw
    bare = text.lstrip(_BLANKS)
    if not bare:
        return Line("blank", number, raw)
    if bare.startswith(b"#"):
        return Line("comment", number, raw)
    setting = parse_setting(bare)
    if setting is not None:
        return Line("environment", number, raw, setting=setting)
    found = _job(text, len(text) - len(bare), flavour, environment, cron)
    if isinstance(found, str):
        return Line("unparsable", number, raw, problem=found)
    return Line("job", number, raw, job=found)


def parse_setting(text: bytes) -> Optional[Setting]:
    """The setting that a line without leading blanks is, by load_env()'s states; None if it is none."""
    name, rest = _setting_name(text)
    rest = rest.lstrip(_SPACE)
    if name is None or not rest.startswith(b"="):
        return None
    value = rest[1:].lstrip(_SPACE)
    if not value:
        return None
    if value[:1] not in (b"'", b'"'):
        return Setting(name, value.rstrip(_SPACE))
    inside, quote, behind = value[1:].partition(value[:1])
    return Setting(name, inside) if quote and not behind.strip(_SPACE) else None


def _setting_name(text: bytes) -> Tuple[Optional[bytes], bytes]:
    """The name and what is behind it; None for one that is not closed or, in quotes, has a `=`."""
    if text[:1] in (b"'", b'"'):
        name, quote, rest = text[1:].partition(text[:1])
        return (name if quote and b"=" not in name else None), rest
    end = next((at for at in range(len(text)) if text[at : at + 1] in b"=" + _SPACE), len(text))
    return text[:end], text[end:]


class _Words:
    """A line's blank-separated words, one after the other."""

    def __init__(self, text: bytes, at: int) -> None:
        self.text = text
        self.at = at

    def word(self) -> bytes:
        """The next word; empty at the end. Stands behind the blanks after it then."""
        end = self.at
        while end < len(self.text) and self.text[end : end + 1] not in _BLANKS:
            end += 1
        found = self.text[self.at : end]
        self.at = end
        self.skip_blanks()
        return found

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at : self.at + 1] in _BLANKS:
            self.at += 1


def _job(
    text: bytes, start: int, flavour: str, environment: Mapping[bytes, bytes], cron: str
) -> Union[Job, str]:
    """The job, or what is wrong with the line."""
    flags = b"-" if text[start : start + 1] == b"-" else b""
    words = _Words(text, start + len(flags))
    schedule_at = words.at
    problem = _read_nickname(words) if text[words.at : words.at + 1] == b"@" else _read_fields(words)
    if problem:
        return problem
    schedule = text[schedule_at : words.at].rstrip(_BLANKS).decode("ascii")
    user_at = words.at if flavour == SYSTEM else None
    user = words.word() if flavour == SYSTEM else None
    written = text[words.at :]
    if user == b"":
        return "no user and no command after the schedule"
    if not written.strip(_SPACE):
        return "no command after the user" if user else "no command after the schedule"
    if (user or written).startswith(b"*"):
        return "a * where the user should be: one field too many" if user else "a * where the command should be"
    command, stdin = split_percent(written, cron)
    return Job(flags, schedule, schedule_at, user, user_at, written, words.at, command, stdin, environment)


def _read_nickname(words: _Words) -> str:
    period = _PERIOD.match(words.text, words.at)
    if period is not None:
        words.at = period.end()
        words.skip_blanks()
        return ""
    nickname = words.word()
    return "" if nickname in _NICKNAMES else f"bad nickname: {nickname.decode('ascii', 'backslashreplace')}"


def _read_fields(words: _Words) -> str:
    for name, largest in zip(_FIELD_NAMES, _LARGEST):
        field = words.word()
        if not field:
            return f"no {name}"
        shape = _NAMED_TIME if largest < 23 else _TIME
        digits = re.match(rb"[0-9]+", field)
        if shape.fullmatch(field) is None or (digits is not None and _number(digits.group()) > largest):
            return f"bad {name}: {field.decode('ascii', 'backslashreplace')}"
    return ""


def _number(digits: bytes) -> int:
    return int(digits) if len(digits) < 10 else 10**9
