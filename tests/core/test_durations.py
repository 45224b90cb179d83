"""Durations and sizes: what is understood, what is refused, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronguard.core.durations import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("1d1h1m1s", 90061),
        ("1.5s", 1.5), ("500ms", 0.5), ("1m500ms", 60.5), ("36500d", 36500 * 86400),
    ],
)  # fmt: skip
def test_duration_is_understood(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-1", "+5", "1_0", "abc", "s", "5x", "1m1m", "1m1h", "1h 30m", " 5m", "5m\n", "1.", ".5", "1..2",
        "1.2.3s", "nan", "inf", "1e5", "0x10", "٣", "²", "\uff15m", "36501d", "9" * 30, "9" * 5000 + "d", "5m\0",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_one_line(text: str) -> None:
    """FR-09: a duration is checked before the command runs."""
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z"):
        parse_duration(text)


@given(st.text(max_size=12))
def test_no_text_does_worse_than_a_value_error(text: str) -> None:
    try:
        assert 0 <= parse_duration(text) <= 36500 * 86400
    except ValueError:
        pass


@given(st.integers(0, 59), st.integers(0, 23))
def test_formatted_duration_reads_back(minutes: int, hours: int) -> None:
    seconds = hours * 3600 + minutes * 60
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.04, "0s"), (0.31, "0.3s"), (9.96, "10s"), (59.6, "1m"), (463, "7m43s"), (3601, "1h")],
)
def test_duration_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("500", 500), ("64k", 65536), ("10M", 10 << 20), ("1g", 1 << 30)])
def test_size_is_understood_and_shown(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize("text", ["", "k", "-1", "1kk", "1.5k", "1 k", "1kB", "٣", "9" * 40, "9999999g"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)
