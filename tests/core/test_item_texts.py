"""Keys, payloads, lines of JSON and the places in a command."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from cronguard.core.item_texts import (
    LARGEST_PAYLOAD_BYTES,
    filled,
    item_environment,
    item_from_json,
    item_key,
    item_payload,
)
from cronguard.core.queue import NewItem, Reserved

ITEM = Reserved("k 1", "acme", '{"to": "{key}"}', 3, 1)
AT = datetime(2026, 1, 20, 2, tzinfo=timezone.utc)


@pytest.mark.parametrize("key", ["a", "x" * 500, "día 1", "a b", "{key}", "-", "Ångström"])
def test_key_is_kept_as_it_is(key: str) -> None:
    assert item_key(key) == key


@pytest.mark.parametrize("key", ["", "x" * 501, "a\nb", "a\tb", "a\0", "\x7f", "\x85", "a\udce9"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError):
        item_key(key)


def test_payload_may_have_lines_and_64_kib() -> None:
    assert item_payload("a\n\tb") == "a\n\tb"
    assert item_payload("é" * (LARGEST_PAYLOAD_BYTES // 2))
    for text in ("é" * (LARGEST_PAYLOAD_BYTES // 2) + "x", "a\0"):
        with pytest.raises(ValueError):
            item_payload(text)


@pytest.mark.parametrize(
    ("word", "result"),
    [
        ("{key}", "k 1"),
        ("--to={key}/{group}", "--to=k 1/acme"),
        ("{payload}", '{"to": "{key}"}'),
        ("{{key}}", "{k 1}"),
        ("${key} {", "$k 1 {"),
        ("{ key }", "{ key }"),
        ("{keys} {} }{", "{keys} {} }{"),
        ("awk '{print $1}'", "awk '{print $1}'"),
        ("", ""),
    ],
)
def test_only_the_three_places_are_filled_and_what_comes_in_is_not_looked_at(word: str, result: str) -> None:
    assert filled((word,), ITEM) == (result,)


def test_line_of_json_overrules_what_the_options_say() -> None:
    model = NewItem("", "g", "p", None)
    assert item_from_json('{"key": "k"}', model, lambda _: AT) == NewItem("k", "g", "p", None)
    line = '{"key": "k", "group": "", "payload": {"a": "é", "b": [1]}, "not_before": "5m"}'
    assert item_from_json(line, model, lambda _: AT) == NewItem("k", "", '{"a":"é","b":[1]}', AT)
    assert item_from_json('{"key": "k", "payload": null}', model, lambda _: AT).payload == ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("k", "not JSON"),
        ('["k"]', "not an object"),
        ('{"group": "g"}', "not an object with a key"),
        ('{"key": 7}', "key: not a string"),
        ('{"key": "a\\nb"}', "key: contains control"),
        ('{"key": "a", "grup": "g"}', "did you mean group"),
        ('{"key": "a", "payload": "\\u0000"}', "payload: contains a NUL"),
    ],
)
def test_line_that_is_no_item_says_why(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        item_from_json(line, NewItem(""), lambda _: AT)


def test_idempotency_key_is_the_same_for_every_attempt_and_another_for_another_item() -> None:
    """FR-71."""
    first = item_environment("job", ITEM)["CRONGUARD_IDEMPOTENCY_KEY"]
    assert item_environment("job", ITEM._replace(attempts=4, token=9))["CRONGUARD_IDEMPOTENCY_KEY"] == first
    others = [("job", ITEM._replace(key="k")), ("jobs", ITEM)]
    assert first not in [item_environment(*other)["CRONGUARD_IDEMPOTENCY_KEY"] for other in others]
    assert first.isascii()
    assert first.isprintable()
    assert len(first) <= 255
