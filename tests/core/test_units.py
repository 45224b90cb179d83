"""Cron's times as systemd's, and a crontab's jobs as units."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import List, Set

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronguard.core.calendar import parse_calendar
from cronguard.core.cron import parse_cron
from cronguard.core.crons import CRONS
from cronguard.core.guard_plans import Wishes
from cronguard.core.units import Units, calendars, units_of
from cronguard.core.wrapping import wrap
from cronguard.errors import ScheduleError
from tests.support.crontabs import SAMPLES

WISHES = Wishes("/opt/cronguard/bin/cronguard", CRONS["debian"], host_zone="Europe/Rome")


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("30 2 * * *", ["*-*-* 2:30:00"]),
        ("*/15 * * * *", ["*-*-* *:0/15:00"]),
        ("5-55/10 8-18 * * 1-5", ["Mon..Fri *-*-* 8..18:5/10:00"]),
        ("0 0 1 1,7 *", ["*-1,7-1 0:0:00"]),
        ("0 9 1-7 * 1", ["*-*-1..7 9:0:00", "Mon *-*-* 9:0:00"]),
        ("0 9 */2 * 1", ["Mon *-*-1/2 9:0:00"]),
        ("0 9 1-31 * 5", ["*-*-* 9:0:00"]),
        ("0 0 * * 0,7", ["Sun *-*-* 0:0:00"]),
        ("0 0 * * sat,sun", ["Sat,Sun *-*-* 0:0:00"]),
        ("@hourly", ["*-*-* *:0:00"]),
        ("@weekly", ["Sun *-*-* 0:0:00"]),
        ("7,22,37,52 */6 * * *", ["*-*-* 0/6:7/15:00"]),
        ("1,2,4 3 * * *", ["*-*-* 3:1,2,4:00"]),
    ],
)
def test_calendar_of_a_cron_expression(cron: str, expected: List[str]) -> None:
    assert list(calendars(cron)) == expected


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    ranges = st.tuples(number, number).map(sorted).map(lambda ends: f"{ends[0]}-{ends[1]}")
    stepped = st.tuples(ranges | st.just("*"), st.integers(1, 9)).map(lambda parts: f"{parts[0]}/{parts[1]}")
    return st.just("*") | st.lists(number.map(str) | ranges | stepped, min_size=1, max_size=3).map(",".join)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="oncalendar needs Python 3.10; the others judge for it")
@settings(max_examples=60, deadline=None)
@given(st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)), st.integers(0, 900))
def test_calendars_name_the_times_of_cron(fields: List[str], day: int) -> None:
    """By another parser than ours."""
    cron = " ".join(fields)
    try:
        pattern = parse_cron(cron).pattern
    except ScheduleError:  # 31 February
        return
    start = datetime(2027, 1, 1) + timedelta(days=day)
    end = start + timedelta(days=9)
    found: Set[datetime] = set()
    for calendar in calendars(cron):
        found.update(parse_calendar(calendar).between(start, end))
    assert found == set(pattern.between(start, end))


def of(*lines: str, flavour: str = "user", **wishes: object) -> Units:
    return units_of("".join(line + "\n" for line in lines).encode(), flavour, WISHES._replace(**wishes), "me")


def text(units: Units, ending: str) -> str:
    [found] = [unit.text for unit in units.units if unit.name.endswith(ending)]
    return found


def test_job_gets_a_service_and_a_timer_of_one_name() -> None:
    """With a prefix, for a unit in /etc takes the place of the system's of that name."""
    assert [unit.name for unit in of("0 2 * * * /usr/sbin/logrotate").units] == [
        "cronguard-logrotate.service",
        "cronguard-logrotate.timer",
    ]


def test_service_has_what_cron_gives() -> None:
    service = text(of('X=a "b" 100% $c', "0 2 * * * a '$X' 50\\%%in%put"), ".service").splitlines()
    assert 'Environment="SHELL=/bin/sh"' in service
    assert 'Environment="PATH=/usr/bin:/bin"' in service
    assert 'Environment="X=a \\"b\\" 100%% $c"' in service
    assert "StandardInputData=aW4KcHV0Cg==" in service
    assert {"Type=oneshot", "User=me", "WorkingDirectory=~", "SuccessExitStatus=75"} < set(service)
    assert (
        'ExecStart=/opt/cronguard/bin/cronguard run a --cron "0 2 * * *" --stdin inherit --shell -- "a \'$$X\' 50%%"'
        in service
    )


def test_user_and_shell_are_those_of_the_line() -> None:
    service = text(of("SHELL=/bin/bash", "0 2 * * * www-data a", flavour="system"), ".service")
    assert "User=www-data\n" in service
    assert ' -- /bin/bash -c "a"\n' in service


def test_zone_goes_to_the_guard_and_to_the_timer() -> None:
    units = of("0 2 * * 1-5 a", timezone="Asia/Tokyo")
    assert " --timezone Asia/Tokyo " in text(units, ".service")
    assert "OnCalendar=Mon..Fri *-*-* 2:0:00 Asia/Tokyo\n" in text(units, ".timer")


def test_line_that_wrap_guarded_keeps_its_name_and_others_are_said() -> None:
    guarded = wrap(b"0 1 * * * a\n0 2 * * * a\n", "user", WISHES).data.decode().replace("run a-0200", "run old-name")
    units = of(*guarded.splitlines(), "0 3 * * * cronguard run x -- y", "@reboot z", "0 0 * * x", "0 0 L * * w")
    timers = [unit.name for unit in units.units if unit.name.endswith(".timer")]
    assert timers == ["cronguard-a-0100.timer", "cronguard-old-name.timer"]
    assert (units.guarded, units.left) == (2, 3)
    assert [remark.line for remark in units.remarks] == [3, 4, 5, 6]


def test_what_a_unit_file_cannot_hold_is_left_and_said() -> None:
    latin = units_of(b"0 1 * * * \xff\n'A B'=c\n0 2 * * * d\n", "user", WISHES, "me")
    assert (latin.guarded, latin.left) == (0, 2)
    assert "UTF-8" in latin.remarks[0].text
    assert "A B" in latin.remarks[1].text


def test_real_crontabs_become_units_that_differ_in_name() -> None:
    for sample in SAMPLES:
        units = units_of(sample.data, sample.flavour, WISHES, "me")
        names = [unit.name for unit in units.units]
        assert len(names) == len(set(names)) == 2 * units.guarded
