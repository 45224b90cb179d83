"""Names that people type: jobs, locks, and what they may have meant.

The rule for a name is that of cli.md. It keeps names safe in a path, a URL and a shell line without quoting, and is
stated once, here.
"""

from __future__ import annotations

from typing import Iterable, List, Optional

from cronguard.errors import NotFound

_FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_NEXT = _FIRST | frozenset("._-")
_LONGEST = 100

NAME_RULE = "a letter or digit, then at most 99 letters, digits, dots, dashes or underscores"


def check_job_name(text: str) -> Optional[str]:
    """What is wrong with a job's name, None if nothing. Exactly `[A-Za-z0-9][A-Za-z0-9._-]{0,99}`."""
    if text and len(text) <= _LONGEST and text[0] in _FIRST and _NEXT.issuperset(text):
        return None
    return f"{shown(text)}: not a job name; use {NAME_RULE}"


def check_lock_name(text: str) -> Optional[str]:
    """What is wrong with a lock's name, None if nothing. Locks are named like jobs, since a job's is its default."""
    return None if check_job_name(text) is None else f"{shown(text)}: not a lock name; use {NAME_RULE}"


def short_id(run_id: str) -> str:
    """As much of a run's id as `show` needs: the time to the millisecond. Fewer digits stay the same for a minute."""
    return run_id[:13]


def shown(text: str) -> str:
    """A user's text for a message: quoted, without control characters, cut when it is long."""
    quoted = repr(text if len(text) <= 60 else text[:57] + "...")
    return quoted.encode("utf-8", "backslashreplace").decode("utf-8")


def nearest(text: str, known: Iterable[str]) -> List[str]:
    """Up to three of `known` that `text` may be a slip of, best first. Dashes in front are no likeness."""
    import difflib  # only when there is an error to explain

    bare = {name.lstrip("-"): name for name in sorted(known)}
    return [bare[found] for found in difflib.get_close_matches(text.lstrip("-"), bare, n=3, cutoff=0.6)]


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """`; did you mean timeout?` or nothing, to be put behind a message."""
    found = nearest(text, known)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def no_such_job(text: str, known: Iterable[str]) -> NotFound:
    """The error for a job that neither the store nor the config file has, with what may have been meant."""
    return NotFound(f"no such job: {_named(text)}: it never ran and no config file has it{did_you_mean(text, known)}")


def _named(text: str) -> str:
    return text if check_job_name(text) is None else shown(text)
