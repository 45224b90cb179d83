"""Single values as users write them, each with one parser: text in, value out, ValueError with a reason.

What the parsers know is the value alone; whether values go together is core.config's business.
"""

from __future__ import annotations

from typing import Callable, Optional, TypeVar

from cronguard.core import names
from cronguard.core.durations import format_duration, format_size, parse_duration, parse_size
from cronguard.core.heartbeat import url_problem
from cronguard.errors import UsageError

T = TypeVar("T")
Parser = Callable[[str], object]
_LONGEST_PERIOD_S = 12 * 3600


def judged(option: str, parse: Callable[[str], T], text: str) -> T:
    """The value of an option of a looking command; UsageError, naming the option, when it is none."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{option}: {names.shown(text)}: {error}") from None


def any_text(text: str) -> str:
    """Text that can be an argument of execve(2) and stands on one line."""
    if not text:
        raise ValueError("empty")
    if any(letter < " " or letter == "\x7f" for letter in text):
        raise ValueError("contains control characters")
    return text


def flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("not true or false")
    return text == "true"


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"not one of {', '.join(choices)}{names.did_you_mean(text, choices)}")
        return text

    return parse


def duration(at_least_s: float = 0, at_most_s: Optional[float] = None) -> Callable[[str], float]:
    def parse(text: str) -> float:
        seconds = parse_duration(text)
        if seconds < at_least_s:
            raise ValueError(f"too short; at least {format_duration(at_least_s)}")
        if at_most_s is not None and seconds > at_most_s:
            raise ValueError(f"too long; at most {format_duration(at_most_s)}")
        return seconds

    return parse


def period(text: str) -> float:
    """Whole seconds from 1 s to 12 h: what `--every` takes (design, section 4)."""
    seconds = parse_duration(text)
    if seconds > _LONGEST_PERIOD_S:
        raise ValueError(
            "more than 12h, and a day is not always 24 hours long; say at what time, such as --cron \"0 2 * * *\""
        )
    if seconds < 1 or seconds != int(seconds):
        raise ValueError("not whole seconds from 1s up; write it as 90s or 5m")
    return seconds


def no_limit_or_duration(text: str) -> Optional[float]:
    """None for `0`: no limit."""
    return parse_duration(text) or None


def none_or(parser: Parser) -> Parser:
    """`none` switches off what a lower source has set."""

    def parse(text: str) -> object:
        return None if text == "none" else parser(text)

    return parse


def size(at_most_bytes: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        found = parse_size(text)
        if found > at_most_bytes:
            raise ValueError(f"too large; at most {format_size(at_most_bytes)}")
        return found

    return parse


def whole_number(at_least: int, at_most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text[1:] if text.startswith("-") else text
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and at_least <= int(text) <= at_most):
            raise ValueError(f"not a whole number from {at_least} to {at_most}")
        return int(text)

    return parse


def factor(text: str) -> float:
    """A plain decimal number, more than 1 and at most 1000."""
    whole, _, fraction = text.partition(".")
    if (whole + fraction).isascii() and whole.isdigit() and (not fraction or fraction.isdigit()) and len(text) < 10:
        number = float(text)
        if 1 < number <= 1000:
            return number
    raise ValueError("not a number of more than 1 and at most 1000")


def job_name(text: str) -> str:
    if names.check_job_name(text) is not None:
        raise ValueError(f"not a job name; use {names.NAME_RULE}")
    return text


def lock_name(text: str) -> str:
    if names.check_lock_name(text) is not None:
        raise ValueError(f"not a lock name; use {names.NAME_RULE}")
    return text


def run_key(text: str) -> str:
    """1 to 200 printable characters, kept byte for byte (design, section 4)."""
    if not 1 <= len(text) <= 200 or not text.isprintable():
        raise ValueError("not 1 to 200 printable characters")
    return text


def is_reference(text: str) -> bool:
    """`file:PATH` or `env:NAME`: names where a secret is, and is none itself."""
    return text.startswith(("file:", "env:"))


def endpoint(text: str) -> str:
    """An `http(s)://` URL, or `file:PATH` or `env:NAME` that holds one (looked up when it is needed)."""
    any_text(text)
    if is_reference(text):
        if not text.partition(":")[2]:
            raise ValueError("file: needs a path and env: a variable's name")
        return text
    if "://" not in text:
        raise ValueError("not an http:// or https:// URL, file:PATH or env:NAME")
    problem = url_problem(text)
    if problem is not None:
        raise ValueError(problem)
    return text
