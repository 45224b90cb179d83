"""Secrets out of what is stored and shown: argument lists, URLs, messages.

Masking is a guess at what a secret looks like, and errs on the side of hiding. It is no excuse to put secrets into
argv (that is what `file:` and `env:` are for). Masking twice gives the same as masking once. Regular expressions are
compiled on first need: most commands contain nothing that could be a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, NamedTuple, Optional, Sequence, Tuple

if TYPE_CHECKING:
    import re

MASK = "***"

# A name that contains one of these, or has one of the short ones as a part of its own, is a secret's ...
_TELLING = ("password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "credential")
_TELLING_PARTS = frozenset({"pass", "pwd", "pw", "auth", "authorization", "sig", "signature", "dsn", "cookie"})
# ... unless it says that the value is a place or a way, or that there is none.
_HARMLESS_PARTS = frozenset({"file", "path", "stdin", "env", "no", "type", "length", "field", "name"})
# Programs with a one-letter option for a password, glued to it or followed by it.
_LETTERS = {
    "mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mariadb": "-p", "mariadb-dump": "-p", "sshpass": "-p",
    "redis-cli": "-a", "curl": "-u", "ldapsearch": "-w",
}  # fmt: skip
_MARKS = ("=", ":", "--", "AKIA", "ASIA", "gh", "xox", "sk_", "eyJ", "-")


class _Patterns(NamedTuple):
    url: re.Pattern[str]
    header: re.Pattern[str]
    assignment: re.Pattern[str]
    option: re.Pattern[str]
    token: re.Pattern[str]


_compiled: List[_Patterns] = []


def mask_argv(argv: Sequence[str]) -> Tuple[str, ...]:
    """A command with its secrets replaced: telling options and assignments, URLs, headers, known token shapes."""
    masked: List[str] = []
    letter = _LETTERS.get(argv[0].rsplit("/", 1)[-1]) if argv else None
    secret_next = False
    before = "-c" if len(argv) == 1 else ""  # a lone word is a shell line, as after `sh -c`
    for word in argv:
        if secret_next and not word.startswith("--"):
            masked.append(MASK)
            secret_next = False
        elif letter and word == letter and letter != "-p":
            masked.append(word)
            secret_next = True
        elif letter and word.startswith(letter) and len(word) > 2:
            masked.append(letter + MASK)
        else:
            masked.append(mask_text(word) if before == "-c" else _mask_word(word))
            secret_next = word.startswith("-") and "=" not in word and is_secret_name(word)
        before = word
    return tuple(masked)


def mask_text(text: str) -> str:
    """Free text (a message, a shell line) with its secrets replaced."""
    if not any(mark in text for mark in _MARKS):
        return text
    patterns = _patterns()
    text = patterns.url.sub(lambda found: mask_url(found.group()), text)
    text = patterns.header.sub(_keep_name, text)
    text = patterns.assignment.sub(_keep_name, text)
    text = patterns.option.sub(_keep_name, text)
    return patterns.token.sub(MASK, text)


def mask_url(url: str) -> str:
    """A URL without password, secret query values and path parts that look like keys; host and database stay."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    userinfo, place = _split_userinfo(rest)
    if userinfo is not None:
        place = f"{_mask_userinfo(scheme, userinfo)}@{place}"
    before, question, query = place.partition("?")
    head, *segments = before.split("/")
    kept = [head]
    for segment in segments:
        kept.append(MASK if kept[-1] == "push" or _looks_random(segment) else segment)
    masked = "/".join(kept)
    return f"{scheme}://{masked}" + (f"?{_mask_query(query)}" if question else "")


def mask_endpoint(url: str) -> str:
    """A heartbeat or alert URL: who has its path can ping in our name, so only scheme and host are shown."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url  # file:PATH and env:NAME hold no secret themselves
    _, place = _split_userinfo(rest)
    host = place.replace("?", "/").replace("#", "/").split("/")[0]
    return f"{scheme}://{host}/{MASK}"


def is_secret_name(name: str) -> bool:
    """Does an option, variable or query key of that name hold a secret?"""
    lowered = name.lower().strip("-_\"'")
    parts = lowered.replace("_", "-").replace(".", "-").split("-")
    if _HARMLESS_PARTS.intersection(parts):
        return False
    joined = "".join(parts)
    return any(telling in joined for telling in _TELLING) or not _TELLING_PARTS.isdisjoint(parts)


def _mask_word(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and value and is_secret_name(name) and not any(letter in " \t\n&?/:" for letter in name):
        return f"{name}={MASK}"
    return mask_text(word)


def _keep_name(found: re.Match[str]) -> str:
    name, between = found.group(1), found.group(2)
    return f"{name}{between}{MASK}" if is_secret_name(name) else found.group()


def _split_userinfo(rest: str) -> Tuple[Optional[str], str]:
    """What stands before `@`, also when a password was not percent-encoded and contains `/`, `?` or `#`."""
    authority = rest.replace("?", "/").replace("#", "/").split("/")[0]
    if "@" in authority:
        cut = authority.rindex("@")
    elif "@" in rest and ":" in authority and not authority.rpartition(":")[2].isdigit():
        cut = rest.rindex("@")
    else:
        return None, rest
    return rest[:cut], rest[cut + 1 :]


def _mask_userinfo(scheme: str, userinfo: str) -> str:
    user, colon, _ = userinfo.partition(":")
    if colon:
        return f"{user}:{MASK}"
    return MASK if scheme.lower() in ("http", "https") else userinfo  # a lone token, as git hosts take it


def _mask_query(query: str) -> str:
    pairs = []
    for pair in query.split("&"):
        name, equals, _ = pair.partition("=")
        secret = equals and (is_secret_name(name) or name.lower() in ("key", "code", "sv", "rid"))
        pairs.append(f"{name}={MASK}" if secret else pair)
    return "&".join(pairs)


def _looks_random(segment: str) -> bool:
    """A UUID, a ping key, a hook's token: long, of letters and digits mixed, no readable words."""
    compact = segment.replace("-", "").replace("_", "")
    digits = sum(letter.isdigit() for letter in compact)
    return len(compact) >= 16 and compact.isalnum() and digits >= 2 and not compact.isdigit()


def _patterns() -> _Patterns:
    if not _compiled:
        import re

        value = r"(\"[^\"]*\"|'[^']*'|[^\s'\"&;|]+)"
        _compiled.append(
            _Patterns(
                url=re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+"),
                header=re.compile(r"(?i)\b((?:proxy-)?authorization|cookie|x-[a-z-]*(?:token|key|auth))(\s*:\s*)[^\r\n'\"]+"),
                assignment=re.compile(r"([\"']?[A-Za-z_][\w.-]*[\"']?)(\s*:\s*(?=[\"'])|=)" + value),
                option=re.compile(r"(?<!\S)(--?[A-Za-z][\w-]*)([ \t]+)(?!-)" + value),
                token=re.compile(
                    r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abeprs]-[\w-]{10,}"
                    r"|sk_(?:live|test)_\w{10,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]+)"
                ),
            )
        )
    return _compiled[0]
