"""The checklist of `doctor` by injected facts: what is fine, what is a warning, what a failure."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Optional

import pytest

from cronguard.core.checkup import clocks, fleet, jobs, places, plans, store
from cronguard.core.checkup.facts import (
    Beat,
    Clocks,
    Entry,
    Folder,
    Here,
    Plan,
    Private,
    Program,
    Starts,
    StoreFacts,
    Tally,
    Twice,
    Waiting,
)
from cronguard.core.checkup.item import Item, listed, worst_of
from cronguard.core.checkup.lines import CronFile, Timer, entries_of, guarded_in
from cronguard.core.checkup.planning import Known, plans_of
from cronguard.core.checkup.secrets import has_secrets, secret_files
from cronguard.core.model import JobRow, ScheduleText, Success
from cronguard.core.zones import is_utc
from tests.support.rows import job_row, run_row

NOW = datetime(2026, 1, 20, 12, 0, tzinfo=timezone.utc)
HERE = Here("web-1", "deploy", "0.1.0", "3.11.2", "Etc/UTC", "2025b", NOW, False)
GOOD = StoreFacts(
    "postgresql://db/app", True, 2, 2, True, held="held", pooler=False, ahead_s=0.01, round_trip_s=0.002
)
FOLDER = Folder("/state", True, "/state", True, "deploy", True, 0o700, 1 << 40, 1 << 20, "ext4", False)


def states(items: List[Item]) -> Dict[str, str]:
    return {item.name: item.state for item in items}


def of_store(**changes: Any) -> Dict[str, str]:
    return states(store.store_items(GOOD._replace(**changes), "default"))


def known(config: Dict[str, Any], rows: Optional[Dict[str, JobRow]] = None, *entries: Entry) -> Known:
    return Known(rows or {}, {"jobs": config}, "config.toml", entries, {}, "Etc/UTC", NOW)


def plan(row: Optional[JobRow] = None, **table: Any) -> Plan:
    """The job `billing` by a config table."""
    (found,), problems = plans_of(["billing"], known({"billing": table}, {"billing": row} if row else {}))
    assert not problems
    return found


def tally(host: str = "web-1", **changes: Any) -> Tally:
    ago = timedelta(minutes=3)
    return Tally("billing", host, "deploy", "UTC", "2025b", "0.1.0", 5, NOW - ago, NOW - ago)._replace(**changes)


def test_worst_item_decides_and_what_is_unknown_is_no_fault() -> None:
    assert worst_of([]) == "ok"
    assert worst_of([Item("a", "ok", ""), Item("b", "skipped", "")]) == "ok"
    assert worst_of([Item("a", "failure", ""), Item("b", "warning", "")]) == "failure"
    assert listed("abcdefg") == "a, b, c, d, e and 2 more"


# --- the store ---


def test_good_store_is_good_in_every_point() -> None:
    assert set(of_store().values()) == {"ok"}


@pytest.mark.parametrize(
    ("changes", "name", "state"),
    [
        ({"write_problem": "the server is read-only"}, "store", "failure"),
        ({"version": 0}, "schema", "ok"),
        ({"version": 1}, "schema", "warning"),
        ({"refused": "its schema has version 9"}, "schema", "failure"),
        ({"held": "free"}, "lock", "failure"),
        ({"held": "stuck"}, "lock", "failure"),
        ({"held": "no second connection"}, "lock", "skipped"),
        ({"pooler": True}, "pooler", "ok"),
        ({"ahead_s": 1.9}, "clock", "ok"),
        ({"ahead_s": -2.2}, "clock", "warning"),
        ({"ahead_s": 2.2, "round_trip_s": 0.5}, "clock", "ok"),  # it may be the way there
        ({"ahead_s": 61.0}, "clock", "failure"),
    ],
)
def test_store_fact_is_judged(changes: Dict[str, Any], name: str, state: str) -> None:
    """FR-62: a schema that is old or missing; FR-52: a pooler does no harm."""
    assert of_store(**changes)[name] == state


def test_store_that_is_down_leaves_the_rest_unknown() -> None:
    found = states(store.down("store: postgresql://db/app: connection refused", ""))
    assert found.pop("store") == "failure"
    assert set(found.values()) == {"skipped"}


def test_job_with_a_store_of_its_own_is_named() -> None:
    assert states(store.other_stores({"a": {"store": "sqlite:/x"}, "b": {}}, ["a", "b"])) == {"store": "skipped"}
    assert store.other_stores({"a": {"store": "sqlite:/x"}, "b": {}}, ["b"]) == []


def test_what_could_not_be_looked_at_in_time_is_skipped() -> None:
    assert states(places.private_items(None, ())) == {"config": "skipped"}
    assert states(jobs.release_items(None, {}, "web-1")) == {"program": "skipped"}
    assert states(clocks.unseen()) == {"scheduled": "skipped"}


# --- files ---


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "ok"),
        ({"writable": False}, "failure"),
        ({"is_ours": False, "owner": "root"}, "failure"),
        ({"mode": 0o770}, "failure"),
        ({"mode": 0o755}, "warning"),
        ({"free_bytes": 50 << 20}, "warning"),
        ({"free_bytes": 1 << 20}, "failure"),
        ({"free_inodes": 500}, "warning"),
        ({"free_inodes": 3}, "failure"),
        ({"free_inodes": None}, "ok"),  # btrfs counts none
        ({"is_shared": True, "kind": "nfs4"}, "warning"),
        ({"kind": "tmpfs"}, "warning"),
        ({"kind": "overlay"}, "ok"),
    ],
)
def test_state_directory_is_judged(changes: Dict[str, Any], state: str) -> None:
    """FR-07: network and FUSE file systems; a full disk before it is full."""
    assert states(places.folder_items("state", FOLDER._replace(**changes), True, HERE)) == {"state": state}


def test_file_store_in_a_container_is_said_to_be_container_local() -> None:
    """FR-85."""
    inside = HERE._replace(is_container=True)
    (item,) = places.folder_items("state", FOLDER._replace(kind="overlay"), True, inside)
    assert item.state == "warning"
    assert "container-local" in item.text
    assert states(places.folder_items("state", FOLDER._replace(kind="overlay"), False, inside)) == {"state": "ok"}


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "ok"),
        ({"mode": 0o644}, "failure"),
        ({"mode": 0o644, "has_secret": False}, "ok"),
        ({"mode": 0o644, "is_reachable": False}, "ok"),
        ({"mode": 0o602}, "failure"),
        ({"mode": 0o660}, "warning"),
        ({"is_trusted": False, "owner": "mallory"}, "failure"),
        ({"open_folder": "/srv"}, "failure"),
        ({"problem": "no such file or directory"}, "failure"),
    ],
)
def test_config_file_is_judged(changes: Dict[str, Any], state: str) -> None:
    file = Private("/etc/cronguard/config.toml", "config", True)._replace(**changes)
    assert states(places.private_items([file], ())) == {"config": state}


def test_mistakes_of_the_config_file_are_failures() -> None:
    assert states(places.private_items([], ["config.toml: [jobs.x] timout: not a setting"])) == {"config": "failure"}


def test_secrets_of_a_config_file_are_found_where_they_stand() -> None:
    assert secret_files({"defaults": {"store": "file:/etc/dsn"}, "jobs": {"x": {"ping": "file:/p"}}}) == [
        ("/etc/dsn", "defaults.store"), ("/p", "jobs.x.ping")
    ]
    for secret in (
        {"defaults": {"store": "postgresql://me:pw@db/app"}},
        {"jobs": {"x": {"ping": "https://hc-ping.com/abc"}}},
        {"jobs": {"x": {"env": {"DB_PASSWORD": "pw"}}}},
        {"notify": {"urls": ["https://hooks.example/abc"]}},
    ):
        assert has_secrets(secret)
    assert not has_secrets({"defaults": {"store": "postgresql://db/app", "ping": "env:PING"}, "jobs": {"x": {}}})


def test_what_waits_in_the_spool_is_a_warning() -> None:
    assert [item.state for item in places.waiting_items(Waiting(1, 2, 3, 4))] == ["warning"] * 4
    assert states(places.waiting_items(Waiting())) == {"spool": "ok"}


# --- limits ---


def test_default_timeout_is_not_below_an_hourly_interval() -> None:
    (item,) = plans.timeout_items([plan(cron="0 * * * *", timezone="UTC")])
    assert item.state == "warning"
    assert "1d" in item.text
    assert "(the default)" in item.text
    assert "1h" in item.text


def test_timeout_is_held_against_the_shortest_distance_of_slots() -> None:
    lopsided = {"cron": "0 8,9,18 * * *", "timezone": "UTC"}
    assert states(plans.timeout_items([plan(timeout="50m", **lopsided)])) == {"timeout": "ok"}
    assert states(plans.timeout_items([plan(timeout="2h", **lopsided)])) == {"timeout": "warning"}
    assert states(plans.timeout_items([plan(timeout="25m", retries=2, **lopsided)])) == {"timeout": "warning"}


def test_timeout_is_held_against_the_longest_run_seen_and_must_be_there() -> None:
    row = job_row("billing", None, "UTC", successes=(Success(NOW, 500.0), Success(NOW, 20.0)))
    assert states(plans.timeout_items([plan(row, timeout="1h")])) == {"timeout": "ok"}
    assert states(plans.timeout_items([plan(row, timeout="10m")])) == {"timeout": "warning"}
    assert states(plans.timeout_items([plan(row, timeout="0")])) == {"timeout": "warning"}


def test_lease_that_outlasts_a_slot_is_a_warning_where_there_are_leases() -> None:
    """FR-56."""
    long = plan(cron="* * * * *", timezone="UTC", lease="300s")
    assert states(plans.lease_items([long], True)) == {"lease": "warning"}
    assert states(plans.lease_items([long], False)) == {"lease": "ok"}
    assert states(plans.lease_items([plan(cron="0 * * * *", timezone="UTC")], True)) == {"lease": "ok"}


# --- zones and hosts ---


def test_host_zone_is_a_warning_and_a_bad_one_a_failure() -> None:
    """FR-94, FR-97."""
    own = plan(cron="0 2 * * *", timezone="Europe/Rome")
    assert states(fleet.zone_items([own], HERE, {})) == {"zone": "ok"}
    assert states(fleet.zone_items([plan(cron="0 2 * * *")], HERE, {})) == {"zone": "warning"}
    (_plans, problems) = plans_of(["billing"], known({"billing": {"cron": "0 2 * * *", "timezone": "Europe/Rom"}}))
    (item,) = fleet.zone_items([], HERE, problems)
    assert item.state == "failure"
    assert "Europe/Rome" in item.text


def test_cron_of_another_zone_is_told_for_fixed_hours_only() -> None:
    line = Entry("billing", "/etc/cron.d/app line 1", "cron")

    def found(cron: str, zone: str, entry: Entry = line) -> List[Item]:
        return fleet.cron_zone_items([plan(cron=cron, timezone=zone)], [entry], HERE, is_utc)

    assert states(found("0 2 * * *", "Europe/Rome")) == {"zone": "warning"}
    assert found("0 2 * * *", "UTC") == []  # the host says Etc/UTC
    assert found("*/5 * * * *", "Europe/Rome") == []
    assert found("0 2 * * *", "Europe/Rome", line._replace(has_zone=True)) == []


def test_tzdata_must_be_the_same_on_hosts_that_ran_lately() -> None:
    assert states(fleet.tzdata_items(HERE, [tally("web-2")])) == {"tzdata": "ok"}
    (item,) = fleet.tzdata_items(HERE, [tally("web-2", tzdata="2024a"), tally("web-3")])
    assert item.state == "warning"
    assert "2024a on web-2; 2025b on web-1, web-3" in item.text
    updated = tally("web-2", latest_utc=NOW)
    assert states(fleet.tzdata_items(HERE, [tally("web-2", tzdata="2024a"), updated])) == {"tzdata": "ok"}
    assert states(fleet.tzdata_items(HERE, None)) == {"tzdata": "skipped"}


def test_other_versions_are_told_and_no_fault() -> None:
    (item,) = fleet.version_items(HERE, [tally("web-2", version="0.0.9")])
    assert item.state == "ok"
    assert "0.0.9 on web-2" in item.text


def test_two_clocks_for_one_job_are_found() -> None:
    """Article 2: two processes after a deploy."""
    lines = [Entry("billing", "crontab of root line 1", "cron"), Entry("billing", "b.timer", "timer")]
    twice = Starts((tally(), tally(user="root")), (Twice("billing", "web-1", 12),))
    by_lines, by_rows = fleet.scheduler_items(twice, lines, True, ["billing"])
    assert by_lines.state == by_rows.state == "warning"
    assert "12 slots of billing more than once within a minute, as deploy, root" in by_rows.text
    commented = [lines[0], lines[1]._replace(problem="not enabled")]
    assert states(fleet.scheduler_items(Starts((tally(),)), commented, True, ["billing"])) == {"schedulers": "ok"}


def test_several_hosts_are_fine_with_a_shared_database_and_not_with_a_file() -> None:
    starts = Starts((tally(), tally("web-2")))
    assert states(fleet.scheduler_items(starts, [], True, ["billing"])) == {"schedulers": "ok"}
    assert states(fleet.scheduler_items(starts, [], False, ["billing"])) == {"schedulers": "warning"}


# --- clocks ---


def scheduled(entries: List[Entry], tallies: List[Tally], row: Optional[JobRow] = None) -> Item:
    found = Clocks(tuple(entries), ("cron",))
    items = clocks.clock_items([plan(row, cron="*/5 * * * *")], found, Starts(tuple(tallies)), HERE)
    return next(item for item in items if item.name == "scheduled")


def test_job_without_a_line_is_a_warning_that_names_who_ran_it_last() -> None:
    assert scheduled([Entry("billing", "crontab of root line 3", "cron")], []).state == "ok"
    assert "it has never run" in scheduled([], []).text
    ran = job_row("billing", ScheduleText("cron", "*/5 * * * *"), "UTC", last_run=run_row("billing", NOW, host="web-7"))
    item = scheduled([], [], ran)
    assert item.state == "warning"
    assert "web-7" in item.text


def test_clock_of_another_host_counts_while_it_is_alive_and_this_host_s_does_not() -> None:
    alive, stopped = tally("web-2"), tally("web-2", scheduled_utc=NOW - timedelta(hours=2))
    assert scheduled([], [alive]).state == "ok"
    assert "web-2 last started it 2h ago" in scheduled([], [stopped]).text
    assert scheduled([], [stopped]).state == "warning"
    assert scheduled([], [tally("web-1")]).state == "warning"  # its line was just taken away


def test_commented_out_line_is_no_clock() -> None:
    item = scheduled([Entry("billing", "crontab of root line 3", "cron", "commented out")], [])
    assert item.state == "warning"
    assert "crontab of root line 3: commented out" in item.text


def test_lines_need_a_daemon_that_follows_them() -> None:
    line = (Entry("billing", "/etc/crontab line 1", "cron"),)
    timer = (Entry("billing", "b.timer", "timer"),)
    for found, state in (
        (Clocks(line, ("cron",)), "ok"), (Clocks(line, ("systemd",)), "warning"), (Clocks(timer, ("systemd",)), "ok"),
        (Clocks(timer, ("cron",)), "warning"), (Clocks(), "warning"),
    ):  # fmt: skip
        assert states(clocks.clock_items([], found, Starts(), HERE))["clock daemon"] == state


@pytest.mark.parametrize(
    ("line", "job", "options"),
    [
        ("cronguard run billing -- /bin/true", "billing", {}),
        ("/opt/v/bin/cronguard --store file:/s run billing --timeout 5m --quiet -- x", "billing",
         {"timeout": "5m", "quiet": "true"}),
        ("cd /srv && cronguard run --cron='0 2 * * *' billing", "billing", {"cron": "0 2 * * *"}),
        ("/bin/sh -c 'sleep 1; cronguard run billing -- true'", "billing", {}),
        ("python3 -m cronguard run billing -- true", "billing", {}),
        ("FOO=1 cronguard run \"billing\" -- cronguard run inner", "billing", {}),
        ("echo 'cronguard run billing'", "", {}),
        ("cronguard check --notify", "", {}),
    ],
)
def test_guarded_line_is_understood(line: str, job: str, options: Dict[str, str]) -> None:
    found = [each for each in guarded_in(line) if each.job]
    assert [each.job for each in found] == ([job] if job else [])
    if found:
        assert found[0].options == options


def test_crontab_lines_and_timers_become_entries() -> None:
    tab = b"PATH=/opt/bin:/bin\n# 30 2 * * * root cronguard run old -- x\n*/5 * * * * root cronguard check --notify\n"
    tab += b"0 3 * * * root cronguard run billing -- /opt/x %y\n# see cronguard run\n"
    timer = Timer("b.timer", ("cronguard run timed",), "not enabled")
    entries, checks = entries_of([CronFile("/etc/cron.d/app", "system", tab)], [timer])
    assert [(each.job, each.place, each.problem) for each in entries] == [
        ("old", "/etc/cron.d/app line 2", "commented out"),
        ("billing", "/etc/cron.d/app line 4", ""),
        ("timed", "b.timer", "not enabled"),
    ]
    assert checks
    assert (entries[1].command, entries[1].path) == (("/opt/x",), "/opt/bin:/bin")
    ignored, checks = entries_of([CronFile("/etc/cron.d/a.b", "system", tab, "a dot")], [])
    assert {each.problem for each in ignored} == {"commented out", "a dot"}
    assert not checks


# --- what jobs lean on ---


def test_heartbeat_that_cannot_be_reached_is_a_failure() -> None:
    beats = [Beat(("a",), "https://hc.example/***", "host name not resolved"), Beat(("b", "c"), "https://x/***")]
    assert [item.state for item in jobs.heartbeat_items(beats, [])] == ["failure", "ok"]
    assert states(jobs.heartbeat_items([], [])) == {"heartbeat": "skipped"}


def test_somebody_must_hear_of_a_job_that_does_not_start() -> None:
    assert states(jobs.alert_items(Clocks(), False, [])) == {"alerts": "warning"}
    assert states(jobs.alert_items(Clocks(checks=True), True, [])) == {"alerts": "ok"}
    assert states(jobs.alert_items(Clocks(), False, [Beat(("a",), "https://x/***")])) == {"alerts": "ok"}


def test_release_that_moved_is_told_and_a_missing_program_is_a_failure() -> None:
    """Article 4: from the symlink to the live copy."""
    row = job_row("billing", None, "UTC", last_run=run_row("billing", NOW, host="web-1", directory="/srv/r1"))
    live = Program("billing", "/srv/live/run", "", ("/srv/live",), "/srv/r2")
    (moved,) = jobs.release_items([live], {"billing": row}, "web-1")
    assert moved.state == "ok"
    assert "/srv/live leads to /srv/r2 now; the last run was in /srv/r1" in moved.text
    broken = live._replace(problem="/srv/live leads to /srv/r2, which is not there")
    assert states(jobs.release_items([broken], {}, "web-1")) == {"program": "failure"}
