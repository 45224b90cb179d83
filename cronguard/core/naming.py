"""Names for jobs out of their commands: readable, the same each time, different from each other.

`/srv/app/bin/backup.sh --full` is `backup`. Where two lines would have one name, what tells their arguments apart is
added (`backup-full`), then the time, then a number: so a name hangs as little as can be on the order of the lines, and
lines that have a name already keep it. What looks like a secret gets into no name. Knows some usual programs that
run another one; promises no more than a good guess, for names are there to be read, and to be changed before first use.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cronguard.core.masking import MASK, mask_text
from cronguard.core.shell import Simple, is_assignment, simple_commands

_LONGEST = 60  # of a hundred: readable in a table
_MOST_WORDS = 4
_FALLBACK = "job"
_DEEPEST = 3

# What only prepares or tests; the job is what comes behind. Words of the shell, and programs, wherever they are.
_SHELL_WORDS = ": . [[ cd export set source trap ulimit umask unset type hash read for case"
_OF_THE_SHELL = frozenset(_SHELL_WORDS.split())
_PREPARING = frozenset(("[", "test", "sleep", "true", "mkdir", "which"))
# Programs that start another one: their options that take a value, and how many words stand before that other one.
_STARTERS: Mapping[str, Tuple[str, int]] = {
    "env": ("uCS", 0), "nice": ("n", 0), "ionice": ("cnp", 0), "chrt": ("", 1), "taskset": ("", 1), "nohup": ("", 0),
    "setsid": ("", 0), "stdbuf": ("ioe", 0), "chronic": ("", 0), "cronic": ("", 0), "time": ("fo", 0), "exec": ("a", 0),
    "sudo": ("ugpChTDR", 0), "doas": ("uC", 0), "command": ("", 0), "timeout": ("ks", 1), "flock": ("wE", 1),
    "run-one": ("", 0), "unbuffer": ("", 0), "systemd-cat": ("tp", 0), "busybox": ("", 0), "bundle": ("", 1),
}  # fmt: skip
# Programs whose argument is the job: interpreters and their like. The options are those that take a value.
_READERS = re.compile(r"(?:sh|bash|dash|ash|ksh|zsh|python[\d.]*|perl|ruby|node|php[\d.]*|run-parts|Rscript|java)")
_READER_OPTIONS: Mapping[str, str] = {"php": "dcz", "python": "WX", "perl": "I", "ruby": "I", "java": "", "sh": "o"}
# Programs with many jobs inside: their first plain word belongs to the name.
_WITH_SUBCOMMANDS = """
artisan console manage.py rake make npm yarn pnpm composer wp drush occ docker docker-compose podman kubectl git
rails aws gcloud restic borg systemctl service invoke-rc.d apt-get apt yum dnf certbot flask django-admin mix cargo
"""
_MANY = frozenset(_WITH_SUBCOMMANDS.split())
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))
_INSIDE = (["-c"], ["-e"], ["-r"], ["-E"])
# Names that only say that something runs: the folder, or the host, says what.
_SAYING_NOTHING = frozenset(("cron", "run", "main", "index", "job", "jobs", "script", "start", "task", "update"))
_FETCHERS = frozenset(("curl", "wget", "lynx", "fetch"))
_ENDINGS = re.compile(r"\.(?:sh|bash|zsh|ksh|py|pyc|pl|rb|php|js|mjs|jar|cgi|exe|R)$")
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")


class Nameless(NamedTuple):
    """A job in want of a name. `identity`: equal for what may have one name although it stands in two places."""

    command: str
    schedule: str
    identity: bytes


class _Idea(NamedTuple):
    """`base`: the name if nobody else wants it. `words`: what may be added to it."""

    base: str
    words: Tuple[str, ...]


def names_for(jobs: Sequence[Nameless], taken: Mapping[str, Optional[bytes]]) -> List[str]:
    """A name each, all different; one that is taken only by the job of the same identity."""
    ideas = [_idea(mask_text(job.command)) for job in jobs]
    found: Dict[int, str] = {}

    def is_free(name: str, place: int) -> bool:
        own = jobs[place].identity
        return name not in found.values() and taken.get(name, own) == own

    def settle(name_of: Callable[[int], str]) -> None:
        """Give the names that one job alone asks for."""
        wanted = {place: name_of(place) for place in range(len(jobs)) if place not in found}
        asked = Counter(wanted.values())
        found.update({place: name for place, name in wanted.items() if asked[name] == 1 and is_free(name, place)})

    settle(lambda place: ideas[place].base)
    settle(lambda place: _with_words(ideas, place))
    settle(lambda place: _joined(_with_words(ideas, place), _slug_of_schedule(jobs[place].schedule)))
    for place in range(len(jobs)):
        number = 0
        while place not in found:
            number += 1
            name = _joined(_with_words(ideas, place), str(number))
            if is_free(name, place):
                found[place] = name
    return [found[place] for place in range(len(jobs))]


def _with_words(ideas: Sequence[_Idea], place: int) -> str:
    """The base and those words that not all jobs of that base have."""
    own = ideas[place]
    others = [idea.words for idea in ideas if idea.base == own.base]
    telling = [word for word in own.words if len(others) < 2 or not all(word in words for words in others)]
    return _joined(own.base, *telling[:_MOST_WORDS])


def _joined(*parts: str) -> str:
    """At most 90 characters, so that a number still fits behind it."""
    return "-".join(part for part in parts if part)[:90].rstrip("-._")


def _slug_of_schedule(schedule: str) -> str:
    """`30 2 * * 1` is `0230-1`; what is no time of day is told apart by its number only."""
    fields = schedule.split()
    if len(fields) != 5:
        return schedule.lstrip("@")
    minute, hour, *rest = fields
    if not (minute.isdigit() and hour.isdigit()):
        return ""
    return "-".join((f"{int(hour):02}{int(minute):02}", *(_slug(field) for field in rest if field != "*")))


def _idea(command: str, depth: int = 0) -> _Idea:
    candidates = [
        words
        for words in map(_command_words, simple_commands(command))
        if words and not _only_prepares(words)
    ]
    working = [_without_starters(words) for words in candidates]
    # A program written on the line itself has no name; often it is a random pause before the job.
    chosen = next((words for words in working if not _has_program_inside(words)), working[0] if working else [])
    line = _shell_line(chosen)
    if line and depth < _DEEPEST:
        return _idea(line, depth + 1)
    return _idea_of_words(chosen or next(iter(map(_command_words, simple_commands(command))), []))


def _only_prepares(words: Sequence[str]) -> bool:
    is_look_up = words[:2] in (["command", "-v"], ["command", "-V"])
    return is_look_up or words[0] in _OF_THE_SHELL or _basename(words[0]) in _PREPARING


def _command_words(simple: Simple) -> List[str]:
    start = next((at for at, word in enumerate(simple.words) if not is_assignment(word)), len(simple.words))
    return [word.text for word in simple.words[start:]]


def _has_program_inside(words: Sequence[str]) -> bool:
    """`perl -e '...'`, but no shell's: its line is looked into."""
    return _READERS.fullmatch(_basename(words[0])) is not None and not _shell_line(words) and words[1:2] in _INSIDE


def _shell_line(words: Sequence[str]) -> str:
    """The line that these words hand to a shell: of `bash -lc LINE`, or the lone LINE that `flock -c` left; or none."""
    if len(words) == 1 and " " in words[0]:
        return words[0]
    if words and _basename(words[0]) in _SHELLS:
        for option, line in zip(words[1:], words[2:]):
            if option.startswith("-") and not option.startswith("--") and option.endswith("c"):
                return line
    return ""


def _without_starters(words: List[str]) -> List[str]:
    """The words from the program on that does the work."""
    rest = list(words)
    while len(rest) > 1:
        known = _STARTERS.get(_basename(rest[0]))
        if known is None:
            break
        options, before = known
        tail = _behind_options(rest[1:], options)
        tail = [word for at, word in enumerate(tail) if at >= before]
        while tail and (tail[0].startswith("-") or "=" in tail[0].split("/")[0]):
            tail = tail[1:]
        if not tail:
            break
        rest = tail
    return rest


def _behind_options(words: Sequence[str], with_value: str) -> List[str]:
    rest = list(words)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        option = rest.pop(0)
        if option == "--":
            break
        if len(option) == 2 and option[1] in with_value and rest:
            rest.pop(0)
    return rest


def _idea_of_words(words: Sequence[str]) -> _Idea:
    if not words:
        return _Idea(_FALLBACK, ())
    path, rest = words[0], list(words[1:])
    program = _basename(path)
    if _READERS.fullmatch(program) and rest[:1] not in _INSIDE:
        kind = re.sub(r"[\d.]+$", "", program)
        inside = _behind_options([word for word in rest if word not in ("-m", "-jar")], _READER_OPTIONS.get(kind, "o"))
        path, rest = (inside[0], inside[1:]) if inside else (path, rest)
    elif _READERS.fullmatch(program):
        rest = []
    if program in _FETCHERS:
        return _Idea(_of_url(program, rest), ())
    added = ""
    if _basename(path) in _MANY:
        plain = [word for word in rest if not word.startswith("-")]
        added = _slug(plain[0]) if plain else ""
        rest = [word for word in rest if not plain or word != plain[0]]
    words_left = tuple(slug for slug in map(_slug_of_word, rest) if slug)
    return _Idea(_joined(_of_path(path), added[:_LONGEST]), words_left)


def _of_url(program: str, words: Sequence[str]) -> str:
    """The address without what stands before an `@` or behind a `?`, which may be a key."""
    for word in words:
        _scheme, found, rest = word.partition("://")
        if found:
            address = re.split(r"[?#;]", rest)[0].rpartition("@")[2]
            pieces = [piece for piece in address.split("/") if piece]
            return _of_path("/".join((pieces[0], pieces[-1]) if len(pieces) > 1 else pieces)) or program
    return program


def _of_path(path: str) -> str:
    """A program's name; with its folder's where it alone says nothing."""
    folder, _, name = path.rstrip("/").rpartition("/")
    slug = _slug(name)[:_LONGEST]
    if slug in _SAYING_NOTHING:
        above = _slug(_basename(folder))[:_LONGEST]
        return _joined("" if above in ("bin", "sbin", "scripts") else above, slug)
    return slug or _FALLBACK


def _slug_of_word(word: str) -> str:
    if MASK in word or "://" in word or "@" in word:
        return ""
    return _slug(word.lstrip("-").rstrip("/").rpartition("/")[2])[:24].rstrip("-._")


def _basename(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]


def _slug(text: str) -> str:
    """Only what a job's name may have, beginning with a letter or digit; the ending that says the language goes."""
    return _FOREIGN.sub("-", _ENDINGS.sub("", text)).strip("-._")
