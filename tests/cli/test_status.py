"""What `status`, `history` and `show` say to people: every part of a line, on narrow terminals, in one zone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Tuple

import pytest

from cronguard.cli import looking, render
from cronguard.cli import status as status_cli
from cronguard.commands.status import Status
from cronguard.core.model import JobRow, Process, RunRow, ScheduleText
from cronguard.core.standing import standing_of
from tests.support.claims import facts

NOW = datetime(2026, 1, 20, 12, 0, tzinfo=timezone.utc)
ROME = facts("nightly", zone="Europe/Rome")
HEADERS = status_cli._HEADERS


def run_row(**changes: Any) -> RunRow:
    empty: Any = dict.fromkeys(RunRow._fields)
    plain = RunRow(**empty)._replace(
        run_id="0197f3a2-1234-7000-8000-000000000001", job="nightly", lock="nightly", run_key="2026-01-20T02:00",
        claim_no=1, status="success", forced=False, unguarded=False, zone="Europe/Rome", tzdata="2026a",
        trigger="schedule", attempts=1, fence=7, host="web-1", pid=4711, user_name="deploy", version="0.1.0",
        argv=("export", "--to", "a b"), directory="/srv/app/releases/42",
        started_at_utc=NOW - timedelta(hours=11), finished_at_utc=NOW - timedelta(hours=10, minutes=55),
        lateness_s=1.5, duration_s=300.0, exit_code=0, message="", tail="", cut_bytes=0, leftovers=(), orphans=(),
        stdin_unread=False, times=1, pings="",
    )  # fmt: skip
    return plain._replace(**changes)


def job_row(**changes: Any) -> JobRow:
    plain = JobRow(
        facts=ROME, first_seen_utc=NOW - timedelta(days=30), paused_since_utc=None, paused_until_utc=None,
        paused_reason="", last_success_utc=NOW - timedelta(hours=10, minutes=55), last_success_key="k",
        last_run=run_row(), running=None, usual_duration_s=240.0, failures_in_row=0, skips_in_row=0, strip="sfts",
    )  # fmt: skip
    return plain._replace(**changes)


def line_of(*rows: JobRow) -> Tuple[dict, ...]:
    """The cells of the first line and of the others, by header."""
    result = Status(tuple(standing_of(row.facts.job, row, None, NOW) for row in rows), NOW)
    table = status_cli.table_of(result, NOW)
    return tuple(dict(zip(HEADERS, (text(cell) for cell in row))) for row in table.rows)


def text(cell: render.Cell) -> str:
    return cell if isinstance(cell, str) else "".join(span.text for span in cell)


def test_a_quiet_job_in_its_zone_with_offsets() -> None:
    """FR-51: next and last instant can be told in local time and in UTC, whatever the host's zone."""
    (line,) = line_of(job_row())
    assert line == {
        "job": "nightly", "state": "ok", "last success": "2026-01-20 02:05+01:00", "took": "5m (usually 4m)",
        "next due": "2026-01-21 02:00+01:00", "next due UTC": "2026-01-21 01:00Z", "running": "", "note": "",
        "latest": "sfts",
    }  # fmt: skip


def test_jobs_of_several_zones_share_a_table_in_utc() -> None:
    other = job_row(facts=facts("other", zone="Asia/Tokyo", schedule=ScheduleText("every", "5m")))
    rome, tokyo = line_of(job_row(), other)
    assert (rome["last success"], tokyo["next due"]) == ("2026-01-20 01:05Z", "2026-01-20 12:05Z")


def test_both_passes_of_a_repeated_hour_are_told_apart() -> None:
    first = job_row(last_success_utc=datetime(2026, 10, 25, 0, 30, tzinfo=timezone.utc))
    second = first._replace(last_success_utc=datetime(2026, 10, 25, 1, 30, tzinfo=timezone.utc))
    lines = line_of(first, second)
    assert [line["last success"] for line in lines] == ["2026-10-25 02:30+02:00", "2026-10-25 02:30+01:00"]


@pytest.mark.parametrize(
    ("minutes", "usual_s", "told"),
    [
        (2, 240.0, "[#####-----] 2m of 4m on web-1"),
        (8, 240.0, "[##########]! 8m of 4m on web-1"),
        (2, None, "2m on web-1"),
        (-1, 240.0, "[----------] 0s of 4m on web-1"),
    ],
)
def test_a_running_job_shows_how_far_it_is(minutes: int, usual_s: float, told: str) -> None:
    """The owner's clock may be ahead of ours."""
    running = run_row(status="running", started_at_utc=NOW - timedelta(minutes=minutes), duration_s=None)
    (line,) = line_of(job_row(running=running, last_run=running, usual_duration_s=usual_s))
    assert (line["state"], line["running"]) == ("running", told)
    assert line["took"] == ("(usually 4m)" if usual_s else "")


def test_streaks_pause_and_errors_are_noted() -> None:
    trouble = job_row(
        failures_in_row=3, skips_in_row=5, last_skip_reason="lock_held", last_skip_holder="0197f3a2-9999",
        last_run=run_row(errors=2), paused_since_utc=NOW - timedelta(hours=1),
        paused_until_utc=NOW + timedelta(hours=1), paused_reason="deploy",
    )  # fmt: skip
    (line,) = line_of(trouble)
    assert line["state"] == "paused"
    assert line["note"].split("; ") == [
        "paused until 2026-01-20 14:00+01:00: deploy", "3 failed in a row",
        "5 skipped in a row: lock_held by 0197f3a2-9999", "2 errors",
    ]  # fmt: skip
    (over,) = line_of(trouble._replace(paused_until_utc=NOW - timedelta(minutes=1)))
    assert (over["state"], "paused" in over["note"]) == ("ok", False)


def test_a_success_with_errors_is_yellow() -> None:
    result = Status((standing_of("nightly", job_row(last_run=run_row(errors=2)), None, NOW),), NOW)
    state = status_cli.table_of(result, NOW).rows[0][1]
    assert state == (render.Span("ok", "yellow"),)
    assert looking._status_cell(run_row(errors=2)) == (render.Span("success", "yellow"),)
    assert looking._status_cell(run_row(errors=0)) == "success"
    assert looking._status_cell(run_row(status="failed", errors=2)) == "failed"


def test_the_strip_has_a_colour_a_letter() -> None:
    result = Status((standing_of("nightly", job_row(), None, NOW),), NOW)
    strip = status_cli.table_of(result, NOW).rows[0][-1]
    assert [span.style for span in strip if isinstance(span, render.Span)] == ["green", "red", "red", "green"]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_a_narrow_terminal_gets_fewer_columns_and_none_that_is_cut(width: int) -> None:
    from rich.console import Console

    running = run_row(status="running", started_at_utc=NOW - timedelta(minutes=2), duration_s=None)
    rows = [job_row(failures_in_row=3), job_row(facts=facts("other", zone="Europe/Rome"), running=running)]
    result = Status(tuple(standing_of(row.facts.job, row, None, NOW) for row in rows), NOW)
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(render.drawn(status_cli.table_of(result, NOW), width))
    shown = captured.get()
    assert all(len(line) <= width for line in shown.splitlines())
    for word in ("nightly", "other", "running", "ok"):
        assert word in shown
    assert ("no room for" in shown) == (width < 160)
    assert ("2026-01-20 02:05+01:00" in shown) == (width >= 80)


def test_columns_in_which_nothing_stands_go_before_others() -> None:
    table = render.Table(("a", "b", "c"), (("x" * 10, "", "z" * 10),), optional=("c", "b"))
    fits, left_out = render.fitted(table, 22)
    assert (fits.headers, left_out) == (("a", "c"), ())


def test_show_says_everything_known_of_a_run() -> None:
    row = run_row(
        status="lost", reason="cancelled", slot_at_utc=datetime(2026, 1, 20, 1, 0, tzinfo=timezone.utc),
        slot_local="2026-01-20T02:00+01:00", forced=True, attempts=2, items=418, errors=2, cpu_s=1.25,
        peak_rss_bytes=50 << 20, signal=9, exit_code=None, release="v42", pings="start: ok\nfinish: not delivered",
        leftovers=(Process(7, "sleep 60"), Process(8, "daemon")), orphans=(9, 10), stdin_unread=True,
        late_status="success", late_exit_code=0, late_finished_at_utc=NOW,
    )  # fmt: skip
    told = [(text(name), text(value)) for name, value in looking._facts(row)]
    expected = {
        "counts": "418 items, 2 errors", "slot": "2026-01-20 02:00+01:00 (2026-01-20T01:00Z)", "zone": "Europe/Rome",
        "trigger": "schedule, forced", "started": "2026-01-20 02:00:00+01:00", "late": "1.5s", "took": "5m",
        "exit": "SIGKILL", "attempts": "2", "cpu": "1.2s", "peak memory": "50.0 MiB", "host": "web-1, pid 4711",
        "user": "deploy", "command": "export --to 'a b'", "directory": "/srv/app/releases/42", "release": "v42",
        "ping": "start: ok", "left behind": "7 sleep 60", "orphans": "9, 10", "stdin": "was left unread",
        "late report": "success, exit 0 at 2026-01-20 13:00:00+01:00, after the run had been given up",
    }  # fmt: skip
    assert expected.items() <= dict(told).items()
    assert ("", "finish: not delivered") in told
    assert ("", "8 daemon") in told


def test_offsets_are_written_in_full_and_utc_is_z() -> None:
    zone, name = render.common_zone(["Asia/Kolkata", "Asia/Kolkata"])
    assert (name, render.offset_local(NOW, zone)) == ("Asia/Kolkata", "2026-01-20 17:30:00+05:30")
    zone, name = render.common_zone(["Asia/Kolkata", "Europe/Rome"])
    assert (name, render.offset_local(NOW, zone, "minutes")) == ("UTC", "2026-01-20 12:00Z")
    assert render.common_zone([])[1] == "UTC"
    zone, _ = render.common_zone(["Europe/London"])
    assert render.offset_local(NOW, zone) == "2026-01-20 12:00:00+00:00"
