"""What of the config document is a secret, and which files hold one: for `doctor` to look at who may read them."""

from __future__ import annotations

from typing import Iterator, List, Mapping, Tuple

from cronguard.core.masking import is_secret_name, mask_argv, mask_url

Strings = Iterator[Tuple[Tuple[str, ...], str]]
_URLS = ("ping", "urls")  # who has one can ping or write in our name


def secret_files(document: Mapping[str, object]) -> List[Tuple[str, str]]:
    """Paths that stand behind `file:`, each with the setting that names it."""
    found = [(text[len("file:") :], ".".join(keys)) for keys, text in _strings(document) if text.startswith("file:")]
    return list(dict.fromkeys(found))


def has_secrets(document: Mapping[str, object]) -> bool:
    """Is a secret written out in it?"""
    return any(_is_secret(keys, text) for keys, text in _strings(document))


def _is_secret(keys: Tuple[str, ...], text: str) -> bool:
    if text.startswith(("file:", "env:")):
        return False
    if keys[-1] in _URLS and "://" in text:
        return True
    if "env" in keys[:-1] and is_secret_name(keys[-1]):
        return True
    return mask_url(text) != text or mask_argv([text]) != (text,)


def _strings(value: object, keys: Tuple[str, ...] = ()) -> Strings:
    """All texts of the document; those of a list have the list's name."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _strings(inner, (*keys, str(name)))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, keys)
