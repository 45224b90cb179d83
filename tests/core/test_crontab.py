"""The crontab parser: every byte kept, nothing raised, and cron's own reading of each line.

What Debian's cron does was tried with its programs (3.0pl1-162): `crontab -n` and the daemon itself.
"""

from __future__ import annotations

from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronguard.core.crontab import (
    CRONIE,
    DEBIAN,
    SYSTEM,
    USER,
    Job,
    Setting,
    flavour_of_path,
    guessed_flavour,
    parse_crontab,
    parse_setting,
    split_percent,
)
from tests.support.crontabs import SAMPLES, Sample

PIECES = [
    b"* * * * * ", b"0 2 * * 1-5", b"@daily", b"@reboot", b"root", b" ", b"\t", b"\n", b"\r\n", b"#", b"%", b"\\",
    b"\\%", b"'", b'"', b"=", b"PATH=", b"-", b"$(", b"`", b"|", b"||", b"&", b";", b">", b">>/x/y", b"true", b"\0",
    b"\xff", b"sh -c 'a|b'", b"CRON_TZ=Europe/Rome", b"cronguard run x --", b"@every 5m", b"31 2", b"timeout 9m",
]  # fmt: skip
CRONTABS = st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join))


def only_job(line: bytes, flavour: str = USER, cron: str = DEBIAN) -> Job:
    job = parse_crontab(line, flavour, cron).lines[0].job
    assert job is not None
    return job


def test_there_are_a_hundred_samples() -> None:
    assert len(SAMPLES) >= 100


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_raw_lines_give_the_file_back(sample: Sample) -> None:
    crontab = parse_crontab(sample.data, sample.flavour)
    assert b"".join(line.raw for line in crontab.lines) == sample.data
    assert [line.number for line in crontab.lines] == list(range(1, len(crontab.lines) + 1))


@given(CRONTABS, st.sampled_from([None, USER, SYSTEM]), st.sampled_from([DEBIAN, CRONIE]))
def test_no_bytes_make_it_raise_or_lose_one(data: bytes, flavour: Optional[str], cron: str) -> None:
    """FR-31."""
    lines = parse_crontab(data, flavour, cron).lines
    assert b"".join(line.raw for line in lines) == data
    for line in lines:
        assert (line.job is not None) == (line.kind == "job")
        assert (line.setting is not None) == (line.kind == "environment")
        assert bool(line.problem) == (line.kind == "unparsable")
        if line.job is not None:
            assert line.raw[line.job.written_at :].rstrip(b"\n") == line.job.written
            assert line.raw[line.job.schedule_at :].startswith(line.job.schedule.encode())


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"", "blank"), (b" \t", "blank"), (b"\r", "unparsable"), (b"\f", "unparsable"),
        (b"# x", "comment"), (b"  #x", "comment"),
        (b"MAILTO=x", "environment"), (b'MAILTO=""', "environment"), (b"MAILTO=", "unparsable"),
        (b"=b", "environment"), (b"0 5 * * *=x y", "unparsable"), (b"* * * * * A=b c", "job"),
        (b"* * * * *", "unparsable"), (b"* * * * * *", "unparsable"), (b"@daily", "unparsable"), (b"@daily x", "job"),
        (b"@Daily x", "unparsable"), (b"@every 5m x", "job"), (b"@every x", "unparsable"), (b"-* * * * * x", "job"),
        (b"- * * * * * x", "unparsable"), (b"60 * * * * x", "unparsable"), (b"0 0 31 2 * x", "job"),
        (b"0 0 L * * x", "job"), (b"0 0 * * mon x", "job"), (b"0 mon * * * x", "unparsable"),
        (b"9" * 5000 + b" * * * * x", "unparsable"),
    ],
)  # fmt: skip
def test_kind_of_a_line(line: bytes, kind: str) -> None:
    assert parse_crontab(line + b"\n", USER).lines[0].kind == kind


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (b"A=b", b"A", b"b"), (b"A = b c \t", b"A", b"b c"), (b'A="b c"  ', b"A", b"b c"), (b"'A'='d e'", b"A", b"d e"),
        (b'B=it\'s  "x"', b"B", b'it\'s  "x"'), (b"X=$A/foo", b"X", b"$A/foo"), (b"A=b\r", b"A", b"b"),
        (b"E=''", b"E", b""), (b'"A b"=c', b"A b", b"c"),
    ],
)  # fmt: skip
def test_setting_is_read_as_load_env_does(line: bytes, name: bytes, value: bytes) -> None:
    assert parse_setting(line) == Setting(name, value)


@pytest.mark.parametrize("line", [b"A", b"A=", b"A= ", b"A='b", b"A='b' c", b"a b=c", b"'a'b=c", b"'a=b'=c", b""])
def test_what_load_env_takes_for_no_setting(line: bytes) -> None:
    assert parse_setting(line) is None


@pytest.mark.parametrize(
    ("written", "command", "stdin"),
    [
        (b"a b", b"a b", None), (b"a%", b"a", b""), (b"a%b%c", b"a", b"b\nc\n"), (b"a%b%", b"a", b"b\n"),
        (b"date +\\%F", b"date +%F", None), (b"a%80\\% of\\x", b"a", b"80% of\\x\n"), (b"a\\", b"a\\", None),
        (b"a\\nb", b"a\\nb", None), (b"a%%%", b"a", b"\n\n"), (b"a%b\\\\c\\", b"a", b"b\\\\c\\\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cron", [DEBIAN, CRONIE])
def test_percent_rule(written: bytes, command: bytes, stdin: Optional[bytes], cron: str) -> None:
    """FR-31."""
    assert split_percent(written, cron) == (command, stdin)


def test_doubled_backslash_is_one_in_debian_and_two_in_cronie() -> None:
    """Debian's child_process() also strips it; seen with its daemon: `'a\\\\b'` printed `a\\b`."""
    assert split_percent(rb"a\\b \\%c", DEBIAN) == (b"a\\b \\", b"c\n")
    assert split_percent(rb"a\\b \\%c", CRONIE) == (b"a\\\\b \\\\", b"c\n")


def test_parts_of_a_system_line_have_their_offsets() -> None:
    line = b" \t-5\t4 * * 7  root \t/bin/x --y  \n"
    job = only_job(line, SYSTEM)
    assert (job.flags, job.schedule, job.user, job.written) == (b"-", "5\t4 * * 7", b"root", b"/bin/x --y  ")
    assert job.user_at is not None
    assert line[job.schedule_at :].startswith(b"5\t4")
    assert line[job.user_at :].startswith(b"root")
    assert line[job.written_at :].startswith(b"/bin/x")


def test_settings_hold_for_the_lines_below_them() -> None:
    crontab = parse_crontab(b"A=1\n* * * * * a\nA=2\nB=3\n* * * * * b\n", USER)
    jobs = [line.job for line in crontab.lines if line.job is not None]
    assert [dict(job.environment) for job in jobs] == [{b"A": b"1"}, {b"A": b"2", b"B": b"3"}]


@pytest.mark.parametrize(
    ("path", "flavour"),
    [
        ("/etc/crontab", SYSTEM), ("/etc/cron.d/x", SYSTEM), ("/image/etc/cron.d/x", SYSTEM),
        ("/var/spool/cron/crontabs/root", USER), ("/var/spool/cron/root", USER), ("/home/a/crontab", None), ("", None),
    ],
)  # fmt: skip
def test_place_decides_the_flavour(path: str, flavour: Optional[str]) -> None:
    assert flavour_of_path(path) == flavour


@pytest.mark.parametrize("sample", [each for each in SAMPLES if each.flavour == USER], ids=lambda sample: sample.name)
def test_no_user_crontab_is_taken_for_a_system_one(sample: Sample) -> None:
    assert guessed_flavour(sample.data) == USER


def test_most_system_crontabs_are_known_without_their_place() -> None:
    """The others name accounts that could be commands, or have no job at all."""
    system = [sample for sample in SAMPLES if sample.flavour == SYSTEM]
    assert sum(guessed_flavour(sample.data) == SYSTEM for sample in system) >= 0.7 * len(system)
