"""The report in a real browser: what it draws on a wall, on a phone, in the dark and on paper, and what it refuses."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Iterator, List

import pytest

from cronguard.core.model import Incident, RunRow, ScheduleText
from cronguard.core.report import Facts, page
from cronguard.core.schedule import parse_schedule
from cronguard.core.standing import standing_of
from tests.support.chromium import Browser, chromium_binary
from tests.support.rows import job_row, run_row
from tests.support.stores import unavailable

NOW = datetime(2026, 3, 31, 9, 12, tzinfo=timezone.utc)
SINCE = NOW - timedelta(days=7)
HOURLY = ScheduleText("cron", "0 * * * *")
HOSTILE = "</script></title></style><img src=x onerror=\"document.title='pwned'\">'\x1b\u202e\u05d0\u05d1<b>"
MISSED = range(60, 72)

pytestmark = pytest.mark.usual


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    binary = chromium_binary()
    if binary is None:
        unavailable("no browser: install the Debian package chromium")
    running = Browser(binary)
    yield running
    running.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week with the spring change in it: an hourly job with a night missed, a failing one with a hostile message."""
    file: Path = tmp_path_factory.mktemp("report") / "jobs.html"
    file.write_text(page(facts()), encoding="utf-8")
    return file


def facts() -> Facts:
    runs: List[RunRow] = [
        run_row("hourly", slot.at_utc, took_s=60.0 + number % 7, slot_at_utc=slot.at_utc, run_key=slot.label)
        for number, slot in enumerate(parse_schedule(HOURLY, "Europe/Rome").due_between(SINCE, NOW))
        if number not in MISSED
    ]
    failed = run_row("evil", NOW - timedelta(days=2), "failed", message=HOSTILE, host=HOSTILE)
    rows = [
        job_row("hourly", HOURLY, "Europe/Rome", last_run=runs[-1], last_success_utc=runs[-1].finished_at_utc,
                usual_duration_s=63.0),
        job_row("evil", last_run=failed, failures_in_row=1),
    ]  # fmt: skip
    incident = Incident("i", "evil", "failing", "critical", HOSTILE, (HOSTILE,), SINCE, SINCE, None, None)
    jobs = tuple(standing_of(row.facts.job, row, None, NOW) for row in rows)
    return Facts(jobs, (*runs, failed), (incident,), SINCE, NOW, SINCE, HOSTILE, "0.1.0")


def count(browser: Browser, selector: str) -> int:
    return int(browser.read(f"document.querySelectorAll({selector!r}).length"))


def test_page_is_drawn_without_a_request_or_a_complaint(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.requests() == [report.as_uri()]
    assert browser.complaints() == []
    assert count(browser, "article") == 2
    assert count(browser, "#job-hourly rect.missed") == len(MISSED)
    assert count(browser, "#job-hourly rect.done") == 7 * 24 - len(MISSED)
    assert count(browser, "#job-hourly rect.band") == 1
    assert count(browser, "#job-hourly line.median") == 1
    assert "missed" in browser.read("document.querySelector('#job-hourly rect.missed title').textContent")
    assert "29 Mar +1h" in browser.read("document.querySelector('#job-hourly').textContent")


def test_style_is_the_pages_own_and_reaches_the_drawings(browser: Browser, report: Path) -> None:
    """The hash in the policy is right, or nothing would have a colour."""
    browser.open(report)
    fills = [
        browser.read(f"getComputedStyle(document.querySelector('#job-hourly rect.{kind}')).fill")
        for kind in ("done", "missed", "took")
    ]
    assert len(set(fills)) == 3
    assert "rgb(0, 0, 0)" not in fills


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.read("document.title") == "cronguard, 2026-03-31T09:12Z"
    assert count(browser, "img, script, b, link, iframe") == 0
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert shown in browser.read("document.querySelector('#job-evil').textContent")
    assert shown in browser.read("document.querySelector('header').textContent")


def test_policy_holds_even_if_an_escape_were_missing(browser: Browser, report: Path, tmp_path: Path) -> None:
    """A page into which markup was let on purpose."""
    broken = tmp_path / "broken.html"
    bad = (
        "<main><script>document.title='pwned'</script>"
        "<img src='http://127.0.0.1:9/x' onerror=\"document.title='pwned'\">"
        "<style>body{display:none}</style><p id=styled style='display:none'>x</p>"
    )
    broken.write_text(report.read_text(encoding="utf-8").replace("<main>", bad), encoding="utf-8")
    browser.open(broken)
    assert count(browser, "img") == 1
    assert browser.read("document.title") != "pwned"
    assert browser.read("getComputedStyle(document.body).display") == "block"
    assert browser.read("getComputedStyle(document.querySelector('#styled')).display") == "block"
    assert browser.complaints() != []


@pytest.mark.parametrize("width", [390, 320, 1280])
def test_nothing_is_wider_than_the_window(browser: Browser, report: Path, width: int) -> None:
    browser.open(report, width=width)
    assert browser.read("document.documentElement.scrollWidth") == width
    assert browser.read("Math.min(...[...document.querySelectorAll('article svg')].map(s => s.clientWidth))") > 250
    sizes = "[...document.querySelectorAll('svg text')].map(each => parseFloat(getComputedStyle(each).fontSize))"
    assert browser.read(f"Math.min(...{sizes})") >= 11


def test_on_a_phone_the_drawing_stands_below_the_facts(browser: Browser, report: Path) -> None:
    below = (
        "document.querySelector('.charts').getBoundingClientRect().top"
        " >= document.querySelector('.facts').getBoundingClientRect().bottom"
    )
    browser.open(report, width=390)
    assert browser.read(below) is True
    browser.open(report, width=1280)
    assert browser.read(below) is False


def test_dark_where_the_system_is_dark(browser: Browser, report: Path) -> None:
    """Text has contrast in both (WCAG 2.1, 1.4.3: at least 4.5 to 1)."""
    for scheme in ("light", "dark"):
        browser.open(report, scheme=scheme)
        ground = luminance(browser.read("getComputedStyle(document.querySelector('article')).backgroundColor"))
        assert (ground < 0.1) == (scheme == "dark")
        for selector in ("article", ".soft", ".state.failed", ".facts dt"):
            ink = luminance(browser.read(f"getComputedStyle(document.querySelector({selector!r})).color"))
            low, high = sorted((ground, ink))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (scheme, selector)


def test_page_can_be_printed(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.printed().startswith(b"%PDF-")


def luminance(colour: str) -> float:
    """Of `rgb(1, 2, 3)`, relative (WCAG 2.1)."""
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
