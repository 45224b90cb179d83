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


_MOST_PASSES = 5


class _Patterns(NamedTuple):
    url: re.Pattern[str]
    header: re.Pattern[str]
    assignment: re.Pattern[str]
    option: re.Pattern[str]
    value: re.Pattern[str]
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
            secret_next = _is_option(word) and is_secret_name(word)
        before = word
    return tuple(masked)


def mask_text(text: str) -> str:
    """Free text (a message, a shell line) with its secrets replaced, those too that only show when others are gone."""
    if not any(mark in text for mark in _MARKS):
        return text
    for _ in range(_MOST_PASSES):
        masked = _masked_once(text)
        if masked == text:
            break
        text = masked
    return text


def _masked_once(text: str) -> str:
    patterns = _patterns()
    text = patterns.token.sub(MASK, text)
    text = patterns.url.sub(lambda found: mask_url(found.group()), text)
    text = patterns.header.sub(rf"\1{MASK}", text)
    text = _mask_values(text, patterns.assignment, patterns.value)
    return _mask_values(text, patterns.option, patterns.value)


def mask_known(output: bytes, secrets: Sequence[str]) -> bytes:
    """Output without these very texts. Other people's secrets in it are not guessed at: it is theirs, and long."""
    for secret in secrets:
        output = output.replace(secret.encode("utf-8", "surrogateescape"), MASK.encode())
    return output


def mask_url(url: str) -> str:
    """A URL without password, secret query values and path parts that look like keys; host and database stay."""
    scheme, mark, place = _without_userinfo(url).partition("://")
    if not mark:
        return url
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


def _is_option(word: str) -> bool:
    return word.startswith("-") and word.replace("-", "").replace("_", "").isalnum()


def _mask_word(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and value and is_secret_name(name) and not any(letter in " \t\n&?/:" for letter in name):
        return f"{name}={MASK}"
    return mask_text(word)


def _mask_values(text: str, names: re.Pattern[str], value: re.Pattern[str]) -> str:
    """Replace what follows a telling name. Goes on behind each name, for `a=password=x` is the value of `a` only."""
    done: List[str] = []
    at = 0
    while True:
        found = names.search(text, at)
        if found is None:
            return "".join(done) + text[at:]
        done.append(text[at : found.end()])
        at = found.end()
        behind = value.match(text, at) if is_secret_name(found.group(1)) else None
        if behind is not None:
            done.append(MASK)
            at = behind.end()


def _without_userinfo(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    userinfo, place = _split_userinfo(rest)
    return url if not mark or userinfo is None else f"{scheme}://{_mask_userinfo(scheme, userinfo)}@{place}"


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
        name, equals, value = pair.partition("=")
        secret = equals and (is_secret_name(name) or name.lower() in ("key", "code", "sv", "rid"))
        pairs.append(f"{name}={MASK}" if secret else f"{name}{equals}{_without_userinfo(value)}")
    return "&".join(pairs)


def _looks_random(segment: str) -> bool:
    """A UUID, a ping key, a hook's token: long, of letters and digits mixed, no readable words."""
    compact = segment.replace("-", "").replace("_", "")
    digits = sum(letter.isdigit() for letter in compact)
    return len(compact) >= 16 and compact.isalnum() and digits >= 2 and not compact.isdigit()


def _patterns() -> _Patterns:
    if not _compiled:
        import re

        # Each begins where a word does, so that a long text without a match is passed over once.
        _compiled.append(
            _Patterns(
                url=re.compile(r"(?<![\w+.-])[\w+.-]+://[^\s'\"<>]+"),
                header=re.compile(
                    r"(?i)(?<![\w-])((?:(?:proxy-)?authorization|cookie|x-[a-z-]*(?:token|key|auth))\s*:\s*['\"]?)"
                    r"[^\r\n'\"]+"
                ),
                assignment=re.compile(r"(?<![\w.-])([\w.-]+)[\"']?(?:\s*:\s*(?=[\"'])|=)"),
                option=re.compile(r"(?<!\S)(--?[A-Za-z][\w-]*)[ \t]+(?!-)"),
                value=re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^\s&;|])+"),  # a word as a shell puts it together
                token=re.compile(
                    r"(?<![\w-])(?:(?:AKIA|ASIA)[0-9A-Z]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abeprs]-[\w-]{10,}"
                    r"|sk_(?:live|test)_\w{10,}|eyJ[\w-]{6,}\.[\w-]+\.[\w-]+)"
                ),
            )
        )
    return _compiled[0]
