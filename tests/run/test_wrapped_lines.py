"""A wrapped line does what the line did: run by a real shell as cron would, before and after, and compared.

Many lines go through a stand-in for cronguard that only hands its last word to the shell, which is what the quoting is
about; the nastiest go through the real one.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cronguard.core.crons import CRONS
from cronguard.core.crontab import Job, parse_crontab
from cronguard.core.guard_plans import Wishes
from cronguard.core.wrapping import wrap
from tests.support.probe import Ran, make_probe, run_as_cron

pytestmark = pytest.mark.usual

ROOT = Path(__file__).parents[2]

# Commands as they stand in a crontab; `probe` tells what reached it and exits with the number of its arguments.
COMMANDS = (
    b"probe",
    b"probe a 'b c' \"d $HOME e\" \\f g\\ h",
    b"probe it\\'s \"it's\" 'it'\\''s' ''",
    b"probe $(echo sub) `echo back` ${UNSET:-default} $X \"$X\" '$X'",
    b"probe $0 $# \"$@\" $?",
    b"probe \\%Y \"\\%m\" '\\%d' \\\\ '\\\\' \\\\\\\\ a\\b",
    b"probe%one line",
    b"probe x%first%%third \\% \\\\ ' \" $X#%",
    b"probe%",
    b"probe # a comment ' \" to the shell",
    b"probe \\# '#' a#b",
    b"  probe blanks   \t ",
    b"probe trailing \\",
    b"A=1 B='2 3' probe",
    b"probe a | cat; exit 7",
    b"probe a && probe b || probe c",
    b"( cd / && probe ) 2>&1",
    b"probe *.txt ? [a-z] ~ ~root {a,b} !x",
    b"probe \xff\xfe\xc3\xa4 '\xe2\x82\xac'",
    b"probe > \"$OUT_FILE\" 2> /dev/null; cat \"$OUT_FILE\"; rm \"$OUT_FILE\"",
    b"if true; then probe yes; else probe no; fi",
    b"for i in 1 2 3; do probe $i; done; false",
    b"sh -c 'probe '\\''nested'\\'' \"$1\"' x y",
    b"exec probe exec",
    b"kill -TERM $$",
    b"no-such-command-here 2> /dev/null",
    b"probe \"unclosed",
    b"read line; probe \"$line\"; cat%first line%second line",
)
# No PYTHONPATH: the command would inherit it.
GUARD = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from cronguard.cli.main import main
main()
"""
SETTINGS = b"X=a 'quoted \" value  \nEMPTY=\"\"\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_probe(tmp_path)
    place = tmp_path / "home"
    place.mkdir()
    (place / "a.txt").touch()
    return place


def program(folder: Path, text: str) -> str:
    path = folder / "cronguard"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def pairs(commands: List[bytes], guard: str, more: bytes = b"") -> Iterator[Tuple[Job, Job]]:
    """Each line's job before and after."""
    data = more + SETTINGS + b"".join(b"* * * * * " + command + b"\n" for command in commands)
    after = wrap(data, "user", Wishes(guard, CRONS["debian"]))
    for old, new in zip(parse_crontab(data, "user").lines, parse_crontab(after.data, "user").lines):
        if old.job is not None and new.job is not None and old.raw != new.raw:
            yield old.job, new.job


def without_our_talk(ran: Ran) -> Ran:
    """A failure is told of on stderr: lines of cronguard's own."""
    lines = ran.stderr.splitlines(keepends=True)
    return ran._replace(stderr=b"".join(line for line in lines if b" job=" not in line and b"cronguard: " not in line))


@pytest.mark.parametrize("shell", [b"", b"SHELL=/bin/bash\n"], ids=["sh", "bash"])
def test_guarded_line_gives_what_the_line_gave(home: Path, tmp_path: Path, shell: bytes) -> None:
    """Arguments, standard input, environment, directory, output and exit code. FR-31."""
    guard = program(tmp_path, GUARD)
    commands = list(COMMANDS if not shell else (*COMMANDS[1:8], b"cat <(echo a); probe $'a\\tb'"))
    path = f"{tmp_path}:{os.environ['PATH']}"
    extra = {"CRONGUARD_STATE_DIR": os.environ["CRONGUARD_STATE_DIR"]}

    def both(place: int) -> Tuple[Ran, Ran]:
        old, new = todo[place]
        out = {"OUT_FILE": str(home.parent / f"out-{place}")}
        return run_as_cron(old, {**extra, **out}, home, path), run_as_cron(new, {**extra, **out}, home, path)

    todo = list(pairs(commands, guard, shell))
    assert len(todo) == len(commands)
    with ThreadPoolExecutor(4) as pool:
        for command, (before, after) in zip(commands, pool.map(both, range(len(todo)))):
            assert without_our_talk(after) == expected(before), command


def expected(before: Ran) -> Ran:
    """A shell that ends by signal n leaves cronguard with 128 + n, as a shell that started it would have."""
    return before if before.exit_code >= 0 else before._replace(exit_code=128 - before.exit_code)


STAND_IN = """\
#!/bin/sh
while [ "$1" != --shell ]; do shift; done
exec /bin/sh -c "$3"
"""
WORDS = st.sampled_from([
    b"'", b'"', b"\\", b"\\%", b"%", b"$X", b"$(echo y)", b"`echo z`", b" ", b"  ", b"\t", b"a", b"#", b"!", b"*", b"~",
    b"\\\\", b"''", b'""', b"\xc3\xa4", b"\xff", b"-n", b"{a,b}", b"=", b":",
])  # fmt: skip


@pytest.mark.usual
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tails=st.lists(st.lists(WORDS, max_size=12).map(b"".join), min_size=1, max_size=4))
def test_shell_gets_the_same_line_whatever_is_in_it(home: Path, tmp_path: Path, tails: List[bytes]) -> None:
    guard = program(tmp_path, STAND_IN)
    for old, new in pairs([b"printf '<\\%s>' " + tail for tail in tails], guard):
        assert run_as_cron(new, {}, home) == run_as_cron(old, {}, home), old.written
