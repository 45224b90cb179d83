"""A hundred crontabs such as people have them, by name: tests/crontabs/*.txt cut at their `#### name` lines, and those
whose bytes an editor would spoil."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, NamedTuple, Tuple

FOLDER = Path(__file__).parent.parent / "crontabs"
_MARK = b"#### "


class Sample(NamedTuple):
    """`flavour`: `user` or `system`, as in core.crontab."""

    name: str
    flavour: str
    data: bytes


def _sections(flavour: str) -> Iterator[Sample]:
    for section in (FOLDER / f"{flavour}.txt").read_bytes().split(_MARK)[1:]:
        name, _, data = section.partition(b"\n")
        yield Sample(name.decode("ascii"), flavour, data)


_ODD = (
    Sample("empty", "user", b""),
    Sample("only-newline", "user", b"\n"),
    Sample("only-comment", "user", b"# nothing\n"),
    Sample("no-final-newline", "user", b"0 1 * * * /usr/bin/a\n0 2 * * * /usr/bin/b"),
    Sample("setting-without-newline", "user", b"0 1 * * * /usr/bin/a\nMAILTO=x"),
    Sample("comment-without-newline", "system", b"0 1 * * * root /usr/bin/a\n# end"),
    Sample("carriage-returns", "user", b"MAILTO=x\r\n\r\n0 1 * * * /usr/bin/a\r\n# end\r\n"),
    Sample("one-carriage-return", "user", b"0 1 * * * /usr/bin/a\n0 2 * * * /usr/bin/b\r\n"),
    Sample("old-mac", "user", b"0 1 * * * /usr/bin/a\r0 2 * * * /usr/bin/b\r"),
    Sample("byte-order-mark", "user", b"\xef\xbb\xbf0 1 * * * /usr/bin/a\n"),
    Sample("latin-1", "user", b"0 1 * * * /srv/gr\xf6\xdfe > /srv/\xe4.log\n# \xfc\n"),
    Sample("no-break-space", "user", b"0 1 * * *\xc2\xa0/usr/bin/a\n"),
    Sample("nul", "user", b"0 1 * * * a\0b\n\0\n"),
    Sample("form-feed", "user", b"\f\n0 1 * * *\v/usr/bin/a\n"),
    Sample("trailing-backslash", "user", b"0 1 * * * /usr/bin/a \\\n  --more\n"),
    Sample("unclosed-quotes", "user", b"0 1 * * * echo 'a\n0 2 * * * echo \"b\nX=\"c\n0 3 * * * echo $(d\n"),
    Sample("escape-sequences", "user", b"0 1 * * * echo \x1b[31mred\x1b[0m\a\n"),
    Sample("very-long-line", "user", b"0 1 * * * /usr/bin/a " + b"x" * 5000 + b"\n"),
    Sample("many-percents", "user", b"0 1 * * * a" + b"%" * 50 + b"\n0 2 * * * " + b"\\%" * 50 + b"\n"),
    Sample("many-lines", "system", b"".join(b"%d 3 * * * root /usr/bin/job %d\n" % (n % 60, n) for n in range(300))),
)

SAMPLES: Tuple[Sample, ...] = (*_sections("user"), *_sections("system"), *_ODD)
