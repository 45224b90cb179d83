"""Lint's rules: for each a line that it speaks of and one that it leaves alone; dates; and no surprise on any bytes."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Dict, List, Optional, Tuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronguard.core.crons import CRONS, KINDS
from cronguard.core.crontab import SYSTEM, USER, parse_crontab
from cronguard.core.lint import lint
from cronguard.core.lint_model import RULES, SEVERITIES, Judge, Remark
from tests.core.test_crontab import CRONTABS
from tests.support.crontabs import SAMPLES, Sample

NOW = datetime(2026, 12, 1, tzinfo=timezone.utc)
HOME = "/home/ann"
DIRECTORIES = ("/", "/dev", "/tmp", "/var/log", HOME, HOME + "/logs")
COMMANDS = [
    "true", "pg_dump", "gzip", "mail", "timeout", "nice", "cat", "sh", "bash", "mysql", "curl", "date", "cronguard",
]  # fmt: skip


class FakeHost:
    """A host with some directories and commands, and two users."""

    def is_directory(self, path: str) -> bool:
        return path in DIRECTORIES

    def has_command(self, name: str, search_path: str) -> bool:
        return name == "/usr/bin/true" or (name in COMMANDS and "/usr/bin" in search_path.split(":"))

    def home_of(self, user: str) -> Optional[str]:
        return {"ann": HOME, "root": "/root"}.get(user)


def remarks(
    text: bytes,
    cron: str = "debian",
    zone: str = "Europe/Rome",
    host_zone: Optional[str] = None,
    flavour: str = USER,
    path: Optional[str] = None,
) -> Tuple[Remark, ...]:
    judge = Judge(CRONS[cron], zone, host_zone, NOW, FakeHost(), "ann")
    return lint(parse_crontab(text, flavour, cron), judge, path)


def rules(text: bytes, **how: Optional[str]) -> List[str]:
    """The rules that speak, but for the one that speaks of nearly each line."""
    return [remark.rule for remark in remarks(text, **how) if remark.rule != "unguarded"]  # type: ignore[arg-type]


def only(rule: str, text: bytes, **how: Optional[str]) -> Remark:
    found = [remark for remark in remarks(text, **how) if remark.rule == rule]  # type: ignore[arg-type]
    assert len(found) == 1
    return found[0]


NOON = b"0 12 * * * "
# Rule: what it speaks of, what it leaves alone (nothing else has to speak of it either), and the judge for both.
CASES: Dict[str, Tuple[List[bytes], List[bytes], Dict[str, Optional[str]]]] = {
    "unparsable-line": (
        [b"-0 12 * * * true\n", b"x y\n", b"MAILTO=\n", b"61 * * * * true\n"], [b"# x y\n", b'MAILTO=""\n'], {},
    ),
    "bad-schedule": ([b"5/15 12 * * * true\n", b"0 12 L * * true\n"], [b"5-59/15 12 * * * true\n"], {}),
    "bad-zone": ([b"CRON_TZ=Europe/Roma\n"], [b"A=Europe/Roma\n"], {"cron": "cronie"}),
    "impossible-date": ([b"0 12 31 2 * true\n", b"0 12 31 4,6,9,11 * true\n"], [b"0 12 28 2 * true\n"], {}),
    "unknown-user": ([NOON + b"bob true\n"], [NOON + b"ann true\n"], {"flavour": SYSTEM}),
    "ignored-file": ([b"# x\n"], [], {"path": "/etc/cron.d/backup.cron"}),
    "missing-newline": ([NOON + b"true", b"A=b"], [NOON + b"true\n", b"# end", b""], {}),
    "carriage-return": ([NOON + b"true\r\n"], [NOON + b"true\n", b"# end\r\n"], {}),
    "unescaped-percent": (
        [NOON + b"date +%F\n", NOON + b"echo '50% off'\n", NOON + b"echo $(date '+%F')\n"],
        [NOON + b"date +\\%F\n"],
        {},
    ),
    "command-too-long": ([NOON + b"x" * 999 + b"\n"], [NOON + b"x" * 998 + b"\n"], {}),
    "percent-stdin": ([NOON + b"mail -s x ann%Hello\n"], [NOON + b"mail -s 'x \\%' ann\n"], {}),
    "clock-change": (
        [b"30 2 * * * true\n", b"0 1,2,3 * * * true\n"],
        [b"30 3 * * * true\n", b"* * * * * true\n", b"0 */2 * * * true\n", b"@daily true\n"],
        {"cron": "busybox"},
    ),
    "clock-change-handled": ([b"30 2 * * * true\n"], [b"30 4 * * * true\n"], {"cron": "cronie"}),
    "cron-tz-ignored": ([b"CRON_TZ=Asia/Tokyo\n"], [b"A=Asia/Tokyo\n"], {}),
    "cron-tz-used": ([b"CRON_TZ=Asia/Tokyo\n"], [b"A=Asia/Tokyo\n"], {"cron": "cronie"}),
    "tz-not-for-schedule": ([b"TZ=Asia/Tokyo\n"], [b"ATZ=Asia/Tokyo\n"], {}),
    "local-day-shift": (
        [b"30 23 * * 1-5 true\n", b"0 23 1 * * true\n"], [b"30 21 * * * true\n"],
        {"zone": "Asia/Tokyo", "host_zone": "UTC"},
    ),
    "local-time-moves": ([b"30 12 * * * true\n"], [b"30 * * * * true\n"], {"host_zone": "UTC"}),
    "short-months": ([b"0 12 31 * * true\n", b"0 12 29 2 * true\n"], [b"0 12 28-31 * * true\n"], {}),
    "day-or-weekday": ([b"0 12 1-7 * 1 true\n"], [b"0 12 1-7 * * true\n", b"0 12 */7 * 1 true\n"], {}),
    "likely-overlap": (
        [b"*/5 * * * * timeout 10m true\n", b"*/5 * * * * timeout -k 5 -s INT 600 true\n"],
        [b"*/5 * * * * timeout 4m true\n", b"0 * * * * timeout 10m true\n"], {},
    ),
    "pipeline-status": (
        [NOON + b"pg_dump x | gzip > /tmp/x\n", NOON + b"sh -c 'pg_dump x | gzip' > /tmp/x\n",
         NOON + b"cronguard run x --shell --timeout=1m -- 'pg_dump x | gzip'\n",
         NOON + b"sh -c 'pg_dump '\\''x'\\'' | gzip'\n"],
        [NOON + b"bash -o pipefail -c 'pg_dump x | gzip'\n", NOON + b"echo x | mail ann\n", NOON + b"echo 'a|b'\n"],
        {},
    ),
    "masked-exit": (
        [NOON + b"cat || true\n", NOON + b"cat; exit 0\n", NOON + b"cat ; echo done\n", NOON + b"sh -c 'cat || :'\n"],
        [
            NOON + b"(true; true); cat\n", NOON + b"sh -c 'echo '\\''x'\\''; true; cat'\n",
            NOON + b"true && echo done\n", NOON + b"true; exit 1\n", NOON + b"if true; then echo yes; fi\n",
        ],
        {},
    ),
    "background-job": ([NOON + b"true &\n", NOON + b"true > /tmp/x 2>&1 &\n"], [NOON + b"true && true\n"], {}),
    "missing-directory": (
        [
            NOON + b"true >> /nowhere/x.log 2>&1\n", NOON + b"true > nowhere/x\n", NOON + b"cd /nowhere && true\n",
            NOON + b"true > $HOME/nowhere/x\n", NOON + b"true > /nowhere/x-$(date).log\n",
            b"L=/no\n" + NOON + b"true >$L/x\n",
        ],
        [
            NOON + b"true >> /var/log/x.log 2>&1\n", NOON + b"true > logs/x\n", NOON + b"true > ~/logs/x\n",
            NOON + b"cd /tmp && true > x\n", NOON + b"true > $ELSEWHERE/x\n", NOON + b"true > /dev/null\n",
        ],
        {},
    ),
    "command-not-found": (
        [NOON + b"shiny\n", NOON + b"nice -n 5 shiny\n", NOON + b"/usr/bin/shiny\n", b"PATH=/opt\n" + NOON + b"cat\n"],
        [NOON + b"true\n", NOON + b"/usr/bin/true\n", NOON + b"A=1 nice -n 5 true\n", NOON + b"$X y\n", NOON + b"cd\n",
         b"PATH=/usr/bin\n" + NOON + b"timeout 9 cronguard run j --shell -- 'true > /dev/null'\n"],
        {},
    ),
    "secret-on-line": (
        [
            NOON + b"mysql -psecret x\n", NOON + b"curl https://a:b@example.com/\n", b"API_TOKEN=x1\n",
            NOON + b"cat%password=x\n",
        ],
        [NOON + b"mysql --defaults-file=x\n", b"MAILTO=ann\n"], {},
    ),
    "unguarded": ([NOON + b"true\n"], [b"@reboot true\n", NOON + b"timeout 5 true cronguard run x -- true\n"], {}),
}  # fmt: skip
SPOKEN = [(rule, text, how) for rule, (spoken, _, how) in CASES.items() for text in spoken]
SILENT = [(rule, text, how) for rule, (_, silent, how) in CASES.items() for text in silent]


def test_each_rule_has_a_case() -> None:
    assert set(CASES) == set(RULES)
    assert set(RULES.values()) == set(SEVERITIES)


@pytest.mark.parametrize(("rule", "text", "how"), SPOKEN)
def test_rule_speaks_of(rule: str, text: bytes, how: Dict[str, Optional[str]]) -> None:
    """FR-28, 31, 32, 35, 84, 97, 99."""
    remark = only(rule, text, **how)
    assert (remark.severity, remark.fix != "", remark.column >= 1) == (RULES[rule], True, True)


@pytest.mark.parametrize(("rule", "text", "how"), SILENT)
def test_rule_leaves_alone(rule: str, text: bytes, how: Dict[str, Optional[str]]) -> None:
    """FR-28, 31, 32, 35, 84, 97, 99."""
    assert rule not in [remark.rule for remark in remarks(text, **how)]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_dates_are_named_where_the_cron_at_hand_skips_or_doubles(kind: str) -> None:
    """FR-86: 02:30 in Europe/Rome."""
    found = [remark for remark in remarks(b"30 2 * * * true\n", cron=kind) if remark.rule.startswith("clock-change")]
    (remark,) = found
    by_kind = {
        "debian": ("clock-change-handled", "moved", "once"), "cronie": ("clock-change-handled", "moved", "once"),
        "busybox": ("clock-change", "skipped", "doubled"), "supercronic": ("clock-change", "skipped", "doubled"),
        "systemd": ("clock-change", "skipped", None),
    }  # fmt: skip
    rule, spring, autumn = by_kind[kind]
    assert remark.rule == rule
    dates = dict(remark.dates)
    assert (dates["2027-03-28T02:30"], dates.get("2027-10-31T02:30")) == (spring, autumn)
    assert len(dates) == (4 if autumn else 2)
    if rule == "clock-change":
        assert "2027-03-28 02:30 (skipped)" in remark.message
        assert ("2027-10-31 02:30 (doubled)" in remark.message) == (autumn is not None)


def test_wildcard_minute_is_skipped_and_doubled_by_debian_too() -> None:
    """FR-88: `*/30 2` is a wildcard job to Debian's cron; `0-59/30 2` is not."""
    assert dict(only("clock-change", b"*/30 2 * * * true\n").dates)["2027-03-28T02:00"] == "skipped"
    assert rules(b"0-59/30 2 * * * true\n") == ["clock-change-handled"]


def test_intervals_follow_the_clock_and_are_no_finding() -> None:
    """FR-88."""
    for schedule in (b"*/15 * * * *", b"0 * * * *", b"0 */2 * * *", b"@hourly"):
        assert rules(schedule + b" true\n", cron="busybox") == []


def test_midnight_changes_are_found() -> None:
    """FR-90: Santiago's clock jumps from midnight to one."""
    remark = only("clock-change", b"@daily true\n", cron="busybox", zone="America/Santiago")
    assert ("2027-09-05T00:00", "skipped") in remark.dates


def test_zone_of_the_crontab_counts_where_the_cron_takes_it() -> None:
    """FR-97: cronie takes CRON_TZ, but looks after no clock change then; Debian's goes by the zone that it runs in."""
    text = b"CRON_TZ=America/New_York\n30 2 * * * true\n"
    assert only("clock-change", text, cron="cronie").dates[0] == ("2027-03-14T02:30", "skipped")
    assert only("clock-change-handled", text, cron="debian").dates[0][0] == "2027-03-28T02:30"


def test_doubled_run_of_a_guarded_line_is_no_finding() -> None:
    """The guard lets the second one find its slot done (FR-86)."""
    guard = b"/usr/bin/cronguard run x --cron '30 1 * * *' -- "
    for between, expected in ((b"", {"skipped", "doubled"}), (guard, {"skipped"})):
        text = b"30 1 * * * " + between + b"true\n"
        remark = only("clock-change", text, cron="busybox", zone="Europe/London")
        assert {what for _, what in remark.dates} == expected


def test_day_shift_says_when_and_where() -> None:
    """FR-99: weekdays 23:30 by UTC are Tuesday to Saturday in Rome."""
    remark = only("local-day-shift", b"30 23 * * 1-5 true\n", host_zone="UTC")
    assert "next day" in remark.message
    westwards = only("local-day-shift", b"0 2 * * 1 true\n", zone="America/New_York", host_zone="UTC")
    assert "day before" in westwards.message
    summer_only = only("local-day-shift", b"30 22 * * 1 true\n", host_zone="UTC")
    assert "for a part of the year" in summer_only.message


def test_columns_are_those_of_the_file() -> None:
    line = b"  0 12 * * *  echo \\%\\% $(date +\\%F) || true\n"
    assert only("masked-exit", line).column == line.index(b"true") + 1
    nested = b"0 12 * * * sh -c 'cat x | gzip' > /tmp/x\n"
    assert only("pipeline-status", nested).column == nested.index(b"|") + 1
    percent = b"0 12 * * * date +%F\n"
    assert only("unescaped-percent", percent).column == percent.index(b"%") + 1


def test_dash_is_for_cronie() -> None:
    """Debian's daemon ignores the whole file for it."""
    assert rules(b"-0 12 * * * true\n", cron="cronie") == []


def test_what_a_bad_line_costs_is_that_crons_own() -> None:
    """FR-32: seen with Debian's daemon: one bad line, and no job of the file runs."""
    assert "whole file" in only("unparsable-line", b"x\n").message
    assert "ignores the line" in only("unparsable-line", b"x\n", cron="cronie").message
    assert rules(b"0 12 * * * true", cron="busybox") == []


def test_carriage_returns_are_one_finding_a_file() -> None:
    """FR-32."""
    text = b"A=b\r\n\r\n0 12 * * * true\r\n"
    assert [rule for rule in rules(text) if rule in ("carriage-return", "unparsable-line")] == ["carriage-return"]
    assert "2 other lines" in only("carriage-return", text).message
    assert "whole file" in only("carriage-return", text).message


def test_percent_is_nothing_special_to_busybox() -> None:
    assert rules(b"0 12 * * * date +%F || true\n", cron="busybox") == ["masked-exit"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_samples_pass_through(sample: Sample) -> None:
    lines = sample.data.split(b"\n")
    for remark in remarks(sample.data, flavour=sample.flavour, host_zone="UTC"):
        assert 1 <= remark.column <= len(lines[remark.line - 1]) + 1


@pytest.mark.parametrize(
    "secret", [b"S3cr3tS3cr3t", b"hunter2", b"passw0rd", b"abcdef0123456789abcdef", b"0123456789abcdef"]
)
def test_no_finding_shows_a_secret(secret: bytes) -> None:
    sample = next(sample for sample in SAMPLES if sample.name == "secrets")
    assert secret in sample.data
    found = remarks(sample.data)
    assert not any(secret.decode() in remark.message + remark.fix for remark in found)
    assert [remark.line for remark in found if remark.rule == "secret-on-line"] == [1, 2, 3, 4, 5]


@settings(max_examples=60, deadline=None)
@given(CRONTABS, st.sampled_from(KINDS), st.sampled_from([USER, SYSTEM]))
def test_no_bytes_make_lint_raise(data: bytes, kind: str, flavour: str) -> None:
    for remark in remarks(data, cron=kind, flavour=flavour, host_zone="UTC"):
        assert remark.rule in RULES
