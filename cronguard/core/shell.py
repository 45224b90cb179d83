"""A shell line cut into its simple commands: enough of sh(1) to say what a crontab line does, and no more.

Words keep their quotes apart from their text, so that a `|` in quotes is none. Bodies of `$(...)`, backquotes and
here-documents are not looked into; a word that the shell would expand says so. What is no shell at all comes out as
some words: promises not to raise, and not to expand, read or run anything.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Optional, Tuple

_OPERATORS = ("&&", "||", ";;", "|&", "&>>", "&>", "<<<", "<<-", "<<", ">>", ">|", ">&", "<&", "<>")
_REDIRECTIONS = frozenset(("<", ">", "<<", "<<-", "<<<", ">>", ">|", ">&", "<&", "<>", "&>", "&>>"))
_SINGLES = "|&;<>()\n"
_BLANKS = " \t\r"
_JOINING = {"\n": ";", "|&": "|", "(": "", ")": ""}
_LEADING = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{", "(", "time"))
_CLOSING = frozenset(("fi", "done", "esac", "}", ")"))
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "zsh"))


class Word(NamedTuple):
    """`text`: quotes and backslashes taken away. `at`: offset of its first character. `expands`: the shell would put
    something else in its place. `inner`: offset of the text itself, where the word is one quoted piece."""

    text: str
    at: int
    expands: bool
    inner: Optional[int] = None


class Redirection(NamedTuple):
    """`operator` without the number before it."""

    operator: str
    target: Word


class Simple(NamedTuple):
    """One simple command: assignments and words in order, redirections apart, and the operators around it.

    `before` and `after` are the operators next to it (`|`, `&&`, `||`, `;`, `&`), empty at the line's ends, even with a
    `;` there, and where a bracket or a reserved word stands. `after_at`: offset of the latter.
    """

    words: Tuple[Word, ...]
    redirections: Tuple[Redirection, ...]
    before: str
    after: str
    after_at: int


class _Token(NamedTuple):
    operator: str  # empty for a word
    word: Word


def simple_commands(text: str, base: int = 0) -> Tuple[Simple, ...]:
    """The simple commands of a line, in order. `base` is added to all offsets."""
    found: List[Simple] = []
    words: List[Word] = []
    redirections: List[Redirection] = []
    before, waiting = "", ""

    def close(operator: str, at: int) -> None:
        nonlocal before
        if words or redirections:
            found.append(Simple(tuple(words), tuple(redirections), before, operator, at))
            words.clear()
            redirections.clear()
        elif found and operator:
            found[-1] = found[-1]._replace(after=operator, after_at=at)
        before = operator

    for token in _tokens(text, base):
        if token.operator in _REDIRECTIONS:
            if words and words[-1].text.isdigit() and words[-1].at + len(words[-1].text) == token.word.at:
                words.pop()
            waiting = token.operator
        elif token.operator:
            waiting = ""
            close(_JOINING.get(token.operator, token.operator), token.word.at)
        elif waiting:
            redirections.append(Redirection(waiting, token.word))
            waiting = ""
        elif not words and not token.word.expands and token.word.text in _LEADING | _CLOSING:
            before = ""
        else:
            words.append(token.word)
    close("", base + len(text))
    if found and found[-1].after == ";":
        found[-1] = found[-1]._replace(after="")
    return tuple(found)


def nested_commands(words: Tuple[Word, ...]) -> Tuple[Simple, ...]:
    """The commands of the line that one of the words is. Where it is put together from several quoted pieces, all of
    them stand where the word does."""
    line = nested_line(words)
    if line is None or line.expands:
        return ()
    if line.inner is not None:
        return simple_commands(line.text, line.inner)
    return tuple(_moved(command, line.at) for command in simple_commands(line.text))


def _moved(command: Simple, at: int) -> Simple:
    return command._replace(
        words=tuple(word._replace(at=at, inner=None) for word in command.words),
        redirections=tuple(each._replace(target=each.target._replace(at=at)) for each in command.redirections),
        after_at=at,
    )


def nested_line(words: Tuple[Word, ...]) -> Optional[Word]:
    """The word that a shell will read as a line: after `sh -c`, or after `--` behind the guard's `--shell`."""
    texts = [word.text for word in words]
    if "--" in texts and "--shell" in texts[: texts.index("--")]:
        return next(iter(words[texts.index("--") + 1 :]), None)
    for place, word in enumerate(words):
        if word.text.rpartition("/")[2] in _SHELLS:
            for option, line in zip(words[place + 1 :], words[place + 2 :]):
                if option.text.startswith("-") and not option.text.startswith("--") and option.text.endswith("c"):
                    return line
    return None


def is_assignment(word: Word) -> bool:
    """`NAME=value`, as it may stand before a command."""
    name, equals, _ = word.text.partition("=")
    return bool(equals) and name.isascii() and name.isidentifier()


def _tokens(text: str, base: int) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in _BLANKS:
            at += 1
        elif letter == "#":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif letter in _SINGLES:
            operator = next((known for known in _OPERATORS if text.startswith(known, at)), letter)
            yield _Token(operator, Word("", base + at, False))
            at += len(operator)
        else:
            word, at = _word(text, at, base)
            yield _Token("", word)


def _word(text: str, start: int, base: int) -> Tuple[Word, int]:
    pieces: List[str] = []
    expands = False
    quoted_whole = None
    at = start
    while at < len(text) and text[at] not in _BLANKS + _SINGLES:
        letter = text[at]
        if letter == "\\":
            pieces.append(text[at + 1 : at + 2])
            at += 2
        elif letter == "'":
            end = _found(text, "'", at + 1)
            pieces.append(text[at + 1 : end])
            quoted_whole = at + 1 if at == start else None
            at = end + 1
        elif letter == '"':
            piece, end, inside = _double_quoted(text, at + 1)
            pieces.append(piece)
            expands = expands or inside
            quoted_whole = at + 1 if at == start and len(piece) == end - at - 1 else None
            at = end + 1
        elif letter in "$`":
            end = _expansion_end(text, at)
            pieces.append(text[at:end])
            expands = True
            at = end
        else:
            expands = expands or letter in "*?["
            pieces.append(letter)
            quoted_whole = None
            at += 1
    at = min(at, len(text))
    is_one_piece = quoted_whole is not None and text[at - 1] in "\"'" and len("".join(pieces)) == at - start - 2
    return Word("".join(pieces), base + start, expands, base + start + 1 if is_one_piece else None), at


def _double_quoted(text: str, at: int) -> Tuple[str, int, bool]:
    """The text up to the closing quote, where that is, and whether anything in it is expanded."""
    pieces: List[str] = []
    expands = False
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and text[at + 1 : at + 2] in ("$", "`", '"', "\\"):
            pieces.append(text[at + 1])
            at += 2
        elif text[at] in "$`":
            end = _expansion_end(text, at)
            pieces.append(text[at:end])
            expands = True
            at = end
        else:
            pieces.append(text[at])
            at += 1
    return "".join(pieces), min(at, len(text)), expands


def _expansion_end(text: str, at: int) -> int:
    """Behind a `$NAME`, `${...}`, `$(...)` or a backquoted command; brackets are counted, whatever is in them."""
    if text[at] == "`":
        return _found(text, "`", at + 1) + 1
    opened = text[at + 1 : at + 2]
    closing = {"(": ")", "{": "}"}.get(opened)
    if closing is None:
        return at + 1
    depth = 0
    for place in range(at + 1, len(text)):
        depth += (text[place] == opened) - (text[place] == closing)
        if depth == 0:
            return place + 1
    return len(text)


def _found(text: str, what: str, start: int) -> int:
    place = text.find(what, start)
    return len(text) if place < 0 else place
