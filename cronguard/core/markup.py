"""Text and elements for the report's HTML and SVG: the one way in which anything gets into the page.

Everything that is shown came from outside: what a job printed, a host's name, a schedule somebody typed. So elements
are built here and nowhere else, and their text and attributes are escaped unless they are elements themselves.
"""

from __future__ import annotations

from html import escape
from typing import Iterable, Union

_LONGEST = 400
_VOID = ("meta", "hr")


class Markup(str):
    """Text that is markup already: what `element` and `joined` have made."""


Content = Union[str, Markup]


def visible(text: str) -> str:
    """At most 400 characters, with those that print nothing, above all the ones that turn a line round, as escapes."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if cut.isprintable():
        return cut
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in cut
    )


def lines(*texts: str) -> Markup:
    """Several lines of text, empty ones left away: a tooltip."""
    return Markup("\n".join(_escaped(text) for text in texts if text))


def joined(parts: Iterable[Content], between: str = "") -> Markup:
    """One piece after the other; texts among them are escaped."""
    return Markup(between.join(_escaped(part) for part in parts))


def element(tag: str, *content: Content, **attributes: Content) -> Markup:
    """An element. Names as Python can write them: `class_`, and `_` for `-` (`stroke_width`); empty values are left
    away."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(value)}"' for name, value in attributes.items() if value
    )
    if tag in _VOID:
        return Markup(f"<{tag}{named}>")
    return Markup(f"<{tag}{named}>{joined(content)}</{tag}>")


def outsider(text: str) -> Markup:
    """A text from outside, set apart so that right-to-left letters in it do not reorder what stands beside it."""
    return element("bdi", text)


def _escaped(text: Content) -> str:
    return text if isinstance(text, Markup) else escape(visible(text), quote=True)
