"""A guard in front of a service's command."""

from __future__ import annotations

import sys
from typing import Sequence

import pytest

from cronguard.core.dropin import DropIn, drop_in, settings_of, values_of

PROGRAM = "/opt/cronguard/bin/cronguard"
TIMER = ("[Timer]\nOnCalendar=Mon..Fri 02:30 Europe/Rome\n",)
needs_calendar = pytest.mark.skipif(sys.version_info < (3, 10), reason="oncalendar needs Python 3.10")


def made(exec_start: str, more: str = "Type=oneshot", timer: Sequence[str] = (), unit: str = "a.service") -> DropIn:
    found = drop_in(unit, (f"[Unit]\nX=y\n[Service]\n{more}\n{exec_start}\n[Install]\n",), timer, PROGRAM, "")
    assert isinstance(found, DropIn), found
    return found


def refused(exec_start: str, more: str = "Type=oneshot", timer: Sequence[str] = TIMER) -> str:
    found = drop_in("a.service", (f"[Service]\n{more}\n{exec_start}\n",), timer, PROGRAM, "")
    assert isinstance(found, str)
    return found


def command(found: DropIn) -> str:
    [_empty, line] = [line for line in found.text.splitlines() if line.startswith("ExecStart=")]
    return line[len("ExecStart=") :]


def test_command_stays_word_for_word_behind_the_guard() -> None:
    original = "/usr/bin/rsync -a \"%h/a b\" ${DEST} $OPTS 'c d' \\\"e %%"
    assert command(made(f"ExecStart={original}")) == f"{PROGRAM} run a -- {original}"


@pytest.mark.parametrize("prefix", ["-", "+", "!", "!!", ":", "-:", "+-"])
def test_prefix_stays_in_front(prefix: str) -> None:
    assert command(made(f"ExecStart={prefix}/bin/x y")) == f"{prefix}{PROGRAM} run a -- /bin/x y"


@needs_calendar
def test_timer_beside_it_gives_the_schedule() -> None:
    found = made("ExecStart=/bin/x", timer=TIMER)
    assert command(found) == f'{PROGRAM} run a --calendar "Mon..Fri 02:30" --timezone Europe/Rome -- /bin/x'
    assert "--timezone" not in command(made("ExecStart=/bin/x", timer=("[Timer]\nOnCalendar=daily\n",)))


@pytest.mark.parametrize(
    "timer",
    [
        (),
        ("[Timer]\nOnCalendar=daily\nOnCalendar=hourly\n",),
        ("[Timer]\nOnBootSec=5m\nOnCalendar=daily\n",),
        ("[Timer]\nOnUnitActiveSec=5m\n",),
        ("[Timer]\nOnCalendar=nonsense\n",),
    ],
)
def test_without_one_schedule_none_is_given_and_that_is_said(timer: Sequence[str]) -> None:
    found = made("ExecStart=/bin/x", timer=timer)
    assert command(found) == f"{PROGRAM} run a -- /bin/x"
    assert "only the lock protects" in found.remarks[0]


def test_later_files_and_empty_values_count() -> None:
    files = ("[Service]\nExecStart=/bin/a\nType=oneshot\n", "[Service]\nExecStart=\nExecStart=/bin/b \\\n  c\n# x\n")
    assert values_of(settings_of(files, "Service"), "ExecStart") == ["/bin/b  c"]


def test_guarded_service_gets_nothing_more() -> None:
    once = made("ExecStart=-/bin/x y")
    service = ("[Service]\nType=oneshot\nExecStart=-/bin/x y\n", once.text)
    assert drop_in("a.service", service, (), PROGRAM, "") == DropIn("", ())


def test_what_a_guard_would_change_is_refused() -> None:
    assert "itself" in refused("ExecStart=@/bin/x argv0 y")
    assert "commands" in refused("ExecStart=/bin/x\nExecStart=/bin/y")
    assert "commands" in refused("ExecStart=/bin/x ; /bin/y")
    assert "no commands" in refused("")
    assert "Type=forking" in refused("ExecStart=/bin/x", "Type=forking")
    assert "Type=notify" in refused("ExecStart=/bin/x", "Type=notify")
    assert "Type=simple" in refused("ExecStart=/bin/x", "", timer=())
    assert "name" in refused("ExecStart=$X y")


def test_instance_of_a_template_is_part_of_the_name() -> None:
    assert " run a-%i " in made("ExecStart=/bin/x", unit="a@.service").text
    assert " run a-b " in made("ExecStart=/bin/x", unit="a@b.service").text
    assert " run a-b.c " in made("ExecStart=/bin/x", unit="a\\x2db.c.service").text.replace("a-x2db", "a-b")


def test_input_is_handed_on_and_places_are_asked_about() -> None:
    assert " --stdin inherit -- " in made("ExecStart=/bin/x", "Type=oneshot\nStandardInput=file:/x").text
    assert "ProtectSystem=" in made("ExecStart=/bin/x", "Type=oneshot\nProtectSystem=strict").remarks[-1]
    assert "User=" in made("ExecStart=/bin/x", "Type=oneshot\nUser=a").remarks[-1]
    assert "PrivateNetwork=" in made("ExecStart=/bin/x", "Type=oneshot\nPrivateNetwork=yes").remarks[-1]
    told = "Type=oneshot\nUser=a\nEnvironment=CRONGUARD_STATE_DIR=/x"
    assert all("User=" not in remark for remark in made("ExecStart=/bin/x", told).remarks)
