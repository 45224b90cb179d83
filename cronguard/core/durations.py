"""Durations and sizes as people write them, and back.

One grammar for the command line, the environment and TOML, so that `5m` means the same everywhere. Nothing is guessed:
a text that is not wholly understood is refused with a reason, never cut to the part that is. No regular expressions:
this is on the path of every start.
"""

from __future__ import annotations

from typing import List, Tuple

_UNITS: Tuple[Tuple[str, float], ...] = (("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001))
_DIGITS = frozenset("0123456789")  # str.isdigit also takes other scripts' digits and superscripts
_LONGEST_S = 36500 * 86400.0  # a century: far from where timedelta, time_t and poll timeouts overflow
_FACTORS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_LARGEST_BYTES = 1 << 50

DURATION_HINT = "write it as 90, 90s, 5m, 1h30m or 2d"
SIZE_HINT = "write it as 500, 64k or 10M"


def parse_duration(text: str) -> float:
    """Seconds of a text such as `90`, `90s`, `5m`, `1h30m`, `2d`, `500ms`; a bare number is seconds.

    Units go from large to small, each at most once. ValueError with the reason for anything else.
    """
    if text and all(letter in _DIGITS or letter == "." for letter in text):
        seconds = _number(text)
    else:
        seconds = _sum_of_parts(text)
    if seconds > _LONGEST_S:
        raise ValueError("too long a duration; at most 36500d")
    return seconds


def format_duration(seconds: float) -> str:
    """Seconds in the same notation, the two largest units at most: `7m43s`, `1d2h`, `0.3s`, `0s`."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 9.95:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + "s"
    left = round(seconds)
    parts: List[str] = []
    for unit, factor in _UNITS[:4]:
        count, left = divmod(left, int(factor))
        if count:
            parts.append(f"{count}{unit}")
        if parts and (len(parts) == 2 or not left or not count):
            break
    return "".join(parts)


def in_hours(seconds: float) -> str:
    """How long ago, as people say it: `45s`, `20m`, `25h`, `4d`; whole units, rounded down."""
    for unit, factor, most in (("s", 1, 90), ("m", 60, 5400), ("h", 3600, 259200)):
        if seconds < most:
            return f"{max(0, int(seconds // factor))}{unit}"
    return f"{int(seconds // 86400)}d"


def parse_size(text: str) -> int:
    """Bytes of a text such as `500`, `64k`, `10M`, `1g` (powers of 1024). ValueError with the reason otherwise."""
    digits = text.rstrip("kKmMgG")
    factor = _FACTORS.get(text[len(digits) :].lower())
    if factor is None or not digits or any(letter not in _DIGITS for letter in digits):
        raise ValueError(f"not a size; {SIZE_HINT}")
    if len(digits) > 16 or int(digits) * factor > _LARGEST_BYTES:
        raise ValueError("too large a size")
    return int(digits) * factor


def format_size(size_bytes: int) -> str:
    """Bytes in the same notation, exact: `64k`, `10M`, `1500`."""
    for unit in ("G", "M", "k"):
        factor = _FACTORS[unit.lower()]
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)


def _sum_of_parts(text: str) -> float:
    total, rest, units = 0.0, text, _UNITS
    while True:
        number, unit, rest = _next_part(rest)
        names = [name for name, _ in units]
        if unit not in names:
            raise ValueError(f"not a duration; {DURATION_HINT}")
        at = names.index(unit)
        total += _number(number) * units[at][1]
        units = units[at + 1 :]
        if not rest:
            return total


def _next_part(text: str) -> Tuple[str, str, str]:
    end = 0
    while end < len(text) and (text[end] in _DIGITS or text[end] == "."):
        end += 1
    unit_end = end
    while unit_end < len(text) and text[unit_end] not in _DIGITS and text[unit_end] != ".":
        unit_end += 1
    return text[:end], text[end:unit_end], text[unit_end:]


def _number(text: str) -> float:
    whole, dot, fraction = text.partition(".")
    if not whole or (dot and not fraction) or "." in fraction:
        raise ValueError(f"not a duration; {DURATION_HINT}")
    if len(whole) > 16:
        raise ValueError("too long a duration; at most 36500d")
    return float(text)
