"""A shell line cut into commands: quotes, operators, redirections, nested lines; no text makes it raise."""

from __future__ import annotations

from typing import List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronguard.core.shell import Simple, nested_commands, simple_commands


def shape(commands: Tuple[Simple, ...]) -> List[Tuple[str, str]]:
    return [(" ".join(word.text for word in command.words), command.after) for command in commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", [("a b", "")]),
        ("a;b ;", [("a", ";"), ("b", "")]),
        ("a && b || c & d", [("a", "&&"), ("b", "||"), ("c", "&"), ("d", "")]),
        ("a | b |& c", [("a", "|"), ("b", "|"), ("c", "")]),
        ("echo 'a | b' \"c; d\" e\\|f", [("echo a | b c; d e|f", "")]),
        ("a `b | c` $(d | (e | f)) ${g:-|} h", [("a `b | c` $(d | (e | f)) ${g:-|} h", "")]),
        ("(a; b) && { c; d; }", [("a", ";"), ("b", "&&"), ("c", ";"), ("d", "")]),
        ("if a; then b; else c; fi", [("a", ";"), ("b", ";"), ("c", "")]),
        ("a # b | c", [("a", "")]),
        ("a#b", [("a#b", "")]),
        ("a > x 2>&1 <<< y 3> z", [("a", "")]),
        ("a 2 > x", [("a 2", "")]),
        ("'a", [("a", "")]),
        ("", []),
    ],
)
def test_line_is_cut_as_the_shell_would(text: str, expected: List[Tuple[str, str]]) -> None:
    assert shape(simple_commands(text)) == expected


def test_redirections_keep_operator_and_target() -> None:
    (command,) = simple_commands("a >> /x/y 2>&1 &> z")
    assert [(each.operator, each.target.text) for each in command.redirections] == [
        (">>", "/x/y"), (">&", "1"), ("&>", "z"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bash -euc 'a | b'", [("a", "|"), ("b", "")]),
        ("nice /bin/sh -c \"a; b\"", [("a", ";"), ("b", "")]),
        ("cronguard run x --shell -- 'a '\\''b'\\''; c'", [("a b", ";"), ("c", "")]),
        ("sh -c \"$X\"", []),
        ("sh script -- a", []),
        ("cronguard run x -- a", []),
    ],
)
def test_nested_line_is_cut_too(text: str, expected: List[Tuple[str, str]]) -> None:
    (command,) = simple_commands(text)
    assert shape(nested_commands(command.words)) == expected


@given(st.text(alphabet="ab \t\n'\"\\`$(){}|&;<>#=-~*", max_size=60))
def test_no_text_makes_it_raise_and_words_are_where_it_says(text: str) -> None:
    for command in simple_commands(text, base=7):
        nested_commands(command.words)
        assert 7 <= command.after_at <= 7 + len(text)
        for word in command.words:
            assert 7 <= word.at < 7 + len(text)
            assert word.inner is None or text[word.inner - 7 :].startswith(word.text)
