"""`check --notify`: one alert for all hosts, reminders, one recovery, channels that fail. On both stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from tests.support.cronguard import Started, cronguard, environment
from tests.support.pingserver import PingServer

pytestmark = pytest.mark.usual

HOURLY = ("--cron", "0 * * * *", "--timezone", "UTC", "--timeout", "1h")
OK_AT, MISSED_AT = "2026-01-20T01:10Z", "2026-01-20T02:15Z"


@pytest.fixture
def hook() -> Iterator[PingServer]:
    with PingServer() as server:
        yield server


class Site:
    """A store with one job that has run once, and a config file with channels."""

    def __init__(self, store_url: str, folder: Path) -> None:
        self._store = ("--store", store_url)
        self._file = folder / "config.toml"
        self.run("2026-01-20T01:00:01Z")

    def channels(self, *urls: str, more: str = "") -> None:
        self._file.write_text(f"[notify]\nurls = {json.dumps(urls)}\n{more}\n")

    def run(self, at: str) -> None:
        env = environment(CRONGUARD_TEST="1", CRONGUARD_TEST_NOW=at)
        assert cronguard("run", "j", *self._store, *HOURLY, "--", "true", env=env).returncode == 0

    def words(self, *more: str) -> Tuple[str, ...]:
        return ("check", "--notify", *self._store, "--config", str(self._file), *more)

    def check(self, at: str, *more: str) -> Any:
        return cronguard(*self.words("--at", at, *more))


@pytest.fixture
def site(store_url: str, tmp_path: Path) -> Site:
    return Site(store_url, tmp_path)


@pytest.fixture
def local_site(sqlite_url: str, tmp_path: Path) -> Site:
    return Site(sqlite_url, tmp_path)


def documents(server: PingServer) -> List[Dict[str, Any]]:
    assert all(request.method == "POST" for request in server.received)
    assert all(request.headers["Content-Type"] == "application/json" for request in server.received)
    return [json.loads(request.body) for request in server.received]


def told(server: PingServer) -> List[str]:
    return [f"{document['kind']} {document['what']}" for document in documents(server)]


def test_alert_is_sent_once_then_reminded_then_its_end_is_told_once(site: Site, hook: PingServer) -> None:
    """FR-100, FR-102."""
    site.channels(f"http://127.0.0.1:{hook.port}/hook", more='remind = "6h"')
    assert site.check(OK_AT).returncode == 0
    assert told(hook) == []
    for minute in range(15, 40, 5):
        assert site.check(f"2026-01-20T02:{minute}Z").returncode == 2
    assert told(hook) == ["missed opened"]
    (document,) = documents(hook)
    assert {"job", "kind", "state", "summary", "details", "at"} <= set(document)
    assert (document["job"], document["state"], document["at"]) == ("j", "critical", "2026-01-20T02:15:00.000Z")
    assert "nothing started it" in document["details"]
    site.check("2026-01-20T08:20Z")
    assert told(hook) == ["missed opened", "missed reminder"]
    site.run("2026-01-20T09:00:01Z")
    for minute in (10, 25, 40):
        assert site.check(f"2026-01-20T09:{minute}Z").returncode == 0
    assert told(hook) == ["missed opened", "missed reminder", "missed recovered"]
    assert documents(hook)[-1]["state"] == "ok"


def test_two_checks_at_once_send_one_alert(site: Site, hook: PingServer) -> None:
    hook.delay_s = 0.5
    site.channels(f"http://127.0.0.1:{hook.port}/hook")
    with Started(*site.words("--at", MISSED_AT)) as one, Started(*site.words("--at", MISSED_AT)) as two:
        assert {one.end().returncode, two.end().returncode} == {2}
    assert told(hook) == ["missed opened"]


def test_what_is_printed_is_what_is_told(local_site: Site, hook: PingServer) -> None:
    """cron mails news, not the same every five minutes; without any channel that mail is the alert."""
    local_site.channels()
    assert local_site.check(OK_AT).stdout == ""
    first, again = local_site.check(MISSED_AT), local_site.check(MISSED_AT)
    assert first.stdout.startswith("ALERT: j missed: j has not succeeded for")
    assert (again.returncode, again.stdout, again.stderr) == (2, "", "")


@pytest.mark.parametrize("trouble", [{"statuses": [500] * 3}, {"statuses": [404]}])
def test_alert_that_a_channel_did_not_take_is_said_and_sent_by_the_next_check(
    local_site: Site, trouble: Dict[str, Any]
) -> None:
    with PingServer(**trouble) as hook:
        local_site.channels(f"http://user:hunter2@127.0.0.1:{hook.port}/s3cret-path")
        failed = local_site.check(MISSED_AT)
        assert failed.returncode == 2
        assert "not_told" in failed.stderr
        assert f"127.0.0.1:{hook.port}" in failed.stderr
        assert not any(secret in failed.stderr for secret in ("hunter2", "s3cret"))
        before = len(hook.received)
        assert local_site.check("2026-01-20T02:20Z").stderr == ""
        assert local_site.check("2026-01-20T02:25Z").stderr == ""
        assert len(hook.received) == before + 1


def test_channel_that_fails_does_not_make_the_others_repeat_themselves(local_site: Site, hook: PingServer) -> None:
    """FR-102: each channel hears of beginning and end once, in order, the broken one when it works again."""
    with PingServer(statuses=[404, 404, 404]) as broken:
        local_site.channels(f"http://127.0.0.1:{hook.port}/hook", f"http://127.0.0.1:{broken.port}/hook")
        for minute in (15, 20):
            assert "HTTP 404" in local_site.check(f"2026-01-20T02:{minute}Z").stderr
        assert told(hook) == ["missed opened"]
        local_site.run("2026-01-20T02:25:00Z")
        assert "HTTP 404" in local_site.check("2026-01-20T02:30Z").stderr
        assert told(hook) == ["missed opened", "missed recovered"]
        refused = len(broken.received)
        assert local_site.check("2026-01-20T02:35Z").stderr == ""
        assert told(broken)[refused:] == ["missed opened", "missed recovered"]
        assert local_site.check("2026-01-20T02:40Z").stderr == ""
        assert len(broken.received) == refused + 2


def test_hiccup_is_retried_at_once(local_site: Site) -> None:
    with PingServer(statuses=[503]) as hook:
        local_site.channels(f"http://127.0.0.1:{hook.port}/hook")
        assert local_site.check(MISSED_AT).stderr == ""
        assert told(hook) == ["missed opened"] * 2


def test_channel_that_never_answers_is_left_after_ten_seconds(local_site: Site, hook: PingServer) -> None:
    with PingServer(misbehave="silent") as dead:
        local_site.channels(f"http://127.0.0.1:{dead.port}/x", f"http://127.0.0.1:{hook.port}/hook")
        done = cronguard(*local_site.words("--at", MISSED_AT), timeout=30)
    assert done.returncode == 2
    assert "no answer in time" in done.stderr
    assert told(hook) == ["missed opened"]


def test_urls_may_lie_in_files_and_variables(local_site: Site, hook: PingServer, tmp_path: Path) -> None:
    secret = tmp_path / "hook"
    secret.write_text(f"http://127.0.0.1:{hook.port}/hook\n")
    local_site.channels(f"file:{secret}", "env:NOWHERE")
    done = local_site.check(MISSED_AT)
    assert told(hook) == ["missed opened"]
    assert "NOWHERE" in done.stderr


def test_other_urls_are_those_of_apprise(local_site: Site, hook: PingServer) -> None:
    local_site.channels(f"json://127.0.0.1:{hook.port}/hook")
    done = local_site.check(MISSED_AT)
    try:
        import apprise  # noqa: F401
    except ImportError:
        assert "apprise is not installed: pip install 'cronguard-cli[notify]'" in done.stderr
        return
    assert done.stderr == ""
    (document,) = documents(hook)
    assert document["title"] == "ALERT: j missed"
    assert document["message"].startswith("j has not succeeded for")


def test_heartbeat_of_check_is_sent_whatever_it_found_if_it_got_to_its_end(local_site: Site, hook: PingServer) -> None:
    """Who watches the watcher."""
    local_site.channels(more=f'ping = "{hook.check_url}"')
    assert local_site.check(MISSED_AT).returncode == 2
    assert hook.paths == [""]
    assert cronguard(*local_site.words("--at", "nonsense")).returncode == 3
    assert cronguard(*local_site.words("--ping", hook.check_url + "?own")).returncode == 2
    assert len(hook.received) == 2


def test_nothing_to_check_is_told_and_over_when_a_job_has_run(tmp_path: Path, hook: PingServer) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[notify]\nurls = ["http://127.0.0.1:{hook.port}/hook"]\n')
    words = ("check", "--notify", "--config", str(file))
    assert cronguard(*words).returncode == 3
    assert cronguard(*words).returncode == 3
    assert cronguard("run", "j", "--timeout", "5m", "--", "true").returncode == 0
    assert cronguard(*words).returncode == 0
    assert told(hook) == ["nothing_to_check opened", "nothing_to_check recovered"]
