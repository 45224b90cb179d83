"""wrap and unwrap as functions of bytes: nothing lost, nothing changed twice, nothing raised."""

from __future__ import annotations

from typing import Optional

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cronguard.core.cron import NICKNAMES
from cronguard.core.crons import CRONS
from cronguard.core.crontab import parse_crontab
from cronguard.core.guard_plans import Wishes
from cronguard.core.guards import guarding
from cronguard.core.wrapping import Wrapped, unsafe_program, unwrap, wrap
from tests.support.crontabs import SAMPLES, Sample

DEBIAN = CRONS["debian"]
WISHES = Wishes("/opt/cronguard/bin/cronguard", DEBIAN)

# Each a command as it stands in a crontab.
NASTY = (
    b"/usr/bin/true",
    b"echo it's",
    b"""echo 'single' "double" `back` $(sub) $VAR ${VAR:-x}""",
    b"date +\\%Y-\\%m-\\%d",
    b"echo \\\\\\% \\\\ a\\b \\'",
    b"cat%one%two\\%half%%end",
    b"cat%",
    b"mail -s 'it'\\''s' root%Hello,%%bye",
    b"echo # not a comment to cron",
    b"echo trailing blanks  \t ",
    b"echo backslash at the end \\",
    b"a | b > c 2>&1 || true; exit 3",
    b"( cd / && ls ) && { echo; }",
    b"FOO=bar BAZ='a b' env",
    b"[ -x /bin/x ] && /bin/x -a --long=1",
    b"echo \xff\xfe \xc3\xa4",
    b"if true; then echo yes; fi",
    b"sh -c 'echo '\\''nested'\\'''",
    b"echo \"unclosed",
    b"echo '",
    b"echo !history *.glob ~ ? [a-z] {1,2}",
    b"@daily",
)


def of_commands(*commands: bytes, flavour: str = "user") -> bytes:
    user = b"root " if flavour == "system" else b""
    return b"".join(b"%d 3 * * * %s%s\n" % (at % 60, user, command) for at, command in enumerate(commands))


def wrapped(data: bytes, flavour: Optional[str] = "user", wishes: Wishes = WISHES) -> Wrapped:
    return wrap(data, flavour, wishes)


def one(line: bytes, **wishes: object) -> bytes:
    """The line, wrapped; it is."""
    result = wrapped(line + b"\n", wishes=WISHES._replace(**wishes))
    assert result.guarded == 1, result.remarks
    return result.data[:-1]


def said(line: bytes, **wishes: object) -> str:
    """Why the line is left alone; it is."""
    result = wrapped(line + b"\n", wishes=WISHES._replace(**wishes))
    assert (result.data, result.guarded) == (line + b"\n", 0)
    return " ".join(remark.text for remark in result.remarks)


def without_ours(data: bytes) -> bool:
    """No line that wrap could have written: those `unwrap` would take for its own."""
    return b"cronguard" not in data


def test_line_is_written_as_the_readme_shows_it() -> None:
    assert one(b"30 2 * * *\t/srv/bin/export --all") == (
        b'30 2 * * *\t/opt/cronguard/bin/cronguard run export --cron "30 2 * * *" --shell -- \'/srv/bin/export --all\''
    )


@pytest.mark.parametrize("flavour", ["user", "system"])
def test_nasty_lines_come_back_byte_for_byte(flavour: str) -> None:
    """FR-31."""
    data = b"# a comment\n\nMAILTO=x\n" + of_commands(*NASTY, flavour=flavour) + b"\t@reboot " + b"root x\n"
    result = wrapped(data, flavour)
    assert result.guarded == len(NASTY)
    assert unwrap(result.data, flavour, DEBIAN).data == data
    assert wrapped(result.data, flavour).data == result.data


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
@pytest.mark.parametrize("cron", ["debian", "busybox"])
def test_real_crontabs_wrap_once_and_come_back(sample: Sample, cron: str) -> None:
    wishes = WISHES._replace(cron=CRONS[cron], host_zone="Europe/Rome")
    result = wrapped(sample.data, sample.flavour, wishes)
    assert wrapped(result.data, sample.flavour, wishes).data == result.data
    jobs = [line.job for line in parse_crontab(result.data, sample.flavour).lines if line.job is not None]
    names = [name for job in jobs for name in guarding(job) or ()]
    assert len(names) == len(set(names))
    if without_ours(sample.data):
        assert unwrap(result.data, sample.flavour, wishes.cron).data == ended(sample.data)


def ended(data: bytes) -> bytes:
    return data if not data or data.endswith(b"\n") else data + b"\n"


PIECES = st.sampled_from([
    b"* * * * * ", b"@daily ", b"root ", b"A=b", b"SHELL=/bin/bash", b"CRON_TZ=UTC", b"\n", b"%", b"\\", b"'", b"\\%",
    b'"', b" ", b"\t", b"#", b"$", b"`", b"&", b"\r", b"\0", b"x", b"/usr/bin/a.sh ", b"wait", b"\xff", b"-", b"'\\''",
    b"(", b";",
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=40).map(b"".join) | st.binary(max_size=60)


@given(TEXTS, st.sampled_from(["user", "system", None]), st.sampled_from(sorted(CRONS)))
@example(b"* * * * * a\\", "user", "debian")
@example(b"* * * * * '\\%'%'\\''", "user", "cronie")
def test_any_text_wraps_once_and_comes_back(data: bytes, flavour: Optional[str], kind: str) -> None:
    assume(without_ours(data))
    wishes = WISHES._replace(cron=CRONS[kind], timezone="Europe/Rome", timeout="1.5h")
    result = wrapped(data, flavour, wishes)
    assert wrapped(result.data, flavour, wishes).data == result.data
    assert unwrap(result.data, flavour, wishes.cron).data == ended(data)


@given(TEXTS, st.sampled_from(["user", "system"]), st.sampled_from(["debian", "cronie"]))
def test_only_job_lines_change_and_the_shell_gets_the_same_input(data: bytes, flavour: str, reader: str) -> None:
    """Whichever cron reads it: they differ in what they make of two backslashes."""
    assume(without_ours(data))
    before = parse_crontab(ended(data), flavour, reader).lines
    after = parse_crontab(wrapped(data, flavour).data, flavour, reader).lines
    assert len(before) == len(after)
    for old, new in zip(before, after):
        if old.raw != new.raw:
            assert old.job is not None
            assert new.job is not None
            assert new.job.command.endswith(b"'" + old.job.command.replace(b"'", b"'\\''") + b"'")
            assert new.job._replace(written=b"", command=b"") == old.job._replace(written=b"", command=b"")


def test_standard_input_is_handed_on_only_where_there_is_some() -> None:
    assert b" --stdin inherit " in one(b"* * * * * cat%x")
    assert b"--stdin" not in one(b"* * * * * cat \\%x")


def test_percent_is_nothing_special_to_busybox() -> None:
    line = one(b"* * * * * date +%s", cron=CRONS["busybox"])
    assert line.endswith(b"--shell -- 'date +%s'")


@pytest.mark.parametrize("nickname", sorted(NICKNAMES))
def test_nickname_is_handed_on(nickname: str) -> None:
    assert f'--cron "{nickname}" '.encode() in one(nickname.encode() + b" a")


def test_reboot_and_unreadable_lines_are_left_and_said() -> None:
    assert "@reboot" in said(b"@reboot /usr/bin/start")
    assert "not understood" in said(b"61 * * * * x")
    assert said(b"# comment") == said(b"") == said(b"A=b") == ""


@pytest.mark.parametrize("schedule", [b"5/15 * * * *", b"0 0 L * *", b"0~30 3 * * *", b"@every 5m", b"0 0 31 2 *"])
def test_schedule_that_run_would_refuse_is_left_and_said(schedule: bytes) -> None:
    assert "its schedule: " in said(schedule + b" x")


def test_lines_that_cannot_be_wrapped_safely_are_left_and_said() -> None:
    assert "carriage return" in said(b"* * * * * x\r")
    assert "NUL" in said(b"* * * * * x\0y")
    assert "background" in said(b"* * * * * x > /dev/null &")
    assert "background" in said(b"* * * * * (sleep 5; x) & y")
    assert b"run x" in one(b"* * * * * x & wait")
    assert b"run echo" in one(b"* * * * * echo '&' 2>&1")


def test_line_is_never_made_longer_than_cron_reads() -> None:
    """cron.h of Debian's cron: MAX_COMMAND."""
    overhead = len(one(b"* * * * * x")) - len(b"* * * * * x")
    fits = b"x" + b" y" * ((998 - overhead) // 2 - 1)
    assert len(one(b"* * * * * " + fits)) - len(b"* * * * * ") <= 998
    assert "bytes" in said(b"* * * * * " + fits + b" y y")


def test_another_shell_is_asked_by_its_variable() -> None:
    data = b"SHELL=/bin/bash\n0 1 * * * a <(b)\nSHELL=/bin/sh\n0 2 * * * c\nSHELL=/usr/bin/fish\n0 3 * * * d\n"
    result = wrapped(data)
    lines = result.data.splitlines()
    assert lines[1].endswith(b'-- "$SHELL" -c \'a <(b)\'')
    assert lines[3].endswith(b"--shell -- 'c'")
    assert lines[5] == b"0 3 * * * d"
    assert "SHELL=/usr/bin/fish" in result.remarks[-1].text


def test_cron_tz_is_the_lines_zone_where_the_cron_takes_it() -> None:
    data = b"0 1 * * * a\nCRON_TZ=Asia/Tokyo\n0 2 * * * b\nCRON_TZ=Nowhere/City\n0 3 * * * c\n"
    cronie = wrapped(data, wishes=WISHES._replace(cron=CRONS["cronie"]))
    assert b"--timezone" not in cronie.data.splitlines()[0]
    assert b" --timezone Asia/Tokyo " in cronie.data.splitlines()[2]
    assert cronie.data.splitlines()[4] == b"0 3 * * * c"
    assert b"--timezone" not in wrapped(data).data


def test_tz_of_the_command_does_not_become_the_zone_of_the_schedule() -> None:
    """FR-97: the guard sees TZ; cron takes the schedule by the host's zone."""
    data = b"TZ=Asia/Tokyo\n0 1 * * * a\n"
    assert b" --timezone Europe/Rome " in wrapped(data, wishes=WISHES._replace(host_zone="Europe/Rome")).data
    assert wrapped(data).left == 1
    assert b" --timezone UTC " in wrapped(data, wishes=WISHES._replace(timezone="UTC")).data
    assert b"--timezone" not in wrapped(b"CRONGUARD_TIMEZONE=UTC\n" + data).data


def test_user_without_a_home_needs_a_state_directory() -> None:
    wishes = WISHES._replace(homeless=frozenset((b"nobody",)))
    assert wrapped(b"* * * * * nobody x\n* * * * * root y\n", "system", wishes)[2:] == (1, 0, 1)
    assert wrapped(b"CRONGUARD_STATE_DIR=/s\n* * * * * nobody x\n", "system", wishes).guarded == 1


@pytest.mark.parametrize(
    "command",
    [
        b"cronguard run a -- b",
        b"/opt/x/cronguard run a --cron '* * * * *' -- b",
        b"A=b nice -n 5 /opt/x/cronguard --store sqlite:/x run a -- b",
        b"cd / && cronguard run a -- b",
        b"/opt/v/bin/python -m cronguard run a -- b",
        b"sh -c 'cronguard run a -- b'",
        b"cronguard check --notify",
    ],
)
def test_guarded_line_is_untouched(command: bytes) -> None:
    line = b"* * * * * " + command + b"\n"
    assert wrapped(line)[:4] == (line, (), 0, 1)


def test_line_about_cronguard_is_not_taken_for_guarded() -> None:
    assert b" run du " in one(b"* * * * * du /var/lib/cronguard")


def test_changed_schedule_is_noticed_in_a_guarded_line() -> None:
    line = one(b"0 2 * * * a").replace(b"0 2 * * * /", b"0 3 * * * /") + b"\n"
    assert '--cron says "0 2 * * *"' in wrapped(line).remarks[0].text


def test_line_guarded_by_hand_is_not_unwrapped() -> None:
    line = b"* * * * * cronguard run a -- b\n"
    result = unwrap(line, "user", DEBIAN)
    assert (result.data, result.guarded) == (line, 0)
    assert "left as it is" in result.remarks[0].text


def test_missing_final_newline_is_added_and_said() -> None:
    result = wrapped(b"* * * * * a\n# end")
    assert result.data.endswith(b"# end\n")
    assert "newline" in result.remarks[0].text


def test_name_of_another_crontab_is_avoided_unless_it_is_the_same_job() -> None:
    mine = b"0 2 * * * /bin/backup\n"
    assert b" run backup-1 " in one(b"30 2-3 * * * /bin/backup", taken={"backup": b"something else"})
    assert b" run backup " in one(mine[:-1], taken={"backup": b"0 2 * * * /bin/backup"})


def test_path_that_would_need_quotes_is_refused() -> None:
    assert unsafe_program("/opt/cronguard/bin/cronguard") is None
    assert unsafe_program("cronguard")
    assert unsafe_program("/opt/my tools/cronguard")
    assert unsafe_program("/opt/100%/cronguard")
