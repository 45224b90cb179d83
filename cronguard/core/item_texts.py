"""Items as people write them: keys, payloads, a line of JSON, places in a command. ValueError says why for a bad one.

Pure. What comes in is text that may hold anything; what goes out can stand in both stores, in an argument list and in
an environment.
"""

from __future__ import annotations

from datetime import datetime
from typing import Callable, Dict, Iterator, Tuple

from cronguard.core import names
from cronguard.core.ledger import idempotency_key
from cronguard.core.queue import NewItem, Reserved

LONGEST_KEY_CHARS = 500
LARGEST_PAYLOAD_BYTES = 1 << 16
_FIELDS = ("key", "group", "payload", "not_before")
# Reads a time before which an item may not be taken.
When = Callable[[str], datetime]


def item_key(text: str) -> str:
    """1 to 500 characters without control characters, kept byte for byte."""
    if not 1 <= len(text) <= LONGEST_KEY_CHARS:
        raise ValueError(f"not 1 to {LONGEST_KEY_CHARS} characters")
    if any(letter < " " or "\x7f" <= letter < "\xa0" for letter in text):
        raise ValueError("contains control characters")
    _encoded(text)
    return text


def item_group(text: str) -> str:
    """As a key, or empty: no group."""
    return item_key(text) if text else ""


def item_payload(text: str) -> str:
    """At most 64 KiB of text."""
    if "\0" in text:
        raise ValueError("contains a NUL character")
    if len(_encoded(text)) > LARGEST_PAYLOAD_BYTES:
        raise ValueError(f"longer than {LARGEST_PAYLOAD_BYTES >> 10} KiB")
    return text


def item_from_json(line: str, model: NewItem, when: When) -> NewItem:
    """`{"key": ..., "group": ..., "payload": ..., "not_before": ...}`; what is not named is as in `model`. A payload
    that is no string goes in as JSON."""
    import json

    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(given, dict) or "key" not in given:
        raise ValueError("not an object with a key")
    for name in given:
        if name not in _FIELDS:
            raise ValueError(f"{names.shown(name)}: unknown{names.did_you_mean(name, _FIELDS)}")
    texts: Dict[str, str] = {}
    for name, value in given.items():
        if name == "payload" and value is not None and not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name}: not a string")
        texts[name] = value or ""
    not_before_utc = when(texts["not_before"]) if texts.get("not_before") else model.not_before_utc
    group, payload = texts.get("group", model.group), texts.get("payload", model.payload)
    return checked(NewItem(texts["key"], group, payload, not_before_utc))


def checked(item: NewItem) -> NewItem:
    """The item, if all of it is right."""
    for name, parse in (("key", item_key), ("group", item_group), ("payload", item_payload)):
        try:
            parse(getattr(item, name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return item


def filled(words: Tuple[str, ...], item: Reserved) -> Tuple[str, ...]:
    """The command for an item. What an item brings in is never looked at again: a payload may say `{key}`."""
    values = {"{key}": item.key, "{group}": item.group, "{payload}": item.payload}
    return tuple("".join(values.get(piece, piece) for piece in _pieces(word)) for word in words)


def item_environment(job: str, item: Reserved) -> Dict[str, str]:
    """What a handler is told of its item."""
    return {
        "CRONGUARD_ITEM_KEY": item.key,
        "CRONGUARD_ITEM_GROUP": item.group,
        "CRONGUARD_ITEM_PAYLOAD": item.payload,
        "CRONGUARD_ITEM_ATTEMPT": str(item.attempts + 1),
        "CRONGUARD_ITEM_TOKEN": str(item.token),
        "CRONGUARD_IDEMPOTENCY_KEY": idempotency_key("item", job, item.key),
    }


def _pieces(word: str) -> Iterator[str]:
    """The word cut around whatever stands in braces."""
    rest = word
    while rest:
        before, brace, behind = rest.partition("{")
        if before:
            yield before
        inside, end, after = behind.partition("}")
        if not end or "{" in inside:
            yield brace
            rest = behind
        else:
            yield brace + inside + end
            rest = after


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("not UTF-8 text") from None
